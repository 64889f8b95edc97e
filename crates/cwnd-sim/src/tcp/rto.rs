//! The retransmission timeout of RFC 6298, or that of ns-2 in integer multiples of a coarse clock's granularity. Times
//! are in engine ticks.

use crate::engine::clock::Clock;
use crate::network::{Conventions, Tcp};
use crate::rng::Rng;

/// The largest factor by which a timeout is backed off.
const MAX_BACKOFF: u64 = 64;

pub(crate) struct Rto {
    granularity: u64,
    min: u64,
    max: u64,
    /// The timeout before back-off and limits.
    base: u64,
    backoff: u64,
    estimator: Estimator,
    /// The current timeout, cached.
    timeout: u64,
}

enum Estimator {
    /// SRTT and RTTVAR; `None` before the first sample.
    Rfc(Option<(u64, u64)>),
    /// ns-2: SRTT scaled by 8 and RTTVAR scaled by 4, in clock steps; the sender's offset to the steps; and whether the
    /// minimum applies before the back-off (ns-2 since 2002) or after.
    Steps { srtt: i64, rttvar: i64, offset: u64, min_first: bool },
}

impl Rto {
    pub(super) fn new(tcp: &Tcp, clock: Clock, rng: &mut Rng) -> Self {
        let granularity = clock.ticks(tcp.granularity.as_nanos()).max(1);
        let twelve_seconds = clock.ticks(12_000_000_000);
        let steps = |min_first| Estimator::Steps {
            srtt: 0,
            // RTTVAR is 12 s before the first sample.
            rttvar: (twelve_seconds / granularity).cast_signed() << 2,
            offset: 0,
            min_first,
        };
        let mut estimator = match tcp.conventions {
            Conventions::Rfc => Estimator::Rfc(None),
            Conventions::Ns2 => steps(true),
            Conventions::Ns2001 => steps(false),
        };
        if let Estimator::Steps { offset, .. } = &mut estimator {
            *offset = rng.below(granularity);
        }
        let mut rto = Rto {
            granularity,
            min: clock.ticks(tcp.min_rto.as_nanos()),
            max: clock.ticks(tcp.max_rto.as_nanos()),
            base: clock.ticks(tcp.initial_rto.as_nanos()),
            backoff: 1,
            estimator,
            timeout: 0,
        };
        rto.update();
        rto
    }

    /// Updates the estimator with the round-trip time of a packet sent at `sent_at`.
    pub(super) fn sample(&mut self, now: u64, sent_at: u64) {
        let rtt = now - sent_at;
        match &mut self.estimator {
            Estimator::Rfc(state) => {
                let (srtt, rttvar) = match *state {
                    None => (rtt, rtt / 2),
                    Some((srtt, rttvar)) => {
                        ((7 * srtt + rtt) / 8, (3 * rttvar + srtt.abs_diff(rtt)) / 4)
                    }
                };
                *state = Some((srtt, rttvar));
                let spread = (4 * rttvar).max(self.granularity);
                self.base = (srtt + spread).next_multiple_of(self.granularity);
            }
            Estimator::Steps { srtt, rttvar, offset, .. } => {
                let since_step = (sent_at + *offset) % self.granularity;
                let rtt = ((rtt + since_step) / self.granularity).cast_signed().max(1);
                if *srtt == 0 {
                    *srtt = rtt << 3;
                    *rttvar = rtt << 1;
                } else {
                    let error = rtt - (*srtt >> 3);
                    *srtt = (*srtt + error).max(1);
                    *rttvar = (*rttvar + error.abs() - (*rttvar >> 2)).max(1);
                }
                self.base = (((*rttvar << 3) + *srtt) >> 3).cast_unsigned() * self.granularity;
            }
        }
        self.update();
    }

    /// The current timeout in ticks.
    #[inline(always)]
    pub(super) fn timeout(&self) -> u64 {
        self.timeout
    }

    fn update(&mut self) {
        self.timeout = match self.estimator {
            Estimator::Rfc(_) => (self.base.max(self.min) * self.backoff).min(self.max),
            Estimator::Steps { min_first, .. } => {
                let timeout = if min_first {
                    self.base.max(self.min) * self.backoff
                } else {
                    (self.base * self.backoff).max(self.min)
                };
                timeout.min(self.max).max(2 * self.granularity)
            }
        };
    }

    /// Doubles the timeout after it expired.
    pub(super) fn back_off(&mut self) {
        let room = match self.estimator {
            Estimator::Rfc(_) => self.timeout() < self.max,
            Estimator::Steps { min_first, .. } => {
                self.backoff < MAX_BACKOFF || min_first && self.timeout() < self.max
            }
        };
        if room {
            self.backoff *= 2;
            self.update();
        }
        if let Estimator::Steps { srtt, rttvar, .. } = &mut self.estimator
            && self.backoff > 8
        {
            // After several back-offs the next sample replaces the estimate.
            *rttvar += *srtt >> 3;
            *srtt = 0;
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
