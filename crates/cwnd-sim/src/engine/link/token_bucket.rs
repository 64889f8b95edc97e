//! Token buckets: a policer drops packets that do not conform, a shaper delays them.

use crate::cast::whole;
use crate::clock::Clock;
use crate::network;

/// A token bucket, which begins full. Times do not decrease.
#[derive(Clone)]
pub(super) struct TokenBucket {
    /// Bytes per tick.
    rate: f64,
    burst: f64,
    tokens: f64,
    /// Time of the last update.
    at: u64,
}

impl TokenBucket {
    pub(super) fn new(bucket: &network::TokenBucket, clock: Clock) -> Self {
        let burst = bucket.burst as f64;
        TokenBucket { rate: bucket.rate / clock.ticks_in(8.0), burst, tokens: burst, at: 0 }
    }

    /// Bytes of tokens that a full bucket has.
    pub(super) fn burst(&self) -> f64 {
        self.burst
    }

    /// Bytes of tokens after the last update; negative if they are owed.
    pub(super) fn tokens(&self) -> f64 {
        self.tokens
    }

    /// Bytes of tokens `ticks` after there were `tokens`.
    pub(super) fn level(&self, tokens: f64, ticks: u64) -> f64 {
        (tokens + self.arriving(ticks)).min(self.burst)
    }

    /// Bytes of tokens that arrive in `ticks`.
    pub(super) fn arriving(&self, ticks: u64) -> f64 {
        self.rate * ticks as f64
    }

    fn refill(&mut self, now: u64) {
        self.tokens = self.level(self.tokens, now - self.at);
        self.at = now;
    }

    /// Polices a packet: it passes if there are tokens for all of it (RFC 2697 section 3, committed
    /// bucket, colour-blind).
    pub(super) fn conforms(&mut self, now: u64, size: u64) -> bool {
        self.refill(now);
        let conforms = self.tokens >= size as f64;
        if conforms {
            self.tokens -= size as f64;
        }
        conforms
    }

    /// Shapes a packet that starts at `start`: takes its tokens, also those that are not there yet.
    /// Returns the time from which the bucket is out of debt, so that the next packet may start. A
    /// function of start and size, so that departures are known in advance; the cost is a burst
    /// that exceeds the bucket by less than a packet.
    pub(super) fn charge(&mut self, start: u64, size: u64) -> u64 {
        self.refill(start);
        self.tokens -= size as f64;
        if self.tokens >= 0.0 { start } else { start + whole((-self.tokens / self.rate).ceil()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cwnd::Dur;
    use proptest::prelude::*;

    fn bucket(rate: f64, burst: u64) -> (TokenBucket, Clock) {
        let clock = Clock::widest(Dur::from_secs(1000.0));
        (TokenBucket::new(&network::TokenBucket { rate, burst }, clock), clock)
    }

    #[test]
    fn a_full_bucket_passes_its_burst_and_then_the_rate() {
        let (mut policer, clock) = bucket(8e6, 3000);
        assert_eq!([0; 4].map(|_| policer.conforms(0, 1000)), [true, true, true, false]);
        assert!(!policer.conforms(clock.ticks(999_000), 1000));
        assert!(policer.conforms(clock.ticks(1_000_000), 1000));
        let (mut shaper, clock) = bucket(8e6, 2000);
        let ready = [0; 4].map(|_| shaper.charge(0, 1000));
        assert_eq!(ready.map(|at| clock.nanos(at)), [0, 0, 1_000_000, 2_000_000]);
    }

    proptest! {
        /// In every interval at most the burst and the rate times the interval pass; after a shaper
        /// one packet more.
        #[test]
        fn no_interval_carries_more_than_burst_and_rate(
            packets in prop::collection::vec((0u64..2_000_000, 1u64..1500), 1..200),
            burst in 1500u64..10_000,
        ) {
            let rate = 5e6;
            let (mut policer, clock) = bucket(rate, burst);
            let (mut shaper, _) = bucket(rate, burst);
            let (mut now, mut free) = (0, 0);
            let (mut policed, mut shaped) = (Vec::new(), Vec::new());
            for (gap, size) in packets {
                now += clock.ticks(gap);
                if policer.conforms(now, size) {
                    policed.push((now, size));
                }
                let start = free.max(now);
                free = shaper.charge(start, size);
                shaped.push((start, size));
            }
            for (passed, slack) in [(policed, 0.0), (shaped, 1500.0)] {
                for (index, &(first, _)) in passed.iter().enumerate() {
                    let mut bytes = 0;
                    for &(at, size) in &passed[index..] {
                        bytes += size;
                        let most = burst as f64 + slack + rate / 8.0 * clock.seconds(at - first);
                        prop_assert!(bytes as f64 <= most + 1e-3, "{bytes} > {most}");
                    }
                }
            }
        }
    }
}
