//! Parts that whole controllers and drivers share: windowed extrema, round counting, pacing.
//!
//! The delivery-rate estimator is in [`crate::delivery`], the round-trip time in [`crate::Rtt`].

mod extremum;
mod pacer;
mod rounds;

pub use extremum::{WindowedMax, WindowedMin};
pub use pacer::Pacer;
pub use rounds::RoundCounter;
