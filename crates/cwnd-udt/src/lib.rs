//! UDT version 4 without I/O.

#![forbid(unsafe_code)]

pub mod handshake;
mod listener;
pub mod packet;
mod routes;
pub mod seq;

pub use listener::{Answer, Invitation, Listener};
pub use routes::{Route, Routes};
