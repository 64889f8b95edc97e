//! Packets of 16 bytes, and side tables for the contents of some acknowledgements. The route of a
//! packet identifies its flow.

use crate::cast::low32;
use std::collections::VecDeque;

/// The ends of a flow, as indices.
pub(crate) const SOURCE: usize = 0;
pub(crate) const SINK: usize = 1;

/// A packet in flight: two words, held in two registers. A structure of smaller fields would be
/// written in parts and read as a whole, which stalls: store forwarding fails.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packet {
    /// `seq` and `hop`.
    place: u64,
    /// `aux`, `size` and `flags`.
    load: u64,
}

impl Packet {
    #[inline(always)]
    pub(crate) fn new(seq: u32, hop: u32, aux: u32, size: u16, flags: u16) -> Self {
        Packet {
            place: u64::from(seq) | u64::from(hop) << 32,
            load: u64::from(aux) | u64::from(size) << 32 | u64::from(flags) << 48,
        }
    }

    /// Data: the sequence number. Acknowledgement: the next sequence number expected.
    #[inline(always)]
    pub(crate) fn seq(self) -> u32 {
        low32(self.place)
    }

    /// Position on the route: an index into the table of routes.
    #[inline(always)]
    pub(crate) fn hop(self) -> u32 {
        (self.place >> 32) as u32
    }

    /// Data: the sender's timestamp. Acknowledgement: its number in [`Extras`], 0 for none.
    #[inline(always)]
    pub(crate) fn aux(self) -> u32 {
        low32(self.load)
    }

    /// Bytes on the wire.
    #[inline(always)]
    pub(crate) fn size(self) -> u16 {
        (self.load >> 32 & 0xffff) as u16
    }

    /// The type and properties of the packet: bits of [`flags`].
    #[inline(always)]
    pub(crate) fn flags(self) -> u16 {
        (self.load >> 48) as u16
    }

    /// The end of the flow that receives the packet.
    #[inline(always)]
    pub(crate) fn side(self) -> usize {
        if self.flags() & flags::ACK != 0 { SOURCE } else { SINK }
    }

    /// Whether it is an acknowledgement with contents in [`Extras`].
    #[inline(always)]
    pub(crate) fn has_extra(self) -> bool {
        self.flags() & flags::ACK != 0 && self.aux() != 0
    }

    /// Returns the packet with additional flags.
    #[inline(always)]
    pub(crate) fn flagged(self, flags: u16) -> Self {
        Packet { load: self.load | u64::from(flags) << 48, ..self }
    }

    /// Returns the packet at the next hop of its route.
    #[inline(always)]
    pub(crate) fn onward(self) -> Self {
        Packet { place: self.place + (1 << 32), ..self }
    }
}

/// Bits of [`Packet::flags`].
pub(crate) mod flags {
    /// Carries an acknowledgement; data otherwise.
    pub(crate) const ACK: u16 = 1;
    /// Belongs to a source without feedback.
    pub(crate) const DATAGRAM: u16 = 1 << 1;
    /// ECN-capable transport (RFC 3168).
    pub(crate) const ECT: u16 = 1 << 2;
    /// Congestion experienced.
    pub(crate) const CE: u16 = 1 << 3;
    /// On an acknowledgement: ECN echo.
    pub(crate) const ECE: u16 = 1 << 4;
    /// On data: congestion window reduced.
    pub(crate) const CWR: u16 = 1 << 5;
    /// Opens the connection.
    pub(crate) const SYN: u16 = 1 << 6;
    /// With [`ECT`]: the codepoint ECT(1), which identifies L4S (RFC 9331). ECT(0) otherwise.
    pub(crate) const ECT1: u16 = 1 << 7;
    /// Lost after the queue: discarded at the far end of the link.
    pub(crate) const LOST: u16 = 1 << 8;
    /// Lists lost packets (UDT's NAK).
    pub(crate) const NAK: u16 = 1 << 9;
    /// The receiver's periodic report (UDT's full ACK).
    pub(crate) const REPORT: u16 = 1 << 10;
    /// Of UDT: the second packet of a packet pair.
    pub(crate) const PAIR: u16 = 1 << 11;
    /// Of TCP: PSH. The bit of [`PAIR`].
    pub(crate) const PSH: u16 = 1 << 11;
    /// From the source, without data (UDT's handshake, ACK2, keep-alive).
    pub(crate) const CONTROL: u16 = 1 << 12;
    /// Of a link, not of a packet: the queue dropped the packet.
    pub(crate) const DROPPED: u16 = 1 << 13;
    /// Of a link, not of a packet: the departure is an event.
    pub(crate) const QUEUED: u16 = 1 << 14;
    /// Of a link, not of a packet: a tap sees the packet, or others may overtake it.
    pub(crate) const INSPECT: u16 = 1 << 15;
    /// Carries no data.
    pub(crate) const DATALESS: u16 = ACK | CONTROL;
}

/// The option of AccECN (RFC 9768 section 3.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccEcnOption {
    pub kind: u8,
    /// The fields in the order of the option, of which the first `count` are present.
    pub fields: [u32; 3],
    pub count: u8,
}

/// The AccECN feedback of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Feedback {
    /// The ACE field: the flags AE, CWR and ECE from the most significant bit (RFC 9768 section
    /// 3.2.2).
    pub ace: u8,
    pub option: Option<AccEcnOption>,
}

