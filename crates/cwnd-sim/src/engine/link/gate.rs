//! What drops packets before the queue: a policer, and thinning of acknowledgements.

use super::token_bucket::TokenBucket;
use crate::clock::Clock;
use crate::network;
use crate::packet::{Packet, flags};
use std::collections::HashMap;

/// Properties of an acknowledgement that a cumulative one behind it does not replace.
const UNIQUE: u16 = flags::SYN | flags::NAK | flags::REPORT | flags::CONTROL | flags::ECE;

#[derive(Clone)]
pub(super) struct Gate {
    policer: Option<TokenBucket>,
    /// Time after an acknowledgement in which those of the same flow are dropped; 0 for none.
    thinning: u64,
    /// For each route the time from which its acknowledgements pass.
    passes: HashMap<u32, u64>,
}

impl Gate {
    /// Returns the gate of a link; `None` if every packet passes.
    pub(super) fn new(link: &network::Link, clock: Clock) -> Option<Box<Self>> {
        let impairments = link.impairments.as_deref()?;
        let policer = impairments.policer.map(|bucket| TokenBucket::new(&bucket, clock));
        let thinning = clock.ticks(impairments.ack_thinning.as_nanos());
        let gate = Gate { policer, thinning, passes: HashMap::new() };
        (gate.policer.is_some() || thinning > 0).then(|| Box::new(gate))
    }

    /// Whether a packet that arrives at `now` is dropped.
    pub(super) fn drops(&mut self, now: u64, packet: Packet) -> bool {
        let flags = packet.flags();
        if self.thinning > 0 && flags & flags::ACK != 0 && flags & UNIQUE == 0 {
            let passes = self.passes.entry(packet.hop()).or_default();
            if now < *passes {
                return true;
            }
            *passes = now + self.thinning;
        }
        self.policer
            .as_mut()
            .is_some_and(|policer| !policer.conforms(now, u64::from(packet.size())))
    }
}
