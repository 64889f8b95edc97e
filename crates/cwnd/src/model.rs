//! Laws without a network: a constant round-trip time, acknowledgements spread evenly over it, and
//! losses at times that the caller chooses: the steps of analytic models.

mod alone;
mod epoch;
mod synchronous;

pub use alone::{Alone, Path, Pattern};
pub use epoch::{Epoch, Sawtooth, Sums, forgets, sawtooth};
pub use synchronous::{Convergence, Plane, converge};
