//! The scheduled path of a link: the transmitter takes packets from the queue in events.
//!
//! Required by disciplines that decide at departure and by links that change with time. With a discipline that decides at arrival
//! and a constant rate the results are those of the fast path.

use super::admission::Occupancy;
use super::{AFTER_END, Counters, Link};
use crate::engine::packet::{Packet, flags};
use std::collections::VecDeque;

/// A packet in the queue.
#[derive(Clone, Copy)]
struct Queued {
    packet: Packet,
    enqueued_at: u64,
}

/// A queue discipline: it decides on packets at their arrival and at their departure.
trait QueueDiscipline {
    /// Appends a packet that was admitted.
    fn enqueue(&mut self, queued: Queued);

    /// Removes the packet to transmit next.
    fn dequeue(&mut self, now: u64) -> Option<Queued>;

    fn occupancy(&self) -> Occupancy;
}

/// First in, first out.
#[derive(Default)]
struct Fifo {
    packets: VecDeque<Queued>,
    bytes: u64,
}

impl QueueDiscipline for Fifo {
    fn enqueue(&mut self, queued: Queued) {
        self.bytes += u64::from(queued.packet.size());
        self.packets.push_back(queued);
    }

    fn dequeue(&mut self, _: u64) -> Option<Queued> {
        let queued = self.packets.pop_front()?;
        self.bytes -= u64::from(queued.packet.size());
        Some(queued)
    }

    fn occupancy(&self) -> Occupancy {
        Occupancy { packets: self.packets.len(), bytes: self.bytes }
    }
}

/// The state of the scheduled path.
pub(super) struct Scheduled {
    queue: Box<dyn QueueDiscipline + Send>,
    /// End of the warm-up, once it is reached.
    measured_from: u64,
}

impl Scheduled {
    /// An empty FIFO queue, for disciplines that decide at arrival.
    pub(super) fn fifo() -> Self {
        Scheduled { queue: Box::new(Fifo::default()), measured_from: 0 }
    }

    pub(super) fn occupancy(&self) -> Occupancy {
        self.queue.occupancy()
    }

    /// Returns the counters of a measurement that begins at `now`: those of the packets in the queue.
    pub(super) fn begin_measurement(&mut self, now: u64) -> Counters {
        self.measured_from = now;
        let Occupancy { packets, bytes } = self.occupancy();
        let packets = packets as u64;
        Counters { accepted: packets, early: packets, bytes, ..Counters::default() }
    }
}

/// The fate of a packet that was offered to the queue.
pub(crate) enum Enqueued {
    Dropped,
    /// The packet waits. The time of the next departure, if no event is scheduled for it.
    Waits(Option<u64>),
    /// The packet is transmitted at once and arrives at the far end at this time.
    Transmitted(u64, Packet),
}

impl Link {
    /// Offers a packet to the queue of the scheduled path.
    pub(crate) fn enqueue(&mut self, now: u64, mut packet: Packet) -> Enqueued {
        let size = u64::from(packet.size());
        let occupancy = self.scheduled.as_ref().map_or(Occupancy::default(), |s| s.occupancy());
        let gained = self.admit(now, occupancy, size, packet.flags());
        if gained & flags::DROPPED != 0 {
            return Enqueued::Dropped;
        }
        packet = packet.flagged(gained);
        self.counters.accepted += 1;
        self.counters.bytes += size;
        if !self.is_busy(now) {
            return Enqueued::Transmitted(self.occupy(now, size, packet.flags()), packet);
        }
        if let Some(scheduled) = &mut self.scheduled {
            scheduled.queue.enqueue(Queued { packet, enqueued_at: now });
        }
        Enqueued::Waits((occupancy.packets == 0).then_some(self.busy))
    }

    /// The transmitter becomes idle at `now`: takes the next packet. Returns its arrival time at the far end, and the time of the
    /// next departure if packets wait.
    pub(crate) fn dequeue(&mut self, now: u64) -> Option<(u64, Packet, Option<u64>)> {
        if now >= self.due {
            self.observe(now);
        }
        let (packet, waits) = self.take_queued(now)?;
        let arrives = self.occupy(now, u64::from(packet.size()), packet.flags());
        Some((arrives, packet, waits.then_some(self.busy)))
    }

    /// Removes the next packet from the queue and counts its wait. Returns it and whether others wait.
    fn take_queued(&mut self, now: u64) -> Option<(Packet, bool)> {
        let scheduled = self.scheduled.as_mut()?;
        let Queued { packet, enqueued_at } = scheduled.queue.dequeue(now)?;
        self.counters.waited += u128::from(now - enqueued_at.max(scheduled.measured_from));
        if enqueued_at >= scheduled.measured_from {
            self.delays.add(self.clock.nanos(now - enqueued_at));
        }
        Some((packet, scheduled.occupancy().packets > 0))
    }

    /// Empties the queue after the end of the run at `end`, so that every accepted packet has a waiting time. Returns what the
    /// measurement excludes.
    pub(super) fn drain(&mut self, end: u64) -> Counters {
        let mut queued = Counters::default();
        while let Some((packet, _)) = self.take_queued(self.busy) {
            let size = u64::from(packet.size());
            queued.waited += u128::from(self.busy - end);
            queued.accepted += 1;
            queued.early += 1;
            queued.bytes += size;
            self.occupy(self.busy.min(AFTER_END), size, packet.flags());
        }
        queued
    }
}
