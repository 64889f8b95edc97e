//! Parts that whole controllers and drivers share: windowed extrema, round counting, packet sizes,
//! pacing.
//!
//! The delivery-rate estimator is in [`crate::delivery`], the round-trip time in [`crate::Rtt`].

mod extremum;
mod pacer;
mod rounds;
mod sizes;

pub use extremum::{WindowedMax, WindowedMin};
pub use pacer::Pacer;
pub use rounds::RoundCounter;
pub use sizes::PacketSizes;
pub(crate) use sizes::{MAX_WINDOW, rescale_max_window};

/// The window after persistent congestion in packets (RFC 9002 sections 7.2 and 7.6.2).
pub(crate) const PERSISTENT_WINDOW: f64 = 2.0;
