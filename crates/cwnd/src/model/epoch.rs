//! From one loss to the next: what a law does in a congestion epoch.

use super::{Alone, Path};
use crate::any::Law;
use libm::floor;

/// An epoch of a window law: the cut at a loss, a round of recovery, and growth from one
/// acknowledgement to the next.
#[derive(Clone, Debug)]
pub struct Epoch {
    flow: Alone,
    ideal: bool,
}

/// The least number of steps for each round-trip time in which a sawtooth is followed.
const STEPS: f64 = 64.0;

/// What a law does between two losses at the same window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sawtooth {
    /// The window after the loss, in packets.
    pub after: f64,
    /// Round-trip times until the window is back, at the window of each instant in each.
    pub rounds: f64,
    /// Packets acknowledged until then.
    pub packets: f64,
}

/// Expectations over an epoch in which each packet is lost with the same probability.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Round-trip times.
    pub rounds: f64,
    /// The window and its square, summed over round-trip times.
    pub window: f64,
    /// See `window`.
    pub square: f64,
    /// The window at the loss that ends the epoch.
    pub at_loss: f64,
    /// Packets sent: up to the lost one and, but in the ideal, the window behind it.
    pub packets: f64,
}

impl Epoch {
    /// Begins with a loss at `window` packets, the first that the law sees. A round-trip time
    /// passes before the window grows, what is in flight behind a lost packet can be lost without
    /// another cut, and whole packets are sent. In the `ideal` nothing of that is so.
    pub fn new(law: Law, window: f64, path: Path, ideal: bool) -> Self {
        let mut flow = Alone::new(law, window, path);
        flow.cut();
        Epoch { flow, ideal }
    }

    /// Runs the epoch under Bernoulli losses of probability `p` until only `tail` is left of the
    /// probability that it goes on, or the window is at `top`. Tells `visit` of each window, the
    /// probability that the epoch ends there, and the expected round-trip times there.
    pub fn run(
        mut self,
        p: f64,
        tail: f64,
        top: f64,
        mut visit: impl FnMut(f64, f64, f64),
    ) -> Sums {
        let mut sums = Sums::default();
        let mut stay = |sums: &mut Sums, w: f64, ends: f64, rounds: f64| {
            sums.rounds += rounds;
            sums.window += rounds * w;
            sums.square += rounds * w * w;
            visit(w.min(top), ends, rounds);
        };
        if !self.ideal {
            stay(&mut sums, self.flow.window(), 0.0, 1.0);
            self.flow.pause();
        }
        let mut alive = 1.0;
        let mut sent = 1.0;
        loop {
            let w = self.flow.window();
            let ends = if alive <= tail || w >= top { alive } else { alive * p };
            sums.at_loss += ends * w;
            sums.packets += ends * (sent + if self.ideal { 0.0 } else { floor(w) });
            let spacing = self.flow.acknowledge(!self.ideal);
            // The loss that ends the epoch is found as late as an acknowledgement would come.
            stay(&mut sums, w, ends, alive * spacing);
            alive -= ends;
            if alive <= 0.0 {
                return sums;
            }
            sent += 1.0;
        }
    }
}

/// Whether the window at a loss is all that a window law remembers after it: from the same window
/// it does the same, whatever came before. Found by trying histories, not by knowing the law.
pub fn forgets(law: &Law, path: Path) -> bool {
    const HISTORIES: [&[f64]; 4] = [&[], &[2.0], &[0.4], &[3.0, 1.5]];
    const ACKS: usize = 400;
    [6.0, 40.0, 300.0].into_iter().all(|window| {
        let mut first: Option<[f64; 2]> = None;
        HISTORIES.into_iter().all(|history| {
            let mut flow = Alone::new(law.clone(), window, path);
            for times in history {
                flow.set_window(times * window);
                flow.cut();
                for _ in 0..ACKS {
                    flow.acknowledge(false);
                }
            }
            flow.set_window(window);
            flow.cut();
            let after = flow.window();
            for _ in 0..ACKS {
                flow.acknowledge(false);
            }
            let found = [after, flow.window()];
            let expected = *first.get_or_insert(found);
            found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-6 * b)
        })
    })
}

