//! A one-way link: a queue discipline, a transmitter and a pipe.
//!
//! A packet's departure is known when it arrives, so there is no event for the transmitter. Which
//! packets wait is brought up to date when somebody asks.
//!
//! A packet that cannot wait at the next link either is given to it at once, ahead of its time: see
//! [`Net`](super::net::Net). The link's list holds those alone that an event brings to the far end.

use super::clock::Clock;
use super::histogram::Histogram;
use super::packet::{Packet, flags};
use super::red::{Action, Red};
use super::ring::Ring;
use super::schedule::NONE;
use crate::cast::{low32, saturate32, whole};
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

/// A packet in the queue.
#[derive(Clone, Copy, Default)]
struct Waiting {
    /// When the transmitter takes it: when the one before it departs.
    starts: u64,
    size: u64,
}

enum Discipline {
    DropTail { packets: u32, bytes: u64 },
    Red(Box<Red>),
}

/// What a link has done since the measurement began. The two that every packet adds to do not stand
/// side by side: compilers would add to both at once, with three times the instructions.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Counters {
    /// Packets accepted by the queue.
    pub accepted: u64,
    /// Ticks that accepted packets wait, in all.
    pub waited: u64,
    /// Bytes of the accepted.
    pub bytes: u64,
    pub drops: u64,
    pub marks: u64,
    /// Packets lost in the pipe.
    pub losses: u64,
    /// Those of the accepted that arrived before the measurement began.
    pub early: u64,
}

/// What has passed a link ahead of the clock and counts when the measurement begins.
#[derive(Default)]
struct Later {
    packets: u64,
    bytes: u64,
    /// Packets that waited for an instant.
    instants: u64,
}

/// Losses in the pipe.
struct Loss {
    probability: f64,
    of_acks: bool,
    rng: Rng,
}

/// What every packet needs comes first: with hundreds of links it must be fetched for each.
#[repr(C)]
pub(crate) struct Link {
    /// When the transmitter falls idle.
    busy: u64,
    /// Transmission time in 2^-8 ticks per byte; 0 for an infinite rate.
    per_byte: u64,
    delay: u64,
    /// Whether a packet that finds the link idle is sent, whatever it is.
    plain: bool,
    /// Whether a packet passes that arrives just as the one before it departs.
    pub keeps_step: bool,
    /// Whether the last packet has reached the far end, in an event.
    left: bool,
    /// Packets on their way from the one link that feeds this one, each to come in an event.
    pub coming: u32,
    /// Packets that an event brings to the far end.
    list: Ring<Item>,
    pub counters: Counters,
    waiting: Ring<Waiting>,
    waiting_bytes: u64,
    discipline: Discipline,
    loss: Option<Box<Loss>>,
    pub delays: Histogram,
    clock: Clock,
    /// Whether packets depart one by one, and nothing hangs on the order of events at that instant.
    pub steady: bool,
    later: Later,
    /// Packets dropped and lost since the start.
    pub total_lost: u64,
}

impl Link {
    pub(crate) fn new(link: &network::Link, clock: Clock, index: usize, seed: u64) -> Self {
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
        let per_byte = link.rate.map_or(0, |rate| whole((byte / rate).round()));
        let steady = !link.delay.is_zero() && per_byte >> FRACTION > 0;
        let room = match discipline {
            Discipline::DropTail { packets, bytes } => packets > 0 && bytes >= u64::from(u16::MAX),
            Discipline::Red(_) => false,
        };
        Link {
            clock,
            later: Later::default(),
            per_byte,
            busy: 0,
            left: true,
            delay: clock.ticks(link.delay.as_nanos()),
            list: Ring::new(),
            coming: 0,
            waiting: Ring::new(),
            waiting_bytes: 0,
            plain: link.loss <= 0.0 && matches!(discipline, Discipline::DropTail { .. }),
            steady,
            keeps_step: steady && room,
            discipline,
            loss: (link.loss > 0.0).then(|| {
                Box::new(Loss {
                    probability: link.loss,
                    of_acks: link.loss_of_acks,
                    rng: Rng::new(seed, "loss", index as u64),
                })
            }),
            counters: Counters::default(),
            delays: Histogram::new(),
            total_lost: 0,
        }
    }

