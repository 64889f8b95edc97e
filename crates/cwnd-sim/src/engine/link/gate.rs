//! What drops packets before the queue: a policer, and thinning of acknowledgements.

use super::token_bucket::TokenBucket;
use crate::engine::clock::Clock;
use crate::engine::packet::flags;
use crate::network;

/// Properties of an acknowledgement that a cumulative one behind it does not replace.
const UNIQUE: u16 = flags::SYN | flags::NAK | flags::REPORT | flags::CONTROL | flags::ECE;

pub(super) struct Gate {
    policer: Option<TokenBucket>,
    /// Of so many consecutive acknowledgements the last one passes; 0 or 1 for all.
    thinning: u32,
    /// Acknowledgements since the last one that passed.
    held: u32,
}

impl Gate {
    /// Returns the gate of a link; `None` if every packet passes.
    pub(super) fn new(link: &network::Link, clock: Clock) -> Option<Box<Self>> {
        let impairments = link.impairments.as_deref()?;
        let policer = impairments.policer.map(|bucket| TokenBucket::new(&bucket, clock));
        let thinning = impairments.ack_thinning;
        (policer.is_some() || thinning > 1).then(|| Box::new(Gate { policer, thinning, held: 0 }))
    }

    /// Whether a packet that arrives at `now` is dropped.
    pub(super) fn drops(&mut self, now: u64, size: u64, flags: u16) -> bool {
        if self.thinning > 1 && flags & flags::ACK != 0 && flags & UNIQUE == 0 {
            self.held += 1;
            if self.held < self.thinning {
                return true;
            }
            self.held = 0;
        }
        self.policer.as_mut().is_some_and(|policer| !policer.conforms(now, size))
    }
}
