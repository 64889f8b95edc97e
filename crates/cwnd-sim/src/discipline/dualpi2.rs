//! Coupled dual queue with a PI² controller (RFC 9332, appendix A), with overload protection
//! (appendix A.2).
//!
//! The scheduler is the weighted round robin of Linux's `sch_dualpi2`, by bytes: its credit changes
//! while both queues have packets, and is reset in favour of the L4S queue when the link is idle.
//! Marks and drops are those of the RFC's function `recur`: spaced evenly and without randomness.

use super::interface::{
    Discipline, Effects, Fifo, Occupancy, Queued, Updates, check_gains, check_update, exceeds,
};
use super::table::{LinkUse, MIN_DEFAULT, QueueLimit, QueueTable};
use crate::cast::whole;
use crate::check::{Checked, check_positive, check_probability, check_size, check_spans, invalid};
use crate::clock::Clock;
use crate::packet::flags;
use crate::units::{Probability, Span};
use cwnd::Dur;

pub(super) const KEYS: &[&str] = &[
    "target",
    "alpha",
    "beta",
    "rtt_max",
    "tupdate",
    "k",
    "min_th",
    "range",
    "th_len",
    "classic_protection",
];

/// Default limit in seconds at the rate of the link.
const BUFFER: f64 = 0.25;
/// The largest coupling factor.
const MAX_COUPLING: f64 = 100.0;

/// The largest marking probability of the L4S queue, from which on packets are dropped.
const P_L_MAX: f64 = 1.0;

/// DualPI2's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2 {
    /// The largest queue of both queues together.
    pub limit: QueueLimit,
    /// Target queueing delay of the Classic queue.
    pub target: Dur,
    /// Time between updates of the base probability (`Tupdate`).
    pub tupdate: Dur,
    /// Integral gain in Hz.
    pub alpha: f64,
    /// Proportional gain in Hz.
    pub beta: f64,
    /// Coupling factor.
    pub k: f64,
    /// Queueing delay of the L4S queue above which packets are marked (`minTh`).
    pub min_th: Dur,
    /// Width of the ramp of the marking probability from 0 to 1 (`range`); 0 for a step.
    pub range: Dur,
    /// Packets in the L4S queue up to which its own AQM does not mark (`Th_len`).
    pub th_len: u32,
    /// Share of the Classic queue in the weighted round robin while both queues have packets (RFC
    /// 9332 section 4.2.2).
    pub classic_protection: f64,
    /// Size of the largest packet in bytes (`MTU`). A packet is accepted if one of this size fits.
    pub mtu: u32,
}

impl DualPi2 {
    pub(super) fn new(table: &QueueTable, link: &LinkUse) -> Checked<Self> {
        let default_limit = match link.rate {
            None => QueueLimit::INFINITE,
            Some(rate) => {
                let least = u64::from(MIN_DEFAULT) * u64::from(link.packet);
                QueueLimit::Bytes(whole(rate / 8.0 * BUFFER).max(least))
            }
        };
        let target = table.target.map_or(Dur::from_millis(15), Span::dur);
        let rtt_max = table.rtt_max.map_or(Dur::from_millis(100), Span::dur);
        if rtt_max.is_zero() {
            return invalid("rtt_max", "must be above zero");
        }
        let third = Dur::from_nanos(rtt_max.as_nanos() / 3);
        let tupdate = table.tupdate.map_or(target.min(third), Span::dur);
        let rtt = rtt_max.as_secs();
        Ok(DualPi2 {
            limit: table.limit(link)?.unwrap_or(default_limit),
            target,
            tupdate,
            alpha: table.alpha.unwrap_or(0.1 * tupdate.as_secs() / (rtt * rtt)),
            beta: table.beta.unwrap_or(0.3 / rtt),
            k: table.k.unwrap_or(2.0),
            min_th: table.min_th.map_or(Dur::from_micros(800), Span::dur),
            range: table.range.map_or(Dur::from_micros(400), Span::dur),
            th_len: table.th_len.unwrap_or(1),
            classic_protection: table.classic_protection.map_or(0.1, Probability::get),
            mtu: link.packet,
        })
    }

    pub(super) fn check(&self) -> Checked {
        check_positive([("target", self.target)])?;
        check_update("tupdate", self.tupdate)?;
        check_gains([("alpha", self.alpha), ("beta", self.beta)])?;
        if !(self.k > 0.0 && self.k <= MAX_COUPLING) {
            return invalid("k", format!("{} is not above 0 and at most {MAX_COUPLING}", self.k));
        }
        check_spans([("min_th", self.min_th), ("range", self.range)])?;
        check_probability("classic_protection", self.classic_protection)?;
        check_size("mtu", self.mtu)
    }
}

/// One of the two queues.
#[derive(Clone, Default)]
pub(super) struct Half {
    queue: Fifo,
    /// Sum of the probabilities of the packets since the last mark or drop.
    pub(super) count: f64,
}

impl Half {
    /// Returns true for a fraction `likelihood` of the calls.
    fn recur(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        let recurs = self.count > 1.0;
        if recurs {
            self.count -= 1.0;
        }
        recurs
    }

    fn is_empty(&self) -> bool {
        self.queue.packets.is_empty()
    }

    /// Time for which the first packet has waited.
    fn delay(&self, now: u64) -> u64 {
        self.queue.first().map_or(0, |first| first.sojourn(now))
    }
}

#[derive(Clone)]
pub(super) struct DualPi2Queue {
    dualpi2: DualPi2,
    /// Seconds.
    target: f64,
    min_th: u64,
    range: u64,
    /// The Classic drop probability from which ECN is disabled: that at which the L4S queue is
    /// saturated.
    p_c_max: f64,
    clock: Clock,
    updates: Updates,
    pub(super) l4s: Half,
    classic: Half,
    /// Base probability `p'`.
    pub(super) base: f64,
    /// Queueing delay at the last update in seconds.
    prev_delay: f64,
    /// Bytes times shares. The Classic queue is served while it is above zero.
    credit: f64,
}

