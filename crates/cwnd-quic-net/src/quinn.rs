//! Both ends of a connection of quinn.

// What quinn does not have in common with noq.

#[path = "stack.rs"]
mod stack;
#[path = "stack_stream.rs"]
mod stack_stream;

pub(crate) use stack::{receive, send};
pub(crate) use stack_stream::{connect, listen};

use cwnd_quic_sim::quinn::{Observing, Shared, Source, accepted, transport_config};
use quinn as quic_stack;
use quinn::{Connection, PathStats};

/// Returns the measurements of the path.
fn path(connection: &Connection) -> Option<PathStats> {
    Some(connection.stats().path)
}
