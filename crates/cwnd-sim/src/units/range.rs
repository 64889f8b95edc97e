//! Ranges of quantities.

use std::fmt;
use std::str::FromStr;

/// A value, or a range of values: `5s` or `0s..5s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range<T> {
    pub(super) low: T,
    pub(super) high: T,
}

impl<T: Copy> Range<T> {
    pub(crate) const fn new(low: T, high: T) -> Self {
        Range { low, high }
    }

    /// The lower end of the range.
    pub const fn low(self) -> T {
        self.low
    }

    /// The upper end of the range.
    pub const fn high(self) -> T {
        self.high
    }
}

impl<T: FromStr<Err = String> + PartialOrd + fmt::Display> Range<T> {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        let (low, high): (T, T) = (low.parse()?, high.parse()?);
        if low > high {
            return Err(format!("the range {low}..{high} ends before it begins"));
        }
        Ok(Range { low, high })
    }
}

impl<T: PartialEq + fmt::Display> fmt::Display for Range<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.low == self.high {
            self.low.fmt(f)
        } else {
            write!(f, "{}..{}", self.low, self.high)
        }
    }
}
