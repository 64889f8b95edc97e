//! Congestion control in the Linux kernel, and links for its traffic.

#![cfg(target_os = "linux")]
#![deny(unsafe_code)]

pub mod emulate;
