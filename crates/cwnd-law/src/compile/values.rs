//! The values of expressions, with their types and units.

use super::names::{Place, did_you_mean};
use super::registers::Register;
use super::{Checked, Compiler, fault};
use crate::Diagnostic;
use crate::code::{Op, apply};
use crate::hook::Type;
use crate::law::Domain;
use crate::syntax::{Binary, Each, Expr, ExprKind, Name};
use crate::unit::Unit;
use alloc::format;
use alloc::vec::Vec;
use core::mem;
use core::ops::Range;

/// How deeply expressions and branches may be nested, named expressions included.
const MAX_DEPTH: usize = 72;
/// The most expressions of a law. Each use of a named expression is a copy.
const MAX_VALUES: usize = 2000;

/// The functions: each with its operation, and whether its argument is a plain number.
pub(crate) const FUNCTIONS: &[(&str, Op, bool)] = &[
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

/// The function without an argument.
pub(crate) const RANDOM: &str = "random";

/// The functions of a history.
pub(crate) const FOLDS: &[&str] = &["count", "max", "mean", "min", "sum"];

/// The value of an expression.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) register: Register,
    /// The register that is 0 if the value is none; `None` for a value that never is.
    pub(super) present: Option<Register>,
    pub(super) kind: Type,
    pub(super) constant: Option<f64>,
}

impl<'f> Compiler<'f> {
    /// The value is there.
    pub(super) fn need(&self, value: &Value, expr: &Expr) -> Checked<()> {
        if value.present.is_none() {
            return Ok(());
        }
        let what = match &expr.kind {
            ExprKind::Name(name) => name,
            _ => "this",
        };
        let error = Diagnostic::error(expr.span.clone(), format!("{what} may be none here"));
        Err(match (&expr.kind, value.kind) {
            // Between truths "or" is a condition.
            (ExprKind::Name(name), Type::Truth) => {
                error.help(format!("test it before by \"{name} is not none and\""))
            }
            _ => error.help("write \"or\" and another value, or test it by \"is none\""),
        })
    }

    /// The register that is 0 if a value is none.
    pub(super) fn present(&mut self, value: &Value) -> Register {
        value.present.unwrap_or_else(|| self.code.constant(1.0))
    }

    /// A value that is there.
    pub(super) fn some(&mut self, expr: &'f Expr) -> Checked<Value> {
        let value = self.value(expr)?;
        self.need(&value, expr)?;
        Ok(value)
    }

    /// Begins an expression, or the branches of a condition, in those that are open.
    pub(super) fn enter(&mut self, expr: &Expr) -> Checked<()> {
        (self.depth, self.values) = (self.depth + 1, self.values + 1);
        if self.depth > MAX_DEPTH {
            return fault(&expr.span, "expressions are nested too deeply here");
        }
        if self.values > MAX_VALUES {
            let message = format!(
                "the law has more values than the {MAX_VALUES} that are allowed, with the copies \
                 of its named expressions"
            );
            return fault(&expr.span, message);
        }
        Ok(())
    }

    pub(super) fn value(&mut self, expr: &'f Expr) -> Checked<Value> {
        self.enter(expr)?;
        let value = self.value_of(expr);
        self.depth -= 1;
        value
    }

