//! C4: Christian's Congestion Control Code.
//!
//! Source: Huitema, Nandakumar and Jennings, draft-huitema-ccwg-c4-spec, as in `doc/c4-spec.md` of
//! `private-octopus/c4` at commit e3377b6. "Code" is `src/c4.c` of the same commit.
//!
//! ```text
//! rate_estimate = delivered / max(now - time_sent, send_delay)          (nominal rate)
//! not congested: nominal_rate <- max(nominal_rate, rate_estimate)       (nominal rate)
//! end of an era after one with alpha <= 1:                              (nominal max RTT)
//! running_min_rtt <- min(era_min_rtt, (7 running_min_rtt + era_min_rtt)/8)
//! m = min(era_max_rtt, running_min_rtt + 250 ms)
//! nominal_max_rtt <- max(m, (7 nominal_max_rtt + m)/8)
//! pacing_rate = alpha nominal_rate                                      (states)
//! cwnd = max(pacing_rate nominal_max_rtt, 2)                            (states)
//! alpha: Initial 2, Recovery 15/16, Cruising 1, Pushing 5/4 or 17/16    (states)
//! s = 0, 0.92 and 1 at 50 kB/s, 1 MB/s and 10 MB/s, linear between them  (sensitivity)
//! delay_threshold = min(25 ms, (1/16 + 3/16 (1 - s)) nominal_max_rtt)   (excessive delays)
//! delay signal: rtt > nominal_max_rtt + delay_threshold                 (excessive delays)
//! each packet: loss_rate <- (lost + 15 loss_rate)/16                    (excessive losses)
//! loss signal: loss_rate > 0.02 + 0.5 (1 - s)                           (excessive losses)
//! loss or mark in Cruising: nominal_rate <- 3/4 nominal_rate            (rate reduction)
//! loss in Cruising: nominal_max_rtt <- 3/4 nominal_max_rtt              (rate reduction; code)
//! Initial -> Recovery: three eras without growth by a quarter, or a signal  (Initial; code)
//! Recovery -> Initial: four successful pushes in a row, or jitter, once  (Recovery)
//! jitter: running_min_rtt < 2/5 nominal_max_rtt, nominal_max_rtt > 50 ms  (Recovery; code)
//! Recovery -> Cruising: a packet sent in Recovery is acknowledged       (Recovery)
//! Cruising -> Pushing: after four eras, or one after a successful push  (Cruising; code)
//! Cruising -> Recovery: a loss signal or a mark                         (Cruising)
//! Pushing -> Recovery: after an era, or a signal                        (Pushing)
//! Pushing: alpha = 5/4 if the push before was successful, else 17/16    (Pushing)
//! successful: no signal, rate > (1 + (alpha - 1)/4) rate before, or > rate before at 17/16  (Recovery)
//! ```
//!
//! s is the sensitivity. An era lasts until the first packet sent in it is acknowledged. C4 has no
//! parameters.
//!
//! Known deviations:
//!
//! * The draft's update of the nominal rate has its comparison reversed; here the rate only
//!   increases, as its text says.
//! * A delay is a signal in Initial and Pushing only, as in the code, and never reduces the nominal
//!   rate. The draft reduces it in Cruising too, by min(1/4, (rtt -
//!   nominal_max_rtt)/delay_threshold - 1): with this rule 7 of 100 runs of the code's test
//!   c4_wifi_bad meet the deadline instead of 54.
//! * The nominal max RTT follows the draft's pseudo-code. In the code it decreases at the end of
//!   Recovery and of the first era of Cruising only, it follows the round-trip times of Recovery
//!   too, and the era of Pushing does not count: then 83 runs of c4_wifi_bad meet the deadline, but
//!   the median RTT of c4_alone is 109 ms instead of 82 ms on a path of 80 ms. What counts is
//!   Recovery: if it may raise the nominal max RTT, 83 runs meet the deadline with the draft's
//!   decreases too. The draft's text on jitter, which is detected after an update at the end of
//!   Recovery, is on the side of the code.
//! * A signal in Pushing does not reduce the rate, as in the code; the draft excepts only signals
//!   of packets sent in Pushing. With its rule C4 gets 5.7 instead of 6.3 of 10 Mb/s beside Reno at
//!   5 ms, and loses 0.15 % instead of 3.2 %.
//! * The nominal rate is updated in a Recovery that a signal in Initial began, as in the code; in
//!   the draft that is congested.
//! * Growth in Initial is growth by a quarter, as in the code; the draft says that the rate does
//!   not increase. A delay ends Initial also if the rate has grown in the era.
//! * The loss rate begins anew after Recovery, and the running min RTT follows each sample, as in
//!   the code.
//! * A loss in Cruising reduces the nominal max RTT too, as in the code; the draft does not say in
//!   which condition it is reduced. The code's beta for losses depends on the sensitivity; here it
//!   is the draft's 1/4.
//! * Four successful pushes in a row restart Initial; the draft has three. The code has four too,
//!   but its count returns to 0 at the end of each push without a signal.
//! * A restart by jitter requires a nominal max RTT above 50 ms, as in the code.
//! * Cruising lasts one era after a successful push, as in the code (cascade).
//! * A push widens the window by at least a packet, as in the code.
//! * Initial paces at 5/4 of 2 nominal_rate, as in the code, and at least at 5/4 of the initial
//!   window in each nominal max RTT. Its window is at least the initial one, as in the code.
//! * The pacing rate is at least that of the least window, two packets in each running min RTT:
//!   without it, repeated signals take the rate of a flow that does not push to 0.
//! * Losses and marks of packets sent before the last Recovery began do not count; the draft
//!   ignores those in Recovery.
//! * In Initial a loss does not count before 20 packets were acknowledged; the code counts lost
//!   packets as received.
//! * Each report of CE marks is a signal that reduces the rate by 1/4, as in the code; the draft
//!   leaves ECN open.
//! * An era is application-limited if its acknowledgements find the sender limited by the
//!   application or the receiver.
//! * Careful resume, bandwidth estimates of the stack and the pacing quantum are not implemented.
//!   In the code half the peak of these estimates bounds rate and window of Initial from below.
//! * The packets that a timeout declares lost count for the loss rate; the draft does not react to
//!   probe timeouts, which declare none. The window is then the least one (one packet as in RFC
//!   5681, two for QUIC), and two packets after persistent congestion, as in RFC 9002, until a
//!   packet sent since is acknowledged; a timeout changes nothing else.
//! * The handshake is no RTT sample: in a TCP its packets are smaller than data.
//! * After a change of the packet size a rate sample is converted by the sizes of its packets.
//!   Those sent between the last acknowledgement and the change count with the new size.
//! * The nominal rate is in packets of the maximum size.

