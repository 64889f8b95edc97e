//! The transmitter of a link whose rate or delay varies.

use super::constant::{Left, Service};
use super::profile::{Planned, Rate};
use super::propagation::Propagation;
use super::token_bucket::TokenBucket;
use crate::clock::Clock;
use crate::engine::ring::Ring;
use crate::engine::schedule::AFTER_END;
use crate::network;

/// A packet that a link transmits.
pub(super) struct Transmission {
    /// Time from which the next packet may start.
    pub free: u64,
    /// Time of arrival at the far end.
    pub arrives: u64,
}

/// A transmitter and a propagation delay of which one varies or depends on the packet.
#[derive(Clone)]
pub(super) struct Varying {
    rate: Option<Rate>,
    shaper: Option<TokenBucket>,
    propagation: Propagation,
    /// Departure of the last packet.
    pub departed: u64,
    /// Whether the last packet takes longer, so that others may overtake it.
    pub late: bool,
    /// The packets that wait and the one before them, if packets queue.
    planned: Ring<Planned>,
    /// The rate from the beginning of the run.
    whole: Option<Rate>,
}

impl Varying {
    /// Returns the transmitter and the propagation delay of link number `index`; `None` if both are
    /// constant.
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
            let (planned, whole) = (Ring::default(), rate.clone());
            Box::new(Varying {
                rate,
                shaper,
                propagation,
                departed: 0,
                late: false,
                planned,
                whole,
            })
        })
    }

    /// The latest time at which a packet whose departure is known may arrive at the far end.
    pub(super) fn reach(&self) -> u64 {
        self.departed.max(self.propagation.reach())
    }

    /// Takes over the state of the link before its rate or its delay changes. Its transmitter was
    /// constant if there is no `before`: then its last packet departs at `busy`, behind the
    /// `waiting` ones with their starts and sizes.
    pub(super) fn resume(
        &mut self,
        before: Option<Varying>,
        busy: u64,
        waiting: impl Iterator<Item = (u64, u64)>,
    ) {
        let queued = before.as_ref().is_some_and(Varying::queues);
        self.departed = busy;
        if let Some(before) = before {
            (self.departed, self.late) = (before.departed, before.late);
            (self.shaper, self.planned) = (before.shaper, before.planned);
            self.propagation.resume(before.propagation);
            if !self.rate.as_ref().is_some_and(Rate::is_stepped) {
                (self.rate, self.whole) = (before.rate, before.whole);
            }
        }
        if self.queues() && !queued {
            // The packets depart before the change: their arrival is not read any more.
            let mut last = Planned { departs: busy, ..Planned::default() };
            for (start, size) in waiting {
                self.planned.push(Planned { departs: start, ..last });
                last = Planned { start, size, departs: busy, ..Planned::default() };
            }
            self.planned.push(last);
        }
    }

    /// Whether packets queue.
    pub(super) fn queues(&self) -> bool {
        self.rate.is_some() || self.shaper.is_some()
    }

    /// Returns the arrival times of the last `waiting` packets, in their order.
    pub(super) fn arrivals(&self, waiting: usize) -> impl Iterator<Item = u64> + '_ {
        let len = self.planned.len();
        (len.saturating_sub(waiting)..len).map(|index| self.planned.get(index).arrived)
    }

    /// What is left at `now` of the packet in transmission, behind which `waiting` packets wait.
    pub(super) fn left(&self, service: Service, now: u64, waiting: usize) -> Left {
        let before = self.planned.len().checked_sub(waiting + 1);
        let last = before.map_or(Planned::default(), |index| self.planned.get(index));
        let mut left = service.left(now, last.departs);
        if let Some(mut rate) = self.whole.clone() {
            left.bytes = rate.left(now, &last);
        }
        if let Some(shaper) = &self.shaper {
            left.tokens = match before {
                Some(_) => shaper.level(last.tokens, now - last.start),
                None => shaper.burst(),
            };
        }
        left
    }

    /// The bytes for which a shaper has tokens in `ticks` between two ends of a window: those in
    /// the bucket, those that arrive, and those that it lends. Infinite without a shaper.
    pub(super) fn tokens(&self, ticks: u64, begin: Left, end: Left) -> f64 {
        self.shaper.as_ref().map_or(f64::INFINITY, |shaper| {
            let lent = (-end.tokens - end.bytes).max(0.0);
            begin.tokens + begin.bytes + shaper.arriving(ticks) + lent
        })
    }

    /// Transmits a packet that arrived at `arrived` from `start` on. Starts do not decrease.
    /// `waiting` packets wait with it.
    pub(super) fn transmit(
        &mut self,
        service: Service,
        [arrived, start]: [u64; 2],
        waiting: usize,
        (size, flags): (u64, u16),
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
        if self.queues() {
            let last = self.rate.as_ref().map_or(0, Rate::last);
            let tokens = self.shaper.as_ref().map_or(0.0, TokenBucket::tokens);
            let departs = self.departed;
            self.planned.push(Planned { arrived, start, departs, size, last, tokens });
            while self.planned.len() > waiting + 1 {
                self.planned.pop();
            }
        }
        let (arrives, late) = self.propagation.arrival(self.departed, flags);
        self.late = late;
        Transmission { free, arrives }
    }
}
