//! The retransmission timeout: that of RFC 6298 ([`Srtt`]), or that of ns-2 in integer multiples of a coarse clock's
//! granularity ([`CoarseSrtt`]). Times are in engine ticks.

use crate::engine::clock::Clock;
use crate::network::{Conventions, Tcp};
use crate::rng::Rng;

/// The back-off factor up to which ns-2 always doubles a timeout.
const MAX_BACKOFF: u64 = 64;

/// A retransmission timeout that is computed from the round-trip times of `E`.
pub(crate) struct Rto<E> {
    /// The current timeout, cached.
    timeout: u64,
    backoff: u64,
    /// The timeout before back-off and limits.
    base: u64,
    limits: Limits,
    estimator: E,
}

/// The clock's granularity and the limits of a timeout.
pub(crate) struct Limits {
    granularity: u64,
    min: u64,
    max: u64,
}

/// An estimator of the round-trip time, with its rules for back-off and limits of the timeout.
pub(crate) trait Estimator {
    fn new(tcp: &Tcp, clock: Clock, granularity: u64, rng: &mut Rng) -> Self;

    /// Updates the estimate with the round-trip time of a packet sent at `sent_at`. Returns the timeout before back-off
    /// and limits.
    fn sample(&mut self, rtt: u64, sent_at: u64, granularity: u64) -> u64;

    /// Applies back-off and limits to the timeout `base`.
    fn limited(&self, base: u64, backoff: u64, limits: &Limits) -> u64;

    /// Whether a timeout may be doubled. `below_max` tells whether the current one is less than the maximum.
    fn may_double(&self, backoff: u64, below_max: bool) -> bool;

    /// Adjusts the estimate after a back-off.
    fn backed_off(&mut self, backoff: u64);
}

impl<E: Estimator> Rto<E> {
    pub(super) fn new(tcp: &Tcp, clock: Clock, rng: &mut Rng) -> Self {
        let granularity = clock.ticks(tcp.granularity.as_nanos()).max(1);
        let mut rto = Rto {
            timeout: 0,
            backoff: 1,
            base: clock.ticks(tcp.initial_rto.as_nanos()),
            limits: Limits {
                granularity,
                min: clock.ticks(tcp.min_rto.as_nanos()),
                max: clock.ticks(tcp.max_rto.as_nanos()),
            },
            estimator: E::new(tcp, clock, granularity, rng),
        };
        rto.update();
        rto
    }

    /// Updates the estimator with the round-trip time of a packet sent at `sent_at`.
    pub(super) fn sample(&mut self, now: u64, sent_at: u64) {
        self.base = self.estimator.sample(now - sent_at, sent_at, self.limits.granularity);
        self.update();
    }

    /// The current timeout in ticks.
    #[inline(always)]
    pub(super) fn timeout(&self) -> u64 {
        self.timeout
    }

    fn update(&mut self) {
        self.timeout = self.estimator.limited(self.base, self.backoff, &self.limits);
    }

    /// Doubles the timeout after it expired.
    pub(super) fn back_off(&mut self) {
        if self.estimator.may_double(self.backoff, self.timeout < self.limits.max) {
            self.backoff *= 2;
            self.update();
        }
        self.estimator.backed_off(self.backoff);
    }

    /// Ends the back-off after an acknowledgement of new data.
    #[inline]
    pub(super) fn restart(&mut self) {
        if self.backoff > 1 {
            self.backoff = 1;
            self.update();
        }
    }
}

/// RFC 6298's SRTT and RTTVAR; `None` before the first sample.
pub(crate) struct Srtt(Option<(u64, u64)>);

impl Estimator for Srtt {
    fn new(_: &Tcp, _: Clock, _: u64, _: &mut Rng) -> Self {
        Srtt(None)
    }

    fn sample(&mut self, rtt: u64, _: u64, granularity: u64) -> u64 {
        let (srtt, rttvar) = match self.0 {
            None => (rtt, rtt / 2),
            Some((srtt, rttvar)) => ((7 * srtt + rtt) / 8, (3 * rttvar + srtt.abs_diff(rtt)) / 4),
        };
        self.0 = Some((srtt, rttvar));
        let spread = (4 * rttvar).max(granularity);
        (srtt + spread).next_multiple_of(granularity)
    }

    fn limited(&self, base: u64, backoff: u64, limits: &Limits) -> u64 {
        (base.max(limits.min) * backoff).min(limits.max)
    }

    fn may_double(&self, _: u64, below_max: bool) -> bool {
        below_max
    }

    fn backed_off(&mut self, _: u64) {}
}

/// ns-2's estimate in steps of a coarse clock.
pub(crate) struct CoarseSrtt {
    /// SRTT scaled by 8; 0 before the first sample.
    srtt: i64,
    /// RTTVAR scaled by 4.
    rttvar: i64,
    /// The sender's offset to the clock's steps.
    offset: u64,
    /// Whether the minimum applies before the back-off (ns-2 since 2002) or after.
    min_first: bool,
}

impl Estimator for CoarseSrtt {
    fn new(tcp: &Tcp, clock: Clock, granularity: u64, rng: &mut Rng) -> Self {
        let twelve_seconds = clock.ticks(12_000_000_000);
        CoarseSrtt {
            srtt: 0,
            // RTTVAR is 12 s before the first sample.
            rttvar: (twelve_seconds / granularity).cast_signed() << 2,
            offset: rng.below(granularity),
            min_first: tcp.conventions == Conventions::Ns2,
        }
    }

    fn sample(&mut self, rtt: u64, sent_at: u64, granularity: u64) -> u64 {
        let since_step = (sent_at + self.offset) % granularity;
        let rtt = ((rtt + since_step) / granularity).cast_signed().max(1);
        if self.srtt == 0 {
            self.srtt = rtt << 3;
            self.rttvar = rtt << 1;
        } else {
            let error = rtt - (self.srtt >> 3);
            self.srtt = (self.srtt + error).max(1);
            self.rttvar = (self.rttvar + error.abs() - (self.rttvar >> 2)).max(1);
        }
        (((self.rttvar << 3) + self.srtt) >> 3).cast_unsigned() * granularity
    }

    fn limited(&self, base: u64, backoff: u64, limits: &Limits) -> u64 {
        let timeout = if self.min_first {
            base.max(limits.min) * backoff
        } else {
            (base * backoff).max(limits.min)
        };
        timeout.min(limits.max).max(2 * limits.granularity)
    }

    fn may_double(&self, backoff: u64, below_max: bool) -> bool {
        backoff < MAX_BACKOFF || self.min_first && below_max
    }

    fn backed_off(&mut self, backoff: u64) {
        if backoff > 8 {
            // After several back-offs the next sample replaces the estimate.
            self.rttvar += self.srtt >> 3;
            self.srtt = 0;
        }
    }
}
