//! The names that a law declares and is given, and messages for those that it does not know.

use super::registers::Register;
use super::values::{FOLDS, FUNCTIONS, RANDOM, Value};
use super::{Checked, fault};
use crate::Diagnostic;
use crate::code::REGISTERS;
use crate::hook::{Hook, Input, Kind, LIMITS, SIGNALS, Type};
use crate::law::{Domain, Parameter};
use crate::nearest::nearest;
use crate::syntax::{Binary, Expr, ExprKind, Name};
use crate::unit::Unit;
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

/// Units and other names that a law may not declare.
const RESERVED: &[&str] = &["ns", "us", "ms", "s"];

/// The parameters of the machine, which every window law has.
const MACHINE: &[&str] = &["start", "pacing"];
/// The most parameters of a law.
pub(crate) const MAX_PARAMETERS: usize = 10;
/// The most named expressions of a law.
pub(crate) const MAX_EXPRESSIONS: usize = 100;

/// A variable whose value may be tested for none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    State(usize),
    Input(Input),
    Local(usize),
}

/// A parameter.
pub(super) struct Declared<'f> {
    pub(super) name: &'f Name,
    pub(super) is: Parameter,
    pub(super) read: bool,
}

/// A state.
pub(super) struct Variable<'f> {
    pub(super) name: &'f Name,
    pub(super) kind: Type,
    pub(super) may_be_none: bool,
    pub(super) register: usize,
    pub(super) initial: &'f Expr,
    pub(super) read: bool,
    pub(super) written: bool,
}

impl Variable<'_> {
    /// Its register, and the register that is 0 if its value is none.
    pub(super) fn registers(&self) -> (Register, Option<Register>) {
        let present = self.may_be_none.then_some(Register::State(self.register + 1));
        (Register::State(self.register), present)
    }
}

/// A history: the register of the count of its values, and behind it those of the values, the newest
/// last. One without a value is not a number.
#[derive(Clone, Copy)]
pub(super) struct History<'f> {
    pub(super) name: &'f Name,
    pub(super) kind: Type,
    pub(super) register: usize,
    pub(super) size: usize,
    pub(super) read: bool,
    pub(super) written: bool,
}

impl History<'_> {
    pub(super) fn count(&self) -> Register {
        Register::State(self.register)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = Register> + Clone + use<> {
        (self.register + 1..=self.register + self.size).map(Register::State)
    }
}

/// A value of a hook, and its temporary registers.
pub(super) struct Local<'f> {
    pub(super) name: &'f Name,
    pub(super) value: Value,
    pub(super) read: bool,
}

/// A named expression.
pub(super) struct Named<'f> {
    pub(super) name: &'f Name,
    pub(super) value: &'f Expr,
    /// Whether it depends on parameters; nothing if it depends on more.
    depends: Option<bool>,
    /// The register of one that depends on parameters alone: it is computed at the start of a
    /// connection.
    pub(super) register: Option<usize>,
    /// Its type, where it has a register.
    pub(super) kind: Type,
    pub(super) read: bool,
}

/// The names of a law, and those of the hook that is compiled.
pub(super) struct Names<'f> {
    pub(super) kind: Kind,
    pub(super) parameters: Vec<Declared<'f>>,
    pub(super) states: Vec<Variable<'f>>,
    /// How many of them have a value: an initial value knows those before it.
    pub(super) ready: usize,
    pub(super) histories: Vec<History<'f>>,
    /// The register of the generator of random numbers, if the law draws one.
    pub(super) generator: Option<usize>,
    /// The registers of states, histories and expressions of parameters.
    pub(super) kept: usize,
    pub(super) expressions: Vec<Named<'f>>,
    /// How many of them an expression may name: a named expression knows those before it.
    pub(super) visible: usize,
    /// The hook that is compiled; nothing for the initial values.
    pub(super) hook: Option<Hook>,
    pub(super) locals: Vec<Local<'f>>,
    /// The first of them that an expression may name: a named expression does not see the values of
    /// the hook that uses it.
    pub(super) first_local: usize,
}

impl<'f> Names<'f> {
    pub(super) fn new(kind: Kind) -> Self {
        Names {
            kind,
            parameters: Vec::new(),
            states: Vec::new(),
            ready: 0,
            histories: Vec::new(),
            generator: None,
            kept: 0,
            expressions: Vec::new(),
            visible: 0,
            hook: None,
            locals: Vec::new(),
            first_local: 0,
        }
    }

