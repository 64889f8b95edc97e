//! Two halves of a network on two threads. Each runs a window of simulated time after the other and
//! sends what it did to its neighbour. Nothing reaches a half before the neighbour's lookahead has
//! passed, so it may run on as long as it has the neighbour's windows of that long ago: what it then
//! does follows from the network and the seed, whatever the threads do (Chandy and Misra 1979).

use crate::engine::clock::Clock;
use crate::engine::net::Crossing;
use crate::engine::packet::Extra;
use cwnd::Dur;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

/// Windows in the longer lookahead.
const WINDOWS: u64 = 4;
/// Looks for the neighbour's window before the thread lets others have its core.
const LOOKS: u64 = 1000;

/// What one half did in a window that concerns the other.
#[derive(Default)]
pub(crate) struct Batch {
    /// Packets on links between the halves, each link's in order.
    pub crossings: Vec<Crossing>,
    /// Packets that reach queues of the other half, in the order of events.
    pub queueing: Vec<Crossing>,
    /// For flows what their acknowledgements carry, in order.
    pub extras: Vec<(usize, Vec<Extra>)>,
}

/// The other half, seen from one.
pub(crate) struct Other {
    sender: Sender<Batch>,
    receiver: Receiver<Batch>,
    window: Dur,
    /// How many windows ago the neighbour's last one was that matters.
    lag: u64,
    /// Windows begun.
    begun: u64,
    /// Emptied batches.
    spare: Vec<Batch>,
}

impl Other {
    /// Both halves' views of each other; `lookahead` is that of what each sends.
    pub(crate) fn pair(lookahead: [Dur; 2]) -> [Self; 2] {
        let window = Dur::from_nanos(lookahead[0].max(lookahead[1]).as_nanos() / WINDOWS);
        let [from_first, from_second] =
            lookahead.map(|ahead| ahead.as_nanos() / window.as_nanos().max(1));
        let (one, other) = (channel(), channel());
        [(one.0, other.1, from_second), (other.0, one.1, from_first)].map(
            |(sender, receiver, lag)| Other {
                sender,
                receiver,
                window,
                lag,
                begun: 0,
                spare: Vec::new(),
            },
        )
    }

    /// Begins a window and tells when it ends.
    pub(crate) fn next_window(&mut self, clock: Clock) -> u64 {
        self.begun += 1;
        self.begun * clock.ticks(self.window.as_nanos())
    }

    /// Windows begun.
    pub(crate) fn windows(&self) -> u64 {
        self.begun
    }

    /// What the neighbour did that may matter from the window on that was just begun. Waits for it.
    /// None before it did anything, or when its thread is gone.
    pub(crate) fn receive(&mut self) -> Option<Batch> {
        if self.begun <= self.lag {
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
    pub(crate) fn batch(&mut self) -> Batch {
        self.spare.pop().unwrap_or_default()
    }

    /// Keeps an emptied batch for later.
    pub(crate) fn reuse(&mut self, batch: Batch) {
        self.spare.push(batch);
    }

    pub(crate) fn send(&mut self, batch: Batch) {
        // A neighbour that is gone has reached the end, or its panic is on its way.
        let _ = self.sender.send(batch);
    }
}
