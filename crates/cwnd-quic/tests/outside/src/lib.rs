//! Tests of cwnd-quic outside the project's workspace: s2n-quic, which does not build without a TLS
//! library and whose simulation has many dependencies, the faults of the stacks that
//! docs/quic-findings.md reports, and qlog files read by the crate `qlog`.
#![cfg(test)]

#[path = "../../../../cwnd-quic-sim/tests/events.rs"]
mod events;
mod findings;
#[path = "../../../../cwnd-quic-sim/tests/fixed.rs"]
mod fixed;
mod qlogs;
mod s2n;
