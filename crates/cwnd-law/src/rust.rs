//! Rust made from the code of a law: the same operations in the same order.

use crate::code::{Body, Op, Word};
use crate::{Domain, Hook, Input, Kind, Law};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// A name of the language as that of a type: `highest_speed` is `HighestSpeed`.
pub fn type_name(name: &str) -> String {
    let capital = |part: &str| {
        let mut letters = part.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    name.split('_').map(capital).collect()
}

impl Law {
    /// Items of a module of Rust: the type of the law, with the documentation `doc`, a constructor
    /// from its parameters in declared order and the enums of their choices. It implements the trait
    /// `Hooks` of the crate cwnd, and `WindowText` or `RateText`; these and the names of this crate
    /// are in scope there.
    pub fn rust(&self, doc: &str) -> String {
        let name = type_name(self.name());
        let mut choices = String::new();
        let (mut taken, mut given, mut defaults) = (Vec::new(), Vec::new(), Vec::new());
        for parameter in self.parameters() {
            let field = &parameter.name;
            let (kind, value) = match &parameter.domain {
                Domain::Number { .. } => ("f64".into(), field.clone()),
                Domain::Switch => ("bool".into(), format!("{field}: f64::from(u8::from({field}))")),
                Domain::Choice(words) => {
                    let kind = format!("{name}{}", type_name(field));
                    choices += &choice(&kind, &parameter.meaning, words);
                    (kind, format!("{field}: f64::from({field} as u8)"))
                }
            };
            defaults.push(match &parameter.domain {
                Domain::Number { .. } => format!("{:?}", parameter.default),
                Domain::Switch => format!("{:?}", parameter.default != 0.0),
                // The default is one of the choices.
                Domain::Choice(words) => {
                    format!("{kind}::{}", type_name(&words[parameter.default as usize]))
                }
            });
            taken.push(format!("{field}: {kind}"));
            given.push(value);
        }
        let states = self.states.iter().flat_map(|state| {
            let there = state.present.map(|_| format!("{}_there", state.name));
            [state.name.clone()].into_iter().chain(there)
        });
        let fixed = self.fixed.iter().map(|(name, _)| name.clone());
        let states: Vec<String> = states.chain(fixed).collect();
        let fields = self.parameters().iter().map(|parameter| &parameter.name).chain(&states);
        let fields: String = fields.map(|field| format!("{field}: f64, ")).collect();
        let zeros = states.iter().map(|state| format!("{state}: 0.0"));
        let values = given.into_iter().chain(zeros).collect::<Vec<_>>().join(", ");
        let many = match taken.len() {
            8.. => "#[expect(clippy::too_many_arguments, reason = \"parameters of the law\")]\n",
            _ => "",
        };
        let functions: String = self.bodies.iter().map(|body| self.function(body)).collect();
        let arms = self
            .bodies
            .iter()
            .filter_map(|body| body.hook)
            .map(|hook| format!("Hook::{hook:?} => {}(self, input),\n", hook.name()));
        let arms: String = arms.collect();
        let used = Input::ALL.iter().filter(|input| self.uses(**input));
        let used: Vec<_> = used.map(|input| format!("Input::{input:?}")).collect();
        let uses = match used.as_slice() {
            [] => "false".into(),
            used => format!("matches!(input, {})", used.join(" | ")),
        };
        let shown = self.states.iter().filter(|state| !state.meaning.is_empty());
        let gauges: String = shown
            .map(|state| {
                let name = &state.name;
                let value = format!("self.{name}{}", if state.instant { " / 1e9" } else { "" });
                let value = match state.present {
                    Some(_) => {
                        format!("if self.{name}_there != 0.0 {{ {value} }} else {{ f64::NAN }}")
                    }
                    None => value,
                };
                format!("emit({name:?}, {value});\n")
            })
            .collect();
        let emit = if gauges.is_empty() { "_" } else { "emit" };
        let kind = if self.kind() == Kind::Window { "Window" } else { "Rate" };
        let (new, taken) = (format!("{name} {{ {values} }}"), taken.join(", "));
        let defaults = defaults.join(", ");
        format!(
            "{choices}#[doc = {doc:?}]\n\
             #[derive(Clone, Copy, Debug, PartialEq)]\n\
             pub struct {name} {{ {fields} }}\n\
             impl {name} {{\n\
             /// The law with these parameters: times in seconds, rates in packets per second.\n\
             {many}#[must_use]\n\
             pub fn new({taken}) -> Self {{\n\
             let mut law = {new};\nstart(&mut law);\nlaw\n}}\n}}\n\
             impl Default for {name} {{\nfn default() -> Self {{ {name}::new({defaults}) }}\n}}\n\
             {functions}\
             impl Hooks for {name} {{\n\
             #[inline(always)]\n\
             fn call(&mut self, hook: Hook, input: impl Fn(Input) -> Option<f64>) -> Option<f64> {{\n\
             match hook {{\n{arms}_ => None,\n}}\n}}\n\
             #[inline(always)]\n\
             fn uses(&self, input: Input) -> bool {{ {uses} }}\n\
             fn gauges(&self, {emit}: &mut dyn FnMut(&'static str, f64)) {{\n{gauges}}}\n}}\n\
             impl text::{kind}Text for {name} {{}}\n"
        )
    }

    /// The function of a hook, or that of the initial values.
    fn function(&self, body: &Body) -> String {
        let next = self.bodies.iter().map(|other| other.entry).filter(|entry| *entry > body.entry);
        let end = next.min().unwrap_or(self.code.len());
        let statements = self.statements(body, end);
        let law = if statements.contains("law.") { "law" } else { "_" };
        let name = type_name(self.name());
        match body.hook {
            None => format!("fn start({law}: &mut {name}) {{\n{statements}}}\n"),
            Some(hook) => {
                let input = if body.inputs.is_empty() { "_" } else { "input" };
                format!(
                    "#[inline]\nfn {}({law}: &mut {name}, {input}: impl Fn(Input) -> Option<f64>) \
                     -> Option<f64> {{\n{statements}}}\n",
                    hook.name()
                )
            }
        }
    }

    fn statements(&self, body: &Body, end: usize) -> String {
        let words = &self.code[body.entry..end];
        let blocks = blocks(words);
        let mut text = String::new();
        for (at, word) in words.iter().enumerate() {
            if blocks.contains_key(&at) {
                text += "}\n";
            }
            for (end, _) in blocks.iter().rev().filter(|(_, begin)| **begin == at) {
                text += &format!("'l{end}: {{\n");
            }
            text += &self.statement(body.hook, word, at, at + 1 == words.len());
        }
        let name = |register: &u8| {
            let name = format!("r{register:02}");
            if text.contains(&name) { name } else { "_".into() }
        };
        let inputs = body.inputs.iter().map(|(input, register, present)| match present {
            Some(present) => format!(
                "let ({}, {}) = input(Input::{input:?}).map_or((0.0, 0.0), |value| (value, 1.0));\n",
                name(register),
                name(present)
            ),
            None => {
                format!("let {} = input(Input::{input:?}).unwrap_or(0.0);\n", name(register))
            }
        });
        let first = self.first_temporary();
        let results = words.iter().filter(|word| has_result(word.op)).map(|word| word.d);
        let temporaries = results.filter_map(|d| usize::from(d).checked_sub(first)).max();
        let temporaries = temporaries.map(|last| format!("let mut t = [0.0; {}];\n", last + 1));
        inputs.chain(temporaries).chain([text.clone()]).collect()
    }

    /// The place of the first register of temporary values, behind the inputs of all hooks.
    fn first_temporary(&self) -> usize {
        let inputs = self.bodies.iter().flat_map(|body| &body.inputs);
        let last = inputs.map(|(_, register, present)| usize::from(present.unwrap_or(*register)));
        let fixed = self.first_parameter + self.parameters.len() + self.constants.len();
        last.max().map_or(fixed, |last| last + 1)
    }

    fn statement(&self, hook: Option<Hook>, word: &Word, at: usize, last: bool) -> String {
        let (a, b) = (self.register(word.a), self.register(word.b));
        let skip = format!("break 'l{};", at + 1 + usize::from(word.d));
        let value = match word.op {
            Op::End => {
                let answer = match b.as_str() {
                    _ if hook.is_none() => return String::new(),
                    "0.0" => "None".into(),
                    "1.0" => format!("Some({a})"),
                    _ => format!("({b} != 0.0).then_some({a})"),
                };
                return if last { format!("{answer}\n") } else { format!("return {answer};\n") };
            }
            Op::Skip => return format!("{skip}\n"),
            Op::Unless => return format!("if {a} == 0.0 {{ {skip} }}\n"),
            Op::UnlessLess => return format!("if !arithmetic::less({a}, {b}) {{ {skip} }}\n"),
            Op::UnlessAtMost => return format!("if !arithmetic::at_most({a}, {b}) {{ {skip} }}\n"),
            Op::UnlessEqual => return format!("if {a} != {b} {{ {skip} }}\n"),
            Op::Move => a,
            Op::Minus => format!("-{a}"),
            Op::Abs => format!("f64::abs({a})"),
            Op::Add => format!("{a} + {b}"),
            Op::Subtract => format!("{a} - {b}"),
            Op::Multiply => format!("{a} * {b}"),
            Op::Divide => format!("{a} / {b}"),
            Op::Sqrt => format!("arithmetic::sqrt({a})"),
            Op::Cbrt => format!("arithmetic::cbrt({a})"),
            Op::Exp => format!("arithmetic::exp({a})"),
            Op::Log => format!("arithmetic::log({a})"),
            Op::Log10 => format!("arithmetic::log10({a})"),
            Op::Floor => format!("arithmetic::floor({a})"),
            Op::Ceil => format!("arithmetic::ceil({a})"),
            Op::Min => format!("arithmetic::min({a}, {b})"),
            Op::Max => format!("arithmetic::max({a}, {b})"),
            Op::Power => format!("arithmetic::power({a}, {b})"),
            Op::Since => format!("arithmetic::since({a}, {b})"),
            Op::After => format!("arithmetic::after({a}, {b})"),
        };
        format!("{} = {value};\n", self.register(word.d))
    }

    /// A register in Rust: a field, a number, an input or a temporary value.
    fn register(&self, register: u8) -> String {
        let place = usize::from(register);
        let (parameters, constants) =
            (self.first_parameter, self.first_parameter + self.parameters.len());
        if let Some(constant) = place.checked_sub(constants).and_then(|at| self.constants.get(at)) {
            return match constant.is_finite() {
                true => format!("{constant:?}"),
                false => format!("f64::from_bits({:#x})", constant.to_bits()),
            };
        }
        if let Some(at) = place.checked_sub(parameters) {
            return match (self.parameters.get(at), place.checked_sub(self.first_temporary())) {
                (Some(parameter), _) => format!("law.{}", parameter.name),
                (None, Some(temporary)) => format!("t[{temporary}]"),
                (None, None) => format!("r{register:02}"),
            };
        }
        if let Some((name, _)) = self.fixed.iter().find(|(_, fixed)| *fixed == register) {
            return format!("law.{name}");
        }
        let mut states = self.states.iter();
        let state =
            states.find(|state| [Some(state.register), state.present].contains(&Some(register)));
        match state {
            Some(state) if state.register == register => format!("law.{}", state.name),
            Some(state) => format!("law.{}_there", state.name),
            None => format!("r{register:02}"),
        }
    }
}

/// The enum of the choices of a parameter.
fn choice(kind: &str, meaning: &str, words: &[String]) -> String {
    let variants = words.iter().map(|word| format!("/// `{word}`.\n{},\n", type_name(word)));
    let variants: String = variants.collect();
    format!(
        "#[doc = {meaning:?}]\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub enum {kind} {{\n{variants}}}\n"
    )
}

fn has_result(op: Op) -> bool {
    op != Op::End && !op.skips()
}

/// The labelled blocks that operations skip out of: the beginning of each by its end. They are
/// nested.
fn blocks(words: &[Word]) -> BTreeMap<usize, usize> {
    let mut begins: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, word) in words.iter().enumerate().filter(|(_, word)| word.op.skips()) {
        begins.entry(at + 1 + usize::from(word.d)).or_insert(at);
    }
    // A block that ends later and begins inside of another one begins where that one does.
    let ends: Vec<usize> = begins.keys().copied().collect();
    for (place, end) in ends.iter().enumerate() {
        for later in &ends[place + 1..] {
            let (outer, inner) = (begins[later], begins[end]);
            if inner < outer && outer < *end {
                begins.insert(*later, inner);
            }
        }
    }
    begins
}
