//! The laws of `kernel/` in the Linux kernel: `struct_ops` controllers of TCP.

mod check;
mod error;
pub mod event;
mod flow;
mod form;
mod held;
mod instance;
mod loader;
mod replay;
mod trace;

pub use check::{Finding, check};
pub use error::Error;
pub use flow::{CutSeen, Flow, Flows};
pub use form::{Form, NAMES, fixed};
pub use held::Held;
pub use instance::{Instance, default_controller, default_name, find, list, load, mounted, unload};
pub use replay::{Agreement, BOUND, Replay};
pub(crate) use trace::monotonic;
pub use trace::{Recording, Trace};
