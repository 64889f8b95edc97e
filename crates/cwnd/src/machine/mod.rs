//! The two machines, written once: everything around a law that is not the law.

mod paced;
mod rtt;
mod slow_start;
mod windowed;

pub use paced::Paced;
pub use slow_start::SlowStart;
pub use windowed::Windowed;

use crate::event::{Event, Output};
use crate::law::Signal;
use crate::units::{Packets, Time};

/// All that a driver sees of a congestion controller.
pub trait Controller {
    /// Tells the controller what happened at `now`. Times never go back.
    fn on(&mut self, now: Time, event: &Event);
    /// The controller's answer as of the last event.
    fn output(&self) -> Output;
    /// Whether the controller uses the receiver's estimate of the link capacity: the sender then sends
    /// the packet pairs that it is made from.
    fn uses_capacity(&self) -> bool {
        false
    }
    /// The last cut, if one was made since this was last asked.
    fn take_cut(&mut self) -> Option<Cut>;
    /// Emits the controller's variables by name: `ssthresh` and the law's own.
    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64));
}

/// A cut of the window, for records. A paced controller's rates stand in packets per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cut {
    /// What caused it.
    pub why: Signal,
    /// The window (paced: the rate) before.
    pub before: Packets,
    /// The window (paced: the rate) after.
    pub after: Packets,
}

/// What surrounds a law: the start, the clamps, and where stacks differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Bytes in a packet.
    pub packet: u32,
    /// The window at the start, in packets.
    pub initial_window: Packets,
    /// The largest window, in packets: the receiver's, or a cap of the sender.
    pub max_window: Packets,
    /// How slow start grows the window.
    pub slow_start: SlowStart,
    /// ns-2's habits instead of the RFCs'.
    pub ns2: bool,
    /// Seed of a law's own randomness (UDT's repeat decreases).
    pub seed: u64,
}

impl Default for Settings {
    /// RFC 6928's initial window of ten 1500-byte packets and no cap.
    fn default() -> Self {
        Settings {
            packet: 1500,
            initial_window: 10.0,
            max_window: f64::INFINITY,
            slow_start: SlowStart::Classic,
            ns2: false,
            seed: 0,
        }
    }
}
