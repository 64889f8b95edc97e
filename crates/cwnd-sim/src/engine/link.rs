//! A one-way link: a queue discipline, a transmitter and a pipe, in one first-in-first-out list.
//!
//! A packet's departure is known when it arrives, so there is no event for the transmitter. The
//! list holds the packets in the pipe, then the one being sent, then those waiting; how many wait
//! is brought up to date when somebody asks.

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

/// What became of a packet given to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    Dropped,
    /// The link was empty: its first packet arrives at this time.
    First(u64),
    Behind,
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

    /// A packet arrives at the link.
    #[inline]
    pub fn give(&mut self, now: u64, mut packet: Packet) -> Given {
        self.counters.arrivals += 1;
        if self.per_byte != 0 {
            self.advance(now);
            match self.judge(now, &packet) {
                Verdict::Keep => {}
                Verdict::Mark => {
                    packet.flags |= flags::CE;
                    self.counters.marks += 1;
                }
                Verdict::Drop => {
                    self.counters.drops += 1;
                    self.total_lost += 1;
                    return Given::Dropped;
                }
            }
        }
        if self.loss > 0.0 {
            self.lose(&mut packet);
        }
        let size = u64::from(packet.size);
        // At an infinite rate nothing waits, not even for a packet of the same instant.
        if self.per_byte != 0 && self.sending(now) {
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
        let at = departs + self.delay;
        self.list.push(Item { at, packet });
        if self.list.len() == 1 { Given::First(at) } else { Given::Behind }
    }

    /// Whether the transmitter is busy at `now`. A packet that departs at this very instant still
    /// holds it, unless it has left the link already.
    #[inline(always)]
    fn sending(&self, now: u64) -> bool {
        self.busy >= now && self.list.len() > 0
    }

    #[inline]
    fn judge(&mut self, now: u64, packet: &Packet) -> Verdict {
        let sending = self.sending(now);
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
        let item = self.list.pop();
        let left = self.list.len();
        if left == 0 {
            return (item.packet, None);
        }
        if self.waiting as usize == left {
            self.waiting -= 1;
            self.waiting_bytes -= u64::from(self.list.get(0).packet.size);
        }
        (item.packet, Some(self.list.get(0).at))
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
        record.arrivals = counters.arrivals;
        record.departures = counters.accepted - ahead.accepted;
        record.drops = counters.drops;
        record.marks = counters.marks;
        record.losses = counters.losses;
        record.bytes_departed = counters.bytes - ahead.bytes;
        let bits = 8.0 * record.bytes_departed as f64;
        record.utilization = rate.map_or(f64::NAN, |rate| bits / (rate * seconds));
        record.mean_queue = self.clock.seconds(counters.waited - ahead.waited) / seconds;
        let zeros = counters.accepted.saturating_sub(self.delays.count());
        let quantile = |fraction| self.delays.quantile(fraction, zeros) / 1e9;
        let mean = self.clock.seconds(counters.waited) / counters.accepted as f64;
        record.delay = [mean, quantile(0.5), quantile(0.95), quantile(0.99)];
    }
}
