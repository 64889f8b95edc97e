//! Both ends of a connection of noq.

// What noq does not have in common with quinn.

#[path = "stack.rs"]
mod stack;

pub(crate) use stack::{receive, send};

use cwnd_quic_sim::noq::{Observing, Shared, Source, accepted, transport_config};
use noq as quic_stack;
use noq::{Connection, PathId};

/// Returns the packets that were declared lost.
fn lost(connection: &Connection) -> u64 {
    connection.path_stats(PathId::ZERO).map_or(0, |path| path.lost_packets)
}
