//! What was wrong with a spec, in one line that says what is allowed.

use super::parse::units;
use super::spec::Shown;
use super::{Algorithm, Domain, Parameter, algorithms};
use alloc::string::String;
use core::fmt;
use cwnd_law::nearest;

/// Why a text is no spec.
#[derive(Clone)]
#[non_exhaustive]
pub enum SpecError {
    /// Nothing but white space.
    Empty,
    /// More bytes than any spec needs.
    TooLong(usize),
    /// No controller has this name.
    UnknownName(String),
    /// Something other than `expected` was found, or the text ended.
    Malformed {
        /// What should stand there.
        expected: &'static str,
        /// What stands there; empty at the end of the text.
        found: String,
    },
    /// The controller has no such parameter.
    UnknownParameter {
        /// The controller.
        algorithm: &'static Algorithm,
        /// The name given.
        given: String,
    },
    /// More positional values than parameters.
    TooMany {
        /// The controller.
        algorithm: &'static Algorithm,
    },
    /// A positional value after a named one.
    Order {
        /// The controller.
        algorithm: &'static Algorithm,
        /// The value given.
        given: String,
    },
    /// A parameter given twice.
    Duplicate {
        /// The controller.
        algorithm: &'static Algorithm,
        /// The parameter.
        parameter: &'static Parameter,
    },
    /// A time or a rate without a unit.
    Unit {
        /// The controller.
        algorithm: &'static Algorithm,
        /// The parameter.
        parameter: &'static Parameter,
        /// The value given.
        given: String,
    },
    /// A value that the parameter does not allow.
    Value {
        /// The controller.
        algorithm: &'static Algorithm,
        /// The parameter.
        parameter: &'static Parameter,
        /// The value given.
        given: String,
    },
}

/// No more of a user's text than this is repeated in a message.
const SHOWN: usize = 40;

/// A user's text for a message: short, and one line whatever it holds.
pub(super) fn quoted(text: &str) -> String {
    let mut shown: String =
        text.chars().take(SHOWN).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

impl SpecError {
    pub(super) fn unknown_parameter(algorithm: &'static Algorithm, given: &str) -> Self {
        SpecError::UnknownParameter { algorithm, given: quoted(given) }
    }

    pub(super) fn outside(
        algorithm: &'static Algorithm,
        parameter: &'static Parameter,
        value: f64,
    ) -> Self {
        SpecError::Value { algorithm, parameter, given: alloc::format!("{value:?}") }
    }
}

impl core::error::Error for SpecError {}

/// `unwrap` and a `main` that returns an error show it by `Debug`: the message, not the controller.
impl fmt::Debug for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpecError::Empty => {
                f.write_str("no controller given: write a name such as reno or simd(beta=1/16)")
            }
            SpecError::TooLong(bytes) => {
                let most = super::parse::MAX_BYTES;
                write!(f, "a controller's spec has at most {most} bytes, this one {bytes}")
            }
            SpecError::UnknownName(name) if name.ends_with(".law") => {
                let declare = "a program declares the text first (registry::declare)";
                write!(f, "the law \"{name}\" is not declared: {declare}")
            }
            SpecError::UnknownName(name) => {
                write!(f, "unknown controller \"{name}\"")?;
                let names = || algorithms().iter().map(|algorithm| algorithm.name);
                if let Some(close) = nearest(name, names()) {
                    write!(f, ", did you mean {close}?")?;
                }
                f.write_str(" (known: ")?;
                list(f, names())?;
                f.write_str(")")
            }
            SpecError::Malformed { expected, found } if found.is_empty() => {
                write!(f, "expected {expected} at the end of the spec")
            }
            SpecError::Malformed { expected, found } => {
                write!(f, "expected {expected}, found \"{found}\"")
            }
            SpecError::UnknownParameter { algorithm, given } => {
                write!(f, "{} has no parameter \"{given}\"", algorithm.name)?;
                let names = || algorithm.parameters.iter().map(|parameter| parameter.name);
                if let Some(close) = nearest(given, names()) {
                    write!(f, ", did you mean {close}?")?;
                }
                if algorithm.parameters.is_empty() {
                    return f.write_str(" (it takes none)");
                }
                f.write_str(" (it takes: ")?;
                list(f, names())?;
                f.write_str(")")
            }
            SpecError::TooMany { algorithm } if algorithm.parameters.is_empty() => {
                write!(f, "{} takes no values", algorithm.name)
            }
            SpecError::TooMany { algorithm } => {
                let most = algorithm.parameters.len();
                write!(f, "{} takes at most {most} values: ", algorithm.name)?;
                list(f, algorithm.parameters.iter().map(|parameter| parameter.name))
            }
            SpecError::Order { algorithm, given } => {
                let name = algorithm.name;
                write!(f, "{name}: \"{given}\" needs its parameter's name after a named value")
            }
            SpecError::Duplicate { algorithm, parameter } => {
                write!(f, "{}: {} is given twice", algorithm.name, parameter.name)
            }
            SpecError::Unit { algorithm, parameter, given } => {
                let name = parameter.name;
                write!(f, "{}: {name} cannot be \"{given}\": it needs a unit: ", algorithm.name)?;
                list(f, units(parameter.unit).iter().map(|(suffix, _)| *suffix))
            }
            SpecError::Value { algorithm, parameter, given } => {
                write!(f, "{}: {} cannot be \"{given}\": ", algorithm.name, parameter.name)?;
                allowed(f, parameter)
            }
        }
    }
}

fn list<'a>(f: &mut fmt::Formatter<'_>, names: impl Iterator<Item = &'a str>) -> fmt::Result {
    for (i, name) in names.enumerate() {
        write!(f, "{}{name}", if i == 0 { "" } else { ", " })?;
    }
    Ok(())
}

/// What `parameter` may be.
fn allowed(f: &mut fmt::Formatter<'_>, parameter: &'static Parameter) -> fmt::Result {
    match parameter.domain {
        Domain::Switch { .. } => f.write_str("it is on or off"),
        Domain::Choice { choices, .. } => {
            f.write_str("it is one of ")?;
            list(f, choices.iter().copied())
        }
        Domain::Number { range, .. } => {
            let shown = |value| Shown { parameter, value };
            write!(
                f,
                "it is a number with {} {} {} {} {}",
                shown(range.min),
                if range.min_excluded { "<" } else { "<=" },
                parameter.name,
                if range.max_excluded { "<" } else { "<=" },
                shown(range.max),
            )
        }
    }
}