use crate::controller::{Controller, Cut, Needs, Settings};
use crate::event::{Acked, Event, Limit, Lost, Output};
use crate::law::Signal;
use crate::parts::{PacketSizes, rescale_max_window};
use crate::units::{Packets, Rate, Time};
use libm::fmin;

const ALPHA_INITIAL: f64 = 2.0;
const ALPHA_RECOVERY: f64 = 15.0 / 16.0;
const ALPHA_CRUISING: f64 = 1.0;
const ALPHA_PUSHING: f64 = 5.0 / 4.0;
const ALPHA_PUSHING_LOW: f64 = 17.0 / 16.0;
/// The largest reduction of the nominal rate.
const BETA: f64 = 1.0 / 4.0;
/// The largest jitter in seconds that the nominal max RTT follows.
const MAX_JITTER: f64 = 0.25;
/// The largest delay threshold in seconds.
const MAX_DELAY_THRESHOLD: f64 = 0.025;
/// Eras of Cruising before Pushing.
const CRUISING_ERAS: u32 = 4;
/// Eras without growth that end Initial.
const FLAT_ERAS: u32 = 3;
/// Eras without growth after which a delay ends Initial.
const FLAT_ERAS_AND_DELAY: u32 = 2;
/// Successful pushes in a row that restart Initial.
const PUSHES: u32 = 4;
/// Least nominal max RTT in seconds for a restart by jitter (code).
const JITTER_RTT: f64 = 0.05;
/// Packets received before a loss may end Initial.
const PACKETS_BEFORE_LOSS: u64 = 20;
/// The fraction of the loss rate that a packet replaces.
const LOSS_GAIN: f64 = 1.0 / 16.0;
/// Pacing rate of Initial as a multiple of alpha nominal_rate, for packets that come in bunches
/// (code).
const INITIAL_PACING: f64 = 5.0 / 4.0;
/// The least window in packets.
const MIN_WINDOW: f64 = 2.0;
/// Smallest round-trip time in seconds and largest rate in packets per second, so that results stay
/// finite.
const MIN_RTT: f64 = 1e-6;
const MAX_RATE: f64 = 1e12;

