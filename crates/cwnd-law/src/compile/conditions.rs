//! Conditions: operations that skip if they are false.

use super::names::Place;
use super::values::unify;
use super::{Checked, Compiler, fault};
use crate::Diagnostic;
use crate::code::Op;
use crate::hook::Type;
use crate::law::Domain;
use crate::syntax::{Binary, Expr, ExprKind};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// The operations that skip if the condition is false, and the variables that are known not to be
/// none where it is true and where it is false.
#[derive(Default)]
pub(super) struct Condition {
    pub(super) when_false: Vec<usize>,
    pub(super) there_if_true: Vec<Place>,
    pub(super) there_if_false: Vec<Place>,
}

impl Condition {
    /// A condition that is one operation.
    fn of(skip: usize) -> Self {
        Condition { when_false: vec![skip], ..Condition::default() }
    }
}

impl<'f> Compiler<'f> {
    /// Compiles a condition: its operations skip if it is false, and end here if it is true.
    pub(super) fn condition(&mut self, expr: &'f Expr) -> Checked<Condition> {
        self.enter(expr)?;
        let mark = self.code.mark();
        let condition = self.condition_of(expr);
        self.code.reset(mark);
        self.depth -= 1;
        condition
    }

    fn condition_of(&mut self, expr: &'f Expr) -> Checked<Condition> {
        match &expr.kind {
            ExprKind::Not(of) => {
                let condition = self.condition(of)?;
                Ok(self.inverse(condition))
            }
            ExprKind::Binary(Binary::And, a, b) => {
                let before = self.there.clone();
                let first = self.condition(a)?;
                self.check_choice(a, b, "and")?;
                self.there.extend(&first.there_if_true);
                let second = self.condition(b)?;
                self.there = before;
                Ok(Condition {
                    when_false: [first.when_false, second.when_false].concat(),
                    there_if_true: [first.there_if_true, second.there_if_true].concat(),
                    there_if_false: Vec::new(),
                })
            }
            ExprKind::Binary(Binary::Or, a, b) if !self.names.is_optional(a, &|_| true) => {
                let before = self.there.clone();
                let first = self.condition(a)?;
                self.check_choice(a, b, "or")?;
                let skip = self.code.skip();
                self.code.land(&first.when_false);
                self.there.extend(&first.there_if_false);
                let second = self.condition(b)?;
                self.there = before;
                self.code.land(&[skip]);
                Ok(Condition {
                    when_false: second.when_false,
                    there_if_true: Vec::new(),
                    there_if_false: [first.there_if_false, second.there_if_false].concat(),
                })
            }
            ExprKind::Binary(Binary::Is, a, b) => self.is(a, b),
            ExprKind::Binary(Binary::IsNot, a, b) => {
                let condition = self.is(a, b)?;
                Ok(self.inverse(condition))
            }
            ExprKind::Binary(
                operator @ (Binary::Less
                | Binary::AtMost
                | Binary::Greater
                | Binary::AtLeast
                | Binary::Equal
                | Binary::NotEqual),
                a,
                b,
            ) => self.comparison(*operator, a, b, expr),
            _ => {
                let value = self.some(expr)?;
                if unify(value.kind, Type::Truth).is_none() {
                    let message = format!("this must be true or false, it is {}", value.kind);
                    return fault(&expr.span, message);
                }
                Ok(Condition::of(self.code.test(Op::Unless, value.register, value.register)))
            }
        }
    }

