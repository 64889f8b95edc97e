//! Bounds of metrics.

use super::Dimension;
use crate::scenario::units;

/// How a bound compares a value with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `<`
    Below,
}

impl Operator {
    /// The operators; a longer one before its beginning.
    const ALL: [Self; 4] = [Self::AtLeast, Self::AtMost, Self::Above, Self::Below];

    /// The operator as text.
    pub const fn text(self) -> &'static str {
        match self {
            Self::AtLeast => ">=",
            Self::AtMost => "<=",
            Self::Above => ">",
            Self::Below => "<",
        }
    }

    /// Returns the operator of a text.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|each| each.text() == text).ok_or_else(|| format!("no operator is {text}"))
    }

    /// Splits a bound such as `>= 4mbit` into its operator and its value.
    ///
    /// # Errors
    /// If the text is not a bound.
    pub fn split(bound: &str) -> Result<(Self, &str), String> {
        let text = bound.trim();
        let found = Self::ALL.into_iter().find_map(|operator| {
            let value = text.strip_prefix(operator.text())?;
            Some((operator, value)).filter(|(_, value)| !value.starts_with('='))
        });
        found
            .map(|(operator, value)| (operator, value.trim()))
            .filter(|(_, value)| !value.is_empty())
            .ok_or_else(|| {
                format!("\"{bound}\" is not a bound: an operator (>=, <=, > or <) and a value")
            })
    }

    /// Compares a value with a limit; false for NaN.
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::AtLeast => value >= limit,
            Self::AtMost => value <= limit,
            Self::Above => value > limit,
            Self::Below => value < limit,
        }
    }
}

/// A bound of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// How a value is compared with the limit.
    pub operator: Operator,
    /// In bits per second, seconds, or without unit.
    pub limit: f64,
}

impl Bound {
    /// Reads a bound such as `>= 4mbit`.
    ///
    /// # Errors
    /// One sentence that says what is allowed.
    pub fn parse(dimension: Dimension, text: &str) -> Result<Self, String> {
        let (operator, value) = Operator::split(text)?;
        Ok(Bound { operator, limit: limit(dimension, value)? })
    }

    /// Judges a value; an unknown one, NaN, does not hold.
    pub fn holds(self, value: f64) -> bool {
        self.operator.holds(value, self.limit)
    }
}

/// Reads the value of a bound: a rate or a time with a unit, a fraction such as `0.01` or `1%`, or a number.
///
/// # Errors
/// One sentence that says what is allowed.
pub fn limit(dimension: Dimension, text: &str) -> Result<f64, String> {
    if text == "0" {
        return Ok(0.0);
    }
    match dimension {
        Dimension::Rate => units::bits_per_second(text),
        Dimension::Time => units::seconds(text),
        Dimension::Fraction => {
            let value = match text.strip_suffix('%') {
                Some(percent) => number(percent.trim_end()) / 100.0,
                None => number(text),
            };
            if (0.0..=1.0).contains(&value) {
                Ok(value)
            } else {
                Err(format!("'{text}' is not a fraction such as 0.01 or 1%"))
            }
        }
        Dimension::Count | Dimension::Number | Dimension::Harm => {
            let value = number(text);
            if value.is_finite() && value >= 0.0 {
                Ok(value)
            } else {
                Err(format!("'{text}' is not a number, at least 0 and without a unit"))
            }
        }
    }
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Dimension::{Fraction, Number, Rate, Time};

    #[test]
    fn a_bound_has_an_operator_and_a_value() {
        assert_eq!(Operator::split(" >=4mbit "), Ok((Operator::AtLeast, "4mbit")));
        assert_eq!(Operator::split("< 1.5 baseline"), Ok((Operator::Below, "1.5 baseline")));
        for text in ["", "4mbit", "= 1", ">== 1", ">= "] {
            let error = Operator::split(text).map(|_| ());
            assert_eq!(
                error,
                Err(format!("\"{text}\" is not a bound: an operator (>=, <=, > or <) and a value"))
            );
        }
    }

    #[test]
    fn limits_are_in_base_units() {
        let limits = [(Rate, "4mbit"), (Time, "9ms"), (Fraction, "5%"), (Number, "3"), (Rate, "0")];
        let limits = limits.map(|(dimension, text)| limit(dimension, text));
        assert_eq!(limits, [Ok(4e6), Ok(9.0 * 1e-3), Ok(0.05), Ok(3.0), Ok(0.0)]);
    }

    #[test]
    fn wrong_limits_are_errors() {
        let error = |dimension, text| limit(dimension, text).err().unwrap_or_default();
        assert_eq!(error(Rate, "4"), "a rate needs a unit, such as 15mbit");
        assert!(
            error(Rate, "4ms").starts_with("'4ms' is not a rate such as 15mbit; the units are")
        );
        assert!(error(Time, "3mbit").starts_with("'3mbit' is not a time such as 100ms"));
        assert!(error(Rate, "0mbit").contains("above 0"));
        assert_eq!(error(Fraction, "90"), "'90' is not a fraction such as 0.01 or 1%");
        assert_eq!(error(Number, "3%"), "'3%' is not a number, at least 0 and without a unit");
        assert_eq!(error(Number, "inf"), "'inf' is not a number, at least 0 and without a unit");
    }

    #[test]
    fn an_unknown_value_does_not_hold() {
        let bound = Bound::parse(Rate, ">= 4mbit").unwrap();
        assert_eq!([4e6, 3.9e6, f64::NAN].map(|value| bound.holds(value)), [true, false, false]);
        let below = Bound::parse(Rate, "< 4mbit").unwrap();
        assert_eq!([4e6, 3.9e6, f64::NAN].map(|value| below.holds(value)), [false, true, false]);
    }
}
