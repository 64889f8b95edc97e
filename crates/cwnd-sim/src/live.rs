//! A link of the simulator outside a simulation: the caller offers packets with their arrival times
//! and asks for their fates. The emulator of `cwnd-linux` uses it in real time.

pub use crate::engine::histogram::Histogram;

use crate::clock::Clock;
use crate::engine::link::{Enqueued, Link, capacity};
use crate::engine::observation::Observations;
use crate::network::{self, NetworkError};
use crate::packet::{Packet, flags};
use crate::record::LinkRecord;
use cwnd::{Dur, Time};
use std::collections::VecDeque;

/// The latest time of an arrival: 52 days, in ticks of 2⁻¹⁰ ns.
const LATEST: Dur = Dur::from_nanos((1 << 52) - 1);

/// The ECN field of a packet (RFC 3168, RFC 9331).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECT(0).
    Ect0,
    /// ECT(1), the identifier of L4S.
    Ect1,
    /// Congestion experienced.
    Ce,
}

/// The properties of a packet that a link uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Size on the wire in bytes.
    pub size: u16,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Whether it carries no data. Random loss then applies only with the link's `loss_of_acks`.
    pub dataless: bool,
    /// A hash of its flow, for flow queues.
    pub flow: u32,
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The queue drops the packet.
    Dropped,
    /// The packet is transmitted and lost afterwards.
    Lost,
    /// The packet reaches the end of the link.
    Passes {
        /// Time of arrival at the end of the link.
        arrives: Time,
        /// Whether the queue marked the packet.
        marked: bool,
    },
}

/// A packet whose fate is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The number with which the packet was offered.
    pub id: u32,
    /// Its fate.
    pub fate: Fate,
}

/// A one-way link.
///
/// The fate of a packet is decided at its arrival, or with disciplines that decide at departure,
/// later. The caller [polls](Self::poll) after each [offer](Self::offer) and at the time of the
/// [next departure](Self::next_departure). Changes of the link, models, gates, loss, jitter and
/// reordering are those of the simulator. With reordering, the arrival times of successive packets
/// may decrease: the caller releases packets in the order of their arrival times.
///
/// ```
/// use cwnd::{Dur, Time};
/// use cwnd_sim::network::{Link, Queue, QueueLimit};
/// use cwnd_sim::live::{Arrival, Fate, LiveLink, Outcome};
///
/// let queue = Queue::DropTail { limit: QueueLimit::Packets(1) };
/// let link = Link::new("one", [0, 1], Some(12e6), Dur::from_millis(10), queue);
/// let mut live = LiveLink::new(&link, 0, 1)?;
/// let packet = Arrival { size: 1500, ..Arrival::default() };
/// (0..3).for_each(|id| live.offer(Time::ZERO, id, packet));
/// let passes = |millis| Fate::Passes { arrives: Time::ZERO + Dur::from_millis(millis), marked: false };
/// assert_eq!(live.poll(Time::ZERO), Some(Outcome { id: 0, fate: passes(11) }));
/// assert_eq!(live.poll(Time::ZERO), Some(Outcome { id: 1, fate: passes(12) }));
/// assert_eq!(live.poll(Time::ZERO), Some(Outcome { id: 2, fate: Fate::Dropped }));
/// # Ok::<(), cwnd_sim::network::NetworkError>(())
/// ```
pub struct LiveLink {
    link: Link,
    clock: Clock,
    description: network::Link,
    /// The number of the link and the seed of the run.
    place: (usize, u64),
    /// Time from which the counters count.
    since: Time,
    /// Time of the next departure in ticks, if packets wait for it.
    departure: Option<u64>,
    outcomes: VecDeque<Outcome>,
}

impl LiveLink {
    /// Creates link number `index` of a run with this `seed`. It draws the same random numbers as
    /// that link of the simulator.
    ///
    /// # Errors
    /// A link that is not [valid](network::Link::validate).
    pub fn new(link: &network::Link, index: usize, seed: u64) -> Result<Self, NetworkError> {
        link.validate()?;
        let clock = Clock::widest(LATEST);
        Ok(LiveLink {
            link: Link::new(link, clock, Observations::none(), index, seed),
            clock,
            description: link.clone(),
            place: (index, seed),
            since: Time::ZERO,
            departure: None,
            outcomes: VecDeque::new(),
        })
    }

