//! From the syntax of a law to its code: names, types, units, values that may be none, and limits.

use crate::Diagnostic;
use crate::code::{Body, MAX_CODE, MAX_COST, Op, REGISTERS, Word, apply};
use crate::hook::{Hook, Input, Kind, Type};
use crate::law::{Domain, Law, Parameter, State};
use crate::syntax::{Allowed, Binary, Expr, ExprKind, File, Item, Name, Statement};
use crate::unit::Unit;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

type Checked<T> = Result<T, Diagnostic>;

/// How deeply expressions may be nested, named ones included.
const MAX_DEPTH: usize = 200;
/// How often a law may use its named expressions: each use is a copy.
const MAX_USES: usize = 1000;

/// Units and other names that a law may not declare.
const RESERVED: &[&str] = &["ns", "us", "ms", "s"];

/// The parameters of the machine, which every window law has.
const MACHINE: &[&str] = &["start", "pacing"];
/// The most parameters of a law.
pub(crate) const MAX_PARAMETERS: usize = 10;

/// The functions: each with its operation, and whether its argument is a plain number.
const FUNCTIONS: &[(&str, Op, bool)] = &[
    ("abs", Op::Abs, false),
    ("cbrt", Op::Cbrt, false),
    ("ceil", Op::Ceil, false),
    ("exp", Op::Exp, true),
    ("floor", Op::Floor, false),
    ("log", Op::Log, true),
    ("log10", Op::Log10, true),
    ("max", Op::Max, false),
    ("min", Op::Min, false),
    ("sqrt", Op::Sqrt, false),
];

/// A register before all are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Register {
    State(usize),
    Parameter(usize),
    Constant(usize),
    Input(usize),
    Temporary(usize),
}

/// An operation before all registers are counted.
#[derive(Clone, Copy, Debug)]
struct Step {
    op: Op,
    d: Register,
    a: Register,
    b: Register,
    skip: usize,
}

/// A variable whose value may be tested for none.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    State(usize),
    Input(Input),
    Local(usize),
}

/// The value of an expression.
#[derive(Clone, Copy, Debug)]
struct Value {
    register: Register,
    /// The register that says whether it is there; nothing where it always is.
    present: Option<Register>,
    kind: Type,
    constant: Option<f64>,
}

/// A condition: the operations that skip if it is false, and which variables are there where it is
/// true and where it is false.
#[derive(Default)]
struct Condition {
    when_false: Vec<usize>,
    there_if_true: Vec<Place>,
    there_if_false: Vec<Place>,
}

struct Variable<'f> {
    name: &'f Name,
    kind: Type,
    may_be_none: bool,
    register: usize,
    initial: Option<&'f Expr>,
    read: bool,
    written: bool,
}

struct Local<'f> {
    name: &'f Name,
    kind: Type,
    register: usize,
    present: Option<usize>,
    read: bool,
}

struct Named<'f> {
    name: &'f Name,
    value: &'f Expr,
    read: bool,
}

struct Compiler<'f> {
    kind: Kind,
    parameters: Vec<Parameter>,
    parameter_names: Vec<&'f Name>,
    parameters_read: Vec<bool>,
    states: Vec<Variable<'f>>,
    lets: Vec<Named<'f>>,
    /// How many of `lets` an expression may name: a named expression knows those before it.
    visible: usize,
    steps: Vec<Step>,
    constants: Vec<f64>,
    warnings: Vec<Diagnostic>,
    bodies: Vec<Body>,
    hook: Option<Hook>,
    inputs: Vec<(Input, usize, Option<usize>)>,
    input_registers: usize,
    most_inputs: usize,
    locals: Vec<Local<'f>>,
    temporaries: usize,
    most_temporaries: usize,
    there: Vec<Place>,
    /// Names that the hook compares with a number: it knows whether they are 0.
    compared: Vec<&'f str>,
    /// The last position that an operation skips to.
    target: usize,
    depth: usize,
    uses: usize,
}

/// The law that `file` describes.
///
/// # Errors
/// The first fault.
pub(crate) fn law(file: &File) -> Checked<Law> {
    let kind = if file.rate { Kind::Rate } else { Kind::Window };
    let mut compiler = Compiler::new(kind);
    compiler.declare(file)?;
    // The types of states that begin with 0 or none follow from their assignments.
    loop {
        let before: Vec<Type> = compiler.states.iter().map(|state| state.kind).collect();
        compiler.bodies(file)?;
        if compiler.states.iter().map(|state| state.kind).eq(before) {
            break;
        }
    }
    compiler.unused();
    compiler.finish(file)
}

impl<'f> Compiler<'f> {
    fn new(kind: Kind) -> Self {
        Compiler {
            kind,
            parameters: Vec::new(),
            parameter_names: Vec::new(),
            parameters_read: Vec::new(),
            states: Vec::new(),
            lets: Vec::new(),
            visible: 0,
            steps: Vec::new(),
            constants: Vec::new(),
            warnings: Vec::new(),
            bodies: Vec::new(),
            hook: None,
            inputs: Vec::new(),
            input_registers: 0,
            most_inputs: 0,
            locals: Vec::new(),
            temporaries: 0,
            most_temporaries: 0,
            there: Vec::new(),
            compared: Vec::new(),
            target: 0,
            depth: 0,
            uses: 0,
        }
    }

    /// Collects the names of a file.
    fn declare(&mut self, file: &'f File) -> Checked<()> {
        for item in &file.items {
            match item {
                Item::Parameter { name, default, allowed, meaning } => {
                    self.new_name(name)?;
                    let parameter = self.parameter(name, default, allowed.as_ref(), meaning)?;
                    if self.parameters.len() == MAX_PARAMETERS {
                        let message = format!("a law has at most {MAX_PARAMETERS} parameters");
                        return Err(Diagnostic::error(name.span.clone(), message));
                    }
                    self.parameters.push(parameter);
                    self.parameter_names.push(name);
                    self.parameters_read.push(false);
                }
                Item::State { name, initial, .. } => {
                    self.new_name(name)?;
                    let register = self
                        .states
                        .last()
                        .map_or(0, |last| last.register + 1 + usize::from(last.may_be_none));
                    self.states.push(Variable {
                        name,
                        kind: Type::Any,
                        may_be_none: matches!(initial.kind, ExprKind::None),
                        register,
                        initial: Some(initial),
                        read: false,
                        written: false,
                    });
                }
                Item::Let { name, value } => {
                    self.new_name(name)?;
                    self.lets.push(Named { name, value, read: false });
                }
                Item::Source(_) | Item::Deviation(_) | Item::On { .. } => {}
            }
        }
        Ok(())
    }

