//! What crosses one link, for whoever wants to see it.

use super::packet::{Extra, Extras, Packet, flags};

/// A packet as it leaves a link's transmitter.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Nanoseconds since the start.
    pub at: u64,
    pub(crate) flow: u32,
    pub(crate) packet: Packet,
    pub(crate) extra: Extra,
}

pub(crate) struct Tap {
    pub link: usize,
    pub watch: Box<dyn FnMut(&Seen) + Send>,
}

impl Tap {
    pub(crate) fn see(&mut self, at: u64, flow: u32, packet: &Packet, extras: &Extras) {
        let has_extra = packet.flags() & flags::ACK != 0 && packet.aux() != 0;
        let extra = if has_extra { extras.peek(packet.aux()) } else { Extra::NONE };
        (self.watch)(&Seen { at, flow, packet: *packet, extra });
    }
}
