//! Files and folders over one reliable stream of bytes: version 2 of the protocol of `cwnd send` and
//! `cwnd recv`, which docs/transfer.md describes.
#![forbid(unsafe_code)]

pub mod frame;
pub mod hash;
pub mod names;