    /// Lets those packets that the transmitter has reached by `now` leave the queue. At the very
    /// instant at which one departs, an arrival still finds the next one waiting.
    #[inline(always)]
    fn advance(&mut self, now: u64) {
        while self.waiting.len() > 0 && self.waiting.get(0).starts < now {
            self.waiting_bytes -= self.waiting.pop().size;
        }
    }

    /// The measurement begins at `now`.
    pub(crate) fn begin(&mut self, now: u64) {
        self.counters = self.queued(now);
        self.counters.accepted += self.later.packets;
        self.counters.bytes += self.later.bytes;
        self.delays.clear();
        (0..self.later.instants).for_each(|_| self.delays.add(0));
    }

    /// Propagation delay.
    pub(crate) fn delay(&self) -> u64 {
        self.delay
    }

    /// How long so many bytes hold the transmitter.
    #[inline(always)]
    pub(crate) fn transmission(&self, size: u64) -> u64 {
        (size * self.per_byte) >> FRACTION
    }

    /// Packets waiting at `now`, without the one being sent.
    pub(crate) fn waiting(&mut self, now: u64) -> u32 {
        self.advance(now);
        saturate32(self.waiting.len())
    }

    /// Whether a packet that arrives at `at` will neither wait nor be lost, whatever else happens
    /// until then. Only for a plain link that one other feeds, in order.
    #[inline(always)]
    pub(crate) fn will_pass(&self, at: u64) -> bool {
        self.coming == 0 && self.busy < at
    }

    /// Sends a packet that passes all the same: as the one before it departs, or, where `later`, when the
    /// measurement has begun. Gives the time at which it reaches the far end.
    #[inline(never)]
    pub(crate) fn pass_in_step(&mut self, at: u64, size: u64, later: bool) -> Option<u64> {
        if self.coming > 0 || self.busy > at || !self.keeps_step {
            return None;
        }
        let waits = self.busy == at;
        if waits {
            self.delays.add(0);
        }
        if later {
            self.later.packets += 1;
            self.later.bytes += size;
            self.later.instants += u64::from(waits);
        }
        Some(self.carry(at, size))
    }

    /// Whether packets pass this link unchanged and unharmed when it is idle.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// A packet of this size and with these flags arrives at the link. Gives the time at which it
    /// reaches the far end, [`NONE`] if it is dropped, and the flags that it gains.
    ///
    /// By value: a packet whose address is taken lives in memory and not in two registers.
    #[inline(always)]
    pub(crate) fn give(&mut self, now: u64, size: u16, flags: u16) -> (u64, u16) {
        if self.plain && self.busy < now {
            return (self.carry(now, u64::from(size)), 0);
        }
        self.judge_and_carry(now, u64::from(size), flags)
    }

    /// Sends a packet of so many bytes from `at` on. Gives the time at which it reaches the far end.
    #[inline(always)]
    pub(crate) fn carry(&mut self, at: u64, size: u64) -> u64 {
        self.busy = at + self.transmission(size);
        self.left = false;
        self.counters.accepted += 1;
        self.counters.bytes += size;
        self.busy + self.delay
    }

    /// What is sent at `at` ahead of the clock is sent as by a timer, after the links' events of that
    /// instant: a packet that departs then has left a link without delay.
    pub(crate) fn pass_events(&mut self, at: u64) {
        if self.delay == 0 {
            self.left = self.busy <= at;
            self.advance(at + 1);
        }
    }

    fn judge_and_carry(&mut self, now: u64, size: u64, flags: u16) -> (u64, u16) {
        let mut gained = 0;
        // At an infinite rate nothing waits, not even for a packet of the same instant.
        let mut sending = false;
        if self.per_byte != 0 {
            self.advance(now);
            sending = self.sending(now);
            match self.judge(now, sending, size, flags) {
                Action::Keep => {}
                Action::Mark => {
                    gained = flags::CE;
                    self.counters.marks += 1;
                }
                Action::Drop => {
                    self.counters.drops += 1;
                    self.total_lost += 1;
                    return (NONE, 0);
                }
            }
        }
        if self.loss.is_some() {
            gained |= self.lose(flags);
        }
        if sending {
            let wait = self.busy - now;
            self.counters.waited += wait;
            self.delays.add(self.clock.nanos(wait));
            self.waiting.push(Waiting { starts: self.busy, size });
            self.waiting_bytes += size;
        }
        (self.carry(self.busy.max(now), size), gained)
    }

