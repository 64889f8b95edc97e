//! A one-way link: a queue discipline, a transmitter and a pipe, in one first-in-first-out list.
//!
//! A packet's departure is known when it arrives, so there is no event for the transmitter. The
//! list holds the packets in the pipe, then the one being sent, then those waiting; how many wait
//! is brought up to date when somebody asks.
//!
//! A packet that cannot wait at the next link either is given to it at once, ahead of its time: see
//! [`Net`](super::net::Net). It stays in this list, flagged, for as long as it counts here.

use super::clock::Clock;
use super::histogram::Histogram;
use super::packet::{Packet, flags};
use super::red::{Red, Verdict};
use super::ring::Ring;
use crate::network::{self, Queue, QueueLimit};
use crate::record::LinkRecord;
use crate::rng::Rng;

/// Binary digits behind the point of ticks per byte.
const FRACTION: u32 = 8;

#[derive(Clone, Copy, Default)]
struct Item {
    /// When it arrives at the far end.
    at: u64,
    packet: Packet,
}

enum Discipline {
    DropTail { packets: u32, bytes: u64 },
    Red(Box<Red>),
}

/// What a link has done since the measurement began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub arrivals: u64,
    pub drops: u64,
    pub marks: u64,
    /// Packets lost in the pipe.
    pub losses: u64,
    /// Packets accepted by the queue, and their bytes.
    pub accepted: u64,
    pub bytes: u64,
    /// Ticks that accepted packets wait, in all.
    pub waited: u64,
}

pub(crate) struct Link {
    clock: Clock,
    /// Transmission time in 2^-8 ticks per byte; 0 for an infinite rate.
    per_byte: u64,
    /// When the transmitter falls idle.
    busy: u64,
    delay: u64,
    list: Ring<Item>,
    /// Where in the list the first packet is that an event brings to the far end; the length of the
    /// list if there is none.
    due: usize,
    /// Packets on their way from the one link that feeds this one.
    pub coming: u32,
    waiting: u32,
    waiting_bytes: u64,
    discipline: Discipline,
    loss: f64,
    loss_of_acks: bool,
    rng: Rng,
    pub counters: Counters,
    pub delays: Histogram,
    /// Packets dropped and lost since the start.
    pub total_lost: u64,
}

impl Link {
    pub fn new(link: &network::Link, clock: Clock, index: usize, seed: u64) -> Self {
        let discipline = match &link.queue {
            Queue::DropTail { limit: QueueLimit::Packets(packets) } => {
                Discipline::DropTail { packets: *packets, bytes: u64::MAX }
            }
            Queue::DropTail { limit: QueueLimit::Bytes(bytes) } => {
                Discipline::DropTail { packets: u32::MAX, bytes: *bytes }
            }
            Queue::Red(red) => {
                let rng = Rng::new(seed, "red", index as u64);
                let drain = link.rate.unwrap_or(f64::MAX) / clock.ticks_in(1.0);
                Discipline::Red(Box::new(Red::new(red, drain, rng)))
            }
        };
        let byte = clock.ticks_in(8.0) * f64::from(1u32 << FRACTION);
        Link {
            clock,
            per_byte: link.rate.map_or(0, |rate| (byte / rate).round() as u64),
            busy: 0,
            delay: clock.ticks(link.delay.as_nanos()),
            list: Ring::new(),
            due: 0,
            coming: 0,
            waiting: 0,
            waiting_bytes: 0,
            discipline,
            loss: link.loss,
            loss_of_acks: link.loss_of_acks,
            rng: Rng::new(seed, "loss", index as u64),
            counters: Counters::default(),
            delays: Histogram::new(),
            total_lost: 0,
        }
    }

