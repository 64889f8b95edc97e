//! The options of a run, and why it cannot begin.

use crate::datagrams::Connection;
use crate::network::{NetworkError, Quic};
use cwnd::{MakeController, Time};
use std::sync::Arc;

/// Why a network cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimulationError {
    /// A flow's controller is unknown or its parameters are wrong.
    #[error("flow {flow}: {message}")]
    Controller {
        /// The flow's name.
        flow: String,
        /// What was wrong and what is allowed.
        message: String,
    },
    /// The network has an invalid field.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Event keys have too few bits for the links and timers at this duration.
    #[error("{duration} s is too long for a network with {sources} links and timers")]
    TooLong {
        /// Duration of the network in seconds.
        duration: f64,
        /// Number of links and timers.
        sources: usize,
    },
}

/// Returns the factory of the controllers of a specification, if there is one.
pub type FindController<'a> = dyn Fn(&str) -> Option<Arc<dyn MakeController>> + 'a;

/// A QUIC flow to be simulated.
pub struct QuicFlow<'a> {
    /// The options of the flow.
    pub quic: &'a Quic,
    /// Makes the controller; `None` for one of the stack's own.
    pub controller: Option<Arc<dyn MakeController>>,
    /// The seed of the run.
    pub seed: u64,
    /// The number of the flow in the network.
    pub index: usize,
    /// Start of the flow.
    pub start: Time,
    /// Whether the controller's events and outputs are recorded.
    pub record_events: bool,
}

/// Returns the connection of a flow, or why there is none.
pub type ConnectQuic<'a> = dyn Fn(QuicFlow) -> Result<Connection, String> + 'a;

/// Options of a run. The results depend on none of them, except that `custom` provides controllers
/// and `quic` a protocol.
pub struct Options<'a> {
    /// Finds the controllers whose specifications are not for the registry
    /// ([`crate::network::custom_name`]).
    pub custom: Option<&'a FindController<'a>>,
    /// Makes the connections of QUIC flows, which are errors without it.
    pub quic: Option<&'a ConnectQuic<'a>>,
    /// Records the events and outputs of every controller.
    pub record_events: bool,
    /// Records the packets that every source sends and receives.
    pub record_packets: bool,
    /// Processes packets ahead of the clock where nothing can precede them. Without it every
    /// arrival and every departure of a packet is an event: a reference for tests, at half the
    /// speed.
    pub lookahead: bool,
}

impl Default for Options<'_> {
    /// With lookahead, without records of events.
    fn default() -> Self {
        Options {
            custom: None,
            quic: None,
            record_events: false,
            record_packets: false,
            lookahead: true,
        }
    }
}
