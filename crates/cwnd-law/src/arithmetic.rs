//! The arithmetic of laws: what the code of a law, and Rust made from it, compute.

pub use libm::{cbrt, ceil, exp, floor, log, log10, sqrt};

/// Nanoseconds in a second: instants are in nanoseconds.
pub(crate) const NANOS: f64 = 1e9;

/// `a` if it is less than `b`, else `b`.
#[inline(always)]
pub fn min(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// `a` if it is greater than `b`, else `b`.
#[inline(always)]
pub fn max(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// A power of `a`: products and roots where they are exact, `libm::pow` else.
#[inline]
pub fn power(a: f64, b: f64) -> f64 {
    if b == 0.0 {
        1.0
    } else if b == 0.5 {
        sqrt(a)
    } else if b == 1.0 {
        a
    } else if b == 2.0 {
        a * a
    } else if b == 3.0 {
        a * a * a
    } else {
        libm::pow(a, b)
    }
}

/// The seconds from the instant `b` to the instant `a`; 0 if `b` is later.
#[inline(always)]
pub fn since(a: f64, b: f64) -> f64 {
    if a > b { (a - b) / NANOS } else { 0.0 }
}

/// The instant `b` seconds after the instant `a`.
#[inline(always)]
pub fn after(a: f64, b: f64) -> f64 {
    a + b * NANOS
}

/// The state of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) after a draw.
#[inline(always)]
pub const fn advance(state: u64) -> u64 {
    state.wrapping_add(0x9e37_79b9_7f4a_7c15)
}

/// The number that SplitMix64 has drawn.
#[inline]
pub const fn drawn(state: u64) -> u64 {
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The generator of random numbers after a draw: the bits of `a` are its state.
#[inline(always)]
pub fn next(a: f64) -> f64 {
    f64::from_bits(advance(a.to_bits()))
}

/// The number in [0, 1) that the generator has drawn, of its upper 53 bits: the precision of a
/// double.
#[inline(always)]
pub fn unit(a: f64) -> f64 {
    (drawn(a.to_bits()) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Whether `a` is less than `b`: false for NaN.
#[inline(always)]
pub fn less(a: f64, b: f64) -> bool {
    a < b
}

/// Whether `a` is at most `b`: false for NaN.
#[inline(always)]
pub fn at_most(a: f64, b: f64) -> bool {
    a <= b
}
