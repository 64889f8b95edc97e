//! A one-way link: a queue discipline, a transmitter and a propagation delay.
//!
//! A link has two implementations with the same results. On the fast path the discipline decides at
//! the arrival of a packet and the departure is known at the arrival, so that the transmitter needs
//! no event: a rate that varies is a function of time ([`profile`]). On the scheduled path
//! ([`scheduled`]) the transmitter takes packets from the queue in events. A link may receive
//! packets ahead of the clock, in the order of their arrival: its state depends on nothing else.
//! Samples are therefore taken when the link passes their time.

mod constant;
mod gate;
mod loss;
mod profile;
mod propagation;
mod scheduled;
mod service;
mod token_bucket;

pub(crate) use profile::capacity;
pub(crate) use scheduled::Enqueued;

use super::histogram::Histogram;
use super::observation::{LinkSamples, Observations};
use super::ring::Ring;
use super::schedule::{AFTER_END, NONE};
use crate::cast::saturate32;
use crate::clock::Clock;
use crate::discipline::{Action, Admission, Code, Occupancy};
use crate::network;
use crate::packet::{Packet, flags};
use crate::record::{Delay, LinkRecord};
use constant::{Left, Service};
use gate::Gate;
use loss::Loss;
use scheduled::Scheduled;
use service::{Transmission, Varying};

/// The number of no list of packets in flight.
pub(crate) const NO_LIST: usize = usize::MAX;

/// A packet in the queue.
#[derive(Clone, Copy, Default)]
struct Waiting {
    /// Start of the transmission: the departure of the previous packet.
    starts: u64,
    size: u64,
}

/// Counters since the end of the warm-up. `accepted` and `bytes`, which change for each packet, are
/// not adjacent: compilers would combine the additions, with three times the instructions.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Counters {
    /// Packets accepted by the queue.
    pub accepted: u64,
    /// Total waiting time of the accepted packets in ticks.
    pub waited: u128,
    /// Bytes of the accepted packets.
    pub bytes: u64,
    pub drops: u64,
    pub marks: u64,
    /// Packets lost after the queue.
    pub losses: u64,
    /// Accepted packets that arrived during the warm-up and waited at its end.
    pub early: u64,
    /// Accepted packets that still wait at the end, and the part of `waited` that is theirs and
    /// that of dropped packets: delays are those of transmitted packets. Only with disciplines that
    /// decide at departure, and at rates that vary, where a packet may wait long beyond the end.
    pub untransmitted: u64,
    pub untransmitted_wait: u128,
}

/// A link. Fields used for every packet come first: with hundreds of links they must be fetched for
/// each packet.
#[derive(Clone)]
#[repr(C)]
pub(crate) struct Link {
    /// Time at which the transmitter becomes idle.
    busy: u64,
    service: Service,
    /// The least propagation delay.
    delay: u64,
    /// Time of the next observation.
    due: u64,
    /// The transmitter and the propagation delay if they are not constant.
    varying: Option<Box<Varying>>,
    /// Whether a packet that finds the transmitter idle is accepted unchanged.
    transparent: bool,
    /// Whether packets are only queued and transmitted: nothing varies, no packet is lost on the
    /// link or inspected, and no departure is an event.
    plain: bool,
    tapped: bool,
    counters: Counters,
    waiting: Ring<Waiting>,
    waiting_bytes: u64,
    admission: Admission,
    gate: Option<Box<Gate>>,
    loss: Option<Box<Loss>>,
    scheduled: Option<Box<Scheduled>>,
    delays: Histogram,
    /// End of the warm-up, once it is reached, and the packet in transmission then.
    measured_from: u64,
    left: Left,
    clock: Clock,
    observations: Observations,
    samples: LinkSamples,
    /// Whether packets queue: the rate is finite, or there is a shaper.
    queues: bool,
    /// The list of the packets in flight that others may overtake.
    pub late: usize,
    /// Packets dropped and lost since the start.
    pub total_lost: u64,
}

