//! Pseudorandom numbers of a controller or law.

use cwnd_law::arithmetic::{advance, drawn, unit};

/// SplitMix64.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = advance(self.0);
        drawn(self.0) % end
    }

    /// A number in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 = advance(self.0);
        unit(f64::from_bits(self.0))
    }
}
