//! What the RFCs permit after each event of a connection.

use super::{Expected, Law, Outcome, Place, RULES, Violation};
use crate::event::{Acked, Event, Limit};
use crate::parts::PERSISTENT_WINDOW;
use crate::record::{Entry, Record};
use crate::units::{Dur, Time};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use libm::cbrt;

/// CUBIC's C in packets/s^3 (RFC 9438 section 5).
const C: f64 = 0.4;
/// The least slow-start threshold in packets (RFC 5681 equation 4).
const MIN_THRESHOLD: f64 = 2.0;
/// The initial window in packets (RFC 6928, RFC 9002 section 7.2), which is below every largest one.
const INITIAL: f64 = 10.0;
/// By which a window of whole packets may differ from a real one.
const PACKET: f64 = 1.0;
/// Rounding of windows to bytes and of arithmetic.
const ROUNDING: f64 = 0.01;

/// A period of congestion avoidance.
#[derive(Clone, Debug)]
struct Epoch {
    began: Time,
    /// The window at its beginning.
    window: f64,
    /// By how much Reno's window has grown since.
    reno: f64,
}

/// A period in which the window has to grow.
#[derive(Clone, Debug)]
struct Progress {
    window: f64,
    /// The least growth since.
    growth: f64,
    /// Whether an acknowledgement left no packet in flight.
    empty: bool,
}

/// The state of a sender, as far as the rules need it.
#[derive(Clone, Debug)]
struct State {
    /// An upper bound.
    threshold: f64,
    epoch: Option<Epoch>,
    progress: Option<Progress>,
    /// Windows that CUBIC's function may pass through at t = K.
    origins: Vec<f64>,
    /// The last of them that a loss set.
    origin: f64,
    /// Whether no packet sent after the last reduction has been acknowledged.
    recovering: bool,
    /// Whether recovery has not ended by an event.
    open: bool,
    /// Time in this period of congestion avoidance that does not count.
    excluded: Dur,
}

pub(super) struct Follower<'a> {
    expected: &'a Expected,
    /// What remains at a congestion signal.
    kept: f64,
    /// Growth of the window for each window acknowledged, at least.
    slowest: f64,
    least: f64,
    /// The largest window, at which a window need not grow.
    most: f64,
    /// Whether an event ends a recovery: in TCP.
    explicit: bool,
    window: Option<f64>,
    /// Time of the last entry.
    at: Time,
    last_cut: Option<Time>,
    rtt: f64,
    acked: Option<(Time, Acked)>,
    state: State,
    /// The state before the last reduction.
    saved: Option<State>,
    checked: Vec<u64>,
    violations: Vec<Option<Violation>>,
    position: usize,
}

/// The windows around an event.
#[derive(Clone, Copy)]
struct Step {
    at: Time,
    before: f64,
    after: f64,
}

impl Step {
    fn grows(self) -> bool {
        self.after > self.before + ROUNDING
    }

    fn reduces(self) -> bool {
        self.after < self.before - ROUNDING
    }
}

impl<'a> Follower<'a> {
    pub(super) fn new(record: &Record, expected: &'a Expected) -> Self {
        let windows = record.entries.iter().map(|entry| entry.output.window.get());
        let largest = windows.fold(0.0, f64::max);
        let (kept, slowest) = match expected.law {
            // Equation 5 of RFC 9438 section 4.3: alpha.
            Law::Cubic => (0.7, 3.0 * (1.0 - 0.7) / (1.0 + 0.7)),
            Law::Reno | Law::Other => (0.5, 1.0),
        };
        Follower {
            expected,
            kept,
            slowest,
            least: if expected.quic { 2.0 } else { 1.0 },
            // A largest window that is not known: one that the record reaches and never passes.
            most: expected.max_window.min(if largest > INITIAL { largest } else { f64::INFINITY }),
            explicit: !expected.quic
                || record.entries.iter().any(|entry| entry.event == Event::Recovered),
            window: None,
            at: Time::ZERO,
            last_cut: None,
            rtt: 0.0,
            acked: None,
            state: State {
                threshold: f64::INFINITY,
                epoch: None,
                progress: None,
                origins: Vec::new(),
                origin: 0.0,
                recovering: false,
                open: false,
                excluded: Dur::ZERO,
            },
            saved: None,
            checked: alloc::vec![0; RULES.len()],
            violations: alloc::vec![None; RULES.len()],
            position: 0,
        }
    }