    fn comparison(
        &mut self,
        operator: Binary,
        a: &'f Expr,
        b: &'f Expr,
        expr: &Expr,
    ) -> Checked<Condition> {
        let x = self.some(a)?;
        if matches!(x.kind, Type::Choice(_) | Type::ParameterChoice(_)) {
            let error = Diagnostic::error(expr.span.clone(), "choices are tested by \"is\"");
            return Err(match (operator, &a.kind, &b.kind) {
                (Binary::Equal, ExprKind::Name(a), ExprKind::Name(b)) => {
                    error.help(format!("write {a} is {b}"))
                }
                (Binary::NotEqual, ExprKind::Name(a), ExprKind::Name(b)) => {
                    error.help(format!("write {a} is not {b}"))
                }
                _ => error,
            });
        }
        let y = self.some(b)?;
        for side in [a, b] {
            if let ExprKind::Name(name) = &side.kind {
                self.known.push(name);
            }
        }
        let kind = self.same(&x, &y, &expr.span)?;
        if matches!(kind, Type::Choice(_) | Type::ParameterChoice(_) | Type::Truth) {
            let message = "numbers and times are compared, this is neither";
            return fault(&expr.span, message);
        }
        let (op, x, y) = match operator {
            Binary::Less => (Op::UnlessLess, x, y),
            Binary::Greater => (Op::UnlessLess, y, x),
            Binary::AtMost => (Op::UnlessAtMost, x, y),
            Binary::AtLeast => (Op::UnlessAtMost, y, x),
            _ => (Op::UnlessEqual, x, y),
        };
        let condition = Condition::of(self.code.test(op, x.register, y.register));
        Ok(if operator == Binary::NotEqual { self.inverse(condition) } else { condition })
    }

    /// The operand after `or` or `and` is no choice of the test before it: `why is loss or mark`.
    fn check_choice(&self, a: &Expr, b: &Expr, operator: &str) -> Checked<()> {
        let ExprKind::Name(other) = &b.kind else { return Ok(()) };
        if self.names.knows(other) || !self.names.is_choice(other) {
            return Ok(());
        }
        let last = match &a.kind {
            ExprKind::Binary(Binary::And | Binary::Or, _, last) => &last.kind,
            test => test,
        };
        let ExprKind::Binary(is @ (Binary::Is | Binary::IsNot), value, choice) = last else {
            return Ok(());
        };
        let (ExprKind::Name(value), ExprKind::Name(choice)) = (&value.kind, &choice.kind) else {
            return Ok(());
        };
        let is = if *is == Binary::Is { "is" } else { "is not" };
        Err(Diagnostic::error(b.span.clone(), format!("{other} is no condition"))
            .help(format!("write \"{value} {is} {choice} {operator} {value} {is} {other}\"")))
    }

    fn inverse(&mut self, condition: Condition) -> Condition {
        let skip = self.code.skip();
        self.code.land(&condition.when_false);
        Condition {
            when_false: vec![skip],
            there_if_true: condition.there_if_false,
            there_if_false: condition.there_if_true,
        }
    }

    /// Whether a value is none, or one of its choices.
    fn is(&mut self, a: &'f Expr, b: &'f Expr) -> Checked<Condition> {
        let value = self.value(a)?;
        match &b.kind {
            ExprKind::None => {
                if !self.names.is_optional(a, &|_| true) {
                    return fault(&a.span, "this is never none");
                }
                let (present, none) = (self.present(&value), self.code.constant(0.0));
                let place = match &a.kind {
                    ExprKind::Name(name) => self.names.find(name),
                    _ => None,
                };
                Ok(Condition {
                    there_if_false: place.into_iter().collect(),
                    ..Condition::of(self.code.test(Op::UnlessEqual, present, none))
                })
            }
            ExprKind::Name(name) => {
                self.need(&value, a)?;
                if self.is_open(&value) {
                    return Ok(Condition::of(self.code.test(
                        Op::UnlessEqual,
                        value.register,
                        value.register,
                    )));
                }
                let choices: Vec<&str> = match value.kind {
                    Type::Choice(choices) => choices.to_vec(),
                    Type::ParameterChoice(parameter) => {
                        match &self.names.parameters[parameter].is.domain {
                            Domain::Choice(choices) => choices.iter().map(String::as_str).collect(),
                            _ => Vec::new(),
                        }
                    }
                    other => {
                        let message =
                            format!("\"is\" asks for none or for a choice, this is {other}");
                        return fault(&a.span, message);
                    }
                };
                let Some(place) = choices.iter().position(|choice| choice == name) else {
                    let error = Diagnostic::error(b.span.clone(), format!("{name} is no choice"));
                    return Err(error.help(format!("choices are {}", choices.join(", "))));
                };
                let choice = self.code.constant(place as f64);
                Ok(Condition::of(self.code.test(Op::UnlessEqual, value.register, choice)))
            }
            _ => fault(&b.span, "after \"is\" stands none or the name of a choice"),
        }
    }
}
