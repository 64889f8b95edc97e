//! In place of a stack's TLS. Compiled for each stack.

use super::proto;
use crate::message::Tap;
use proto::crypto::{ClientConfig, ServerConfig};
use std::sync::Arc;

const ABSENT: &str = "quic.tls: this build has no TLS (the feature `tls` of cwnd-quic-sim)";

/// Returns the TLS of a client.
pub(super) fn client(_: Tap) -> Result<Arc<dyn ClientConfig>, &'static str> {
    Err(ABSENT)
}

/// Returns the TLS of a server.
pub(super) fn server(_: Tap) -> Result<Arc<dyn ServerConfig>, &'static str> {
    Err(ABSENT)
}
