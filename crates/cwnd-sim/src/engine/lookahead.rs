//! Conservative lookahead (Chandy and Misra 1979): until when can nothing else reach a node?
//!
//! A node is a link, a host, or an end of a flow. It may process a packet ahead of the clock if
//! nothing can reach it earlier. Its results are then those of a run in the order of time, without
//! the event. Everything else is scheduled. There are three cases:
//!
//! * A host, and a link that a single link, host or endpoint feeds, receives its packets in order:
//!   nothing else can ever reach it.
//! * An endpoint reacts to packets, which one link brings in order, and to its own timers: nothing
//!   else reaches it before its next timer.
//! * A sender with a timer for each packet: nothing else reaches it before a packet that it has
//!   sent, or its receiver's timer, could be answered over the whole return route.
//!
//! The order of simultaneous events must not change. A node may therefore be ahead only if what it
//! sends arrives later than what it received: packets that meet at a shared link are then in the
//! event queue before the clock reaches their time, as without lookahead. Links with neither a
//! delay nor a transmission time, and endpoints whose first link is one, process events only.

use super::link::Link;
use super::net::{LIFE, Net};
use super::schedule::NONE;
use crate::network::Network;
use crate::packet::{Packet, SINK, SOURCE};

/// The links that are fed by a single link, host or endpoint.
pub(crate) struct SingleFeeder(Vec<bool>);

impl SingleFeeder {
    pub(crate) fn of(network: &Network) -> Self {
        #[derive(Clone, Copy, PartialEq)]
        enum Feeder {
            None,
            Link(usize),
            /// An end of a flow.
            Endpoint,
            Several,
        }
        let mut feeders = vec![Feeder::None; network.links.len()];
        for path in network.flows.iter().flat_map(|flow| [&flow.path, &flow.back]) {
            let mut previous = None;
            for &link in path.iter() {
                let feeder = previous.map_or(Feeder::Endpoint, Feeder::Link);
                // Packets of a link that reorders do not come in order.
                if previous.is_some_and(|previous: usize| network.links[previous].reorders()) {
                    feeders[link] = Feeder::Several;
                }
                feeders[link] = match feeders[link] {
                    Feeder::None => feeder,
                    // Every end of a flow is a feeder of its own.
                    known if known == feeder && feeder != Feeder::Endpoint => known,
                    _ => Feeder::Several,
                };
                previous = Some(link);
            }
        }
        SingleFeeder(feeders.iter().map(|&feeder| feeder != Feeder::Several).collect())
    }

    /// Whether `link` may receive packets ahead of the clock.
    pub(crate) fn permits(&self, link: usize, state: &Link) -> bool {
        self.0[link] && !state.is_scheduled() && !state.is_instantaneous()
    }
}

impl Net {
    /// Time until which the end of `flow` that `packet` reaches can process it ahead of the clock:
    /// its next timer. A packet at this time precedes the timer.
    #[inline(always)]
    pub(super) fn safe_until(&self, flow: u32, packet: Packet) -> u64 {
        let timers = &self.timers[flow as usize];
        timers[packet.side()].first().min(timers[LIFE].first())
    }

    /// Time before which nothing but its own timer can reach the source of `flow`, whatever happens
    /// from `now` on. `hops` are the first hops of both directions.
    pub(crate) fn source_safe_until(&self, now: u64, flow: usize, hops: [u32; 2]) -> u64 {
        let pass = |from: u64, hop| {
            let links = self.routes.links_from(hop);
            links.fold(now.max(from), |from, link| self.earliest_arrival(link, from))
        };
        let timers = &self.timers[flow];
        // The receiver answers packets, also one that has reached it already, and its own timer.
        let delivered = self.pending_delivery().min(pass(now, hops[0]));
        let answered = pass(delivered.min(timers[SINK].first()), hops[1]);
        answered.min(self.source_undisturbed_until(flow))
    }

    /// The earliest time at which an event can bring a packet to the far end of a link or a host,
    /// if it receives none before `from`.
    fn earliest_arrival(&self, number: usize, from: u64) -> u64 {
        let (received, late) = match self.links.get(number) {
            Some(link) => (link.earliest_arrival(from), self.in_flight.first_arrival(link.late)),
            None => {
                (self.hosts[number - self.links.len()].earliest_arrival(from, self.clock), NONE)
            }
        };
        received.min(late).min(self.in_flight.first_arrival(number))
    }

    /// Time before which the source of `flow` is neither stopped nor observed.
    pub(crate) fn source_undisturbed_until(&self, flow: usize) -> u64 {
        self.timers[flow][LIFE].first().min(self.due[flow][SOURCE]).min(self.observations.end())
    }
}
