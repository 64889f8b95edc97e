//! The retransmission timeout: that of RFC 6298 ([`Srtt`]), or that of ns-2 in integer multiples of
//! a coarse clock's granularity ([`CoarseSrtt`]). Times are in engine ticks.

use crate::clock::Clock;
use crate::network::{Conventions, Tcp};
use crate::rng::Rng;

/// The back-off factor up to which ns-2 always doubles a timeout.
const MAX_BACKOFF: u64 = 64;

/// A retransmission timeout that is computed from the round-trip times of `E`.
#[derive(Clone)]
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
#[derive(Clone)]
pub(crate) struct Limits {
    granularity: u64,
    min: u64,
    max: u64,
}

/// An estimator of the round-trip time, with its rules for back-off and limits of the timeout.
pub(crate) trait Estimator: Clone + Send + 'static {
    fn new(tcp: &Tcp, clock: Clock, granularity: u64, rng: &mut Rng) -> Self;

    /// Updates the estimate with the round-trip time of a packet sent at `sent_at`. Returns the
    /// timeout before back-off and limits.
    fn sample(&mut self, rtt: u64, sent_at: u64, granularity: u64) -> u64;

    /// Applies back-off and limits to the timeout `base`.
    fn limited(&self, base: u64, backoff: u64, limits: &Limits) -> u64;

    /// Whether a timeout may be doubled. `below_max` tells whether the current one is less than the
    /// maximum.
    fn may_double(&self, _backoff: u64, below_max: bool) -> bool {
        below_max
    }

    /// Adjusts the estimate after a back-off.
    fn backed_off(&mut self, _backoff: u64) {}
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

    /// Raises a timeout that backed off during the handshake, and had no sample, to `least` (RFC
    /// 6298 section 5.7).
    pub(super) fn begin_data(&mut self, least: u64) {
        if self.backoff > 1 && self.base < least {
            (self.base, self.backoff) = (least, 1);
            self.update();
        }
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

impl Rto<AnySrtt> {
    /// The smoothed round-trip time in ticks; `None` before the first sample.
    pub(super) fn srtt(&self) -> Option<u64> {
        match &self.estimator {
            AnySrtt::Rfc(Srtt(estimate)) => estimate.map(|(srtt, _)| srtt),
            AnySrtt::Linux(linux) => (linux.srtt > 0).then_some(linux.srtt >> 3),
        }
    }
}

/// The estimator of RFC 6298 or that of Linux.
#[derive(Clone)]
pub(crate) enum AnySrtt {
    Rfc(Srtt),
    Linux(LinuxSrtt),
}

impl Estimator for AnySrtt {
    fn new(tcp: &Tcp, clock: Clock, granularity: u64, rng: &mut Rng) -> Self {
        if tcp.conventions == Conventions::Linux {
            AnySrtt::Linux(LinuxSrtt::new(clock.ticks(tcp.min_rto.as_nanos())))
        } else {
            AnySrtt::Rfc(Srtt::new(tcp, clock, granularity, rng))
        }
    }

    fn sample(&mut self, rtt: u64, sent_at: u64, granularity: u64) -> u64 {
        match self {
            AnySrtt::Rfc(srtt) => srtt.sample(rtt, sent_at, granularity),
            AnySrtt::Linux(srtt) => srtt.sample(rtt, sent_at).next_multiple_of(granularity),
        }
    }

    fn limited(&self, base: u64, backoff: u64, limits: &Limits) -> u64 {
        match self {
            AnySrtt::Rfc(srtt) => srtt.limited(base, backoff, limits),
            // The minimum is in the variance.
            AnySrtt::Linux(_) => base.saturating_mul(backoff).min(limits.max),
        }
    }
}

/// The estimate of Linux (`tcp_rtt_estimator` in net/ipv4/tcp_input.c). The minimum timeout is one
/// of the variance. A round-trip time below the estimate raises the deviation by an eighth of its
/// excess only. The variance rises at once and falls once per round.
#[derive(Clone, Default)]
pub(crate) struct LinuxSrtt {
    /// SRTT scaled by 8; 0 before the first sample.
    srtt: u64,
    /// The mean deviation scaled by 4, and its maximum in this round.
    mdev: u64,
    mdev_max: u64,
    /// The variance scaled by 4.
    rttvar: u64,
    min: u64,
    round_began: u64,
}

impl LinuxSrtt {
    fn new(min: u64) -> Self {
        LinuxSrtt { min, ..Self::default() }
    }

    /// Updates the estimate with the round-trip time of a packet sent at `sent_at`. Returns the
    /// timeout.
    fn sample(&mut self, rtt: u64, sent_at: u64) -> u64 {
        let now = sent_at + rtt;
        if self.srtt == 0 {
            self.srtt = rtt << 3;
            self.mdev = rtt << 1;
            self.rttvar = self.mdev.max(self.min);
            self.mdev_max = self.rttvar;
            self.round_began = now;
        } else {
            let error = rtt.cast_signed() - (self.srtt >> 3).cast_signed();
            self.srtt = self.srtt.saturating_add_signed(error);
            let mut excess = error.abs() - (self.mdev >> 2).cast_signed();
            if error < 0 && excess > 0 {
                excess >>= 3;
            }
            self.mdev = self.mdev.saturating_add_signed(excess);
            self.mdev_max = self.mdev_max.max(self.mdev);
            self.rttvar = self.rttvar.max(self.mdev_max);
            if sent_at >= self.round_began {
                self.rttvar -= (self.rttvar - self.mdev_max) >> 2;
                self.round_began = now;
                self.mdev_max = self.min;
            }
        }
        self.srtt = self.srtt.max(1);
        (self.srtt >> 3) + self.rttvar
    }
}

/// RFC 6298's SRTT and RTTVAR; `None` before the first sample.
#[derive(Clone)]
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
}

/// ns-2's estimate in steps of a coarse clock.
#[derive(Clone)]
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

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The timeout of Linux is the round-trip time plus at least the minimum.
    #[test]
    fn linux_adds_the_minimum_to_the_round_trip_time() {
        let mut srtt = LinuxSrtt::new(200 * MS);
        assert_eq!(srtt.sample(50 * MS, 0), 250 * MS);
        let mut at = 0;
        for _ in 0..100 {
            at += 50 * MS;
            assert_eq!(srtt.sample(50 * MS, at), 250 * MS);
        }
        // A rise of 350 ms: mdev gains it, less a quarter of mdev.
        let before = srtt.mdev;
        srtt.sample(400 * MS, at + 50 * MS);
        assert_eq!(srtt.mdev, before + 350 * MS - before / 4);
        assert_eq!(srtt.rttvar, srtt.mdev.max(200 * MS));
        // SRTT is now 93.75 ms. A fall to 10 ms counts with an eighth of its excess at most.
        let before = srtt.mdev;
        srtt.sample(10 * MS, at + 60 * MS);
        assert!(srtt.mdev <= before);
    }
}
