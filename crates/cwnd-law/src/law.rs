//! A law that has been read, and its instances.

use crate::Diagnostic;
use crate::arithmetic::NANOS;
use crate::code::{Body, REGISTERS, Registers, Word, run};
use crate::hook::{Hook, Input, Kind};
use crate::unit::Unit;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// What a parameter may be.
#[derive(Clone, Debug, PartialEq)]
pub enum Domain {
    /// A number of an interval.
    Number {
        /// The lower end.
        min: f64,
        /// The upper end.
        max: f64,
        /// Whether the lower end is not in the interval.
        min_excluded: bool,
        /// Whether the upper end is not in the interval.
        max_excluded: bool,
    },
    /// One of these names; the value is its place.
    Choice(Vec<String>),
    /// On, which is 1, or off, which is 0.
    Switch,
}

impl Domain {
    /// Whether a parameter may have this value.
    pub fn contains(&self, value: f64) -> bool {
        match self {
            Domain::Number { min, max, min_excluded, max_excluded } => {
                let above = if *min_excluded { *min < value } else { *min <= value };
                above && if *max_excluded { value < *max } else { value <= *max }
            }
            Domain::Choice(choices) => (0..choices.len()).any(|place| place as f64 == value),
            Domain::Switch => value == 0.0 || value == 1.0,
        }
    }
}

/// A parameter of a law.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its symbol in the source; its name without one.
    pub symbol: String,
    /// What it means.
    pub meaning: String,
    /// Its value where none is given.
    pub default: f64,
    pub(crate) unit: Unit,
    pub(crate) counts: Option<&'static str>,
    /// What it may be.
    pub domain: Domain,
}

impl Parameter {
    /// The unit of its values: `s`, `/s`, `bit/s` or `packets`; empty for a plain number.
    pub fn unit(&self) -> &'static str {
        match self.unit {
            Unit::SECONDS => "s",
            Unit::PER_SECOND if self.counts.is_some() => "bit/s",
            Unit::PER_SECOND => "/s",
            _ => self.counts.unwrap_or_default(),
        }
    }
}

/// A variable that a law keeps between its hooks.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Its name.
    pub name: String,
    /// The name by which it is shown.
    pub symbol: String,
    /// What it means; empty for a state that is not shown.
    pub meaning: String,
    pub(crate) register: u8,
    pub(crate) present: Option<u8>,
    /// Whether it is a time of the clock: its register is in nanoseconds.
    pub(crate) instant: bool,
    /// Whether it is true or false.
    pub(crate) truth: bool,
}

/// The registers of a history: that of the count of its values, and behind it those of the values,
/// the newest last. One without a value is not a number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct History {
    pub(crate) name: String,
    pub(crate) count: usize,
    pub(crate) values: usize,
}

/// A law that has been read.
#[derive(Clone, Debug, PartialEq)]
pub struct Law {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) summary: String,
    pub(crate) sources: Vec<String>,
    pub(crate) deviations: Vec<String>,
    pub(crate) equations: Vec<String>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) pacing: f64,
    pub(crate) states: Vec<State>,
    pub(crate) histories: Vec<History>,
    /// The register of the generator of random numbers: its bits are the generator's state.
    pub(crate) generator: Option<u8>,
    /// The named expressions of parameters, and their registers.
    pub(crate) fixed: Vec<(String, u8)>,
    pub(crate) warnings: Vec<Diagnostic>,
    pub(crate) hash: String,
    pub(crate) text: String,
    pub(crate) code: Vec<Word>,
    /// The first is that of the initial values.
    pub(crate) bodies: Vec<Body>,
    /// The place of each hook's body; 0 without one.
    pub(crate) places: [u8; Hook::ALL.len()],
    pub(crate) first_parameter: usize,
    pub(crate) constants: Vec<f64>,
}

impl Law {
    /// The kind of law.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Its name, which parameters may follow in brackets.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its full name.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// What it does, in a sentence; empty without one.
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// The papers or specifications that define it.
    pub fn sources(&self) -> &[String] {
        &self.sources
    }

    /// The deviations from them.
    pub fn deviations(&self) -> &[String] {
        &self.deviations
    }

    /// Its parameters, in the order of their declarations.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The default of the parameter `pacing` of every window law; 0 leaves it to the driver.
    pub fn pacing(&self) -> f64 {
        self.pacing
    }

    /// The lines of its hooks and named expressions, in the canonical form.
    pub fn equations(&self) -> &[String] {
        &self.equations
    }

    /// Its states.
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// What its author probably did not mean.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// The law's identity: 32 hexadecimal digits, which comments, texts and blanks do not change.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The text that it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it has the hook.
    pub fn has(&self, hook: Hook) -> bool {
        self.body(hook).is_some()
    }

    /// Whether one of its hooks uses the input.
    pub fn uses(&self, input: Input) -> bool {
        self.bodies.iter().any(|body| body.inputs.iter().any(|(used, ..)| *used == input))
    }