    /// Offers packet number `id` to the queue at `now`. Times must not decrease.
    #[inline]
    pub fn offer(&mut self, now: Time, id: u32, arrival: Arrival) {
        let now = self.clock.ticks(now.as_nanos());
        // A packet that arrives at the time of a departure precedes it.
        self.depart_until(now.saturating_sub(1));
        let Arrival { size, ecn, dataless, flow } = arrival;
        let known = match ecn {
            Ecn::NotEct => 0,
            Ecn::Ect0 => flags::ECT,
            Ecn::Ect1 => flags::ECT | flags::ECT1,
            Ecn::Ce => flags::ECT | flags::CE,
        } | if dataless { flags::ACK } else { 0 };
        // The hash of the flow stands for its route.
        let packet = Packet::new(id, flow, u32::from(ecn == Ecn::Ce), size, known);
        let (arrives, gained) = self.link.receive(now, packet);
        if gained & flags::QUEUED == 0 {
            return self.decide(id, arrives, gained);
        }
        match self.link.enqueue(now, packet, flow) {
            Enqueued::Dropped => self.decide(id, arrives, flags::DROPPED),
            Enqueued::Waits(departure) => self.departure = self.departure.or(departure),
            Enqueued::Transmitted(arrives, packet) => self.transmitted(arrives, packet),
        }
        self.take_dropped();
    }

