//! The scheduled path of a link: the transmitter takes packets from the queue in events.
//!
//! Required by disciplines that decide at departure. With a discipline that decides at arrival the
//! results are those of the fast path.

use super::{Counters, Link};
use crate::discipline::{Discipline, Effects, Fifo, Occupancy, Queued};
use crate::engine::schedule::AFTER_END;
use crate::packet::{Packet, flags};

/// The queue of the scheduled path.
#[derive(Clone)]
enum Buffer {
    /// Packets that the link's [`Admission`](crate::discipline::Admission) has accepted.
    Admitted(Fifo),
    /// Packets of a discipline that decides itself.
    Managed(Box<dyn Discipline>),
}

/// The state of the scheduled path.
#[derive(Clone)]
pub(super) struct Scheduled {
    buffer: Buffer,
    /// Whether a departure is in the event queue.
    departs: bool,
    /// Whether the discipline uses the hash of a packet's flow.
    uses_flows: bool,
    effects: Effects,
    /// End of the warm-up, once it is reached.
    measured_from: u64,
}

impl Scheduled {
    fn new(buffer: Buffer, uses_flows: bool) -> Self {
        let effects = Effects::default();
        Scheduled { buffer, departs: false, uses_flows, effects, measured_from: 0 }
    }

    /// An empty FIFO queue, for disciplines that decide at arrival.
    pub(super) fn fifo() -> Self {
        Scheduled::new(Buffer::Admitted(Fifo::default()), false)
    }

    /// An empty queue of a discipline that decides at departure.
    pub(super) fn managed(discipline: Box<dyn Discipline>) -> Self {
        let uses_flows = discipline.uses_flows();
        Scheduled::new(Buffer::Managed(discipline), uses_flows)
    }

    /// Whether the discipline decides at departure.
    pub(super) fn is_managed(&self) -> bool {
        matches!(self.buffer, Buffer::Managed(_))
    }

    pub(super) fn occupancy(&self) -> Occupancy {
        match &self.buffer {
            Buffer::Admitted(fifo) => fifo.occupancy(),
            Buffer::Managed(discipline) => discipline.occupancy(),
        }
    }

    fn waits(&self) -> bool {
        match &self.buffer {
            Buffer::Admitted(fifo) => fifo.occupancy().packets > 0,
            Buffer::Managed(discipline) => discipline.waits(),
        }
    }

    /// Returns the counters of a measurement that begins at `now`: those of the packets in the
    /// queue.
    pub(super) fn begin_measurement(&mut self, now: u64) -> Counters {
        self.measured_from = now;
        let Occupancy { packets, bytes } = self.occupancy();
        let packets = packets as u64;
        Counters { accepted: packets, early: packets, bytes, ..Counters::default() }
    }

    /// Returns the time of a departure at `busy`, if packets wait and no departure is scheduled:
    /// the caller schedules one.
    fn next_departure(&mut self, busy: u64) -> Option<u64> {
        let needed = !self.departs && self.waits();
        self.departs |= needed;
        needed.then_some(busy)
    }

    /// Time that a packet has waited at `now` since the end of the warm-up.
    fn wait(&self, queued: &Queued, now: u64) -> u128 {
        u128::from(now - queued.enqueued_at.max(self.measured_from))
    }
}

/// The fate of a packet that was offered to the queue.
pub(crate) enum Enqueued {
    Dropped,
    /// The packet waits, or the discipline has dropped it. The time of the next departure, if no
    /// event is scheduled for it.
    Waits(Option<u64>),
    /// A packet is transmitted at once and arrives at the far end at this time.
    Transmitted(u64, Packet),
}

impl Link {
    /// Whether the discipline uses the hash of a packet's flow.
    pub(crate) fn uses_flows(&self) -> bool {
        self.scheduled.as_ref().is_some_and(|scheduled| scheduled.uses_flows)
    }

    /// Whether packets wait for an event.
    pub(super) fn is_queueing(&self) -> bool {
        self.scheduled.as_ref().is_some_and(|scheduled| scheduled.waits())
    }

    /// Offers a packet of the flow with this hash to the queue of the scheduled path. The caller
    /// then takes the packets that the discipline [dropped](Self::take_dropped).
    pub(crate) fn enqueue(&mut self, now: u64, mut packet: Packet, flow: u32) -> Enqueued {
        let size = u64::from(packet.size());
        let idle = !self.is_busy(now);
        if self.is_gated(now, packet) {
            self.count_drop();
            return Enqueued::Dropped;
        }
        let Some(scheduled) = &mut self.scheduled else { return Enqueued::Dropped };
        if let Buffer::Managed(discipline) = &mut scheduled.buffer {
            if idle && discipline.bypass(now) {
                // The discipline needs no further packets that find the transmitter idle before one
                // waits.
                self.transparent = !self.is_impaired();
                self.counters.accepted += 1;
                self.counters.bytes += size;
                let packet = packet.flagged(self.draw_loss(now, packet.flags()));
                return Enqueued::Transmitted(self.transmit_packet(now, packet), packet);
            }
            self.transparent = false;
            let queued = Queued { packet, enqueued_at: now };
            discipline.enqueue(queued, flow, &mut scheduled.effects);
            self.counters.accepted += 1;
            self.counters.bytes += size;
            self.count_effects(now);
            if idle && let Some(packet) = self.take_managed(now) {
                return Enqueued::Transmitted(self.transmit_packet(now, packet), packet);
            }
        } else {
            let occupancy = scheduled.occupancy();
            let gained = self.admit(now, occupancy, size, packet.flags());
            if gained & flags::DROPPED != 0 {
                return Enqueued::Dropped;
            }
            packet = packet.flagged(gained | self.draw_loss(now, packet.flags()));
            self.counters.accepted += 1;
            self.counters.bytes += size;
            if idle {
                return Enqueued::Transmitted(self.transmit_packet(now, packet), packet);
            }
            if let Some(Buffer::Admitted(fifo)) = self.scheduled.as_mut().map(|s| &mut s.buffer) {
                fifo.push(Queued { packet, enqueued_at: now });
            }
        }
        let busy = self.busy;
        Enqueued::Waits(
            self.scheduled.as_mut().and_then(|scheduled| scheduled.next_departure(busy)),
        )
    }