impl Link {
    pub(crate) fn new(
        link: &network::Link,
        clock: Clock,
        observations: Observations,
        index: usize,
        seed: u64,
    ) -> Self {
        let service = Service::new(link.rate, clock);
        let gate = Gate::new(link, clock);
        let loss = Loss::new(link, clock, index, seed);
        let varying = Varying::new(link, clock, index, seed);
        let queues = service.is_finite() || varying.as_ref().is_some_and(|own| own.queues());
        let (admission, discipline) = match link.queue.create(link.rate, clock, index, seed) {
            Code::Arrival(admission) => (admission, None),
            // Without a transmission time nothing queues.
            Code::Departure(discipline) => (Admission::ALL, queues.then_some(discipline)),
        };
        let mut link = Link {
            busy: 0,
            service,
            delay: clock.ticks(link.least_delay().as_nanos()).min(AFTER_END),
            due: observations.first(),
            transparent: false,
            plain: false,
            tapped: false,
            counters: Counters::default(),
            waiting: Ring::default(),
            waiting_bytes: 0,
            admission,
            gate,
            loss,
            scheduled: discipline.map(|discipline| Box::new(Scheduled::managed(discipline))),
            delays: Histogram::default(),
            measured_from: 0,
            left: Left::default(),
            clock,
            observations,
            samples: LinkSamples::default(),
            queues,
            varying,
            late: NO_LIST,
            total_lost: 0,
        };
        link.select_path();
        link
    }

    /// Changes the link to `link`, link number `index` of the network, which differs from a time
    /// on that is later than [`reach`](Self::reach).
    pub(crate) fn change(&mut self, link: &network::Link, index: usize, seed: u64) {
        self.delay = self.clock.ticks(link.least_delay().as_nanos()).min(AFTER_END);
        let mut loss = Loss::new(link, self.clock, index, seed);
        if let (Some(loss), Some(before)) = (&mut loss, self.loss.take()) {
            loss.resume(*before);
        }
        self.loss = loss;
        let mut varying = Varying::new(link, self.clock, index, seed);
        if let Some(varying) = &mut varying {
            let before = self.varying.take().map(|before| *before);
            let waiting = (0..self.waiting.len()).map(|index| self.waiting.get(index));
            let waiting = waiting.map(|packet| (packet.starts, packet.size));
            varying.resume(before, self.busy, waiting);
        }
        self.varying = varying;
        self.select_path();
    }

    /// Selects the shortest path that the properties of the link permit.
    fn select_path(&mut self) {
        self.plain = self.scheduled.is_none() && !self.is_impaired();
        self.transparent = self.plain && self.admission.accepts_when_idle();
    }

    /// Whether packets are not only queued and transmitted.
    fn is_impaired(&self) -> bool {
        self.tapped || self.gate.is_some() || self.loss.is_some() || self.varying.is_some()
    }

    /// Selects the scheduled path. Nothing queues at an infinite rate, which needs no events.
    pub(crate) fn schedule_departures(&mut self) {
        if self.queues && self.scheduled.is_none() {
            self.scheduled = Some(Box::new(Scheduled::fifo()));
            self.select_path();
        }
    }

    /// Marks every packet that the link transmits with [`flags::INSPECT`].
    pub(crate) fn set_tapped(&mut self) {
        self.tapped = true;
        self.select_path();
    }

    pub(crate) fn is_tapped(&self) -> bool {
        self.tapped
    }

    /// Departure of the last packet that was transmitted.
    pub(crate) fn departed(&self) -> u64 {
        self.varying.as_ref().map_or(self.busy, |varying| varying.departed)
    }

    /// Time at which the last packet whose departure is known arrives at the far end, or the
    /// transmitter becomes idle.
    pub(crate) fn reach(&self) -> u64 {
        if self.busy == 0 {
            return 0;
        }
        match &self.varying {
            Some(varying) => varying.reach().max(self.busy),
            None => self.busy + self.delay,
        }
    }

    /// Whether others may overtake the last packet that was transmitted.
    pub(crate) fn is_late(&self) -> bool {
        self.varying.as_ref().is_some_and(|varying| varying.late)
    }

