//! Operations and their registers, which are numbered when all are counted.

use crate::code::{Body, Op, Word};
use crate::hook::{Hook, Input};
use alloc::vec;
use alloc::vec::Vec;

/// A register before all are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
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

/// The code so far.
#[derive(Default)]
pub(super) struct Code {
    steps: Vec<Step>,
    /// The numbers, and whether an operation reads them: of those that were folded none does.
    constants: Vec<(f64, bool)>,
    bodies: Vec<Body>,
    /// The inputs of the hook, and their registers.
    inputs: Vec<(Input, usize, Option<usize>)>,
    input_registers: usize,
    most_inputs: usize,
    /// The temporary registers in use, and how many of them are those of the hook's own values.
    temporaries: usize,
    held: usize,
    most_temporaries: usize,
    /// The last position that an operation skips to.
    target: usize,
}

/// The code of a law, with numbered registers.
pub(super) struct Numbered {
    pub(super) words: Vec<Word>,
    pub(super) bodies: Vec<Body>,
    pub(super) constants: Vec<f64>,
}

impl Code {
    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    pub(super) fn has(&self, hook: Hook) -> bool {
        self.bodies.iter().any(|body| body.hook == Some(hook))
    }

    /// Begins a hook, or the initial values.
    pub(super) fn begin(&mut self, hook: Option<Hook>) {
        self.inputs.clear();
        (self.input_registers, self.temporaries, self.held) = (0, 0, 0);
        self.target = self.steps.len();
        self.bodies.push(Body { hook, entry: self.steps.len(), inputs: Vec::new(), cost: 0 });
    }

    /// Ends the hook, or the initial values, and returns the largest cost of a path.
    pub(super) fn end_body(&mut self) -> u32 {
        self.most_inputs = self.most_inputs.max(self.input_registers);
        let Some(body) = self.bodies.last_mut() else { return 0 };
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
        body.cost
    }

    /// Whether the last hook has the operation.
    pub(super) fn uses(&self, op: Op) -> bool {
        let entry = self.bodies.last().map_or(0, |body| body.entry);
        self.steps.iter().skip(entry).any(|step| step.op == op)
    }

    /// The register of an input, and the register that is 0 if its value is none.
    pub(super) fn input(&mut self, input: Input) -> (Register, Option<Register>) {
        let known = self.inputs.iter().find(|(other, ..)| *other == input);
        let (_, register, present) = known.copied().unwrap_or_else(|| {
            let register = self.input_registers;
            let present = input.may_be_none().then_some(register + 1);
            self.input_registers += 1 + usize::from(input.may_be_none());
            self.inputs.push((input, register, present));
            (input, register, present)
        });
        (Register::Input(register), present.map(Register::Input))
    }

    pub(super) fn constant(&mut self, value: f64) -> Register {
        let same = |(other, _): &(f64, bool)| other.to_bits() == value.to_bits();
        let place = self.constants.iter().position(same).unwrap_or_else(|| {
            self.constants.push((value, false));
            self.constants.len() - 1
        });
        Register::Constant(place)
    }

    pub(super) fn temporary(&mut self) -> Register {
        let register = self.temporaries;
        self.temporaries += 1;
        self.most_temporaries = self.most_temporaries.max(self.temporaries);
        Register::Temporary(register)
    }

    /// How many temporary registers are in use.
    pub(super) fn mark(&self) -> usize {
        self.temporaries
    }

    /// Frees the temporary registers since `mark`.
    pub(super) fn reset(&mut self, mark: usize) {
        self.temporaries = mark;
    }

    /// Frees all temporary registers but those of the hook's own values, and returns their number.
    pub(super) fn free(&mut self) -> usize {
        self.temporaries = self.held;
        self.held
    }

    /// Frees the temporary registers but the first `held`, which are those of the hook's own values.
    pub(super) fn release(&mut self, held: usize) {
        (self.temporaries, self.held) = (held, held);
    }

    /// The temporary registers in use are those of the hook's own values.
    pub(super) fn hold(&mut self) {
        self.held = self.temporaries;
    }

    /// Emits an operation; its position.
    pub(super) fn emit(&mut self, op: Op, d: Register, a: Register, b: Register) -> usize {
        for operand in [a, b] {
            if let Register::Constant(place) = operand {
                self.constants[place].1 = true;
            }
        }
        self.steps.push(Step { op, d, a, b, skip: 0 });
        self.steps.len() - 1
    }

    /// Emits an operation without a result.
    pub(super) fn test(&mut self, op: Op, a: Register, b: Register) -> usize {
        self.emit(op, a, a, b)
    }

    /// Moves a value, or lets the operation before have its result there.
    pub(super) fn emit_move(&mut self, to: Register, from: Register) {
        if to == from {
            return;
        }
        let free = matches!(from, Register::Temporary(number) if number >= self.held);
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

    /// Emits a skip; its position.
    pub(super) fn skip(&mut self) -> usize {
        let unused = self.constant(0.0);
        self.test(Op::Skip, unused, unused)
    }

    /// Lets operations skip to here.
    pub(super) fn land(&mut self, skips: &[usize]) {
        for skip in skips {
            self.steps[*skip].skip = self.steps.len() - skip - 1;
        }
        if !skips.is_empty() {
            self.target = self.steps.len();
        }
    }

    /// The most operations that one skips.
    pub(super) fn longest_skip(&self) -> usize {
        self.steps.iter().map(|step| step.skip).max().unwrap_or(0)
    }

    /// How many registers it needs besides those of states and parameters.
    pub(super) fn registers(&self) -> usize {
        self.read_constants(self.constants.len()) + self.most_inputs + self.most_temporaries
    }

    /// How many of the constants before `place` are read.
    fn read_constants(&self, place: usize) -> usize {
        self.constants[..place].iter().filter(|(_, read)| *read).count()
    }

    /// Numbers the registers, after those of states and parameters.
    pub(super) fn number(self, states: usize, parameters: usize) -> Numbered {
        let constants = states + parameters;
        let inputs = constants + self.read_constants(self.constants.len());
        let temporaries = inputs + self.most_inputs;
        // Each number is below REGISTERS.
        let number = |register| match register {
            Register::State(place) => place as u8,
            Register::Parameter(place) => (states + place) as u8,
            Register::Constant(place) => (constants + self.read_constants(place)) as u8,
            Register::Input(place) => (inputs + place) as u8,
            Register::Temporary(place) => (temporaries + place) as u8,
        };
        // A skip is at most MAX_SKIP.
        let word = |step: &Step| Word {
            op: step.op,
            d: if step.op.skips() { step.skip as u8 } else { number(step.d) },
            a: number(step.a),
            b: number(step.b),
        };
        let words = self.steps.iter().map(word).collect();
        let mut bodies = self.bodies;
        for (_, register, present) in bodies.iter_mut().flat_map(|body| &mut body.inputs) {
            *register += inputs as u8;
            if let Some(present) = present {
                *present += inputs as u8;
            }
        }
        let read = self.constants.into_iter().filter(|(_, read)| *read);
        Numbered { words, bodies, constants: read.map(|(value, _)| value).collect() }
    }
}
