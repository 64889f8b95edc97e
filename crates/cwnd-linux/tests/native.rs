//! The fixed-point laws of `kernel/`, compiled for the host, compared with the laws of crate
//! `cwnd`: from 900,000 random states the error of a step is within the bound in the header of
//! the law.

mod program;
mod random;

use cwnd::{Context, Dur, Law, MakeController, Rtt, Settings, Signal, Spec, Time, WindowLaw};
use cwnd_linux::bpf::Implementation;
use program::pow2;
use random::Random;
use std::collections::BTreeMap;
use std::fmt::Debug;

const ROWS: usize = 300_000;
/// Numbers in a row.
const ROW: usize = 32;
/// Index of the first argument in a row.
const ARGUMENTS: usize = 24;

type Row = [u64; ROW];
type Results = [u64; 4];

impl Random {
    fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / 2f64.powi(53)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.word() % end
    }

    /// Draws from `low` to `high`, uniformly in the logarithm.
    fn scale(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit())
    }

    /// Draws a window (Q40) that f64 represents exactly.
    fn window(&mut self, low: f64) -> u64 {
        (self.scale(low, 8e6) * 2f64.powi(40)) as u64
    }

    fn acked(&mut self) -> u64 {
        1 + self.below(64)
    }
}

/// Passes the rows of `draw` to the C program, and each answer to `check`.
fn run<K: Debug>(
    name: &str,
    draw: impl Fn(&mut Random) -> (Row, K) + Sync,
    mut check: impl FnMut(&K, &Results, &mut Comparison),
) {
    let random = Random(0x9e37_79b9_7f4a_7c15);
    let mut max_errors = MaxErrors::default();
    // Both threads draw the same rows: one writes them, the other checks the output.
    let (mut writer_random, mut check_random) = (random.clone(), random);
    let rows = (0..ROWS).map(|_| draw(&mut writer_random).0);
    program::run("native.c", name, rows, |results| {
        let (_, state) = draw(&mut check_random);
        check(&state, &results, &mut Comparison { state: &state, max_errors: &mut max_errors });
    });
    println!("the largest errors relative to their bounds: {max_errors:.3?}");
}

/// Returns the row of number `law`, with the parameters of `spec` and the arguments, and both for
/// the check.
fn row(law: u64, spec: String, arguments: Vec<u64>) -> (Row, (Spec, Vec<u64>)) {
    let spec = Spec::parse(&spec).unwrap_or_else(|error| panic!("{spec}: {error}"));
    let implementation = Implementation::of(&spec).unwrap();
    let mut row = [0; ROW];
    row[0] = law;
    row[1..=implementation.params.len()].copy_from_slice(&implementation.params);
    row[ARGUMENTS..ARGUMENTS + arguments.len()].copy_from_slice(&arguments);
    (row, (spec, arguments))
}

fn window_law(spec: &Spec) -> impl WindowLaw {
    match spec.law(&Settings::default()) {
        Some(Law::Window(law)) => law,
        _ => panic!("{spec} is not a window law"),
    }
}

/// The largest errors relative to their bounds, by quantity.
type MaxErrors = BTreeMap<&'static str, f64>;

/// Compares the results for one state.
struct Comparison<'a> {
    state: &'a dyn Debug,
    max_errors: &'a mut MaxErrors,
}

impl Comparison<'_> {
    /// Compares `got` with `real`, which is itself rounded to 53 bits.
    fn compare(&mut self, quantity: &'static str, got: f64, real: f64, bound: f64) {
        let ratio = (got - real).abs() / (bound + pow2(-50) * real.abs());
        let state = self.state;
        assert!(ratio <= 1.0, "{quantity}: {got} for {real}, bound {bound:e}, of {state:?}");
        let max_error = self.max_errors.entry(quantity).or_default();
        *max_error = max_error.max(ratio);
    }

    /// Compares a window after a cut, the product of a window `w` (Q40) and a fraction.
    fn compare_cut(&mut self, got: u64, real: f64, w: f64) {
        self.compare("cut", packets(got), real, error_of_product(w));
    }
}

/// Returns a variable of a law.
fn gauge(law: &impl WindowLaw, name: &str) -> f64 {
    let mut found = f64::NAN;
    law.gauges(&mut |gauge, value| {
        if gauge == name {
            found = value;
        }
    });
    found
}

fn packets(window: u64) -> f64 {
    window as f64 / 2f64.powi(40)
}

/// Returns the error of the product of a window of `w` packets and a fraction.
fn error_of_product(w: f64) -> f64 {
    pow2(-32) * w + pow2(-39)
}

fn context() -> Context {
    Context::new(Time::ZERO, None)
}

