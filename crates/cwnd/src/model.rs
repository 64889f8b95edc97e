//! Laws without a network: a constant round-trip time, acknowledgements spread evenly over it, and
//! losses told from outside. What analytic models iterate.

mod alone;
mod epoch;
mod synchronous;

pub use alone::{Alone, Path, Pattern};
pub use epoch::{Epoch, Sawtooth, Sums, forgets, sawtooth};
pub use synchronous::{Convergence, Plane, converge};