impl DualPi2Queue {
    pub(super) fn new(dualpi2: &DualPi2, clock: Clock) -> Self {
        let ticks = |span: Dur| clock.ticks(span.as_nanos());
        let mut queue = DualPi2Queue {
            dualpi2: *dualpi2,
            target: dualpi2.target.as_secs(),
            min_th: ticks(dualpi2.min_th),
            range: ticks(dualpi2.range),
            p_c_max: (1.0 / (dualpi2.k * dualpi2.k)).min(1.0),
            clock,
            updates: Updates::new(ticks(dualpi2.tupdate)),
            l4s: Half::default(),
            classic: Half::default(),
            base: 0.0,
            prev_delay: 0.0,
            credit: 0.0,
        };
        queue.reset_credit();
        queue
    }

    fn reset_credit(&mut self) {
        self.credit = f64::from(self.dualpi2.mtu) * (2.0 * self.dualpi2.classic_protection - 1.0);
    }

    /// Makes up for the updates of the base probability until `now`. At each of them, the queues
    /// are as now.
    pub(super) fn update(&mut self, now: u64) {
        while let Some(at) = self.updates.due(now) {
            let delay = self.clock.seconds(self.classic.delay(at).max(self.l4s.delay(at)));
            let before = (self.base, self.prev_delay);
            let change = self.dualpi2.alpha * (delay - self.target)
                + self.dualpi2.beta * (delay - self.prev_delay);
            self.base = (self.base + change).clamp(0.0, 1.0);
            self.prev_delay = delay;
            if before == (self.base, self.prev_delay) && self.is_empty() {
                self.updates.skip(now);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.l4s.is_empty() && self.classic.is_empty()
    }

    /// Returns the probability of the L4S queue's own AQM for a packet with this queueing delay: a
    /// ramp.
    fn laqm(&self, delay: u64) -> f64 {
        if delay >= self.min_th + self.range {
            1.0
        } else if delay > self.min_th {
            (delay - self.min_th) as f64 / self.range as f64
        } else {
            0.0
        }
    }

    /// Whether the scheduler selects the L4S queue. Its credit counts while both queues have
    /// packets.
    fn selects_l4s(&self) -> bool {
        !self.l4s.is_empty() && (self.classic.is_empty() || self.credit <= 0.0)
    }

    /// Removes the first packet of the L4S queue. `None` if it is dropped.
    fn dequeue_l4s(&mut self, now: u64, effects: &mut Effects) -> Option<Queued> {
        // The first packet counts.
        let long = self.l4s.queue.packets.len() > self.dualpi2.th_len as usize;
        let mut queued = self.l4s.queue.pop()?;
        let coupled = self.dualpi2.k * self.base;
        if coupled < P_L_MAX {
            let native = if long { self.laqm(queued.sojourn(now)) } else { 0.0 };
            if self.l4s.recur(native.max(coupled)) {
                effects.mark(&mut queued);
            }
        } else if self.l4s.recur(self.base * self.base) {
            effects.drop(queued);
            return None;
        } else {
            // A probability of 1: `recur` would always be true.
            effects.mark(&mut queued);
        }
        Some(queued)
    }

    /// Removes the first packet of the Classic queue. `None` if it is dropped.
    fn dequeue_classic(&mut self, effects: &mut Effects) -> Option<Queued> {
        let mut queued = self.classic.queue.pop()?;
        let p_c = self.base * self.base;
        if self.classic.recur(p_c) {
            if !queued.is_capable() || p_c >= self.p_c_max {
                effects.drop(queued);
                return None;
            }
            effects.mark(&mut queued);
        }
        Some(queued)
    }
}

impl Discipline for DualPi2Queue {
    fn enqueue(&mut self, queued: Queued, _: u32, effects: &mut Effects) {
        self.update(queued.enqueued_at);
        // A packet of the largest size must fit, so that large packets are not dropped more often
        // than small ones.
        if exceeds(self.dualpi2.limit, self.occupancy(), u64::from(self.dualpi2.mtu)) {
            effects.drop(queued);
            return;
        }
        // ECT(1) or CE.
        let l4s = queued.packet.flags() & (flags::ECT1 | flags::CE) != 0;
        let half = if l4s { &mut self.l4s } else { &mut self.classic };
        half.queue.push(queued);
    }

    fn bypass(&mut self, _: u64) -> bool {
        self.reset_credit();
        false
    }

    fn dequeue(&mut self, now: u64, effects: &mut Effects) -> Option<Queued> {
        self.update(now);
        while !self.is_empty() {
            let both = !self.l4s.is_empty() && !self.classic.is_empty();
            let (packet, share) = if self.selects_l4s() {
                (self.dequeue_l4s(now, effects), self.dualpi2.classic_protection)
            } else {
                (self.dequeue_classic(effects), self.dualpi2.classic_protection - 1.0)
            };
            if let Some(queued) = packet {
                if both {
                    self.credit += share * f64::from(queued.packet.size());
                }
                return Some(queued);
            }
        }
        None
    }

    fn visit(&self, each: &mut dyn FnMut(&Queued)) {
        self.classic.queue.visit(each);
        self.l4s.queue.visit(each);
    }

    fn occupancy(&self) -> Occupancy {
        let [l4s, classic] = [&self.l4s, &self.classic].map(|half| half.queue.occupancy());
        Occupancy { packets: l4s.packets + classic.packets, bytes: l4s.bytes + classic.bytes }
    }
}
