//! Whole controllers: each implements [`Controller`](crate::Controller) itself and owns all of its state.
//!
//! Every file begins with the card of its controller: source, equations, symbols, ranges, deviations.

pub mod ledbat;

pub use ledbat::Ledbat;
