//! A slow evaluator, which follows the syntax alone: what the code of a law is compared with.

use crate::arithmetic::{NANOS, power};
use crate::hook::{Hook, Input};
use crate::syntax::{self, Allowed, Binary, Each, Expr, ExprKind, File, Item, Statement};
use std::cell::Cell;
use std::collections::HashMap;
use std::string::{String, ToString};
use std::vec::Vec;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(f64),
    Instant(f64),
    Truth(bool),
    Choice(String),
    None,
}

impl Value {
    fn number(&self) -> f64 {
        match self {
            Value::Number(number) | Value::Instant(number) => *number,
            other => panic!("{other:?} is no number"),
        }
    }

    fn truth(&self) -> bool {
        match self {
            Value::Truth(truth) => *truth,
            other => panic!("{other:?} is neither true nor false"),
        }
    }
}

type Names = HashMap<String, Value>;

/// A law with its state.
pub(crate) struct Evaluator<'f> {
    file: &'f File,
    pub(crate) states: Names,
    parameters: Names,
    histories: HashMap<String, (usize, Vec<f64>)>,
    generator: Cell<u64>,
}

struct Scope<'e> {
    inputs: &'e Names,
    locals: Names,
}

impl<'f> Evaluator<'f> {
    pub(crate) fn new(file: &'f File) -> Self {
        let (states, parameters, histories, generator) = Default::default();
        let mut evaluator = Evaluator { file, states, parameters, histories, generator };
        let inputs = Names::new();
        let scope = || Scope { inputs: &inputs, locals: Names::new() };
        for item in &file.items {
            match item {
                Item::Parameter(syntax::Parameter { name, default, allowed, .. }) => {
                    let value = match (&default.kind, allowed) {
                        (ExprKind::Name(choice), Some(Allowed::Choices(_))) => {
                            Value::Choice(choice.clone())
                        }
                        _ => evaluator.value(default, &mut scope()),
                    };
                    evaluator.parameters.insert(name.text.clone(), value);
                }
                Item::State { name, initial, .. } => {
                    let value = match evaluator.value(initial, &mut scope()) {
                        // The letter of such a state is that of its type, which 0 does not have.
                        Value::Number(0.0) if name.text.starts_with('t') => Value::Instant(0.0),
                        Value::Number(0.0) if name.text.starts_with('f') => Value::Truth(false),
                        value => value,
                    };
                    evaluator.states.insert(name.text.clone(), value);
                }
                Item::History { name, size } => {
                    let size = evaluator.value(size, &mut scope()).number() as usize;
                    evaluator.histories.insert(name.text.clone(), (size, Vec::new()));
                }
                _ => {}
            }
        }
        evaluator
    }

    /// The answer of a hook.
    pub(crate) fn call(&mut self, hook: Hook, inputs: &Names) -> Value {
        let body = self.file.items.iter().find_map(|item| match item {
            Item::On { hook: name, body } if name.text == hook.name() => Some(body),
            _ => None,
        });
        let mut scope = Scope { inputs, locals: Names::new() };
        let otherwise = hook.answer().otherwise.map_or(Value::None, |input: Input| {
            inputs.get(input.name()).cloned().unwrap_or(Value::None)
        });
        body.and_then(|body| self.block(body, &mut scope)).unwrap_or(otherwise)
    }

