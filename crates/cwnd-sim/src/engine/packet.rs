//! What crosses a link: 16 bytes, and a side table for what only some
//! acknowledgements carry. Whose packet it is follows from its route.

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
    pub fn new(seq: u32, hop: u32, aux: u32, size: u16, flags: u16) -> Self {
        Packet {
            place: u64::from(seq) | u64::from(hop) << 32,
            load: u64::from(aux) | u64::from(size) << 32 | u64::from(flags) << 48,
        }
    }

    /// Data: its number. Acknowledgement: the next number expected.
    #[inline(always)]
    pub fn seq(self) -> u32 {
        self.place as u32
    }

    /// Where it is on its route: an index into the table of routes.
    #[inline(always)]
    pub fn hop(self) -> u32 {
        (self.place >> 32) as u32
    }

    /// Data: the sender's timestamp. Acknowledgement: its entry in [`Extras`], 0 for none.
    #[inline(always)]
    pub fn aux(self) -> u32 {
        self.load as u32
    }

    /// Bytes on the wire.
    #[inline(always)]
    pub fn size(self) -> u16 {
        (self.load >> 32) as u16
    }

    /// What it is: see [`flags`].
    #[inline(always)]
    pub fn flags(self) -> u16 {
        (self.load >> 48) as u16
    }

    /// The same with these flags besides.
    #[inline(always)]
    pub fn flagged(self, flags: u16) -> Self {
        Packet { load: self.load | u64::from(flags) << 48, ..self }
    }

    /// The same one hop further.
    #[inline(always)]
    pub fn onward(self) -> Self {
        Packet { place: self.place + (1 << 32), ..self }
    }
}

/// Bits of [`Packet::flags`].
pub(crate) mod flags {
    /// Carries an acknowledgement; data otherwise.
    pub const ACK: u16 = 1;
    /// Belongs to a source that nobody answers.
    pub const DATAGRAM: u16 = 1 << 1;
    /// ECN-capable transport (RFC 3168).
    pub const ECT: u16 = 1 << 2;
    /// Congestion experienced.
    pub const CE: u16 = 1 << 3;
    /// On an acknowledgement: ECN echo.
    pub const ECE: u16 = 1 << 4;
    /// On data: congestion window reduced.
    pub const CWR: u16 = 1 << 5;
    /// Opens the connection.
    pub const SYN: u16 = 1 << 6;
    /// Sent before.
    pub const AGAIN: u16 = 1 << 7;
    /// Lost in the pipe: vanishes where it would have arrived.
    pub const LOST: u16 = 1 << 8;
    /// Names lost packets (UDT's NAK).
    pub const NAK: u16 = 1 << 9;
    /// The receiver's periodic report (UDT's full ACK).
    pub const REPORT: u16 = 1 << 10;
    /// The second packet of a packet pair.
    pub const PAIR: u16 = 1 << 11;
}

/// What some acknowledgements carry besides their number.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extra {
    /// Selective acknowledgements, the newest first: first number and one past the last
    /// (RFC 2018). A NAK's ranges stand here too.
    pub blocks: [(u32, u32); 3],
    pub count: u32,
    /// The receiver's clock, and the echo of the sender's, in ticks (RFC 7323).
    pub stamp: u32,
    pub echo: u32,
    /// Rates of a periodic report in packets per second; NaN when unknown.
    pub arrival: f64,
    pub capacity: f64,
}

/// The extras in flight. Entry 0 stands for none.
pub(crate) struct Extras {
    entries: Vec<Extra>,
    free: Vec<u32>,
}

impl Extras {
    pub fn new() -> Self {
        Extras { entries: vec![Extra::default()], free: Vec::new() }
    }

    #[inline]
    pub fn put(&mut self, extra: Extra) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.entries[index as usize] = extra;
                index
            }
            None => {
                self.entries.push(extra);
                (self.entries.len() - 1) as u32
            }
        }
    }

    /// Reads an entry and gives it back. Entry 0 stays.
    #[inline]
    pub fn take(&mut self, index: u32) -> Extra {
        if index != 0 {
            self.free.push(index);
        }
        self.entries[index as usize]
    }

    /// Reads an entry that stays in flight.
    pub fn peek(&self, index: u32) -> Extra {
        self.entries[index as usize]
    }

    /// Gives back what a packet that is lost carried.
    #[inline]
    pub fn discard(&mut self, packet: &Packet) {
        if packet.flags() & flags::ACK != 0 && packet.aux() != 0 {
            self.free.push(packet.aux());
        }
    }
}