    /// Returns a packet whose fate is decided until `now`, in the order of the decisions.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Option<Outcome> {
        self.depart_until(self.clock.ticks(now.as_nanos()));
        self.outcomes.pop_front()
    }

    /// Returns the time of the next departure that decides on packets; `None` if no packet waits
    /// for it.
    #[inline]
    pub fn next_departure(&self) -> Option<Time> {
        // Rounded up: the departure is not after this time.
        self.departure.map(|at| self.clock.time(at + self.clock.ticks(1) - 1))
    }

    /// Decides on the packets that depart until `now`.
    fn depart_until(&mut self, now: u64) {
        while let Some(at) = self.departure.filter(|&at| at <= now) {
            self.departure = None;
            if let Some((arrives, packet, departure)) = self.link.dequeue(at) {
                self.departure = departure;
                self.transmitted(arrives, packet);
            }
            self.take_dropped();
        }
    }

    fn transmitted(&mut self, arrives: u64, packet: Packet) {
        // `aux` is 1 for packets that were marked before.
        let gained = if packet.aux() == 0 { packet.flags() } else { packet.flags() & !flags::CE };
        self.decide(packet.seq(), arrives, gained);
    }

    fn take_dropped(&mut self) {
        while let Some(packet) = self.link.take_dropped() {
            self.decide(packet.seq(), 0, flags::DROPPED);
        }
    }

    fn decide(&mut self, id: u32, arrives: u64, gained: u16) {
        let fate = if gained & flags::DROPPED != 0 {
            Fate::Dropped
        } else if gained & flags::LOST != 0 {
            Fate::Lost
        } else {
            Fate::Passes { arrives: self.clock.time(arrives), marked: gained & flags::CE != 0 }
        };
        self.outcomes.push_back(Outcome { id, fate });
    }

    /// Returns the packets in the queue at `now`, without the one in transmission.
    pub fn waiting(&mut self, now: Time) -> u32 {
        let now = self.clock.ticks(now.as_nanos());
        self.depart_until(now.saturating_sub(1));
        self.link.queue_length(now)
    }

    /// Returns the packets dropped or lost since the link was created.
    pub fn lost(&self) -> u64 {
        self.link.total_lost
    }

    /// Clears the counters of the record at the end of the warm-up.
    pub fn begin(&mut self, now: Time) {
        let ticks = self.clock.ticks(now.as_nanos());
        self.depart_until(ticks.saturating_sub(1));
        self.link.begin_measurement(ticks);
        self.since = now;
    }

    /// Returns the record from the end of the warm-up to `now`, without series. The utilisation is
    /// relative to the mean capacity if the rate varies. The link must not be used afterwards.
    pub fn record(&mut self, now: Time) -> LinkRecord {
        let mut record = LinkRecord::default();
        let ticks = self.clock.ticks(now.as_nanos());
        self.depart_until(ticks.saturating_sub(1));
        let measured = [self.clock.ticks(self.since.as_nanos()), ticks];
        let (rate, _) = capacity(&self.description, self.clock, self.place, measured, &[]);
        self.link.summarise(ticks, rate, &mut record);
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Queue;
    use crate::scenario::Scenario;
    use crate::traffic::Departures;
    use crate::{Options, Simulation};

    /// Runs traffic above the link's rate in the simulator and packet by packet, and returns both
    /// records.
    fn both(queue: &str, rest: &str) -> (LinkRecord, LinkRecord) {
        let text = format!(
            r#"
            duration = "20s"
            warmup = "1s"
            [[link]]
            from = "a"
            to = "b"
            rate = "10mbit"
            delay = "20ms"
            queue = {queue}
            {rest}
            [[cbr]]
            rate = "10.7mbit"
            packet = 1000
            from = "a"
            to = "b"
            on = "700ms"
            off = "50ms"
            measured = true
            "#
        );
        let network = Scenario::from_toml(&text, "both.toml").unwrap().network(7).unwrap();
        let mut simulation = Simulation::new(&network, 7, &Options::default()).unwrap();
        simulation.run();
        let simulated = simulation.finish();
        let mut live = LiveLink::new(&network.links[0], 0, 7).unwrap();
        let [warm, end] = [network.warmup, network.duration].map(|span| Time::ZERO + span);
        let departures = Departures::new(&network.flows[0].traffic, 7, 0, Time::ZERO);
        let mut begun = false;
        for at in departures.take_while(|at| *at < end) {
            if at >= warm && !begun {
                live.begin(warm);
                begun = true;
            }
            live.offer(at, 0, Arrival { size: 1000, ..Arrival::default() });
        }
        (simulated.links[0].clone(), live.record(end))
    }

    fn same(queue: &str, rest: &str) -> LinkRecord {
        let (simulated, live) = both(queue, rest);
        assert_eq!(simulated.arrivals, live.arrivals);
        assert_eq!(simulated.drops, live.drops);
        assert_eq!(simulated.losses, live.losses);
        assert_eq!(simulated.departures, live.departures);
        assert!((simulated.mean_queue - live.mean_queue).abs() < 1e-3 * live.mean_queue);
        assert!((simulated.utilization - live.utilization).abs() < 1e-3 * live.utilization);
        live
    }

    #[test]
    fn drops_are_the_simulators() {
        assert!(same("\"20p\"", "").drops > 100);
        assert!(same("\"20kb\"", "loss = 0.01").losses > 100);
        assert!(same("{ kind = \"red\", limit = \"40p\", weight = 0.01 }", "").drops > 100);
        for kind in ["codel", "fq_codel", "fq", "pie", "dualpi2"] {
            let queue = format!("{{ kind = \"{kind}\", limit = \"30p\" }}");
            assert!(same(&queue, "loss = 0.01").drops > 50, "{kind}");
        }
    }

    /// The utilisation is relative to the rate that the link had, not to the nominal one.
    #[test]
    fn links_that_vary_have_the_simulators_records() {
        let slow = "changes = [{ at = \"2s\", rate = \"2mbit\" }]";
        for queue in ["\"20p\"", "{ kind = \"codel\", limit = \"20p\" }"] {
            let live = same(queue, slow);
            assert!(live.utilization > 0.97 && live.utilization < 1.01, "{queue}: {live:?}");
        }
        same("\"20p\"", "shaper = { rate = \"3mbit\", burst = \"10kb\" }");
    }

    /// Returns the first link of a dumbbell with this rate and delay and another key.
    fn bottleneck(rate: &str, delay: &str, key: &str) -> LiveLink {
        let keys = format!("rate = \"{rate}\"\ndelay = \"{delay}\"\n{key}");
        let text = format!("duration = 1\n[dumbbell]\n{keys}\n[[flow]]\ncontroller = \"reno\"\n");
        let network = Scenario::from_toml(&text, "live.toml").unwrap().network(1).unwrap();
        LiveLink::new(&network.links[0], 0, 1).unwrap()
    }

    /// A packet that takes longer is overtaken by those behind.
    #[test]
    fn packets_are_reordered() {
        let mut live =
            bottleneck("12mbit", "10ms", r#"reorder = { probability = 0.1, delay = "3ms" }"#);
        let arrivals: Vec<_> = (0..100)
            .map(|id| {
                let at = Time::ZERO + Dur::from_millis(u64::from(id));
                live.offer(at, id, Arrival { size: 1500, ..Arrival::default() });
                let Some(Outcome { fate: Fate::Passes { arrives, .. }, .. }) = live.poll(at) else {
                    unreachable!("no loss and no waiting packets");
                };
                arrives.as_nanos() - at.as_nanos()
            })
            .collect();
        let late = arrivals.iter().filter(|&&delay| delay == 14_000_000).count();
        let rest = arrivals.iter().filter(|&&delay| delay == 11_000_000).count();
        assert!(late > 2 && rest == 100 - late, "{arrivals:?}");
    }

    /// Polled at the times of departures, every packet has one outcome, and none before its
    /// departure.
    #[test]
    fn outcomes_come_at_departures() {
        let mut live = bottleneck(
            "12mbit",
            "10ms",
            r#"queue = { kind = "fq_codel", limit = "10p", quantum = 300 }"#,
        );
        let at = |micros| Time::ZERO + Dur::from_micros(micros);
        let packet = |flow, size| Arrival { size, flow, ..Arrival::default() };
        // A packet is transmitted, ten wait, and two small ones of another flow.
        (0..11).for_each(|id| live.offer(Time::ZERO, id, packet(1, 1500)));
        (20..22).for_each(|id| live.offer(Time::ZERO, id, packet(2, 300)));
        let mut outcomes = Vec::new();
        let mut now = Time::ZERO;
        loop {
            while let Some(outcome) = live.poll(now) {
                if let Fate::Passes { arrives, .. } = outcome.fate {
                    // A transmission time and the delay after the departure, both rounded to
                    // nanoseconds.
                    let least = Dur::from_nanos(10_200_000 - 2);
                    assert!(arrives >= now + least);
                }
                outcomes.push(outcome);
            }
            match live.next_departure() {
                Some(next) => now = next,
                None => break,
            }
        }
        assert_eq!(live.waiting(now), 0);
        let passes = |micros| Fate::Passes { arrives: at(micros), marked: false };
        assert_eq!(outcomes[0], Outcome { id: 0, fate: passes(11_000) });
        // The eleventh waiting packet exceeds the limit: half of the first flow is dropped, from
        // its head.
        let dropped = outcomes.iter().filter(|outcome| outcome.fate == Fate::Dropped);
        assert_eq!(dropped.map(|outcome| outcome.id).max(), Some(5));
        // The new flow overtakes.
        let passed: Vec<_> =
            outcomes.iter().filter(|outcome| outcome.fate != Fate::Dropped).collect();
        assert!(passed[..4].iter().any(|outcome| outcome.id == 20), "{passed:?}");
        assert_eq!(outcomes.len(), 13);
    }

    #[test]
    fn capable_packets_are_marked() {
        let mut live = bottleneck(
            "10mbit",
            "1ms",
            r#"queue = { kind = "red", limit = "50p", ecn = true, weight = 0.1 }"#,
        );
        assert!(matches!(live.description.queue, Queue::Red(red) if red.ecn));
        let mut marked = 0;
        for number in 0..2000 {
            let ecn = if number % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
            let packet = Arrival { size: 1500, ecn, ..Arrival::default() };
            let at = Time::ZERO + Dur::from_nanos(1_100_000 * u64::from(number));
            live.offer(at, number, packet);
            if let Some(Outcome { id, fate: Fate::Passes { marked: true, .. } }) = live.poll(at) {
                assert!(id % 2 == 0);
                marked += 1;
            }
        }
        assert!(marked > 10);
        assert_eq!(live.record(Time::ZERO + Dur::from_secs(3.0)).marks, marked);
    }
}
