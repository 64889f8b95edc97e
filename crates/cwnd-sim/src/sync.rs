//! Synchronisation of the two partitions of a network, which run on two threads.
//!
//! Each partition advances by windows of simulated time and then sends the other one its packets on
//! the links between them. No packet arrives before the delay of these links, the lookahead, has
//! passed. A partition may therefore run a window as soon as it has the other one's packets up to
//! the lookahead before the window's end (Chandy and Misra 1979). Its results do not depend on the
//! threads.

use crate::engine::net::Batch;
use cwnd::Dur;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

/// Windows in the lookahead.
const WINDOWS: u64 = 4;
/// Attempts to receive before the thread yields its core.
const SPINS: u64 = 1000;

/// The connection of a partition to the other one.
pub(crate) struct Peer {
    sender: Sender<Batch>,
    receiver: Receiver<Batch>,
    /// Length of a window in nanoseconds.
    window: u64,
    /// Windows begun.
    begun: u64,
    /// Empty batches for reuse.
    spare: Vec<Batch>,
}

impl Peer {
    /// Returns the connections of both partitions. Every link between them has a delay of at least
    /// `lookahead`.
    pub(crate) fn pair(lookahead: Dur) -> [Self; 2] {
        let window = lookahead.as_nanos() / WINDOWS;
        let (one, other) = (channel(), channel());
        [(one.0, other.1), (other.0, one.1)].map(|(sender, receiver)| Peer {
            sender,
            receiver,
            window,
            begun: 0,
            spare: Vec::new(),
        })
    }

    /// Begins a window and returns its end in nanoseconds.
    pub(crate) fn begin_window(&mut self) -> u64 {
        self.begun += 1;
        self.begun.saturating_mul(self.window)
    }

    /// Windows begun.
    pub(crate) fn windows(&self) -> u64 {
        self.begun
    }

    /// Waits for the packets of the other partition that may arrive in the window that was begun.
    /// `None` if there cannot be any yet, or if the other thread has ended.
    pub(crate) fn receive(&mut self) -> Option<Batch> {
        if self.begun <= WINDOWS {
            return None;
        }
        let mut spins = 0;
        loop {
            match self.receiver.try_recv() {
                Ok(batch) => return Some(batch),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) if spins < SPINS => std::hint::spin_loop(),
                // Sleeping would take longer than the other partition does, unless another process
                // has its core.
                Err(TryRecvError::Empty) => std::thread::yield_now(),
            }
            spins += 1;
        }
    }

    /// Sends the packets of a window and leaves an empty batch.
    pub(crate) fn send(&mut self, batch: &mut Batch) {
        let empty = self.spare.pop().unwrap_or_default();
        // A thread that has ended needs no packets.
        let _ = self.sender.send(std::mem::replace(batch, empty));
    }

    /// Keeps a batch for reuse.
    pub(crate) fn recycle(&mut self, mut batch: Batch) {
        batch.crossings.clear();
        batch.extras.clear();
        self.spare.push(batch);
    }
}
