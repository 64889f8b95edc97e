//! Tests of cwnd-quic outside the project's workspace: s2n-quic, which does not build without a TLS
//! library and whose simulation has many dependencies, and the faults of the stacks that
//! docs/quic-findings.md reports.
#![cfg(test)]

mod findings;
mod s2n;
#[path = "../../support/mod.rs"]
mod support;