    fn block(&mut self, statements: &[Statement], scope: &mut Scope<'_>) -> Option<Value> {
        for statement in statements {
            match statement {
                Statement::Pass => {}
                Statement::Let { name, value } => {
                    let value = self.value(value, scope);
                    scope.locals.insert(name.text.clone(), value);
                }
                Statement::Add { name, value } => {
                    let value = self.value(value, scope).number();
                    let name = name.text.strip_suffix(".add").unwrap();
                    let (size, values) = self.histories.get_mut(name).unwrap();
                    values.extend(Some(value).filter(|value| !value.is_nan()));
                    values.drain(..values.len().saturating_sub(*size));
                }
                Statement::Assign { name, value } if self.histories.contains_key(&name.text) => {
                    let ExprKind::Binary(operator, _, by) = &value.kind else {
                        panic!("{value:?}")
                    };
                    let by = self.value(by, scope).number();
                    let (_, values) = self.histories.get_mut(&name.text).unwrap();
                    for value in values {
                        *value =
                            binary(*operator, &Value::Number(*value), &Value::Number(by)).number();
                    }
                }
                Statement::Assign { name, value } => {
                    let value = self.value(value, scope);
                    self.states.insert(name.text.clone(), value);
                }
                Statement::Return { value, .. } => {
                    return Some(
                        value.as_ref().map_or(Value::None, |value| self.value(value, scope)),
                    );
                }
                Statement::Repeat { count, most, body } => {
                    let mut left = self.value(count, scope).number();
                    let mut times = self.value(most, scope).number();
                    while 0.0 < left && times >= 1.0 {
                        let locals = scope.locals.clone();
                        let answer = self.block(body, scope);
                        scope.locals = locals;
                        if answer.is_some() {
                            return answer;
                        }
                        (left, times) = (left - 1.0, times - 1.0);
                    }
                }
                Statement::If { condition, then, otherwise } => {
                    let branch =
                        if self.value(condition, scope).truth() { then } else { otherwise };
                    let locals = scope.locals.clone();
                    let answer = self.block(branch, scope);
                    scope.locals = locals;
                    if answer.is_some() {
                        return answer;
                    }
                }
            }
        }
        None
    }

    fn value(&self, expr: &Expr, scope: &mut Scope<'_>) -> Value {
        let mut number = |expr: &Expr| self.value(expr, scope).number();
        match &expr.kind {
            ExprKind::Number(number, _) => Value::Number(*number),
            ExprKind::Truth(truth) => Value::Truth(*truth),
            ExprKind::None => Value::None,
            ExprKind::Name(name) => self.name(name, scope),
            ExprKind::Minus(of) => Value::Number(-number(of)),
            ExprKind::Not(of) => Value::Truth(!self.value(of, scope).truth()),
            ExprKind::If { condition, then, otherwise } => {
                let branch = if self.value(condition, scope).truth() { then } else { otherwise };
                self.value(branch, scope)
            }
            ExprKind::Each(each) => {
                let Each { function, value, name, history } = &**each;
                let (_, values) = &self.histories[&history.text];
                let inner = |of: f64| {
                    let mut locals = scope.locals.clone();
                    locals.insert(name.text.clone(), Value::Number(of));
                    self.value(value, &mut Scope { inputs: scope.inputs, locals })
                };
                let there = values.iter().filter(|value| !value.is_nan());
                match function.text.as_str() {
                    "count" => {
                        let count = there.filter(|of| inner(**of).truth()).count();
                        Value::Number(count as f64)
                    }
                    text => fold(text, there.map(|of| inner(*of).number()), values.len()),
                }
            }
            ExprKind::Call(function, arguments)
                if let [Expr { kind: ExprKind::Name(name), .. }] = &arguments[..]
                    && let Some((_, values)) = self.histories.get(name) =>
            {
                match function.text.as_str() {
                    text @ ("max" | "min") => fold(text, values.iter().copied(), values.len()),
                    text => {
                        let there = values.iter().copied().filter(|value| !value.is_nan());
                        fold(text, there, values.len())
                    }
                }
            }
            ExprKind::Call(_, arguments) if arguments.is_empty() => {
                let state = self.generator.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
                self.generator.set(state);
                let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                Value::Number(((z ^ (z >> 31)) >> 11) as f64 * 2_f64.powi(-53))
            }
            ExprKind::Call(function, arguments) => {
                let first = number(&arguments[0]);
                let rest = arguments[1..].iter().map(number);
                Value::Number(match function.text.as_str() {
                    "abs" => first.abs(),
                    "cbrt" => libm::cbrt(first),
                    "ceil" => libm::ceil(first),
                    "exp" => libm::exp(first),
                    "floor" => libm::floor(first),
                    "log" => libm::log(first),
                    "log10" => libm::log10(first),
                    "max" => rest.fold(first, |a, b| if a > b { a } else { b }),
                    "min" => rest.fold(first, |a, b| if a < b { a } else { b }),
                    "sqrt" => libm::sqrt(first),
                    other => panic!("no function {other}"),
                })
            }
            ExprKind::Binary(Binary::Or, a, b) => match self.value(a, scope) {
                Value::None => self.value(b, scope),
                Value::Truth(false) => self.value(b, scope),
                there => there,
            },
            ExprKind::Binary(Binary::And, a, b) => {
                Value::Truth(self.value(a, scope).truth() && self.value(b, scope).truth())
            }
            ExprKind::Binary(operator @ (Binary::Is | Binary::IsNot), a, b) => {
                let value = self.value(a, scope);
                let is = match &b.kind {
                    ExprKind::Name(choice) => value == Value::Choice(choice.clone()),
                    _ => value == Value::None,
                };
                Value::Truth(is == (*operator == Binary::Is))
            }
            ExprKind::Binary(operator, a, b) => {
                let (x, y) = (self.value(a, scope), self.value(b, scope));
                binary(*operator, &x, &y)
            }
        }
    }

