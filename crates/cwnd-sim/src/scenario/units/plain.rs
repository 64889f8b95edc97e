//! Numbers with a unit, for bounds of metrics: without a unit only 0 is allowed.

use super::rate::{BitRate, UNITS as RATES};
use super::time::UNITS as TIMES;
use super::{Quantity, shorten, split};

/// Reads a rate in bits per second with a unit, such as `15mbit`, above 0.
pub(crate) fn bits_per_second(text: &str) -> Result<f64, String> {
    if text.to_ascii_lowercase().ends_with("bps") {
        // Its error names both meanings.
        text.parse::<BitRate>()?;
    }
    let rate = with_unit(text, "rate such as 15mbit", &RATES, 1.0)?;
    if rate > 0.0 { Ok(rate) } else { out_of_range(text, "rate such as 15mbit", "above 0") }
}

/// Reads a time in seconds with a unit, such as `100ms`; 0 needs none.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let time = with_unit(text, "time such as 100ms", &TIMES, 1e9)?;
    if time >= 0.0 { Ok(time) } else { out_of_range(text, "time such as 100ms", "at least 0") }
}

/// Reads a number with one of the units, whose factors are `scale` times those of the result.
fn with_unit(text: &str, expected: &str, units: &[(&str, f64)], scale: f64) -> Result<f64, String> {
    let lower = text.to_lowercase();
    let Quantity { number, unit } =
        split(&lower, "").map_err(|_| format!("'{}' is not a {expected}", shorten(text)))?;
    if unit.is_empty() && number != 0.0 {
        let (kind, example) = expected.split_once(" such as ").unwrap_or_default();
        return Err(format!("a {kind} needs a unit, such as {example}"));
    }
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| factor / scale);
    factor.or(unit.is_empty().then_some(1.0)).map(|factor| number * factor).ok_or_else(|| {
        let known: Vec<_> = units.iter().map(|(name, _)| *name).collect();
        format!("'{}' is not a {expected}; the units are {}", shorten(text), known.join(", "))
    })
}

fn out_of_range(text: &str, expected: &str, least: &str) -> Result<f64, String> {
    Err(format!("'{}' is not a {expected}: it must be {least} and finite", shorten(text)))
}
