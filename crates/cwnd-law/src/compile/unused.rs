//! Warnings of what its author probably did not mean: names without a use, and divisions by 0.

use super::Compiler;
use super::names::Variable;
use crate::Diagnostic;
use crate::syntax::{Expr, ExprKind, Name};
use alloc::format;
use alloc::string::String;

impl Compiler<'_> {
    /// Warns of what the law declares and does not use.
    pub(super) fn warn_of_unused(&mut self) {
        let names = &self.names;
        let parameters = names.parameters.iter().filter(|declared| !declared.read);
        let parameters = parameters.map(|declared| (declared.name, "parameter"));
        let states = names.states.iter().filter(|state| !state.read);
        let states = states.map(|state| (state.name, "state"));
        let histories = names.histories.iter().filter(|history| !history.read);
        let histories = histories.map(|history| (history.name, "history"));
        let expressions = names.expressions.iter().filter(|named| !named.read);
        let expressions = expressions.map(|named| (named.name, "expression"));
        let unused =
            parameters.chain(states).chain(histories).chain(expressions).map(|(name, what)| {
                warning(name, format!("the {what} {} is never used", name.text))
            });
        let fixed = names.states.iter().filter(|state| state.read && !state.written);
        let fixed = fixed.map(|state| {
            warning(state.name, format!("the state {} never changes", state.name.text))
        });
        let empty = names.histories.iter().filter(|history| history.read && !history.written);
        let empty = empty.map(|history| {
            let message = format!("no value is added to the history {}", history.name.text);
            warning(history.name, message)
        });
        self.warnings.extend(unused.chain(fixed).chain(empty));
        self.warnings.sort_by_key(|warning| warning.span.start);
        self.warnings.dedup();
    }

    /// Ends the names of a block, which are those since `first`, and warns of the unused.
    pub(super) fn end_locals(&mut self, first: usize) {
        for local in self.names.locals.drain(first..).filter(|local| !local.read) {
            self.warnings.push(warning(local.name, format!("{} is never used", local.name.text)));
        }
    }

    /// Warns where 0 divides, or a state that begins with 0. The fraction `1/0` is infinity.
    pub(super) fn warn_of_zero(&mut self, dividend: &Expr, divisor: &Expr) {
        let zero = |expr: &Expr| matches!(expr.kind, ExprKind::Number(number, _) if number == 0.0);
        let begins = |name: &str, state: &Variable<'_>| {
            state.name.text == name && !self.known.contains(&name) && zero(state.initial)
        };
        let message = match &divisor.kind {
            ExprKind::Name(name) if self.names.states.iter().any(|state| begins(name, state)) => {
                format!("{name} begins with 0: the first division by it may be by 0")
            }
            _ if zero(divisor) && !matches!(dividend.kind, ExprKind::Number(1.0, _)) => {
                String::from("this is a division by 0")
            }
            _ => return,
        };
        self.warnings.push(Diagnostic::warning(divisor.span.clone(), message));
    }
}

fn warning(name: &Name, message: String) -> Diagnostic {
    Diagnostic::warning(name.span.clone(), message)
}