    /// A name that is declared: nothing else has it.
    pub(super) fn check_new(&self, name: &Name) -> Checked<()> {
        let taken = |what: &str| {
            let message = format!("{} is the name of {what}", name.text);
            fault(&name.span, message)
        };
        let text = name.text.as_str();
        if text.contains('.') {
            let message = format!("{text} has a point, which only fields of records have");
            return fault(&name.span, message);
        }
        if RESERVED.contains(&text) {
            return taken("a unit");
        }
        if self.kind == Kind::Window && MACHINE.contains(&text) {
            return taken("a parameter that every window law has");
        }
        if FUNCTIONS.iter().any(|(function, ..)| *function == text) {
            return taken("a function");
        }
        if self.parameter(text).is_some() {
            return taken("a parameter");
        }
        if self.state(text).is_some() {
            return taken("a state");
        }
        if self.history(text).is_some() {
            return taken("a history");
        }
        if self.expressions.iter().any(|named| named.name.text == text) {
            return taken("another expression");
        }
        if let Some(hook) = self.hooks_with(text).next() {
            return taken(&format!("a value that \"on {}\" is given", hook.name()));
        }
        if self.locals.iter().any(|local| local.name.text == text) {
            return taken("another value of this hook");
        }
        Ok(())
    }

    pub(super) fn add_parameter(&mut self, name: &'f Name, is: Parameter) -> Checked<()> {
        if self.parameters.len() == MAX_PARAMETERS {
            let message = format!("a law has at most {MAX_PARAMETERS} parameters");
            return fault(&name.span, message);
        }
        self.parameters.push(Declared { name, is, read: false });
        Ok(())
    }

    pub(super) fn add_state(&mut self, name: &'f Name, initial: &'f Expr) -> Checked<()> {
        let may_be_none = matches!(initial.kind, ExprKind::None);
        let register = self.keep(1 + usize::from(may_be_none), name)?;
        self.states.push(Variable {
            name,
            kind: Type::Any,
            may_be_none,
            register,
            initial,
            read: false,
            written: false,
        });
        Ok(())
    }

    pub(super) fn add_history(&mut self, name: &'f Name, size: &Expr) -> Checked<()> {
        let size = match size.kind {
            ExprKind::Number(number, Unit::PLAIN) if number >= 1.0 && number % 1.0 == 0.0 => number,
            _ => return fault(&size.span, "this must be a whole number of values, at least 1"),
        };
        // A number that is too large for it saturates.
        let size = size as usize;
        let register = self.keep(size.saturating_add(1), name)?;
        let (kind, read, written) = (Type::Any, false, false);
        self.histories.push(History { name, kind, register, size, read, written });
        Ok(())
    }

    /// Keeps registers of a state or a history: the first of them.
    pub(super) fn keep(&mut self, registers: usize, name: &Name) -> Checked<usize> {
        let register = self.kept;
        self.kept = self.kept.saturating_add(registers);
        if self.kept > REGISTERS {
            let message =
                format!("states and histories need more than the {REGISTERS} registers of a law");
            return fault(&name.span, message);
        }
        Ok(register)
    }

    pub(super) fn add_expression(&mut self, name: &'f Name, value: &'f Expr) -> Checked<()> {
        if self.expressions.len() == MAX_EXPRESSIONS {
            let message = format!("a law has at most {MAX_EXPRESSIONS} named expressions");
            return fault(&name.span, message);
        }
        let named =
            Named { name, value, depends: None, register: None, kind: Type::Any, read: false };
        self.expressions.push(named);
        Ok(())
    }

    /// The types of states and of the values of histories.
    pub(super) fn kinds(&self) -> impl Iterator<Item = Type> {
        let histories = self.histories.iter().map(|history| history.kind);
        self.states.iter().map(|state| state.kind).chain(histories)
    }

    /// Gives the named expressions of parameters their registers, when all names are declared.
    pub(super) fn fix(&mut self) {
        for at in 0..self.expressions.len() {
            let depends = self.depends(self.expressions[at].value, at);
            let register = (depends == Some(true)).then_some(self.kept);
            self.kept += usize::from(register.is_some());
            let named = &mut self.expressions[at];
            (named.depends, named.register) = (depends, register);
        }
    }

