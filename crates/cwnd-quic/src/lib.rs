//! cwnd's congestion controllers in QUIC stacks.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(any(feature = "noq", feature = "quinn", feature = "s2n")),
    expect(dead_code, reason = "without a stack nothing drives a controller")
)]

#[cfg(any(feature = "noq", feature = "quinn"))]
mod batch;
mod connection;
mod controllers;
mod error;
pub mod events;
#[cfg(any(feature = "noq", feature = "quinn"))]
mod flight;
#[cfg(feature = "noq")]
pub mod noq;
#[cfg(feature = "quinn")]
pub mod quinn;
mod recording;
#[cfg(feature = "s2n")]
pub mod s2n;

pub use controllers::{Controllers, law};
pub use error::Error;
pub use recording::{Recording, Recordings};
