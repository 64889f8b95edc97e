//! Both ends of a connection of noq.

// What noq does not have in common with quinn.

#[path = "stack.rs"]
mod stack;
#[path = "stack_stream.rs"]
mod stack_stream;

pub(crate) use stack::{receive, send};
pub(crate) use stack_stream::{connect, listen};

use cwnd_quic_sim::noq::{Observing, Shared, Source, accepted, transport_config};
use noq as quic_stack;
use noq::{Connection, PathId, PathStats};

/// Returns the measurements of the path, unless it is gone.
fn path(connection: &Connection) -> Option<PathStats> {
    connection.path_stats(PathId::ZERO)
}