    pub(super) fn outcomes(self) -> impl Iterator<Item = Outcome> {
        self.violations.into_iter().zip(self.checked).map(|(violation, checked)| {
            match (violation, checked) {
                (Some(violation), _) => Outcome::Violated(violation),
                (None, 0) => Outcome::NotExercised,
                (None, checked) => Outcome::Held(checked),
            }
        })
    }

    /// Compares the window after a step with what a rule permits. `cause` is evaluated for the
    /// first violation of the rule.
    fn check(
        &mut self,
        rule: Place,
        step: Step,
        permits: [f64; 2],
        cause: impl FnOnce() -> String,
    ) {
        let [least, most] = permits;
        self.checked[rule as usize] += 1;
        // Also for a window that is not a number.
        let keeps = step.after >= least - ROUNDING && step.after <= most + ROUNDING;
        let place = &mut self.violations[rule as usize];
        if !keeps && place.is_none() {
            let (Step { at, before, after }, position) = (step, self.position);
            *place = Some(Violation { at, position, before, after, least, most, cause: cause() });
        }
    }

    pub(super) fn follow(&mut self, position: usize, entry: &Entry) {
        self.position = position;
        let after = entry.output.window.get();
        let step = Step { at: entry.at, before: self.window.unwrap_or(after), after };
        let least = self.least.min(self.most);
        self.check(Place::MinimumWindow, step, [least, f64::INFINITY], || {
            "the least window is not applied to every reduction".to_string()
        });
        if entry.event == Event::PersistentCongestion {
            self.check(Place::PersistentCongestion, step, [0.0, PERSISTENT_WINDOW], || {
                "persistent congestion is answered like a single loss".to_string()
            });
        }
        // The first entry has no window before it.
        if self.expected.law != Law::Other && self.window.is_some() {
            self.event(step, &entry.event);
        }
        self.window = Some(after);
        self.at = entry.at;
    }

    fn event(&mut self, step: Step, event: &Event) {
        match event {
            Event::Acked(acked) => self.acked(step, acked),
            Event::Handshake { rtt } => self.rtt = rtt.as_secs(),
            Event::Lost(lost) => {
                self.signal(step, lost.sent_at, lost.packets > 0 && !self.state.open, true);
            }
            Event::Marked(marked) => self.signal(step, marked.sent_at, false, false),
            Event::Recovered => (self.state.open, self.state.recovering) = (false, false),
            Event::Timeout(_) => {
                self.check(Place::Timeout, step, [0.0, self.least], || {
                    "a timeout is answered like a loss".to_string()
                });
                let threshold = (self.kept * step.before).max(MIN_THRESHOLD);
                self.restart(step, threshold);
            }
            Event::PersistentCongestion => self.restart(step, self.state.threshold),
            Event::Reduced { idle, .. } => {
                // RFC 2861 raises the threshold to three quarters of the window.
                let threshold = if *idle { 0.75 * step.before } else { 0.0 };
                self.state.threshold = self.state.threshold.max(threshold);
                if step.reduces() {
                    (self.state.epoch, self.state.progress) = (None, None);
                }
            }
            Event::Undo => {
                if let Some(saved) = self.saved.take() {
                    self.state = saved;
                }
                (self.state.epoch, self.state.progress) = (None, None);
                // It ends a recovery.
                (self.state.open, self.state.recovering) = (false, false);
                self.state.threshold = self.state.threshold.max(step.after);
            }
            Event::Mtu { .. } => self.rescale(step.after / step.before),
            Event::Report(_) | Event::Tick => {}
        }
    }

