//! The engine's clock. A nanosecond is a power of two of ticks, as many as event keys permit.
//!
//! Transmission times are whole numbers of ticks. In a periodic network, an arrival and a departure
//! can therefore be exactly simultaneous. The rule for simultaneous events (an arrival precedes a
//! departure) then decides, not a rounding error.

use cwnd::{Dur, Time};

/// The finest tick is 2^-10 ns, just under a picosecond.
const FINEST: u32 = 10;

/// Converts between ticks and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    shift: u32,
}

impl Clock {
    /// Returns the finest clock whose times up to `duration` fit in `bits`; `None` if nanoseconds
    /// do not fit.
    pub(crate) fn new(duration: Dur, bits: u32) -> Option<Self> {
        let needed = 64 - duration.as_nanos().leading_zeros();
        // One spare bit: timers may expire after the end.
        let spare = bits.checked_sub(needed + 1)?;
        Some(Clock { shift: spare.min(FINEST) })
    }

    /// Returns the finest clock for times up to `duration` that use all 64 bits.
    pub(crate) const fn widest(duration: Dur) -> Self {
        let spare = duration.as_nanos().leading_zeros() - 1;
        Clock { shift: if spare < FINEST { spare } else { FINEST } }
    }

    /// Converts nanoseconds to ticks, saturating.
    #[inline(always)]
    pub(crate) fn ticks(self, nanos: u64) -> u64 {
        if nanos > u64::MAX >> self.shift { u64::MAX } else { nanos << self.shift }
    }

    /// Converts seconds to ticks with a fraction.
    pub(crate) fn ticks_in(self, seconds: f64) -> f64 {
        seconds * 1e9 * f64::from(1u32 << self.shift)
    }

    /// Converts ticks to nanoseconds, rounding down.
    #[inline(always)]
    pub(crate) fn nanos(self, ticks: u64) -> u64 {
        ticks >> self.shift
    }

    /// Converts ticks to seconds.
    pub(crate) fn seconds(self, ticks: u64) -> f64 {
        ticks as f64 / self.ticks_in(1.0)
    }

    /// Converts a sum of durations to seconds.
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