/// The state of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// First estimates, at twice the nominal rate.
    Initial,
    /// At least a round trip at 15/16 of the nominal rate.
    Recovery,
    /// At the nominal rate.
    Cruising,
    /// A round trip above the nominal rate.
    Pushing,
}

/// The period of a packet round trip.
#[derive(Clone, Copy, Debug)]
struct Era {
    began: Time,
    /// alpha of the era before, whose packets are acknowledged in this one.
    previous: f64,
    min_rtt: f64,
    max_rtt: f64,
    /// Whether something other than the application limited the sender.
    used: bool,
}

/// C4: see the [module](self).
#[derive(Clone, Debug)]
pub struct C4 {
    sizes: PacketSizes,
    initial_window: f64,
    max_window: f64,
    /// The window after a timeout in packets.
    least: f64,
    state: State,
    alpha: f64,
    /// Nominal rate in packets per second; 0 before the first estimate.
    rate: f64,
    /// Nominal max RTT and running min RTT in seconds; 0 and infinite before the first sample.
    max_rtt: f64,
    min_rtt: f64,
    era: Era,
    /// Eras of Cruising left.
    cruise: u32,
    /// Eras without growth in Initial.
    flat: u32,
    /// Successful pushes in a row.
    pushes: u32,
    /// Nominal rate and alpha at the last assessment of growth.
    reference: f64,
    pushed: f64,
    /// Beginning of the last Recovery.
    recovered: Time,
    /// Whether there was a signal since the last assessment.
    congested: bool,
    /// Whether the sender was limited by something other than the application since the last
    /// assessment.
    used: bool,
    loss_rate: f64,
    /// Packets acknowledged in Initial.
    received: u64,
    /// Whether jitter has restarted Initial.
    restarted: bool,
    /// Packets delivered and in flight.
    delivered: u64,
    in_flight: u32,
    /// After a timeout or persistent congestion, its time and the window until a packet sent since
    /// is acknowledged.
    restarted_at: Option<(Time, f64)>,
    cut: Option<Cut>,
}

impl C4 {
    /// C4 at the start of a connection.
    pub fn new(settings: &Settings) -> Self {
        C4 {
            sizes: PacketSizes::new(settings.packet),
            least: settings.conventions.least_window,
            initial_window: settings.initial_window.get(),
            max_window: settings.max_window.get(),
            state: State::Initial,
            alpha: ALPHA_INITIAL,
            rate: 0.0,
            max_rtt: 0.0,
            min_rtt: f64::INFINITY,
            era: Era {
                began: Time::ZERO,
                previous: ALPHA_INITIAL,
                min_rtt: f64::INFINITY,
                max_rtt: 0.0,
                used: false,
            },
            cruise: 0,
            flat: 0,
            pushes: 0,
            reference: 0.0,
            pushed: ALPHA_INITIAL,
            recovered: Time::ZERO,
            congested: false,
            used: false,
            loss_rate: 0.0,
            received: 0,
            restarted: false,
            delivered: 0,
            in_flight: 0,
            restarted_at: None,
            cut: None,
        }
    }

