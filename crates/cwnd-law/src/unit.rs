//! Units: powers of a second. Packets are plain numbers, as in the papers.

use core::fmt;

/// A power of a second, in sixths: roots divide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit(i16);

impl Unit {
    pub(crate) const PLAIN: Unit = Unit(0);
    pub(crate) const SECONDS: Unit = Unit(6);
    pub(crate) const PER_SECOND: Unit = Unit(-6);

    pub(crate) fn times(self, other: Unit) -> Self {
        Unit(self.0.saturating_add(other.0))
    }

    pub(crate) fn over(self, other: Unit) -> Self {
        Unit(self.0.saturating_sub(other.0))
    }

    /// The unit of the n-th root.
    pub(crate) fn root(self, n: i16) -> Option<Self> {
        (self.0 % n == 0).then_some(Unit(self.0 / n))
    }

    /// The unit of a power.
    pub(crate) fn power(self, exponent: f64) -> Option<Self> {
        let power = f64::from(self.0) * exponent;
        let whole = power as i16;
        (f64::from(whole) == power).then_some(Unit(whole))
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Unit::PLAIN => f.write_str("a plain number"),
            Unit::SECONDS => f.write_str("in seconds"),
            Unit::PER_SECOND => f.write_str("per second"),
            Unit(sixths) if sixths % 6 == 0 => write!(f, "in s^{}", sixths / 6),
            Unit(sixths) if sixths % 3 == 0 => write!(f, "in s^({}/2)", sixths / 3),
            Unit(sixths) if sixths % 2 == 0 => write!(f, "in s^({}/3)", sixths / 2),
            Unit(sixths) => write!(f, "in s^({sixths}/6)"),
        }
    }
}
