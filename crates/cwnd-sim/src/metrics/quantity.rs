//! Rates, times and sizes that people write and read: in bounds of metrics, on the command line and
//! in Python. A number without unit is an error, where a scenario file has a unit for it.

use super::Dimension;
use crate::units::{RATES, TIMES, shorten, split};

/// A wrong name of a metric, a wrong bound, or a wrong quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MetricError(pub(super) String);

impl From<String> for MetricError {
    fn from(message: String) -> Self {
        MetricError(message)
    }
}

/// A kind of quantity: its name, an example, and its units in bits per second, seconds or bytes.
pub struct Kind {
    name: &'static str,
    example: &'static str,
    units: &'static [(&'static str, f64)],
    base: f64,
}

/// Units of sizes: powers of 1000, and with an `i` of 1024, unlike those of queues in `tc`.
const SIZES: [(&str, f64); 11] = [
    ("b", 1.0),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
    ("tb", 1e12),
    ("pb", 1e15),
    ("kib", (1_u64 << 10) as f64),
    ("mib", (1_u64 << 20) as f64),
    ("gib", (1_u64 << 30) as f64),
    ("tib", (1_u64 << 40) as f64),
    ("pib", (1_u64 << 50) as f64),
];

impl Kind {
    /// Rates, in bits per second.
    pub const RATE: Kind = Kind { name: "rate", example: "15mbit", units: &RATES, base: 1.0 };
    /// Times, in seconds.
    pub const TIME: Kind = Kind { name: "time", example: "100ms", units: &TIMES, base: 1e9 };
    /// Sizes, in bytes.
    pub const SIZE: Kind = Kind { name: "size", example: "10GB", units: &SIZES, base: 1.0 };

    /// Reads a quantity above zero in bits per second, seconds or bytes. With `zero`, 0 is allowed,
    /// and needs no unit.
    ///
    /// # Errors
    /// One line says what is allowed.
    pub fn parse(&self, text: &str, zero: bool) -> Result<f64, MetricError> {
        self.scaled(text).and_then(|value| self.check(value, zero, &format!("'{}'", shorten(text))))
    }

    /// Checks a number in bits per second, seconds or bytes; `shown` is what the user wrote.
    ///
    /// # Errors
    /// It is negative, not finite, or 0 without `zero`.
    pub fn check(&self, value: f64, zero: bool, shown: &str) -> Result<f64, MetricError> {
        if value.is_finite() && (value > 0.0 || zero && value == 0.0) {
            return Ok(value);
        }
        let least = if zero { "at least 0" } else { "above 0" };
        let Kind { name, example, .. } = self;
        let no = format!("{shown} is not a {name} such as {example}");
        Err(MetricError(format!("{no}: it must be {least} and finite")))
    }

    fn scaled(&self, text: &str) -> Result<f64, MetricError> {
        let Kind { name, example, units, base } = self;
        let (shown, lower) = (shorten(text), text.trim().to_lowercase());
        let no = || format!("'{shown}' is not a {name} such as {example}");
        let read = split(&lower, name).map_err(|_| no())?;
        let (unit, number) =
            (read.unit, lower.strip_suffix(read.unit).unwrap_or_default().trim_end());
        if number.starts_with(['+', '-']) || !unit.chars().all(char::is_alphabetic) {
            return Err(no().into());
        }
        if unit.is_empty() && read.number != 0.0 {
            return Err(format!("a {name} needs a unit, such as {example}").into());
        }
        if let Some(prefix) = unit.strip_suffix("bps") {
            return Err(format!(
                "'{shown}' is ambiguous, tc reads {unit} as bytes per second: write {number}{prefix}bit"
            )
            .into());
        }
        let found = |unit: &str| units.iter().find(|(known, _)| *known == unit);
        if let Some((_, scale)) = found(unit) {
            return Ok(read.number * (scale / base));
        }
        let prefix = unit.to_uppercase();
        if found(&format!("{unit}ib")).is_some() {
            return Err(format!(
                "'{shown}' is ambiguous: write {number}{prefix}B (powers of 1000) or {number}{prefix}iB (powers of 1024)"
            )
            .into());
        }
        let known: Vec<_> = units.iter().map(|(unit, _)| *unit).collect();
        match unit {
            "" => Ok(read.number),
            _ => Err(format!("{}; the units are {}", no(), known.join(", ")).into()),
        }
    }
}

