//! cwnd's congestion controllers in QUIC stacks.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod connection;
mod controllers;
mod error;
pub mod events;
mod flight;
#[cfg(feature = "noq")]
pub mod noq;
#[cfg(feature = "quinn")]
pub mod quinn;
mod recording;

pub use controllers::{Controllers, law};
pub use error::Error;
pub use recording::{Recording, Recordings};