    /// Lets those packets that the transmitter has reached by `now` leave the queue.
    #[inline]
    fn advance(&mut self, now: u64) {
        while self.waiting > 0 {
            let first = self.list.len() - self.waiting as usize;
            // The first packet waiting starts when the one before it departs. At that very instant
            // an arrival still finds it waiting.
            if self.list.get(first - 1).at - self.delay >= now {
                break;
            }
            self.waiting -= 1;
            self.waiting_bytes -= u64::from(self.list.get(first).packet.size);
        }
    }

    /// Propagation delay.
    pub fn delay(&self) -> u64 {
        self.delay
    }

    /// Packets waiting at `now`, without the one being sent.
    pub fn waiting(&mut self, now: u64) -> u32 {
        self.advance(now);
        self.waiting
    }

    /// Whether a packet that arrives at `at` will neither wait nor be lost, whatever else happens
    /// from `now` to then. Only for a link that one other feeds, in order.
    #[inline]
    pub fn will_pass(&mut self, now: u64, at: u64) -> bool {
        self.coming == 0 && self.busy < at && (self.waiting == 0 || self.waiting(now) == 0)
    }

    /// Whether packets pass this link unchanged and unharmed when it is idle.
    pub fn is_plain(&self) -> bool {
        self.loss == 0.0 && matches!(self.discipline, Discipline::DropTail { .. })
    }

    /// A packet arrives at the link. Gives the time at which it reaches the far end; none if it is
    /// dropped.
    #[inline]
    pub fn give(&mut self, now: u64, packet: &mut Packet) -> Option<u64> {
        self.counters.arrivals += 1;
        // At an infinite rate nothing waits, not even for a packet of the same instant.
        let mut sending = false;
        if self.per_byte != 0 {
            self.advance(now);
            sending = self.sending(now);
            match self.judge(now, sending, packet) {
                Verdict::Keep => {}
                Verdict::Mark => {
                    packet.flags |= flags::CE;
                    self.counters.marks += 1;
                }
                Verdict::Drop => {
                    self.counters.drops += 1;
                    self.total_lost += 1;
                    return None;
                }
            }
        }
        if self.loss > 0.0 {
            self.lose(packet);
        }
        let size = u64::from(packet.size);
        if sending {
            let wait = self.busy - now;
            self.counters.waited += wait;
            self.delays.add(self.clock.nanos(wait));
            self.waiting += 1;
            self.waiting_bytes += size;
        }
        let departs = self.busy.max(now) + ((size * self.per_byte) >> FRACTION);
        self.busy = departs;
        self.counters.accepted += 1;
        self.counters.bytes += size;
        Some(departs + self.delay)
    }

    /// The packet just given is in the link until `at`. True if it is the first there that needs an
    /// event to bring it to the far end.
    #[inline(always)]
    pub fn keep(&mut self, at: u64, packet: Packet) -> bool {
        let first = self.due == self.list.len();
        self.list.push(Item { at, packet });
        first
    }

    /// Whether no event is to bring a packet to the far end.
    #[inline(always)]
    pub fn brings_nothing(&self) -> bool {
        self.due == self.list.len()
    }

    /// The packet just given is in the link until `at`, but with the next link already.
    #[inline(always)]
    pub fn keep_ahead(&mut self, at: u64, packet: Packet) {
        self.due += usize::from(self.due == self.list.len());
        let flags = packet.flags | flags::AHEAD;
        self.list.push(Item { at, packet: Packet { flags, ..packet } });
    }

    /// Lets go of packets that have left by `now` and that no event will take.
    #[inline(always)]
    pub fn forget(&mut self, now: u64) {
        if self.due > 0 {
            self.forget_ahead(now);
        }
    }

    fn forget_ahead(&mut self, now: u64) {
        self.advance(now);
        while self.due > 0 && self.list.get(0).at < now {
            self.list.pop();
            self.due -= 1;
        }
    }

    /// Whether the transmitter is busy at `now`. A packet that departs at this very instant still
    /// holds it, unless it has left the link already.
    #[inline(always)]
    fn sending(&self, now: u64) -> bool {
        self.busy >= now && self.list.len() > 0
    }

