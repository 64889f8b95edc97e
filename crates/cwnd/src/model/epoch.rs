//! From one loss to the next: what a law does in a congestion epoch.

use super::{Alone, Path};
use crate::registry::{Law, Spec};
use crate::units::Packets;

/// An epoch of a window law: the cut at a loss, perhaps a round of recovery, and growth from one
/// acknowledgement to the next.
#[derive(Clone, Debug)]
pub struct Epoch {
    flow: Alone,
    /// Round-trip times since the cut.
    took: f64,
}

/// What a law does between two losses at the same window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sawtooth {
    /// The window after the loss, in packets.
    pub after: Packets,
    /// Round-trip times until the window is back.
    pub rounds: f64,
    /// Packets acknowledged until then.
    pub packets: Packets,
}

impl Epoch {
    /// Begins with a loss at `window` packets, the first that the law sees. With `recovery` a
    /// round-trip time passes before the window grows.
    pub fn new(spec: &Spec, window: Packets, path: Path, recovery: bool) -> Self {
        let mut flow = Alone::new(spec, window, path, 0);
        flow.cut();
        if recovery {
            flow.pause();
        }
        Epoch { flow, took: f64::from(u8::from(recovery)) }
    }

    /// The window in packets.
    pub fn window(&self) -> Packets {
        self.flow.window()
    }

    /// Round-trip times since the cut.
    pub fn took(&self) -> f64 {
        self.took
    }

    /// The next packet is acknowledged.
    #[inline]
    pub fn acknowledge(&mut self) {
        self.took += 1.0 / self.flow.window();
        self.flow.acknowledge();
    }
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
    /// The window at the loss that ends the epoch, and the packets until there.
    pub at_loss: Packets,
    /// Packets sent: those acknowledged, the lost one and the window behind it.
    pub packets: Packets,
}

impl Epoch {
    /// Runs the epoch under Bernoulli losses of probability `p` until only `tail` is left of the
    /// probability that it goes on. Calls `lost` with each window at which it can end and the
    /// probability of that, and `stays` with each window and the expected round-trip times there.
    /// Windows from `top` on are called `top`.
    pub fn run(
        mut self,
        p: f64,
        tail: f64,
        top: Packets,
        mut lost: impl FnMut(Packets, f64),
        mut stays: impl FnMut(Packets, f64),
    ) -> Sums {
        let mut sums = Sums::default();
        let mut add = |sums: &mut Sums, w: Packets, rounds: f64| {
            sums.rounds += rounds;
            sums.window += rounds * w;
            sums.square += rounds * w * w;
            stays(w, rounds);
        };
        if self.took > 0.0 {
            add(&mut sums, self.window(), self.took);
        }
        let mut alive = 1.0;
        let mut acked = 0.0;
        loop {
            let w = self.window();
            add(&mut sums, w, alive / w);
            let ends = if alive <= tail || w >= top { alive } else { alive * p };
            lost(w.min(top), ends);
            sums.at_loss += ends * w;
            sums.packets += ends * (acked + 1.0 + w);
            alive -= ends;
            if alive <= 0.0 {
                return sums;
            }
            self.acknowledge();
            acked += 1.0;
        }
    }
}

/// Whether the window at a loss is all that a window law remembers after it: from the same window
/// it does the same, whatever came before. Found by trying histories, not by knowing the law.
pub fn forgets(spec: &Spec, path: Path) -> bool {
    const HISTORIES: [&[f64]; 4] = [&[], &[2.0], &[0.4], &[3.0, 1.5]];
    const ACKS: usize = 400;
    [6.0, 40.0, 300.0].into_iter().all(|window| {
        let mut first: Option<[f64; 2]> = None;
        HISTORIES.into_iter().all(|history| {
            let mut flow = Alone::new(spec, window, path, 0);
            for times in history {
                flow.set_window(times * window);
                flow.cut();
                for _ in 0..ACKS {
                    flow.acknowledge();
                }
            }
            flow.set_window(window);
            flow.cut();
            let after = flow.window();
            for _ in 0..ACKS {
                flow.acknowledge();
            }
            let found = [after, flow.window()];
            let expected = *first.get_or_insert(found);
            found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-6 * b)
        })
    })
}

/// The sawtooth of a window law between losses at `window`, once it repeats; `None` if it does not,
/// if the law does not cut, or if it is not back after `limit` packets.
pub fn sawtooth(spec: &Spec, window: Packets, path: Path, limit: u64) -> Option<Sawtooth> {
    if matches!(spec.law(&crate::machine::Settings::default()), Law::Rate(_)) {
        return None;
    }
    let mut flow = Alone::new(spec, window, path, 0);
    let mut last: Option<Sawtooth> = None;
    for _ in 0..3 {
        flow.set_window(window);
        flow.cut();
        let after = flow.window();
        if after >= window {
            return None;
        }
        let (mut rounds, mut packets) = (0.0, 0.0);
        loop {
            let w = flow.window();
            flow.acknowledge();
            let gained = flow.window() - w;
            // The last acknowledgement counts by the part of its growth that was missing.
            let part = if w + gained >= window { (window - w) / gained } else { 1.0 };
            rounds += part / w;
            packets += part;
            if w + gained >= window {
                break;
            }
            if packets >= limit as f64 {
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

    fn path() -> Path {
        Path { rtt: Dur::from_millis(100), capacity: Rate::ZERO, packet: 1500 }
    }

    fn spec(text: &str) -> Spec {
        Spec::parse(text).unwrap()
    }

    #[test]
    fn what_a_law_remembers_is_found_out() {
        for text in ["reno", "aimd(0.31, 1/8)", "simd", "iiad", "sqrt", "scalable", "highspeed"] {
            assert!(forgets(&spec(text), path()), "{text}");
        }
        assert!(forgets(&spec("cubic(fast=off)"), path()));
        for text in ["cubic", "bic", "aira", "aiad", "westwood"] {
            assert!(!forgets(&spec(text), path()), "{text}");
        }
    }

    /// Reno between losses at 40: w dw = dn gives (40^2 - 20^2) / 2 = 600 packets in 20 rounds.
    #[test]
    fn renos_sawtooth() {
        let tooth = sawtooth(&spec("reno"), 40.0, path(), 100_000).unwrap();
        assert_eq!(tooth.after, 20.0);
        assert!((tooth.packets - 600.0).abs() < 1.0, "{tooth:?}");
        assert!((tooth.rounds - 20.0).abs() < 0.05, "{tooth:?}");
    }

    /// With p = 1/2 every epoch is short: of four windows the probabilities are 1/2, 1/4, 1/8, 1/8.
    #[test]
    fn an_epoch_ends_geometrically() {
        let mut ends = [0.0; 4];
        let mut at = 0;
        let epoch = Epoch::new(&spec("reno"), 20.0, path(), true);
        let sums = epoch.run(
            0.5,
            0.125,
            1e9,
            |_, p| {
                ends[at] = p;
                at += 1;
            },
            |_, _| {},
        );
        assert_eq!(ends, [0.5, 0.25, 0.125, 0.125]);
        // A round at 10 and then nearly 10 for 1 + 1/2 + 1/4 + 1/8 acknowledgements.
        assert!((sums.rounds - (1.0 + 1.875 / 10.0)).abs() < 0.01);
    }
}
