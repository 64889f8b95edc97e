//! Proportional integral controller enhanced (RFC 8033).
//!
//! The queueing delay is that of the packet dequeued last, from its timestamps (section 5.2). The optional elements of section 5 that
//! are used: ECN (5.1), timestamps (5.2), de-randomisation (5.4) and the cap on increases (5.5).

use super::{Discipline, Effects, Fifo, Queued, Updates, exceeds};
use crate::engine::clock::Clock;
use crate::engine::link::admission::Occupancy;
use crate::network::{self, QueueLimit};
use crate::rng::Rng;

/// Sums of drop probabilities up to which no packet is dropped, and from which each is (section 5.4).
const PROB_LOW: f64 = 0.85;
const PROB_HIGH: f64 = 8.5;
/// Factor of the drop probability at each update after an idle one (section 4.2).
const DECAY: f64 = 0.98;
/// Drop probabilities below which changes are divided (section 4.2, auto-tuning).
const TUNING: [(f64, f64); 6] =
    [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (0.1, 2.0)];
/// The largest increase while the drop probability is at least 0.1 (section 5.5).
const CAP: f64 = 0.02;

pub(super) struct Pie {
    limit: QueueLimit,
    /// Seconds.
    qdelay_ref: f64,
    alpha: f64,
    beta: f64,
    max_burst: u64,
    /// Probability up to which ECN-capable packets are marked; `None` without ECN.
    mark_ecnth: Option<f64>,
    mean_pktsize: u64,
    clock: Clock,
    updates: Updates,
    queue: Fifo,
    drop_prob: f64,
    /// Sum of the drop probabilities of the packets since the last drop.
    accu_prob: f64,
    /// Queueing delay now and at the last update in seconds.
    current_qdelay: f64,
    qdelay_old: f64,
    burst_allowance: u64,
    rng: Rng,
}

impl Pie {
    pub(super) fn new(pie: &network::Pie, clock: Clock, rng: Rng) -> Self {
        Pie {
            limit: pie.limit,
            qdelay_ref: pie.qdelay_ref.as_secs(),
            alpha: pie.alpha,
            beta: pie.beta,
            max_burst: clock.ticks(pie.max_burst.as_nanos()),
            mark_ecnth: pie.ecn.then_some(pie.mark_ecnth),
            mean_pktsize: u64::from(pie.mean_pktsize),
            clock,
            updates: Updates::new(clock.ticks(pie.t_update.as_nanos())),
            queue: Fifo::default(),
            drop_prob: 0.0,
            accu_prob: 0.0,
            current_qdelay: 0.0,
            qdelay_old: 0.0,
            burst_allowance: clock.ticks(pie.max_burst.as_nanos()),
            rng,
        }
    }

    /// Makes up for the updates until `now`.
    pub(super) fn update(&mut self, now: u64) {
        while self.updates.due(now).is_some() {
            let before = (self.drop_prob, self.qdelay_old, self.burst_allowance);
            self.update_once();
            if before == (self.drop_prob, self.qdelay_old, self.burst_allowance) {
                // Nothing changes until a packet departs.
                self.updates.skip(now);
            }
        }
    }

    /// Updates the drop probability (section 4.2) and the burst allowance (section 4.4).
    fn update_once(&mut self) {
        let (current, old) = (self.current_qdelay, self.qdelay_old);
        let mut p = self.alpha * (current - self.qdelay_ref) + self.beta * (current - old);
        if let Some((_, divisor)) = TUNING.iter().find(|(below, _)| self.drop_prob < *below) {
            p /= divisor;
        } else {
            p = p.min(CAP);
        }
        self.drop_prob += p;
        if current == 0.0 && old == 0.0 {
            self.drop_prob *= DECAY;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = current;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.updates.interval);
    }

    /// Whether the delay has been short for two updates.
    fn is_relaxed(&self) -> bool {
        let half = self.qdelay_ref / 2.0;
        self.drop_prob == 0.0 && self.current_qdelay < half && self.qdelay_old < half
    }

    /// Whether the next packet is dropped or marked (sections 4.1 and 5.4).
    fn drops_early(&mut self) -> bool {
        let short = self.qdelay_old < self.qdelay_ref / 2.0 && self.drop_prob < 0.2;
        if short || self.queue.bytes <= 2 * self.mean_pktsize {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < PROB_LOW {
            return false;
        }
        let drops = self.accu_prob >= PROB_HIGH || self.rng.chance(self.drop_prob);
        if drops {
            self.accu_prob = 0.0;
        }
        drops
    }
}

impl Discipline for Pie {
    fn enqueue(&mut self, mut queued: Queued, _: u32, effects: &mut Effects) {
        self.update(queued.enqueued_at);
        if exceeds(self.limit, self.queue.occupancy(), queued.size()) {
            effects.drop(queued);
            return;
        }
        if self.is_relaxed() {
            self.burst_allowance = self.max_burst;
        }
        if self.burst_allowance == 0 && self.drops_early() {
            if queued.is_capable() && self.mark_ecnth.is_some_and(|most| self.drop_prob <= most) {
                effects.mark(&mut queued);
            } else {
                effects.drop(queued);
                return;
            }
        }
        self.queue.push(queued);
    }

    fn dequeue(&mut self, now: u64, _: &mut Effects) -> Option<Queued> {
        self.update(now);
        let queued = self.queue.pop()?;
        let empty = self.queue.packets.is_empty();
        self.current_qdelay = if empty { 0.0 } else { self.clock.seconds(queued.sojourn(now)) };
        Some(queued)
    }

    fn visit(&self, each: &mut dyn FnMut(&Queued)) {
        self.queue.visit(each);
    }

    fn occupancy(&self) -> Occupancy {
        self.queue.occupancy()
    }
}
