//! Random early detection as implemented by ns-2 (Floyd and Jacobson 1993; gentle variant, Floyd 2000). Queue lengths are in
//! packets.

use super::admission::Action;
use crate::cast::to_index;
use crate::network;
use crate::rng::Rng;

/// Length of [`Red::ageing`]: the queue of acknowledgements is idle between any two, for the time of a few packets.
const AGEING: usize = 16;

pub(crate) struct Red {
    limit: u32,
    min: f64,
    max: f64,
    max_p: f64,
    weight: f64,
    gentle: bool,
    wait: bool,
    ecn: bool,
    mark_p: f64,
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

impl Red {
    pub(super) fn new(red: &network::Red, drain: f64, rng: Rng) -> Self {
        Red {
            limit: red.limit,
            min: red.min,
            max: red.max,
            max_p: red.max_p,
            weight: red.weight,
            gentle: red.gentle,
            wait: red.wait,
            ecn: red.ecn,
            mark_p: red.mark_p,
            drain: drain / (8.0 * f64::from(red.mean_packet)),
            average: 0.0,
            ageing: std::array::from_fn(|packets| power(1.0 - red.weight, packets as u64)),
            count: 0,
            above: false,
            rng,
        }
    }

    /// Decides on a packet that finds `waiting` packets in the queue. `idle` is the time in ticks since the transmitter became
    /// idle, `None` if it is busy; `capable` whether the packet is ECN-capable.
    #[inline]
    pub(super) fn admit(&mut self, waiting: u32, idle: Option<u64>, capable: bool) -> Action {
        if let Some(idle) = idle {
            // Processors convert signed numbers faster.
            #[expect(clippy::cast_possible_truncation, reason = "the fraction is cut off")]
            let missed = (self.drain * idle.cast_signed() as f64) as i64;
            let missed = missed.cast_unsigned();
            self.average *= match self.ageing.get(to_index(missed)) {
                Some(&factor) => factor,
                None => power(1.0 - self.weight, missed),
            };
        }
        self.average *= self.ageing[1];
        self.average += self.weight * f64::from(waiting);
        self.count += 1;
        let mut action = Action::Accept;
        if self.average >= self.min && waiting > 1 {
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
        if waiting >= self.limit && action != Action::Drop {
            self.count = 0;
            action = Action::Drop;
        }
        action
    }

    fn early(&mut self, capable: bool) -> Action {
        if self.gentle && self.average >= 2.0 * self.max && self.mark_p >= 1.0 {
            self.count = 0;
            return Action::Drop;
        }
        let p = self.probability();
        if self.rng.uniform() > self.spread(p) {
            return Action::Accept;
        }
        self.count = 0;
        if self.ecn && capable && p <= self.mark_p { Action::Mark } else { Action::Drop }
    }

    /// The probability for the average queue.
    fn probability(&self) -> f64 {
        let p = if self.average < self.max {
            self.max_p * (self.average - self.min) / (self.max - self.min)
        } else if self.gentle {
            self.max_p + (1.0 - self.max_p) * (self.average - self.max) / self.max
        } else {
            1.0
        };
        p.min(1.0)
    }

    /// Turns geometric gaps between drops into nearly uniform ones.
    fn spread(&self, p: f64) -> f64 {
        let expected = self.count as f64 * p;
        if self.wait {
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

    fn red(wait: bool, gentle: bool, weight: f64) -> Red {
        let spec = network::Red {
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
        Red::new(&spec, 8e6 / 1e9, Rng::new(1, "red", 0))
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
