//! Real connections in memory: a plaintext handshake, two endpoints and a link between them.
//!
//! Handshake messages have about the sizes of TLS's, and packets its tags.

#[cfg(test)]
pub(crate) mod events;
#[cfg(test)]
pub(crate) mod fixed;
pub(crate) mod handshake;
pub(crate) mod link;
#[macro_use]
mod stack;
pub(crate) mod noq;
pub(crate) mod quinn;
