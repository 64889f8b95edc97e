//! Parameters: their defaults, units and what they may be.

use super::{Checked, Compiler, fault};
use crate::Diagnostic;
use crate::hook::{Kind, Type};
use crate::law::{Domain, Parameter};
use crate::syntax::{self, Allowed, Expr, ExprKind};
use crate::unit::Unit;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The most choices of a parameter.
pub(crate) const MAX_CHOICES: usize = 32;
/// The largest pacing rate over window / smoothed round-trip time.
const MAX_PACING: f64 = 100.0;

impl<'f> Compiler<'f> {
    pub(super) fn parameter(&mut self, declared: &'f syntax::Parameter) -> Checked<Parameter> {
        let syntax::Parameter { name, symbol, default, counts, allowed, meaning } = declared;
        let (value, unit, domain) = match (allowed, &default.kind) {
            (None, ExprKind::Truth(on)) => (f64::from(u8::from(*on)), Unit::PLAIN, Domain::Switch),
            (None, _) => {
                let error = Diagnostic::error(name.span.clone(), "a number needs its range");
                return Err(error.help("write \"in\" and an interval such as (0, 1]"));
            }
            (Some(Allowed::Choices(choices)), ExprKind::Name(chosen)) => {
                if let Some(choice) = choices.get(MAX_CHOICES) {
                    let message = format!("a parameter has at most {MAX_CHOICES} choices");
                    return fault(&choice.span, message);
                }
                for (i, choice) in choices.iter().enumerate() {
                    if choices[..i].iter().any(|other| other.text == choice.text) {
                        return fault(&choice.span, format!("{} is a choice twice", choice.text));
                    }
                }
                let names: Vec<String> = choices.iter().map(|choice| choice.text.clone()).collect();
                let Some(place) = names.iter().position(|choice| choice == chosen) else {
                    let message = format!("{chosen} is no choice of {}", name.text);
                    return fault(&default.span, message);
                };
                (place as f64, Unit::PLAIN, Domain::Choice(names))
            }
            (Some(Allowed::Choices(_)), _) => {
                return fault(&default.span, "the default is one of the choices");
            }
            (Some(Allowed::Interval { min, max, min_excluded, max_excluded }), _) => {
                let (least, min_unit) = self.constant_number(min)?;
                let (most, max_unit) = self.constant_number(max)?;
                let (value, unit) = self.constant_number(default)?;
                for (expr, end, other) in [(min, least, min_unit), (max, most, max_unit)] {
                    if other != unit && end != 0.0 {
                        let message =
                            format!("the default is {unit}, this end of the range {other}");
                        return fault(&expr.span, message);
                    }
                }
                let domain = Domain::Number {
                    min: least,
                    max: most,
                    min_excluded: *min_excluded,
                    max_excluded: *max_excluded,
                };
                let open = *min_excluded || *max_excluded;
                let empty = if open { least >= most } else { least > most };
                if empty {
                    let message = format!("the range from {least} to {most} is empty");
                    return fault(&(min.span.start..max.span.end), message);
                }
                if !domain.contains(value) {
                    return fault(&default.span, "the default is outside of the range");
                }
                (value, unit, domain)
            }
        };
        let counted = match counts {
            Some("bits") => {
                Some((Unit::PER_SECOND, "a number of bits is one in a second: 1e6 /s bits"))
            }
            Some(_) => Some((Unit::PLAIN, "a number of packets is a plain number")),
            None => None,
        };
        if let Some((expected, message)) = counted
            && (unit != expected || !matches!(domain, Domain::Number { .. }))
        {
            return fault(&default.span, message);
        }
        let (name, meaning) = (name.text.clone(), meaning.clone());
        let symbol = symbol.as_ref().unwrap_or(&name).clone();
        Ok(Parameter { symbol, name, meaning, default: value, unit, counts: *counts, domain })
    }

    /// The pacing rate over window / smoothed round-trip time.
    pub(super) fn factor(&mut self, expr: &'f Expr) -> Checked<f64> {
        match self.constant_number(expr)? {
            _ if self.names.kind == Kind::Rate => {
                fault(&expr.span, "a law for the rate is always paced")
            }
            (factor, Unit::PLAIN) if (0.0..=MAX_PACING).contains(&factor) => Ok(factor),
            _ => fault(&expr.span, format!("pacing is a number from 0 to {MAX_PACING}")),
        }
    }

    /// The value of an expression of numbers.
    fn constant_number(&mut self, expr: &'f Expr) -> Checked<(f64, Unit)> {
        let value = self.value(expr)?;
        match (value.constant, value.kind) {
            (Some(constant), _) if !constant.is_finite() => {
                fault(&expr.span, "this must be a finite number")
            }
            (Some(constant), Type::Number(unit)) => Ok((constant, unit)),
            (Some(constant), Type::Any) => Ok((constant, Unit::PLAIN)),
            _ => fault(&expr.span, "this must be a number that needs no name"),
        }
    }
}
