//! Limits of the answers to datagrams that belong to no connection.

use cwnd::{Dur, Time};

/// The burst of a token bucket in answers, and the time in which one answer is refilled.
const BURST: u64 = 1024;
const REFILL: Dur = Dur::from_nanos(50_000);

/// A token bucket of answers. It bounds the cost of a flood of requests.
#[derive(Debug, Default)]
pub(super) struct TokenBucket {
    /// When the bucket is full again. At most a burst and one price later than now.
    full_at: Time,
}

impl TokenBucket {
    /// Takes the price of `answers` from the bucket. Returns false if the bucket is empty.
    pub(super) fn take(&mut self, now: Time, answers: u64) -> bool {
        let time = |answers| Dur::from_nanos(answers * REFILL.as_nanos());
        let available = self.full_at <= now + time(BURST);
        if available {
            self.full_at = self.full_at.max(now) + time(answers);
        }
        available
    }
}

/// The rate limits of a port.
#[derive(Debug, Default)]
pub(super) struct RateLimits {
    /// The listener's answers to clients without a connection.
    pub handshakes: TokenBucket,
    /// Resets sent and resets checked.
    pub resets: TokenBucket,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn a_bucket_allows_a_burst_and_then_its_rate() {
        let mut bucket = TokenBucket::default();
        let burst = (0..5_000).filter(|_| bucket.take(at(1_000), 1)).count() as u64;
        assert!(burst.abs_diff(BURST) <= 1, "{burst}");
        let later = (0..5_000).filter(|_| bucket.take(at(1_010), 1)).count() as u64;
        assert!(later.abs_diff(10_000_000 / REFILL.as_nanos()) <= 1, "{later}");
    }
}
