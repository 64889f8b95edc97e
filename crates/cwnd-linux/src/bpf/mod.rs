//! The laws of `kernel/` in the Linux kernel: `struct_ops` controllers of TCP.

mod error;
mod form;

pub use error::Error;
pub use form::{Form, NAMES, fixed};
