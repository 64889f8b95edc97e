//! The receiver: what has arrived, and which acknowledgement answers it.

use crate::engine::clock::Clock;
use crate::engine::net::{Net, TIMERS};
use crate::engine::packet::{Extra, Packet, flags};
use crate::network::{Conventions, Recovery, Tcp};

/// What arrived out of order, by number modulo the table's length. A block of packets knows its
/// last at its first and its first at its last, so that each arrival costs the same.
#[derive(Default)]
struct Blocks {
    /// For the first packet of a block its last, for the last its first.
    other: Vec<u32>,
    here: Vec<bool>,
    /// Packets in the table.
    count: u32,
    /// The first packets of the blocks last reported, the newest first.
    recent: [u32; 3],
    reported: usize,
}

impl Blocks {
    fn has(&self, seq: u32) -> bool {
        self.here[seq as usize & (self.here.len() - 1)]
    }

    fn reserve(&mut self, expected: u32, seq: u32) {
        // One slot more than needed on each side, so that neighbours never alias.
        let wanted = (seq - expected) as usize + 3;
        if wanted <= self.here.len() {
            return;
        }
        let size = wanted.next_power_of_two().max(64);
        let old = std::mem::take(self);
        self.here = vec![false; size];
        self.other = vec![0; size];
        (self.count, self.recent, self.reported) = (old.count, old.recent, old.reported);
        for offset in 0..old.here.len() {
            let seq = expected.wrapping_add(offset as u32);
            let from = seq as usize & (old.here.len() - 1);
            let to = seq as usize & (size - 1);
            self.here[to] = old.here[from];
            self.other[to] = old.other[from];
        }
    }

    /// Adds a packet above `expected`.
    fn add(&mut self, expected: u32, seq: u32) {
        self.reserve(expected, seq);
        if self.has(seq) {
            return;
        }
        let mask = self.here.len() - 1;
        let first = if self.has(seq - 1) { self.other[(seq - 1) as usize & mask] } else { seq };
        let last = if self.has(seq + 1) { self.other[(seq + 1) as usize & mask] } else { seq };
        self.here[seq as usize & mask] = true;
        self.other[first as usize & mask] = last;
        self.other[last as usize & mask] = first;
        self.count += 1;
        self.refresh(first);
    }

    /// Takes the block that starts at `expected`, if it is here; returns the new `expected`.
    fn release(&mut self, expected: u32) -> u32 {
        if self.count == 0 || !self.has(expected) {
            return expected;
        }
        let mask = self.here.len() - 1;
        let last = self.other[expected as usize & mask];
        for seq in expected..=last {
            self.here[seq as usize & mask] = false;
        }
        self.count -= last - expected + 1;
        last + 1
    }

    /// The blocks to report: the one that grew last comes first (RFC 2018 section 4).
    fn report(&mut self, expected: u32) -> ([(u32, u32); 3], u32) {
        let mut blocks = [(0, 0); 3];
        let mut count = 0;
        for place in 0..self.reported {
            let first = self.recent[place];
            // A block that was released or joined to its left neighbour is reported no more.
            if first > expected && self.has(first) && !self.has(first - 1) {
                self.recent[count] = first;
                let last = self.other[first as usize & (self.here.len() - 1)];
                blocks[count] = (first, last + 1);
                count += 1;
            }
        }
        self.reported = count;
        (blocks, count as u32)
    }

    /// Puts a block at the front of those to report.
    fn refresh(&mut self, first: u32) {
        let known = self.recent[..self.reported].iter().position(|&other| other == first);
        let place = known.unwrap_or_else(|| {
            self.reported = (self.reported + 1).min(self.recent.len());
            self.reported - 1
        });
        self.recent[..=place].rotate_right(1);
        self.recent[0] = first;
    }
}

pub(crate) struct Receiver {
    hop: u32,
    timer: usize,
    ack_size: u16,
    /// Packets that carry no data: the opening one.
    syn: u32,
    /// Counts the bytes of options as ns-2 does: those of the blocks alone.
    ns2: bool,
    sack: bool,
    ecn: bool,
    /// The clock's granularity, when timestamps are sent.
    stamps: Option<u64>,
    ack_delay: Option<u64>,
    expected: u32,
    blocks: Blocks,
    highest: u32,
    /// A packet that waits to be acknowledged, and until when.
    pending: Option<u64>,
    /// Flags of the packets that came since the last acknowledgement.
    news: u16,
    /// ECN echo is on until the sender has answered.
    echo: bool,
    recent_stamp: u32,
    /// Packets that arrived with a mark.
    pub marked: u64,
}