    fn value_of(&mut self, expr: &'f Expr) -> Checked<Value> {
        match &expr.kind {
            ExprKind::Number(number, unit) => {
                // Zero is zero in every unit.
                let zero = *number == 0.0 && *unit == Unit::PLAIN;
                Ok(self.constant(*number, if zero { Type::Any } else { Type::Number(*unit) }))
            }
            ExprKind::Truth(is) => Ok(self.constant(f64::from(u8::from(*is)), Type::Truth)),
            ExprKind::None => {
                let register = self.code.constant(0.0);
                Ok(Value { register, present: Some(register), kind: Type::Any, constant: None })
            }
            ExprKind::Name(name) => self.name(name, &expr.span),
            ExprKind::Minus(of) => {
                let mark = self.code.mark();
                let value = self.some(of)?;
                number(&value, of)?;
                Ok(self.result(mark, Op::Minus, value, value, value.kind))
            }
            ExprKind::Call(function, arguments) => match self.names.history_of(arguments) {
                Some(history) => self.fold(function, history, None),
                None => self.call(function, arguments, &expr.span),
            },
            ExprKind::Each(each) => {
                let Each { function, value, name, history } = &**each;
                let Some(of) = self.names.history(&history.text) else {
                    return fault(&history.span, format!("{} is no history", history.text));
                };
                self.names.check_new(name)?;
                self.fold(function, of, Some((name, value)))
            }
            ExprKind::Binary(Binary::Or, first, second)
                if self.names.is_optional(first, &|_| true) =>
            {
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
            ExprKind::Not(_) | ExprKind::Binary(..) => self.truth(expr),
        }
    }

    /// The value of a condition.
    fn truth(&mut self, expr: &'f Expr) -> Checked<Value> {
        let d = self.code.temporary();
        let condition = self.condition(expr)?;
        let (yes, no) = (self.code.constant(1.0), self.code.constant(0.0));
        self.code.emit(Op::Move, d, yes, yes);
        let skip = self.code.skip();
        self.code.land(&condition.when_false);
        self.code.emit(Op::Move, d, no, no);
        self.code.land(&[skip]);
        Ok(Value { register: d, present: None, kind: Type::Truth, constant: None })
    }

    /// Whether the type of a value depends on a state whose type is not known yet.
    pub(super) fn is_open(&self, value: &Value) -> bool {
        !self.settled && value.kind == Type::Any && value.constant.is_none()
    }

    /// Whether an expression may be none, as far as it has been tested.
    fn may_be_none(&self, expr: &Expr) -> bool {
        self.names.is_optional(expr, &|place| !self.there.contains(&place))
    }

    fn name(&mut self, name: &str, span: &Range<usize>) -> Checked<Value> {
        if let Some(place) = self.names.find(name) {
            let value = match place {
                Place::State(state) => {
                    let state = &mut self.names.states[state];
                    state.read = true;
                    let (register, present) = state.registers();
                    Value { register, present, kind: state.kind, constant: None }
                }
                Place::Local(local) => {
                    let local = &mut self.names.locals[local];
                    local.read = true;
                    local.value
                }
                Place::Input(input) => {
                    let (register, present) = self.code.input(input);
                    Value { register, present, kind: input.kind(), constant: None }
                }
            };
            let there = self.there.contains(&place);
            return Ok(Value { present: value.present.filter(|_| !there), ..value });
        }
        if let Some(parameter) = self.names.parameter(name) {
            let declared = &mut self.names.parameters[parameter];
            declared.read = true;
            let kind = match declared.is.domain {
                Domain::Number { .. } => Type::Number(declared.is.unit),
                Domain::Switch => Type::Truth,
                Domain::Choice(_) => Type::ParameterChoice(parameter),
            };
            let register = Register::Parameter(parameter);
            return Ok(Value { register, present: None, kind, constant: None });
        }
        if let Some(at) = self.names.expression(name) {
            let named = &mut self.names.expressions[at];
            named.read = true;
            if let Some(register) = named.register {
                let register = Register::State(register);
                return Ok(Value { register, present: None, kind: named.kind, constant: None });
            }
            return self.named(at);
        }
        Err(self.names.unknown(name, span))
    }

    /// The value of the named expression at this place.
    pub(super) fn named(&mut self, at: usize) -> Checked<Value> {
        let visible = mem::replace(&mut self.names.visible, at);
        let first_local = mem::replace(&mut self.names.first_local, self.names.locals.len());
        let value = self.some(self.names.expressions[at].value);
        (self.names.visible, self.names.first_local) = (visible, first_local);
        value
    }

    fn call(
        &mut self,
        function: &'f Name,
        arguments: &'f [Expr],
        span: &Range<usize>,
    ) -> Checked<Value> {
        if function.text == RANDOM {
            return self.draw(function, arguments, span);
        }
        let (op, plain) = known(function, arguments.len(), span)?;
        let mark = self.code.mark();
        let mut result = self.some(&arguments[0])?;
        let unit = number(&result, &arguments[0])?;
        if plain && !matches!(unit, None | Some(Unit::PLAIN)) {
            let message =
                format!("{} is of a plain number, this is {}", function.text, result.kind);
            return fault(&arguments[0].span, message);
        }
        for argument in &arguments[1..] {
            let value = self.some(argument)?;
            let kind = self.same(&result, &value, &argument.span)?;
            number(&value, argument)?;
            result = self.result(mark, op, result, value, kind);
        }
        if arguments.len() == 1 {
            let kind = if plain { Type::Number(Unit::PLAIN) } else { root(op, unit, span)? };
            result = self.result(mark, op, result, result, kind);
        }
        Ok(result)
    }

    /// Draws a random number.
    fn draw(
        &mut self,
        function: &'f Name,
        arguments: &[Expr],
        span: &Range<usize>,
    ) -> Checked<Value> {
        if !arguments.is_empty() {
            return fault(span, "random() has no value in its brackets");
        }
        if self.names.hook.is_none() {
            return fault(span, "random numbers are drawn in hooks");
        }
        self.check_changes(function)?;
        let generator = match self.names.generator {
            Some(register) => register,
            None => self.names.keep(1, function)?,
        };
        self.names.generator = Some(generator);
        let generator = Register::State(generator);
        self.code.emit(Op::Next, generator, generator, generator);
        let register = self.code.temporary();
        self.code.emit(Op::Unit, register, generator, generator);
        Ok(Value { register, present: None, kind: Type::Number(Unit::PLAIN), constant: None })
    }

    /// The common type of two values.
    pub(super) fn same(&self, a: &Value, b: &Value, span: &Range<usize>) -> Checked<Type> {
        unify(a.kind, b.kind).ok_or_else(|| {
            let message = format!("one value is {}, the other {}", a.kind, b.kind);
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
        let mark = self.code.mark();
        let (x, mut y) = (self.some(a)?, self.some(b)?);
        if operator == Binary::Divide {
            self.warn_of_zero(a, b);
        }
        let instant = |value: &Value| value.kind == Type::Instant;
        let seconds = unify(y.kind, Type::Number(Unit::SECONDS)).is_some();
        let (op, kind) = match operator {
            // A time or seconds, as long as the type of an operand is open.
            Binary::Add if self.is_open(&x) && seconds => (Op::Add, Type::Any),
            Binary::Subtract
                if self.is_open(&x) && (seconds || instant(&y))
                    || instant(&x) && self.is_open(&y) =>
            {
                (Op::Subtract, Type::Any)
            }
            Binary::Subtract if instant(&x) && unify(y.kind, Type::Instant).is_some() => {
                (Op::Since, Type::Number(Unit::SECONDS))
            }
            Binary::Add | Binary::Subtract if instant(&x) => {
                if !seconds {
                    let message = format!("a time is moved by seconds, this is {}", y.kind);
                    return fault(&b.span, message);
                }
                if operator == Binary::Subtract {
                    y = self.result(self.code.mark(), Op::Minus, y, y, y.kind);
                }
                (Op::After, Type::Instant)
            }
            _ => {
                let units = (number(&x, a)?, number(&y, b)?);
                let kind = match (operator, units) {
                    (Binary::Add | Binary::Subtract, _) => self.same(&x, &y, span)?,
                    (Binary::Power, (unit, exponent)) => {
                        if !matches!(exponent, None | Some(Unit::PLAIN)) {
                            let message =
                                format!("an exponent is a plain number, this is {}", y.kind);
                            return fault(&b.span, message);
                        }
                        // 0 to the power of 0 is 1, and not 0 of any unit.
                        let zero = self.is_open(&x) || y.constant.is_some_and(|y| y > 0.0);
                        power(unit.or((!zero).then_some(Unit::PLAIN)), y.constant, span)?
                    }
                    _ if self.is_open(&x) || self.is_open(&y) => Type::Any,
                    (_, (first, second)) => {
                        // The other operand gives a product with 0 its unit.
                        let plain = |unit: Option<Unit>| unit.unwrap_or(Unit::PLAIN);
                        let (first, second) = (plain(first), plain(second));
                        Type::Number(if operator == Binary::Multiply {
                            first.times(second)
                        } else {
                            first.over(second)
                        })
                    }
                };
                (operation(operator), kind)
            }
        };
        if op == Op::Power && x.constant.is_none() {
            return Ok(self.power(mark, x, y, kind));
        }
        Ok(self.result(mark, op, x, y, kind))
    }

    /// A power, by the operations that [`crate::arithmetic::power`] has for a constant exponent.
    fn power(&mut self, mark: usize, x: Value, y: Value, kind: Type) -> Value {
        match y.constant {
            Some(0.0) => {
                self.code.reset(mark);
                Value { register: self.code.constant(1.0), kind, ..x }
            }
            Some(0.5) => self.result(mark, Op::Sqrt, x, x, kind),
            Some(1.0) => Value { kind, ..x },
            Some(2.0) => self.result(mark, Op::Multiply, x, x, kind),
            Some(3.0) => {
                let square = self.result(self.code.mark(), Op::Multiply, x, x, kind);
                self.result(mark, Op::Multiply, square, x, kind)
            }
            _ => self.result(mark, Op::Power, x, y, kind),
        }
    }

    /// The first value if it is there, else the second.
    fn first_there(&mut self, first: &'f Expr, second: &'f Expr) -> Checked<Value> {
        let d = self.code.temporary();
        let maybe = self.may_be_none(first) && self.may_be_none(second);
        let flag = maybe.then(|| self.code.temporary());
        let mark = self.code.mark();
        let x = self.value(first)?;
        let present = self.present(&x);
        let unless = self.code.test(Op::Unless, present, present);
        self.move_both(d, flag, &Value { present: None, ..x });
        let skip = self.code.skip();
        self.code.land(&[unless]);
        self.code.reset(mark);
        let y = self.value(second)?;
        self.move_both(d, flag, &y);
        self.code.land(&[skip]);
        self.code.reset(mark);
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
        let d = self.code.temporary();
        let condition = self.condition(condition)?;
        let if_true = [before.as_slice(), &condition.there_if_true].concat();
        let if_false = [before.as_slice(), &condition.there_if_false].concat();
        self.there.clone_from(&if_false);
        let mut maybe = self.may_be_none(otherwise);
        self.there = if_true;
        maybe |= self.may_be_none(then);
        let flag = maybe.then(|| self.code.temporary());
        let mark = self.code.mark();
        let x = self.value(then)?;
        self.move_both(d, flag, &x);
        let skip = self.code.skip();
        self.code.land(&condition.when_false);
        self.there = if_false;
        self.code.reset(mark);
        let y = self.value(otherwise)?;
        self.move_both(d, flag, &y);
        self.code.land(&[skip]);
        self.there = before;
        self.code.reset(mark);
        let span = then.span.start..otherwise.span.end;
        let kind = self.same(&x, &y, &span)?;
        Ok(Value { register: d, present: flag, kind, constant: None })
    }

    /// Moves a value, and whether it is there.
    pub(super) fn move_both(&mut self, to: Register, flag: Option<Register>, value: &Value) {
        self.code.emit_move(to, value.register);
        if let Some(flag) = flag {
            let present = self.present(value);
            self.code.emit_move(flag, present);
        }
    }

    /// An operation whose operands' registers, from `mark` on, are free after it.
    pub(super) fn result(&mut self, mark: usize, op: Op, a: Value, b: Value, kind: Type) -> Value {
        self.code.reset(mark);
        if let (Some(x), Some(y)) = (a.constant, b.constant) {
            return self.constant(apply(op, x, y), kind);
        }
        let register = self.code.temporary();
        self.code.emit(op, register, a.register, b.register);
        Value { register, present: None, kind, constant: None }
    }

    fn constant(&mut self, value: f64, kind: Type) -> Value {
        Value { register: self.code.constant(value), present: None, kind, constant: Some(value) }
    }
}

/// The type that both types are.
pub(super) fn unify(a: Type, b: Type) -> Option<Type> {
    match (a, b) {
        (Type::Any, other) | (other, Type::Any) => Some(other),
        (a, b) => (a == b).then_some(a),
    }
}

/// The unit of a number; nothing for a zero, which has any.
pub(super) fn number(value: &Value, expr: &Expr) -> Checked<Option<Unit>> {
    match value.kind {
        Type::Number(unit) => Ok(Some(unit)),
        Type::Any => Ok(None),
        other => fault(&expr.span, format!("this must be a number, it is {other}")),
    }
}

/// The operation of a function that is called with `values` arguments, and whether its argument is
/// a plain number.
fn known(function: &Name, values: usize, span: &Range<usize>) -> Checked<(Op, bool)> {
    let name = &function.text;
    let Some((_, op, plain)) = FUNCTIONS.iter().find(|(known, ..)| known == name) else {
        let names = FUNCTIONS.iter().map(|(name, ..)| *name).chain([RANDOM]);
        if FOLDS.contains(&name.as_str()) {
            return fault(span, format!("{name} is of a history"));
        }
        let message = format!("no function is called {name}");
        let error = Diagnostic::error(function.span.clone(), message);
        return Err(did_you_mean(error, name, names.clone()).unwrap_or_else(|error| {
            error.help(format!("functions are {}", names.collect::<Vec<_>>().join(", ")))
        }));
    };
    let several = matches!(op, Op::Min | Op::Max);
    if several != (values > 1) || values == 0 {
        let most = if several { "at least two values" } else { "one value" };
        return fault(span, format!("{name} is of {most}"));
    }
    Ok((*op, *plain))
}

/// The type of a root, or of another function of one value, which has the unit of the value.
fn root(op: Op, unit: Option<Unit>, span: &Range<usize>) -> Checked<Type> {
    let n = match op {
        Op::Sqrt => 2,
        Op::Cbrt => 3,
        _ => 1,
    };
    let Some(unit) = unit else { return Ok(Type::Any) };
    match unit.root(n) {
        Some(unit) => Ok(Type::Number(unit)),
        None => fault(span, format!("a root of a value {unit} has no unit")),
    }
}

/// The type of a power.
fn power(unit: Option<Unit>, exponent: Option<f64>, span: &Range<usize>) -> Checked<Type> {
    match unit {
        None => Ok(Type::Any),
        Some(Unit::PLAIN) => Ok(Type::Number(Unit::PLAIN)),
        Some(unit) => match exponent.and_then(|exponent| unit.power(exponent)) {
            Some(power) => Ok(Type::Number(power)),
            None => fault(span, format!("a power of a value {unit} has no unit")),
        },
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
