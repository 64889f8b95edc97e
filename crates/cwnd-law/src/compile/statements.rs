//! Statements: blocks, assignments, branches and returns.

use super::names::{Local, Place};
use super::values::{Value, unify};
use super::{Checked, Compiler, fault};
use crate::Diagnostic;
use crate::code::Op;
use crate::hook::{Input, Type};
use crate::syntax::{Expr, ExprKind, Name, Statement};
use crate::unit::Unit;
use alloc::format;
use alloc::vec::Vec;
use core::mem;
use core::ops::Range;

/// The most times that statements are repeated.
pub(crate) const MAX_TIMES: f64 = 64.0;

impl<'f> Compiler<'f> {
    /// Compiles statements; whether each path through them returns.
    pub(super) fn block(&mut self, statements: &'f [Statement]) -> Checked<bool> {
        let mut returned = false;
        let locals = self.names.locals.len();
        for statement in statements {
            if returned {
                if let Some(span) = span_of(statement) {
                    self.warnings.push(Diagnostic::warning(span, "this is never reached"));
                }
                break;
            }
            self.code.free();
            returned = self.statement(statement)?;
        }
        self.end_locals(locals);
        self.there.retain(|place| !matches!(place, Place::Local(local) if *local >= locals));
        Ok(returned)
    }

    fn statement(&mut self, statement: &'f Statement) -> Checked<bool> {
        match statement {
            Statement::Pass => {}
            Statement::Let { name, value } => {
                self.names.check_new(name)?;
                let value = self.value(value)?;
                self.code.free();
                let register = self.code.temporary();
                let present = value.present.map(|_| self.code.temporary());
                self.move_both(register, present, &value);
                self.code.hold();
                let value = Value { register, present, kind: value.kind, constant: None };
                self.names.locals.push(Local { name, value, read: false });
            }
            Statement::Add { name, value } => self.add(name, value)?,
            Statement::Assign { name, value } => {
                self.check_changes(name)?;
                if let Some(history) = self.names.history(&name.text) {
                    self.scale(history, name, value)?;
                    return Ok(false);
                }
                let Some(place) = self.names.state(&name.text) else {
                    return Err(self.names.not_a_state(name));
                };
                self.names.states[place].written = true;
                let compiled = self.value(value)?;
                self.store(place, compiled, &value.span)?;
                self.known.push(&name.text);
            }
            Statement::Return { value, span } => {
                self.answer(value.as_ref(), span)?;
                return Ok(true);
            }
            Statement::If { condition, then, otherwise } => {
                return self.branch(condition, then, otherwise);
            }
            Statement::Repeat { count, most, body } => self.repeat(count, most, body)?,
        }
        Ok(false)
    }

    /// The hook may change the state.
    pub(super) fn check_changes(&self, name: &Name) -> Checked<()> {
        match self.names.hook.filter(|hook| !hook.changes_state()) {
            Some(hook) => {
                fault(&name.span, format!("\"on {}\" may not change the state", hook.name()))
            }
            None => Ok(()),
        }
    }

    fn branch(
        &mut self,
        condition: &'f Expr,
        then: &'f [Statement],
        otherwise: &'f [Statement],
    ) -> Checked<bool> {
        self.enter(condition)?;
        let before = self.there.clone();
        let condition = self.condition(condition)?;
        self.there.extend(&condition.there_if_true);
        let then_returns = self.block(then)?;
        let after_then = mem::replace(&mut self.there, before);
        let skip = (!then_returns && !otherwise.is_empty()).then(|| self.code.skip());
        self.code.land(&condition.when_false);
        self.there.extend(&condition.there_if_false);
        let otherwise_returns = self.block(otherwise)?;
        self.code.land(skip.as_slice());
        self.depth -= 1;
        if otherwise_returns {
            self.there = after_then;
        } else if !then_returns {
            self.there.retain(|place| after_then.contains(place));
        }
        Ok(then_returns && otherwise_returns)
    }

