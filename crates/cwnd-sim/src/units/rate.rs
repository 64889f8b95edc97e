//! Rates in bits per second.

use std::fmt;

use super::{Range, quantity, shorten, split};
use crate::check::RATES;

/// A rate: `15mbit`, `1gbit` or `infinite`. A number without a unit is in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct BitRate(f64);

const EXPECTED: &str =
    "a rate: write bits per second as `15mbit`, `1gbit`, `64kbit` or `100bit`, or `infinite`";

/// Units in bits per second. Those with an `i` are powers of 1024, as in `tc`.
pub(crate) const UNITS: [(&str, f64); 9] = [
    ("bit", 1.0),
    ("kbit", 1e3),
    ("mbit", 1e6),
    ("gbit", 1e9),
    ("tbit", 1e12),
    ("kibit", 1024.0),
    ("mibit", 1_048_576.0),
    ("gibit", 1_073_741_824.0),
    ("tibit", 1_099_511_627_776.0),
];

impl BitRate {
    /// The infinite rate. A link with this rate has no queue.
    pub const INFINITE: BitRate = BitRate(f64::INFINITY);

    /// Creates a rate from bits per second.
    ///
    /// # Errors
    /// If the rate is not one of a link that can be simulated.
    pub fn bits(bits_per_sec: f64) -> Result<Self, String> {
        Self::number(bits_per_sec)
    }

    /// A rate in bits per second that is valid.
    pub(crate) const fn of(bits_per_sec: f64) -> Self {
        BitRate(bits_per_sec)
    }

    /// The rate in bits per second.
    pub(crate) const fn get(self) -> f64 {
        self.0
    }

    /// The rate in bits per second; `None` if it is infinite.
    pub fn finite(self) -> Option<f64> {
        self.0.is_finite().then_some(self.0)
    }

    fn number(bits: f64) -> Result<Self, String> {
        if bits.is_nan() || bits == f64::INFINITY {
            Err("a rate is a number of bits per second; write \"infinite\" for no limit".into())
        } else if bits < 0.0 {
            Err("a rate cannot be negative".into())
        } else if bits == 0.0 {
            Err("a rate cannot be zero; write \"infinite\" for no limit".into())
        } else if bits < *RATES.start() {
            Err("a rate is at least 8bit, one byte per second".into())
        } else if bits > *RATES.end() {
            Err("a rate is at most 10tbit; write \"infinite\" for no limit".into())
        } else {
            Ok(BitRate(bits))
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let lower = text.trim().to_ascii_lowercase();
        if lower == "infinite" {
            return Ok(BitRate::INFINITE);
        }
        let quantity = split(&lower, EXPECTED)?;
        if quantity.unit.is_empty() {
            return Self::number(quantity.number);
        }
        if let Some((_, scale)) = UNITS.iter().find(|(unit, _)| *unit == quantity.unit) {
            return Self::number(quantity.number * scale);
        }
        // `mbps` is megabytes per second in tc and megabits elsewhere.
        if let Some(prefix) = quantity.unit.strip_suffix("bps")
            && ["", "k", "m", "g", "t", "ki", "mi", "gi", "ti"].contains(&prefix)
        {
            let (n, bytes) = (quantity.number, quantity.number * 8.0);
            return Err(format!(
                "`{}` can mean bits or bytes per second (tc reads bytes): write {n}{prefix}bit for \
                 bits or {bytes}{prefix}bit for bytes",
                shorten(text)
            ));
        }
        Err(format!("`{}` is not {EXPECTED}", shorten(text)))
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_finite() {
            return f.write_str("infinite");
        }
        // The largest unit of which the rate is an integer multiple.
        let exact = UNITS[..5].iter().rev().find(|(_, scale)| (self.0 / scale).fract() == 0.0);
        match exact {
            Some((unit, scale)) if (self.0 / scale) * scale == self.0 => {
                write!(f, "{}{unit}", self.0 / scale)
            }
            _ => write!(f, "{}bit", self.0),
        }
    }
}

quantity!(
    BitRate,
    "a rate such as \"15mbit\"",
    "A rate: bits per second as tc writes them, or `infinite`. A bare number is bit/s. \
     `mbps` and the like are refused: tc reads them as bytes.",
    r"^(infinite|[0-9.]+([eE][+-]?[0-9]+)? ?(([kmgt]i?)?bit)?)$",
    ["15mbit", "1gbit", "64kbit", "infinite"]
);

/// A finite rate of a link that changes, or zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangedRate(f64);

impl ChangedRate {
    /// The rate in bits per second.
    pub(crate) const fn get(self) -> f64 {
        self.0
    }

    fn number(bits: f64) -> Result<Self, String> {
        if bits == 0.0 { Ok(ChangedRate(0.0)) } else { Self::finite(BitRate::number(bits)?) }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let lower = text.trim().to_ascii_lowercase();
        match split(&lower, EXPECTED) {
            Ok(quantity) if quantity.number == 0.0 && ["", "bit"].contains(&quantity.unit) => {
                Ok(ChangedRate(0.0))
            }
            _ => Self::finite(BitRate::parse(text)?),
        }
    }

    fn finite(rate: BitRate) -> Result<Self, String> {
        let rate = rate.finite().ok_or("a rate that changes is finite; `0bit` stops the link")?;
        Ok(ChangedRate(rate))
    }
}

impl fmt::Display for ChangedRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0.0 { f.write_str("0bit") } else { BitRate(self.0).fmt(f) }
    }
}

quantity!(
    ChangedRate,
    "a rate such as \"15mbit\" or \"0bit\"",
    "A finite rate, or 0 for a link that stops. A bare number is bit/s.",
    r"^[0-9.]+([eE][+-]?[0-9]+)? ?(([kmgt]i?)?bit)?$",
    ["5mbit", "0bit"]
);

/// A finite rate or a range of rates: `50mbit..250mbit`.
pub type RateRange = Range<BitRate>;

impl RateRange {
    fn number(bits: f64) -> Result<Self, String> {
        BitRate::number(bits).map(|rate| RateRange::new(rate, rate))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let range: Self = Range::read(text)?;
        if range.high() == BitRate::INFINITE {
            return Err("the rates of a range are finite".into());
        }
        Ok(range)
    }
}

quantity!(
    RateRange,
    "a rate such as \"15mbit\" or a range such as \"50mbit..250mbit\"",
    "A finite rate, or a range `low..high` from which rates are drawn, uniformly.",
    r"^[0-9.]+([eE][+-]?[0-9]+)? ?(([kmgt]i?)?bit)?(\.\.[0-9.]+([eE][+-]?[0-9]+)? ?(([kmgt]i?)?bit)?)?$",
    ["50mbit", "50mbit..250mbit"]
);
