//! `kernel/law.h`, compiled for the host, interprets random laws as crate cwnd-law does: answers and
//! all registers are equal to the bit.

mod program;
#[path = "../../cwnd-law/src/writer.rs"]
mod writer;

use cwnd::{Context, Dur, Rtt, Time};
use cwnd_law::{Hook, Input, Instance, Law, REGISTERS};
use cwnd_linux::bpf::encode_law;
use std::collections::BTreeSet;
use writer::Writer;

const LAWS: usize = 1500;
/// Calls of each law's hooks.
const CALLS: usize = 40;
/// `struct law` in 64-bit words: operations, inputs, hooks and registers.
const LAW: usize = 256 + 64 + 16 + REGISTERS;
const GIVEN: usize = 64;
const ROW: usize = LAW + 2 + GIVEN;
const RESULTS: usize = 2 + REGISTERS;
/// `LAW_NONE`.
const NONE: u64 = u64::MAX;

/// A law as the loader writes it.
struct Random {
    law: Law,
    words: Vec<u64>,
    hooks: Vec<Hook>,
}

/// A call of a hook, with what the program gives.
struct Call {
    law: usize,
    hook: Hook,
    given: [u64; GIVEN],
}

fn laws() -> Vec<Random> {
    let law = |seed| {
        let law = Law::parse(&Writer::law(seed)).ok()?;
        let hooks = Hook::ALL.iter().copied().filter(|hook| law.has(*hook)).collect();
        Some(Random { words: encode_law(&law, &[]).unwrap(), law, hooks })
    };
    (0..).filter_map(law).take(LAWS).collect()
}

fn half(words: &[u64], at: usize) -> u32 {
    (words[at / 2] >> (32 * (at % 2))) as u32
}

/// The form of each input of a hook, as the loader writes it.
fn forms(words: &[u64], hook: Hook) -> impl Iterator<Item = [u8; 4]> {
    let routine = half(&words[320..], hook as usize);
    let (first, count) = (routine >> 16 & 0xff, routine >> 24);
    (first..first + count).map(|at| half(&words[256..], at as usize).to_le_bytes())
}

fn call(random: &mut Writer, laws: &[Random], number: usize) -> Call {
    let law = number / CALLS;
    let hook = random.of(&laws[law].hooks);
    let mut given = [0; GIVEN];
    for input in Input::ALL {
        given[*input as usize] = match random.below(4) {
            0 if input.may_be_none() => NONE,
            1 => random.of(&[0.0, -1.5, 1e300, 5e-324, f64::INFINITY, f64::NAN]).to_bits(),
            2 => random.of(&[0, 1, 3, 64, 20_000_000, 1 << 53 | 1, u64::MAX - 1]),
            _ => (random.below(1 << 30) as f64 * program::pow2(-10)).to_bits(),
        };
    }
    Call { law, hook, given }
}

/// The input as crate cwnd passes it to a law.
fn value(given: &[u64; GIVEN], input: Input, form: u8) -> Option<f64> {
    let number = given[input as usize];
    let nanos = |input: Input| given[input as usize];
    match form {
        3 => {
            let smoothed = Some(nanos(Input::Rtt)).filter(|rtt| *rtt != NONE);
            let rtt = smoothed.map(|rtt| Rtt::first(Dur::from_nanos(rtt)));
            let mut cx = Context::new(Time::from_nanos(nanos(Input::Now)), rtt);
            cx.last_cut = Time::from_nanos(nanos(Input::LastCut));
            Some(cx.rtts_since_cut())
        }
        _ if number == NONE => None,
        2 => Some(f64::from_bits(number)),
        1 => Some(Dur::from_nanos(number).as_secs()),
        _ => Some(number as f64),
    }
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

#[test]
fn random_laws_compute_the_same_bits() {
    let laws = laws();
    let mut random = Writer::new(7);
    let calls: Vec<_> = (0..LAWS * CALLS).map(|number| call(&mut random, &laws, number)).collect();
    let row = |(number, Call { law, hook, given }): (usize, &Call)| -> [u64; ROW] {
        let mut row = [0; ROW];
        row[..LAW].copy_from_slice(&laws[*law].words);
        (row[LAW], row[LAW + 1]) = (*hook as u64, u64::from(number % CALLS == 0));
        row[LAW + 2..].copy_from_slice(given);
        row
    };
    let mut instance: Option<Instance<'_>> = None;
    let mut number = 0;
    program::run("law.c", "law", calls.iter().enumerate().map(row), |results: [u64; RESULTS]| {
        let Call { law, hook, given } = &calls[number];
        let Random { law, words, .. } = &laws[*law];
        if number % CALLS == 0 {
            instance = Some(law.instance(&[]));
        }
        number += 1;
        let instance = instance.as_mut().unwrap();
        let expected = instance.call(*hook, |input| {
            let [_, _, _, form] = forms(words, *hook).find(|[it, ..]| *it == input as u8).unwrap();
            value(given, input, form)
        });
        let answer = (results[0] != 0).then(|| f64::from_bits(results[1]));
        let equal = match (answer, expected) {
            (Some(answer), Some(expected)) => same(answer, expected),
            (answer, expected) => answer == expected,
        };
        assert!(equal, "{hook:?}: {answer:?}, expected {expected:?}\n{}", law.text());
        let found = results[2..].iter().map(|bits| f64::from_bits(*bits));
        let differs = found.zip(instance.registers()).position(|(a, b)| !same(a, *b));
        assert_eq!(differs, None, "register after {hook:?}\n{}", law.text());
    });
    let operations: BTreeSet<u8> = laws.iter().flat_map(|law| operations(&law.words)).collect();
    assert_eq!(operations.len(), 27);
}

fn operations(words: &[u64]) -> impl Iterator<Item = u8> {
    (0..512).map(|at| half(words, at) as u8)
}
