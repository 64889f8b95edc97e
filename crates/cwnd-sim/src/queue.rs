//! A link of the simulator outside a simulation: the caller passes packets with their arrival times. The emulator of
//! `cwnd-linux` uses it in real time.

pub use crate::engine::histogram::Histogram;

use crate::engine::clock::Clock;
use crate::engine::link::Link;
use crate::engine::observation::Observations;
use crate::engine::packet::flags;
use crate::network::{self, NetworkError};
use crate::record::LinkRecord;
use cwnd::{Dur, Time};

/// The latest time of an arrival: 52 days, in ticks of 2⁻¹⁰ ns.
const LATEST: Dur = Dur::from_nanos((1 << 52) - 1);

/// The properties of a packet that a link uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Size on the wire in bytes.
    pub size: u16,
    /// Whether it is ECN-capable (RFC 3168) and may be marked.
    pub capable: bool,
    /// Whether it carries no data. Random loss then applies only with the link's `loss_of_acks`.
    pub dataless: bool,
}

/// The outcome of an arrival.
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

/// A one-way link.
///
/// ```
/// use cwnd::{Dur, Time};
/// use cwnd_sim::network::{Link, Queue, QueueLimit};
/// use cwnd_sim::queue::{Arrival, Fate, LiveLink};
///
/// let link = Link {
///     name: "one".into(),
///     from: 0,
///     to: 1,
///     rate: Some(12e6),
///     delay: Dur::from_millis(10),
///     queue: Queue::DropTail { limit: QueueLimit::Packets(1) },
///     loss: 0.0,
///     loss_of_acks: false,
///     impairments: None,
/// };
/// let mut live = LiveLink::new(&link, 0, 1)?;
/// let packet = Arrival { size: 1500, capable: false, dataless: false };
/// let passes = |millis| Fate::Passes { arrives: Time::ZERO + Dur::from_millis(millis), marked: false };
/// assert_eq!(live.give(Time::ZERO, packet), passes(11));
/// assert_eq!(live.give(Time::ZERO, packet), passes(12));
/// assert_eq!(live.give(Time::ZERO, packet), Fate::Dropped);
/// # Ok::<(), cwnd_sim::network::NetworkError>(())
/// ```
pub struct LiveLink {
    link: Link,
    clock: Clock,
    rate: Option<f64>,
    /// Time from which the counters count.
    since: Time,
}

impl LiveLink {
    /// Creates link number `index` of a run with this `seed`. It draws the same random numbers as that link of the
    /// simulator.
    ///
    /// # Errors
    /// A link that is not [valid](network::Link::validate).
    pub fn new(link: &network::Link, index: usize, seed: u64) -> Result<Self, NetworkError> {
        link.validate()?;
        let clock = Clock::widest(LATEST);
        let rate = link.rate;
        Ok(LiveLink {
            link: Link::new(link, clock, Observations::none(), index, seed),
            clock,
            rate,
            since: Time::ZERO,
        })
    }

    /// Passes a packet to the queue at `now`. Times must not decrease.
    #[inline]
    pub fn give(&mut self, now: Time, arrival: Arrival) -> Fate {
        let mut known = 0;
        if arrival.capable {
            known |= flags::ECT;
        }
        if arrival.dataless {
            known |= flags::CONTROL;
        }
        let (at, gained) =
            self.link.receive(self.clock.ticks(now.as_nanos()), arrival.size, known, 0);
        if gained & flags::DROPPED != 0 {
            Fate::Dropped
        } else if gained & flags::LOST != 0 {
            Fate::Lost
        } else {
            Fate::Passes { arrives: self.clock.time(at), marked: gained & flags::CE != 0 }
        }
    }

    /// Returns the packets in the queue at `now`, without the one in transmission.
    pub fn waiting(&mut self, now: Time) -> u32 {
        self.link.queue_length(self.clock.ticks(now.as_nanos()))
    }

    /// Returns the packets dropped or lost since the link was created.
    pub fn lost(&self) -> u64 {
        self.link.total_lost
    }

    /// Clears the counters of the record at the end of the warm-up.
    pub fn begin(&mut self, now: Time) {
        self.link.begin_measurement(self.clock.ticks(now.as_nanos()));
        self.since = now;
    }

    /// Returns the record from the end of the warm-up to `now`, without series.
    pub fn record(&mut self, now: Time) -> LinkRecord {
        let mut record = LinkRecord::default();
        let queued = self.link.queued(self.clock.ticks(now.as_nanos()));
        let seconds = now.as_secs() - self.since.as_secs();
        self.link.summarise(queued, self.rate, seconds, &mut record);
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Queue, Traffic};
    use crate::scenario::Scenario;
    use crate::{Options, Simulation};

    /// Runs traffic above the link's rate in the simulator and packet by packet, and returns both records.
    fn both(queue: &str, loss: f64) -> (LinkRecord, LinkRecord) {
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
            loss = {loss}
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
        let Traffic::Cbr { rate, packet, .. } = *network.flows[0].traffic else { unreachable!() };
        let gap = 8.0 * f64::from(packet) / rate;
        let (mut begun, end, warm) = (false, 20.0, 1.0);
        let mut period = 0.0;
        'all: loop {
            let mut number = 0.0;
            while number * gap < 0.7 {
                let at = period * 0.75 + number * gap;
                if at >= end {
                    break 'all;
                }
                if at >= warm && !begun {
                    live.begin(Time::ZERO + Dur::from_secs(warm));
                    begun = true;
                }
                let packet = Arrival { size: 1000, capable: false, dataless: false };
                live.give(Time::ZERO + Dur::from_secs(at), packet);
                number += 1.0;
            }
            period += 1.0;
        }
        (simulated.links[0].clone(), live.record(Time::ZERO + Dur::from_secs(end)))
    }

    fn same(queue: &str, loss: f64) -> LinkRecord {
        let (simulated, live) = both(queue, loss);
        assert_eq!(simulated.arrivals, live.arrivals);
        assert_eq!(simulated.drops, live.drops);
        assert_eq!(simulated.losses, live.losses);
        assert_eq!(simulated.departures, live.departures);
        assert!((simulated.mean_queue - live.mean_queue).abs() < 1e-3 * live.mean_queue);
        live
    }

    #[test]
    fn drops_are_the_simulators() {
        assert!(same("\"20p\"", 0.0).drops > 100);
        assert!(same("\"20kb\"", 0.01).losses > 100);
        assert!(same("{ kind = \"red\", limit = \"40p\", weight = 0.01 }", 0.0).drops > 100);
    }

    #[test]
    fn capable_packets_are_marked() {
        let text = r#"
            duration = "1s"
            [dumbbell]
            rate = "10mbit"
            delay = "1ms"
            queue = { kind = "red", limit = "50p", ecn = true, weight = 0.1 }
            [[flow]]
            controller = "reno"
            "#;
        let network = Scenario::from_toml(text, "red.toml").unwrap().network(1).unwrap();
        assert!(matches!(network.links[0].queue, Queue::Red(red) if red.ecn));
        let mut live = LiveLink::new(&network.links[0], 0, 1).unwrap();
        let mut marked = 0;
        for number in 0..2000 {
            let packet = Arrival { size: 1500, capable: number % 2 == 0, dataless: false };
            let at = Time::ZERO + Dur::from_nanos(1_100_000 * number);
            if let Fate::Passes { marked: true, .. } = live.give(at, packet) {
                assert!(packet.capable);
                marked += 1;
            }
        }
        assert!(marked > 10);
        assert_eq!(live.record(Time::ZERO + Dur::from_secs(3.0)).marks, marked);
    }
}