    /// The nanoseconds that a hook takes at most in an eBPF program, as its operations are counted.
    pub fn cost(&self, hook: Hook) -> Option<u32> {
        self.body(hook).map(|body| body.cost)
    }

    #[inline]
    fn body(&self, hook: Hook) -> Option<&Body> {
        let place = self.places[hook as usize];
        self.bodies.get(usize::from(place)).filter(|_| place > 0)
    }

    #[inline]
    fn answer(
        &self,
        hook: Hook,
        registers: &mut Registers,
        input: impl Fn(Input) -> Option<f64>,
    ) -> Option<f64> {
        let body = self.body(hook)?;
        for (name, register, present) in &body.inputs {
            let value = input(*name);
            registers[usize::from(*register) % REGISTERS] = value.unwrap_or(0.0);
            if let Some(present) = present {
                registers[usize::from(*present) % REGISTERS] = f64::from(u8::from(value.is_some()));
            }
        }
        run(&self.code, body.entry, registers)
    }

    /// The code of the law, for an interpreter elsewhere. It begins with the registers of an
    /// [`instance`](Self::instance).
    pub fn program(&self) -> Program<'_> {
        Program {
            words: self.code.iter().map(|word| word.encode()).collect(),
            routines: (self.bodies.iter())
                .filter_map(|body| {
                    let Body { hook, entry, inputs, .. } = body;
                    Some(Routine { hook: (*hook)?, entry: *entry, inputs })
                })
                .collect(),
        }
    }

    /// Whether it draws random numbers.
    pub fn is_random(&self) -> bool {
        self.generator.is_some()
    }

    /// An instance of the law for one connection, with the values of its parameters in declared
    /// order; defaults for those that are not given. The seed of its random numbers is 0.
    pub fn instance(&self, values: &[f64]) -> Instance<'_> {
        let mut registers = Box::new([0.0; REGISTERS]);
        let defaults = self.parameters.iter().map(|parameter| parameter.default);
        let values = values.iter().copied().chain(defaults.skip(values.len()));
        let (_, rest) = registers.split_at_mut(self.first_parameter);
        let fixed = values.take(self.parameters.len()).chain(self.constants.iter().copied());
        rest.iter_mut().zip(fixed).for_each(|(register, value)| *register = value);
        for History { count, values, .. } in &self.histories {
            let values = registers.iter_mut().skip(count + 1).take(*values);
            values.for_each(|value| *value = f64::NAN);
        }
        run(&self.code, 0, &mut registers);
        Instance { law: self, registers }
    }
}

/// The code of a law.
#[derive(Clone, Debug, PartialEq)]
pub struct Program<'l> {
    /// The operations: each with its number in the lowest byte, then the registers of its result
    /// and of its two operands.
    pub words: Vec<u32>,
    /// The hooks of the law.
    pub routines: Vec<Routine<'l>>,
}

/// The code of a hook.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Routine<'l> {
    /// The hook.
    pub hook: Hook,
    /// The place of its first operation.
    pub entry: usize,
    /// The inputs that it uses: each with its register, and the register that is 1, or 0 if the
    /// input is none.
    pub inputs: &'l [(Input, u8, Option<u8>)],
}

/// A law with its state, on one connection.
#[derive(Clone, Debug)]
pub struct Instance<'l> {
    law: &'l Law,
    registers: Box<Registers>,
}

impl<'l> Instance<'l> {
    /// The law.
    pub fn law(&self) -> &'l Law {
        self.law
    }

    /// Runs a hook, which asks for its inputs: its answer; nothing without an answer, or without
    /// the hook. Instants are in nanoseconds, other times in seconds, choices are their places.
    #[inline]
    pub fn call(&mut self, hook: Hook, input: impl Fn(Input) -> Option<f64>) -> Option<f64> {
        self.law.answer(hook, &mut self.registers, input)
    }

    /// The same for a hook that does not change the state.
    pub fn ask(&self, hook: Hook, input: impl Fn(Input) -> Option<f64>) -> Option<f64> {
        // Most laws have few of these hooks: without one nothing is copied.
        if self.law.has(hook) {
            self.law.answer(hook, &mut { *self.registers }, input)
        } else {
            None
        }
    }

    /// The same instance with another seed of its random numbers.
    pub fn seeded(mut self, seed: u64) -> Self {
        if let Some(register) = self.law.generator {
            self.registers[usize::from(register) % REGISTERS] = f64::from_bits(seed);
        }
        self
    }

    /// All registers, as [`Program`] numbers them.
    pub fn registers(&self) -> &[f64; REGISTERS] {
        &self.registers
    }

    /// The states that are shown, by their symbols: times, also those of the clock, in seconds; none is NaN.
    pub fn states(&self) -> impl Iterator<Item = (&'l str, f64)> {
        self.law.states.iter().filter(|state| !state.meaning.is_empty()).map(|state| {
            let there = state.present.is_none_or(|at| self.registers[usize::from(at)] != 0.0);
            let value = self.registers[usize::from(state.register)];
            let value = if state.instant { value / NANOS } else { value };
            (state.symbol.as_str(), if there { value } else { f64::NAN })
        })
    }
}