    /// Brings the packet just given to the far end at `at`. True if it is the first to come there.
    #[inline(always)]
    pub(crate) fn bring(&mut self, at: u64, packet: Packet) -> bool {
        self.list.push(Item { at, packet });
        self.list.len() == 1
    }

    /// The earliest that an event can bring a packet to the far end, if none is given to the link
    /// before `from`.
    pub(crate) fn next_from(&self, from: u64) -> u64 {
        let given = self.busy.max(from) + self.delay;
        if self.list.len() > 0 { self.list.get(0).at.min(given) } else { given }
    }

    /// The first packet that an event is to bring to the far end, and when.
    pub(crate) fn first(&self) -> Option<(u64, Packet)> {
        (self.list.len() > 0).then(|| {
            let Item { at, packet } = self.list.get(0);
            (at, packet)
        })
    }

    /// Whether no event is to bring a packet to the far end.
    #[inline(always)]
    pub(crate) fn brings_nothing(&self) -> bool {
        self.list.len() == 0
    }

    /// Whether the transmitter is busy at `now`. A packet that departs at this very instant still
    /// holds it, unless it has left the link already.
    #[inline(always)]
    fn sending(&self, now: u64) -> bool {
        self.busy > now || self.busy == now && !self.left
    }

    #[inline]
    fn judge(&mut self, now: u64, sending: bool, size: u64, flags: u16) -> Action {
        match &mut self.discipline {
            Discipline::DropTail { packets, bytes } => {
                let full =
                    self.waiting.len() >= *packets as usize || self.waiting_bytes + size > *bytes;
                if full && sending { Action::Drop } else { Action::Keep }
            }
            Discipline::Red(red) => {
                let idle = if sending { None } else { Some(now - self.busy) };
                // RED's limit, which is a u32, bounds the queue.
                let waiting = low32(self.waiting.len() as u64);
                red.judge(waiting, idle, flags & flags::ECT != 0)
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn lose(&mut self, flags: u16) -> u16 {
        let Some(loss) = &mut self.loss else { return 0 };
        let exempt = flags & flags::DATALESS != 0 && !loss.of_acks;
        if exempt || !loss.rng.chance(loss.probability) {
            return 0;
        }
        self.counters.losses += 1;
        self.total_lost += 1;
        flags::LOST
    }

    /// Takes the packet that arrives at the far end now, and tells when the next one will.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> (Packet, Option<u64>) {
        let Item { at, packet } = self.list.pop();
        if self.delay == 0 {
            // This is the instant of its departure: the next one is being sent now.
            self.left = at == self.busy;
            self.advance(at + 1);
        }
        let next = if self.list.len() > 0 { Some(self.list.get(0).at) } else { None };
        (packet, next)
    }

    /// Waiting, packets and bytes that are counted but lie after `now`: what a
    /// measurement that ends then must take off.
    pub(crate) fn queued(&mut self, now: u64) -> Counters {
        self.advance(now);
        let mut queued = Counters::default();
        for index in 0..self.waiting.len() {
            let Waiting { starts, size } = self.waiting.get(index);
            queued.waited += starts - now;
            queued.accepted += 1;
            queued.early += 1;
            queued.bytes += size;
        }
        queued
    }

    /// What the link did in a measurement of so many seconds, without what is `queued` at its end.
    pub(crate) fn summarise(
        &self,
        queued: Counters,
        rate: Option<f64>,
        seconds: f64,
        record: &mut LinkRecord,
    ) {
        let counters = &self.counters;
        record.arrivals = counters.accepted - counters.early + counters.drops;
        record.departures = counters.accepted - queued.accepted;
        record.drops = counters.drops;
        record.marks = counters.marks;
        record.losses = counters.losses;
        record.bytes_departed = counters.bytes - queued.bytes;
        let bits = 8.0 * record.bytes_departed as f64;
        record.utilization = rate.map_or(f64::NAN, |rate| bits / (rate * seconds));
        record.mean_queue = self.clock.seconds(counters.waited - queued.waited) / seconds;
        // Waiting counts when it begins: only packets that have not even arrived are left out.
        let arrived = counters.accepted;
        let zeros = arrived.saturating_sub(self.delays.count());
        let quantile = |fraction| self.delays.quantile(fraction, zeros) / 1e9;
        let mean = self.clock.seconds(counters.waited) / arrived as f64;
        record.delay = [mean, quantile(0.5), quantile(0.95), quantile(0.99)];
    }
}
