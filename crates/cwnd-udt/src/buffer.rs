//! What is on its way: rings of fixed slots, one for each packet, indexed by packet number.
//!
//! Inside a connection packets are numbered from 0 without wrapping; only the wire wraps.

mod message;
mod receive;
mod send;

pub(crate) use message::Messages;
pub(crate) use receive::{Arrival, ReceiveBuffer};
pub(crate) use send::SendBuffer;

/// Slots for a window of `packets`: a power of two, so that a number becomes a place by masking.
fn slots_for(packets: u32) -> u64 {
    u64::from(packets).next_power_of_two().max(64)
}