/// Formats a value with `digits` significant digits, from 1 to 17, as `%g` does in C.
fn general(value: f64, digits: usize) -> String {
    let digits = digits.clamp(1, 17);
    let scientific = format!("{value:.*e}", digits - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let decimals = i32::try_from(digits).map_or(0, |digits| digits - 1 - exponent);
    match usize::try_from(decimals) {
        Ok(decimals) if exponent >= -4 => trim(&format!("{value:.decimals$}")),
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
        }
    }
}

/// Formats a value with `digits` significant digits in the largest unit below it.
fn scaled(value: f64, digits: usize, units: &[(f64, &str)]) -> String {
    let least = 1.0 - 0.5 / 10_f64.powi(i32::try_from(digits).unwrap_or(i32::MAX));
    let fit = units.iter().find(|(factor, _)| value.abs() >= least * factor);
    let (factor, unit) = fit.or(units.last()).copied().unwrap_or((1.0, ""));
    let text = general(value / factor, digits);
    let long = text.contains("e+").then(|| text.parse::<f64>().ok()).flatten();
    format!("{} {unit}", long.map_or(text, |number| format!("{number:.0}")))
}

/// Formats a time in seconds with `digits` significant digits.
pub fn format_time(seconds: f64, digits: usize) -> String {
    match seconds {
        0.0 => "0 s".into(),
        _ => scaled(seconds, digits, &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]),
    }
}

/// Formats a rate in bits per second with `digits` significant digits.
pub fn format_rate(bps: f64, digits: usize) -> String {
    let units = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
    if bps.is_infinite() { "infinite".into() } else { scaled(bps, digits, &units) }
}

/// Formats a value of a dimension for people.
pub fn format_value(dimension: Dimension, value: f64) -> String {
    match dimension {
        _ if value.is_nan() => "unknown".into(),
        Dimension::Rate => format_rate(value, 4),
        Dimension::Time => format_time(value, 4),
        Dimension::Count => format!("{value:.0}"),
        Dimension::Fraction | Dimension::Number => general(value, 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_short() {
        let shown = |dimension, values: &[f64]| {
            values.iter().map(|value| format_value(dimension, *value)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown(Dimension::Rate, &[4.2e6, 980.0]), "4.2 Mbit/s 980 bit/s");
        assert_eq!(shown(Dimension::Time, &[0.1, 120.0, 0.0, 5e-8]), "100 ms 120 s 0 s 50 ns");
        assert_eq!(shown(Dimension::Time, &[72_000.0, 0.999_96]), "72000 s 1 s");
        let numbers = [0.9, 0.012_345, 12_345.6, 1e-5, 0.0, f64::INFINITY, f64::NAN];
        let text = "0.9 0.01235 1.235e+04 1e-05 0 inf unknown";
        assert_eq!(shown(Dimension::Number, &numbers), text);
        assert_eq!(shown(Dimension::Count, &[3.0]), "3");
    }

    #[test]
    fn quantities_need_units() {
        let error = |found: Result<f64, MetricError>| found.unwrap_err().to_string();
        let parse_rate = |text| Kind::RATE.parse(text, false);
        assert_eq!(parse_rate(" 4 Mbit ").unwrap(), 4e6);
        assert_eq!(Kind::TIME.parse("0", true).unwrap(), 0.0);
        assert_eq!(Kind::TIME.parse("35ms", false).unwrap(), 0.035);
        assert_eq!(
            error(parse_rate("4ms")),
            "'4ms' is not a rate such as 15mbit; the units are bit, kbit, mbit, gbit, tbit, kibit, mibit, gibit, tibit"
        );
        assert_eq!(error(parse_rate("")), "'' is not a rate such as 15mbit");
        assert_eq!(error(parse_rate("-4mbit")), "'-4mbit' is not a rate such as 15mbit");
        assert_eq!(error(parse_rate("4")), "a rate needs a unit, such as 15mbit");
        assert_eq!(
            error(parse_rate("4mbps")),
            "'4mbps' is ambiguous, tc reads mbps as bytes per second: write 4mbit"
        );
        assert_eq!(
            error(parse_rate("0bit")),
            "'0bit' is not a rate such as 15mbit: it must be above 0 and finite"
        );
    }
}
