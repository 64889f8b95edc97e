//! The round-trip time of a connection (RFC 6298 section 2, without the timer).

use crate::law::Rtt;
use crate::units::Dur;

/// Folds a sample into what is known.
pub(super) fn update(rtt: &mut Option<Rtt>, sample: Dur) {
    *rtt = Some(match *rtt {
        None => Rtt { latest: sample, smoothed: sample, min: sample },
        Some(old) => {
            // Wraps at 83 years.
            let sum = old.smoothed.as_nanos().wrapping_mul(7).wrapping_add(sample.as_nanos());
            Rtt { latest: sample, smoothed: Dur::from_nanos(sum / 8), min: old.min.min(sample) }
        }
    });
}
