//! `kernel/binary64.h`, compiled for the host, gives the bits of Rust's `f64` and of crate `libm`.

#![cfg(target_os = "linux")]

mod program;
mod random;

use program::pow2;
use random::Random;

/// Pairs of operands for the basic operations.
const PAIRS: usize = 2_000_000;
const BASIC: [&str; 10] =
    ["add", "sub", "mul", "div", "sqrt", "floor", "ceil", "from_u64", "to_u64", "order"];
/// Operands for the functions.
const ARGUMENTS: usize = 300_000;
const FUNCTIONS: [&str; 5] = ["exp", "log", "log10", "cbrt", "power"];
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        ((self.word() >> 32) * end) >> 32
    }

    fn sign(&mut self) -> u64 {
        self.word() & 1 << 63
    }

    /// Draws a fraction of 52 bits: any, one with few bits set or clear, or one that ends with
    /// zeros, whose products and quotients are exact or half-way.
    fn fraction(&mut self) -> u64 {
        let mask = (1 << 52) - 1;
        let few = |random: &mut Random| 1 << random.below(52) | 1 << random.below(52);
        mask & match self.below(8) {
            0 => few(self),
            1 => !few(self),
            2 => self.word() << self.below(52),
            _ => self.word(),
        }
    }

    /// Draws a number with an exponent from `low` to `high`.
    fn number(&mut self, low: i64, high: i64) -> f64 {
        let exponent = low + self.below((high - low + 1) as u64) as i64;
        f64::from_bits(self.sign() | ((exponent + 1023) as u64) << 52 | self.fraction())
    }

    /// Draws a subnormal number.
    fn subnormal(&mut self) -> f64 {
        f64::from_bits(self.sign() | self.fraction() >> self.below(52))
    }

    /// Draws a number whose bits are near those of `x`.
    fn near(&mut self, x: f64) -> f64 {
        f64::from_bits(x.to_bits().wrapping_add(self.below(17)).wrapping_sub(8))
    }

    /// Draws an integer, or one and a half.
    fn integer(&mut self) -> f64 {
        let x = (self.word() >> self.below(63)) as i64 as f64;
        if self.below(4) == 0 { x + 0.5 } else { x }
    }

    fn special(&mut self) -> f64 {
        const NUMBERS: [f64; 10] = [
            0.0,
            1.0,
            0.5,
            2.0,
            3.0,
            f64::MIN_POSITIVE,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
            f64::EPSILON,
        ];
        let x = NUMBERS[self.below(NUMBERS.len() as u64) as usize];
        let x = if self.below(4) == 0 { self.near(x) } else { x };
        if self.below(2) == 0 { x } else { -x }
    }

    fn any(&mut self) -> f64 {
        match self.below(8) {
            0 => f64::from_bits(self.word()),
            1 | 2 => self.number(-70, 70),
            3 => self.number(-1022, 1023),
            4 => self.subnormal(),
            5 => self.integer(),
            6 => self.near(1.0),
            _ => self.special(),
        }
    }

    /// Draws the operands of a basic operation.
    fn pair(&mut self) -> (f64, f64) {
        let a = self.any();
        let b = match self.below(8) {
            // Sums and differences that cancel, and quotients near 1.
            0 => self.near(a),
            1 => self.near(-a),
            // Products and quotients that are subnormal or overflow.
            2 => self.number(-8, 8) * pow2(-1022) / a,
            3 => self.number(-2, 2) * pow2(1022) / a,
            // Sums that are half-way.
            4 => a * pow2(-53) * (self.below(5) as f64 - 2.0),
            _ => self.any(),
        };
        (a, b)
    }

    /// Draws a power of 8, or a number whose root is within 2^-75 of the middle of two numbers.
    fn hard_root(&mut self) -> f64 {
        const BITS: [u64; 5] = [
            0x3ff0_0000_0000_0000,
            0x401c_f4aa_35f2_8b71,
            0x4001_d81e_b429_6b8e,
            0x4009_b782_23aa_307c,
            0x401a_202b_fc89_ddff,
        ];
        let x = f64::from_bits(BITS[self.below(5) as usize] | self.sign());
        x * pow2(3 * (self.below(600) as i32 - 300))
    }

    /// Draws the operands of a function; the second is the exponent of a power.
    fn arguments(&mut self) -> (f64, f64) {
        let a = match self.below(8) {
            0 => self.any(),
            // The logarithms of all numbers, and more.
            1 => self.number(-4, 9) * 1.5,
            2 => self.near(1.0),
            // A number of few digits, whose cube root may be exact.
            3 => self.integer().abs().sqrt().floor().powi(1 + self.below(4) as i32),
            4 => self.number(-1, 1).abs(),
            5 => self.number(-1022, 1023).abs(),
            6 => self.hard_root(),
            _ => self.number(-20, 20),
        };
        let b = match self.below(8) {
            0 => self.any(),
            1 => self.below(9) as f64 / 2.0 - 2.0,
            2 => self.integer(),
            // Powers near the largest and the smallest number.
            3 => libm::log2(self.number(1020, 1024).abs()) / libm::log2(a.abs()),
            4 => libm::log2(self.number(-10, 3).abs() * pow2(-1022)) / libm::log2(a.abs()),
            5 => self.near(1024.0) / libm::log2(a.abs()),
            6 => self.near(-1075.0) / libm::log2(a.abs()),
            _ => self.number(-8, 8),
        };
        (a, b)
    }
}

