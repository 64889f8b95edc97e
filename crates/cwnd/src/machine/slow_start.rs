//! Growth of the window before the first congestion signal, whatever the law.

use crate::event::Acked;
use crate::law::Context;
use crate::rtt::Rtt;
use crate::units::{Dur, Time};
use alloc::boxed::Box;
use core::fmt;
use dyn_clone::DynClone;

/// A slow start: grows the window until the first congestion signal, and may end before one.
///
/// Later slow starts, after a timeout, are the standard one (RFC 9406 section 4.3).
pub trait SlowStartLaw: DynClone + fmt::Debug + Send + Sync {
    /// The window after an acknowledgement in slow start at window `w`. `credit` is the growth of the standard slow
    /// start in packets: those acknowledged, at most [`Settings::slow_start_limit`](crate::Settings).
    fn grow(&mut self, w: f64, credit: f64, acked: &Acked, cx: &Context) -> Growth;
}

dyn_clone::clone_trait_object!(SlowStartLaw);

/// The answer of a [`SlowStartLaw`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// The window in packets.
    pub window: f64,
    /// Whether slow start is over: congestion avoidance begins at `window`.
    pub done: bool,
}

/// The slow start of a window law.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum SlowStart {
    /// One packet for each packet acknowledged (RFC 5681 section 3.1, RFC 3465).
    #[default]
    Standard,
    /// HyStart++ (RFC 9406): leaves slow start when the round-trip time of a round has risen. In addition,
    /// conservative slow start begins when an unbroken train of acknowledgements has lasted for half of the
    /// shortest round-trip time, as in HyStart (Ha and Rhee, Hybrid Slow Start for High-Bandwidth and
    /// Long-Distance Networks, 2008): round-trip times tell of a queue one round trip late, when the window
    /// is already twice as large.
    HyStart,
    /// A slow start of your own, made for each connection.
    Custom(fn() -> Box<dyn SlowStartLaw>),
}

const RTT_THRESH_MIN: Dur = Dur::from_millis(4);
const RTT_THRESH_MAX: Dur = Dur::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const RTT_SAMPLES: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;
/// The longest gap between two acknowledgements of a train (HyStart).
const TRAIN_GAP: Dur = Dur::from_millis(2);
/// HyStart++'s state (RFC 9406 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HyStart {
    round_began: Time,
    last_round_min: Dur,
    round_min: Dur,
    samples: u32,
    /// The last acknowledgement of the train that began with the round.
    train_end: Time,
    /// In Conservative Slow Start: its baseline and the rounds it has lasted.
    css: Option<(Dur, u32)>,
}

impl HyStart {
    pub(super) fn new() -> Self {
        HyStart {
            round_began: Time::ZERO,
            last_round_min: Dur::MAX,
            round_min: Dur::MAX,
            samples: 0,
            train_end: Time::ZERO,
            css: None,
        }
    }

    /// Whether the acknowledgements of this round have come without a gap for half of the shortest round-trip
    /// time: the packets in flight then fill half of the path. On paths shorter than the least rise in delay
    /// that counts a train says nothing.
    fn train(&mut self, now: Time, rtt: Option<Rtt>) -> bool {
        if now.since(self.train_end) > TRAIN_GAP {
            return false;
        }
        self.train_end = now;
        let half = |rtt: Rtt| Dur::from_nanos(rtt.min.as_nanos() / 2).max(RTT_THRESH_MIN);
        rtt.is_some_and(|rtt| now.since(self.round_began) >= half(rtt))
    }

    /// Whether slow start is over after this acknowledgement.
    fn done(&mut self, now: Time, acked: &Acked, rtt: Option<Rtt>) -> bool {
        if acked.rtt.is_some()
            && let Some(rtt) = rtt
        {
            self.round_min = self.round_min.min(rtt.latest);
            self.samples += 1;
        }
        if self.samples >= RTT_SAMPLES && self.round_min != Dur::MAX {
            match self.css {
                None if self.last_round_min != Dur::MAX => {
                    let eighth = Dur::from_nanos(self.last_round_min.as_nanos() / MIN_RTT_DIVISOR);
                    let threshold = eighth.clamp(RTT_THRESH_MIN, RTT_THRESH_MAX);
                    if self.round_min >= self.last_round_min + threshold {
                        self.css = Some((self.round_min, 0));
                    }
                }
                Some((baseline, _)) if self.round_min < baseline => self.css = None,
                _ => {}
            }
        }
        if self.train(now, rtt) && self.css.is_none() {
            // No round-trip time is below this baseline: conservative slow start lasts its rounds.
            self.css = Some((Dur::ZERO, 0));
        }
        if acked.sent_at >= self.round_began {
            self.round_began = now;
            self.train_end = now;
            self.last_round_min = self.round_min;
            self.round_min = Dur::MAX;
            self.samples = 0;
            if let Some((_, rounds)) = &mut self.css {
                *rounds += 1;
                return *rounds >= CSS_ROUNDS;
            }
        }
        false
    }
}

impl SlowStartLaw for HyStart {
    fn grow(&mut self, w: f64, credit: f64, acked: &Acked, cx: &Context) -> Growth {
        let done = self.done(cx.now, acked, cx.rtt);
        let divisor = if self.css.is_some() { CSS_GROWTH_DIVISOR } else { 1.0 };
        Growth { window: w + credit / divisor, done }
    }
}

/// A slow start other than the standard one.
#[derive(Clone, Debug)]
pub(super) enum AnySlowStart {
    HyStart(HyStart),
    Custom(Box<dyn SlowStartLaw>),
}

impl AnySlowStart {
    /// The state at the start of a connection; `None` for the standard slow start, which has none.
    pub(super) fn new(kind: SlowStart) -> Option<Box<Self>> {
        match kind {
            SlowStart::Standard => None,
            SlowStart::HyStart => Some(Box::new(AnySlowStart::HyStart(HyStart::new()))),
            SlowStart::Custom(make) => Some(Box::new(AnySlowStart::Custom(make()))),
        }
    }

    pub(super) fn grow(&mut self, w: f64, credit: f64, acked: &Acked, cx: &Context) -> Growth {
        match self {
            AnySlowStart::HyStart(law) => law.grow(w, credit, acked, cx),
            AnySlowStart::Custom(law) => law.grow(w, credit, acked, cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round of 80 ms of acknowledgements `apart`, 100 ms after the packets left: whether conservative slow
    /// start has begun, and when.
    fn css_after(apart: Dur, rtt: Dur) -> Option<Dur> {
        let mut hystart = HyStart::new();
        let began = Time::from_nanos(1_000_000_000);
        let mut now = began;
        while now.since(began) < Dur::from_millis(80) {
            let sent_at = if now == began { now } else { Time::ZERO };
            let mut acked = Acked::new(1, sent_at);
            acked.rtt = Some(rtt);
            let known = Rtt::first(rtt);
            assert!(!hystart.done(now, &acked, Some(known)));
            if hystart.css.is_some() {
                return Some(now.since(began));
            }
            now += apart;
        }
        None
    }

    #[test]
    fn a_train_of_half_a_round_trip_begins_conservative_slow_start() {
        let [long, short] = [Dur::from_millis(100), Dur::from_millis(1)];
        assert_eq!(css_after(Dur::from_millis(1), long), Some(Dur::from_millis(50)));
        // A gap ends the train.
        assert_eq!(css_after(Dur::from_millis(3), long), None);
        // On a short path the train has to last for four milliseconds.
        assert_eq!(css_after(Dur::from_millis(1), short), Some(Dur::from_millis(4)));
    }
}
