//! Whole controllers: each implements [`Controller`](crate::Controller) itself and owns all of its state.
//!
//! Every file begins with the card of its controller: source, equations, symbols, ranges, deviations.

pub mod c4;
pub mod copa;

pub use c4::C4;
pub use copa::Copa;
