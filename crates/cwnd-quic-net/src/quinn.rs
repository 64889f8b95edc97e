//! Both ends of a connection of quinn.

// What quinn does not have in common with noq.

#[path = "stack.rs"]
mod stack;

pub(crate) use stack::{receive, send};

use cwnd_quic_sim::quinn::{Observing, Shared, Source, accepted, transport_config};
use quinn as quic_stack;
use quinn::Connection;

/// Returns the packets that were declared lost.
fn lost(connection: &Connection) -> u64 {
    connection.stats().path.lost_packets
}