    fn name(&self, name: &str, scope: &mut Scope<'_>) -> Value {
        let known = scope.locals.get(name).or_else(|| self.states.get(name));
        let known = known.or_else(|| self.parameters.get(name)).or_else(|| scope.inputs.get(name));
        if let Some(value) = known {
            return value.clone();
        }
        let named = self.file.items.iter().find_map(|item| match item {
            Item::Let { name: other, value } if other.text == name => Some(value),
            _ => None,
        });
        let Some(named) = named else { panic!("{} is not known", name.to_string()) };
        self.value(named, &mut Scope { inputs: scope.inputs, locals: Names::new() })
    }
}

/// A function of `values` of a history, which has `count`.
fn fold(function: &str, values: impl Iterator<Item = f64>, count: usize) -> Value {
    let sum = |values| Iterator::fold(values, 0.0, |a: f64, b: f64| a + b);
    Value::Number(match function {
        "count" => count as f64,
        "sum" => sum(values),
        _ if count == 0 => return Value::None,
        "mean" => sum(values) / count as f64,
        "max" => values.fold(f64::NAN, |a, b| if a > b { a } else { b }),
        "min" => values.fold(f64::NAN, |a, b| if a < b { a } else { b }),
        other => panic!("no function {other} of a history"),
    })
}

fn binary(operator: Binary, x: &Value, y: &Value) -> Value {
    let instant = |value: &Value| matches!(value, Value::Instant(_));
    let (a, b) = (x.number(), y.number());
    match operator {
        Binary::Less => Value::Truth(a < b),
        Binary::AtMost => Value::Truth(a <= b),
        Binary::Greater => Value::Truth(a > b),
        Binary::AtLeast => Value::Truth(a >= b),
        Binary::Equal => Value::Truth(a == b),
        Binary::NotEqual => Value::Truth(a != b),
        Binary::Subtract if instant(x) && instant(y) => {
            Value::Number(if a > b { (a - b) / NANOS } else { 0.0 })
        }
        Binary::Subtract if instant(x) => Value::Instant(a + -b * NANOS),
        Binary::Add if instant(x) => Value::Instant(a + b * NANOS),
        Binary::Add => Value::Number(a + b),
        Binary::Subtract => Value::Number(a - b),
        Binary::Multiply => Value::Number(a * b),
        Binary::Divide => Value::Number(a / b),
        Binary::Power => Value::Number(power(a, b)),
        other => panic!("{other:?} is no operator of numbers"),
    }
}
