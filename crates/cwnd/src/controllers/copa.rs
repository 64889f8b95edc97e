//! Copa: delay-based congestion control.
//!
//! Source: Arun and Balakrishnan, Copa: Practical Delay-Based Congestion Control for the Internet,
//! NSDI 2018. Details that the paper leaves open are those of the authors' implementation,
//! `venkatarun95/genericCC` at commit 18299d6 (`markoviancc.cc`, `rtt-window.cc`, `estimators.cc`),
//! or of `facebook/mvfst` at commit 00e67c1 (`Copa.cpp`).
//!
//! ```text
//! lambda_t = 1 / (delta d_q)                                     (section 2.1, equation 1)
//! d_q = RTT_standing - RTT_min                                   (section 2.1, equation 2)
//! RTT_standing: the smallest RTT of the last srtt/2              (section 2.1)
//! RTT_min: the smallest RTT of the last 10 s                     (section 2.1)
//! lambda = w / RTT_standing
//! lambda <= lambda_t: w <- w + v / (delta w), each ACK           (section 2.1, step 3)
//! lambda > lambda_t: w <- w - v / (delta w), each ACK            (section 2.1, step 3)
//! v <- 2 v, each window, after three windows in one direction    (section 2.1, step 4)
//! v <- 1 at a change of direction                                (section 2.1, step 4)
//! slow start: w <- w + 1, each ACK, until lambda > lambda_t      (section 2.1)
//! pace = 2 w / RTT_standing                                      (section 2.1)
//! nearly empty: d_q < 0.1 (RTT_max - RTT_min) or lambda d_q < 1  (section 2.2)
//! RTT_max: the largest RTT of the last four srtt                 (section 2.2)
//! not nearly empty for five windows: competitive mode            (section 2.2)
//! competitive: 1/delta <- 1/delta + 1, each srtt without a loss  (section 2.2)
//! competitive, loss: 1/delta <- max(1/delta / 2, default)        (section 2.2)
//! nearly empty: default mode, delta <- default                   (section 2.2)
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `delta` | weight of the delay against the throughput, in the default mode | 1/packets | 0.001 <= delta <= 10 | 0.5 |
//! | `competitive` | whether the controller changes to the competitive mode | | on or off | on |
//!
//! In equilibrium n flows keep a queue that oscillates between 0 and about 2.5 n/delta packets,
//! with a period of five round-trip times (section 3).
//!
//! Known deviations:
//!
//! * The rules of section 2.2 and the oscillation of section 3 are taken from the authors'
//!   implementation and from summaries of the paper, not from its text.
//! * An acknowledgement of several packets counts as several ACKs, as in mvfst. In a loss recovery
//!   the window does not grow, and each acknowledgement counts as one where it decreases: section
//!   2.1 has no recovery. With random loss of 5 % that costs up to two thirds of the goodput with
//!   the conventions rfc5681, and nothing with those of Linux.
//! * The window does not grow while the application or the receiver limits the sender.
//! * A queue with less than a packet of the flow (lambda d_q < 1) is nearly empty: a tenth of the
//!   oscillation is half a packet at delta = 0.5, which the RTT does not resolve, least of all with
//!   delayed acknowledgements. With a delta above 0.5 the bound is 0.5/delta packets: half of the
//!   flow's part of the queue in equilibrium.
//! * The last five RTTs are five complete windows of data.
//! * The handshake is no RTT sample: its packets are smaller than data.
//! * The direction is that of three windows after the first one, as mvfst has it by default.
//! * A step against the direction resets a velocity above 1 at once, as in mvfst.
//! * The velocity is at most delta w and at least 1, as in genericCC: a step is at most a packet
//!   for each ACK, unless w < 1/delta.
//! * 1/delta is halved once for each window of data.
//! * A loss rate above 30 % in two RTTs and more than 20 packets multiplies the window by 0.7, as
//!   in genericCC, at a loss.
//! * The least window is two packets, as in genericCC.
//! * A timeout and persistent congestion set the window to the least one, as mvfst does at
//!   persistent congestion; the paper has no rule. The packets that a timeout declares lost count
//!   as lost packets.
//! * An ECN mark is a loss to the competitive mode; the paper has no rule.
//! * The windows of RTTs keep three samples: extrema are exact until their first sample expires.