#[test]
fn arithmetic() {
    let draw = |random: &mut Random| {
        let (a, b) = (random.word() >> random.below(64), random.word() >> random.below(64));
        let mut row = [0; ROW];
        let shift = 1 + random.below(63);
        row[ARGUMENTS..ARGUMENTS + 3].copy_from_slice(&[a, b, shift]);
        (row, (a, b, shift))
    };
    run("arithmetic", draw, |&(a, b, shift), out, errors| {
        let product = (u128::from(a) * u128::from(b)) >> shift;
        assert_eq!(out[0], u64::try_from(product).unwrap_or(u64::MAX), "{a} * {b} >> {shift}");
        assert_eq!(out[2], if a == 0 { 0 } else { u64::from(a.leading_zeros()) });
        let quotient = match (a, b) {
            (0, _) => 0,
            (_, 0) => u128::MAX,
            _ => (u128::from(a) << shift) / u128::from(b),
        };
        if out[1] == u64::MAX {
            assert!(quotient as f64 >= pow2(64) * (1.0 - pow2(-30)), "{a} << {shift} / {b}");
        } else {
            let real = quotient as f64;
            errors.compare("ratio", out[1] as f64, real, 1.0 + pow2(-30) * real);
        }
    });
}

#[test]
fn cube_root() {
    let draw = |random: &mut Random| {
        let x = random.word() >> (1 + random.below(63));
        let mut row = [0; ROW];
        (row[0], row[ARGUMENTS]) = (8, x);
        (row, x)
    };
    run("cube_root", draw, |&x, out, errors| {
        let (got, real) = (out[0] as f64 / pow2(32), (x as f64 / pow2(32)).cbrt());
        errors.compare("cube root", got, real, pow2(-29) * real + pow2(-32));
    });
}

#[test]
fn cubic() {
    let draw = |random: &mut Random| {
        let w_max = random.window(2.0);
        let again = if random.below(3) == 0 { random.window(2.0) } else { 0 };
        let first = if random.below(8) == 0 { 0 } else { w_max };
        // After a cut w0 is near 0.7 w_max; it is below the smallest window, or the kernel's.
        let w0 = if random.below(4) == 0 {
            random.window(2.0)
        } else {
            (packets(w_max) * random.scale(0.5, 1.1) * pow2(40)) as u64 >> 11 << 11
        };
        let w = (packets(w0) * random.scale(0.9, 2.0) * pow2(40)) as u64 >> 11 << 11;
        let (t, rtt) = (random.scale(1.0, 2e9) as u64, random.scale(10.0, 1e6) as u64);
        let (c, kept) = (random.scale(0.01, 100.0), random.scale(0.1, 0.99));
        let fast = ["off", "on"][random.below(2) as usize];
        row(
            7,
            format!("cubic(c={c:?}, kept={kept:?}, fast={fast})"),
            vec![t, rtt, first, again, w0, w, random.acked()],
        )
    };
    run("cubic", draw, |(spec, a), out, errors| {
        let mut law = window_law(spec);
        let (w0, w, n) = (packets(a[4]), packets(a[5]), a[6] as f64);
        let (t, rtt) = (a[0] as f64 / 1e6, a[1] as f64 / 1e6);
        for w in [a[2], a[3]].into_iter().filter(|&w| w > 0) {
            let cut = law.cut(packets(w), Signal::Loss, &context());
            if w == a[3] || a[3] == 0 {
                errors.compare_cut(out[0], cut, packets(w));
            }
        }
        law.enter(w0, &context());
        let mut cx = context();
        cx.now = Time::from_nanos(a[0] * 1000);
        cx.rtt = Some(Rtt::first(Dur::from_nanos(a[1] * 1000)));
        let grown = law.grow(w, n, &cx);
        let (c, w_max, w_est) =
            (spec.get("c").unwrap(), gauge(&law, "w_max"), gauge(&law, "w_est"));
        let k = ((w_max - w0) / c).cbrt();
        if k != 0.0 && k.abs() < pow2(-10) {
            return;
        }
        let at = |t: f64| (w_max + c * (t - k).powi(3)).clamp(0.0, packets(u64::MAX));
        let error = |t: f64| {
            let x = (t - k).abs();
            let of_k =
                pow2(-27) * (k.abs() + 1.0) + if k == 0.0 { 0.0 } else { pow2(-32) / (k * k) };
            c * x * x * of_k + pow2(-31) * c * (x + 1.0) + pow2(-40) * x.powi(3) + pow2(-38)
        };
        // Fast convergence computes w_max with a product.
        let of_w_max = error_of_product(w_max);
        if at(t) < packets(u64::MAX) - 1.0 {
            errors.compare("W(t)", packets(out[1]), at(t), error(t) + of_w_max);
        }
        let gain = n / w;
        // w_prior: the window at the last cut, or w0.
        let prior = packets(*[a[3], a[2], a[4]].iter().find(|&&w| w > 0).unwrap_or(&0));
        if (w0 - prior).abs() < pow2(-38) || w_est >= packets(u64::MAX) - 1.0 {
            return;
        }
        errors.compare("w_est", packets(out[2]), w_est, pow2(-30) * gain + pow2(-39) * n);
        if (at(t) - w_est).abs() <= error(t) + of_w_max + pow2(-30) * w_est || 1.5 * w > 1.6e7 {
            return;
        }
        let bound = pow2(-30) * (grown - w).abs()
            + n.min(w) / w * (error(t + rtt) + of_w_max)
            + pow2(-30) * gain
            + pow2(-39) * n;
        errors.compare("grow", packets(out[3]), grown, bound);
    });
}
