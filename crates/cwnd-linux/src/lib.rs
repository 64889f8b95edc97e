//! Congestion control under Linux: the laws of `cwnd` in the kernel's TCP, emulated links for real
//! traffic, and scenarios in real time.

#![cfg(target_os = "linux")]
#![deny(unsafe_code)]

pub mod bpf;
pub mod emulate;
pub mod run;
