//! Times and ranges of times.

use std::fmt;

use cwnd::Dur;

use super::{Range, json_schema, quantity, shorten, split, text_or_number};
use crate::cast::whole;
use crate::check::{self, shown};

/// A time span, or a time since the start of the run: `100ms`, `10us`, `5s`, `2min`. A number
/// without a unit is in seconds. The value is in integer nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(u64);

/// The longest time of a scenario: 2 hours. Event keys of the simulator have space for 2⁴³ ns,
/// which are 2.4 hours.
pub const MAX_DURATION: Span = Span(check::MAX_DURATION.as_nanos());

const EXPECTED: &str = "a time: write it as `100ms`, `10us`, `250ns`, `5s` or `2min`";

/// Units in nanoseconds. The first one is that of numbers without a unit.
pub(crate) const UNITS: [(&str, f64); 8] = [
    ("s", 1e9),
    ("ms", 1e6),
    ("us", 1e3),
    ("µs", 1e3),
    ("ns", 1.0),
    ("min", 60e9),
    ("h", 3600e9),
    ("sec", 1e9),
];

impl Span {
    /// Zero.
    pub const ZERO: Span = Span(0);

    /// Creates a span from milliseconds, saturating at [`MAX_DURATION`].
    pub const fn millis(millis: u64) -> Self {
        let nanos = millis.saturating_mul(1_000_000);
        Span(if nanos < MAX_DURATION.0 { nanos } else { MAX_DURATION.0 })
    }

    /// The span as a duration.
    pub const fn dur(self) -> Dur {
        Dur::from_nanos(self.0)
    }

    /// The span in nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    fn number(secs: f64) -> Result<Self, String> {
        Self::scaled(secs, 1e9)
    }

    fn scaled(number: f64, scale: f64) -> Result<Self, String> {
        let nanos = (number * scale).round();
        if number < 0.0 {
            Err("a time cannot be negative".into())
        } else if nanos.is_nan() {
            Err("a time is a number of seconds, or a string such as \"100ms\"".into())
        } else if nanos > MAX_DURATION.0 as f64 {
            Err("a time is at most 2h: the simulator's clock counts nanoseconds".into())
        } else if nanos == 0.0 && number > 0.0 {
            Err("a time is at least 1ns: the simulator's clock counts nanoseconds".into())
        } else {
            Ok(Span(whole(nanos)))
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        let quantity = split(&lower, EXPECTED)?;
        if quantity.unit.is_empty() {
            return Self::number(quantity.number);
        }
        match UNITS.iter().find(|(unit, _)| *unit == quantity.unit) {
            Some((_, scale)) => Self::scaled(quantity.number, *scale),
            None => Err(format!("`{}` is not {EXPECTED}", shorten(text))),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(self.dur()))
    }
}

quantity!(
    Span,
    "a time such as \"100ms\"",
    "A time of at most 2h: ns, us, ms, s, min or h. A bare number is seconds.",
    r"^[0-9.]+([eE][+-]?[0-9]+)? ?(ns|us|µs|ms|s|sec|min|h)?$",
    ["100ms", "10us", "5s", "2min"]
);

/// A time or a range of times from which each flow draws its own: `5s` or `0s..5s`.
pub type SpanRange = Range<Span>;

impl SpanRange {
    /// Returns the time at the fraction `u` of the range.
    pub fn at(self, u: f64) -> Dur {
        let width = (self.high.0 - self.low.0) as f64;
        Dur::from_nanos(self.low.0 + whole(width * u))
    }

    fn number(secs: f64) -> Result<Self, String> {
        Span::number(secs).map(SpanRange::from)
    }

    fn parse(text: &str) -> Result<Self, String> {
        Range::read(text)
    }
}

impl From<Span> for SpanRange {
    fn from(span: Span) -> Self {
        SpanRange { low: span, high: span }
    }
}

quantity!(
    SpanRange,
    "a time such as \"5s\" or a range such as \"0s..5s\"",
    "A time, or a range `low..high` from which each flow draws its own, uniformly.",
    r"^[0-9.]+([eE][+-]?[0-9]+)? ?(ns|us|µs|ms|s|sec|min|h)?(\.\.[0-9.]+([eE][+-]?[0-9]+)? ?(ns|us|µs|ms|s|sec|min|h)?)?$",
    ["5s", "0s..5s", "1ms..10ms"]
);

/// Timestamps of a connection: `false`, `true` for a granularity of 1 ms, or a granularity such as
/// `"10ms"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps(Option<Span>);

impl Timestamps {
    /// No timestamps.
    pub const NONE: Timestamps = Timestamps(None);

    fn every(granularity: Span) -> Result<Self, String> {
        match granularity {
            Span::ZERO => Err("the granularity of timestamps cannot be zero".into()),
            granularity => Ok(Timestamps(Some(granularity))),
        }
    }

    /// The granularity; `None` without timestamps.
    pub fn granularity(self) -> Option<Dur> {
        self.0.map(Span::dur)
    }
}

text_or_number!(
    Timestamps,
    "true, false or the clock's granularity such as \"10ms\"",
    |text| Span::parse(text).and_then(Timestamps::every),
    |secs| Span::number(secs).and_then(Timestamps::every),
    {
        fn visit_bool<E: serde::de::Error>(self, on: bool) -> Result<Timestamps, E> {
            Ok(Timestamps(on.then_some(Span::millis(1))))
        }
    }
);

impl serde::Serialize for Timestamps {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(granularity) => serializer.collect_str(&granularity),
            None => serializer.serialize_bool(false),
        }
    }
}

json_schema!(Timestamps, |_| {
    "description": "Timestamps (RFC 7323): true for a clock of 1 ms, or its granularity.",
    "type": ["boolean", "string", "number"],
    "examples": [true, "10ms"],
});
