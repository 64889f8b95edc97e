//! How a window grows before the first congestion signal, whatever the law.

use crate::event::Acked;
use crate::law::Rtt;
use crate::units::{Dur, Packets, Time};
use alloc::boxed::Box;

/// Which slow start a windowed controller uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowStart {
    /// One packet for each packet acknowledged (RFC 5681 section 3.1, RFC 3465 with L = 2).
    #[default]
    Classic,
    /// HyStart++ (RFC 9406): leaves slow start when the round-trip time of a round has risen.
    HyStart,
}

const RTT_THRESH_MIN: Dur = Dur::from_millis(4);
const RTT_THRESH_MAX: Dur = Dur::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const RTT_SAMPLES: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;
/// RFC 3465: one acknowledgement opens the window by no more than two packets.
const L: f64 = 2.0;

/// HyStart++'s state (RFC 9406 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HyStart {
    round_began: Time,
    last_round_min: Dur,
    round_min: Dur,
    samples: u32,
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
            css: None,
        }
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
        if acked.sent_at >= self.round_began {
            self.round_began = now;
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

/// The window after `acked` in slow start at `w`, and whether slow start is over.
#[inline]
pub(super) fn grow(
    hystart: &mut Option<Box<HyStart>>,
    w: Packets,
    now: Time,
    acked: &Acked,
    rtt: Option<Rtt>,
) -> (Packets, bool) {
    let step = f64::from(acked.credit).min(L);
    match hystart {
        None => (w + step, false),
        Some(state) => {
            let done = state.done(now, acked, rtt);
            let divisor = if state.css.is_some() { CSS_GROWTH_DIVISOR } else { 1.0 };
            (w + step / divisor, done)
        }
    }
}
