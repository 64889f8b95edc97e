//! Chiu and Jain's synchronous model: rounds of one length, and losses that all flows see.

use super::{Alone, Path, Pattern};
use crate::any::Law;
use alloc::vec::Vec;

/// Flows that share a capacity; a point of the Chiu–Jain plane where there are two.
#[derive(Clone, Debug)]
pub struct Plane {
    flows: Vec<Alone>,
    capacity: f64,
    pattern: Pattern,
}

impl Plane {
    /// Flows at the beginning of congestion avoidance, each a law with its window in packets. They
    /// share `capacity` packets; the link's rate, for laws that measure it, is `capacity` in each
    /// round-trip time.
    pub fn new(
        flows: impl IntoIterator<Item = (Law, f64)>,
        capacity: f64,
        path: Path,
        pattern: Pattern,
    ) -> Self {
        let alone = |(law, window)| Alone::new(law, window, path);
        Plane { flows: flows.into_iter().map(alone).collect(), capacity, pattern }
    }

    /// The windows in packets.
    pub fn windows(&self) -> impl Iterator<Item = f64> {
        self.flows.iter().map(Alone::window)
    }

    /// Whether the windows have reached the efficiency line.
    pub fn is_full(&self) -> bool {
        self.windows().sum::<f64>() >= self.capacity
    }

    /// A round without a loss.
    pub fn grow(&mut self) {
        for flow in &mut self.flows {
            flow.round(self.pattern);
        }
    }

    /// All flows see one loss.
    pub fn cut(&mut self) {
        for flow in &mut self.flows {
            flow.cut();
        }
    }

    /// How many times the windows fill the link: the acknowledgements of a round in those of a full
    /// link, at least 1.
    fn fillings(&self) -> u64 {
        (self.windows().sum::<f64>() / self.capacity).max(1.0) as u64
    }

    fn difference(&self) -> f64 {
        let (first, second) = (self.flows.first(), self.flows.get(1));
        first.zip(second).map_or(0.0, |(a, b)| (a.window() - b.window()).abs())
    }
}

/// How long two flows take to fill a link, and then to share it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Convergence {
    /// Rounds until the efficiency line; infinite if it was not reached.
    pub to_efficiency: f64,
    /// The difference of the windows there, in packets; not a number if it was not reached.
    pub difference: f64,
    /// Rounds from there until the windows differ by less than epsilon; infinite if they never did.
    pub to_fairness: f64,
    /// Losses in those rounds.
    pub epochs: f64,
}

/// Runs the first two flows of `plane` until their windows differ by less than `epsilon` packets,
/// at or after the first time that the link is full, but for no more than `limit` rounds. A round
/// of windows that are twice the capacity counts as two, and so on: a law that does not reduce its
/// window has rounds of any number of acknowledgements.
pub fn converge(mut plane: Plane, epsilon: f64, limit: u64) -> Convergence {
    let mut found = Convergence {
        to_efficiency: f64::INFINITY,
        difference: f64::NAN,
        to_fairness: f64::INFINITY,
        epochs: f64::INFINITY,
    };
    let mut rounds = 0_u64;
    while !plane.is_full() {
        if rounds == limit {
            return found;
        }
        plane.grow();
        rounds += 1;
    }
    found.to_efficiency = rounds as f64;
    found.difference = plane.difference();
    let (mut after, mut epochs, mut counted) = (0_u64, 0_u64, rounds);
    while plane.difference() >= epsilon {
        if plane.is_full() {
            plane.cut();
            epochs += 1;
            if plane.difference() < epsilon {
                break;
            }
        }
        counted = counted.saturating_add(plane.fillings());
        if counted > limit {
            return found;
        }
        plane.grow();
        after += 1;
    }
    found.to_fairness = after as f64;
    found.epochs = epochs as f64;
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Dur, Rate};
    use crate::{MakeController, Settings, Spec};

    fn plane(spec: &str, windows: [f64; 2], pattern: Pattern) -> Plane {
        let path =
            Path { rtt: Dur::from_millis(100), capacity: Rate::per_sec(1000.0), packet: 1500 };
        let law = Spec::parse(spec).unwrap().law(&Settings::default()).unwrap();
        Plane::new(windows.map(|w| (law.clone(), w)), 100.0, path, pattern)
    }

    /// From (10, 30) in steps of (1, 1): full at (40, 60) after 30 rounds. Cuts halve the
    /// difference of 20 to 10, 5, 2.5, 1.25, 0.625; the windows add up to 50 after each, 25 rounds
    /// before the next.
    #[test]
    fn reno_follows_the_closed_form() {
        let found = converge(plane("reno", [10.0, 30.0], Pattern::Whole), 1.0, 10_000);
        let expected = Convergence {
            to_efficiency: 30.0,
            difference: 20.0,
            to_fairness: 4.0 * 25.0,
            epochs: 5.0,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_loss_reduces_all_flows() {
        let mut plane = plane("aimd(1, 1/4)", [40.0, 60.0], Pattern::Each);
        assert!(plane.is_full());
        plane.cut();
        assert_eq!(plane.windows().collect::<Vec<_>>(), [30.0, 45.0]);
        assert!(!plane.is_full());
    }

    /// Multiplicative increase and decrease never change a ratio.
    #[test]
    fn what_never_converges_ends_at_the_limit() {
        let found = converge(plane("scalable", [20.0, 40.0], Pattern::Whole), 1.0, 500);
        assert!(found.to_efficiency.is_finite());
        assert_eq!(found.to_fairness, f64::INFINITY);
    }

    /// After the first loss the windows are 100 and 800, and the next round counts as nine.
    #[test]
    fn a_round_counts_as_often_as_it_fills_the_link() {
        for (limit, epochs) in [(8, f64::INFINITY), (9, 2.0)] {
            let flows = plane("reno", [200.0, 1600.0], Pattern::Whole);
            assert_eq!(converge(flows, 700.0, limit).epochs, epochs);
        }
    }
}
