//! Send and receive buffers: ring buffers with one slot for each packet.
//!
//! Inside a connection, packets are numbered from 0 with 64 bits. Only sequence numbers on the wire
//! wrap.

mod reassembly;
mod receive;
mod send;

use crate::cast::to_index;

pub(crate) use reassembly::Reassembly;
pub(crate) use receive::{Arrival, ReceiveBuffer};
pub(crate) use send::SendBuffer;

/// The initial number of slots of a ring buffer. It grows with the packets held, up to its limit,
/// and shrinks again: a small window stays in the processor's cache, and an idle connection uses
/// little memory. Without shrinking, one long delay of a thread would spread all later packets over
/// the whole memory of the buffer.
const INITIAL_SLOTS: u64 = 256;

/// Copies packets `from..to` of a ring buffer to a new one of `slots` slots of `stride` values. An
/// empty ring buffer stays empty.
fn resized<T: Copy + Default>(
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

/// Decides when a ring buffer shrinks: after a whole turn in which at most a quarter of its slots
/// were used.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    /// The largest number of packets held since the current turn began.
    max_held: u64,
}

impl Usage {
    /// Records the number of packets held before packets `first..next` are released from a ring
    /// buffer of `mask + 1` slots. Returns whether half of the slots suffice.
    #[inline]
    fn release(&mut self, held: u64, (first, next): (u64, u64), mask: u64) -> bool {
        self.max_held = self.max_held.max(held);
        if (first ^ next) & !mask == 0 {
            return false;
        }
        let max_held = std::mem::take(&mut self.max_held);
        mask >= INITIAL_SLOTS && 4 * max_held <= mask + 1
    }
}

/// Ring-buffer capacity for `packets`: a power of two, so that a packet number is masked into an
/// index.
fn slots_for(packets: u32) -> u64 {
    u64::from(packets).next_power_of_two().max(64)
}
