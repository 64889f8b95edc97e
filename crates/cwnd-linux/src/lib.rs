//! The laws of `cwnd` under Linux.
#![deny(unsafe_code)]

pub mod bpf;
