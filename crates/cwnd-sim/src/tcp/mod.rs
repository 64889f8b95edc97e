//! TCP: a sender with its congestion controller and a receiver. Sequence numbers count packets.
//!
//! The sender ([`sender`]) is generic over its loss recovery ([`recovery`]): that of the RFCs ([`rfc`]) or that of ns-2
//! ([`ns2`]).

pub(crate) mod demands;
pub(crate) mod ns2;
mod receiver;
pub(crate) mod recovery;
mod rfc;
mod rto;
pub(crate) mod scoreboard;
pub(crate) mod sender;

pub(crate) use ns2::Ns2;
pub(crate) use receiver::Receiver;
pub(crate) use rfc::Rfc;
pub(crate) use sender::Sender;
