//! **LEDBAT** and LEDBAT++: background transport that yields to other flows by the queueing delay.
//!
//! Shalunov, Hazel, Iyengar and Kühlewind, *Low Extra Delay Background Transport (LEDBAT)*, RFC
//! 6817; Balasubramanian, Ertugay, Havey and Bagnulo, *LEDBAT++: Congestion Control for Background
//! Traffic*, draft-irtf-iccrg-ledbat-plus-plus-01.
//!
//! ```text
//! queueing delay: q = min(current delays) - min(base delays)  (RFC 6817 section 2.4.2)
//! base delays: the least delay of each of the last 10 minutes  (RFC 6817 sections 2.4.2 and 2.5)
//! current delays: the last 4 samples, of one RTT at most  (RFC 6817 section 2.5)
//! each ACK: w <- w + gain (1 - q / target) / w            (RFC 6817 section 2.4.2)
//! each ACK: w <- min(w, flight + 1)                       (RFC 6817 section 2.4.2)
//! at a loss: w <- max(w / 2, 2)                           (RFC 6817 section 2.4.2)
//! plus: G = gain / min(16, ceil(2 target / base))         (LEDBAT++ section 4.2)
//! plus, slow start, each ACK: w <- w + G                  (LEDBAT++ section 4.1)
//! plus, first slow start: ends when q > 3/4 target        (LEDBAT++ section 4.1)
//! plus, q <= target, each RTT: w <- w + G                 (LEDBAT++ section 4.3)
//! plus, q > target, each RTT: w <- w + max(G - w (q / target - 1), -w / 2)  (LEDBAT++ section 4.3)
//! plus, slowdown: ssthresh <- w, w <- 2 for 2 RTT, then slow start to ssthresh  (LEDBAT++ section 4.4)
//! plus: the first slowdown 2 RTT after slow start, the next one 9 durations after the last  (LEDBAT++ section 4.4)
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `plus` | whether it is LEDBAT++ | | on or off | off |
//! | `target` | target queueing delay; 0: 100 ms (the most that RFC 6817 section 2.5 allows), LEDBAT++ 60 ms | s | 0s <= target <= 1s | 0 |
//! | `gain` | window growth over that of TCP at an empty queue | | 0 < gain <= 1 | 1 |
//! | `q` | queueing delay | s | | |
//! | `base` | smallest round-trip time of the connection | s | | |
//! | `flight` | packets in flight before the acknowledgement | packets | | |
//!
//! Beside TCP in a buffer longer than the target it has a small share; alone it fills the link and
//! holds the queue at the target. Flows of LEDBAT that start later take the queue of the first ones
//! for the path; LEDBAT++ measures the base delay anew at each slowdown.
//!
//! Known deviations:
//!
//! * The bound by the flight prevents growth, and does not reduce the window: a driver may report
//!   several acknowledgements before it sends.
//! * The rules of LEDBAT++ are those of an implementation (tinalee77/LEDBAT-Plus-Plus) that quotes
//!   version 01 of the draft, whose text was not available; its sections are cited as quoted there.
//! * A delay is one-way where acknowledgements have the receiver's timestamps, of the time at which
//!   they are sent, and else the round-trip time, which includes queues on the way back. Both
//!   include the delay of delayed acknowledgements.
//! * LEDBAT++ uses one-way delays too; its section 4.5 uses round-trip times, which need no clocks.
//! * After an idle period the window is the driver's restart window, which may exceed the two
//!   packets of the sources.
//! * The window does not change during loss recovery, nor on an acknowledgement with ECN-Echo.
//! * One acknowledgement decreases the window by at most a half.
//! * A mark is answered as a loss; the sources have no rule.
//! * A timeout of LEDBAT++ restarts slow start, with half of the window, or of the window before
//!   the slowdown, as threshold.
//! * The ramp after a slowdown is the slow start of LEDBAT++ with the gain G, without the exit on
//!   delay.

use crate::controller::{Controller, Cut, Settings};
use crate::event::{Acked, Event, Limit, Output};
use crate::law::Signal;
use crate::parts::{MAX_WINDOW, rescale_max_window};
use crate::rtt::Rtt;
use crate::units::{Dur, Packets, Time};

