//! The laws of `cwnd` in the Linux kernel, and links for real traffic.

#![cfg(target_os = "linux")]
#![deny(unsafe_code)]

pub mod bpf;
pub mod emulate;
pub mod run;
