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