    /// The state.
    pub const fn state(&self) -> State {
        self.state
    }

    /// From 0 to 1, by the nominal rate in bytes per second.
    fn sensitivity(&self) -> f64 {
        let rate = self.rate * self.sizes.packet();
        if rate < 50e3 {
            0.0
        } else if rate < 1e6 {
            0.92 * (rate - 50e3) / 950e3
        } else if rate < 10e6 {
            0.92 + 0.08 * (rate - 1e6) / 9e6
        } else {
            1.0
        }
    }

    fn delay_threshold(&self) -> f64 {
        let fraction = 1.0 / 16.0 + 3.0 / 16.0 * (1.0 - self.sensitivity());
        fmin(MAX_DELAY_THRESHOLD, fraction * self.max_rtt)
    }

    fn loss_threshold(&self) -> f64 {
        0.02 + 0.5 * (1.0 - self.sensitivity())
    }

    fn pace(&self) -> Option<f64> {
        if self.rate == 0.0 || self.max_rtt == 0.0 {
            return None;
        }
        // The rate of the least window, so that a flow whose rate was reduced measures it again.
        let pace = (self.alpha * self.rate).max(MIN_WINDOW / self.min_rtt);
        Some(match self.state {
            State::Initial => INITIAL_PACING * pace.max(self.initial_window / self.max_rtt),
            _ => pace,
        })
    }

    fn window(&self) -> f64 {
        let mut window = self.alpha * self.rate * self.max_rtt;
        match self.state {
            State::Initial => window = window.max(self.initial_window),
            // At least a packet above the nominal window (code).
            State::Pushing => window = window.max(self.rate * self.max_rtt + 1.0),
            _ => {}
        }
        let most = self.max_window.min(f64::from(u32::MAX)).max(1.0);
        match self.restarted_at {
            None => window.max(MIN_WINDOW).min(most),
            Some((_, restart)) => restart.min(most),
        }
    }

    /// Begins an era in `state`.
    fn enter(&mut self, now: Time, state: State, alpha: f64) {
        self.begin_era(now);
        self.state = state;
        self.alpha = alpha;
    }

    fn begin_era(&mut self, now: Time) {
        let previous = self.alpha;
        self.era = Era { began: now, previous, min_rtt: f64::INFINITY, max_rtt: 0.0, used: false };
    }

    fn enter_initial(&mut self, now: Time) {
        self.enter(now, State::Initial, ALPHA_INITIAL);
        (self.pushes, self.flat, self.received) = (0, 0, 0);
        self.begin_assessment();
    }

    fn enter_recovery(&mut self, now: Time) {
        let initial = self.state == State::Initial;
        self.recovered = now;
        self.enter(now, State::Recovery, ALPHA_RECOVERY);
        if initial {
            (self.pushes, self.flat) = (0, 0);
            self.begin_assessment();
        }
    }

    /// Begins an assessment of the growth of the nominal rate.
    fn begin_assessment(&mut self) {
        self.congested = false;
        self.used = false;
        self.reference = self.rate;
        self.pushed = self.alpha;
    }

    /// Assesses the growth of the nominal rate since the last assessment.
    fn assess(&mut self) {
        let expected = if self.pushed > ALPHA_PUSHING_LOW {
            self.reference * (1.0 + (self.pushed - 1.0) / 4.0)
        } else {
            self.reference
        };
        let congested = self.congested && self.state != State::Initial;
        if self.rate > expected && !congested {
            self.pushes += 1;
            self.flat = 0;
        } else if self.used {
            self.pushes = 0;
            self.flat += 1;
        }
    }

