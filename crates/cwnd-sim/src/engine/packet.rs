//! What crosses a link: 16 bytes, and a side table for what only some
//! acknowledgements carry. Whose packet it is follows from its route.

use crate::cast::low32;
use std::collections::VecDeque;

/// A packet on its way: two words, so that it lives in two registers. As a structure of smaller fields
/// it is written to memory in parts and read as a whole, for which a processor has to wait.
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

    /// Data: its number. Acknowledgement: the next number expected.
    #[inline(always)]
    pub(crate) fn seq(self) -> u32 {
        low32(self.place)
    }

    /// Where it is on its route: an index into the table of routes.
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

    /// What it is: see [`flags`].
    #[inline(always)]
    pub(crate) fn flags(self) -> u16 {
        (self.load >> 48) as u16
    }

    /// The same with these flags besides.
    #[inline(always)]
    pub(crate) fn flagged(self, flags: u16) -> Self {
        Packet { load: self.load | u64::from(flags) << 48, ..self }
    }

    /// The same one hop further.
    #[inline(always)]
    pub(crate) fn onward(self) -> Self {
        Packet { place: self.place + (1 << 32), ..self }
    }
}

/// Bits of [`Packet::flags`].
pub(crate) mod flags {
    /// Carries an acknowledgement; data otherwise.
    pub(crate) const ACK: u16 = 1;
    /// Belongs to a source that nobody answers.
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
    /// Sent before.
    pub(crate) const AGAIN: u16 = 1 << 7;
    /// Lost in the pipe: vanishes where it would have arrived.
    pub(crate) const LOST: u16 = 1 << 8;
    /// Names lost packets (UDT's NAK).
    pub(crate) const NAK: u16 = 1 << 9;
    /// The receiver's periodic report (UDT's full ACK).
    pub(crate) const REPORT: u16 = 1 << 10;
    /// The second packet of a packet pair.
    pub(crate) const PAIR: u16 = 1 << 11;
    /// From the source, and carries no data (UDT's handshake, ACK2, keep-alive).
    pub(crate) const CONTROL: u16 = 1 << 12;
    /// Of a link, not of a packet: the queue dropped the packet.
    pub(crate) const DROPPED: u16 = 1 << 13;
    /// Of a link, not of a packet: the departure is an event.
    pub(crate) const QUEUED: u16 = 1 << 14;
    /// Of a link, not of a packet: a tap sees the packet.
    pub(crate) const TAPPED: u16 = 1 << 15;
    /// Carries no data.
    pub(crate) const DATALESS: u16 = ACK | CONTROL;
}

/// What some acknowledgements carry besides their number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Extra {
    /// Selective acknowledgements, the newest first: first number and one past the last
    /// (RFC 2018). A NAK's ranges stand here too.
    pub blocks: [(u32, u32); 3],
    pub count: u32,
    /// The receiver's clock, and the echo of the sender's, in ticks (RFC 7323).
    pub stamp: u32,
    pub echo: u32,
}

impl Extra {
    /// What an acknowledgement without one carries.
    pub(crate) const NONE: Extra = Extra { blocks: [(0, 0); 3], count: 0, stamp: 0, echo: 0 };

    /// Puts a periodic report's two rates in packets per second, NaN when unknown, where others name
    /// packets.
    pub(crate) fn with_rates(mut self, rates: [f64; 2]) -> Self {
        for (block, rate) in self.blocks.iter_mut().zip(rates) {
            *block = ((rate.to_bits() >> 32) as u32, low32(rate.to_bits()));
        }
        self
    }

    /// The two rates of a periodic report.
    pub(crate) fn rates(&self) -> [f64; 2] {
        let rate = |(high, low)| f64::from_bits(u64::from(high) << 32 | u64::from(low));
        [rate(self.blocks[0]), rate(self.blocks[1])]
    }
}

/// What the acknowledgements of one flow carry, in the order in which they are sent. They arrive in
/// that order: those before one that arrives are lost.
pub(crate) struct Extras {
    queue: VecDeque<Extra>,
    /// The number of the first in the queue. 0 stands for none.
    first: u32,
}

impl Extras {
    pub(crate) fn new() -> Self {
        Extras { queue: VecDeque::new(), first: 1 }
    }

    /// Adds what is sent next; tells its number.
    pub(crate) fn put(&mut self, extra: Extra) -> u32 {
        self.queue.push_back(extra);
        let number = self.number_of(self.queue.len() - 1);
        if number == 0 { self.put(extra) } else { number }
    }

    fn number_of(&self, place: usize) -> u32 {
        self.first.wrapping_add(low32(place as u64))
    }

    fn place_of(&self, number: u32) -> usize {
        number.wrapping_sub(self.first) as usize
    }

    /// Takes what arrives. Number 0 carries nothing.
    pub(crate) fn take(&mut self, number: u32) -> Extra {
        if number == 0 {
            return Extra::NONE;
        }
        let lost = self.place_of(number);
        if lost > 0 {
            self.queue.drain(..lost);
        }
        self.first = number.wrapping_add(1);
        self.queue.pop_front().unwrap_or(Extra::NONE)
    }

    /// Stores the contents of an acknowledgement that comes from the other partition with its number. Numbers increase; those left
    /// out are lost.
    pub(crate) fn put_at(&mut self, number: u32, extra: Extra) {
        if self.queue.is_empty() {
            self.first = number;
        }
        self.queue.resize(self.place_of(number), Extra::NONE);
        self.queue.push_back(extra);
    }

    /// Reads what stays in flight.
    pub(crate) fn peek(&self, number: u32) -> Extra {
        self.queue.get(self.place_of(number)).copied().unwrap_or(Extra::NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_carries_its_rates() {
        let [arrival, capacity] = Extra::NONE.with_rates([1234.5, f64::NAN]).rates();
        assert_eq!(arrival, 1234.5);
        assert!(capacity.is_nan());
    }

    #[test]
    fn extras_arrive_in_order_and_some_are_lost() {
        let mut extras = Extras::new();
        extras.first = u32::MAX - 1;
        let numbers: Vec<_> =
            (0..6).map(|stamp| extras.put(Extra { stamp, ..Extra::NONE })).collect();
        assert!(!numbers.contains(&0));
        assert_eq!(extras.peek(numbers[4]).stamp, 4);
        assert_eq!(extras.take(numbers[1]).stamp, 1);
        assert_eq!(extras.take(0), Extra::NONE);
        assert_eq!(extras.take(numbers[4]).stamp, 4);
        assert_eq!(extras.take(numbers[5]).stamp, 5);
        assert!(extras.queue.is_empty());
    }
}