    #[inline]
    fn judge(&mut self, now: u64, sending: bool, packet: &Packet) -> Verdict {
        match &mut self.discipline {
            Discipline::DropTail { packets, bytes } => {
                let full = self.waiting >= *packets
                    || self.waiting_bytes + u64::from(packet.size) > *bytes;
                if full && sending { Verdict::Drop } else { Verdict::Keep }
            }
            Discipline::Red(red) => {
                let idle = if sending { None } else { Some(now - self.busy) };
                red.judge(self.waiting, idle, packet.flags & flags::ECT != 0)
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn lose(&mut self, packet: &mut Packet) {
        let exempt = packet.flags & flags::ACK != 0 && !self.loss_of_acks;
        if !exempt && self.rng.chance(self.loss) {
            packet.flags |= flags::LOST;
            self.counters.losses += 1;
            self.total_lost += 1;
        }
    }

    /// Takes the packet that arrives at the far end now, and tells when the next one will.
    #[inline]
    pub fn take(&mut self) -> (Packet, Option<u64>) {
        if self.due > 0 {
            // Those before it are gone too, and counted as waiting no more.
            self.advance(self.list.get(self.due).at);
            for _ in 0..self.due {
                self.list.pop();
            }
        }
        let item = self.list.pop();
        let left = self.list.len();
        if self.waiting as usize == left && left > 0 {
            self.waiting -= 1;
            self.waiting_bytes -= u64::from(self.list.get(0).packet.size);
        }
        self.due = 0;
        while self.due < left {
            let next = self.list.get(self.due);
            if next.packet.flags & flags::AHEAD == 0 {
                return (item.packet, Some(next.at));
            }
            self.due += 1;
        }
        (item.packet, None)
    }

    /// Packets that were given to the next link ahead of their time and reach it after `now`.
    pub fn given_ahead(&self, now: u64) -> impl Iterator<Item = Packet> {
        let items = (0..self.list.len()).map(|index| self.list.get(index));
        let early =
            items.filter(move |item| item.packet.flags & flags::AHEAD != 0 && item.at > now);
        early.map(|item| item.packet)
    }

    /// Waiting, packets and bytes that are counted but lie after `now`: what a
    /// measurement that ends then must take off.
    pub fn ahead(&mut self, now: u64) -> Counters {
        self.advance(now);
        let first = self.list.len() - self.waiting as usize;
        let mut ahead = Counters::default();
        for index in first..self.list.len() {
            let starts = self.list.get(index - 1).at - self.delay;
            ahead.waited += starts - now;
            ahead.accepted += 1;
            ahead.bytes += u64::from(self.list.get(index).packet.size);
        }
        ahead
    }

    /// What the link did in a measurement of so many seconds, without what lies `ahead` of its end.
    pub fn summarise(
        &self,
        ahead: Counters,
        rate: Option<f64>,
        seconds: f64,
        record: &mut LinkRecord,
    ) {
        let counters = &self.counters;
        record.arrivals = counters.arrivals - ahead.arrivals;
        record.departures = counters.accepted - ahead.accepted;
        record.drops = counters.drops;
        record.marks = counters.marks;
        record.losses = counters.losses;
        record.bytes_departed = counters.bytes - ahead.bytes;
        let bits = 8.0 * record.bytes_departed as f64;
        record.utilization = rate.map_or(f64::NAN, |rate| bits / (rate * seconds));
        record.mean_queue = self.clock.seconds(counters.waited - ahead.waited) / seconds;
        // Waiting counts when it begins: only packets that have not even arrived are left out.
        let arrived = counters.accepted - ahead.arrivals;
        let zeros = arrived.saturating_sub(self.delays.count());
        let quantile = |fraction| self.delays.quantile(fraction, zeros) / 1e9;
        let mean = self.clock.seconds(counters.waited) / arrived as f64;
        record.delay = [mean, quantile(0.5), quantile(0.95), quantile(0.99)];
    }
}
