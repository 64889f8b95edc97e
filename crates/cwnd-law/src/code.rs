//! The code of a law, and its interpreter.

use crate::arithmetic::{
    after, at_most, cbrt, ceil, exp, floor, less, log, log10, max, min, next, power, since, sqrt,
    unit,
};
use crate::hook::{Hook, Input};

/// The registers of a law: states, parameters, constants, inputs and temporary values.
pub const REGISTERS: usize = 64;
/// The most operations of a law.
pub(crate) const MAX_CODE: usize = 512;
/// The most operations that one skips.
pub(crate) const MAX_SKIP: usize = u8::MAX as usize;
/// The most nanoseconds that a hook may take, by [`Op::cost`].
pub(crate) const MAX_COST: u32 = 2000;

/// An operation: one of IEEE 754, or a fixed sequence of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Op {
    /// Ends the hook with the answer `a`, none if `b` is false.
    End,
    Move,
    Minus,
    Abs,
    Sqrt,
    Cbrt,
    Exp,
    Log,
    Log10,
    Floor,
    Ceil,
    Add,
    Subtract,
    Multiply,
    Divide,
    /// `a` if it is less than `b`, else `b`.
    Min,
    /// `a` if it is greater than `b`, else `b`.
    Max,
    Power,
    /// The seconds from the instant `b` to the instant `a`; 0 if `b` is later.
    Since,
    /// The instant `b` seconds after the instant `a`.
    After,
    /// The generator `a` after a draw.
    Next,
    /// The number that the generator `a` has drawn.
    Unit,
    /// Skips `d` operations.
    Skip,
    /// Skips `d` operations if `a` is false.
    Unless,
    /// Skips `d` operations unless `a` is less than `b`.
    UnlessLess,
    /// Skips `d` operations unless `a` is at most `b`.
    UnlessAtMost,
    /// Skips `d` operations unless `a` equals `b`.
    UnlessEqual,
}

impl Op {
    /// An upper bound of its time in nanoseconds, with that of its dispatch, as measured for
    /// binary64 arithmetic in an eBPF program on a processor whose returns are slowed by mitigations.
    pub(crate) const fn cost(self) -> u32 {
        match self {
            Op::Power => 1000,
            Op::Log10 => 450,
            Op::Log => 320,
            Op::Exp => 260,
            Op::Cbrt => 40,
            Op::Sqrt => 30,
            Op::Since | Op::After | Op::Unit => 25,
            Op::Divide => 16,
            Op::Add | Op::Subtract | Op::Multiply | Op::Floor | Op::Ceil => 15,
            Op::Min | Op::Max | Op::UnlessLess | Op::UnlessAtMost | Op::UnlessEqual => 7,
            _ => 3,
        }
    }

    /// Whether it may continue elsewhere than at the next operation.
    pub(crate) const fn skips(self) -> bool {
        matches!(self, Op::Skip | Op::Unless | Op::UnlessLess | Op::UnlessAtMost | Op::UnlessEqual)
    }
}

/// The result of an operation that has one.
#[inline(always)]
pub(crate) fn apply(op: Op, a: f64, b: f64) -> f64 {
    match op {
        Op::Minus => -a,
        Op::Abs => a.abs(),
        Op::Sqrt => sqrt(a),
        Op::Cbrt => cbrt(a),
        Op::Exp => exp(a),
        Op::Log => log(a),
        Op::Log10 => log10(a),
        Op::Floor => floor(a),
        Op::Ceil => ceil(a),
        Op::Add => a + b,
        Op::Subtract => a - b,
        Op::Multiply => a * b,
        Op::Divide => a / b,
        Op::Min => min(a, b),
        Op::Max => max(a, b),
        Op::Power => power(a, b),
        Op::Since => since(a, b),
        Op::After => after(a, b),
        Op::Next => next(a),
        Op::Unit => unit(a),
        _ => a,
    }
}

/// An operation with its registers: `d` is that of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) op: Op,
    pub(crate) d: u8,
    pub(crate) a: u8,
    pub(crate) b: u8,
}

impl Word {
    /// The word of 32 bits that an interpreter elsewhere reads.
    pub(crate) const fn encode(self) -> u32 {
        u32::from_le_bytes([self.op as u8, self.d, self.a, self.b])
    }
}

/// The registers of an instance of a law.
pub(crate) type Registers = [f64; REGISTERS];

/// The inputs of a hook and their registers.
pub(crate) type Inputs = alloc::vec::Vec<(Input, u8, Option<u8>)>;

/// The code of a hook, or of the initial values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Body {
    /// Nothing for the initial values.
    pub(crate) hook: Option<Hook>,
    /// The position of its first operation.
    pub(crate) entry: usize,
    /// The inputs that it uses: each with its register, and the register that is 0 if it is none.
    pub(crate) inputs: Inputs,
    /// The largest cost of a path.
    pub(crate) cost: u32,
}

/// Runs the hook that begins at `entry`; its answer, if it has one.
#[inline]
pub(crate) fn run(code: &[Word], entry: usize, registers: &mut Registers) -> Option<f64> {
    let mut at = entry;
    while let Some(&Word { op, d, a, b }) = code.get(at) {
        at += 1;
        let (x, y) = (read(registers, a), read(registers, b));
        let skips = match op {
            Op::End => return (y != 0.0).then_some(x),
            Op::Skip => true,
            Op::Unless => x == 0.0,
            Op::UnlessLess => !less(x, y),
            Op::UnlessAtMost => !at_most(x, y),
            Op::UnlessEqual => x != y,
            _ => {
                registers[usize::from(d) % REGISTERS] = apply(op, x, y);
                continue;
            }
        };
        if skips {
            at += usize::from(d);
        }
    }
    None
}

#[inline(always)]
fn read(registers: &Registers, register: u8) -> f64 {
    registers[usize::from(register) % REGISTERS]
}
