//! Sources without feedback: constant bit rate, optionally on a schedule, and Pareto on-off.

use crate::cast::{low32, whole};
use crate::clock::Clock;
use crate::driver::{Meter, Payload};
use crate::endpoint::{Endpoint, Progress};
use crate::engine::net::{Net, Place, TIMERS};
use crate::engine::schedule::NONE;
use crate::network::Traffic;
use crate::packet::{Packet, flags};
use crate::record::FlowRecord;
use crate::rng::Rng;
use cwnd::{Dur, Output, Time};

#[derive(Clone)]
enum Pattern {
    Always,
    Schedule { on: u64, off: u64 },
    Pareto { on: f64, off: f64, shape: f64 },
}

/// The departure times of a source, in ticks.
#[derive(Clone)]
struct Timetable {
    /// Ticks between packets.
    gap: f64,
    jitter: f64,
    pattern: Pattern,
    rng: Rng,
    /// End of the current burst.
    burst_end: u64,
    /// Time of the next departure, with a fraction of a tick.
    due: f64,
}

impl Timetable {
    fn new(traffic: &Traffic, clock: Clock, seed: u64, flow: u32) -> Option<Self> {
        let ticks = |dur: &Dur| clock.ticks(dur.as_nanos());
        let (rate, packet, jitter, pattern) = match traffic {
            Traffic::Tcp(_) | Traffic::Udt(_) | Traffic::Quic(_) => return None,
            Traffic::Cbr { rate, packet, schedule, jitter } => {
                let pattern = match schedule {
                    None => Pattern::Always,
                    Some((on, off)) => Pattern::Schedule { on: ticks(on), off: ticks(off) },
                };
                (*rate, *packet, *jitter, pattern)
            }
            Traffic::Pareto { rate, packet, on, off, shape } => {
                let (on, off) = (ticks(on) as f64, ticks(off) as f64);
                (*rate, *packet, 0.0, Pattern::Pareto { on, off, shape: *shape })
            }
        };
        Some(Timetable {
            gap: f64::from(packet) * clock.ticks_in(8.0) / rate,
            jitter,
            pattern,
            rng: Rng::new(seed, "source", u64::from(flow)),
            burst_end: 0,
            due: 0.0,
        })
    }

    fn start(&mut self, now: u64) {
        self.due = now as f64;
        self.burst_end = match self.pattern {
            Pattern::Always => u64::MAX,
            Pattern::Schedule { on, .. } => now.saturating_add(on),
            Pattern::Pareto { on, shape, .. } => {
                now.saturating_add(whole(self.rng.pareto(on, shape)))
            }
        };
    }

    /// Advances past the departure that is due at `now`. Returns whether a packet departs: at the
    /// end of a burst none does.
    fn step(&mut self, now: u64) -> bool {
        if now >= self.burst_end {
            self.next_burst();
            return false;
        }
        let spread = self.jitter * (self.rng.uniform() - 0.5);
        self.due += self.gap * (1.0 + spread);
        true
    }

    fn next_burst(&mut self) {
        let (off, on) = match self.pattern {
            Pattern::Always => (0, u64::MAX),
            Pattern::Schedule { on, off } => (off, on),
            Pattern::Pareto { on, off, shape } => {
                (whole(self.rng.pareto(off, shape)), whole(self.rng.pareto(on, shape)))
            }
        };
        let begin = self.burst_end.saturating_add(off);
        self.due = begin as f64;
        self.burst_end = begin.saturating_add(on);
    }
}

/// Iterates over the departure times of an open-loop source. They equal those of the simulator with
/// the same seed, to the nanosecond.
///
/// ```
/// use cwnd::{AnyController, Dur, Time};
/// use cwnd_sim::network::Traffic;
/// use cwnd_sim::traffic::Departures;
///
/// let traffic = Traffic::Cbr { rate: 8e6, packet: 1000, schedule: None, jitter: 0.0 };
/// let departures = Departures::new(&traffic, 1, 0, Time::ZERO);
/// let millis: Vec<_> = departures.take(3).map(|at| at.as_nanos() / 1_000_000).collect();
/// assert_eq!(millis, [0, 1, 2]);
/// ```
#[derive(Clone)]
pub struct Departures {
    /// `None` for traffic with feedback, which has no departure times of its own, and for invalid
    /// traffic.
    table: Option<Timetable>,
}

