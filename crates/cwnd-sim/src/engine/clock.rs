//! The engine's own time: ticks of a power of two to the nanosecond, as fine as event keys allow.
//!
//! Transmission times are whole numbers of ticks. Where a network repeats itself exactly, packets
//! then meet exactly at a queue, and the rule for simultaneous events (an arrival finds the queue as
//! it was before the departure) decides, not a rounding.

use cwnd::{Dur, Time};

/// The finest tick is 2^-10 ns, just under a picosecond.
const FINEST: u32 = 10;

/// Converts between ticks and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    shift: u32,
}

impl Clock {
    /// The finest clock whose times up to `duration` fit in `bits`; `None` if not even nanoseconds
    /// do.
    pub(crate) fn new(duration: Dur, bits: u32) -> Option<Self> {
        let needed = 64 - duration.as_nanos().leading_zeros();
        // One bit to spare: timers are set past the end.
        let spare = bits.checked_sub(needed + 1)?;
        Some(Clock { shift: spare.min(FINEST) })
    }

    /// The finest clock for times up to `duration`, where they need not share 64 bits with anything.
    pub(crate) const fn widest(duration: Dur) -> Self {
        let spare = duration.as_nanos().leading_zeros() - 1;
        Clock { shift: if spare < FINEST { spare } else { FINEST } }
    }

    /// Ticks in a span, or since the start; far times saturate.
    #[inline(always)]
    pub(crate) fn ticks(self, nanos: u64) -> u64 {
        if nanos > u64::MAX >> self.shift { u64::MAX } else { nanos << self.shift }
    }

    /// Ticks in a span given in seconds.
    pub(crate) fn ticks_in(self, seconds: f64) -> f64 {
        seconds * 1e9 * f64::from(1u32 << self.shift)
    }

    /// Whole nanoseconds.
    #[inline(always)]
    pub(crate) fn nanos(self, ticks: u64) -> u64 {
        ticks >> self.shift
    }

    /// Seconds.
    pub(crate) fn seconds(self, ticks: u64) -> f64 {
        ticks as f64 / self.ticks_in(1.0)
    }

    /// Seconds of a sum of spans.
    pub(crate) fn seconds_in(self, ticks: u128) -> f64 {
        ticks as f64 / self.ticks_in(1.0)
    }

    #[inline(always)]
    pub(crate) fn time(self, ticks: u64) -> Time {
        Time::from_nanos(self.nanos(ticks))
    }

    #[inline(always)]
    pub(crate) fn dur(self, ticks: u64) -> Dur {
        Dur::from_nanos(self.nanos(ticks))
    }
}
