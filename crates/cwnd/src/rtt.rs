//! Round-trip time estimation.

use crate::units::Dur;

/// The round-trip time of a connection (RFC 6298 section 2, without the retransmission timer).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rtt {
    /// The latest sample.
    pub latest: Dur,
    /// The smoothed round-trip time, with gain 1/8 (SRTT).
    pub smoothed: Dur,
    /// The smallest sample of a packet with data; [`Dur::MAX`] if that of the handshake is the only
    /// one.
    pub min: Dur,
}

impl Rtt {
    /// The estimate after the first sample.
    #[inline]
    pub const fn first(sample: Dur) -> Self {
        Rtt { latest: sample, smoothed: sample, min: sample }
    }

    /// The estimate after the handshake, whose segments have no data.
    #[inline]
    pub const fn handshake(sample: Dur) -> Self {
        Rtt { min: Dur::MAX, ..Rtt::first(sample) }
    }

    /// The estimate after another sample.
    #[inline]
    #[must_use]
    pub fn after(self, sample: Dur) -> Self {
        // Wraps at 83 years.
        let sum = self.smoothed.as_nanos().wrapping_mul(7).wrapping_add(sample.as_nanos());
        Rtt { latest: sample, smoothed: Dur::from_nanos(sum / 8), min: self.min.min(sample) }
    }

    /// The estimate `known` after `sample`.
    ///
    /// By value: a wide load just after narrow stores would stall (store forwarding fails).
    #[inline]
    pub(crate) fn update(known: Option<Rtt>, sample: Dur) -> Self {
        match known {
            None => Rtt::first(sample),
            Some(old) => old.after(sample),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smoothed_value_moves_by_an_eighth() {
        let rtt = Rtt::first(Dur::from_millis(80)).after(Dur::from_millis(160));
        assert_eq!(rtt.smoothed, Dur::from_millis(90));
        assert_eq!((rtt.latest, rtt.min), (Dur::from_millis(160), Dur::from_millis(80)));
    }

    #[test]
    fn a_handshake_counts_for_the_smoothed_value_alone() {
        let rtt = Rtt::handshake(Dur::from_millis(80)).after(Dur::from_millis(160));
        assert_eq!(rtt.smoothed, Dur::from_millis(90));
        assert_eq!(rtt.min, Dur::from_millis(160));
    }
}