impl Receiver {
    pub fn new(tcp: &Tcp, clock: Clock, hop: u32, timer: usize) -> Self {
        Receiver {
            hop,
            timer,
            ack_size: tcp.ack as u16,
            syn: u32::from(tcp.syn),
            ns2: tcp.conventions != Conventions::Rfc,
            sack: tcp.recovery == Recovery::Sack,
            ecn: tcp.ecn,
            stamps: tcp.timestamps.map(|granularity| clock.ticks(granularity.as_nanos()).max(1)),
            ack_delay: tcp.delayed_acks.then_some(clock.ticks(tcp.ack_delay.as_nanos())),
            expected: 0,
            blocks: Blocks::default(),
            highest: 0,
            pending: None,
            news: 0,
            echo: false,
            recent_stamp: 0,
            marked: 0,
        }
    }

    /// Data packets that arrived in order.
    pub fn delivered(&self) -> u64 {
        u64::from(self.expected.saturating_sub(self.syn))
    }

    /// A data packet arrived.
    #[inline(always)]
    pub fn data(&mut self, net: &mut Net, now: u64, packet: Packet) {
        if self.ecn {
            self.news |= packet.flags();
            self.marked += u64::from(packet.flags() & flags::CE != 0);
        }
        let seq = packet.seq();
        let in_order = seq == self.expected;
        if self.stamps.is_some() && seq <= self.expected {
            self.recent_stamp = packet.aux();
        }
        if in_order {
            self.expected += 1;
            if self.blocks.count > 0 {
                self.expected = self.blocks.release(self.expected);
            }
        } else if seq > self.expected {
            self.blocks.add(self.expected, seq);
        }
        let gapless = in_order && seq >= self.highest;
        self.highest = self.highest.max(seq);
        if let Some(delay) = self.ack_delay
            && gapless
            && self.pending.is_none()
            && packet.flags() & flags::SYN == 0
            && !(self.ns2 && seq == 0)
        {
            self.pending = Some(now + delay);
            net.arm(self.timer, now + delay);
            return;
        }
        self.pending = None;
        self.acknowledge(net, now);
    }

    /// The delayed-acknowledgement timer fired.
    pub fn wake(&mut self, net: &mut Net, now: u64) {
        match self.pending {
            Some(at) if at <= now => {
                self.pending = None;
                self.acknowledge(net, now);
            }
            Some(at) => net.arm(self.timer, at),
            None => {}
        }
    }

    #[inline(always)]
    fn acknowledge(&mut self, net: &mut Net, now: u64) {
        let blocks = self.sack && self.blocks.count > 0;
        let (aux, options) =
            if blocks || self.stamps.is_some() { self.extra(net, now, blocks) } else { (0, 0) };
        // A mark on any of the packets acknowledged together outlives the sender's answer to an
        // older one (RFC 3168 section 6.1.3).
        let news = std::mem::take(&mut self.news);
        self.echo = news & flags::CE != 0 || self.echo && news & flags::CWR == 0;
        let echo = if self.echo { flags::ECE } else { 0 };
        let size = self.ack_size + options;
        net.send(now, Packet::new(self.expected, self.hop, aux, size, flags::ACK | echo));
    }

    /// Puts selective acknowledgements and timestamps into the table of extras; tells where and how
    /// many bytes of options they take.
    #[cold]
    fn extra(&mut self, net: &mut Net, now: u64, blocks: bool) -> (u32, u16) {
        let mut extra = Extra::default();
        if blocks {
            (extra.blocks, extra.count) = self.blocks.report(self.expected);
        }
        if let Some(granularity) = self.stamps {
            extra.stamp = (now / granularity) as u32;
            extra.echo = self.recent_stamp;
        }
        let mut options = 8 * extra.count as u16;
        if !self.ns2 {
            // Kind and length of the option, padded (RFC 2018 section 3); timestamps (RFC 7323).
            options += if extra.count > 0 { 4 } else { 0 };
            options += if self.stamps.is_some() { 12 } else { 0 };
        }
        (net.extras[self.timer / TIMERS].put(extra), options)
    }
}
