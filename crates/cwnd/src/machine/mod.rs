//! The two machines: slow start, recovery, timeouts, clamps and clocks around a law, written once.

mod hystart;
mod hystart_linux;
mod paced;
mod slow_start;
mod windowed;

pub use paced::Paced;
pub use slow_start::{Growth, SlowStart, SlowStartLaw};
pub use windowed::Windowed;
