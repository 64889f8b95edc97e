//! Random early detection as implemented by ns-2 (Floyd and Jacobson 1993; gentle variant, Floyd
//! 2000). Queue lengths are in packets.

use super::interface::Action;
use super::table::{LinkUse, MIN_DEFAULT, QueueTable, size};
use crate::cast::to_index;
use crate::check::{Checked, check_probability, check_size, invalid};
use crate::rng::Rng;
use crate::units::{Probability, QueueSize, Threshold};

pub(super) const KEYS: &[&str] =
    &["min", "max", "max_p", "weight", "gentle", "wait", "ecn", "mark_p", "mean_packet"];

/// Length of [`RedState::ageing`]: the queue of acknowledgements is idle between any two, for the
/// time of a few packets.
const AGEING: usize = 16;

/// RED's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// The hard limit in packets.
    pub limit: u32,
    /// Average queue in packets below which no packet is dropped.
    pub min: f64,
    /// Average queue in packets at which the drop probability is `max_p`.
    pub max: f64,
    /// Drop probability at `max`.
    pub max_p: f64,
    /// Weight of the current queue length in the moving average.
    pub weight: f64,
    /// Whether the probability rises linearly from `max_p` at `max` to 1 at twice `max`; otherwise
    /// it is 1 above `max`.
    pub gentle: bool,
    /// Whether drops are spaced more evenly (ns-2's `wait_`).
    pub wait: bool,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Probability above which ECN-capable packets are dropped too; 1 for never (ns-2's `mark_p_`).
    pub mark_p: f64,
    /// Mean packet size in bytes. An idle period counts as the packets of this size that fit into
    /// it.
    pub mean_packet: u32,
}

impl Red {
    pub(super) fn new(table: &QueueTable, link: &LinkUse) -> Checked<Self> {
        let limit = match (table.limit, link.rtt) {
            (Some(QueueSize::Packets(packets)), _) => packets,
            (Some(QueueSize::Bdp(products)), _) => link.bdp(products)?,
            (None, Some(_)) => link.bdp(2.5)?.max(MIN_DEFAULT),
            (None, None) => {
                return invalid("limit", "a red access queue needs its limit in packets");
            }
            (Some(QueueSize::Bytes(_) | QueueSize::Infinite), _) => {
                return invalid("limit", "a red queue's limit is in packets (`50p`) or in `bdp`");
            }
        };
        let max = table.max.unwrap_or(Threshold::Percent(50.0)).of(limit);
        if max > f64::from(limit) {
            return invalid(
                "max",
                format!("red's max of {max} packets is outside its limit of {limit}"),
            );
        }
        Ok(Red {
            limit,
            min: table.min.unwrap_or(Threshold::Percent(15.0)).of(limit),
            max,
            max_p: table.max_p.map_or(0.1, Probability::get),
            weight: table.weight.map_or(0.002, Probability::get),
            gentle: table.gentle.unwrap_or(true),
            wait: table.wait.unwrap_or(true),
            ecn: table.ecn.unwrap_or(false),
            mark_p: table.mark_p.map_or(1.0, Probability::get),
            mean_packet: size(table.mean_packet, link.packet),
        })
    }

    pub(super) fn check(&self) -> Checked {
        let Red { min, max, gentle, .. } = *self;
        // A probability that rises between equal thresholds is a step, which `gentle` would turn
        // into a slope.
        if !(min >= 0.0 && (min < max || min == max && !gentle)) {
            let step = if min == max { " (say gentle = false for a step)" } else { "" };
            return invalid(
                "min",
                format!("red's min of {min} packets is not below its max of {max}{step}"),
            );
        }
        if max <= 0.0 {
            return invalid("max", format!("red's max of {max} packets is not above 0"));
        }
        for (field, value) in
            [("max_p", self.max_p), ("weight", self.weight), ("mark_p", self.mark_p)]
        {
            if value == 0.0 {
                return invalid(field, "cannot be zero");
            }
            check_probability(field, value)?;
        }
        check_size("mean_packet", self.mean_packet)
    }
}

#[derive(Clone)]
pub(crate) struct RedState {
    red: Red,
    /// Typical packets per tick.
    drain: f64,
    average: f64,
    /// Factors of the average after an idle time of that many packets: powers of `1 - weight`.
    ageing: [f64; AGEING],
    /// Packets since the last drop, while the average is above `min`.
    count: i64,
    /// Whether the average was above `min` at the last arrival.
    above: bool,
    rng: Rng,
}

impl RedState {
    pub(super) fn new(red: Red, drain: f64, rng: Rng) -> Self {
        RedState {
            red,
            drain: drain / (8.0 * f64::from(red.mean_packet)),
            average: 0.0,
            ageing: std::array::from_fn(|packets| power(1.0 - red.weight, packets as u64)),
            count: 0,
            above: false,
            rng,
        }
    }

