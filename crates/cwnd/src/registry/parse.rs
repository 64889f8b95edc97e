//! Reads a [`Spec`]: `name`, or `name(value, parameter=value)`.

use super::error::quoted;
use super::{Algorithm, Domain, Parameter, Spec, SpecError, find};

/// More than any spec needs.
pub(super) const MAX_BYTES: usize = 256;

pub(super) fn spec(text: &str) -> Result<Spec, SpecError> {
    if text.len() > MAX_BYTES {
        return Err(SpecError::TooLong(text.len()));
    }
    let text = text.trim();
    if text.is_empty() {
        return Err(SpecError::Empty);
    }
    let (name, arguments) = match text.split_once('(') {
        None => (text, None),
        Some((name, rest)) => (name.trim_end(), Some(inside(rest)?)),
    };
    let algorithm = find(name).ok_or_else(|| SpecError::UnknownName(quoted(name)))?;
    let mut spec = Spec::new(algorithm);
    if let Some(arguments) = arguments
        && !arguments.trim().is_empty()
    {
        fill(&mut spec, algorithm, arguments)?;
    }
    Ok(spec)
}

/// What stands before the closing parenthesis, which must be the last thing.
fn inside(rest: &str) -> Result<&str, SpecError> {
    match rest.split_once(')') {
        None => Err(SpecError::Malformed { expected: "a closing parenthesis", found: quoted("") }),
        Some((inside, "")) => Ok(inside),
        Some((_, after)) => Err(SpecError::Malformed {
            expected: "nothing after the closing parenthesis",
            found: quoted(after.trim()),
        }),
    }
}

fn fill(spec: &mut Spec, algorithm: &'static Algorithm, text: &str) -> Result<(), SpecError> {
    let mut given = [false; super::spec::MAX_PARAMETERS];
    let mut named = false;
    for (position, argument) in text.split(',').enumerate() {
        let (at, parameter, value) = match argument.split_once('=') {
            Some((name, value)) => {
                named = true;
                let name = name.trim();
                let (at, parameter) = algorithm
                    .parameter(name)
                    .ok_or_else(|| SpecError::unknown_parameter(algorithm, name))?;
                (at, parameter, value)
            }
            None if named => {
                return Err(SpecError::Order { algorithm, given: quoted(argument.trim()) });
            }
            None => {
                let parameter =
                    algorithm.parameters.get(position).ok_or(SpecError::TooMany { algorithm })?;
                (position, parameter, argument)
            }
        };
        if given[at] {
            return Err(SpecError::Duplicate { algorithm, parameter });
        }
        given[at] = true;
        let value = value.trim();
        if lacks_unit(parameter, value) {
            return Err(SpecError::Unit { algorithm, parameter, given: quoted(value) });
        }
        let read = read(parameter, value).filter(|&read| parameter.allows(read));
        spec.set(
            at,
            read.ok_or_else(|| SpecError::Value { algorithm, parameter, given: quoted(value) })?,
        );
    }
    Ok(())
}

/// The value of `text`, held as [`Domain`] says.
fn read(parameter: &Parameter, text: &str) -> Option<f64> {
    match parameter.domain {
        Domain::Switch { .. } => match text {
            "on" | "true" | "1" => Some(1.0),
            "off" | "false" | "0" => Some(0.0),
            _ => None,
        },
        Domain::Choice { choices, .. } => {
            choices.iter().position(|choice| choice.eq_ignore_ascii_case(text)).map(|at| at as f64)
        }
        Domain::Number { .. } => {
            let (number, suffix) = text.split_at(suffix_at(text));
            scaled(fraction(number)?, parameter.unit, suffix.trim())
        }
    }
}

/// Where the unit begins: the first letter that is not an exponent's, or a line before it.
fn suffix_at(text: &str) -> usize {
    let bytes = text.as_bytes();
    let exponent = |at: usize| {
        matches!(bytes[at], b'e' | b'E')
            && bytes.get(at + 1).is_some_and(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-'))
    };
    text.char_indices()
        .find(|&(at, c)| c.is_alphabetic() && !exponent(at))
        .map_or(text.len(), |(at, _)| at - usize::from(text[..at].ends_with('/')))
}

/// `0.0625`, `6.25e-2` or `1/16`.
fn fraction(text: &str) -> Option<f64> {
    match text.split_once('/') {
        None => decimal(text),
        Some((numerator, denominator)) => Some(decimal(numerator)? / decimal(denominator)?),
    }
}

/// A decimal; not the infinities and NaNs that the standard library reads as well.
fn decimal(text: &str) -> Option<f64> {
    let text = text.trim();
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    if plain { text.parse().ok() } else { None }
}

/// Whether `text` is a number other than 0, and a time or a rate, which needs a unit.
fn lacks_unit(parameter: &Parameter, text: &str) -> bool {
    !units(parameter.unit).is_empty() && fraction(text).is_some_and(|number| number != 0.0)
}

/// The suffixes of a unit: for times how many are a second, for bit rates how many bit/s they are.
/// Units other than these and "/s" have none.
pub(super) fn units(unit: &str) -> &'static [(&'static str, f64)] {
    match unit {
        "s" => &[("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)],
        "bit/s" => &[("bit", 1.0), ("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9)],
        "/s" => &[("/s", 1.0)],
        _ => &[],
    }
}

/// `value` of a `suffix` in the parameter's own unit.
fn scaled(value: f64, unit: &str, suffix: &str) -> Option<f64> {
    let suffix = if suffix == "µs" { "us" } else { suffix };
    let scale = units(unit).iter().find(|(name, _)| *name == suffix).map(|(_, scale)| *scale);
    match (unit, scale) {
        (_, None) => suffix.is_empty().then_some(value),
        // Dividing keeps `10ms` and `0.01s` the same number; multiplying would not.
        ("s", Some(scale)) => Some(value / scale),
        (_, Some(scale)) => Some(value * scale),
    }
}
