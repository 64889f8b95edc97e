//! The types of the laws that are texts, which the build makes.

#![expect(clippy::assign_op_pattern, reason = "an operation of the code is a statement")]

use super::text::{self, Hooks};
use alloc::boxed::Box;
use cwnd_law::{Hook, Input, arithmetic};

include!(concat!(env!("OUT_DIR"), "/types.rs"));
