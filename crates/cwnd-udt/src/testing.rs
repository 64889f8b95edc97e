//! Times and handshakes for the unit tests.

use crate::handshake::{Handshake, Request, SocketType, VERSION};
use crate::seq::Seq;
use cwnd::{Dur, Time};

pub(crate) fn at(millis: u64) -> Time {
    Time::ZERO + Dur::from_millis(millis)
}

/// The first request of a client's stream connection.
pub(crate) fn request() -> Handshake {
    Handshake {
        version: VERSION,
        socket_type: SocketType::Stream,
        initial: Seq::new(9),
        packet_size: 1500,
        flow_window: 8192,
        request: Request::Connect,
        socket: 5,
        cookie: 0,
        peer: [0; 16],
    }
}
