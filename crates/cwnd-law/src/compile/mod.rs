//! From the syntax of a law to its code: names, types, units, values that may be none, and limits.

mod conditions;
mod histories;
pub(crate) mod names;
pub(crate) mod parameters;
mod registers;
pub(crate) mod statements;
mod unused;
pub(crate) mod values;

use crate::Diagnostic;
use crate::code::{MAX_CODE, MAX_COST, MAX_SKIP, Op, REGISTERS};
use crate::hook::{Hook, Kind, Type};
use crate::law::{History, Law, State};
use crate::syntax::{File, Item, Name, Statement};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use names::{Names, Place};
use registers::{Code, Register};

type Checked<T> = Result<T, Diagnostic>;

/// The operations whose costs are named where a hook takes too long.
const COSTLY: [(Op, &str); 4] = [
    (Op::Power, "a power other than those of 0, 0.5, 1, 2 and 3"),
    (Op::Log10, "log10"),
    (Op::Log, "log"),
    (Op::Exp, "exp"),
];

struct Compiler<'f> {
    names: Names<'f>,
    /// The default of the machine's parameter `pacing`.
    pacing: f64,
    code: Code,
    warnings: Vec<Diagnostic>,
    /// The variables that are known not to be none at this point of the hook.
    there: Vec<Place>,
    /// Names that the hook compares with a number or assigns: it knows whether they are 0.
    known: Vec<&'f str>,
    /// Whether the types of states no longer change by assignments.
    settled: bool,
    /// How many expressions and branches are open, and how many expressions were compiled.
    depth: usize,
    values: usize,
}

/// The law that `file` describes.
///
/// # Errors
/// The first fault.
pub(crate) fn law(file: &File) -> Checked<Law> {
    let kind = if file.rate { Kind::Rate } else { Kind::Window };
    let mut compiler = Compiler {
        names: Names::new(kind),
        pacing: 0.0,
        code: Code::default(),
        warnings: Vec::new(),
        there: Vec::new(),
        known: Vec::new(),
        settled: false,
        depth: 0,
        values: 0,
    };
    compiler.declare(file)?;
    // The types of states that begin with 0 or none follow from their assignments, which may follow
    // from those of other states: an expression whose type is open is of any, until no other is
    // left.
    loop {
        let before: Vec<Type> = compiler.names.kinds().collect();
        compiler.bodies(file)?;
        if compiler.names.kinds().eq(before) {
            if compiler.settled {
                break;
            }
            compiler.settled = true;
        }
    }
    compiler.warn_of_unused();
    Ok(compiler.finish(file))
}