/// Minutes of the base delay (BASE_HISTORY), and samples of the current delay (CURRENT_FILTER).
const BASE_HISTORY: usize = 10;
const CURRENT_FILTER: usize = 4;
const MINUTE: u64 = 60_000_000_000;
/// INIT_CWND and MIN_CWND in packets.
const MIN_CWND: f64 = 2.0;
/// Packets by which the window may exceed those in flight (ALLOWED_INCREASE).
const ALLOWED_INCREASE: f64 = 1.0;
/// Seconds.
const TARGET: f64 = 0.1;
const TARGET_PLUS: f64 = 0.06;
/// LEDBAT++ section 4.2.
const MAX_DIVISOR: f64 = 16.0;
/// LEDBAT++ section 4.1: the part of the target that ends the first slow start.
const EXIT: f64 = 0.75;
/// LEDBAT++ section 4.4: durations between two slowdowns.
const INTERVAL: u64 = 9;

/// One-way or round-trip delays in nanoseconds; the epoch of one-way delays is unknown.
#[derive(Clone, Debug)]
struct Delays {
    one_way: bool,
    minute: u64,
    /// Least delays, the current minute first.
    base: [i64; BASE_HISTORY],
    current: [Option<(Time, i64)>; CURRENT_FILTER],
    next: usize,
}

impl Delays {
    const fn new(one_way: bool) -> Self {
        let (base, current) = ([i64::MAX; BASE_HISTORY], [None; CURRENT_FILTER]);
        Delays { one_way, minute: 0, base, current, next: 0 }
    }

    fn add(&mut self, now: Time, delay: i64) {
        let minute = now.as_nanos() / MINUTE;
        // RFC 6817 section 2.4.2, update_base_delay: minutes without a sample forget nothing.
        if minute != self.minute {
            self.base.rotate_right(1);
            self.base[0] = i64::MAX;
        }
        self.minute = minute;
        self.base[0] = self.base[0].min(delay);
        self.current[self.next] = Some((now, delay));
        self.next = (self.next + 1) % CURRENT_FILTER;
    }

    /// The queueing delay in seconds by the samples of the last `rtt`; `None` without one.
    fn queueing(&self, now: Time, rtt: Dur) -> Option<f64> {
        let recent = self.current.iter().flatten().filter(|(at, _)| now.since(*at) <= rtt);
        let current = recent.map(|&(_, delay)| delay).min()?;
        let base = self.base.iter().copied().min()?;
        Some(current.saturating_sub(base).max(0) as f64 / 1e9)
    }
}

/// The phases of LEDBAT++; LEDBAT is always in `Avoidance`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Slow start, the first one or after a timeout.
    SlowStart {
        first: bool,
    },
    Avoidance,
    /// A slowdown: two packets until the given time.
    Frozen {
        began: Time,
        until: Time,
    },
    /// Slow start to the window before the slowdown.
    Ramp {
        began: Time,
    },
}

/// What the undo of a reduction restores.
#[derive(Clone, Copy, Debug)]
struct Saved {
    w: f64,
    ssthresh: f64,
    phase: Phase,
    slowdown: Option<Time>,
}

/// LEDBAT: see the [module](self).
#[derive(Clone, Debug)]
pub struct Ledbat {
    plus: bool,
    /// Seconds.
    target: f64,
    gain: f64,
    w: f64,
    ssthresh: f64,
    max_window: f64,
    packet: u32,
    /// The least window in packets, after a timeout.
    loss_window: f64,
    infers_recovery: bool,
    phase: Phase,
    /// Time of the next slowdown, once slow start has ended.
    slowdown: Option<Time>,
    rtt: Option<Rtt>,
    delays: Delays,
    /// The last queueing delay in seconds.
    q: Option<f64>,
    in_recovery: bool,
    last_cut: Time,
    /// The state before the last reduction, which no slowdown has followed.
    undo: Option<Saved>,
    cut: Option<Cut>,
}

impl Ledbat {
    /// LEDBAT, or LEDBAT++ if `plus`, with a target in seconds (0 for the default) and a gain.
    pub fn new(plus: bool, target: f64, gain: f64, settings: &Settings) -> Self {
        let default = if plus { TARGET_PLUS } else { TARGET };
        let loss_window = settings.conventions.least_window;
        Ledbat {
            plus,
            target: if target > 0.0 { target } else { default },
            gain,
            w: settings.initial_window.get().clamp(loss_window, MIN_CWND),
            ssthresh: f64::INFINITY,
            max_window: settings.max_window.get().clamp(1.0, MAX_WINDOW),
            packet: settings.packet,
            loss_window,
            infers_recovery: settings.conventions.infers_recovery,
            phase: if plus { Phase::SlowStart { first: true } } else { Phase::Avoidance },
            slowdown: None,
            rtt: None,
            delays: Delays::new(false),
            q: None,
            in_recovery: false,
            last_cut: Time::ZERO,
            undo: None,
            cut: None,
        }
    }

