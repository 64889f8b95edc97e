//! What queue disciplines share, and the interface of those that decide at departure.
//!
//! Such a discipline decides at the arrival and at the departure of packets, and may drop others
//! than the one offered. It sees time only in these calls: a periodic update between two of them
//! reads a state that does not change, and is made up for at the next call.

use super::table::QueueLimit;
use crate::check::{Checked, check_spans, invalid};
use crate::packet::{Packet, flags};
use cwnd::Dur;
use dyn_clone::DynClone;
use std::collections::VecDeque;

/// The shortest time between two updates of a drop probability.
const MIN_UPDATE: Dur = Dur::from_micros(100);
/// The largest gain of a controller in Hz.
const MAX_GAIN: f64 = 1e6;

/// What a discipline does with an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Accept,
    Mark,
    Drop,
}

/// Length of a queue, without the packet in transmission.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Occupancy {
    pub packets: usize,
    pub bytes: u64,
}

/// A packet in the queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Queued {
    pub packet: Packet,
    pub enqueued_at: u64,
}

impl Queued {
    pub(super) fn size(&self) -> u64 {
        u64::from(self.packet.size())
    }

    /// Time in the queue until `now`.
    pub(super) fn sojourn(&self, now: u64) -> u64 {
        now - self.enqueued_at
    }

    pub(super) fn is_capable(&self) -> bool {
        self.packet.flags() & flags::ECT != 0
    }
}

/// What a discipline did in a call besides its answer.
#[derive(Clone, Default)]
pub(crate) struct Effects {
    /// Packets that it dropped.
    pub dropped: Vec<Queued>,
    /// Packets that it marked.
    pub marks: u64,
}

impl Effects {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.marks == 0 && self.dropped.is_empty()
    }

    pub(super) fn mark(&mut self, queued: &mut Queued) {
        if queued.packet.flags() & flags::CE == 0 {
            queued.packet = queued.packet.flagged(flags::CE);
            self.marks += 1;
        }
    }

    pub(super) fn drop(&mut self, queued: Queued) {
        self.dropped.push(queued);
    }
}

/// A queue discipline.
pub(crate) trait Discipline: DynClone + Send {
    /// Offers a packet of the flow with this hash at its `enqueued_at`.
    fn enqueue(&mut self, queued: Queued, flow: u32, effects: &mut Effects);

    /// Lets a packet pass that finds the transmitter idle and the queue empty. Returns whether it
    /// need not be offered: the packet is neither dropped nor marked, and further ones pass without
    /// a call until one is offered.
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

dyn_clone::clone_trait_object!(Discipline);

/// Whether a packet of `size` bytes exceeds the limit.
#[inline]
pub(super) fn exceeds(limit: QueueLimit, queue: Occupancy, size: u64) -> bool {
    match limit {
        QueueLimit::Packets(packets) => queue.packets >= packets as usize,
        QueueLimit::Bytes(bytes) => queue.bytes + size > bytes,
    }
}

/// A queue from which packets depart in the order of their arrival.
#[derive(Clone, Default)]
pub(crate) struct Fifo {
    pub packets: VecDeque<Queued>,
    pub bytes: u64,
}

impl Fifo {
    pub(crate) fn push(&mut self, queued: Queued) {
        self.bytes += queued.size();
        self.packets.push_back(queued);
    }

    pub(crate) fn pop(&mut self) -> Option<Queued> {
        let queued = self.packets.pop_front()?;
        self.bytes -= queued.size();
        Some(queued)
    }

    pub(super) fn first(&self) -> Option<&Queued> {
        self.packets.front()
    }

    pub(crate) fn visit(&self, each: &mut dyn FnMut(&Queued)) {
        self.packets.iter().for_each(each);
    }

    pub(crate) fn occupancy(&self) -> Occupancy {
        Occupancy { packets: self.packets.len(), bytes: self.bytes }
    }
}

/// The times of a periodic update.
#[derive(Clone)]
pub(super) struct Updates {
    pub interval: u64,
    next: u64,
}

impl Updates {
    pub(super) fn new(interval: u64) -> Self {
        Updates { interval, next: interval }
    }

    /// Returns the next update time up to `now`.
    pub(super) fn due(&mut self, now: u64) -> Option<u64> {
        let at = self.next;
        (at <= now).then(|| {
            self.next += self.interval;
            at
        })
    }

    /// Skips the updates up to `now`.
    pub(super) fn skip(&mut self, now: u64) {
        if self.next <= now {
            self.next += ((now - self.next) / self.interval + 1) * self.interval;
        }
    }
}

pub(super) fn check_update(field: &'static str, interval: Dur) -> Checked {
    if interval < MIN_UPDATE {
        return invalid(field, "the time between updates is at least 100us");
    }
    check_spans([(field, interval)])
}

pub(super) fn check_gains(gains: [(&'static str, f64); 2]) -> Checked {
    for (field, gain) in gains {
        if !(0.0..=MAX_GAIN).contains(&gain) {
            return invalid(field, format!("a gain is from 0 to {MAX_GAIN} Hz, not {gain}"));
        }
    }
    Ok(())
}
