//! A deterministic packet simulator for congestion control.
//!
//! A [`network::Network`] is nodes, one-way links and traffic.

#![forbid(unsafe_code)]

pub mod network;
pub mod rng;
pub mod scenario;
