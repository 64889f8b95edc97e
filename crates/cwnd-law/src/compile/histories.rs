//! Histories: the last values that a law has added, in registers. Their operations are those of each
//! value, one after the other.

use super::names::{Local, is_of_some};
use super::registers::Register;
use super::values::{FOLDS, Value, number, unify};
use super::{Checked, Compiler, fault};
use crate::Diagnostic;
use crate::code::Op;
use crate::hook::Type;
use crate::syntax::{Binary, Expr, ExprKind, Name};
use crate::unit::Unit;
use alloc::format;

impl<'f> Compiler<'f> {
    /// Compiles `peaks.add(value)`: each value takes the place of the one before it.
    pub(super) fn add(&mut self, name: &'f Name, value: &'f Expr) -> Checked<()> {
        let Some(text) = name.text.strip_suffix(".add") else {
            let message = "a value is added to a history, such as peaks.add(w)";
            return fault(&name.span, message);
        };
        let Some(place) = self.names.history(text) else {
            return fault(&name.span, format!("no history is called {text}"));
        };
        self.check_changes(name)?;
        let added = self.some(value)?;
        let history = &mut self.names.histories[place];
        history.written = true;
        let Some(kind) = unify(history.kind, added.kind).filter(is_number) else {
            let message =
                format!("{text} has values that are {}, this is {}", history.kind, added.kind);
            return fault(&value.span, message);
        };
        history.kind = kind;
        let (count, values, size) = (history.count(), history.values(), history.size as f64);
        // What is not a number is not added.
        let skip = self.code.test(Op::UnlessEqual, added.register, added.register);
        let newer = values.clone().skip(1).chain([added.register]);
        for (value, newer) in values.zip(newer) {
            self.code.emit(Op::Move, value, newer, newer);
        }
        let (one, size) = (self.code.constant(1.0), self.code.constant(size));
        self.code.emit(Op::Add, count, count, one);
        self.code.emit(Op::Min, count, count, size);
        self.code.land(&[skip]);
        Ok(())
    }

    /// Compiles `peaks = peaks * value`, or a quotient.
    pub(super) fn scale(&mut self, place: usize, name: &'f Name, value: &'f Expr) -> Checked<()> {
        let (op, by) = match &value.kind {
            ExprKind::Binary(operator @ (Binary::Multiply | Binary::Divide), of, by) if matches!(&of.kind, ExprKind::Name(of) if *of == name.text) => {
                (if *operator == Binary::Multiply { Op::Multiply } else { Op::Divide }, by)
            }
            _ => return Err(self.names.not_a_state(name)),
        };
        let factor = self.some(by)?;
        if unify(factor.kind, Type::Number(Unit::PLAIN)).is_none() {
            let message = format!("a factor is a plain number, this is {}", factor.kind);
            return fault(&by.span, message);
        }
        for value in self.names.histories[place].values() {
            self.code.emit(op, value, value, factor.register);
        }
        Ok(())
    }

    /// Compiles a function of the values of a history, or of what `each` makes of them.
    pub(super) fn fold(
        &mut self,
        function: &'f Name,
        place: usize,
        each: Option<(&'f Name, &'f Expr)>,
    ) -> Checked<Value> {
        let text = function.text.as_str();
        if !FOLDS.contains(&text) {
            let error = Diagnostic::error(
                function.span.clone(),
                format!("{text} is no function of a history"),
            );
            return Err(error.help(format!("functions of histories are {}", FOLDS.join(", "))));
        }
        self.names.histories[place].read = true;
        let history = self.names.histories[place];
        let count = history.count();
        let mut result = Value {
            register: count,
            present: is_of_some(text).then_some(count),
            kind: Type::Number(Unit::PLAIN),
            constant: None,
        };
        if text == "count" && each.is_none() {
            return Ok(result);
        }
        result.register = self.code.temporary();
        // Against what is not a number, max and min are the other value.
        let start = if matches!(text, "max" | "min") { f64::NAN } else { 0.0 };
        let start = self.code.constant(start);
        self.code.emit(Op::Move, result.register, start, start);
        let mark = self.code.mark();
        for value in history.values() {
            let value =
                Value { register: value, present: None, kind: history.kind, constant: None };
            let kind = self.step(function, result.register, value, each)?;
            result.kind = kind.unwrap_or(result.kind);
            self.code.reset(mark);
        }
        if text == "mean" {
            self.code.emit(Op::Divide, result.register, result.register, count);
        }
        Ok(result)
    }

    /// Compiles a step of a function of a history: the type of what it takes, unless it counts.
    fn step(
        &mut self,
        function: &'f Name,
        result: Register,
        value: Value,
        each: Option<(&'f Name, &'f Expr)>,
    ) -> Checked<Option<Type>> {
        let op = match function.text.as_str() {
            "max" => Op::Max,
            "min" => Op::Min,
            _ => Op::Add,
        };
        // Values that are not there are before the others: max and min forget them.
        let skips = each.is_some() || op == Op::Add;
        let there = skips.then(|| self.code.test(Op::UnlessEqual, value.register, value.register));
        let locals = self.names.locals.len();
        let mut of = value;
        let mut kind = Some(value.kind);
        if let Some((name, expr)) = each {
            self.names.locals.push(Local { name, value, read: false });
            if function.text == "count" {
                let condition = self.condition(expr)?;
                let one = self.code.constant(1.0);
                self.code.emit(op, result, result, one);
                self.code.land(&condition.when_false);
                kind = None;
            } else {
                of = self.some(expr)?;
                number(&of, expr)?;
                kind = Some(of.kind);
            }
        }
        if kind.is_some() {
            self.code.emit(op, result, result, of.register);
        }
        self.end_locals(locals);
        self.code.land(there.as_slice());
        Ok(kind)
    }
}

fn is_number(kind: &Type) -> bool {
    matches!(kind, Type::Number(_) | Type::Any)
}