impl<'f> Compiler<'f> {
    /// Collects the names of a file.
    fn declare(&mut self, file: &'f File) -> Checked<()> {
        for item in &file.items {
            match item {
                Item::Parameter(parameter) => {
                    let name = &parameter.name;
                    self.names.check_new(name)?;
                    let parameter = self.parameter(parameter)?;
                    self.names.add_parameter(name, parameter)?;
                }
                Item::State { name, symbol, initial, .. } => {
                    self.names.check_new(name)?;
                    if let Some(Name { text, span }) = symbol
                        && (text.is_empty()
                            || !text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
                    {
                        return fault(span, "a gauge is called by letters, digits and _");
                    }
                    self.names.add_state(name, initial)?;
                }
                Item::History { name, size } => {
                    self.names.check_new(name)?;
                    self.names.add_history(name, size)?;
                }
                Item::Let { name, value } => {
                    self.names.check_new(name)?;
                    self.names.add_expression(name, value)?;
                }
                Item::Pacing(value) => self.pacing = self.factor(value)?,
                Item::Summary(_) | Item::Source(_) | Item::Deviation(_) | Item::On { .. } => {}
            }
        }
        self.names.fix();
        Ok(())
    }

    /// Compiles the initial values and all hooks.
    fn bodies(&mut self, file: &'f File) -> Checked<()> {
        self.code = Code::default();
        self.warnings.clear();
        self.values = 0;
        self.names.see_all();
        self.begin(None);
        self.names.ready = 0;
        for at in 0..self.names.expressions.len() {
            if let Some(register) = self.names.expressions[at].register {
                self.code.free();
                let value = self.named(at)?;
                self.code.emit_move(Register::State(register), value.register);
                self.names.expressions[at].kind = value.kind;
            }
        }
        for place in 0..self.names.states.len() {
            self.names.ready = place;
            let initial = self.names.states[place].initial;
            self.code.free();
            let value = self.value(initial)?;
            self.store(place, value, &initial.span)?;
        }
        self.names.ready = self.names.states.len();
        self.end(None);
        self.limits(&file.name)?;
        for item in &file.items {
            if let Item::On { hook: name, body } = item {
                let hook = self.names.hook(name)?;
                if self.code.has(hook) {
                    return fault(&name.span, format!("\"on {}\" is there twice", name.text));
                }
                self.body(hook, name, body)?;
            }
        }
        let kind = self.names.kind;
        for hook in Hook::ALL.iter().filter(|hook| hook.kind() == kind && hook.is_required()) {
            if !self.code.has(*hook) {
                let message = format!("a law of this kind needs \"on {}\"", hook.name());
                return fault(&file.name.span, message);
            }
        }
        Ok(())
    }

    fn begin(&mut self, hook: Option<Hook>) {
        self.names.begin(hook);
        self.there.clear();
        self.known.clear();
        self.code.begin(hook);
    }

    fn body(&mut self, hook: Hook, name: &'f Name, body: &'f [Statement]) -> Checked<()> {
        self.begin(Some(hook));
        if !self.block(body)? {
            let answer = hook.answer();
            if answer.kind.is_some() && !answer.may_be_none {
                let Some(input) = answer.otherwise else {
                    let message = format!("\"on {}\" returns a value on every path", hook.name());
                    return fault(&name.span, message);
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
        self.limits(name)
    }

    /// The length of the code, its registers, and the cost of the last hook.
    fn limits(&mut self, name: &Name) -> Checked<()> {
        let length = self.code.len();
        if length > MAX_CODE {
            let message = format!(
                "the hooks up to this one have {length} operations; {MAX_CODE} are allowed"
            );
            return fault(&name.span, message);
        }
        let branch = self.code.longest_skip();
        if branch > MAX_SKIP {
            let message = format!(
                "a branch of \"on {}\" has {branch} operations; {MAX_SKIP} are allowed",
                name.text
            );
            return fault(&name.span, message);
        }
        let cost = self.code.end_body();
        let registers = self.names.kept + self.names.parameters.len() + self.code.registers();
        if registers > REGISTERS {
            let message = format!(
                "the law needs {registers} registers for states, parameters, numbers and values; \
                 {REGISTERS} are allowed"
            );
            return fault(&name.span, message);
        }
        if cost > MAX_COST {
            let message =
                format!("\"on {}\" may take {cost} ns; {MAX_COST} are allowed", name.text);
            let error = Diagnostic::error(name.span.clone(), message);
            let costly = COSTLY.iter().filter(|(op, _)| self.code.uses(*op));
            let costs: Vec<String> =
                costly.map(|(op, name)| format!("{name} counts as {} ns", op.cost())).collect();
            return Err(if costs.is_empty() { error } else { error.help(costs.join(", ")) });
        }
        Ok(())
    }

    /// The law of the code.
    fn finish(self, file: &File) -> Law {
        let first_parameter = self.names.kept;
        let code = self.code.number(first_parameter, self.names.parameters.len());
        let mut places = [0; Hook::ALL.len()];
        for (place, body) in code.bodies.iter().enumerate() {
            if let Some(hook) = body.hook {
                places[hook as usize] = place as u8;
            }
        }
        let text = |wanted: fn(&Item) -> Option<&String>| -> Vec<String> {
            file.items.iter().filter_map(wanted).cloned().collect()
        };
        let shown = file.items.iter().filter_map(|item| match item {
            Item::State { symbol, meaning, .. } => Some((symbol, meaning)),
            _ => None,
        });
        let states = self.names.states.iter().zip(shown).map(|(state, (symbol, meaning))| State {
            name: state.name.text.clone(),
            symbol: symbol.as_ref().unwrap_or(state.name).text.clone(),
            meaning: meaning.clone().unwrap_or_default(),
            register: state.register as u8,
            present: state.may_be_none.then_some(state.register as u8 + 1),
            instant: state.kind == Type::Instant,
            truth: state.kind == Type::Truth,
        });
        let histories = self.names.histories.iter().map(|history| History {
            name: history.name.text.clone(),
            count: history.register,
            values: history.size,
        });
        let fixed = self.names.expressions.iter().filter_map(|named| {
            named.register.map(|register| (named.name.text.clone(), register as u8))
        });
        Law {
            kind: self.names.kind,
            name: file.name.text.clone(),
            title: file.title.clone(),
            summary: text(|item| if let Item::Summary(text) = item { Some(text) } else { None })
                .join(" "),
            sources: text(|item| if let Item::Source(text) = item { Some(text) } else { None }),
            deviations: text(
                |item| if let Item::Deviation(text) = item { Some(text) } else { None },
            ),
            pacing: self.pacing,
            states: states.collect(),
            histories: histories.collect(),
            generator: self.names.generator.map(|register| register as u8),
            fixed: fixed.collect(),
            parameters: self.names.parameters.into_iter().map(|declared| declared.is).collect(),
            warnings: self.warnings,
            hash: String::new(),
            text: String::new(),
            equations: Vec::new(),
            code: code.words,
            bodies: code.bodies,
            places,
            first_parameter,
            constants: code.constants,
        }
    }
}

fn fault<T>(span: &Range<usize>, message: impl Into<String>) -> Checked<T> {
    Err(Diagnostic::error(span.clone(), message))
}
