//! The language in which a user of cwnd writes the law of a congestion controller.
//!
//! Without the feature `reader` the crate has what code made from a law needs, the names of its
//! hooks and inputs and its arithmetic, and proposes names for unknown ones.
#![forbid(unsafe_code)]
#![no_std]
#![cfg_attr(not(feature = "reader"), expect(dead_code, reason = "the reader uses it"))]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod arithmetic;
mod hook;
mod nearest;
mod unit;

#[cfg(feature = "reader")]
mod canonical;
#[cfg(feature = "reader")]
mod code;
#[cfg(feature = "reader")]
mod compile;
#[cfg(feature = "reader")]
mod diagnostic;
#[cfg(feature = "reader")]
mod law;
#[cfg(feature = "reader")]
mod mathml;
#[cfg(feature = "reader")]
mod reader;
#[cfg(feature = "rust")]
mod rust;
#[cfg(feature = "reader")]
mod syntax;
#[cfg(feature = "reader")]
mod token;

#[cfg(test)]
mod document;
#[cfg(test)]
mod evaluator;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod traits;
#[cfg(test)]
mod writer;

pub use hook::{CLOCKS, Hook, Input, Kind, LIMITS, SIGNALS};
pub use nearest::{distance, nearest};

#[cfg(feature = "reader")]
pub use code::REGISTERS;
#[cfg(feature = "reader")]
pub use diagnostic::{Diagnostic, Severity};
#[cfg(feature = "reader")]
pub use law::{Domain, Instance, Law, Parameter, Program, Routine, State};
#[cfg(feature = "reader")]
pub use mathml::Equation;
#[cfg(feature = "reader")]
pub use reader::{equations, format};
#[cfg(feature = "rust")]
pub use rust::type_name;
#[cfg(feature = "reader")]
pub use token::MAX_TEXT;