    /// Decides on a packet that finds `waiting` packets in the queue. `idle` is the time in ticks
    /// since the transmitter became idle, `None` if it is busy; `capable` whether the packet is
    /// ECN-capable.
    #[inline]
    pub(super) fn admit(&mut self, waiting: u32, idle: Option<u64>, capable: bool) -> Action {
        if let Some(idle) = idle {
            // Processors convert signed numbers faster.
            #[expect(clippy::cast_possible_truncation, reason = "the fraction is cut off")]
            let missed = (self.drain * idle.cast_signed() as f64) as i64;
            let missed = missed.cast_unsigned();
            self.average *= match self.ageing.get(to_index(missed)) {
                Some(&factor) => factor,
                None => power(1.0 - self.red.weight, missed),
            };
        }
        self.average *= self.ageing[1];
        self.average += self.red.weight * f64::from(waiting);
        self.count += 1;
        let mut action = Action::Accept;
        if self.average >= self.red.min && waiting > 1 {
            if self.above {
                action = self.early(capable);
            } else {
                // The average has just crossed the threshold: start counting, drop nothing.
                self.count = 1;
                self.above = true;
            }
        } else {
            self.above = false;
        }
        if waiting >= self.red.limit && action != Action::Drop {
            self.count = 0;
            action = Action::Drop;
        }
        action
    }

    fn early(&mut self, capable: bool) -> Action {
        if self.red.gentle && self.average >= 2.0 * self.red.max && self.red.mark_p >= 1.0 {
            self.count = 0;
            return Action::Drop;
        }
        let p = self.probability();
        if self.rng.uniform() > self.spread(p) {
            return Action::Accept;
        }
        self.count = 0;
        if self.red.ecn && capable && p <= self.red.mark_p { Action::Mark } else { Action::Drop }
    }

    /// The probability for the average queue.
    fn probability(&self) -> f64 {
        let p = if self.average < self.red.max {
            self.red.max_p * (self.average - self.red.min) / (self.red.max - self.red.min)
        } else if self.red.gentle {
            self.red.max_p + (1.0 - self.red.max_p) * (self.average - self.red.max) / self.red.max
        } else {
            1.0
        };
        p.min(1.0)
    }

    /// Turns geometric gaps between drops into nearly uniform ones.
    fn spread(&self, p: f64) -> f64 {
        let expected = self.count as f64 * p;
        if self.red.wait {
            if expected < 1.0 {
                0.0
            } else if expected < 2.0 {
                p / (2.0 - expected)
            } else {
                1.0
            }
        } else if expected < 1.0 {
            p / (1.0 - expected)
        } else {
            1.0
        }
    }
}

/// `base` to a whole power, the same bits on every machine.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red(wait: bool, gentle: bool, weight: f64) -> RedState {
        let spec = Red {
            limit: 100,
            min: 10.0,
            max: 30.0,
            max_p: 0.1,
            weight,
            gentle,
            wait,
            ecn: true,
            mark_p: 1.0,
            mean_packet: 1000,
        };
        RedState::new(spec, 8e6 / 1e9, Rng::new(1, "red", 0))
    }

    /// The drop rate at a steady queue, over many arrivals.
    fn rate_at(queue: u32, wait: bool) -> f64 {
        let mut red = red(wait, true, 1.0);
        let drops = (0..200_000).filter(|_| red.admit(queue, None, false) == Action::Drop).count();
        drops as f64 / 200_000.0
    }

    #[test]
    fn drop_rates_follow_from_the_spreading() {
        // Without wait gaps are uniform on 1..1/p, mean about 1/(2p); with it on 1/p..2/p: 3/(2p).
        assert_eq!(rate_at(9, true), 0.0);
        assert!((rate_at(20, false) - 2.0 * 0.05).abs() < 0.01);
        assert!((rate_at(20, true) - 2.0 / 3.0 * 0.05).abs() < 0.002);
        assert!((rate_at(45, false) - 2.0 * 0.55).abs() < 0.3);
    }

    #[test]
    fn capable_packets_are_marked_until_the_limit() {
        let mut red = red(true, true, 1.0);
        let marks = (0..1000).filter(|_| red.admit(29, None, true) == Action::Mark).count();
        assert!(marks > 0);
        assert_eq!(red.admit(100, None, true), Action::Drop);
    }

    #[test]
    fn an_idle_transmitter_ages_the_average() {
        let mut red = red(true, true, 0.1);
        // 1000 B at 8 Mb/s: a packet missed in a millisecond.
        for missed in [0u16, 1, 9, 15, 16, 40] {
            red.average = 20.0;
            red.admit(0, Some(1_000_000 * u64::from(missed) + 1), false);
            assert!((red.average - 20.0 * 0.9f64.powi(i32::from(missed) + 1)).abs() < 1e-12);
        }
    }
}
