//! Tests of cwnd-quic outside the project's workspace: s2n-quic, which does not build without a TLS
//! library and whose simulation has many dependencies, the faults of the stacks that
//! docs/quic-findings.md reports, and qlog files read by the crate `qlog`.
#![cfg(test)]

mod findings;
mod qlogs;
mod s2n;
#[path = "../../support/mod.rs"]
mod support;
