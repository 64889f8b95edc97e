//! Proportional integral controller enhanced (RFC 8033).
//!
//! The queueing delay is that of the packet dequeued last, from its timestamps (section 4.3), and 0
//! while the queue is empty: otherwise the drop probability would not decay in an idle period. Of
//! the optional elements, ECN (section 5.1), de-randomisation (5.4, unless it is turned off) and
//! the cap on increases (5.5) are used. PIE is always active (5.3 is not used).

use super::interface::{
    Discipline, Effects, Fifo, Occupancy, Queued, Updates, check_gains, check_update, exceeds,
};
use super::table::{LinkUse, QueueLimit, QueueTable, size};
use crate::check::{Checked, check_positive, check_probability, check_size, check_spans};
use crate::clock::Clock;
use crate::rng::Rng;
use crate::units::{Probability, Span};
use cwnd::Dur;

pub(super) const KEYS: &[&str] = &[
    "ecn",
    "qdelay_ref",
    "t_update",
    "max_burst",
    "mark_ecnth",
    "mean_pktsize",
    "derandomize",
    "alpha",
    "beta",
];

/// Sums of drop probabilities below which no packet is dropped, and from which each is (section
/// 5.4).
const PROB_LOW: f64 = 0.85;
const PROB_HIGH: f64 = 8.5;
/// Factor of the drop probability at each update after an idle one (section 4.2).
const DECAY: f64 = 0.98;
/// Drop probabilities below which changes are divided (section 4.2, auto-tuning).
const TUNING: [(f64, f64); 6] =
    [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (0.1, 2.0)];
/// The largest increase while the drop probability is at least 0.1 (section 5.5).
const CAP: f64 = 0.02;

/// PIE's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pie {
    /// The largest queue.
    pub limit: QueueLimit,
    /// Target queueing delay (`QDELAY_REF`).
    pub qdelay_ref: Dur,
    /// Time between updates of the drop probability (`T_UPDATE`).
    pub t_update: Dur,
    /// Weight of the deviation from the target in Hz.
    pub alpha: f64,
    /// Weight of the change of the delay in Hz.
    pub beta: f64,
    /// Time for which a burst after an idle period is not dropped (`MAX_BURST`).
    pub max_burst: Dur,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Probability from which ECN-capable packets are dropped too (`mark_ecnth`).
    pub mark_ecnth: f64,
    /// Mean packet size in bytes (`MEAN_PKTSIZE`). A queue of up to two such packets drops nothing.
    pub mean_pktsize: u32,
    /// Whether drops are spaced more evenly (section 5.4 of RFC 8033).
    pub derandomize: bool,
}

impl Pie {
    pub(super) fn new(table: &QueueTable, link: &LinkUse) -> Checked<Self> {
        Ok(Pie {
            limit: table.limit_or(1000, link)?,
            qdelay_ref: table.qdelay_ref.map_or(Dur::from_millis(15), Span::dur),
            t_update: table.t_update.map_or(Dur::from_millis(15), Span::dur),
            alpha: table.alpha.unwrap_or(0.125),
            beta: table.beta.unwrap_or(1.25),
            max_burst: table.max_burst.map_or(Dur::from_millis(150), Span::dur),
            ecn: table.ecn.unwrap_or(false),
            mark_ecnth: table.mark_ecnth.map_or(0.1, Probability::get),
            mean_pktsize: size(table.mean_pktsize, link.packet),
            derandomize: table.derandomize.unwrap_or(true),
        })
    }

    pub(super) fn check(&self) -> Checked {
        check_positive([("qdelay_ref", self.qdelay_ref)])?;
        check_update("t_update", self.t_update)?;
        check_gains([("alpha", self.alpha), ("beta", self.beta)])?;
        check_spans([("max_burst", self.max_burst)])?;
        check_probability("mark_ecnth", self.mark_ecnth)?;
        check_size("mean_pktsize", self.mean_pktsize)
    }
}

#[derive(Clone)]
pub(super) struct PieQueue {
    pie: Pie,
    /// Seconds.
    qdelay_ref: f64,
    max_burst: u64,
    clock: Clock,
    updates: Updates,
    queue: Fifo,
    drop_prob: f64,
    /// Sum of the drop probabilities of the packets since the last drop or mark.
    accu_prob: f64,
    /// Queueing delay now and at the last update in seconds.
    current_qdelay: f64,
    qdelay_old: f64,
    burst_allowance: u64,
    rng: Rng,
}