    /// Whether an expression that sees the named ones before `at` depends on a parameter; nothing
    /// if it depends on more than parameters.
    fn depends(&self, expr: &Expr, at: usize) -> Option<bool> {
        let both = |a: &Expr, b: &Expr| Some(self.depends(a, at)? | self.depends(b, at)?);
        match &expr.kind {
            ExprKind::Number(..) | ExprKind::Truth(_) => Some(false),
            ExprKind::None | ExprKind::Each(_) => None,
            ExprKind::Name(name) => {
                let mut before = self.expressions[..at].iter();
                match before.find(|named| named.name.text == *name) {
                    Some(named) => named.depends,
                    None => self.parameter(name).map(|_| true),
                }
            }
            ExprKind::Minus(of) | ExprKind::Not(of) => self.depends(of, at),
            // The other operand is a choice.
            ExprKind::Binary(Binary::Is | Binary::IsNot, of, _) => self.depends(of, at),
            ExprKind::Binary(_, a, b) => both(a, b),
            ExprKind::If { condition, then, otherwise } => {
                Some(self.depends(condition, at)? | both(then, otherwise)?)
            }
            ExprKind::Call(function, _) if function.text == RANDOM => None,
            ExprKind::Call(_, arguments) => {
                arguments.iter().try_fold(false, |any, part| Some(any | self.depends(part, at)?))
            }
        }
    }

    /// All named expressions may be used.
    pub(super) fn see_all(&mut self) {
        self.visible = self.expressions.len();
    }

    /// Begins a hook, or the initial values.
    pub(super) fn begin(&mut self, hook: Option<Hook>) {
        self.hook = hook;
        self.locals.clear();
        self.first_local = 0;
    }

    pub(super) fn parameter(&self, name: &str) -> Option<usize> {
        self.parameters.iter().position(|declared| declared.name.text == name)
    }

    pub(super) fn state(&self, name: &str) -> Option<usize> {
        self.states.iter().position(|state| state.name.text == name)
    }

    pub(super) fn history(&self, name: &str) -> Option<usize> {
        self.histories.iter().position(|history| history.name.text == name)
    }

    /// The history of a function of one, such as `sum(peaks)`.
    pub(super) fn history_of(&self, arguments: &[Expr]) -> Option<usize> {
        match arguments {
            [Expr { kind: ExprKind::Name(name), .. }] => self.history(name),
            _ => None,
        }
    }

    /// The named expression that is called `name`, if it may be used here.
    pub(super) fn expression(&self, name: &str) -> Option<usize> {
        self.expressions[..self.visible].iter().position(|named| named.name.text == name)
    }

    /// The variable called `name`.
    pub(super) fn find(&self, name: &str) -> Option<Place> {
        let locals = &self.locals[self.first_local..];
        if let Some(local) = locals.iter().position(|local| local.name.text == name) {
            return Some(Place::Local(self.first_local + local));
        }
        if let Some(state) = self.state(name).filter(|state| *state < self.ready) {
            return Some(Place::State(state));
        }
        self.hook?.inputs().find(|input| input.name() == name).map(Place::Input)
    }