    /// Packets of another size: windows stay the same numbers of bytes.
    fn rescale(&mut self, factor: f64) {
        self.state.threshold *= factor;
        self.state.origin *= factor;
        self.state.origins.iter_mut().for_each(|origin| *origin *= factor);
        self.most *= factor.max(1.0);
        (self.state.epoch, self.state.progress) = (None, None);
    }

    /// Losses, which have to reduce the window if they are `due`, or marks.
    fn signal(&mut self, step: Step, sent_at: Time, due: bool, loss: bool) {
        if self.last_cut.is_some_and(|cut| sent_at < cut) {
            self.check(Place::OneReduction, step, [step.before, f64::INFINITY], || {
                let what = if loss { "a loss" } else { "a mark" };
                format!(
                    "{what} of a window of data that was answered already reduces the window again"
                )
            });
        } else if due || step.reduces() {
            self.check_reduction(step);
        }
        if step.reduces() {
            self.reduce(step, loss || self.expected.quic);
        }
    }

    fn check_reduction(&mut self, step: Step) {
        let kept = self.kept;
        let floor = MIN_THRESHOLD.min(step.before);
        // RFC 5681 equation 4 takes the packets in flight, which are fewer than the window if the
        // application limits the sender.
        let used = self.acked.as_ref().map(|(_, acked)| match acked.limit {
            Limit::Window | Limit::Pacing => step.before,
            _ => step.before.min(f64::from(acked.in_flight)),
        });
        let least = (kept * used.unwrap_or(step.before) - PACKET).max(self.least).min(step.before);
        let most = (kept * step.before).max(floor);
        self.check(Place::Reduction, step, [least, most], || {
            let factor = step.after / step.before;
            let near = |other: f64| (factor - other).abs() < 0.02;
            let cause = if near(1.0) || step.after > step.before {
                "the signal is not answered"
            } else if near(kept * (1.0 + kept) / 2.0) {
                "the factor is applied to the window that fast convergence has reduced already"
            } else if near(kept * kept) {
                "one signal is answered twice"
            } else {
                "another factor"
            };
            format!("the window is multiplied by {factor:.3}, not by {kept}: {cause}")
        });
    }

    /// A congestion signal reduced the window.
    fn reduce(&mut self, step: Step, recovering: bool) {
        self.saved = Some(self.state.clone());
        let state = &mut self.state;
        state.threshold = step.after;
        state.origins = alloc::vec![step.before];
        if step.before < state.origin {
            state.origins.push(step.before * (1.0 + self.kept) / 2.0);
        }
        state.origin = step.before;
        (state.epoch, state.progress) = (None, None);
        (state.recovering, state.open) = (recovering, recovering && self.explicit);
        self.last_cut = Some(step.at);
    }

    /// Slow start begins again.
    fn restart(&mut self, step: Step, threshold: f64) {
        self.saved = Some(self.state.clone());
        let state = &mut self.state;
        state.threshold = threshold;
        state.origins = alloc::vec![step.before];
        state.origin = step.before;
        (state.epoch, state.progress) = (None, None);
        (state.recovering, state.open) = (false, false);
        self.last_cut = Some(step.at);
    }

    fn acked(&mut self, step: Step, acked: &Acked) {
        if let Some(rtt) = acked.rtt {
            self.rtt = rtt.as_secs();
        }
        let used = matches!(acked.limit, Limit::Window | Limit::Pacing);
        if let Some((at, last)) = &self.acked {
            // Without packets in flight the link is empty until the next packet is sent.
            let idle = if last.in_flight == 0 { acked.sent_at.since(*at) } else { Dur::ZERO };
            self.state.excluded =
                self.state.excluded + if used { idle } else { step.at.since(*at) };
        }
        self.acked = Some((step.at, *acked));
        if self.last_cut.is_none_or(|cut| acked.sent_at > cut) {
            self.state.recovering = false;
        }
        if self.state.recovering {
            self.check(Place::Recovery, step, [0.0, step.before], || {
                "acknowledgements of packets sent before the reduction open the window".to_string()
            });
        } else if !used {
            self.check(Place::ApplicationLimited, step, [0.0, step.before], || {
                "acknowledgements count although the window does not limit the sender".to_string()
            });
        } else if !acked.echo {
            self.grow(step, acked);
        }
        if step.reduces() || acked.echo {
            (self.state.epoch, self.state.progress) = (None, None);
        }
    }

