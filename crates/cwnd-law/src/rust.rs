//! Rust made from the code of a law: the same operations in the same order.

use crate::code::{Body, Op, Word};
use crate::law::History;
use crate::{Domain, Hook, Input, Kind, Law, Parameter, State};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// A field of the type of a law, with its register and its initial value.
struct Field {
    name: String,
    register: u8,
    kind: String,
    start: String,
}

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
        let choices: String =
            self.parameters().iter().filter_map(|it| choices(&name, it)).collect();
        let (fields, rest) = self.fields(|field| format!("{}: {}, ", field.name, field.kind));
        let rest_type = match rest.as_str() {
            "" => String::new(),
            rest => format!("#[derive(Clone, Debug, PartialEq)]\nstruct Rest {{ {rest} }}\n"),
        };
        let hooks = || self.bodies.iter().filter_map(|body| Some((body.hook?, body)));
        let arms = |changes: bool| -> String {
            let hooks = hooks().filter(|(hook, _)| hook.changes_state() == changes);
            hooks
                .map(|(hook, _)| format!("Hook::{hook:?} => {}(self, input),\n", hook.name()))
                .collect()
        };
        let changing = arms(true);
        let ask = match arms(false) {
            none if none.is_empty() => ["_", "_", "None"].map(String::from),
            arms => ["hook".into(), "input".into(), format!("match hook {{\n{arms}_ => None,\n}}")],
        };
        let [hook, input, ask] = ask;
        let (copy, rest) = match rest.is_empty() {
            true => ("Copy, ", ""),
            false => ("", "rest: Box<Rest>"),
        };
        let functions: String = hooks().map(|(hook, body)| self.function(hook, body)).collect();
        let used = Input::ALL.iter().filter(|input| self.uses(**input));
        let used: Vec<_> = used.map(|input| format!("Input::{input:?}")).collect();
        let uses = match used.as_slice() {
            [] => "false".into(),
            used => format!("matches!(input, {})", used.join(" | ")),
        };
        let shown = self.states.iter().filter(|state| !state.meaning.is_empty());
        let gauges: String = shown.map(|state| self.gauge(state)).collect();
        let emit = if gauges.is_empty() { "_" } else { "emit" };
        let kind = if self.kind() == Kind::Window { "Window" } else { "Rate" };
        let constructor = self.constructor(&name);
        format!(
            "{choices}#[doc = {doc:?}]\n\
             #[derive(Clone, {copy}Debug, PartialEq)]\n\
             pub struct {name} {{ {fields}{rest} }}\n\
             {rest_type}\
             {constructor}{functions}\
             impl Hooks for {name} {{\n\
             #[inline(always)]\n\
             fn call(&mut self, hook: Hook, input: impl Fn(Input) -> Option<f64>) -> Option<f64> {{\n\
             match hook {{\n{changing}_ => None,\n}}\n}}\n\
             #[inline(always)]\n\
             fn ask(&self, {hook}: Hook, {input}: impl Fn(Input) -> Option<f64>) -> Option<f64> {{\n\
             {ask}\n}}\n\
             #[inline(always)]\n\
             fn uses(&self, input: Input) -> bool {{ {uses} }}\n\
             fn gauges(&self, {emit}: &mut dyn FnMut(&'static str, f64)) {{\n{gauges}}}\n}}\n\
             impl text::{kind}Text for {name} {{}}\n"
        )
    }

    /// The fields, as `text` has each, of the type and of the box behind it.
    fn fields(&self, text: impl Fn(&Field) -> String) -> (String, String) {
        let seldom = |field: &Field| self.is_seldom(field.register);
        let (rest, fields): (Vec<Field>, Vec<Field>) = self.all_fields().partition(seldom);
        (fields.iter().map(&text).collect(), rest.iter().map(&text).collect())
    }

    fn all_fields(&self) -> impl Iterator<Item = Field> {
        let number = |name: &String, register, start: &str| Field {
            name: name.clone(),
            register,
            kind: "f64".into(),
            start: start.into(),
        };
        // The first body is that of the initial values.
        let hooks = &self.code[self.bodies.get(1).map_or(0, |first| first.entry)..];
        let parameters = self.parameters().iter().enumerate();
        let parameters = parameters
            .map(move |(place, parameter)| {
                number(&parameter.name, (self.first_parameter + place) as u8, &parameter.name)
            })
            .filter(|field| {
                hooks.iter().any(|word| word.a == field.register || word.b == field.register)
            });
        let truth =
            |name, register| Field { name, register, kind: "bool".into(), start: "false".into() };
        let states = self.states.iter().flat_map(move |state| {
            let there = state.present.map(|there| truth(format!("{}_there", state.name), there));
            let value = match state.truth {
                true => truth(state.name.clone(), state.register),
                false => number(&state.name, state.register, "0.0"),
            };
            [value].into_iter().chain(there)
        });
        let fixed = self.fixed.iter().map(move |(name, register)| number(name, *register, "0.0"));
        let generator = self.generator.map(|register| Field {
            name: "generator".into(),
            register,
            kind: "f64".into(),
            start: "f64::from_bits(seed)".into(),
        });
        let histories = self.histories.iter().map(|history| {
            let nothing = vec!["f64::NAN"; history.values].join(", ");
            Field {
                name: history.name.clone(),
                register: history.count as u8,
                kind: format!("[f64; {}]", history.values + 1),
                start: format!("[0.0, {nothing}]"),
            }
        });
        parameters.chain(states).chain(fixed).chain(generator).chain(histories)
    }

    /// Whether a field is in the box of a law with histories, whose type is small too: all are that
    /// no acknowledgement needs.
    fn is_seldom(&self, register: u8) -> bool {
        let mut bodies = self.bodies.iter();
        let frequent = bodies.any(|body| {
            matches!(body.hook, Some(Hook::Grow | Hook::Observe))
                && self.words(body).iter().any(|word| {
                    [word.a, word.b].contains(&register)
                        || has_result(word.op) && word.d == register
                })
        });
        let mut histories = self.histories.iter();
        !self.histories.is_empty()
            && (!frequent || histories.any(|history| history.count == usize::from(register)))
    }

    /// Where a field is.
    fn field(&self, register: u8, name: &str) -> String {
        if self.is_seldom(register) { format!("rest.{name}") } else { name.into() }
    }

    /// The operations of a hook.
    fn words(&self, body: &Body) -> &[Word] {
        let next = self.bodies.iter().map(|other| other.entry).filter(|entry| *entry > body.entry);
        &self.code[body.entry..next.min().unwrap_or(self.code.len())]
    }

    /// Whether a register is a field that is true or false.
    fn is_flag(&self, register: u8) -> bool {
        let flag = |state: &State| {
            state.present == Some(register) || state.truth && state.register == register
        };
        self.states.iter().any(flag)
    }

    /// `new` and `Default`.
    fn constructor(&self, name: &str) -> String {
        let (mut taken, mut numbers, mut defaults) = (Vec::new(), String::new(), Vec::new());
        for parameter in self.parameters() {
            let field = &parameter.name;
            let (kind, default) = match &parameter.domain {
                Domain::Number { .. } => ("f64".into(), format!("{:?}", parameter.default)),
                Domain::Switch => {
                    numbers += &format!("let {field} = f64::from({field});\n");
                    ("bool".into(), format!("{:?}", parameter.default != 0.0))
                }
                Domain::Choice(words) => {
                    numbers += &format!("let {field} = f64::from({field} as u8);\n");
                    let kind = format!("{name}{}", type_name(field));
                    // The default is one of the choices.
                    let default = type_name(&words[parameter.default as usize]);
                    (kind.clone(), format!("{kind}::{default}"))
                }
            };
            taken.push(format!("{field}: {kind}"));
            defaults.push(default);
        }
        let (mut values, rest) = self.fields(|field| match field.name == field.start {
            true => format!("{}, ", field.name),
            false => format!("{}: {}, ", field.name, field.start),
        });
        if !rest.is_empty() {
            values += &format!("rest: Box::new(Rest {{ {rest} }})");
        }
        let start = self.bodies.first().map(|start| self.statements(start)).unwrap_or_default();
        let law = format!("{name} {{ {values} }}\n");
        let law = match start.is_empty() {
            true => law,
            false => format!("let mut law = {law};\n{start}law\n"),
        };
        if self.generator.is_some() {
            taken.push("seed: u64".into());
            defaults.push("0".into());
        }
        let many = match taken.len() {
            8.. => "#[expect(clippy::too_many_arguments, reason = \"parameters of the law\")]\n",
            _ => "",
        };
        let (taken, defaults) = (taken.join(", "), defaults.join(", "));
        format!(
            "impl {name} {{\n\
             /// The law with these parameters: times in seconds, rates in packets per second.\n\
             {many}#[must_use]\n\
             pub fn new({taken}) -> Self {{\n{numbers}{law}}}\n}}\n\
             impl Default for {name} {{\nfn default() -> Self {{ {name}::new({defaults}) }}\n}}\n"
        )
    }

    /// The function of a hook.
    fn function(&self, hook: Hook, body: &Body) -> String {
        let statements = self.statements(body);
        let law = if statements.contains("law.") { "law" } else { "_" };
        let input = if body.inputs.is_empty() { "_" } else { "input" };
        format!(
            "#[inline]\nfn {}({law}: &{}{}, {input}: impl Fn(Input) -> Option<f64>) \
             -> Option<f64> {{\n{statements}}}\n",
            hook.name(),
            if hook.changes_state() { "mut " } else { "" },
            type_name(self.name())
        )
    }

    fn statements(&self, body: &Body) -> String {
        let words = self.words(body);
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
        let place = |register| self.place(hook.is_none(), register);
        let number = |register| match self.is_flag(register) {
            true => format!("f64::from({})", place(register)),
            false => place(register),
        };
        let (a, b) = (number(word.a), number(word.b));
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
            Op::Unless => {
                return match self.is_flag(word.a) {
                    true => format!("if !{} {{ {skip} }}\n", place(word.a)),
                    false => format!("if {a} == 0.0 {{ {skip} }}\n"),
                };
            }
            Op::UnlessLess => return format!("if !arithmetic::less({a}, {b}) {{ {skip} }}\n"),
            Op::UnlessAtMost => return format!("if !arithmetic::at_most({a}, {b}) {{ {skip} }}\n"),
            Op::UnlessEqual if word.a == word.b => {
                return format!("if {a}.is_nan() {{ {skip} }}\n");
            }
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
            Op::Next => format!("arithmetic::next({a})"),
            Op::Unit => format!("arithmetic::unit({a})"),
        };
        let value = match (self.is_flag(word.d), value.as_str()) {
            (false, _) => value,
            (true, "0.0") => "false".into(),
            (true, "1.0") => "true".into(),
            (true, _) => format!("{value} != 0.0"),
        };
        format!("{} = {value};\n", place(word.d))
    }

    /// A register in Rust: a field, a number, an input or a temporary value. At the start parameters
    /// are those of the constructor.
    fn place(&self, start: bool, register: u8) -> String {
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
                (Some(parameter), _) if start => parameter.name.clone(),
                (Some(parameter), _) => format!("law.{}", self.field(register, &parameter.name)),
                (None, Some(temporary)) => format!("t[{temporary}]"),
                (None, None) => format!("r{register:02}"),
            };
        }
        if let Some((name, _)) = self.fixed.iter().find(|(_, fixed)| *fixed == register) {
            return format!("law.{}", self.field(register, name));
        }
        for History { name, count, values } in &self.histories {
            if (*count..=count + values).contains(&place) {
                return format!("law.rest.{name}[{}]", place - count);
            }
        }
        if self.generator == Some(register) {
            return format!("law.{}", self.field(register, "generator"));
        }
        let mut states = self.states.iter();
        let state =
            states.find(|state| [Some(state.register), state.present].contains(&Some(register)));
        match state {
            Some(state) if state.register == register => {
                format!("law.{}", self.field(register, &state.name))
            }
            Some(state) => {
                format!("law.{}", self.field(register, &format!("{}_there", state.name)))
            }
            None => format!("r{register:02}"),
        }
    }

    /// Emits a state; times in seconds.
    fn gauge(&self, state: &State) -> String {
        let name = &state.name;
        let field = self.field(state.register, name);
        let value = match (state.instant, state.truth) {
            (true, _) => format!("self.{field} / 1e9"),
            (_, true) => format!("f64::from(self.{field})"),
            _ => format!("self.{field}"),
        };
        let value = match state.present {
            Some(present) => {
                let there = self.field(present, &format!("{name}_there"));
                format!("if self.{there} {{ {value} }} else {{ f64::NAN }}")
            }
            None => value,
        };
        format!("emit({:?}, {value});\n", state.symbol)
    }
}

/// The enum of the choices of a parameter.
fn choices(law: &str, parameter: &Parameter) -> Option<String> {
    let Domain::Choice(words) = &parameter.domain else { return None };
    let variants = words.iter().map(|word| format!("/// `{word}`.\n{},\n", type_name(word)));
    let variants: String = variants.collect();
    let (kind, meaning) = (type_name(&parameter.name), &parameter.meaning);
    Some(format!(
        "#[doc = {meaning:?}]\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub enum {law}{kind} {{\n{variants}}}\n"
    ))
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
