//! Sources that nobody answers: constant bit rate on a schedule, and Pareto on and off.

use crate::engine::net::Net;
use crate::engine::packet::{Packet, flags};
use crate::network::Traffic;
use crate::rng::Rng;
use crate::tcp::sender::Place;
use cwnd::Dur;

enum Pattern {
    Always,
    Schedule { on: u64, off: u64 },
    Pareto { on: f64, off: f64, shape: f64 },
}

pub(crate) struct Source {
    hop: u32,
    timer: usize,
    size: u16,
    /// Ticks between packets.
    gap: f64,
    jitter: f64,
    pattern: Pattern,
    rng: Rng,
    /// When the running burst ends.
    burst_end: u64,
    /// When the next packet is due, with its fraction of a tick.
    due: f64,
    stopped: bool,
    pub sent: u64,
    /// Packets sent before the measurement.
    pub base: u64,
    pub arrived: u64,
}

impl Source {
    pub fn new(traffic: &Traffic, place: Place, seed: u64) -> Option<Self> {
        let Place { clock, flow, hop, timer } = place;
        let ticks = |dur: &Dur| clock.ticks(dur.as_nanos());
        let (rate, packet, jitter, pattern) = match traffic {
            Traffic::Tcp(_) | Traffic::Udt(_) => return None,
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
        Some(Source {
            hop,
            timer,
            size: packet as u16,
            gap: f64::from(packet) * clock.ticks_in(8.0) / rate,
            jitter,
            pattern,
            rng: Rng::new(seed, "source", u64::from(flow)),
            burst_end: 0,
            due: 0.0,
            stopped: false,
            sent: 0,
            base: 0,
            arrived: 0,
        })
    }

    pub fn start(&mut self, net: &mut Net, now: u64) {
        self.due = now as f64;
        self.burst_end = match self.pattern {
            Pattern::Always => u64::MAX,
            Pattern::Schedule { on, .. } => now + on,
            Pattern::Pareto { on, shape, .. } => now + self.rng.pareto(on, shape) as u64,
        };
        self.wake(net, now);
    }

    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// The timer fired: a packet is due.
    pub fn wake(&mut self, net: &mut Net, now: u64) {
        if self.stopped {
            return;
        }
        if now >= self.burst_end {
            self.next_burst();
        } else {
            let (hop, size) = (self.hop, self.size);
            let seq = self.sent as u32;
            self.sent += 1;
            net.send(now, Packet::new(seq, hop, 0, size, flags::DATAGRAM));
            let spread = self.jitter * (self.rng.uniform() - 0.5);
            self.due += self.gap * (1.0 + spread);
        }
        net.arm(self.timer, (self.due as u64).max(now + 1));
    }

    fn next_burst(&mut self) {
        let (off, on) = match self.pattern {
            Pattern::Always => (0, u64::MAX),
            Pattern::Schedule { on, off } => (off, on),
            Pattern::Pareto { on, off, shape } => {
                (self.rng.pareto(off, shape) as u64, self.rng.pareto(on, shape) as u64)
            }
        };
        let begin = self.burst_end.saturating_add(off);
        self.due = begin as f64;
        self.burst_end = begin.saturating_add(on);
    }
}
