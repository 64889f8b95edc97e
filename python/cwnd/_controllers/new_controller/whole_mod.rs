//! One file for each whole controller: those that own all of their state.
//!
//! A new one is a file here and an entry in the registry: `cwnd new-controller NAME --kind whole`
//! writes both.

pub mod $name;

pub use $name::$Type;
