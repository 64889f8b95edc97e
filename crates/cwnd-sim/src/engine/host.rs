//! Hosts of TCP senders, which process packets one by one.

use crate::clock::Clock;
use crate::network::Network;
use crate::rng::Rng;

/// A host that processes each packet for a random time, in order. Packets do not queue: the next
/// one is processed at the same time, and leaves the host behind it.
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