/// The clock of [`Departures`], in ticks of 2⁻¹⁰ ns.
const CLOCK: Clock = Clock::widest(Dur::from_nanos((1 << 52) - 1));

impl Departures {
    /// Returns the departures of flow number `flow`, which starts at `start`. Traffic with feedback
    /// and invalid traffic have none.
    pub fn new(traffic: &Traffic, seed: u64, flow: u32, start: Time) -> Self {
        let valid = traffic.check().is_ok();
        let mut table = valid.then(|| Timetable::new(traffic, CLOCK, seed, flow)).flatten();
        if let Some(table) = &mut table {
            table.start(CLOCK.ticks(start.as_nanos()));
        }
        Departures { table }
    }
}

impl Iterator for Departures {
    type Item = Time;

    fn next(&mut self) -> Option<Time> {
        let table = self.table.as_mut()?;
        loop {
            let now = whole(table.due);
            if table.step(now) {
                return Some(CLOCK.time(now));
            }
        }
    }
}

/// A source without feedback, and the counter of its sink.
#[derive(Clone)]
pub(crate) struct Source {
    hop: u32,
    timer: usize,
    size: u16,
    table: Timetable,
    stopped: bool,
    sent: u64,
    arrived: u64,
}

/// Maximum number of packets that a source sends ahead of the clock. It bounds the memory of
/// packets in flight.
const MAX_AHEAD: usize = 64;

impl Source {
    pub(crate) fn new(traffic: &Traffic, place: Place, seed: u64) -> Option<Self> {
        let Place { clock, flow, hop, timer, .. } = place;
        let (packet, _) = traffic.packet_bytes();
        Some(Source {
            hop,
            timer,
            size: u16::try_from(packet).unwrap_or(u16::MAX),
            table: Timetable::new(traffic, clock, seed, flow)?,
            stopped: false,
            sent: 0,
            arrived: 0,
        })
    }

    /// Sends the packet that is due, and those that follow as far as the lookahead permits.
    fn send(&mut self, net: &mut Net, mut now: u64) {
        let ahead = net.may_send_ahead(self.hop);
        let until = if ahead { net.source_undisturbed_until(self.timer / TIMERS) } else { now };
        for _ in 0..MAX_AHEAD {
            if self.table.step(now) {
                let seq = low32(self.sent);
                self.sent += 1;
                net.send(now, Packet::new(seq, self.hop, 0, self.size, flags::DATAGRAM));
            }
            let due = whole(self.table.due).max(now + 1);
            now = due;
            if due >= until {
                break;
            }
        }
        net.arm(self.timer, now);
    }
}

impl Endpoint for Source {
    fn fork(&self) -> Option<Box<dyn Endpoint>> {
        Some(Box::new(self.clone()))
    }

    fn start(&mut self, net: &mut Net, now: u64) {
        self.table.start(now);
        self.send(net, now);
    }

    fn stop(&mut self, _: &mut Net, _: u64) {
        self.stopped = true;
    }

    fn wake(&mut self, net: &mut Net, now: u64, _: usize) {
        if !self.stopped {
            self.send(net, now);
        }
    }

    fn receive(&mut self, _: &mut Net, _: u64, _: Packet) -> bool {
        self.arrived += 1;
        false
    }

    fn progress(&self) -> Progress {
        // Headers are not distinguished.
        let payload = |packets| Payload { packets, bytes: packets * u64::from(self.size) };
        Progress {
            sent: payload(self.sent),
            total: None,
            arrived: payload(self.arrived),
            received: self.arrived,
            last_new: NONE,
            marked: 0,
        }
    }

    fn measured(&self) -> Option<(&Meter, Output)> {
        None
    }

    fn finish(self: Box<Self>, _: u64, _: Clock, record: &mut FlowRecord) {
        (record.mean_rtt, record.min_rtt, record.acknowledged) = (f64::NAN, f64::NAN, f64::NAN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_traffic_has_no_departures() {
        let schedule = Some((Dur::ZERO, Dur::ZERO));
        let silent = Traffic::Cbr { rate: 8e6, packet: 1000, schedule, jitter: 0.0 };
        let (on, off) = (Dur::ZERO, Dur::ZERO);
        let pareto = Traffic::Pareto { rate: 8e6, packet: 1000, on, off, shape: 1.5 };
        for traffic in [silent, pareto] {
            assert_eq!(Departures::new(&traffic, 1, 0, Time::ZERO).next(), None);
        }
    }
}