/// Compares the results of `names`, which are the operations from number `first` on, with `real`.
fn compare<const N: usize>(
    name: &str,
    first: u64,
    names: [&str; N],
    count: usize,
    draw: impl Fn(&mut Random) -> (f64, f64) + Sync,
    real: impl Fn(f64, f64) -> [u64; N],
) {
    let random = Random(SEED);
    // Both threads draw the same operands: one writes them, the other checks the results.
    let (mut writer_random, mut check_random) = (random.clone(), random);
    let rows = (0..count).map(|_| {
        let (a, b) = draw(&mut writer_random);
        [first, a.to_bits(), b.to_bits()]
    });
    program::run("binary64.c", name, rows, |results: [u64; BASIC.len()]| {
        let (a, b) = draw(&mut check_random);
        for ((name, got), real) in names.iter().zip(results).zip(real(a, b)) {
            assert!(got == real, "{name}({a:e}, {b:e}) = {got:016x}, not {real:016x}");
        }
    });
}

/// Returns the bits of `x`; those of the NaN that the C code gives, for any.
fn bits(x: f64) -> u64 {
    if x.is_nan() { 0x7ff8 << 48 } else { x.to_bits() }
}

/// Returns the results of the basic operations.
fn basic(a: f64, b: f64) -> [u64; BASIC.len()] {
    [
        bits(a + b),
        bits(a - b),
        bits(a * b),
        bits(a / b),
        bits(a.sqrt()),
        bits(a.floor()),
        bits(a.ceil()),
        bits((a.to_bits() >> (b.to_bits() & 63)) as f64),
        a as u64,
        u64::from(a < b) | u64::from(a <= b) << 1 | u64::from(a == b) << 2,
    ]
}

/// Returns the results of the functions.
fn functions(a: f64, b: f64) -> [u64; FUNCTIONS.len()] {
    // As the laws of the crate cwnd-law define it.
    let power = match b {
        0.5 => a.sqrt(),
        3.0 => a * a * a,
        _ => libm::pow(a, b),
    };
    [libm::exp(a), libm::log(a), libm::log10(a), libm::cbrt(a), power].map(bits)
}

#[test]
fn functions_of_libm() {
    let first = BASIC.len() as u64;
    compare("binary64-functions", first, FUNCTIONS, ARGUMENTS, Random::arguments, functions);
}

#[test]
fn basic_operations() {
    compare("binary64-basic", 0, BASIC, PAIRS, Random::pair, basic);
}

/// The same operations as a BPF program.
mod bpf {
    use super::{BASIC, FUNCTIONS, Random, SEED, basic, functions};
    use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder, ProgramInput};
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::{env, fs};

    /// Operands of a call of the program.
    const COUNT: usize = 4096;
    const CALLS: usize = 16;

    /// Returns the reason why this machine cannot run the test, if any.
    fn missing_requirement() -> Option<&'static str> {
        let status = fs::read_to_string("/proc/self/status");
        if !status.is_ok_and(|it| it.contains("\nUid:\t0\t")) {
            return Some("root is required");
        }
        let path = env::var_os("PATH").unwrap_or_default();
        let is_installed = env::split_paths(&path).any(|folder| folder.join("clang-14").exists());
        (!is_installed).then_some("clang-14 is required")
    }

    /// Compiles `binary64.c` for BPF.
    fn compile() -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join("binary64.o");
        let done = Command::new("clang-14")
            .args(["-target", "bpf", "-O2", "-g", "-mcpu=v3", "-Wall", "-Werror", "-I"])
            .arg(root.join("../../kernel"))
            .arg("-c")
            .arg(root.join("tests/binary64.c"))
            .arg("-o")
            .arg(&object)
            .status();
        assert!(done.unwrap().success());
        object
    }

    /// Compares the program's results of `names` with `real`, as [`compare`](super::compare) does.
    fn compare<const N: usize>(
        object: &mut Object,
        first: usize,
        names: [&str; N],
        draw: impl Fn(&mut Random) -> (f64, f64),
        real: impl Fn(f64, f64) -> [u64; N],
    ) {
        let rows = object.maps().find(|map| map.name().to_string_lossy().ends_with(".bss"));
        let rows = MapHandle::try_from(&rows.unwrap()).unwrap();
        let program = object.progs_mut().next().unwrap();
        let mut random = Random(SEED);
        for (k, name) in names.iter().enumerate() {
            for _ in 0..CALLS {
                let pairs: Vec<_> = (0..COUNT).map(|_| draw(&mut random)).collect();
                let mut words = vec![(first + k) as u64];
                words.extend(pairs.iter().map(|(a, _)| a.to_bits()));
                words.extend(pairs.iter().map(|(_, b)| b.to_bits()));
                words.resize(1 + 3 * COUNT, 0);
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
                rows.update(&[0; 4], &bytes, MapFlags::ANY).unwrap();
                program.test_run(ProgramInput::default()).unwrap();
                let bytes = rows.lookup(&[0; 4], MapFlags::ANY).unwrap().unwrap();
                let results = bytes.chunks_exact(8).skip(1 + 2 * COUNT);
                for (&(a, b), got) in pairs.iter().zip(results) {
                    let (got, real) = (u64::from_ne_bytes(got.try_into().unwrap()), real(a, b)[k]);
                    assert!(got == real, "{name}({a:e}, {b:e}) = {got:016x}, not {real:016x}");
                }
            }
        }
    }

    #[test]
    fn the_kernel_gives_the_same_bits() {
        if let Some(why) = missing_requirement() {
            eprintln!("skipped: {why}");
            return;
        }
        let mut object = ObjectBuilder::default().open_file(compile()).unwrap().load().unwrap();
        compare(&mut object, 0, BASIC, Random::pair, basic);
        compare(&mut object, BASIC.len(), FUNCTIONS, Random::arguments, functions);
    }
}
