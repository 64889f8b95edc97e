//! What is on its way: rings of fixed slots, one for each packet, indexed by packet number.
//!
//! Inside a connection packets are numbered from 0 without wrapping; only the wire wraps.

mod message;
mod receive;
mod send;

use crate::cast::to_index;

pub(crate) use message::Messages;
pub(crate) use receive::{Arrival, ReceiveBuffer};
pub(crate) use send::SendBuffer;

/// Slots that a ring begins with. It grows to what is used of it, up to its limit, and shrinks again: a window
/// that stays small stays in the processor's cache, and an idle connection costs little. Without shrinking, one
/// long delay of a thread would spread all later packets over the whole buffer.
const FIRST_SLOTS: u64 = 256;

/// Copies a ring's content to a ring of `slots` slots of `stride` values, for packets `from..to`. A ring that is
/// not used stays empty.
fn moved<T: Copy + Default>(
    old: &[T],
    stride: usize,
    slots: u64,
    (from, to): (u64, u64),
) -> Vec<T> {
    let before = (old.len() / stride) as u64;
    if before == 0 {
        return Vec::new();
    }
    let mut new = vec![T::default(); to_index(slots).saturating_mul(stride)];
    for at in from..to {
        let (here, there) = (to_index(at & (before - 1)), to_index(at & (slots - 1)));
        new[there * stride..][..stride].copy_from_slice(&old[here * stride..][..stride]);
    }
    new
}

/// Decides when a ring shrinks: after a whole turn in which no more than a quarter of it was used.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    /// The most packets held since the current turn began.
    most: u64,
}

impl Usage {
    /// Records that `held` packets are held just before those from `first` to `next` are given up, in a ring of
    /// `mask + 1` slots. Returns whether the ring can do with half of its slots.
    #[inline]
    fn release(&mut self, held: u64, (first, next): (u64, u64), mask: u64) -> bool {
        self.most = self.most.max(held);
        if (first ^ next) & !mask == 0 {
            return false;
        }
        let most = std::mem::take(&mut self.most);
        mask >= FIRST_SLOTS && 4 * most <= mask + 1
    }
}

/// Slots for a window of `packets`: a power of two, so that a number becomes a place by masking.
fn slots_for(packets: u32) -> u64 {
    u64::from(packets).next_power_of_two().max(64)
}
