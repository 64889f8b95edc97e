//! The round-trip time of a connection (RFC 6298 section 2, without the timer).

use crate::law::Rtt;
use crate::units::Dur;

/// What is known after a sample.
///
/// By value: what is read back as a whole just after it was written in parts keeps a processor waiting.
#[inline]
pub(super) fn after(known: Option<Rtt>, sample: Dur) -> Rtt {
    match known {
        None => Rtt { latest: sample, smoothed: sample, min: sample },
        Some(old) => {
            // Wraps at 83 years.
            let sum = old.smoothed.as_nanos().wrapping_mul(7).wrapping_add(sample.as_nanos());
            Rtt { latest: sample, smoothed: Dur::from_nanos(sum / 8), min: old.min.min(sample) }
        }
    }
}
