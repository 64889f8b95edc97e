//! The transmitter of a link.

use super::AFTER_END;
use super::profile::Rate;
use super::propagation::Propagation;
use super::token_bucket::TokenBucket;
use crate::cast::whole;
use crate::engine::clock::Clock;
use crate::engine::ring::Ring;
use crate::network;

/// Fractional bits of the ticks per byte.
const FRACTION: u32 = 8;

/// The transmitter at a constant rate.
#[derive(Clone, Copy)]
pub(super) struct Service {
    /// Transmission time in 2^-8 ticks per byte; 0 for an infinite rate.
    per_byte: u64,
}

impl Service {
    pub(super) fn new(rate: Option<f64>, clock: Clock) -> Self {
        let byte = clock.ticks_in(8.0) * f64::from(1u32 << FRACTION);
        Service { per_byte: rate.map_or(0, |rate| whole((byte / rate).round())) }
    }

    /// Transmission time in ticks.
    #[inline(always)]
    pub(super) fn time(self, size: u64) -> u64 {
        (size * self.per_byte) >> FRACTION
    }

    /// Whether the rate is finite.
    #[inline(always)]
    pub(super) fn is_finite(self) -> bool {
        self.per_byte > 0
    }

    /// Whether every packet takes time.
    pub(super) fn takes_time(self) -> bool {
        self.per_byte >> FRACTION > 0
    }
}

/// A packet that a link transmits.
pub(super) struct Transmission {
    /// Time from which the next packet may start.
    pub free: u64,
    /// Time of arrival at the far end.
    pub arrives: u64,
}

/// A transmitter and a propagation delay of which one varies or depends on the packet.
pub(super) struct Varying {
    rate: Option<Rate>,
    shaper: Option<TokenBucket>,
    propagation: Propagation,
    /// Departure of the last packet.
    pub departed: u64,
    /// Whether the last packet takes longer, so that others may overtake it.
    pub late: bool,
    /// Arrival times at the queue of the packets that wait, if the rate varies.
    arrivals: Ring<u64>,
}

impl Varying {
    /// Returns the transmitter and the propagation delay of link number `index`; `None` if both are constant.
    pub(super) fn new(
        link: &network::Link,
        clock: Clock,
        index: usize,
        seed: u64,
    ) -> Option<Box<Self>> {
        let impairments = link.impairments.as_deref()?;
        let rate = Rate::new(link, impairments, clock, (index, seed));
        let shaper = impairments.shaper.map(|bucket| TokenBucket::new(&bucket, clock));
        let propagation = Propagation::new(link, impairments, clock, (index, seed));
        (rate.is_some() || shaper.is_some() || !propagation.is_constant()).then(|| {
            let arrivals = Ring::new();
            Box::new(Varying { rate, shaper, propagation, departed: 0, late: false, arrivals })
        })
    }

    /// Whether packets queue.
    pub(super) fn queues(&self) -> bool {
        self.rate.is_some() || self.shaper.is_some()
    }

    /// Records the arrival at `now` of the last of `waiting` packets in the queue.
    pub(super) fn queue(&mut self, now: u64, waiting: usize) {
        self.arrivals.push(now);
        while self.arrivals.len() > waiting {
            self.arrivals.pop();
        }
    }

    /// Returns the arrival times of the last `waiting` packets that queued, in their order.
    pub(super) fn arrivals(&self, waiting: usize) -> impl Iterator<Item = u64> + '_ {
        let len = self.arrivals.len();
        (len.saturating_sub(waiting)..len).map(|index| self.arrivals.get(index))
    }

    /// Transmits a packet from `start` on. Starts do not decrease.
    pub(super) fn transmit(
        &mut self,
        service: Service,
        start: u64,
        size: u64,
        flags: u16,
    ) -> Transmission {
        let mut free = match &mut self.rate {
            Some(rate) => rate.departure(start, size).min(AFTER_END),
            None if self.shaper.is_some() => start + service.time(size).max(1),
            None => start + service.time(size),
        };
        self.departed = free;
        if let Some(shaper) = &mut self.shaper {
            free = shaper.charge(start, size).max(free).min(AFTER_END);
        }
        let (arrives, late) = self.propagation.arrival(self.departed, flags);
        self.late = late;
        Transmission { free, arrives }
    }
}