    /// The gain; of LEDBAT++ that of section 4.2.
    fn gain(&self) -> f64 {
        let base = self.rtt.map_or(0.0, |rtt| rtt.min.as_secs());
        if !self.plus {
            self.gain
        } else if base > 0.0 {
            self.gain / libm::ceil(2.0 * self.target / base).clamp(1.0, MAX_DIVISOR)
        } else {
            self.gain / MAX_DIVISOR
        }
    }

    /// The change of the window in one round-trip time at queueing delay `q`, in packets.
    fn change(&self, q: f64) -> f64 {
        let excess = q / self.target - 1.0;
        if !self.plus {
            -self.gain * excess
        } else if excess <= 0.0 {
            self.gain()
        } else {
            (self.gain() - self.w * excess).max(-self.w / 2.0)
        }
    }

    fn measure(&mut self, now: Time, acked: &Acked) {
        let Some(sample) = acked.rtt else { return };
        self.rtt = Some(Rtt::update(self.rtt, sample));
        let delay = match acked.received_at {
            Some(at) => i128::from(at.as_nanos()) - i128::from(acked.sent_at.as_nanos()),
            None => i128::from(sample.as_nanos()),
        };
        if acked.received_at.is_some() != self.delays.one_way {
            self.delays = Delays::new(!self.delays.one_way);
        }
        // The largest value means that there is no sample.
        self.delays.add(now, i64::try_from(delay).unwrap_or(i64::MAX - 1).min(i64::MAX - 1));
    }

    fn acked(&mut self, now: Time, acked: &Acked) {
        self.measure(now, acked);
        if self.in_recovery && self.infers_recovery && acked.sent_at > self.last_cut {
            self.in_recovery = false;
        }
        if self.in_recovery || acked.echo || acked.credit == 0 {
            return;
        }
        let Some(rtt) = self.rtt else { return };
        self.q = self.delays.queueing(now, rtt.smoothed).or(self.q);
        let Some(q) = self.q else { return };
        self.advance(now, q, rtt.smoothed);
        let credit = f64::from(acked.credit);
        let used = matches!(acked.limit, Limit::Window | Limit::Pacing);
        match self.phase {
            Phase::Frozen { .. } => self.w = self.w.min(MIN_CWND),
            Phase::SlowStart { .. } | Phase::Ramp { .. } => {
                if used {
                    let grown = self.w + self.gain() * credit;
                    self.w = grown.min(self.ssthresh.max(self.w));
                }
            }
            Phase::Avoidance => {
                let before = self.w;
                let change = (self.change(q) * credit / self.w).max(-self.w / 2.0);
                if used || change < 0.0 {
                    self.w += change;
                }
                let flight = f64::from(acked.in_flight) + f64::from(acked.packets);
                self.w = self.w.min((flight + ALLOWED_INCREASE).max(before)).max(MIN_CWND);
            }
        }
        self.w = self.w.min(self.max_window);
    }

    /// Changes the phase of LEDBAT++ where its time has come.
    fn advance(&mut self, now: Time, q: f64, rtt: Dur) {
        match self.phase {
            Phase::SlowStart { first } => {
                if (first && q > EXIT * self.target) || self.w >= self.ssthresh {
                    self.phase = Phase::Avoidance;
                    self.slowdown = self.slowdown.or(Some(now + rtt + rtt));
                }
            }
            Phase::Avoidance => {
                if self.slowdown.is_some_and(|at| now >= at) {
                    self.ssthresh = self.w.max(MIN_CWND);
                    self.phase = Phase::Frozen { began: now, until: now + rtt + rtt };
                    (self.slowdown, self.undo) = (None, None);
                }
            }
            Phase::Frozen { began, until } if now >= until => self.phase = Phase::Ramp { began },
            Phase::Ramp { began } if self.w >= self.ssthresh => {
                let duration = now.since(began).as_nanos();
                let pause = Dur::from_nanos(duration.saturating_mul(INTERVAL));
                self.slowdown = Some(now + pause);
                self.phase = Phase::Avoidance;
            }
            Phase::Frozen { .. } | Phase::Ramp { .. } => {}
        }
    }

    /// A loss or a mark of a packet sent at `sent_at`.
    fn congested(&mut self, now: Time, why: Signal, sent_at: Time) {
        if self.in_recovery || sent_at < self.last_cut {
            return;
        }
        let half = (self.w / 2.0).max(MIN_CWND).min(self.w);
        let threshold = self.half();
        self.reduce(now, why, half);
        self.ssthresh = threshold;
        self.in_recovery = why == Signal::Loss || self.infers_recovery;
    }

