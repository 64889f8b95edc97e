//! Applications of connections. Compiled for each stack.

use super::proto::{Connection, Event, Side};
use std::time::Instant;

/// An application at one end of a connection: a state machine over the stack's own connection.
pub trait Application: Send {
    /// Handles an event of the connection, or with `None` the [`timeout`](Self::timeout).
    ///
    /// The first event is one of the handshake or [`Event::Connected`]. `now` is the simulated time.
    /// The connection then sends what it may. The transfer is complete when the client closes the
    /// connection, or the server with the code 0.
    fn handle(&mut self, now: Instant, event: Option<Event>, connection: &mut Connection);

    /// Time of the next call without an event, after each call; `None` for no such call, as after
    /// the end of the connection.
    fn timeout(&self) -> Option<Instant> {
        None
    }
}

/// Makes the application of an end; `None` for an end without one.
pub(super) type Applications<'a> = dyn Fn(Side) -> Option<Box<dyn Application>> + Sync + 'a;
