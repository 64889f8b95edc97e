//! `kernel/binary64.h`, compiled for the host, gives the bits of Rust's `f64` and of crate `libm`.

mod program;

use program::pow2;

/// Pairs of operands for the basic operations.
const PAIRS: usize = 2_000_000;
const BASIC: [&str; 10] =
    ["add", "sub", "mul", "div", "sqrt", "floor", "ceil", "from_u64", "to_u64", "order"];

/// A random generator of operands: xorshift64*.
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

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
    let random = Random(0x9e37_79b9_7f4a_7c15);
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

#[test]
fn basic_operations() {
    compare("binary64-basic", 0, BASIC, PAIRS, Random::pair, basic);
}

/// The same operations as a BPF program.
mod bpf {
    use super::{BASIC, Random, basic};
    use libbpf_rs::{MapCore, MapFlags, ObjectBuilder, ProgramInput};
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::time::Instant;
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

    #[test]
    fn the_kernel_gives_the_same_bits() {
        if let Some(why) = missing_requirement() {
            eprintln!("skipped: {why}");
            return;
        }
        let mut object = ObjectBuilder::default().open_file(compile()).unwrap().load().unwrap();
        let map = object.maps_mut().find(|map| map.name().to_string_lossy().ends_with(".bss"));
        let map = libbpf_rs::MapHandle::try_from(&map.unwrap()).unwrap();
        let program = object.progs_mut().next().unwrap();
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for (op, name) in BASIC.iter().enumerate() {
            for _ in 0..CALLS {
                let pairs: Vec<_> = (0..COUNT).map(|_| random.pair()).collect();
                let mut words = vec![op as u64];
                words.extend(pairs.iter().map(|(a, _)| a.to_bits()));
                words.extend(pairs.iter().map(|(_, b)| b.to_bits()));
                words.resize(1 + 3 * COUNT, 0);
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
                map.update(&[0; 4], &bytes, MapFlags::ANY).unwrap();
                let start = Instant::now();
                program.test_run(ProgramInput::default()).unwrap();
                let time = start.elapsed();
                println!("{name}: {} ns", time.as_nanos() as f64 / COUNT as f64);
                let bytes = map.lookup(&[0; 4], MapFlags::ANY).unwrap().unwrap();
                let results = bytes.chunks_exact(8).skip(1 + 2 * COUNT);
                for (&(a, b), got) in pairs.iter().zip(results) {
                    let (got, real) = (u64::from_ne_bytes(got.try_into().unwrap()), basic(a, b)[op]);
                    assert!(got == real, "{name}({a:e}, {b:e}) = {got:016x}, not {real:016x}");
                }
            }
        }
    }
}