    /// The threshold after a reduction: half of the window, or of the window before the slowdown.
    fn half(&self) -> f64 {
        let window = match self.phase {
            Phase::Frozen { .. } | Phase::Ramp { .. } => self.ssthresh,
            Phase::SlowStart { .. } | Phase::Avoidance => self.w,
        };
        (window / 2.0).max(MIN_CWND)
    }

    fn timeout(&mut self, now: Time) {
        let threshold = self.half();
        self.reduce(now, Signal::Timeout, self.loss_window);
        self.ssthresh = threshold;
        self.in_recovery = false;
        if self.plus {
            self.phase = Phase::SlowStart { first: false };
        }
    }

    fn reduce(&mut self, now: Time, why: Signal, w: f64) {
        let Ledbat { w: before, ssthresh, phase, slowdown, .. } = *self;
        self.undo = Some(Saved { w: before, ssthresh, phase, slowdown });
        self.cut = Some(Cut::window(why, Packets::new(self.w), Packets::new(w)));
        (self.w, self.last_cut) = (w, now);
    }

    /// The window stays the same number of bytes.
    fn rescale(&mut self, packet: u32) {
        let packet = packet.max(1);
        let factor = f64::from(self.packet) / f64::from(packet);
        self.packet = packet;
        self.w = (self.w * factor).clamp(self.loss_window, MAX_WINDOW);
        self.ssthresh = (self.ssthresh * factor).max(MIN_CWND);
        self.max_window = rescale_max_window(self.max_window, factor, 1.0);
        if let Some(saved) = &mut self.undo {
            saved.w = (saved.w * factor).clamp(self.loss_window, MAX_WINDOW);
            saved.ssthresh = (saved.ssthresh * factor).max(MIN_CWND);
        }
    }
}

impl Controller for Ledbat {
    fn on(&mut self, now: Time, event: &Event) {
        match event {
            Event::Acked(acked) => self.acked(now, acked),
            Event::Lost(lost) => self.congested(now, Signal::Loss, lost.sent_at),
            Event::Marked(marked) => self.congested(now, Signal::Mark, marked.sent_at),
            Event::Recovered => self.in_recovery = false,
            Event::Timeout(_) => self.timeout(now),
            Event::PersistentCongestion => {
                self.in_recovery = false;
                self.reduce(now, Signal::PersistentCongestion, self.w.min(MIN_CWND));
            }
            Event::Undo => {
                if let Some(Saved { w, ssthresh, phase, slowdown }) = self.undo.take() {
                    self.in_recovery = false;
                    (self.w, self.ssthresh) = (self.w.max(w), ssthresh);
                    (self.phase, self.slowdown) = (phase, slowdown);
                }
            }
            Event::Reduced { window, .. } => {
                self.w = self.w.min(window.get()).max(self.loss_window)
            }
            Event::Mtu { packet } => self.rescale(*packet),
            Event::Handshake { .. } | Event::Report(_) | Event::Tick => {}
        }
    }

    fn output(&self) -> Output {
        Output::window(Packets::new(self.w.min(self.max_window)))
    }

