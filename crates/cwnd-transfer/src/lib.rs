//! Files and folders over one reliable stream of bytes: version 3 of the protocol of `cwnd send`
//! and `cwnd recv`, which docs/transfer.md describes.
#![forbid(unsafe_code)]

pub mod channel;
pub mod event;
pub mod folder;
pub mod frame;
pub mod hash;
pub mod names;
mod part;
mod ranges;
mod receiver;
pub mod report;
pub mod select;
pub mod send;
mod sender;
pub mod serve;
pub mod shared;
pub mod source;
pub mod stream;
