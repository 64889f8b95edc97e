//! TCP: a sender with its congestion controller and a receiver. Sequence numbers count packets.
//!
//! The sender's state ([`sender`]) is shared by two variants of loss recovery: that of the RFCs ([`rfc`]) and that of
//! ns-2 ([`ns2`]).

pub(crate) mod demands;
pub(crate) mod ns2;
mod receiver;
mod rfc;
mod rto;
pub(crate) mod scoreboard;
pub(crate) mod sender;

pub(crate) use receiver::Receiver;
pub(crate) use sender::Sender;