    /// The transmitter becomes idle at `now`: takes the next packet. Returns its arrival time at
    /// the far end, and the time of the next departure if packets wait. The caller then takes the
    /// packets that the discipline [dropped](Self::take_dropped).
    pub(crate) fn dequeue(&mut self, now: u64) -> Option<(u64, Packet, Option<u64>)> {
        if now >= self.due {
            self.observe(now);
        }
        let scheduled = self.scheduled.as_mut()?;
        scheduled.departs = false;
        let packet = match scheduled.buffer {
            Buffer::Admitted(_) => self.take_admitted(now),
            Buffer::Managed(_) => self.take_managed(now),
        }?;
        let arrives = self.transmit_packet(now, packet);
        let busy = self.busy;
        Some((arrives, packet, self.scheduled.as_mut()?.next_departure(busy)))
    }

    /// Takes a packet that the discipline dropped.
    pub(crate) fn take_dropped(&mut self) -> Option<Packet> {
        self.scheduled.as_mut()?.effects.dropped.pop().map(|queued| queued.packet)
    }

    /// Removes the next packet of a FIFO queue and counts its wait.
    fn take_admitted(&mut self, now: u64) -> Option<Packet> {
        let scheduled = self.scheduled.as_mut()?;
        let Buffer::Admitted(fifo) = &mut scheduled.buffer else { return None };
        let queued = fifo.pop()?;
        self.count_wait(&queued, now);
        Some(queued.packet)
    }

    /// Removes the packet that the discipline selects, counts its wait and draws its loss: a packet
    /// that arrives may be dropped later.
    #[inline(always)]
    fn take_managed(&mut self, now: u64) -> Option<Packet> {
        let scheduled = self.scheduled.as_mut()?;
        let Buffer::Managed(discipline) = &mut scheduled.buffer else { return None };
        let selected = discipline.dequeue(now, &mut scheduled.effects);
        self.count_effects(now);
        let queued = selected?;
        if queued.enqueued_at < now || self.is_busy(now) {
            self.count_wait(&queued, now);
        }
        Some(queued.packet.flagged(self.draw_loss(now, queued.packet.flags())))
    }

    /// Transmits a packet from `start` on. Returns the time at which it arrives at the far end.
    #[inline(always)]
    fn transmit_packet(&mut self, start: u64, packet: Packet) -> u64 {
        self.occupy(start, start, u64::from(packet.size()), packet.flags())
    }

    #[inline(always)]
    fn count_wait(&mut self, queued: &Queued, now: u64) {
        let Some(scheduled) = &self.scheduled else { return };
        self.counters.waited += scheduled.wait(queued, now);
        if queued.enqueued_at >= scheduled.measured_from {
            self.delays.add(self.clock.nanos(now - queued.enqueued_at));
        }
    }

    /// Counts the marks and drops of the discipline's last call. A dropped packet counts in the
    /// queue length, but not in the delays.
    #[inline(always)]
    fn count_effects(&mut self, now: u64) {
        let Some(scheduled) = &mut self.scheduled else { return };
        if scheduled.effects.is_empty() {
            return;
        }
        self.counters.marks += std::mem::take(&mut scheduled.effects.marks);
        for queued in &scheduled.effects.dropped {
            let wait = scheduled.wait(queued, now);
            self.counters.accepted -= 1;
            self.counters.bytes -= u64::from(queued.packet.size());
            self.counters.drops += 1;
            self.counters.waited += wait;
            self.counters.untransmitted_wait += wait;
            self.total_lost += 1;
        }
    }

    /// Returns what a measurement that ends at `end` excludes: the packets in the queue.
    pub(super) fn drain(&mut self, end: u64) -> Counters {
        let Some(scheduled) = &self.scheduled else { return Counters::default() };
        let mut waited = 0;
        let mut visit = |queued: &Queued| waited += scheduled.wait(queued, end);
        match &scheduled.buffer {
            Buffer::Admitted(fifo) if self.excludes_waiting() => fifo.visit(&mut visit),
            Buffer::Admitted(_) => return self.drain_admitted(end),
            Buffer::Managed(discipline) => discipline.visit(&mut visit),
        }
        let Occupancy { packets, bytes } = scheduled.occupancy();
        let accepted = packets as u64;
        self.counters.waited += waited;
        self.counters.untransmitted_wait += waited;
        self.counters.untransmitted += accepted;
        Counters { accepted, bytes, ..Counters::default() }
    }

    /// Empties a FIFO queue after the end of the run, so that every accepted packet has a waiting
    /// time: at a constant rate the fast path counts it at the arrival.
    fn drain_admitted(&mut self, end: u64) -> Counters {
        let mut queued = Counters::default();
        while let Some(packet) = self.take_admitted(self.busy) {
            let size = u64::from(packet.size());
            queued.waited += u128::from(self.busy - end);
            queued.accepted += 1;
            queued.early += 1;
            queued.bytes += size;
            self.occupy(end, self.busy.min(AFTER_END), size, packet.flags());
        }
        queued
    }
}