use crate::controller::{Controller, Cut, Settings};
use crate::event::{Acked, Event, Limit, Lost, Output};
use crate::law::Signal;
use crate::parts::{WindowedMax, WindowedMin, rescale_max_window};
use crate::rtt::Rtt;
use crate::units::{Dur, Packets, Rate, Time};

/// The window of `RTT_min`.
const MIN_WINDOW: Dur = Dur::from_millis(10_000);
/// The least window in packets (genericCC).
const MIN_CWND: f64 = 2.0;
/// Windows in one direction after the first one before the velocity doubles.
const STEADY: u32 = 3;
/// The queue is nearly empty below this fraction of the variation of the RTT.
const NEARLY: f64 = 0.1;
/// The queue is nearly empty below this many packets of the flow itself, and at most this part of
/// those in equilibrium (1/delta).
const RESOLUTION: f64 = 1.0;
const EQUILIBRIUM_PART: f64 = 0.5;
/// Windows of data without a nearly empty queue before the competitive mode.
const PATIENCE: u32 = 5;
/// The window of `RTT_max` in round-trip times.
const MAX_ROUNDS: u64 = 4;
/// Loss rate above which the window is reduced, the least number of packets that it is measured
/// over, and the factor (genericCC).
const HIGH_LOSS: f64 = 0.3;
const LOSS_SAMPLE: u64 = 20;
const LOSS_FACTOR: f64 = 0.7;
/// Smallest round-trip time, so that rates stay finite.
const MIN_RTT: Dur = Dur::from_micros(1);

/// The direction of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Direction {
    Up,
    Down,
}

/// The losses of the last two round-trip times.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    began: Time,
    lost: u64,
    packets: u64,
}

impl Losses {
    /// Whether the sample is complete.
    fn complete(&self, now: Time, rtt: Dur) -> bool {
        now.since(self.began) > rtt + rtt && self.packets > LOSS_SAMPLE
    }

    fn high(&self) -> bool {
        self.lost as f64 > HIGH_LOSS * self.packets as f64
    }
}

/// Copa: see the [module](self).
#[derive(Clone, Debug)]
pub struct Copa {
    /// 1/delta in the default mode, and now.
    default: f64,
    inverse: f64,
    /// Whether the competitive mode is allowed.
    competes: bool,
    competitive: bool,
    packet: u32,
    max_window: f64,
    w: f64,
    slow_start: bool,
    /// The velocity.
    v: f64,
    direction: Option<Direction>,
    /// Windows in this direction after the first one.
    held: u32,
    /// Beginning of the current window of data, and w then.
    began: (Time, f64),
    rtt: Option<Rtt>,
    rtt_min: WindowedMin<Dur>,
    rtt_standing: WindowedMin<Dur>,
    rtt_max: WindowedMax<Dur>,
    /// Whether the queue was nearly empty in the current window of data, and complete windows since
    /// it was.
    empty: bool,
    busy: u32,
    /// Time of the last change of 1/delta, and of the last halving.
    changed: Time,
    halved: Time,
    losses: Losses,
    /// The window before the last reduction.
    before: Option<f64>,
    cut: Option<Cut>,
}

impl Copa {
    /// Copa with `delta` in the default mode, and with the competitive mode if `competes`.
    pub fn new(delta: f64, competes: bool, settings: &Settings) -> Self {
        let default = 1.0 / delta;
        let mut copa = Copa {
            default,
            inverse: default,
            competes,
            competitive: false,
            packet: settings.packet,
            max_window: settings.max_window.get(),
            w: 0.0,
            slow_start: true,
            v: 1.0,
            direction: None,
            held: 0,
            began: (Time::ZERO, 0.0),
            rtt: None,
            rtt_min: WindowedMin::new(MIN_WINDOW.as_nanos()),
            rtt_standing: WindowedMin::new(0),
            rtt_max: WindowedMax::new(0),
            empty: false,
            busy: 0,
            changed: Time::ZERO,
            halved: Time::ZERO,
            losses: Losses::default(),
            before: None,
            cut: None,
        };
        copa.set_window(settings.initial_window.get());
        copa
    }

