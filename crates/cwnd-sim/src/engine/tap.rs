//! What the packets of a run are seen by: the tap of one link, and the log of a flow's source.

use crate::packet::{Extra, Extras, Packet, flags};
use crate::record::{PacketKind, PacketRecord};
use cwnd::Time;

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

/// The tap of a run, if it has one. A copy of the run has none.
#[derive(Default)]
pub(crate) struct TapSlot(pub Option<Tap>);

impl Clone for TapSlot {
    fn clone(&self) -> Self {
        TapSlot(None)
    }
}

/// Shows a packet of `flow` that leaves the transmitter after `at` nanoseconds.
pub(crate) fn show(tap: &mut Tap, at: u64, flow: u32, packet: Packet, extras: &Extras) {
    let extra = if packet.has_extra() { extras.get(packet.aux()) } else { None };
    tap(&Seen { at, flow, packet, extra: extra.copied().unwrap_or(Extra::NONE) });
}

/// The packets that the source of a flow sends and receives.
#[derive(Clone)]
pub(crate) struct PacketLog {
    /// Whether the packets have numbers.
    numbered: bool,
    packets: Vec<PacketRecord>,
}

impl PacketLog {
    pub(crate) const fn new(numbered: bool) -> Self {
        PacketLog { numbered, packets: Vec::new() }
    }

    /// Appends a packet sent or received at `at`, whose contents may be in `extras`.
    pub(crate) fn push(&mut self, at: Time, packet: Packet, extras: &Extras) {
        let number = self.numbered.then_some(packet.seq());
        let kind = if packet.flags() & flags::ACK != 0 {
            // The blocks of other feedback are missing packets or rates.
            let feedback = packet.flags() & (flags::NAK | flags::REPORT) != 0;
            let extra = if packet.has_extra() { extras.get(packet.aux()) } else { None };
            let blocks = |extra: &Extra| extra.blocks[..extra.count as usize].into();
            let ranges = extra.filter(|_| self.numbered && !feedback).map(blocks);
            PacketKind::Acknowledgement { next: number, ranges: ranges.unwrap_or_default() }
        } else if packet.flags() & flags::CONTROL != 0 {
            PacketKind::Control
        } else {
            PacketKind::Data(number)
        };
        self.packets.push(PacketRecord { at, size: packet.size(), kind });
    }

    /// Sets the contents of the last packet.
    pub(crate) fn describe(&mut self, contents: PacketKind) {
        if let Some(last) = self.packets.last_mut() {
            last.kind = contents;
        }
    }

    pub(crate) fn take(&mut self) -> Vec<PacketRecord> {
        std::mem::take(&mut self.packets)
    }
}
