//! Send and receive buffers: ring buffers with one slot for each packet.
//!
//! Inside a connection packets are numbered from 0 and do not wrap; only sequence numbers on the wire do.

mod message;
mod receive;
mod send;

use crate::cast::to_index;

pub(crate) use message::Messages;
pub(crate) use receive::{Arrival, ReceiveBuffer};
pub(crate) use send::SendBuffer;

/// Initial slots of a ring. A ring grows with the packets held, up to its limit, and shrinks again: a small window
/// stays in the processor's cache, and an idle connection uses little memory. Without shrinking, one long delay of a
/// thread would spread all later packets over the whole buffer.
const FIRST_SLOTS: u64 = 256;

/// Copies packets `from..to` of a ring to a new ring of `slots` slots of `stride` values. An empty ring stays empty.
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
    /// Records that `held` packets are held before packets `first..next` are released from a ring of `mask + 1` slots.
    /// Returns whether half of the slots suffice.
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

/// Ring-buffer capacity for `packets`: a power of two, so that a packet number is masked into an index.
fn slots_for(packets: u32) -> u64 {
    u64::from(packets).next_power_of_two().max(64)
}