    /// Updates the running min RTT and the nominal max RTT at the end of an era whose packets were
    /// sent at the nominal rate or below.
    fn update_rtts(&mut self) {
        let Era { previous, min_rtt, max_rtt, .. } = self.era;
        if previous > 1.0 || max_rtt == 0.0 {
            return;
        }
        self.min_rtt = fmin(min_rtt, (7.0 * self.min_rtt + min_rtt) / 8.0);
        let max_rtt = fmin(max_rtt, self.min_rtt + MAX_JITTER);
        self.max_rtt = max_rtt.max((7.0 * self.max_rtt + max_rtt) / 8.0);
    }

    fn acked(&mut self, now: Time, acked: &Acked) {
        for _ in 0..acked.packets.min(u8::MAX.into()) {
            self.loss_rate *= 1.0 - LOSS_GAIN;
        }
        self.received += u64::from(acked.packets);
        self.in_flight = acked.in_flight;
        self.restarted_at = self.restarted_at.filter(|(at, _)| acked.sent_at < *at);
        let unused = matches!(acked.limit, Limit::Application | Limit::Receiver);
        self.used |= !unused;
        self.era.used |= !unused;
        self.measure_rate(now, acked);
        // Without a sample the acknowledgement may be that of an earlier transmission (Karn).
        let Some(rtt) = acked.rtt else { return };
        self.measure_rtt(now, rtt.as_secs().max(MIN_RTT));
        if acked.sent_at >= self.era.began {
            self.end_era(now);
        }
    }

    fn measure_rate(&mut self, now: Time, acked: &Acked) {
        let Some(sample) = acked.delivery else { return };
        self.delivered = sample.prior_delivered.saturating_add(sample.delivered);
        if acked.rtt.is_none() || (self.state == State::Recovery && self.congested) {
            return;
        }
        let delay = now.since(acked.sent_at).max(sample.send_elapsed);
        let volume = self.sizes.volume(sample.prior_delivered, sample.delivered);
        let rate = volume / delay.as_secs().max(MIN_RTT);
        self.rate = self.rate.max(fmin(rate, MAX_RATE));
    }

    fn measure_rtt(&mut self, now: Time, rtt: f64) {
        self.era.max_rtt = self.era.max_rtt.max(rtt);
        self.era.min_rtt = fmin(self.era.min_rtt, rtt);
        self.min_rtt = fmin(self.min_rtt, rtt);
        if self.max_rtt == 0.0 {
            self.max_rtt = rtt;
        }
        if rtt <= self.max_rtt + self.delay_threshold() {
            return;
        }
        match self.state {
            State::Initial if self.flat >= FLAT_ERAS_AND_DELAY => self.enter_recovery(now),
            State::Pushing => {
                self.signal(now);
            }
            _ => {}
        }
    }

    /// The first packet sent in the era is acknowledged.
    fn end_era(&mut self, now: Time) {
        if self.state == State::Initial {
            self.assess();
            self.begin_era(now);
            if self.flat >= FLAT_ERAS {
                self.enter_recovery(now);
            } else {
                self.begin_assessment();
            }
            return;
        }
        self.update_rtts();
        match self.state {
            State::Initial => {}
            State::Recovery => {
                self.assess();
                self.begin_assessment();
                self.loss_rate = 0.0;
                let jitter = 5.0 * self.min_rtt < 2.0 * self.max_rtt && self.max_rtt > JITTER_RTT;
                if self.pushes >= PUSHES || (jitter && !self.restarted) {
                    self.restarted |= jitter;
                    self.enter_initial(now);
                } else {
                    self.cruise = if self.pushes > 0 { 1 } else { CRUISING_ERAS };
                    self.enter(now, State::Cruising, ALPHA_CRUISING);
                }
            }
            State::Cruising => {
                self.cruise = self.cruise.saturating_sub(1);
                if self.cruise == 0 && self.era.used {
                    self.pushed = if self.pushes > 0 { ALPHA_PUSHING } else { ALPHA_PUSHING_LOW };
                    self.enter(now, State::Pushing, self.pushed);
                } else {
                    self.begin_era(now);
                }
            }
            State::Pushing => self.enter_recovery(now),
        }
    }