    /// Whether a packet may arrive at the far end at the time at which it arrives at the queue.
    pub(crate) fn is_instantaneous(&self) -> bool {
        let takes_time = match &self.varying {
            Some(varying) if varying.queues() => true,
            _ => self.service.takes_time(),
        };
        self.delay == 0 && !takes_time
    }

    /// Whether the departures are events.
    pub(crate) fn is_scheduled(&self) -> bool {
        self.scheduled.is_some()
    }

    /// Receives a packet. Returns the time at which it arrives at the far end, and the flags that
    /// it gains. These include [`flags::DROPPED`] if the queue drops it, and [`flags::QUEUED`] if
    /// the departure is an event: [`enqueue`](Self::enqueue) must follow.
    ///
    /// The packet is passed by value: a reference would force it out of registers.
    #[inline(always)]
    pub(crate) fn receive(&mut self, now: u64, packet: Packet) -> (u64, u16) {
        if self.transparent && now < self.due && self.busy < now {
            return (self.transmit(now, u64::from(packet.size())), 0);
        }
        self.receive_at_queue(now, packet)
    }

    /// Transmits a packet from `start` on at a constant rate and delay. Returns the time at which
    /// it arrives at the far end.
    #[inline(always)]
    fn transmit(&mut self, start: u64, size: u64) -> u64 {
        self.counters.accepted += 1;
        self.counters.bytes += size;
        self.busy = start + self.service.time(size);
        self.busy + self.delay
    }

    /// Occupies the transmitter from `start` on with a packet that arrived at `arrived`. Returns
    /// the time at which the packet arrives at the far end.
    #[inline(always)]
    fn occupy(&mut self, arrived: u64, start: u64, size: u64, flags: u16) -> u64 {
        if self.varying.is_some() {
            return self.occupy_varying([arrived, start], size, flags);
        }
        self.busy = start + self.service.time(size);
        self.busy + self.delay
    }

    #[cold]
    #[inline(never)]
    fn occupy_varying(&mut self, times: [u64; 2], size: u64, flags: u16) -> u64 {
        let waiting = self.waiting.len();
        let Some(varying) = &mut self.varying else { return NONE };
        let Transmission { free, arrives } =
            varying.transmit(self.service, times, waiting, (size, flags));
        self.busy = free;
        arrives
    }

    #[inline(never)]
    fn receive_at_queue(&mut self, now: u64, packet: Packet) -> (u64, u16) {
        if now >= self.due {
            self.observe(now);
        }
        if !self.plain {
            if self.scheduled.is_some() {
                return (NONE, flags::QUEUED);
            }
            return self.receive_impaired(now, packet);
        }
        let size = u64::from(packet.size());
        self.advance(now);
        let occupancy = Occupancy { packets: self.waiting.len(), bytes: self.waiting_bytes };
        let gained = self.admit(now, occupancy, size, packet.flags());
        if gained & flags::DROPPED != 0 {
            return (NONE, gained);
        }
        let start = self.wait(now, size);
        (self.transmit(start, size), gained)
    }

    /// Receives a packet on an impaired link.
    #[inline(never)]
    fn receive_impaired(&mut self, now: u64, packet: Packet) -> (u64, u16) {
        if self.is_gated(now, packet) {
            return (NONE, self.count_drop());
        }
        let size = u64::from(packet.size());
        self.advance(now);
        let occupancy = Occupancy { packets: self.waiting.len(), bytes: self.waiting_bytes };
        let mut gained = self.admit(now, occupancy, size, packet.flags());
        if gained & flags::DROPPED != 0 {
            return (NONE, gained);
        }
        gained |= self.draw_loss(now, packet.flags());
        let start = self.wait(now, size);
        self.counters.accepted += 1;
        self.counters.bytes += size;
        let arrives = self.occupy(now, start, size, packet.flags());
        if self.tapped || self.is_late() {
            gained |= flags::INSPECT;
        }
        (arrives, gained)
    }

