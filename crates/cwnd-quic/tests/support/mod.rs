//! Real connections in memory: a plaintext handshake, two endpoints and a link between them.
//!
//! Handshake messages have about the sizes of TLS's, and packets its tags.

pub(crate) mod handshake;
pub(crate) mod link;
#[macro_use]
mod stack;
#[cfg(feature = "noq")]
pub(crate) mod noq;
#[cfg(feature = "quinn")]
pub(crate) mod quinn;