    /// A name that is declared: nothing else has it.
    fn new_name(&self, name: &Name) -> Checked<()> {
        let taken = |what: &str| {
            Err(Diagnostic::error(
                name.span.clone(),
                format!("{} is the name of {what}", name.text),
            ))
        };
        let text = name.text.as_str();
        if text.contains('.') {
            let message = format!("{text} has a point, which only fields of records have");
            return Err(Diagnostic::error(name.span.clone(), message));
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
        if self.parameter_names.iter().any(|other| other.text == text) {
            return taken("a parameter");
        }
        if self.states.iter().any(|state| state.name.text == text) {
            return taken("a state");
        }
        if self.lets.iter().any(|named| named.name.text == text) {
            return taken("another expression");
        }
        let given =
            |hook: &&Hook| hook.kind() == self.kind && hook.inputs().any(|i| i.name() == text);
        if let Some(hook) = Hook::ALL.iter().find(given) {
            return taken(&format!("a value that \"on {}\" is given", hook.name()));
        }
        if self.locals.iter().any(|local| local.name.text == text) {
            return taken("another value of this hook");
        }
        Ok(())
    }

    fn parameter(
        &mut self,
        name: &Name,
        default: &'f Expr,
        allowed: Option<&'f Allowed>,
        meaning: &str,
    ) -> Checked<Parameter> {
        let made = |default, unit, domain| {
            Ok(Parameter {
                name: name.text.clone(),
                meaning: meaning.to_owned(),
                default,
                unit,
                domain,
            })
        };
        match (allowed, &default.kind) {
            (None, ExprKind::Truth(on)) => {
                made(if *on { 1.0 } else { 0.0 }, Unit::PLAIN, Domain::Switch)
            }
            (None, _) => {
                let error = Diagnostic::error(name.span.clone(), "a number needs its range");
                Err(error.help("write \"in\" and an interval such as (0, 1]"))
            }
            (Some(Allowed::Choices(choices)), ExprKind::Name(chosen)) => {
                for (i, choice) in choices.iter().enumerate() {
                    if choices[..i].iter().any(|other| other.text == choice.text) {
                        let message = format!("{} is a choice twice", choice.text);
                        return Err(Diagnostic::error(choice.span.clone(), message));
                    }
                }
                let names: Vec<String> = choices.iter().map(|choice| choice.text.clone()).collect();
                match names.iter().position(|choice| choice == chosen) {
                    Some(place) => made(place as f64, Unit::PLAIN, Domain::Choice(names)),
                    None => {
                        let message = format!("{chosen} is no choice of {}", name.text);
                        Err(Diagnostic::error(default.span.clone(), message))
                    }
                }
            }
            (Some(Allowed::Choices(_)), _) => {
                Err(Diagnostic::error(default.span.clone(), "the default is one of the choices"))
            }
            (Some(Allowed::Interval { min, max, min_excluded, max_excluded }), _) => {
                let (least, min_unit) = self.constant_number(min)?;
                let (most, max_unit) = self.constant_number(max)?;
                let (value, unit) = self.constant_number(default)?;
                for (expr, end, other) in [(min, least, min_unit), (max, most, max_unit)] {
                    if other != unit && end != 0.0 {
                        let message =
                            format!("the default is {unit}, this end of the range {other}");
                        return Err(Diagnostic::error(expr.span.clone(), message));
                    }
                }
                let domain = Domain::Number {
                    min: least,
                    max: most,
                    min_excluded: *min_excluded,
                    max_excluded: *max_excluded,
                };
                if !domain.contains(value) {
                    return Err(Diagnostic::error(
                        default.span.clone(),
                        "the default is outside of the range",
                    ));
                }
                made(value, unit, domain)
            }
        }
    }

    /// The value of an expression of numbers.
    fn constant_number(&mut self, expr: &'f Expr) -> Checked<(f64, Unit)> {
        let value = self.value(expr)?;
        self.steps.clear();
        match (value.constant, value.kind) {
            (Some(constant), Type::Number(unit)) if constant.is_finite() => Ok((constant, unit)),
            (Some(constant), Type::Any) => Ok((constant, Unit::PLAIN)),
            _ => Err(Diagnostic::error(
                expr.span.clone(),
                "this must be a number that needs no name",
            )),
        }
    }

    /// Compiles the initial values and all hooks.
    fn bodies(&mut self, file: &'f File) -> Checked<()> {
        self.steps.clear();
        self.constants.clear();
        self.warnings.clear();
        self.bodies.clear();
        (self.most_inputs, self.most_temporaries, self.uses) = (0, 0, 0);
        self.visible = self.lets.len();
        self.begin(None);
        for place in 0..self.states.len() {
            if let Some(initial) = self.states[place].initial {
                self.temporaries = 0;
                let value = self.value(initial)?;
                self.store(place, value, &initial.span)?;
            }
        }
        self.end(None);
        self.limits(&file.name)?;
        for item in &file.items {
            if let Item::On { hook: name, body } = item {
                let hook = self.hook_of(name)?;
                self.body(hook, name, body)?;
            }
        }
        for hook in Hook::ALL.iter().filter(|hook| hook.kind() == self.kind && hook.is_required()) {
            if !self.bodies.iter().any(|body| body.hook == Some(*hook)) {
                let message = format!("a law of this kind has \"on {}\"", hook.name());
                return Err(Diagnostic::error(file.name.span.clone(), message));
            }
        }
        Ok(())
    }

    fn hook_of(&self, name: &Name) -> Checked<Hook> {
        let of_kind = |hook: &&Hook| hook.kind() == self.kind;
        if let Some(hook) = Hook::ALL.iter().filter(of_kind).find(|hook| hook.name() == name.text) {
            if self.bodies.iter().any(|body| body.hook == Some(*hook)) {
                let message = format!("\"on {}\" is there twice", name.text);
                return Err(Diagnostic::error(name.span.clone(), message));
            }
            return Ok(*hook);
        }
        let names: Vec<&str> = Hook::ALL.iter().filter(of_kind).map(|hook| hook.name()).collect();
        let error =
            Diagnostic::error(name.span.clone(), format!("no hook is called {}", name.text));
        Err(match nearest(&name.text, names.iter().copied()) {
            Some(near) => error.help(format!("did you mean {near}?")),
            None => error.help(format!("hooks are {}", names.join(", "))),
        })
    }

    fn begin(&mut self, hook: Option<Hook>) {
        self.hook = hook;
        self.inputs.clear();
        self.locals.clear();
        self.there.clear();
        self.compared.clear();
        (self.input_registers, self.temporaries) = (0, 0);
        self.target = self.steps.len();
        self.bodies.push(Body { hook, entry: self.steps.len(), inputs: Vec::new(), cost: 0 });
    }

    /// Ends a hook without an answer of its own, or with that input.
    fn end(&mut self, answer: Option<Input>) {
        let (a, b) = match answer {
            Some(input) => (self.input(input).register, self.constant(1.0)),
            None => (self.constant(0.0), self.constant(0.0)),
        };
        self.emit(Op::End, a, a, b);
    }

    fn body(&mut self, hook: Hook, name: &'f Name, body: &'f [Statement]) -> Checked<()> {
        self.begin(Some(hook));
        if !self.block(body)? {
            let answer = hook.answer();
            if answer.kind.is_some() && !answer.may_be_none {
                let Some(input) = answer.otherwise else {
                    let message = format!("\"on {}\" returns a value on every path", hook.name());
                    return Err(Diagnostic::error(name.span.clone(), message));
                };
                let message = format!(
                    "\"on {}\" can end without return: the answer then is {}",
                    hook.name(),
                    input.name()
                );
                self.warnings.push(Diagnostic::warning(name.span.clone(), message));
            }
            self.end(answer.otherwise);
        }
        for local in self.locals.drain(..).filter(|local| !local.read) {
            let message = format!("{} is never used", local.name.text);
            self.warnings.push(Diagnostic::warning(local.name.span.clone(), message));
        }
        self.limits(name)?;
        self.most_inputs = self.most_inputs.max(self.input_registers);
        Ok(())
    }

    /// The length of the code, and the cost of the last hook.
    fn limits(&mut self, name: &Name) -> Checked<()> {
        if self.steps.len() > MAX_CODE {
            let message = format!(
                "the hooks up to this one have {} operations; {MAX_CODE} are allowed",
                self.steps.len()
            );
            return Err(Diagnostic::error(name.span.clone(), message));
        }
        let Some(body) = self.bodies.last_mut() else { return Ok(()) };
        // Skips lead forward only: the cost of a path is known from its end.
        let mut cost = vec![0_u32; self.steps.len() + 1];
        for (at, step) in self.steps.iter().enumerate().skip(body.entry).rev() {
            let next = if step.op == Op::End { 0 } else { cost[at + 1] };
            let other = if step.op.skips() { cost[at + 1 + step.skip] } else { 0 };
            let onward = if step.op == Op::Skip { other } else { next.max(other) };
            cost[at] = onward + step.op.cost();
        }
        body.cost = cost[body.entry];
        // A hook has fewer inputs than there are registers.
        let inputs = self.inputs.iter();
        body.inputs = inputs
            .map(|(input, at, flag)| (*input, *at as u8, flag.map(|flag| flag as u8)))
            .collect();
        if body.cost > MAX_COST {
            let cost = body.cost;
            let message =
                format!("\"on {}\" may take {cost} ns; {MAX_COST} are allowed", name.text);
            return Err(Diagnostic::error(name.span.clone(), message)
                .help("an exponential or logarithm counts as 200 ns, a power as 700"));
        }
        Ok(())
    }

    /// Compiles statements; whether each path through them returns.
    fn block(&mut self, statements: &'f [Statement]) -> Checked<bool> {
        let mut returned = false;
        let locals = self.locals.len();
        for statement in statements {
            if returned {
                if let Some(span) = span_of(statement) {
                    self.warnings.push(Diagnostic::warning(span, "this is never reached"));
                }
                break;
            }
            self.temporaries = self.first_temporary();
            returned = self.statement(statement)?;
        }
        // The names of a block end with it.
        for local in self.locals.drain(locals..).filter(|local| !local.read) {
            let message = format!("{} is never used", local.name.text);
            self.warnings.push(Diagnostic::warning(local.name.span.clone(), message));
        }
        self.there.retain(|place| !matches!(place, Place::Local(local) if *local >= locals));
        Ok(returned)
    }

    fn statement(&mut self, statement: &'f Statement) -> Checked<bool> {
        match statement {
            Statement::Pass => Ok(false),
            Statement::Let { name, value } => {
                self.new_name(name)?;
                let value = self.value(value)?;
                self.temporaries = self.first_temporary();
                let register = self.temporary_number();
                let present = value.present.map(|_| self.temporary_number());
                let flag = present.map(Register::Temporary);
                self.move_both(Register::Temporary(register), flag, &value);
                self.locals.push(Local { name, kind: value.kind, register, present, read: false });
                Ok(false)
            }
            Statement::Assign { name, value } => {
                let Some(place) = self.states.iter().position(|state| state.name.text == name.text)
                else {
                    return Err(self.not_a_state(name));
                };
                if let Some(hook) = self.hook.filter(|hook| !hook.changes_state()) {
                    let message = format!("\"on {}\" may not change the state", hook.name());
                    return Err(Diagnostic::error(name.span.clone(), message));
                }
                self.states[place].written = true;
                let compiled = self.value(value)?;
                self.store(place, compiled, &value.span)?;
                Ok(false)
            }
            Statement::Return { value, span } => {
                self.answer(value.as_ref(), span)?;
                Ok(true)
            }
            Statement::If { condition, then, otherwise } => {
                let before = self.there.clone();
                let condition = self.condition(condition)?;
                self.there.extend(&condition.there_if_true);
                let then_returns = self.block(then)?;
                let after_then = core::mem::replace(&mut self.there, before);
                let skip = (!then_returns && !otherwise.is_empty()).then(|| self.skip());
                self.land(&condition.when_false);
                self.there.extend(&condition.there_if_false);
                let otherwise_returns = self.block(otherwise)?;
                self.land(skip.as_slice());
                if otherwise_returns {
                    self.there = after_then;
                } else if !then_returns {
                    self.there.retain(|place| after_then.contains(place));
                }
                Ok(then_returns && otherwise_returns)
            }
        }
    }

    fn not_a_state(&mut self, name: &Name) -> Diagnostic {
        let text = &name.text;
        let is = if self.locals.iter().any(|local| local.name.text == *text) {
            "a value of this hook, which has one value"
        } else if self.parameter_names.iter().any(|other| other.text == *text) {
            "a parameter, which does not change"
        } else if self.lets.iter().any(|named| named.name.text == *text) {
            "a named expression, which is not assigned"
        } else if Input::ALL.iter().any(|input| input.name() == text) {
            "a value that the hook is given, which does not change"
        } else {
            let error = Diagnostic::error(name.span.clone(), format!("no state is called {text}"));
            return match nearest(text, self.states.iter().map(|state| state.name.text.as_str())) {
                Some(near) => error.help(format!("did you mean {near}?")),
                None => error.help("a value of this hook begins with \"let\""),
            };
        };
        Diagnostic::error(name.span.clone(), format!("{text} is {is}"))
    }

    /// Assigns a state.
    fn store(&mut self, place: usize, value: Value, span: &Range<usize>) -> Checked<()> {
        let state = &self.states[place];
        let (register, may_be_none) = (state.register, state.may_be_none);
        if value.present.is_some() && !may_be_none {
            let message = format!("{} is never none, this value may be", state.name.text);
            return Err(Diagnostic::error(span.clone(), message)
                .help("write \"or\" and another value, or begin the state with none"));
        }
        let Some(kind) = unify(state.kind, value.kind) else {
            let message = format!(
                "{} is {}, this is {}",
                state.name.text,
                self.show(state.kind),
                self.show(value.kind)
            );
            return Err(Diagnostic::error(span.clone(), message));
        };
        self.states[place].kind = kind;
        // The flag first: the value may be of the same state.
        if may_be_none {
            let present = value.present.unwrap_or_else(|| self.constant(1.0));
            self.emit_move(Register::State(register + 1), present);
        }
        self.emit_move(Register::State(register), value.register);
        self.there.retain(|there| *there != Place::State(place));
        if value.present.is_none() {
            self.there.push(Place::State(place));
        }
        Ok(())
    }

    /// Compiles a return.
    fn answer(&mut self, value: Option<&'f Expr>, span: &Range<usize>) -> Checked<()> {
        let Some(hook) = self.hook else { return Ok(()) };
        let answer = hook.answer();
        let (Some(expr), Some(wanted)) = (value, answer.kind) else {
            if value.is_none() && answer.kind.is_none() {
                self.end(None);
                return Ok(());
            }
            let what = if answer.kind.is_none() { "no value" } else { "a value" };
            let message = format!("\"on {}\" returns {what}", hook.name());
            return Err(Diagnostic::error(span.clone(), message));
        };
        // The only names of choices that stand alone are those of an answer.
        if let (Type::Choice(choices), ExprKind::Name(name)) = (wanted, &expr.kind)
            && let Some(place) = choices.iter().position(|choice| choice == name)
        {
            let (register, there) = (self.constant(place as f64), self.constant(1.0));
            self.emit(Op::End, register, register, there);
            return Ok(());
        }
        let value = self.value(expr)?;
        if unify(wanted, value.kind).is_none() {
            let message = format!(
                "\"on {}\" returns a value that is {}, this is {}",
                hook.name(),
                self.show(wanted),
                self.show(value.kind)
            );
            return Err(Diagnostic::error(expr.span.clone(), message));
        }
        if !answer.may_be_none {
            self.need(&value, expr)?;
        }
        let there = value.present.unwrap_or_else(|| self.constant(1.0));
        self.emit(Op::End, value.register, value.register, there);
        Ok(())
    }

    /// The value is there.
    fn need(&self, value: &Value, expr: &Expr) -> Checked<()> {
        if value.present.is_none() {
            return Ok(());
        }
        let what = match &expr.kind {
            ExprKind::Name(name) => name,
            _ => "this",
        };
        Err(Diagnostic::error(expr.span.clone(), format!("{what} may be none here"))
            .help("write \"or\" and another value, or test it by \"is none\""))
    }

    /// A value that is there.
    fn some(&mut self, expr: &'f Expr) -> Checked<Value> {
        let value = self.value(expr)?;
        self.need(&value, expr)?;
        Ok(value)
    }

    fn value(&mut self, expr: &'f Expr) -> Checked<Value> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Diagnostic::error(
                expr.span.clone(),
                "expressions are nested too deeply here",
            ));
        }
        let value = self.value_of(expr);
        self.depth -= 1;
        value
    }

    fn value_of(&mut self, expr: &'f Expr) -> Checked<Value> {
        match &expr.kind {
            ExprKind::Number(number, unit) => {
                // Zero is zero in every unit.
                let zero = *number == 0.0 && *unit == Unit::PLAIN;
                Ok(self.constant_value(*number, if zero { Type::Any } else { Type::Number(*unit) }))
            }
            ExprKind::Truth(is) => Ok(self.constant_value(f64::from(u8::from(*is)), Type::Truth)),
            ExprKind::None => {
                let register = self.constant(0.0);
                Ok(Value { register, present: Some(register), kind: Type::Any, constant: None })
            }
            ExprKind::Name(name) => self.name(name, &expr.span),
            ExprKind::Minus(of) => {
                let mark = self.temporaries;
                let value = self.some(of)?;
                self.number(&value, of)?;
                self.result(mark, Op::Minus, value, value, value.kind)
            }
            ExprKind::Call(function, arguments) => self.call(function, arguments, &expr.span),
            ExprKind::Binary(Binary::Or, first, second) if self.is_optional(first, &|_| true) => {
                self.first_there(first, second)
            }
            ExprKind::If { condition, then, otherwise } => self.either(condition, then, otherwise),
            ExprKind::Binary(
                operator @ (Binary::Add
                | Binary::Subtract
                | Binary::Multiply
                | Binary::Divide
                | Binary::Power),
                a,
                b,
            ) => self.arithmetic(*operator, a, b, &expr.span),
            ExprKind::Not(_) | ExprKind::Binary(..) => {
                let d = self.temporary();
                let mark = self.temporaries;
                let before = self.there.clone();
                let condition = self.condition(expr)?;
                (self.there, self.temporaries) = (before, mark);
                let (yes, no) = (self.constant(1.0), self.constant(0.0));
                self.emit(Op::Move, d, yes, yes);
                let skip = self.skip();
                self.land(&condition.when_false);
                self.emit(Op::Move, d, no, no);
                self.land(&[skip]);
                Ok(Value { register: d, present: None, kind: Type::Truth, constant: None })
            }
        }
    }

    /// Whether an expression may be none, as far as it has been tested.
    fn may_be_none(&self, expr: &Expr) -> bool {
        self.is_optional(expr, &|place| !self.there.contains(&place))
    }

    /// Whether an expression may be none by its variables, of which `counts` selects some.
    fn is_optional(&self, expr: &Expr, counts: &dyn Fn(Place) -> bool) -> bool {
        match &expr.kind {
            ExprKind::None => true,
            ExprKind::Name(name) => self.find(name).is_some_and(|place| {
                counts(place)
                    && match place {
                        Place::State(state) => self.states[state].may_be_none,
                        Place::Input(input) => input.may_be_none(),
                        Place::Local(local) => self.locals[local].present.is_some(),
                    }
            }),
            ExprKind::If { then, otherwise, .. } => {
                self.is_optional(then, counts) || self.is_optional(otherwise, counts)
            }
            ExprKind::Binary(Binary::Or, first, second) => {
                self.is_optional(first, counts) && self.is_optional(second, counts)
            }
            _ => false,
        }
    }

    /// The variable called `name`.
    fn find(&self, name: &str) -> Option<Place> {
        // A named expression does not see the values of the hook that uses it.
        let own = self.visible == self.lets.len();
        let local = self.locals.iter().position(|local| local.name.text == name);
        if let Some(local) = local.filter(|_| own) {
            return Some(Place::Local(local));
        }
        if let Some(state) = self.states.iter().position(|state| state.name.text == name) {
            return Some(Place::State(state));
        }
        self.hook?.inputs().find(|input| input.name() == name).map(Place::Input)
    }

    fn name(&mut self, name: &str, span: &Range<usize>) -> Checked<Value> {
        if let Some(place) = self.find(name) {
            let there = self.there.contains(&place);
            let (register, present, kind) = match place {
                Place::State(state) => {
                    let state = &mut self.states[state];
                    state.read = true;
                    let present = state.may_be_none.then_some(Register::State(state.register + 1));
                    (Register::State(state.register), present, state.kind)
                }
                Place::Local(local) => {
                    let local = &mut self.locals[local];
                    local.read = true;
                    let present = local.present.map(Register::Temporary);
                    (Register::Temporary(local.register), present, local.kind)
                }
                Place::Input(input) => {
                    let value = self.input(input);
                    (value.register, value.present, value.kind)
                }
            };
            return Ok(Value {
                register,
                present: present.filter(|_| !there),
                kind,
                constant: None,
            });
        }
        if let Some(parameter) = self.parameter_names.iter().position(|other| other.text == name) {
            self.parameters_read[parameter] = true;
            let kind = match self.parameters[parameter].domain {
                Domain::Number { .. } => Type::Number(self.parameters[parameter].unit),
                Domain::Switch => Type::Truth,
                Domain::Choice(_) => Type::ParameterChoice(parameter),
            };
            let register = Register::Parameter(parameter);
            return Ok(Value { register, present: None, kind, constant: None });
        }
        if let Some(at) = self.lets[..self.visible].iter().position(|named| named.name.text == name)
        {
            self.lets[at].read = true;
            self.uses += 1;
            if self.uses > MAX_USES {
                let message = format!("named expressions are used more than {MAX_USES} times");
                return Err(Diagnostic::error(span.clone(), message));
            }
            let visible = core::mem::replace(&mut self.visible, at);
            let value = self.some(self.lets[at].value);
            self.visible = visible;
            return value;
        }
        Err(self.unknown(name, span))
    }

    fn unknown(&self, name: &str, span: &Range<usize>) -> Diagnostic {
        let given =
            |hook: &&Hook| hook.kind() == self.kind && hook.inputs().any(|i| i.name() == name);
        let others: Vec<&str> = Hook::ALL.iter().filter(given).map(|hook| hook.name()).collect();
        if let (false, Some(hook)) = (others.is_empty(), self.hook) {
            let message = format!(
                "{name} is given to \"on {}\", not to \"on {}\"",
                others.join("\" and \"on "),
                hook.name()
            );
            return Diagnostic::error(span.clone(), message);
        }
        let inputs = self.hook.into_iter().flat_map(Hook::inputs).map(|input| input.name() as &str);
        let states = self.states.iter().map(|state| state.name.text.as_str());
        let locals = self.locals.iter().map(|local| local.name.text.as_str());
        let parameters = self.parameter_names.iter().map(|name| name.text.as_str());
        let lets = self.lets[..self.visible].iter().map(|named| named.name.text.as_str());
        let known = inputs.chain(states).chain(locals).chain(parameters).chain(lets);
        let error = Diagnostic::error(span.clone(), format!("{name} is not known here"));
        match nearest(name, known) {
            Some(near) => error.help(format!("did you mean {near}?")),
            None => error,
        }
    }

    fn call(
        &mut self,
        function: &'f Name,
        arguments: &'f [Expr],
        span: &Range<usize>,
    ) -> Checked<Value> {
        let Some((_, op, plain)) = FUNCTIONS.iter().find(|(name, ..)| *name == function.text)
        else {
            let names = FUNCTIONS.iter().map(|(name, ..)| *name);
            let error = Diagnostic::error(
                function.span.clone(),
                format!("no function is called {}", function.text),
            );
            return Err(match nearest(&function.text, names.clone()) {
                Some(near) => error.help(format!("did you mean {near}?")),
                None => {
                    error.help(format!("functions are {}", names.collect::<Vec<_>>().join(", ")))
                }
            });
        };
        let several = matches!(op, Op::Min | Op::Max);
        if several != (arguments.len() > 1) {
            let most = if several { "at least two values" } else { "one value" };
            let message = format!("{} is of {most}", function.text);
            return Err(Diagnostic::error(span.clone(), message));
        }
        let mark = self.temporaries;
        let mut result = self.some(&arguments[0])?;
        let unit = self.number(&result, &arguments[0])?;
        if *plain && !matches!(unit, None | Some(Unit::PLAIN)) {
            let message = format!(
                "{} is of a plain number, this is {}",
                function.text,
                self.show(result.kind)
            );
            return Err(Diagnostic::error(arguments[0].span.clone(), message));
        }
        if !several {
            let root = match op {
                Op::Sqrt => 2,
                Op::Cbrt => 3,
                _ => 1,
            };
            let kind = match unit.map(|unit| unit.root(root)) {
                None => Type::Any,
                Some(Some(unit)) => Type::Number(unit),
                Some(None) => {
                    let message = format!(
                        "{} of a value {} has no unit",
                        function.text,
                        self.show(result.kind)
                    );
                    return Err(Diagnostic::error(span.clone(), message));
                }
            };
            return self.result(mark, *op, result, result, kind);
        }
        for argument in &arguments[1..] {
            let value = self.some(argument)?;
            let kind = self.same(&result, &value, &argument.span)?;
            self.number(&value, argument)?;
            result = self.result(mark, *op, result, value, kind)?;
        }
        Ok(result)
    }

    /// The unit of a number; nothing for a zero, which has any.
    fn number(&self, value: &Value, expr: &Expr) -> Checked<Option<Unit>> {
        match value.kind {
            Type::Number(unit) => Ok(Some(unit)),
            Type::Any => Ok(None),
            other => {
                let message = format!("this must be a number, it is {}", self.show(other));
                Err(Diagnostic::error(expr.span.clone(), message))
            }
        }
    }

    /// The common type of two values.
    fn same(&self, a: &Value, b: &Value, span: &Range<usize>) -> Checked<Type> {
        unify(a.kind, b.kind).ok_or_else(|| {
            let message =
                format!("one value is {}, the other {}", self.show(a.kind), self.show(b.kind));
            Diagnostic::error(span.clone(), message)
        })
    }

    fn arithmetic(
        &mut self,
        operator: Binary,
        a: &'f Expr,
        b: &'f Expr,
        span: &Range<usize>,
    ) -> Checked<Value> {
        let mark = self.temporaries;
        let (x, mut y) = (self.some(a)?, self.some(b)?);
        if operator == Binary::Divide {
            self.warn_of_zero(b);
        }
        let instant = |value: &Value| value.kind == Type::Instant;
        let (op, kind) = match operator {
            Binary::Subtract if instant(&x) && unify(y.kind, Type::Instant).is_some() => {
                (Op::Since, Type::Number(Unit::SECONDS))
            }
            Binary::Add | Binary::Subtract if instant(&x) => {
                if unify(y.kind, Type::Number(Unit::SECONDS)).is_none() {
                    let message =
                        format!("a time is moved by seconds, this is {}", self.show(y.kind));
                    return Err(Diagnostic::error(b.span.clone(), message));
                }
                if operator == Binary::Subtract {
                    y = self.result(self.temporaries, Op::Minus, y, y, y.kind)?;
                }
                (Op::After, Type::Instant)
            }
            _ => {
                let (units, op) = ((self.number(&x, a)?, self.number(&y, b)?), operation(operator));
                let kind = match (operator, units) {
                    (Binary::Add | Binary::Subtract, _) => self.same(&x, &y, span)?,
                    (Binary::Power, (unit, exponent)) => {
                        if !matches!(exponent, None | Some(Unit::PLAIN)) {
                            let message = format!(
                                "an exponent is a plain number, this is {}",
                                self.show(y.kind)
                            );
                            return Err(Diagnostic::error(b.span.clone(), message));
                        }
                        match (unit, y.constant) {
                            (None, _) => Type::Any,
                            (Some(Unit::PLAIN), _) => Type::Number(Unit::PLAIN),
                            (Some(unit), exponent) => {
                                let power = exponent.and_then(|exponent| unit.power(exponent));
                                let Some(power) = power else {
                                    let message = format!("a power of a value {unit} has no unit");
                                    return Err(Diagnostic::error(span.clone(), message));
                                };
                                Type::Number(power)
                            }
                        }
                    }
                    (_, (Some(first), Some(second))) => {
                        Type::Number(if operator == Binary::Multiply {
                            first.times(second)
                        } else {
                            first.over(second)
                        })
                    }
                    _ => Type::Any,
                };
                (op, kind)
            }
        };
        self.result(mark, op, x, y, kind)
    }

    /// Warns where a state that begins with 0 divides.
    fn warn_of_zero(&mut self, divisor: &Expr) {
        let ExprKind::Name(name) = &divisor.kind else { return };
        let zero = |state: &&Variable<'_>| {
            state.name.text == *name
                && !self.compared.contains(&name.as_str())
                && matches!(state.initial, Some(Expr { kind: ExprKind::Number(number, _), .. }) if *number == 0.0)
        };
        if self.states.iter().any(|state| zero(&state)) {
            let message = format!("{name} begins with 0: the first division by it may be by 0");
            self.warnings.push(Diagnostic::warning(divisor.span.clone(), message));
        }
    }

    /// The first value if it is there, else the second.
    fn first_there(&mut self, first: &'f Expr, second: &'f Expr) -> Checked<Value> {
        let d = self.temporary();
        let maybe = self.may_be_none(first) && self.may_be_none(second);
        let flag = maybe.then(|| self.temporary());
        let mark = self.temporaries;
        let x = self.value(first)?;
        let present = x.present.unwrap_or_else(|| self.constant(1.0));
        let unless = self.emit(Op::Unless, present, present, present);
        self.move_both(d, flag, &Value { present: None, ..x });
        let skip = self.skip();
        self.land(&[unless]);
        self.temporaries = mark;
        let y = self.value(second)?;
        self.move_both(d, flag, &y);
        self.land(&[skip]);
        self.temporaries = mark;
        let span = first.span.start..second.span.end;
        let kind = self.same(&x, &y, &span)?;
        Ok(Value { register: d, present: flag, kind, constant: None })
    }

    /// The one value or the other.
    fn either(
        &mut self,
        condition: &'f Expr,
        then: &'f Expr,
        otherwise: &'f Expr,
    ) -> Checked<Value> {
        let before = self.there.clone();
        let d = self.temporary();
        let condition = self.condition(condition)?;
        let if_true = [before.as_slice(), &condition.there_if_true].concat();
        let if_false = [before.as_slice(), &condition.there_if_false].concat();
        self.there.clone_from(&if_false);
        let mut maybe = self.may_be_none(otherwise);
        self.there = if_true;
        maybe |= self.may_be_none(then);
        let flag = maybe.then(|| self.temporary());
        let mark = self.temporaries;
        let x = self.value(then)?;
        self.move_both(d, flag, &x);
        let skip = self.skip();
        self.land(&condition.when_false);
        self.there = if_false;
        self.temporaries = mark;
        let y = self.value(otherwise)?;
        self.move_both(d, flag, &y);
        self.land(&[skip]);
        self.there = before;
        self.temporaries = mark;
        let span = then.span.start..otherwise.span.end;
        let kind = self.same(&x, &y, &span)?;
        Ok(Value { register: d, present: flag, kind, constant: None })
    }

    /// Moves a value, and whether it is there.
    fn move_both(&mut self, to: Register, flag: Option<Register>, value: &Value) {
        self.emit_move(to, value.register);
        if let Some(flag) = flag {
            let present = value.present.unwrap_or_else(|| self.constant(1.0));
            self.emit_move(flag, present);
        }
    }

    /// Compiles a condition: its operations skip if it is false, and end here if it is true.
    fn condition(&mut self, expr: &'f Expr) -> Checked<Condition> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Diagnostic::error(
                expr.span.clone(),
                "conditions are nested too deeply here",
            ));
        }
        let condition = self.condition_of(expr);
        self.depth -= 1;
        condition
    }

    fn condition_of(&mut self, expr: &'f Expr) -> Checked<Condition> {
        let mark = self.temporaries;
        let found = match &expr.kind {
            ExprKind::Not(of) => {
                let condition = self.condition(of)?;
                self.inverse(condition)
            }
            ExprKind::Binary(Binary::And, a, b) => {
                let before = self.there.clone();
                let first = self.condition(a)?;
                self.there.extend(&first.there_if_true);
                let second = self.condition(b)?;
                self.there = before;
                Condition {
                    when_false: [first.when_false, second.when_false].concat(),
                    there_if_true: [first.there_if_true, second.there_if_true].concat(),
                    there_if_false: Vec::new(),
                }
            }
            ExprKind::Binary(Binary::Or, a, b) if !self.is_optional(a, &|_| true) => {
                let before = self.there.clone();
                let first = self.condition(a)?;
                let skip = self.skip();
                self.land(&first.when_false);
                self.there.extend(&first.there_if_false);
                let second = self.condition(b)?;
                self.there = before;
                self.land(&[skip]);
                Condition {
                    when_false: second.when_false,
                    there_if_true: Vec::new(),
                    there_if_false: [first.there_if_false, second.there_if_false].concat(),
                }
            }
            ExprKind::Binary(Binary::Is, a, b) => self.is(a, b)?,
            ExprKind::Binary(Binary::IsNot, a, b) => {
                let condition = self.is(a, b)?;
                self.inverse(condition)
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
            ) => {
                let (x, y) = (self.some(a)?, self.some(b)?);
                for side in [a, b] {
                    if let ExprKind::Name(name) = &side.kind {
                        self.compared.push(name);
                    }
                }
                let kind = self.same(&x, &y, &expr.span)?;
                if matches!(kind, Type::Choice(_) | Type::ParameterChoice(_) | Type::Truth) {
                    let message = "numbers and times are compared, this is neither";
                    return Err(Diagnostic::error(expr.span.clone(), message).help("write \"is\""));
                }
                let (op, x, y) = match operator {
                    Binary::Less => (Op::UnlessLess, x, y),
                    Binary::Greater => (Op::UnlessLess, y, x),
                    Binary::AtMost => (Op::UnlessAtMost, x, y),
                    Binary::AtLeast => (Op::UnlessAtMost, y, x),
                    _ => (Op::UnlessEqual, x, y),
                };
                let skip = self.emit(op, x.register, x.register, y.register);
                let condition = Condition { when_false: vec![skip], ..Condition::default() };
                if *operator == Binary::NotEqual { self.inverse(condition) } else { condition }
            }
            _ => {
                let value = self.some(expr)?;
                if unify(value.kind, Type::Truth).is_none() {
                    let message =
                        format!("this must be true or false, it is {}", self.show(value.kind));
                    return Err(Diagnostic::error(expr.span.clone(), message));
                }
                let skip = self.emit(Op::Unless, value.register, value.register, value.register);
                Condition { when_false: vec![skip], ..Condition::default() }
            }
        };
        self.temporaries = mark;
        Ok(found)
    }

    fn inverse(&mut self, condition: Condition) -> Condition {
        let skip = self.skip();
        self.land(&condition.when_false);
        Condition {
            when_false: vec![skip],
            there_if_true: condition.there_if_false,
            there_if_false: condition.there_if_true,
        }
    }

    /// Whether a value is none, or one of its choices.
    fn is(&mut self, a: &'f Expr, b: &'f Expr) -> Checked<Condition> {
        let value = self.value(a)?;
        let (x, y, places) = match &b.kind {
            ExprKind::None => {
                if !self.is_optional(a, &|_| true) {
                    return Err(Diagnostic::error(a.span.clone(), "this is never none"));
                }
                let present = value.present.unwrap_or_else(|| self.constant(1.0));
                let place = match &a.kind {
                    ExprKind::Name(name) => self.find(name),
                    _ => None,
                };
                (present, self.constant(0.0), place.into_iter().collect())
            }
            ExprKind::Name(name) => {
                self.need(&value, a)?;
                let choices: Vec<&str> = match value.kind {
                    Type::Choice(choices) => choices.to_vec(),
                    Type::ParameterChoice(parameter) => match &self.parameters[parameter].domain {
                        Domain::Choice(choices) => choices.iter().map(String::as_str).collect(),
                        _ => Vec::new(),
                    },
                    other => {
                        let message = format!(
                            "\"is\" asks for none or for a choice, this is {}",
                            self.show(other)
                        );
                        return Err(Diagnostic::error(a.span.clone(), message));
                    }
                };
                let Some(place) = choices.iter().position(|choice| choice == name) else {
                    let error = Diagnostic::error(b.span.clone(), format!("{name} is no choice"));
                    return Err(error.help(format!("choices are {}", choices.join(", "))));
                };
                (value.register, self.constant(place as f64), Vec::new())
            }
            _ => {
                let message = "after \"is\" stands none or the name of a choice";
                return Err(Diagnostic::error(b.span.clone(), message));
            }
        };
        let skip = self.emit(Op::UnlessEqual, x, x, y);
        Ok(Condition { when_false: vec![skip], there_if_true: Vec::new(), there_if_false: places })
    }

    fn input(&mut self, input: Input) -> Value {
        let (register, present) = match self.inputs.iter().find(|(other, ..)| *other == input) {
            Some((_, register, present)) => (*register, *present),
            None => {
                let register = self.input_registers;
                let present = input.may_be_none().then_some(register + 1);
                self.input_registers += 1 + usize::from(input.may_be_none());
                self.inputs.push((input, register, present));
                (register, present)
            }
        };
        let present = present.map(Register::Input);
        Value { register: Register::Input(register), present, kind: input.kind(), constant: None }
    }

    fn constant(&mut self, value: f64) -> Register {
        let same = |other: &f64| other.to_bits() == value.to_bits();
        let place = self.constants.iter().position(same).unwrap_or_else(|| {
            self.constants.push(value);
            self.constants.len() - 1
        });
        Register::Constant(place)
    }

    fn constant_value(&mut self, value: f64, kind: Type) -> Value {
        Value { register: self.constant(value), present: None, kind, constant: Some(value) }
    }

    /// The first temporary register after those of the hook's own values.
    fn first_temporary(&self) -> usize {
        self.locals.last().map_or(0, |last| last.present.unwrap_or(last.register) + 1)
    }

    fn temporary_number(&mut self) -> usize {
        let register = self.temporaries;
        self.temporaries += 1;
        self.most_temporaries = self.most_temporaries.max(self.temporaries);
        register
    }

    fn temporary(&mut self) -> Register {
        Register::Temporary(self.temporary_number())
    }

    /// An operation whose operands' registers, from `mark` on, are free after it.
    fn result(&mut self, mark: usize, op: Op, a: Value, b: Value, kind: Type) -> Checked<Value> {
        if let (Some(x), Some(y)) = (a.constant, b.constant) {
            self.temporaries = mark;
            return Ok(self.constant_value(apply(op, x, y), kind));
        }
        self.temporaries = mark;
        let d = self.temporary();
        self.emit(op, d, a.register, b.register);
        Ok(Value { register: d, present: None, kind, constant: None })
    }

    fn emit(&mut self, op: Op, d: Register, a: Register, b: Register) -> usize {
        self.steps.push(Step { op, d, a, b, skip: 0 });
        self.steps.len() - 1
    }

    /// Moves a value, or lets the operation before have its result there.
    fn emit_move(&mut self, to: Register, from: Register) {
        if to == from {
            return;
        }
        let first = self.first_temporary();
        let free = matches!(from, Register::Temporary(number) if number >= first);
        let end = self.steps.len();
        match self.steps.last_mut() {
            Some(last) if free && end > self.target && last.d == from && !last.op.skips() => {
                last.d = to;
            }
            _ => {
                self.emit(Op::Move, to, from, from);
            }
        }
    }

    fn skip(&mut self) -> usize {
        let unused = self.constant(0.0);
        self.emit(Op::Skip, unused, unused, unused)
    }

    /// Lets operations skip to here.
    fn land(&mut self, skips: &[usize]) {
        for skip in skips {
            self.steps[*skip].skip = self.steps.len() - skip - 1;
        }
        if !skips.is_empty() {
            self.target = self.steps.len();
        }
    }

    /// Warns of what is declared and not used.
    fn unused(&mut self) {
        let parameters = self.parameter_names.iter().zip(&self.parameters_read);
        let parameters =
            parameters.filter(|(_, read)| !**read).map(|(name, _)| (*name, "parameter"));
        let states = self.states.iter().filter(|state| !state.read);
        let states = states.map(|state| (state.name, "state"));
        let lets =
            self.lets.iter().filter(|named| !named.read).map(|named| (named.name, "expression"));
        let mut warnings: Vec<Diagnostic> = parameters
            .chain(states)
            .chain(lets)
            .map(|(name, what)| {
                let message = format!("the {what} {} is never used", name.text);
                Diagnostic::warning(name.span.clone(), message)
            })
            .collect();
        for state in self.states.iter().filter(|state| state.read && !state.written) {
            let message = format!("the state {} never changes", state.name.text);
            warnings.push(Diagnostic::warning(state.name.span.clone(), message));
        }
        self.warnings.append(&mut warnings);
        self.warnings.sort_by_key(|warning| warning.span.start);
        self.warnings.dedup();
    }

    /// Numbers the registers.
    fn finish(self, file: &File) -> Checked<Law> {
        let states =
            self.states.last().map_or(0, |last| last.register + 1 + usize::from(last.may_be_none));
        let parameters = states + self.parameters.len();
        let constants = parameters + self.constants.len();
        let inputs = constants + self.most_inputs;
        let registers = inputs + self.most_temporaries;
        if registers > REGISTERS {
            let message = format!(
                "the law needs {registers} registers for states, parameters, numbers and values; \
                 {REGISTERS} are allowed"
            );
            return Err(Diagnostic::error(file.name.span.clone(), message));
        }
        // Each number is below REGISTERS.
        let number = |register| match register {
            Register::State(place) => place as u8,
            Register::Parameter(place) => (states + place) as u8,
            Register::Constant(place) => (parameters + place) as u8,
            Register::Input(place) => (constants + place) as u8,
            Register::Temporary(place) => (inputs + place) as u8,
        };
        // The code has at most MAX_CODE operations, which a skip does not leave.
        let word = |step: &Step| Word {
            op: step.op,
            d: if step.op.skips() { step.skip as u8 } else { number(step.d) },
            a: number(step.a),
            b: number(step.b),
        };
        let code = self.steps.iter().map(word).collect();
        let bodies = self.bodies.into_iter().map(|body| {
            let inputs = body.inputs.iter().map(|(input, register, present)| {
                let at = |place: u8| constants as u8 + place;
                (*input, at(*register), present.map(at))
            });
            Body { inputs: inputs.collect(), ..body }
        });
        let bodies: Vec<Body> = bodies.collect();
        let mut places = [0; Hook::ALL.len()];
        for (place, body) in bodies.iter().enumerate() {
            if let Some(hook) = body.hook {
                places[hook as usize] = place as u8;
            }
        }
        let meaning_of = |name: &str| {
            file.items.iter().find_map(|item| match item {
                Item::State { name: other, meaning, .. } if other.text == name => {
                    Some(meaning.clone())
                }
                _ => None,
            })
        };
        let text = |wanted: fn(&Item) -> Option<&String>| {
            file.items.iter().filter_map(wanted).cloned().collect()
        };
        Ok(Law {
            kind: self.kind,
            name: file.name.text.clone(),
            title: file.title.clone(),
            sources: text(|item| if let Item::Source(text) = item { Some(text) } else { None }),
            deviations: text(
                |item| if let Item::Deviation(text) = item { Some(text) } else { None },
            ),
            parameters: self.parameters,
            states: self
                .states
                .iter()
                .map(|state| State {
                    name: state.name.text.clone(),
                    meaning: meaning_of(&state.name.text).unwrap_or_default(),
                    register: state.register as u8,
                    present: state.may_be_none.then_some(state.register as u8 + 1),
                })
                .collect(),
            warnings: self.warnings,
            hash: String::new(),
            equations: Vec::new(),
            code,
            bodies,
            places,
            first_parameter: states,
            constants: self.constants,
        })
    }

    fn show(&self, kind: Type) -> String {
        match kind {
            Type::Number(unit) => unit.to_string(),
            Type::Instant => "a time of the clock".to_owned(),
            Type::Truth => "true or false".to_owned(),
            Type::Choice(_) | Type::ParameterChoice(_) => "a choice".to_owned(),
            Type::Any => "0 or none".to_owned(),
        }
    }
}

/// The operation of an operator of numbers.
const fn operation(operator: Binary) -> Op {
    match operator {
        Binary::Add => Op::Add,
        Binary::Subtract => Op::Subtract,
        Binary::Multiply => Op::Multiply,
        Binary::Divide => Op::Divide,
        _ => Op::Power,
    }
}

/// The type that both types are.
fn unify(a: Type, b: Type) -> Option<Type> {
    match (a, b) {
        (Type::Any, other) | (other, Type::Any) => Some(other),
        (a, b) => (a == b).then_some(a),
    }
}

fn span_of(statement: &Statement) -> Option<Range<usize>> {
    match statement {
        Statement::Let { name, .. } | Statement::Assign { name, .. } => Some(name.span.clone()),
        Statement::Return { span, .. } => Some(span.clone()),
        Statement::If { condition, .. } => Some(condition.span.clone()),
        Statement::Pass => None,
    }
}

/// The name nearest to `given`, if any is near: at most half of the letters differ.
fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|name| (distance(given, name), name))
        .filter(|(distance, name)| distance * 2 <= name.len().max(given.len()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many letters to insert, delete or replace to turn one word into the other (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = core::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.chars().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}
