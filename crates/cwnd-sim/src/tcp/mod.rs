//! TCP: a sender with its congestion controller and a receiver, in whole packets.
//!
//! The sender is one state ([`sender`]) with two sets of habits for repairing losses: the RFCs'
//! ([`rfc`]) and ns-2's ([`ns2`]).

pub(crate) mod demands;
pub(crate) mod ns2;
mod receiver;
mod rfc;
mod rto;
pub(crate) mod scoreboard;
pub(crate) mod sender;

pub(crate) use receiver::Receiver;
pub(crate) use sender::Sender;