/// The contents of some acknowledgements besides their number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Extra {
    /// SACK blocks, the newest first: first number and one past the last (RFC 2018). Also the
    /// ranges of a NAK.
    pub blocks: [(u32, u32); 3],
    pub count: u32,
    /// The receiver's timestamp and the echo of the sender's, in ticks (RFC 7323).
    pub stamp: u32,
    pub echo: u32,
    pub accecn: Option<Feedback>,
}

impl Extra {
    /// The contents of an acknowledgement without any.
    pub(crate) const NONE: Extra =
        Extra { blocks: [(0, 0); 3], count: 0, stamp: 0, echo: 0, accecn: None };

    /// Stores the two rates of a periodic report in packets per second in place of the blocks.
    pub(crate) fn with_rates(mut self, rates: [Option<f64>; 2]) -> Self {
        for (block, rate) in self.blocks.iter_mut().zip(rates) {
            let bits = rate.unwrap_or(f64::NAN).to_bits();
            *block = ((bits >> 32) as u32, low32(bits));
        }
        self
    }

    /// The two rates of a periodic report.
    pub(crate) fn rates(&self) -> [Option<f64>; 2] {
        [self.blocks[0], self.blocks[1]].map(|(high, low)| {
            let rate = f64::from_bits(u64::from(high) << 32 | u64::from(low));
            (!rate.is_nan()).then_some(rate)
        })
    }
}

/// Contents of some packets in flight in one direction of a flow, in the order of sending. They
/// arrive in this order; those before one that arrives are lost, unless a link of the route
/// reorders packets.
#[derive(Clone)]
pub(crate) struct Contents<T> {
    queue: VecDeque<T>,
    /// The number of the first in the queue. 0 stands for no contents.
    first: u32,
    /// Contents that are kept behind the last one that arrived.
    behind: usize,
}

/// The contents of a flow's acknowledgements.
pub(crate) type Extras = Contents<Extra>;

/// Packets by which one with contents may be late. Those that are later arrive without contents.
const MAX_BEHIND: usize = 1 << 14;

impl<T: Default> Contents<T> {
    /// Creates an empty queue. `reordered` says whether a link of the route reorders packets.
    pub(crate) const fn new(reordered: bool) -> Self {
        let behind = if reordered { MAX_BEHIND } else { 0 };
        Contents { queue: VecDeque::new(), first: 1, behind }
    }

    /// Whether a link of the route reorders packets.
    pub(crate) fn is_reordered(&self) -> bool {
        self.behind > 0
    }

    /// Appends the contents of a packet and returns their number.
    pub(crate) fn put(&mut self, contents: T) -> u32 {
        let (number, place) = self.push();
        *place = contents;
        number
    }

    /// Appends default contents. Returns their number, and the contents to be written in place: a
    /// copy of fields that were written one by one would wait for the writes.
    #[inline(always)]
    pub(crate) fn push(&mut self) -> (u32, &mut T) {
        let mut number = self.number(self.queue.len());
        if number == 0 {
            self.queue.push_back(T::default());
            number = 1;
        }
        let last = self.queue.len();
        self.queue.push_back(T::default());
        (number, &mut self.queue[last])
    }

    fn number(&self, index: usize) -> u32 {
        self.first.wrapping_add(low32(index as u64))
    }

    fn index(&self, number: u32) -> usize {
        number.wrapping_sub(self.first) as usize
    }

    /// Removes the contents of a packet that arrives and those before it that are lost.
    pub(crate) fn take(&mut self, number: u32) -> Option<T> {
        if self.is_reordered() {
            return self.take_reordered(number);
        }
        let lost = self.index(number).min(self.queue.len());
        if lost > 0 {
            self.queue.drain(..lost);
        }
        self.first = number.wrapping_add(1);
        self.queue.pop_front()
    }

    fn take_reordered(&mut self, number: u32) -> Option<T> {
        let index = self.index(number);
        let taken = std::mem::take(self.queue.get_mut(index)?);
        let lost = index.saturating_sub(self.behind);
        self.queue.drain(..lost);
        self.first = self.number(lost);
        Some(taken)
    }

    /// Returns the contents of a packet in flight.
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.queue.get(self.index(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_carries_its_rates() {
        assert_eq!(Extra::NONE.with_rates([Some(1234.5), None]).rates(), [Some(1234.5), None]);
    }

    #[test]
    fn contents_arrive_in_order_and_some_are_lost() {
        let mut contents = Contents::new(false);
        contents.first = u32::MAX - 1;
        let numbers: Vec<_> = (0..6).map(|each| contents.put(each)).collect();
        assert_eq!(numbers, [u32::MAX - 1, u32::MAX, 1, 2, 3, 4]);
        assert_eq!(contents.get(numbers[4]), Some(&4));
        assert_eq!(contents.take(numbers[1]), Some(1));
        assert_eq!(contents.take(numbers[4]), Some(4));
        assert_eq!(contents.take(numbers[5]), Some(5));
        assert_eq!(contents.take(9), None);
    }

    #[test]
    fn reordered_contents_are_kept() {
        let mut contents = Contents::new(true);
        contents.first = u32::MAX - 1;
        let numbers: Vec<_> = (1..=5).map(|each| contents.put(each)).collect();
        assert_eq!(contents.take(numbers[3]), Some(4));
        assert_eq!(contents.take(numbers[0]), Some(1));
        assert_eq!(contents.take(numbers[2]), Some(3));
        let last = (0..2 * MAX_BEHIND).map(|_| contents.put(6)).last().unwrap();
        assert_eq!(contents.take(last), Some(6));
        assert_eq!(contents.take(numbers[4]), None);
        assert_eq!(contents.queue.len(), MAX_BEHIND + 1);
    }
}