/// The sawtooth of a window law between losses at `window`, once it repeats; `None` if it does not,
/// if the law does not cut, or if it is not back after `limit` steps or has not grown in a tenth of
/// them.
pub fn sawtooth(law: Law, window: f64, path: Path, limit: u64) -> Option<Sawtooth> {
    if matches!(law, Law::Rate(_)) {
        return None;
    }
    let mut flow = Alone::new(law, window, path);
    let mut last: Option<Sawtooth> = None;
    for _ in 0..3 {
        flow.set_window(window);
        flow.cut();
        let after = flow.window();
        if after >= window {
            return None;
        }
        let (mut rounds, mut packets, mut steps) = (0.0, 0.0, 0_u64);
        let (mut largest, mut grown) = (after, 0);
        loop {
            let w = flow.window();
            let together = floor(w / STEPS).max(1.0);
            flow.acknowledge_many(together);
            let gained = flow.window() - w;
            // The last step counts by the part of its growth that was missing.
            let back = w + gained >= window;
            let part = together * if back { (window - w) / gained } else { 1.0 };
            rounds += part / w;
            packets += part;
            if back {
                break;
            }
            steps += 1;
            if flow.window() > largest {
                (largest, grown) = (flow.window(), steps);
            }
            if steps == limit || steps - grown > limit / 10 {
                return None;
            }
        }
        let found = Sawtooth { after, rounds, packets };
        if let Some(last) = last
            && (last.rounds - found.rounds).abs() <= 1e-6 * found.rounds
            && last.after == found.after
        {
            return Some(found);
        }
        last = Some(found);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Dur, Rate};
    use crate::{MakeController, Settings, Spec};

    fn path() -> Path {
        Path { rtt: Dur::from_millis(100), capacity: Rate::ZERO, packet: 1500 }
    }

    fn law(text: &str) -> Law {
        Spec::parse(text).unwrap().law(&Settings::default()).unwrap()
    }

    #[test]
    fn what_a_law_remembers_is_found_out() {
        for text in ["reno", "aimd(0.31, 1/8)", "simd", "iiad", "sqrt", "scalable", "highspeed"] {
            assert!(forgets(&law(text), path()), "{text}");
        }
        assert!(forgets(&law("cubic(fast=off)"), path()));
        for text in ["cubic", "bic", "aira", "aiad", "westwood"] {
            assert!(!forgets(&law(text), path()), "{text}");
        }
    }

    /// Reno between losses at 40: w dw = dn gives (40^2 - 20^2) / 2 = 600 packets in 20 rounds.
    #[test]
    fn renos_sawtooth() {
        let tooth = sawtooth(law("reno"), 40.0, path(), 100_000).unwrap();
        assert_eq!(tooth.after, 20.0);
        assert!((tooth.packets - 600.0).abs() < 1.0, "{tooth:?}");
        assert!((tooth.rounds - 20.0).abs() < 0.05, "{tooth:?}");
    }

    /// With p = 1/2 every epoch is short: of four windows the probabilities are 1/2, 1/4, 1/8, 1/8.
    #[test]
    fn an_epoch_ends_geometrically() {
        let mut ends = [0.0; 4];
        let mut at = 0;
        let epoch = Epoch::new(law("reno"), 20.0, path(), false);
        let sums = epoch.run(0.5, 0.125, 1e9, |_, p, _| {
            if p > 0.0 {
                ends[at] = p;
                at += 1;
            }
        });
        assert_eq!(ends, [0.5, 0.25, 0.125, 0.125]);
        // A round at 10 and then nearly 10 for 1 + 1/2 + 1/4 + 1/8 acknowledgements.
        assert!((sums.rounds - (1.0 + 1.875 / 10.0)).abs() < 0.01);
    }
}
