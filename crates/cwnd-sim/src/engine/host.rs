//! Hosts of TCP senders, which process packets one by one.

use crate::clock::Clock;
use crate::network::Network;
use crate::rng::Rng;

/// A host that processes each packet for a random time, in order. Packets do not queue: the next
/// one is processed at the same time, and leaves the host behind it.
#[derive(Clone)]
pub(super) struct Host {
    rng: Rng,
    /// The largest processing time.
    most: u64,
    /// Arrival of the last packet at the host.
    received: u64,
    /// Its arrival at the first link.
    last: u64,
}

/// A processing time in nanoseconds that every packet takes: a link without any delay would not
/// permit lookahead.
const LEAST: u64 = 1;

impl Host {
    /// Number of hosts of a network.
    pub(super) fn count(network: &Network) -> usize {
        network.flows.iter().filter(|flow| network.processing_time(flow).is_some()).count()
    }

    /// Returns the hosts of a network, and for each flow the number of its host: behind those of
    /// the links.
    pub(super) fn all(
        network: &Network,
        clock: Clock,
        seed: u64,
    ) -> (Vec<Host>, Vec<Option<usize>>) {
        let mut hosts = Vec::new();
        let numbers = network.flows.iter().map(|flow| {
            let number = network.links.len() + hosts.len();
            let most = network.processing_time(flow)?;
            let rng = Rng::new(seed, "jitter", number as u64);
            hosts.push(Host { rng, most: clock.ticks(most.as_nanos()), received: 0, last: 0 });
            Some(number)
        });
        let numbers = numbers.collect();
        (hosts, numbers)
    }

    /// Time of the last processing that is determined.
    pub(super) fn reach(&self) -> u64 {
        self.last
    }

    /// Receives a packet. Returns the time at which it arrives at the first link.
    #[inline(always)]
    pub(super) fn receive(&mut self, now: u64, clock: Clock) -> u64 {
        self.received = self.received.max(now);
        let arrives = self.received + clock.ticks(LEAST) + self.rng.below(self.most + 1);
        self.last = self.last.max(arrives);
        self.last
    }

    /// The earliest time at which a packet received at `from` or later arrives at the first link.
    pub(super) fn earliest_arrival(&self, from: u64, clock: Clock) -> u64 {
        self.received.max(from) + clock.ticks(LEAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::link::Link;
    use crate::engine::observation::Observations;
    use crate::network::{self, Impairments, Jitter, Queue};
    use crate::packet::Packet;
    use crate::rng::Rng;
    use cwnd::Dur;
    use proptest::prelude::*;

    proptest! {
        /// A host is a link without a transmission time and with a random delay.
        #[test]
        fn a_host_has_the_arrivals_of_a_link_with_jitter(
            most in 1u64..1_000_000, gaps in prop::collection::vec(0u64..1_000_000, 1..200),
        ) {
            let clock = Clock::widest(Dur::from_secs(100.0));
            let jitter = Some(Jitter::Uniform(Dur::from_nanos(most)));
            let delay = Dur::from_nanos(LEAST);
            let mut spec = network::Link::new("", [0, 1], None, delay, Queue::INFINITE);
            spec.impairments = Some(Impairments { jitter, ..Impairments::default() }.into());
            let mut link = Link::new(&spec, clock, Observations::none(), 7, 1);
            let rng = Rng::new(1, "jitter", 7);
            let mut host = Host { rng, most: clock.ticks(most), received: 0, last: 0 };
            let mut now = 0;
            for gap in gaps {
                now += clock.ticks(gap);
                let earliest = host.earliest_arrival(now, clock);
                prop_assert_eq!(earliest, link.earliest_arrival(now));
                let arrives = host.receive(now, clock);
                prop_assert_eq!((arrives, 0), link.receive(now, Packet::default()));
                prop_assert!(arrives >= earliest);
            }
        }
    }
}