    /// An acknowledgement for which the window may grow.
    fn grow(&mut self, step: Step, acked: &Acked) {
        let credit = f64::from(acked.credit);
        if step.before < self.state.threshold - ROUNDING {
            let most = step.before + f64::from(acked.packets.max(acked.credit));
            self.check(Place::SlowStart, step, [0.0, most], || {
                "slow start counts packets twice".to_string()
            });
            if step.after >= self.state.threshold - ROUNDING {
                self.enter(step.at, step.after);
            }
        } else {
            if self.state.epoch.is_none() {
                self.enter(self.at, step.before);
            }
            self.check_growth(step, credit);
        }
        if !self.state.open {
            self.check_progress(step, credit);
        }
    }

    /// Congestion avoidance begins.
    fn enter(&mut self, at: Time, window: f64) {
        self.state.epoch = Some(Epoch { began: at, window, reno: 0.0 });
        self.state.excluded = Dur::ZERO;
    }

    fn check_growth(&mut self, step: Step, credit: f64) {
        let Some(epoch) = &mut self.state.epoch else { return };
        epoch.reno += credit / step.before;
        let reno = epoch.window + epoch.reno;
        let most = match self.expected.law {
            Law::Cubic => {
                let t = step.at.since(epoch.began) - self.state.excluded;
                let origins = self.state.origins.iter().copied().chain([epoch.window]);
                let t = t.as_secs() + self.rtt;
                origins.map(|origin| cubic(t, epoch.window, origin)).fold(reno, f64::max)
            }
            Law::Reno | Law::Other => reno,
        };
        let (excluded, cubic) = (self.state.excluded, self.expected.law == Law::Cubic);
        let idle = excluded.as_secs() > self.rtt;
        let most = (most + PACKET).max(step.before);
        self.check(if idle { Place::Idle } else { Place::Avoidance }, step, [0.0, most], || {
            let excluded = excluded.as_secs();
            match (cubic, idle) {
                (true, true) => {
                    format!("t includes {excluded:.3} s in which the window was not used")
                }
                (true, false) => "the window is above the cubic function".to_string(),
                (false, _) => "the window grows by more than a packet for each window".to_string(),
            }
        });
    }

    fn check_progress(&mut self, step: Step, credit: f64) {
        if step.before >= self.most - PACKET && !step.grows() {
            self.state.progress = None;
            return;
        }
        let slowest = self.slowest;
        let new = Progress { window: step.before, growth: 0.0, empty: false };
        let progress = self.state.progress.get_or_insert(new);
        // An acknowledgement of several windows need not open the window by more than a packet.
        progress.growth += slowest * (credit / step.before).min(1.0);
        progress.empty |= self.acked.as_ref().is_some_and(|(_, acked)| acked.in_flight == 0);
        let (from, empty) = (progress.window, progress.empty);
        // A window of whole packets lacks up to one at the beginning, and another one now.
        let least = (from + progress.growth - 2.0 * PACKET).max(0.0);
        self.check(Place::Progress, step, [least, f64::INFINITY], || {
            let cause = if empty {
                "each empty link is taken for an idle period, which moves the recovery or the epoch"
            } else {
                "acknowledgements do not open the window"
            };
            format!("at {:.1} packets since {from:.1}: {cause}", step.after)
        });
    }
}

/// CUBIC's function (RFC 9438 section 4.2), which is `window` at zero and `origin` at K.
fn cubic(t: f64, window: f64, origin: f64) -> f64 {
    let x = t - cbrt((origin - window) / C);
    C * x * x * x + origin
}