    /// Appends a packet that arrives at `now` to the queue if the transmitter is busy. Returns the
    /// start of its transmission.
    #[inline(always)]
    fn wait(&mut self, now: u64, size: u64) -> u64 {
        if self.is_busy(now) {
            let wait = self.busy - now;
            self.counters.waited += u128::from(wait);
            self.delays.add(self.clock.nanos(wait));
            self.waiting.push(Waiting { starts: self.busy, size });
            self.waiting_bytes += size;
        }
        self.busy.max(now).min(AFTER_END)
    }

    /// Lets the discipline decide on a packet that finds `occupancy` in the queue. Returns the
    /// flags that the packet gains.
    #[inline(always)]
    fn admit(&mut self, now: u64, occupancy: Occupancy, size: u64, flags: u16) -> u16 {
        if !self.queues {
            return 0;
        }
        let idle = if self.is_busy(now) { None } else { Some(now - self.busy) };
        match self.admission.admit(occupancy, idle, size, flags & flags::ECT != 0) {
            Action::Accept => 0,
            Action::Mark => {
                self.counters.marks += 1;
                flags::CE
            }
            Action::Drop => self.count_drop(),
        }
    }

    /// Whether a packet is dropped before the queue.
    #[inline(always)]
    fn is_gated(&mut self, now: u64, packet: Packet) -> bool {
        self.gate.as_mut().is_some_and(|gate| gate.drops(now, packet))
    }

    fn count_drop(&mut self) -> u16 {
        self.counters.drops += 1;
        self.total_lost += 1;
        flags::DROPPED
    }

    /// Whether the transmitter is busy. A packet that departs at `now` still occupies it. At an
    /// infinite rate it never is.
    #[inline(always)]
    fn is_busy(&self, now: u64) -> bool {
        self.busy >= now && self.queues && self.busy > 0
    }

    /// Draws the loss of a packet. Returns the flag that it gains.
    #[inline(always)]
    fn draw_loss(&mut self, now: u64, flags: u16) -> u16 {
        if !self.loss.as_mut().is_some_and(|loss| loss.loses(now, flags)) {
            return 0;
        }
        self.counters.losses += 1;
        self.total_lost += 1;
        flags::LOST
    }

    /// Removes the packets from the queue whose transmission started before `now`.
    #[inline(always)]
    fn advance(&mut self, now: u64) {
        while self.waiting.len() > 0 && self.waiting.get(0).starts < now {
            self.waiting_bytes -= self.waiting.pop().size;
        }
    }

    /// Packets in the queue at `now`, without the one in transmission.
    pub(crate) fn queue_length(&mut self, now: u64) -> u32 {
        if let Some(scheduled) = &self.scheduled {
            return saturate32(scheduled.occupancy().packets);
        }
        self.advance(now);
        saturate32(self.waiting.len())
    }

    /// The earliest arrival at the far end of a packet that is not in flight yet, if the link
    /// receives none before `from`.
    pub(crate) fn earliest_arrival(&self, from: u64) -> u64 {
        // A packet that waits departs in an event, which may be before `from`.
        let from = if self.is_queueing() { self.busy } else { from };
        self.busy.max(from) + self.delay
    }

    /// Takes the samples up to `now` and begins the measurement if the warm-up has ended.
    #[cold]
    #[inline(never)]
    pub(crate) fn observe(&mut self, now: u64) {
        while self.due <= now {
            let at = self.due;
            let length = self.queue_length(at);
            if self.observations.is_sample(at) {
                self.samples.take(length, self.total_lost);
            }
            if self.observations.is_warmup(at) {
                self.begin_measurement(at);
            }
            self.due = self.observations.after(at);
        }
    }

    /// Resets the counters to the packets in the queue at `now`.
    pub(crate) fn begin_measurement(&mut self, now: u64) {
        self.measured_from = now;
        self.counters = match &mut self.scheduled {
            Some(scheduled) => scheduled.begin_measurement(now),
            None => self.queued(now),
        };
        self.left = self.left(now);
        self.delays.clear();
    }

    /// What is left at `now` of the packet in transmission, after the packets that start before.
    fn left(&self, now: u64) -> Left {
        let waiting = self.waiting.len();
        match &self.varying {
            Some(varying) if varying.queues() => varying.left(self.service, now, waiting),
            _ if waiting > 0 => self.service.left(now, self.waiting.get(0).starts),
            _ => self.service.left(now, self.busy),
        }
    }

