//! Checks of values. Scenarios and networks made in code have the same limits.

use cwnd::Dur;
use std::ops::RangeInclusive;

/// Rates in bits per second. A slower link would send a packet of the largest size for longer than
/// the engine's clock can count, and a faster one a small packet in less than a nanosecond.
pub(crate) const RATES: RangeInclusive<f64> = 8.0..=1e13;
/// The longest delay or timeout: 2 hours.
pub(crate) const MAX_DURATION: Dur = Dur::from_nanos(7_200_000_000_000);
/// The largest packet on the wire in bytes: the largest IP packet.
pub(crate) const MAX_PACKET: u32 = 65_535;

/// A value that cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct InvalidField {
    /// The name of the field.
    pub field: &'static str,
    /// What is wrong, and what is allowed.
    pub message: String,
}

/// The result of a check.
pub(crate) type Checked<T = ()> = Result<T, InvalidField>;

pub(crate) fn invalid<T>(field: &'static str, message: impl Into<String>) -> Checked<T> {
    Err(InvalidField { field, message: message.into() })
}

/// Writes a time with its unit, as in a scenario: `100ms`.
pub(crate) fn shown(span: Dur) -> String {
    let nanos = span.as_nanos();
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    match units.iter().find(|(_, scale)| nanos.is_multiple_of(*scale)) {
        Some((unit, scale)) => format!("{}{unit}", nanos / scale),
        None => format!("{nanos}ns"),
    }
}

/// Checks times of at most [`MAX_DURATION`].
pub(crate) fn check_spans<const N: usize>(spans: [(&'static str, Dur); N]) -> Checked {
    match spans.into_iter().find(|&(_, span)| span > MAX_DURATION) {
        Some((field, _)) => invalid(field, format!("a time is at most {}", shown(MAX_DURATION))),
        None => Ok(()),
    }
}

/// Checks times above zero and of at most [`MAX_DURATION`].
pub(crate) fn check_positive<const N: usize>(spans: [(&'static str, Dur); N]) -> Checked {
    match spans.into_iter().find(|(_, span)| span.is_zero()) {
        Some((field, _)) => invalid(field, "must be above zero"),
        None => check_spans(spans),
    }
}

/// Checks a rate of a link.
pub(crate) fn check_rate(field: &'static str, rate: f64) -> Checked {
    if RATES.contains(&rate) {
        return Ok(());
    }
    invalid(field, format!("{rate} bit/s is not from 8 bit/s to 10 Tbit/s"))
}

/// Checks a probability from 0 to 1.
pub(crate) fn check_probability(field: &'static str, value: f64) -> Checked {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    invalid(field, format!("a probability is from 0 to 1, not {value}"))
}

/// Checks the wire size of a packet.
pub(crate) fn check_size(field: &'static str, bytes: u32) -> Checked {
    if (1..=MAX_PACKET).contains(&bytes) {
        return Ok(());
    }
    invalid(field, format!("a packet has from 1 to {MAX_PACKET} bytes"))
}

/// Checks that there is data to send.
pub(crate) fn check_data(bytes: Option<u64>) -> Checked {
    if bytes == Some(0) { invalid("bytes", "a flow sends at least one byte") } else { Ok(()) }
}
