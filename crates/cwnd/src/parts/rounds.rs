//! Packet-timed round trips.

use crate::delivery::RateSample;

/// Counts packet-timed round trips by the delivered count (draft-ietf-ccwg-bbr section 5.5.1,
/// BBR.round_count): a round ends when a packet sent after its beginning is acknowledged.
///
/// ```
/// use cwnd::delivery::RateSample;
/// use cwnd::parts::RoundCounter;
///
/// let sample = |prior_delivered, delivered| {
///     let mut sample = RateSample::new();
///     (sample.prior_delivered, sample.delivered) = (prior_delivered, delivered);
///     sample
/// };
/// let mut rounds = RoundCounter::default();
/// assert!(rounds.acked(&sample(0, 1)));
/// // These packets were sent before the first acknowledgement.
/// assert!(!rounds.acked(&sample(0, 2)));
/// assert!(rounds.acked(&sample(1, 10)));
/// assert_eq!(rounds.count(), 2);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundCounter {
    /// The delivered count that a packet of the next round has when it is sent.
    next: u64,
    count: u64,
}

impl RoundCounter {
    /// Counts an acknowledgement; returns whether it begins a round.
    pub fn acked(&mut self, sample: &RateSample) -> bool {
        let begins = sample.prior_delivered >= self.next;
        if begins {
            self.next = sample.prior_delivered.saturating_add(sample.delivered);
            self.count += 1;
        }
        begins
    }

    /// Rounds begun so far.
    pub fn count(&self) -> u64 {
        self.count
    }
}
