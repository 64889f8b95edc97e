//! Warnings of what its author probably did not mean: names without a use, and divisions by 0.

use super::Compiler;
use super::names::Variable;
use crate::Diagnostic;
use crate::syntax::{Expr, ExprKind, Name};
use alloc::format;

impl Compiler<'_> {
    /// Warns of what the law declares and does not use.
    pub(super) fn warn_of_unused(&mut self) {
        let names = &self.names;
        let parameters = names.parameters.iter().filter(|declared| !declared.read);
        let parameters = parameters.map(|declared| (declared.name, "parameter"));
        let states = names.states.iter().filter(|state| !state.read);
        let states = states.map(|state| (state.name, "state"));
        let expressions = names.expressions.iter().filter(|named| !named.read);
        let expressions = expressions.map(|named| (named.name, "expression"));
        let unused = parameters
            .chain(states)
            .chain(expressions)
            .map(|(name, what)| warning(name, format!("the {what} {} is never used", name.text)));
        let fixed = names.states.iter().filter(|state| state.read && !state.written);
        let fixed = fixed.map(|state| {
            warning(state.name, format!("the state {} never changes", state.name.text))
        });
        self.warnings.extend(unused.chain(fixed));
        self.warnings.sort_by_key(|warning| warning.span.start);
        self.warnings.dedup();
    }

    /// Ends the names of a block, which are those since `first`, and warns of the unused.
    pub(super) fn end_locals(&mut self, first: usize) {
        for local in self.names.locals.drain(first..).filter(|local| !local.read) {
            self.warnings.push(warning(local.name, format!("{} is never used", local.name.text)));
        }
    }

    /// Warns where a state that begins with 0 divides.
    pub(super) fn warn_of_zero(&mut self, divisor: &Expr) {
        let ExprKind::Name(name) = &divisor.kind else { return };
        let zero = |state: &Variable<'_>| {
            state.name.text == *name
                && !self.compared.contains(&name.as_str())
                && matches!(state.initial.kind, ExprKind::Number(number, _) if number == 0.0)
        };
        if self.names.states.iter().any(zero) {
            let message = format!("{name} begins with 0: the first division by it may be by 0");
            self.warnings.push(Diagnostic::warning(divisor.span.clone(), message));
        }
    }
}

fn warning(name: &Name, message: alloc::string::String) -> Diagnostic {
    Diagnostic::warning(name.span.clone(), message)
}
