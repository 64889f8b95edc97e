//! Times and acknowledgements for the unit tests.

use crate::event::Acked;
use crate::units::{Dur, Time};

pub(crate) const fn ms(count: u64) -> Dur {
    Dur::from_millis(count)
}

/// The time `count` milliseconds after the start.
pub(crate) fn at_ms(count: u64) -> Time {
    Time::ZERO + ms(count)
}

/// An acknowledgement at `now`, with a sample of the round-trip time.
pub(crate) fn sampled(packets: u32, now: Time, rtt: Dur) -> Acked {
    Acked { rtt: Some(rtt), ..Acked::new(packets, now - rtt) }
}
