//! The language in which a user of cwnd writes the law of a congestion controller.
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod canonical;
mod code;
mod compile;
mod diagnostic;
mod hook;
mod law;
mod mathml;
mod reader;
mod syntax;
mod token;
mod unit;

#[cfg(test)]
mod document;
#[cfg(test)]
mod evaluator;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod traits;

pub use code::REGISTERS;
pub use diagnostic::{Diagnostic, Severity};
pub use hook::{CLOCKS, Hook, Input, Kind, LIMITS, SIGNALS};
pub use law::{Domain, Instance, Law, Parameter, State};
pub use mathml::Equation;
pub use reader::{equations, format};
pub use token::MAX_TEXT;
