//! What is on its way: rings of fixed slots, one for each packet, indexed by packet number.
//!
//! Inside a connection packets are numbered from 0 without wrapping; only the wire wraps.

mod message;
mod receive;
mod send;

pub(crate) use message::Messages;
pub(crate) use receive::{Arrival, ReceiveBuffer};
pub(crate) use send::SendBuffer;

/// Slots that a ring begins with. It grows to what is used of it, up to its limit: a window that stays
/// small stays in the processor's cache, and an idle connection costs little.
const FIRST_SLOTS: u64 = 256;

/// A ring's content in a ring twice as large: slots of `stride` values, for packets `from..to`. One that
/// is not used stays empty.
fn moved<T: Copy + Default>(old: &[T], stride: usize, (from, to): (u64, u64)) -> Vec<T> {
    let slots = (old.len() / stride) as u64;
    let mut new = vec![T::default(); 2 * old.len()];
    for at in from..if slots > 0 { to } else { from } {
        let (here, there) = ((at & (slots - 1)) as usize, (at & (2 * slots - 1)) as usize);
        new[there * stride..][..stride].copy_from_slice(&old[here * stride..][..stride]);
    }
    new
}

/// Slots for a window of `packets`: a power of two, so that a number becomes a place by masking.
fn slots_for(packets: u32) -> u64 {
    u64::from(packets).next_power_of_two().max(64)
}
