//! One file for each whole controller: those that own all of their state.
//!
//! A new one is a file here and an entry in the registry: `cwnd new-controller NAME --kind whole`
//! writes both.

pub mod bbr;
pub mod bbr3;
pub mod c4;
pub mod copa;
pub mod ledbat;
mod limited;

pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use c4::C4;
pub use copa::Copa;
pub use ledbat::Ledbat;