    fn take_cut(&mut self) -> Option<Cut> {
        self.cut.take()
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("ssthresh", self.ssthresh);
        emit("queueing_delay", self.q.unwrap_or(f64::NAN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Lost;
    use crate::testing::{at_ms, ms, sampled};

    fn ledbat(plus: bool) -> Ledbat {
        Ledbat::new(plus, 0.0, 1.0, &Settings::default())
    }

    /// An acknowledgement of a packet at `now` after `rtt` ms, with a full window in flight.
    fn ack(controller: &mut Ledbat, now: u64, rtt: u64) {
        let acked = Acked { in_flight: 1000, ..sampled(1, at_ms(now), ms(rtt)) };
        controller.on(at_ms(now), &Event::Acked(acked));
    }

    /// A controller in congestion avoidance at 20 packets with a base delay of 40 ms.
    fn avoiding(plus: bool) -> Ledbat {
        let mut controller = ledbat(plus);
        controller.phase = Phase::Avoidance;
        ack(&mut controller, 40, 40);
        controller.w = 20.0;
        controller
    }

    /// The window after acknowledgements with a queueing delay of `q` ms fill the filter, and after
    /// one more.
    fn grown(controller: &mut Ledbat, q: u64) -> (f64, f64) {
        for now in 2000..2004 {
            ack(controller, now, 40 + q);
        }
        controller.w = 20.0;
        ack(controller, 2004, 40 + q);
        (20.0, controller.w)
    }

    /// RFC 6817 section 2.4.2: the growth falls from a packet in each RTT to none at the target,
    /// and below.
    #[test]
    fn growth_is_linear_in_the_distance_to_the_target() {
        for (q, change) in [(0, 1.0), (50, 0.5), (100, 0.0), (150, -0.5)] {
            let (before, after) = grown(&mut avoiding(false), q);
            assert!((after - before - change / 20.0).abs() < 1e-12, "{q} ms: {after}");
        }
    }

    /// RFC 6817 section 2.4.2: w grows to flight + ALLOWED_INCREASE at most.
    #[test]
    fn the_window_grows_to_a_packet_above_the_flight() {
        for (before, after) in [(10.95, 11.0), (20.0, 20.0)] {
            let mut controller = avoiding(false);
            controller.w = before;
            let acked = Acked { in_flight: 9, ..sampled(1, at_ms(100), ms(40)) };
            controller.on(at_ms(100), &Event::Acked(acked));
            assert_eq!(controller.w, after);
        }
    }

    /// RFC 6817 section 2.5: the base delay is that of the last ten minutes.
    #[test]
    fn base_delays_expire_after_ten_minutes() {
        let mut delays = Delays::new(false);
        delays.add(at_ms(0), 40);
        for minute in 1..10 {
            delays.add(at_ms(60_000 * minute), 90);
            assert_eq!(delays.base.iter().min(), Some(&40));
        }
        delays.add(at_ms(600_000), 90);
        assert_eq!(delays.base.iter().min(), Some(&90));
        // Idle minutes forget nothing: one base delay expires.
        delays.add(at_ms(6_000_000), 120);
        assert_eq!(delays.base.iter().min(), Some(&90));
    }

    /// RFC 6817 section 2.5: the current delay is the least of four samples that are not older than
    /// an RTT.
    #[test]
    fn the_current_delay_is_filtered() {
        let mut delays = Delays::new(false);
        let rtt = ms(100);
        for (at, delay) in [(0, 40), (10, 50), (20, 60), (30, 70)] {
            delays.add(at_ms(at), delay * 1_000_000);
        }
        assert_eq!(delays.queueing(at_ms(30), rtt), Some(0.0));
        assert_eq!(delays.queueing(at_ms(105), rtt), Some(0.01));
        delays.add(at_ms(40), 80_000_000);
        assert_eq!(delays.queueing(at_ms(40), rtt), Some(0.01));
        assert_eq!(delays.queueing(at_ms(900), rtt), None);
    }

    /// RFC 6817 section 3.1: with the receiver's timestamps the delay is one-way, by clocks with
    /// different epochs.
    #[test]
    fn one_way_delays_ignore_the_way_back() {
        let mut controller = ledbat(false);
        for (now, rtt, one_way) in [(1000_u64, 40, 20), (1100, 140, 20), (1200, 140, 50)] {
            for shift in 0..4 {
                let mut acked = sampled(1, at_ms(now + shift), ms(rtt));
                acked.received_at = Some(acked.sent_at + ms(one_way + 7_000_000));
                acked.in_flight = 100;
                controller.on(at_ms(now + shift), &Event::Acked(acked));
            }
            let expected = (one_way - 20) as f64 / 1e3;
            // The filter still holds a sample of the last phase at most.
            let q = controller.q.unwrap();
            assert!((q - expected).abs() < 1e-9, "{q} at {now}");
        }
    }

    /// RFC 6817 section 2.4.2: half of the window, at least two packets, once in an RTT; one packet
    /// after a timeout.
    #[test]
    fn losses_halve_the_window_once() {
        let mut controller = avoiding(false);
        let lost = |sent_at| Event::Lost(crate::Lost::new(1, sent_at, 0));
        controller.on(at_ms(1000), &lost(at_ms(900)));
        assert_eq!(controller.w, 10.0);
        controller.on(at_ms(1010), &Event::Recovered);
        controller.on(at_ms(1020), &lost(at_ms(950)));
        assert_eq!(controller.w, 10.0);
        controller.w = 3.0;
        controller.on(at_ms(1100), &lost(at_ms(1050)));
        assert_eq!(controller.w, 2.0);
        controller.on(at_ms(1200), &Event::Timeout(Lost::new(0, Time::ZERO, 0)));
        assert_eq!(controller.w, 1.0);
    }

    /// LEDBAT++ section 4.2: 1 / min(16, ceil(2 target / base)).
    #[test]
    fn the_gain_of_plus_depends_on_the_base_delay() {
        let mut controller = ledbat(true);
        assert_eq!(controller.gain(), 1.0 / 16.0);
        for (base, divisor) in [(200, 1.0), (100, 2.0), (40, 3.0), (10, 12.0), (2, 16.0)] {
            controller.rtt = Some(Rtt::first(ms(base)));
            assert_eq!(controller.gain(), 1.0 / divisor, "{base} ms");
        }
    }

    /// LEDBAT++ section 4.3: constant growth below the target, and a multiplicative decrease of at
    /// most a half above.
    #[test]
    fn plus_decreases_multiplicatively() {
        let controller = avoiding(true);
        let gain = 1.0 / 3.0;
        for (q, change) in
            [(0.0, gain), (0.06, gain), (0.066, gain - 2.0), (0.09, gain - 10.0), (0.5, -10.0)]
        {
            assert!((controller.change(q) - change).abs() < 1e-9, "{q}: {}", controller.change(q));
        }
    }

    /// LEDBAT++ sections 4.1 and 4.4: slow start ends at 3/4 of the target, a slowdown follows 2
    /// RTT later, keeps two packets for 2 RTT, and returns to its threshold; the next one follows
    /// after 9 durations.
    #[test]
    fn slowdowns_follow_slow_start_and_each_other() {
        let mut controller = ledbat(true);
        ack(&mut controller, 100, 100);
        // The gain is 1/2 with a base of 100 ms.
        assert_eq!(controller.w, 2.5);
        controller.w = 30.0;
        for now in 1000..1004 {
            ack(&mut controller, now, 150);
        }
        assert_eq!(controller.phase, Phase::Avoidance);
        let slowdown = controller.slowdown.unwrap();
        let rtt = controller.rtt.unwrap().smoothed;
        assert!(slowdown.since(at_ms(1000)) >= rtt && slowdown.since(at_ms(1004)) <= rtt + rtt);
        ack(&mut controller, 1500, 100);
        assert!(matches!(controller.phase, Phase::Frozen { .. }));
        let threshold = controller.ssthresh;
        assert_eq!(controller.w, 2.0);
        ack(&mut controller, 1600, 100);
        assert_eq!(controller.w, 2.0);
        let mut now = 1800;
        while controller.phase != Phase::Avoidance {
            ack(&mut controller, now, 100);
            now += 10;
            assert!(now < 10_000);
        }
        assert_eq!(controller.ssthresh, threshold);
        let pause = controller.slowdown.unwrap().since(at_ms(now - 10));
        assert_eq!(pause.as_nanos(), 9 * (now - 10 - 1500) * 1_000_000);
    }

    /// LEDBAT++ section 4.1: the undo of a timeout continues the first slow start, which a delay
    /// ends.
    #[test]
    fn the_undo_of_a_timeout_restores_the_slow_start_of_plus() {
        let mut controller = ledbat(true);
        ack(&mut controller, 100, 100);
        controller.w = 30.0;
        controller.on(at_ms(900), &Event::Timeout(Lost::new(0, Time::ZERO, 0)));
        controller.on(at_ms(950), &Event::Undo);
        assert_eq!((controller.w, controller.ssthresh), (30.0, f64::INFINITY));
        for now in 1000..1004 {
            ack(&mut controller, now, 150);
        }
        assert_eq!(controller.phase, Phase::Avoidance);
    }

    /// LEDBAT++ section 4.4: a timeout in a slowdown halves the window before it, and the next
    /// slowdown follows slow start.
    #[test]
    fn a_timeout_in_a_slowdown_keeps_half_of_the_window_before() {
        let mut controller = avoiding(true);
        controller.slowdown = Some(at_ms(1000));
        ack(&mut controller, 1000, 40);
        assert!(matches!(controller.phase, Phase::Frozen { .. }));
        controller.on(at_ms(1050), &Event::Timeout(Lost::new(0, Time::ZERO, 0)));
        assert_eq!((controller.w, controller.ssthresh), (1.0, 10.0));
        let mut now = 1100;
        while controller.phase != Phase::Avoidance {
            ack(&mut controller, now, 40);
            now += 10;
            assert!(now < 10_000);
        }
        assert!(controller.w >= 10.0);
        assert!(controller.slowdown.unwrap() > at_ms(now));
    }
}
