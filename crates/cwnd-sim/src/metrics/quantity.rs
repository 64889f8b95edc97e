//! Quantities in bounds of metrics, and their form for people.

use super::Dimension;
use crate::units::{RATES, TIMES, shorten, split};

/// Reads a rate in bits per second.
pub(super) fn parse_rate(text: &str) -> Result<f64, String> {
    parse(text, "rate", "15mbit", &RATES, 1.0, false)
}

/// Reads a time in seconds. Zero is allowed, and needs no unit.
pub(super) fn parse_time(text: &str) -> Result<f64, String> {
    parse(text, "time", "100ms", &TIMES[..7], 1e9, true)
}

/// Reads a number with one of `units`, divided by `base`.
fn parse(
    text: &str,
    kind: &str,
    example: &str,
    units: &[(&str, f64)],
    base: f64,
    zero: bool,
) -> Result<f64, String> {
    let (shown, lower) = (shorten(text), text.trim().to_lowercase());
    let no = || format!("'{shown}' is not a {kind} such as {example}");
    let read = split(&lower, kind).map_err(|_| no())?;
    let number = lower.strip_suffix(read.unit).unwrap_or_default().trim_end();
    if number.starts_with(['+', '-']) || !read.unit.chars().all(char::is_alphabetic) {
        return Err(no());
    }
    if read.unit.is_empty() && read.number != 0.0 {
        return Err(format!("a {kind} needs a unit, such as {example}"));
    }
    if let Some(prefix) = read.unit.strip_suffix("bps") {
        let unit = read.unit;
        return Err(format!(
            "'{shown}' is ambiguous, tc reads {unit} as bytes per second: write {number}{prefix}bit"
        ));
    }
    let scale = units.iter().find(|(unit, _)| *unit == read.unit).map(|(_, scale)| scale / base);
    let scale = match scale {
        Some(scale) => scale,
        None if read.unit.is_empty() => 1.0,
        None => {
            let known: Vec<_> = units.iter().map(|(unit, _)| *unit).collect();
            return Err(format!("{}; the units are {}", no(), known.join(", ")));
        }
    };
    let value = read.number * scale;
    if value.is_finite() && (value > 0.0 || zero) {
        return Ok(value);
    }
    let least = if zero { "at least 0" } else { "above 0" };
    Err(format!("{}: it must be {least} and finite", no()))
}

/// Formats a value with `digits` significant digits, as `%g` does in C.
fn general(value: f64, digits: usize) -> String {
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

/// Formats a value with four significant digits in the largest unit below it.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let least = |factor: f64| (1.0 - 0.5e-4) * factor;
    let fit = units.iter().find(|(factor, _)| value.abs() >= least(*factor));
    let (factor, unit) = fit.or(units.last()).copied().unwrap_or((1.0, ""));
    let text = general(value / factor, 4);
    let long = text.contains("e+").then(|| text.parse::<f64>().ok()).flatten();
    format!("{} {unit}", long.map_or(text, |number| format!("{number:.0}")))
}

/// Formats a time in seconds.
pub(super) fn format_time(seconds: f64) -> String {
    match seconds {
        0.0 => "0 s".into(),
        _ => scaled(seconds, &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]),
    }
}

/// Formats a value of a dimension for people.
pub fn format_value(dimension: Dimension, value: f64) -> String {
    let rates = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
    match dimension {
        _ if value.is_nan() => "unknown".into(),
        Dimension::Rate if value.is_infinite() => "infinite".into(),
        Dimension::Rate => scaled(value, &rates),
        Dimension::Time => format_time(value),
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
        let error = |found: Result<f64, String>| found.unwrap_err();
        assert_eq!(parse_rate(" 4 Mbit ").unwrap(), 4e6);
        assert_eq!(parse_time("0").unwrap(), 0.0);
        assert_eq!(parse_time("35ms").unwrap(), 0.035);
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