    /// The packets in the queue at `now` and the rest of their waiting time, which a measurement
    /// that ends at `now` excludes.
    pub(crate) fn queued(&mut self, now: u64) -> Counters {
        if self.scheduled.is_some() {
            return self.drain(now);
        }
        self.advance(now);
        let mut queued = Counters::default();
        for index in 0..self.waiting.len() {
            let Waiting { starts, size } = self.waiting.get(index);
            queued.waited += u128::from(starts - now);
            queued.accepted += 1;
            queued.early += 1;
            queued.bytes += size;
        }
        self.exclude_waiting();
        queued
    }

    /// Whether delays are those of transmitted packets only, although they are known at the
    /// arrival.
    fn excludes_waiting(&self) -> bool {
        self.varying.as_ref().is_some_and(|varying| varying.queues())
    }

    /// Excludes the delays of the packets in the queue if the rate varies.
    fn exclude_waiting(&mut self) {
        let Some(varying) = self.varying.as_ref().filter(|varying| varying.queues()) else {
            return;
        };
        let waiting = self.waiting.len();
        for (index, arrived) in varying.arrivals(waiting).enumerate() {
            let starts = self.waiting.get(index).starts;
            let begin = arrived.max(self.measured_from);
            self.counters.untransmitted += 1;
            self.counters.untransmitted_wait += u128::from(starts - begin);
            if arrived >= self.measured_from {
                self.delays.remove(self.clock.nanos(starts - arrived));
            }
        }
    }

    /// The samples as columns of the records: queue length in packets, and packets dropped and lost
    /// so far.
    pub(crate) fn sample_columns(&self) -> [Vec<f64>; 2] {
        self.samples.columns()
    }

    /// Writes the figures of a measurement that ends at `end`, at a mean rate of `rate` bits per
    /// second without a shaper.
    pub(crate) fn summarise(&mut self, end: u64, rate: Option<f64>, record: &mut LinkRecord) {
        self.advance(end);
        let last = self.left(end);
        let queued = self.queued(end);
        let counters = &self.counters;
        let window = end - self.measured_from;
        let seconds = self.clock.seconds(window);
        record.arrivals = counters.accepted + counters.drops - counters.early;
        let decides_later = self.scheduled.as_ref().is_some_and(|own| own.is_managed());
        record.offered = record.arrivals + if decides_later { counters.early } else { 0 };
        record.departures = counters.accepted - queued.accepted;
        record.drops = counters.drops;
        record.marks = counters.marks;
        record.losses = counters.losses;
        let bytes = counters.bytes - queued.bytes;
        record.bytes_departed = bytes as f64 + self.left.bytes - last.bytes;
        record.utilization = match &self.varying {
            Some(varying) if varying.queues() => {
                let offered = rate.map_or(f64::INFINITY, |rate| rate * seconds / 8.0);
                let offered = offered.min(varying.tokens(window, self.left, last));
                // Integrals are not exact.
                (record.bytes_departed / offered * 1e12).round() / 1e12
            }
            _ if self.service.is_finite() => {
                let carried = self.left.ticks.cast_signed() - last.ticks.cast_signed();
                self.service.share(bytes, carried, window)
            }
            _ => f64::NAN,
        };
        record.mean_queue = self.clock.seconds_in(counters.waited - queued.waited) / seconds;
        // At a constant rate, a packet's wait counts at its arrival with the disciplines that
        // decide then.
        let arrived = counters.accepted - counters.untransmitted;
        let zeros = arrived.saturating_sub(self.delays.count());
        let quantile = |fraction| self.delays.quantile(fraction, zeros) / 1e9;
        let waited = counters.waited - counters.untransmitted_wait;
        let mean = self.clock.seconds_in(waited) / arrived as f64;
        let [p50, p95, p99] = [0.5, 0.95, 0.99].map(quantile);
        record.delay = Delay { mean, p50, p95, p99 };
    }
}

#[cfg(test)]
mod tests;
