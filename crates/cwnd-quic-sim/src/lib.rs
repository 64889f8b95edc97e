//! The QUIC stacks noq and quinn in the simulator.
//!
//! Both ends of a connection are the stack's own state machines. Their clock is the simulated time,
//! their identifiers, packet numbers and tokens are drawn from the run's seed, and their packets
//! are not encrypted, but have the sizes of encrypted ones. With the feature `tls` and the key
//! `tls = true` of a flow, they are encrypted: the records are equal.
//!
//! ```
//! use cwnd_sim::{Options, Simulation, scenario::Scenario};
//!
//! let text = r#"
//!     duration = "5s"
//!     [dumbbell]
//!     rate = "20mbit"
//!     delay = "20ms"
//!     queue = "1bdp"
//!     [[flow]]
//!     protocol = "quic"
//!     stack = "noq"
//!     controller = "own:cubic"
//!     bytes = "1mb"
//!     [[flow]]
//!     controller = "cubic"
//! "#;
//! let network = Scenario::from_toml(text, "quic.toml")?.network(1)?;
//! let options = Options { quic: Some(&cwnd_quic_sim::connect), ..Options::default() };
//! let mut simulation = Simulation::new(&network, 1, &options)?;
//! simulation.run();
//! assert!(simulation.finish().flows[0].completed < 2.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`noq::Scenario`] and [`quinn::Scenario`] are for the tests of an application.
//!
//! The results are reproducible except under the stacks' own BBR, which draws from the operating
//! system.

#![forbid(unsafe_code)]
#![expect(clippy::duplicate_mod, reason = "the types of both stacks have the same names")]

mod acks;
mod frames;
mod handshake;
mod message;
mod meter;
pub mod noq;
pub mod quinn;
mod ranges;
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
mod runs;
mod seed;
mod sender;
#[cfg(test)]
mod tests;
mod time;
#[cfg(feature = "tls")]
mod tls;

pub use runs::{ClientStream, Error, Outcome, Run, RunOf, Runs};

use cwnd_sim::QuicFlow;
use cwnd_sim::datagrams::Connection;
use cwnd_sim::network::QuicStack;

/// Returns the connection of a flow, for [`Options::quic`](cwnd_sim::Options::quic).
///
/// # Errors
/// A value that the stack refuses.
pub fn connect(flow: QuicFlow) -> Result<Connection, String> {
    Ok(match flow.quic.stack {
        QuicStack::Noq => Connection::new(noq::connect(flow)?),
        QuicStack::Quinn => Connection::new(quinn::connect(flow)?),
    })
}
