//! Queue disciplines of the scheduled path.
//!
//! A discipline decides at the arrival and at the departure of packets, and may drop others than the one offered. It sees time only
//! in these calls: a periodic update between two of them reads a state that does not change, and is made up for at the next call.

mod codel;
mod dualpi2;
mod factory;
mod flow_queues;
mod fq;
mod fq_codel;
mod pie;
#[cfg(test)]
mod tests;

pub(super) use factory::create;

use super::admission::Occupancy;
use crate::engine::packet::{Packet, flags};
use crate::network::QueueLimit;
use std::collections::VecDeque;

/// A packet in the queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queued {
    pub packet: Packet,
    pub enqueued_at: u64,
}

impl Queued {
    fn size(&self) -> u64 {
        u64::from(self.packet.size())
    }

    /// Time in the queue until `now`.
    fn sojourn(&self, now: u64) -> u64 {
        now - self.enqueued_at
    }

    fn is_capable(&self) -> bool {
        self.packet.flags() & flags::ECT != 0
    }
}

/// What a discipline did in a call besides its answer.
#[derive(Default)]
pub(super) struct Effects {
    /// Packets that it dropped.
    pub dropped: Vec<Queued>,
    /// Packets that it marked.
    pub marks: u64,
}

impl Effects {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.marks == 0 && self.dropped.is_empty()
    }

    fn mark(&mut self, queued: &mut Queued) {
        if queued.packet.flags() & flags::CE == 0 {
            queued.packet = queued.packet.flagged(flags::CE);
            self.marks += 1;
        }
    }

    fn drop(&mut self, queued: Queued) {
        self.dropped.push(queued);
    }
}

/// A queue discipline.
pub(super) trait Discipline: Send {
    /// Offers a packet of the flow with this hash at its `enqueued_at`.
    fn enqueue(&mut self, queued: Queued, flow: u32, effects: &mut Effects);

    /// Lets a packet pass that finds the transmitter idle and the queue empty. Returns whether it need not be offered: the packet is
    /// neither dropped nor marked, and further ones pass without a call until one is offered.
    fn bypass(&mut self, _now: u64) -> bool {
        false
    }

    /// Removes the packet to transmit next.
    fn dequeue(&mut self, now: u64, effects: &mut Effects) -> Option<Queued>;

    /// Passes each packet in the queue to `each`.
    fn visit(&self, each: &mut dyn FnMut(&Queued));

    fn occupancy(&self) -> Occupancy;

    /// Whether packets wait.
    fn waits(&self) -> bool {
        self.occupancy().packets > 0
    }

    /// Whether the discipline uses the hash of a packet's flow.
    fn uses_flows(&self) -> bool {
        false
    }
}

/// Whether a packet of `size` bytes exceeds the limit.
fn exceeds(limit: QueueLimit, queue: Occupancy, size: u64) -> bool {
    match limit {
        QueueLimit::Packets(packets) => queue.packets >= packets as usize,
        QueueLimit::Bytes(bytes) => queue.bytes + size > bytes,
    }
}

/// A queue from which packets depart in the order of their arrival.
#[derive(Default)]
pub(super) struct Fifo {
    packets: VecDeque<Queued>,
    bytes: u64,
}

impl Fifo {
    pub(super) fn push(&mut self, queued: Queued) {
        self.bytes += queued.size();
        self.packets.push_back(queued);
    }

    pub(super) fn pop(&mut self) -> Option<Queued> {
        let queued = self.packets.pop_front()?;
        self.bytes -= queued.size();
        Some(queued)
    }

    fn first(&self) -> Option<&Queued> {
        self.packets.front()
    }

    pub(super) fn visit(&self, each: &mut dyn FnMut(&Queued)) {
        self.packets.iter().for_each(each);
    }

    pub(super) fn occupancy(&self) -> Occupancy {
        Occupancy { packets: self.packets.len(), bytes: self.bytes }
    }
}

/// The times of a periodic update.
struct Updates {
    interval: u64,
    next: u64,
}

impl Updates {
    fn new(interval: u64) -> Self {
        Updates { interval, next: interval }
    }

    /// Returns the next update time up to `now`.
    fn due(&mut self, now: u64) -> Option<u64> {
        let at = self.next;
        (at <= now).then(|| {
            self.next += self.interval;
            at
        })
    }

    /// Skips the updates up to `now`.
    fn skip(&mut self, now: u64) {
        if self.next <= now {
            self.next += ((now - self.next) / self.interval + 1) * self.interval;
        }
    }
}
