//! Amounts of data, and probabilities.

use std::fmt;

use super::{quantity, shorten, split};
use crate::cast::whole;

/// An amount of data: `1460`, `64kb`, `10mb`. As in `tc`, `kb` is 1024 bytes and `mb` is 1024 `kb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(u64);

/// The largest amount. JSON numbers are exact up to 2^53 in most languages.
const MAX_BYTES: f64 = 9_007_199_254_740_992.0;

const EXPECTED: &str = "an amount of data: write bytes as `1460`, `64kb` (of 1024) or `10mb`";

/// Units in bytes: powers of 1024. `kib` is the same as `kb`.
const UNITS: [(&str, u64); 13] = [
    ("b", 1),
    ("k", 1 << 10),
    ("kb", 1 << 10),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mb", 1 << 20),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1 << 30),
    ("gib", 1 << 30),
    ("t", 1 << 40),
    ("tb", 1 << 40),
    ("tib", 1 << 40),
];

impl Bytes {
    /// Creates an amount from bytes.
    pub const fn new(bytes: u64) -> Self {
        Bytes(bytes)
    }

    /// The amount in bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    pub(super) fn number(bytes: f64) -> Result<Self, String> {
        if bytes < 0.0 {
            Err("an amount of data cannot be negative".into())
        } else if bytes.is_nan() || bytes > MAX_BYTES {
            Err("an amount of data is at most 2^53 bytes".into())
        } else if bytes.fract() != 0.0 {
            Err(format!("an amount of data is a whole number of bytes, not {bytes}"))
        } else {
            Ok(Bytes(whole(bytes)))
        }
    }

    pub(super) fn scale(unit: &str) -> Option<f64> {
        UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale as f64)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        let quantity = split(&lower, EXPECTED)?;
        if quantity.unit.is_empty() {
            return Self::number(quantity.number);
        }
        match Self::scale(quantity.unit) {
            Some(scale) => Self::number((quantity.number * scale).round()),
            None => Err(format!("`{}` is not {EXPECTED}", shorten(text))),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("gb", 1 << 30), ("mb", 1 << 20), ("kb", 1 << 10)];
        match units.iter().find(|(_, scale)| self.0 > 0 && self.0.is_multiple_of(*scale)) {
            Some((unit, scale)) => write!(f, "{}{unit}", self.0 / scale),
            None => write!(f, "{}b", self.0),
        }
    }
}

quantity!(
    Bytes,
    "an amount of data such as 1460 or \"64kb\"",
    "An amount of data. As in tc, kb is 1024 bytes. A bare number is bytes.",
    r"^[0-9.]+([eE][+-]?[0-9]+)? ?([bB]|[kmgtKMGT]i?[bB]?)?$",
    [1460, "64kb", "10mb"]
);

/// A probability: `0.01` or `1%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

impl Probability {
    /// Certainty.
    pub const ONE: Probability = Probability(1.0);

    /// The probability, from 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }

    pub(crate) fn number(value: f64) -> Result<Self, String> {
        if (0.0..=1.0).contains(&value) {
            Ok(Probability(value))
        } else {
            Err(format!("a probability is from 0 to 1 (or 0% to 100%), not {value}"))
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let quantity = split(text, "a probability: write 0.01 or `1%`")?;
        match quantity.unit {
            "" => Self::number(quantity.number),
            "%" => Self::number(quantity.number / 100.0),
            _ => Err(format!("`{}` is not a probability: write 0.01 or `1%`", shorten(text))),
        }
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

quantity!(
    Probability,
    "a probability such as 0.01 or \"1%\"",
    "A probability from 0 to 1, or in percent.",
    r"^[0-9.]+([eE][+-]?[0-9]+)? ?%?$",
    [0.01, "1%"]
);
