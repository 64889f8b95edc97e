//! The laws of `kernel/` in the Linux kernel: TCP congestion control in BPF (`struct_ops`).

mod check;
mod code;
mod connection;
mod control;
mod error;
pub mod event;
mod given;
mod implementation;
mod loader;
mod pinned;
mod replay;
mod trace;
mod unpinned;
mod whole;

pub use check::{Finding, check};
pub use code::encode_law;
pub use connection::{Connection, Connections};
pub use error::Error;
pub use given::Given;
pub use implementation::{Implementation, implemented, is_implemented};
pub use pinned::{Instance, default_controller, default_name, find, list, load, unload};
pub use replay::{Agreement, BOUND, Replay};
pub(crate) use trace::monotonic;
pub use trace::{Recording, Trace};
pub use unpinned::UnpinnedController;
pub use whole::Whole;