    /// A congestion signal outside Initial. Returns whether the nominal rate is to be reduced.
    fn signal(&mut self, now: Time) -> bool {
        self.congested = true;
        let reduces = self.state == State::Cruising;
        if self.state != State::Recovery {
            self.pushes = 0;
            self.enter_recovery(now);
        }
        reduces
    }

    /// A loss or mark.
    fn lost(&mut self, now: Time, why: Signal) {
        if self.state == State::Initial {
            if self.received > PACKETS_BEFORE_LOSS {
                self.enter_recovery(now);
            }
        } else if self.signal(now) {
            self.rate *= 1.0 - BETA;
            if why == Signal::Loss {
                self.max_rtt *= 1.0 - BETA;
            }
        }
    }

    fn count_losses(&mut self, now: Time, lost: &Lost) {
        if lost.sent_at < self.recovered || lost.packets == 0 {
            return;
        }
        for _ in 0..lost.packets.min(u8::MAX.into()) {
            self.loss_rate += (1.0 - self.loss_rate) * LOSS_GAIN;
        }
        if self.loss_rate > self.loss_threshold() {
            self.lost(now, Signal::Loss);
        }
    }

    /// After a timeout or persistent congestion the window is `window` until a packet sent since is
    /// acknowledged.
    fn restart(&mut self, now: Time, window: f64) {
        self.restarted_at = Some((now, window.min(self.window())));
    }

    /// Processes a congestion signal, which makes one reduction at most.
    fn reduce(&mut self, why: Signal, signal: impl FnOnce(&mut Self)) {
        let before = self.window();
        signal(self);
        let after = self.window();
        if after < before {
            self.cut = Some(Cut::window(why, Packets::new(before), Packets::new(after)));
        }
    }

    /// The packet size changed: volumes and rates stay the same numbers of bytes.
    fn rescale(&mut self, packet: u32) {
        let factor = self.sizes.change(packet, self.delivered, self.in_flight);
        for rate in [&mut self.rate, &mut self.reference] {
            *rate = fmin(*rate * factor, MAX_RATE);
        }
        self.initial_window *= factor;
        if let Some((_, window)) = &mut self.restarted_at {
            *window = (*window * factor).max(self.least);
        }
        self.max_window = rescale_max_window(self.max_window, factor, 1.0);
    }
}

impl Controller for C4 {
    fn on(&mut self, now: Time, event: &Event) {
        match event {
            Event::Acked(acked) => self.acked(now, acked),
            Event::Lost(lost) => self.reduce(Signal::Loss, |it| it.count_losses(now, lost)),
            Event::Marked(marked) if marked.sent_at >= self.recovered => {
                self.reduce(Signal::Mark, |it| it.lost(now, Signal::Mark));
            }
            Event::Timeout(lost) => self.reduce(Signal::Timeout, |it| {
                it.count_losses(now, lost);
                it.restart(now, it.least);
            }),
            Event::PersistentCongestion => {
                self.reduce(Signal::PersistentCongestion, |it| it.restart(now, MIN_WINDOW));
            }
            Event::Undo => self.restarted_at = None,
            Event::Mtu { packet } => self.rescale(*packet),
            _ => {}
        }
    }

    fn output(&self) -> Output {
        let mut output = Output::window(Packets::new(self.window()));
        output.pace = self.pace().map(Rate::per_sec);
        output
    }

    fn needs(&self) -> Needs {
        Needs { delivery_rate: true, ..Needs::default() }
    }

    fn take_cut(&mut self) -> Option<Cut> {
        self.cut.take()
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("state", f64::from(self.state as u8));
        emit("alpha", self.alpha);
        emit("nominal_rate", self.rate);
        emit("nominal_max_rtt", self.max_rtt);
        emit("running_min_rtt", self.min_rtt);
        emit("sensitivity", self.sensitivity());
        emit("delay_threshold", self.delay_threshold());
        emit("loss_rate", self.loss_rate);
    }
}

#[cfg(test)]
mod tests;