    /// Whether `name` is a choice of an input or of a parameter.
    pub(super) fn is_choice(&self, name: &str) -> bool {
        let of_parameter = |declared: &Declared<'_>| match &declared.is.domain {
            Domain::Choice(choices) => choices.iter().any(|choice| choice == name),
            _ => false,
        };
        SIGNALS.contains(&name)
            || LIMITS.contains(&name)
            || self.parameters.iter().any(of_parameter)
    }

    /// Whether an expression may use `name` here.
    pub(super) fn knows(&self, name: &str) -> bool {
        let declared = self.parameter(name).or_else(|| self.expression(name));
        declared.is_some() || self.find(name).is_some()
    }

    /// Whether an expression may be none by its variables, of which `counts` selects some.
    pub(super) fn is_optional(&self, expr: &Expr, counts: &dyn Fn(Place) -> bool) -> bool {
        match &expr.kind {
            ExprKind::None => true,
            ExprKind::Name(name) => self.find(name).is_some_and(|place| {
                counts(place)
                    && match place {
                        Place::State(state) => self.states[state].may_be_none,
                        Place::Input(input) => input.may_be_none(),
                        Place::Local(local) => self.locals[local].value.present.is_some(),
                    }
            }),
            ExprKind::If { then, otherwise, .. } => {
                self.is_optional(then, counts) || self.is_optional(otherwise, counts)
            }
            ExprKind::Binary(Binary::Or, first, second) => {
                self.is_optional(first, counts) && self.is_optional(second, counts)
            }
            // An empty history has no such value.
            ExprKind::Each(each) => is_of_some(&each.function.text),
            ExprKind::Call(function, arguments) => {
                is_of_some(&function.text) && self.history_of(arguments).is_some()
            }
            _ => false,
        }
    }

    /// The hook of this kind of law that is called `name`.
    pub(super) fn hook(&self, name: &Name) -> Checked<Hook> {
        let of_kind = Hook::ALL.iter().copied().filter(|hook| hook.kind() == self.kind);
        if let Some(hook) = of_kind.clone().find(|hook| hook.name() == name.text) {
            return Ok(hook);
        }
        let message = format!("no hook is called {}", name.text);
        let error = Diagnostic::error(name.span.clone(), message);
        let names: Vec<&str> = of_kind.map(Hook::name).collect();
        Err(did_you_mean(error, &name.text, names.iter().copied())
            .unwrap_or_else(|error| error.help(format!("hooks are {}", names.join(", ")))))
    }

    /// The hooks of this kind of law that are given `name`.
    fn hooks_with(&self, name: &str) -> impl Iterator<Item = Hook> {
        let given = move |hook: &Hook| {
            hook.kind() == self.kind && hook.inputs().any(|input| input.name() == name)
        };
        Hook::ALL.iter().copied().filter(given)
    }

    /// The error for a name that an expression uses and that is not declared.
    pub(super) fn unknown(&self, name: &str, span: &Range<usize>) -> Diagnostic {
        let others: Vec<&str> = self.hooks_with(name).map(Hook::name).collect();
        if let (false, Some(hook)) = (others.is_empty(), self.hook) {
            let message = format!(
                "{name} is given to \"on {}\", not to \"on {}\"",
                others.join("\" and \"on "),
                hook.name()
            );
            return Diagnostic::error(span.clone(), message);
        }
        if self.history(name).is_some() {
            let message = format!("{name} is a history, which is no value");
            return Diagnostic::error(span.clone(), message)
                .help(format!("functions of histories are {}", FOLDS.join(", ")));
        }
        let inputs = self.hook.into_iter().flat_map(Hook::inputs).map(|input| input.name() as &str);
        let states = self.states[..self.ready].iter().map(|state| state.name);
        let locals = self.locals.iter().map(|local| local.name);
        let parameters = self.parameters.iter().map(|declared| declared.name);
        let expressions = self.expressions[..self.visible].iter().map(|named| named.name);
        let declared = states.chain(locals).chain(parameters).chain(expressions);
        let known = inputs.chain(declared.map(|name| name.text.as_str()));
        let error = Diagnostic::error(span.clone(), format!("{name} is not known here"));
        if self.is_choice(name) {
            return error.help("choices are tested by \"is\"");
        }
        did_you_mean(error, name, known).unwrap_or_else(|error| error)
    }

    /// A name to which a value is assigned, and which is no state.
    pub(super) fn not_a_state(&self, name: &Name) -> Diagnostic {
        let text = &name.text;
        let is = if self.history(text).is_some() {
            let message = format!("a history is multiplied or divided: {text} = {text} * value");
            return Diagnostic::error(name.span.clone(), message)
                .help(format!("{text}.add(value) adds a value"));
        } else if self.locals.iter().any(|local| local.name.text == *text) {
            "a value of this hook, which has one value"
        } else if self.parameter(text).is_some() {
            "a parameter, which does not change"
        } else if self.expressions.iter().any(|named| named.name.text == *text) {
            "a named expression, which is not assigned"
        } else if Input::ALL.iter().any(|input| input.name() == text) {
            "a value that the hook is given, which does not change"
        } else {
            let error = Diagnostic::error(name.span.clone(), format!("no state is called {text}"));
            let states = self.states.iter().map(|state| state.name.text.as_str());
            return did_you_mean(error, text, states)
                .unwrap_or_else(|error| error.help("a value of this hook begins with \"let\""));
        };
        Diagnostic::error(name.span.clone(), format!("{text} is {is}"))
    }
}

/// Whether a function of a history is none for an empty one.
pub(super) fn is_of_some(function: &str) -> bool {
    matches!(function, "max" | "mean" | "min")
}

/// The error with the name nearest to `given`, if any is near; else the error as it is.
pub(super) fn did_you_mean<'a>(
    error: Diagnostic,
    given: &str,
    names: impl Iterator<Item = &'a str>,
) -> Result<Diagnostic, Diagnostic> {
    match nearest(given, names) {
        Some(near) => Ok(error.help(format!("did you mean {near}?"))),
        None => Err(error),
    }
}
