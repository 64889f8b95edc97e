//! A tap: shows the packets of one link.

use super::packet::{Extra, Extras, Packet, flags};

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
    let has_extra = packet.flags() & flags::ACK != 0 && packet.aux() != 0;
    let extra = if has_extra { extras.get(packet.aux()) } else { None };
    tap(&Seen { at, flow, packet, extra: extra.copied().unwrap_or(Extra::NONE) });
}
