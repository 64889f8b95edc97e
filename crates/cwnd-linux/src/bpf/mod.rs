//! The laws of `kernel/` in the Linux kernel: `struct_ops` controllers of TCP.

#[cfg(target_os = "linux")]
mod check;
mod error;
#[cfg(target_os = "linux")]
pub mod event;
#[cfg(target_os = "linux")]
mod flow;
mod form;
#[cfg(target_os = "linux")]
mod instance;
#[cfg(target_os = "linux")]
mod loader;
#[cfg(target_os = "linux")]
mod replay;
#[cfg(target_os = "linux")]
mod trace;

#[cfg(target_os = "linux")]
pub use check::{Finding, check};
pub use error::Error;
#[cfg(target_os = "linux")]
pub use flow::{CutSeen, Flow, Flows};
pub use form::{Form, NAMES, fixed};
#[cfg(target_os = "linux")]
pub use instance::{Instance, default_controller, default_name, find, list, load, mounted, unload};
#[cfg(target_os = "linux")]
pub use replay::{Agreement, BOUND, Replay};
#[cfg(target_os = "linux")]
pub use trace::{Recording, Trace};
