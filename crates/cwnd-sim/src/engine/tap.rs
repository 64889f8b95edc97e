//! A tap: shows the packets of one link.

use crate::packet::{Extra, Extras, Packet};

/// A packet that leaves the transmitter of a link.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Nanoseconds since the start.
    pub at: u64,
    pub(crate) flow: u32,
    pub(crate) packet: Packet,
    pub(crate) extra: Extra,
}

/// The function that sees the packets.
pub(crate) type Tap = Box<dyn FnMut(&Seen) + Send>;

/// Shows a packet of `flow` that leaves the transmitter after `at` nanoseconds.
pub(crate) fn show(tap: &mut Tap, at: u64, flow: u32, packet: Packet, extras: &Extras) {
    let extra = if packet.has_extra() { extras.get(packet.aux()) } else { None };
    tap(&Seen { at, flow, packet, extra: extra.copied().unwrap_or(Extra::NONE) });
}