    /// Whether the competitive mode is active.
    pub fn is_competitive(&self) -> bool {
        self.competitive
    }

    fn set_window(&mut self, window: f64) {
        let most = self.max_window.min(f64::from(u32::MAX)).max(1.0);
        self.w = window.max(MIN_CWND).min(most);
    }

    /// The queueing delay, equation 2.
    fn queueing(&self) -> Option<Dur> {
        Some(self.rtt_standing.get()? - self.rtt_min.get()?)
    }

    fn measure(&mut self, now: Time, sample: Dur) {
        let rtt = Rtt::update(self.rtt, sample.max(MIN_RTT));
        self.rtt = Some(rtt);
        let (at, srtt) = (now.as_nanos(), rtt.smoothed.as_nanos());
        self.rtt_standing.set_length(srtt / 2);
        self.rtt_max.set_length(srtt.saturating_mul(MAX_ROUNDS));
        self.rtt_min.add(at, rtt.latest);
        self.rtt_standing.add(at, rtt.latest);
        self.rtt_max.add(at, rtt.latest);
    }

    /// Section 2.2: the mode, and the increase of 1/delta.
    fn choose_mode(&mut self, now: Time, srtt: Dur, queueing: Dur) {
        let (Some(max), Some(min)) = (self.rtt_max.get(), self.rtt_min.get()) else { return };
        let delay = queueing.as_secs();
        let resolution = RESOLUTION.min(EQUILIBRIUM_PART * self.default);
        let below_resolution = self.w * delay < resolution * (min + queueing).as_secs();
        if below_resolution || delay < NEARLY * (max - min).as_secs() {
            (self.empty, self.busy) = (true, 0);
        }
        let competitive = self.competes && self.busy >= PATIENCE;
        if competitive != self.competitive {
            self.competitive = competitive;
            self.inverse = self.default;
            self.changed = now;
        } else if competitive && now.since(self.changed) > srtt {
            self.inverse = (self.inverse + 1.0).min(f64::from(u32::MAX));
            self.changed = now;
        }
    }

    /// Ends a window of data: counts it for the mode, and chooses the velocity (section 2.1, step
    /// 4).
    fn end_window(&mut self, now: Time, sent_at: Time) {
        let (began, before) = self.began;
        if sent_at < began {
            return;
        }
        self.busy = if self.empty { 0 } else { self.busy.saturating_add(1) };
        self.empty = false;
        let direction = if self.w > before {
            Some(Direction::Up)
        } else if self.w < before {
            Some(Direction::Down)
        } else {
            None
        };
        if direction.is_some() && direction == self.direction {
            self.held = self.held.saturating_add(1);
            if self.held >= STEADY {
                self.v *= 2.0;
            }
        } else {
            self.v = 1.0;
            self.held = 0;
        }
        self.direction = direction;
        self.began = (now, self.w);
    }

    fn acked(&mut self, now: Time, acked: &Acked) {
        self.losses.packets += u64::from(acked.packets);
        if let Some(sample) = acked.rtt {
            self.measure(now, sample);
        }
        let (Some(rtt), Some(queueing), Some(standing)) =
            (self.rtt, self.queueing(), self.rtt_standing.get())
        else {
            return;
        };
        if self.losses.complete(now, rtt.latest) && !self.losses.high() {
            self.losses = Losses { began: now, ..Losses::default() };
        }
        self.choose_mode(now, rtt.smoothed, queueing);
        // lambda <= lambda_t
        let up = self.w * queueing.as_secs() <= self.inverse * standing.as_secs();
        let used = matches!(acked.limit, Limit::Window | Limit::Pacing);
        let credit = f64::from(acked.credit);
        if self.slow_start {
            if up {
                if used {
                    self.set_window(self.w + credit);
                }
                return;
            }
            self.slow_start = false;
            self.began = (now, self.w);
        }
        // Without a sample the acknowledgement may be that of an earlier transmission (Karn).
        if acked.rtt.is_some() {
            self.end_window(now, acked.sent_at);
        }
        let direction = Some(if up { Direction::Up } else { Direction::Down });
        if self.v > 1.0 && direction != self.direction {
            self.v = 1.0;
            self.held = 0;
            self.direction = direction;
            self.began = (now, self.w);
        }
        self.v = self.v.min((self.w / self.inverse).max(1.0));
        let step = self.v * self.inverse / self.w;
        if !up {
            self.set_window(self.w - step * credit.max(1.0));
        } else if used {
            self.set_window(self.w + step * credit);
        }
    }

