//! A deterministic packet simulator for congestion control.
//!
//! A [`network::Network`] consists of nodes, one-way links and flows. A [`Simulation`] runs it with
//! a seed and returns [`record::Records`]. The same network and seed give bit-equal records on
//! every machine.

#![forbid(unsafe_code)]
#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod application;
mod cast;
mod check;
mod clock;
pub mod datagrams;
mod discipline;
mod driver;
mod endpoint;
mod engine;
mod fast_path;
mod flows;
pub mod live;
pub mod metrics;
pub mod network;
mod options;
mod paced;
mod packet;
mod pcap;
pub mod qlog;
pub mod record;
pub mod rng;
mod samples;
pub mod scenario;
mod segment_size;
mod simulation;
mod tcp;
pub mod traffic;
mod udt;
pub mod units;

pub use application::DataSource;
pub use engine::tap::Seen;
pub use options::{ConnectQuic, FindController, Options, QuicFlow, SimulationError};
pub use pcap::PcapWriter;
pub use simulation::{ChangeError, ForkError, Simulation};