    /// Compiles statements that are repeated: the code has them each time.
    fn repeat(&mut self, count: &'f Expr, most: &'f Expr, body: &'f [Statement]) -> Checked<()> {
        let times = match most.kind {
            ExprKind::Number(number, Unit::PLAIN) if (1.0..=MAX_TIMES).contains(&number) => number,
            _ => {
                let message = format!("this must be a number from 1 to {MAX_TIMES}");
                return fault(&most.span, message);
            }
        };
        self.enter(count)?;
        let value = self.some(count)?;
        if unify(value.kind, Type::Number(Unit::PLAIN)).is_none() {
            let message = format!("a count is a plain number, this is {}", value.kind);
            return fault(&count.span, message);
        }
        let held = self.code.free();
        let left = self.code.temporary();
        self.code.emit_move(left, value.register);
        let (zero, one) = (self.code.constant(0.0), self.code.constant(1.0));
        let (mut ends, mut there) = (Vec::new(), self.there.clone());
        for _ in 0..times as usize {
            self.code.hold();
            ends.push(self.code.test(Op::UnlessLess, zero, left));
            let returns = self.block(body)?;
            self.code.release(held + 1);
            if returns {
                break;
            }
            self.code.emit(Op::Subtract, left, left, one);
            there.retain(|place| self.there.contains(place));
        }
        self.code.release(held);
        self.code.land(&ends);
        self.there = there;
        self.depth -= 1;
        Ok(())
    }

    /// Assigns a state.
    pub(super) fn store(&mut self, place: usize, value: Value, span: &Range<usize>) -> Checked<()> {
        let state = &mut self.names.states[place];
        if value.present.is_some() && !state.may_be_none {
            let message = format!("{} is never none, this value may be", state.name.text);
            return Err(Diagnostic::error(span.clone(), message)
                .help("write \"or\" and another value, or begin the state with none"));
        }
        let Some(kind) = unify(state.kind, value.kind) else {
            let message = format!("{} is {}, this is {}", state.name.text, state.kind, value.kind);
            return fault(span, message);
        };
        state.kind = kind;
        let (register, flag) = state.registers();
        // The flag first: the value may be of the same state.
        if let Some(flag) = flag {
            let present = self.present(&value);
            self.code.emit_move(flag, present);
        }
        self.code.emit_move(register, value.register);
        self.there.retain(|there| *there != Place::State(place));
        if value.present.is_none() {
            self.there.push(Place::State(place));
        }
        Ok(())
    }

    /// Compiles a return.
    fn answer(&mut self, value: Option<&'f Expr>, span: &Range<usize>) -> Checked<()> {
        let Some(hook) = self.names.hook else { return Ok(()) };
        let answer = hook.answer();
        let (Some(expr), Some(wanted)) = (value, answer.kind) else {
            if value.is_none() && answer.kind.is_none() {
                self.end(None);
                return Ok(());
            }
            let what = if answer.kind.is_none() { "no value" } else { "a value" };
            return fault(span, format!("\"on {}\" returns {what}", hook.name()));
        };
        // The only names of choices that stand alone are those of an answer.
        if let (Type::Choice(choices), ExprKind::Name(name)) = (wanted, &expr.kind)
            && let Some(place) = choices.iter().position(|choice| choice == name)
        {
            let (register, there) = (self.code.constant(place as f64), self.code.constant(1.0));
            self.code.test(Op::End, register, there);
            return Ok(());
        }
        let value = self.value(expr)?;
        if unify(wanted, value.kind).is_none() {
            let message = format!(
                "\"on {}\" returns a value that is {wanted}, this is {}",
                hook.name(),
                value.kind
            );
            return fault(&expr.span, message);
        }
        if !answer.may_be_none {
            self.need(&value, expr)?;
        }
        let there = self.present(&value);
        self.code.test(Op::End, value.register, there);
        Ok(())
    }

    /// Ends a hook without an answer of its own, or with that input.
    pub(super) fn end(&mut self, answer: Option<Input>) {
        let (value, there) = match answer {
            Some(input) => (self.code.input(input).0, self.code.constant(1.0)),
            None => (self.code.constant(0.0), self.code.constant(0.0)),
        };
        self.code.test(Op::End, value, there);
    }
}

fn span_of(statement: &Statement) -> Option<Range<usize>> {
    match statement {
        Statement::Let { name, .. }
        | Statement::Assign { name, .. }
        | Statement::Add { name, .. } => Some(name.span.clone()),
        Statement::Return { span, .. } => Some(span.clone()),
        Statement::If { condition, .. } => Some(condition.span.clone()),
        Statement::Repeat { count, .. } => Some(count.span.clone()),
        Statement::Pass => None,
    }
}