    /// A loss or mark of a packet sent at `sent_at`: 1/delta is halved, once for each window of
    /// data.
    fn congested(&mut self, now: Time, sent_at: Time) {
        if self.competitive && sent_at >= self.halved {
            self.inverse = (self.inverse / 2.0).max(self.default);
            self.halved = now;
            self.changed = now;
        }
    }

    fn count_losses(&mut self, now: Time, lost: &Lost) {
        self.congested(now, lost.sent_at);
        self.losses.lost += u64::from(lost.packets);
        self.losses.packets += u64::from(lost.packets);
    }

    fn lost(&mut self, now: Time, lost: &Lost) {
        self.count_losses(now, lost);
        let Some(rtt) = self.rtt else { return };
        if self.losses.complete(now, rtt.latest) {
            if self.losses.high() {
                self.reduce(Signal::Loss, LOSS_FACTOR * self.w);
            }
            self.losses = Losses { began: now, ..Losses::default() };
        }
    }

    fn reduce(&mut self, why: Signal, window: f64) {
        let before = self.w;
        self.set_window(window);
        self.w = self.w.min(before);
        self.slow_start = false;
        (self.v, self.held, self.direction) = (1.0, 0, None);
        if self.w < before {
            self.before = Some(before);
            self.cut = Some(Cut::window(why, Packets::new(before), Packets::new(self.w)));
        }
    }
}

impl Controller for Copa {
    fn on(&mut self, now: Time, event: &Event) {
        match event {
            Event::Acked(acked) => self.acked(now, acked),
            Event::Lost(lost) => self.lost(now, lost),
            Event::Marked(marked) => self.congested(now, marked.sent_at),
            Event::Timeout(lost) => {
                self.count_losses(now, lost);
                self.reduce(Signal::Timeout, MIN_CWND);
            }
            Event::PersistentCongestion => self.reduce(Signal::PersistentCongestion, MIN_CWND),
            Event::Undo => {
                if let Some(before) = self.before.take() {
                    self.set_window(self.w.max(before));
                }
            }
            Event::Reduced { window, .. } => self.set_window(self.w.min(window.get())),
            Event::Mtu { packet } => {
                let factor = f64::from(self.packet) / f64::from((*packet).max(1));
                self.packet = *packet;
                self.max_window = rescale_max_window(self.max_window, factor, 1.0);
                self.set_window(self.w * factor);
                self.began.1 *= factor;
                self.before = self.before.map(|before| before * factor);
            }
            _ => {}
        }
    }

    fn output(&self) -> Output {
        let mut output = Output::window(Packets::new(self.w));
        output.pace = self.rtt_standing.get().map(|rtt| Rate::over(2.0 * self.w, rtt));
        output
    }

    fn take_cut(&mut self) -> Option<Cut> {
        self.cut.take()
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        let seconds = |dur: Option<Dur>| dur.map_or(f64::NAN, Dur::as_secs);
        emit("delta", 1.0 / self.inverse);
        emit("competitive", f64::from(u8::from(self.competitive)));
        emit("velocity", self.v);
        emit("queueing_delay", seconds(self.queueing()));
        emit("rtt_standing", seconds(self.rtt_standing.get()));
        emit("rtt_min", seconds(self.rtt_min.get()));
    }
}

#[cfg(test)]
mod tests;
