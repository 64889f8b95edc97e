//! Two halves of a network on two threads. Each runs a window of simulated time after the other and
//! sends what it did to its neighbour. Nothing reaches the other half before the lookahead has passed,
//! so a half may run on as long as it has the neighbour's windows of a lookahead ago: what it then
//! does follows from the network and the seed, whatever the threads do (Chandy and Misra 1979).

use crate::engine::clock::Clock;
use crate::engine::net::Crossing;
use crate::engine::packet::Extra;
use cwnd::Dur;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

/// Windows in a lookahead.
const WINDOWS: u64 = 4;
/// Looks for the neighbour's window before the thread lets others have its core.
const LOOKS: u64 = 1000;

/// What one half did in a window that concerns the other.
#[derive(Default)]
pub(crate) struct Batch {
    /// Packets on links between the halves, each link's in order.
    pub crossings: Vec<Crossing>,
    /// For flows what their acknowledgements carry, in order.
    pub extras: Vec<(usize, Vec<Extra>)>,
}

/// The other half, seen from one.
pub(crate) struct Other {
    sender: Sender<Batch>,
    receiver: Receiver<Batch>,
    lookahead: Dur,
    /// Windows begun.
    begun: u64,
    /// Emptied batches.
    spare: Vec<Batch>,
}

impl Other {
    /// Both halves' views of each other.
    pub fn pair(lookahead: Dur) -> [Self; 2] {
        let ((to_second, from_first), (to_first, from_second)) = (channel(), channel());
        [(to_second, from_second), (to_first, from_first)].map(|(sender, receiver)| Other {
            sender,
            receiver,
            lookahead,
            begun: 0,
            spare: Vec::new(),
        })
    }

    /// Begins a window and tells when it ends.
    pub fn next_window(&mut self, clock: Clock) -> u64 {
        self.begun += 1;
        self.begun * (clock.ticks(self.lookahead.as_nanos()) / WINDOWS)
    }

    /// Windows begun.
    pub fn windows(&self) -> u64 {
        self.begun
    }

    /// What the neighbour did a lookahead before the window that was just begun. Waits for it. None
    /// before it did anything, or when its thread is gone.
    pub fn receive(&mut self) -> Option<Batch> {
        if self.begun <= WINDOWS {
            return None;
        }
        let mut looks = 0;
        loop {
            match self.receiver.try_recv() {
                Ok(batch) => return Some(batch),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) if looks < LOOKS => std::hint::spin_loop(),
                // Sleeping would take longer than the neighbour does, unless somebody else has its core.
                Err(TryRecvError::Empty) => std::thread::yield_now(),
            }
            looks += 1;
        }
    }

    /// An empty batch.
    pub fn batch(&mut self) -> Batch {
        self.spare.pop().unwrap_or_default()
    }

    /// Keeps an emptied batch for later.
    pub fn reuse(&mut self, batch: Batch) {
        self.spare.push(batch);
    }

    pub fn send(&mut self, batch: Batch) {
        // A neighbour that is gone has reached the end, or its panic is on its way.
        let _ = self.sender.send(batch);
    }
}