impl PieQueue {
    pub(super) fn new(pie: &Pie, clock: Clock, rng: Rng) -> Self {
        PieQueue {
            pie: *pie,
            qdelay_ref: pie.qdelay_ref.as_secs(),
            max_burst: clock.ticks(pie.max_burst.as_nanos()),
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
        let mut p = self.pie.alpha * (current - self.qdelay_ref) + self.pie.beta * (current - old);
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
        if short || self.queue.bytes <= 2 * u64::from(self.pie.mean_pktsize) {
            return false;
        }
        if !self.pie.derandomize {
            return self.rng.chance(self.drop_prob);
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

impl Discipline for PieQueue {
    fn enqueue(&mut self, mut queued: Queued, _: u32, effects: &mut Effects) {
        self.update(queued.enqueued_at);
        if exceeds(self.pie.limit, self.queue.occupancy(), queued.size()) {
            effects.drop(queued);
            self.accu_prob = 0.0;
            return;
        }
        if self.is_relaxed() {
            self.burst_allowance = self.max_burst;
        }
        if self.burst_allowance == 0 && self.drops_early() {
            if self.pie.ecn && queued.is_capable() && self.drop_prob < self.pie.mark_ecnth {
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

#[cfg(test)]
mod tests {
    use super::super::tests::{MS, clock, pie as parameters};
    use super::*;
    use crate::packet::{Packet, flags};

    fn pie(limit: QueueLimit, ecn: bool) -> PieQueue {
        PieQueue::new(&Pie { limit, ecn, ..parameters() }, clock(), Rng::new(1, "pie", 0))
    }

    fn packet(number: u32, flags: u16) -> Queued {
        Queued { packet: Packet::new(number, 0, 0, 1500, flags), enqueued_at: 0 }
    }

    /// Offers a packet with these flags. Returns the packets dropped and marked.
    fn offer(queue: &mut PieQueue, flags: u16) -> (usize, u64) {
        let mut effects = Effects::default();
        queue.enqueue(packet(0, flags), 0, &mut effects);
        (effects.dropped.len(), effects.marks)
    }

    /// A long queue with this drop probability and without a burst allowance.
    fn congested(drop_prob: f64, ecn: bool) -> PieQueue {
        let mut queue = pie(QueueLimit::Packets(u32::MAX), ecn);
        (0..4).for_each(|number| queue.queue.push(packet(number, 0)));
        (queue.burst_allowance, queue.drop_prob) = (0, drop_prob);
        (queue.current_qdelay, queue.qdelay_old) = (0.1, 0.1);
        queue
    }

    /// Returns the change of the drop probability in one update.
    fn change(drop_prob: f64, current_qdelay: f64, qdelay_old: f64) -> f64 {
        let mut queue = pie(QueueLimit::Packets(100), false);
        queue.drop_prob = drop_prob;
        (queue.current_qdelay, queue.qdelay_old) = (current_qdelay, qdelay_old);
        queue.update_once();
        assert_eq!(queue.qdelay_old, current_qdelay);
        queue.drop_prob - drop_prob
    }

    #[test]
    fn the_drop_probability_is_tuned() {
        let divisors = [
            (0.0, 2048.0),
            (9e-7, 2048.0),
            (1e-6, 512.0),
            (9e-6, 512.0),
            (1e-5, 128.0),
            (9e-5, 128.0),
            (1e-4, 32.0),
            (9e-4, 32.0),
            (1e-3, 8.0),
            (9e-3, 8.0),
            (1e-2, 2.0),
            (9e-2, 2.0),
            (0.1, 1.0),
            (0.9, 1.0),
        ];
        for (drop_prob, divisor) in divisors {
            // 8 ms above the reference, 4 ms more than before.
            let expected = (0.125 * 0.008 + 1.25 * 0.004) / divisor;
            let got = change(drop_prob, 0.023, 0.019);
            assert!((got - expected).abs() < 1e-12, "{drop_prob}: {got} {expected}");
        }
        // From 0.1 on, an increase is at most 0.02 (section 5.5).
        assert!((change(0.1, 0.2, 0.1) - 0.02).abs() < 1e-12);
        assert!(change(0.09, 0.2, 0.1) > 0.05);
        assert!((change(0.5, 0.1, 0.2) - (0.125 * 0.085 - 0.125)).abs() < 1e-12);
        // The probability is bounded.
        assert_eq!(change(0.001, 0.0, 0.1), -0.001);
        assert!((change(0.99, 0.2, 0.1) - 0.01).abs() < 1e-12);
    }

    #[test]
    fn the_drop_probability_decays_in_an_idle_period() {
        let mut queue = pie(QueueLimit::Packets(100), false);
        (queue.drop_prob, queue.pie.alpha) = (1.0, 0.0);
        (0..50).for_each(|_| queue.update_once());
        // The time constant is 50 updates.
        assert!((queue.drop_prob - (-1.0f64).exp()).abs() < 0.005, "{}", queue.drop_prob);
    }

    #[test]
    fn a_burst_is_not_dropped_for_ten_updates() {
        let mut queue = congested(0.5, false);
        queue.burst_allowance = queue.max_burst;
        let mut effects = Effects::default();
        for _ in 0..9 {
            queue.update_once();
            (0..20).for_each(|number| queue.enqueue(packet(number, 0), 0, &mut effects));
        }
        assert_eq!((effects.dropped.len(), queue.burst_allowance), (0, 15 * MS));
        queue.update_once();
        (0..20).for_each(|number| queue.enqueue(packet(number, 0), 0, &mut effects));
        assert!(!effects.dropped.is_empty());
        // The allowance comes back when there is no congestion.
        (queue.drop_prob, queue.current_qdelay, queue.qdelay_old) = (0.0, 0.0074, 0.0074);
        queue.enqueue(packet(0, 0), 0, &mut effects);
        assert_eq!(queue.burst_allowance, 150 * MS);
    }

    /// Returns the least, the mean and the largest number of packets from one drop to the next.
    fn gaps(queue: &mut PieQueue) -> (f64, f64, f64) {
        let mut effects = Effects::default();
        let (mut gaps, mut last) = (Vec::new(), None);
        for number in 1..=200_000u32 {
            queue.enqueue(packet(number, 0), 0, &mut effects);
            if !effects.dropped.is_empty() {
                effects.dropped.clear();
                gaps.extend(last.map(|last| f64::from(number - last)));
                last = Some(number);
            }
        }
        let least = gaps.iter().copied().fold(f64::INFINITY, f64::min);
        let most = gaps.iter().copied().fold(0.0, f64::max);
        (least, gaps.iter().sum::<f64>() / gaps.len() as f64, most)
    }

    #[test]
    fn without_derandomisation_each_packet_is_dropped_with_the_drop_probability() {
        let mut queue = congested(0.01, false);
        queue.pie.derandomize = false;
        let (least, mean, most) = gaps(&mut queue);
        // The gaps are geometric: with mean 1 / p, and with drops in a row.
        assert!((mean - 100.0).abs() < 7.0, "{mean}");
        assert!(least == 1.0 && most < 1500.0, "{least} {most}");
    }

    #[test]
    fn drops_are_neither_too_close_nor_too_far_apart() {
        let mut queue = congested(0.01, false);
        let (least, mean, most) = gaps(&mut queue);
        // Section 5.4: 0.85 / p packets at least, 8.5 / p at most.
        assert!((85.0..=87.0).contains(&least) && most <= 851.0, "{least} {most}");
        // After the lower threshold the gap is geometric with mean 1 / p.
        assert!((mean - 185.0).abs() < 10.0, "{mean}");
        // The upper threshold forces a drop.
        queue.accu_prob = 8.495;
        assert_eq!((offer(&mut queue, 0), queue.accu_prob), ((1, 0), 0.0));
    }

    #[test]
    fn a_drop_at_the_limit_resets_the_sum_of_probabilities() {
        let mut queue = congested(0.01, false);
        queue.pie.limit = QueueLimit::Packets(4);
        queue.accu_prob = 5.0;
        assert_eq!((offer(&mut queue, 0), queue.accu_prob), ((1, 0), 0.0));
    }

    #[test]
    fn packets_are_marked_below_the_threshold() {
        for (drop_prob, marked) in [(0.0999, true), (0.1, false), (0.1001, false)] {
            let mut queue = congested(drop_prob, true);
            // The next packet is dropped or marked.
            queue.accu_prob = 8.5;
            let expected = if marked { (0, 1) } else { (1, 0) };
            assert_eq!(offer(&mut queue, flags::ECT), expected, "{drop_prob}");
            assert_eq!(queue.accu_prob, 0.0);
        }
    }

    #[test]
    fn a_short_queue_drops_nothing() {
        for (packets, qdelay_old, drop_prob, drops) in [
            (2, 0.1, 0.9, false),
            (3, 0.1, 0.9, true),
            (3, 0.0074, 0.19, false),
            (3, 0.0076, 0.19, true),
            (3, 0.0074, 0.2, true),
        ] {
            let mut queue = congested(drop_prob, false);
            queue.queue = Fifo::default();
            (0..packets).for_each(|number| queue.queue.push(packet(number, 0)));
            (queue.qdelay_old, queue.accu_prob) = (qdelay_old, 8.5);
            let (dropped, _) = offer(&mut queue, 0);
            assert_eq!(dropped > 0, drops, "{packets} {qdelay_old} {drop_prob}");
        }
    }
}
