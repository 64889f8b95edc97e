//! The receiver: reassembly state and acknowledgements.

use crate::cast::{low32, saturate16, saturate32};
use crate::clock::Clock;
use crate::driver::Payload;
use crate::engine::net::{Net, TIMERS};
use crate::engine::schedule::NONE;
use crate::network::{Conventions, Recovery, Tcp};
use crate::packet::{Packet, flags};
use crate::tcp::accecn::Marks;
use crate::tcp::delayed_acks::DelayedAcks;
use crate::tcp::sender::{SYN_SIZE, stamps};
use std::num::NonZeroU64;

/// Packets received out of order, indexed by sequence number modulo the table's length. The first
/// slot of a block holds the block's last packet and the last slot its first packet, so that an
/// arrival takes constant time.
#[derive(Clone, Default)]
struct Blocks {
    /// For each packet, 0 if it is missing; for the first packet of a block the last one and vice
    /// versa.
    other: Vec<u32>,
    /// Packets in the table.
    count: u32,
    /// The first packets of the blocks reported last, most recent first.
    recent: [u32; 3],
    /// Number of blocks in `recent`.
    reported: u32,
}

impl Blocks {
    fn slot(&mut self, seq: u32) -> &mut u32 {
        let mask = self.other.len() - 1;
        &mut self.other[seq as usize & mask]
    }

    fn has(&self, seq: u32) -> bool {
        self.other[seq as usize & (self.other.len() - 1)] != 0
    }

    /// Whether packet `seq` above `expected` is in the table.
    fn holds(&self, expected: u32, seq: u32) -> bool {
        self.count > 0
            && seq > expected
            && (seq - expected) as usize + 3 <= self.other.len()
            && self.has(seq)
    }

    /// Whether a block begins with `first`, a packet that was the first of a block before.
    fn begins_block(&self, expected: u32, first: u32) -> bool {
        first > expected && self.has(first) && !self.has(first - 1)
    }

    fn reserve(&mut self, expected: u32, seq: u32) {
        // One spare slot on each side, so that neighbouring packets never share a slot.
        let wanted = (seq - expected) as usize + 3;
        if wanted <= self.other.len() {
            return;
        }
        let size = wanted.next_power_of_two().max(64);
        let old = std::mem::replace(&mut self.other, vec![0; size]);
        for offset in 0..saturate32(old.len()) {
            let seq = expected.wrapping_add(offset);
            *self.slot(seq) = old[seq as usize & (old.len() - 1)];
        }
    }

    /// Adds a packet above `expected`. Returns whether it was missing.
    fn add(&mut self, expected: u32, seq: u32) -> bool {
        self.reserve(expected, seq);
        if self.has(seq) {
            // RFC 2883 section 4: the block of a duplicate follows the report of the duplicate.
            for first in self.recent.into_iter().take(self.reported as usize) {
                if self.begins_block(expected, first) && (first..=*self.slot(first)).contains(&seq)
                {
                    self.refresh(first);
                    break;
                }
            }
            return false;
        }
        let (before, after) = (*self.slot(seq - 1), *self.slot(seq + 1));
        let first = if before != 0 { before } else { seq };
        let last = if after != 0 { after } else { seq };
        *self.slot(seq) = seq;
        *self.slot(first) = last;
        *self.slot(last) = first;
        self.count += 1;
        self.refresh(first);
        true
    }

    /// Removes the block that starts at `expected`, if there is one, and returns the new
    /// `expected`.
    fn release(&mut self, expected: u32) -> u32 {
        if self.count == 0 || !self.has(expected) {
            return expected;
        }
        let last = *self.slot(expected);
        for seq in expected..=last {
            *self.slot(seq) = 0;
        }
        self.count -= last - expected + 1;
        last + 1
    }

    /// Returns the blocks to report and their number. The block of the most recent packet comes
    /// first (RFC 2018 section 4).
    fn report(&mut self, expected: u32) -> ([(u32, u32); 3], u32) {
        let mut blocks = [(0, 0); 3];
        let mask = self.other.len().wrapping_sub(1);
        let other = |seq: u32| self.other.get(seq as usize & mask).copied().unwrap_or(0);
        let mut count = 0;
        for (place, first) in self.recent.into_iter().enumerate() {
            let last = other(first);
            // Skip blocks that were removed or merged with the block below.
            let begins = first > expected && last != 0 && other(first - 1) == 0;
            if begins && place < self.reported as usize {
                self.recent[count] = first;
                blocks[count] = (first, last + 1);
                count += 1;
            }
        }
        self.reported = saturate32(count);
        (blocks, self.reported)
    }

    /// Whether a packet above `expected` belongs to neither of the two blocks to report first.
    fn displaces(&mut self, expected: u32, seq: u32) -> bool {
        let (blocks, count) = self.report(expected);
        let first = &blocks[..count.min(2) as usize];
        first.len() == 2 && !first.iter().any(|&(start, end)| (start - 1..=end).contains(&seq))
    }

    /// Moves a block to the front of the blocks to report.
    fn refresh(&mut self, first: u32) {
        if self.reported > 0 && self.recent[0] == first {
            return;
        }
        let reported = self.reported as usize;
        let known = self.recent[..reported].iter().position(|&other| other == first);
        let place = known.unwrap_or_else(|| reported.min(self.recent.len() - 1));
        self.reported = self.reported.max(saturate32(place) + 1);
        self.recent[..=place].rotate_right(1);
        self.recent[0] = first;
    }
}

/// Whether a data packet has the CE codepoint.
#[inline(always)]
fn is_marked(packet: Packet) -> bool {
    packet.flags() & (flags::CE | flags::SYN) == flags::CE
}

/// Bytes of the options of a TCP header.
const OPTION_SPACE: u16 = 40;

/// The rules in which receivers differ.
#[derive(Clone, Copy, Default)]
struct Policy {
    /// Bytes of the SACK option without its blocks.
    sack_header: u8,
    /// Bytes of the timestamp option.
    timestamps: u8,
    /// Whether the rules are those of ns-2's `DelAckSink::recv`: the acknowledgement of a duplicate
    /// of the newest packet may be delayed, and not that of packet 0; CE on any of the packets
    /// acknowledged together takes precedence over CWR, whatever their order.
    del_ack_sink: bool,
}

impl Policy {
    /// Option sizes with padding (RFC 2018 section 3, RFC 7323 appendix A).
    const RFC: Policy = Policy { sack_header: 4, timestamps: 12, del_ack_sink: false };

    /// Options add only the bytes of SACK blocks.
    const NS2: Policy = Policy { sack_header: 0, timestamps: 0, del_ack_sink: true };

    fn of(conventions: Conventions) -> Self {
        match conventions {
            Conventions::Rfc | Conventions::Linux => Policy::RFC,
            Conventions::Ns2 | Conventions::Ns2001 => Policy::NS2,
        }
    }
}

/// What only some receivers have.
#[derive(Clone)]
struct Further {
    /// Whether duplicates are reported (DSACK, RFC 2883).
    dsack: bool,
    /// The duplicate to report.
    duplicate: Option<u32>,
    /// Linux's delays.
    delays: Option<DelayedAcks>,
    /// AccECN's counters.
    marks: Option<Marks>,
}

impl Further {
    fn new(tcp: &Tcp, clock: Clock) -> Option<Box<Self>> {
        let linux = tcp.conventions == Conventions::Linux && tcp.delayed_acks;
        let delays = linux.then(|| DelayedAcks::new(tcp, clock));
        let dsack = tcp.extensions.dsack;
        let marks = tcp.extensions.accecn.then(|| Marks::new(saturate16(tcp.header as usize)));
        (dsack || linux || marks.is_some())
            .then(|| Box::new(Further { dsack, duplicate: None, delays, marks }))
    }
}

/// A TCP receiver.
#[derive(Clone, Default)]
pub(crate) struct Receiver {
    blocks: Blocks,
    /// The timestamp granularity in ticks, if timestamps are used.
    stamps: Option<NonZeroU64>,
    /// The maximum delay of an acknowledgement; [`NONE`] without delayed acknowledgements.
    ack_delay: u64,
    further: Option<Box<Further>>,
    /// Deadline of the delayed acknowledgement; [`NONE`] if none is pending.
    pending: u64,
    /// Bytes of the packets received for the first time, with headers, and the time of the last
    /// one.
    bytes: u64,
    pub last_new: u64,
    /// Packets received.
    pub received: u64,
    /// CE-marked data packets received.
    pub marked: u32,
    /// Acknowledgements sent, modulo 2^32.
    pub acks_sent: u32,
    /// SYNs among the packets received.
    syns: u32,
    hop: u32,
    timer: u32,
    expected: u32,
    highest: u32,
    recent_stamp: u32,
    ack_size: u16,
    /// Bytes of headers in a data packet.
    pub header: u16,
    /// Flags of the packets received since the last acknowledgement, if their marks are merged.
    unacked_flags: u16,
    policy: Policy,
    sack: bool,
    /// Whether marks are echoed as in RFC 3168.
    ecn: bool,
    /// ECN echo is set until a packet with CWR arrives.
    echo: bool,
}

impl Receiver {
    pub(crate) fn new(tcp: &Tcp, clock: Clock, hop: u32, timer: usize) -> Self {
        Receiver {
            hop,
            timer: saturate32(timer),
            ack_size: saturate16(tcp.ack as usize),
            header: saturate16(tcp.header as usize),
            policy: Policy::of(tcp.conventions),
            sack: tcp.recovery == Recovery::Sack,
            ecn: tcp.ecn && !tcp.extensions.accecn,
            stamps: stamps(tcp, clock),
            ack_delay: if tcp.delayed_acks { clock.ticks(tcp.ack_delay.as_nanos()) } else { NONE },
            further: Further::new(tcp, clock),
            pending: NONE,
            ..Receiver::default()
        }
    }

    /// Data packets received, duplicates included.
    pub(crate) fn data_received(&self) -> u64 {
        self.received - u64::from(self.syns)
    }

    /// Data received for the first time, in any order.
    pub(crate) fn arrived(&self) -> Payload {
        let syns = u32::from(self.syns > 0);
        let packets = u64::from(self.expected - syns + self.blocks.count);
        let other = u64::from(self.header) * packets + u64::from(SYN_SIZE) * u64::from(syns);
        Payload { packets, bytes: self.bytes - other }
    }

    /// Counts a packet that is received for the first time.
    #[inline(always)]
    fn count(&mut self, now: u64, packet: Packet) {
        self.bytes += u64::from(packet.size());
        self.last_new = now;
    }

    /// Handles a data packet.
    #[inline(always)]
    pub(crate) fn data(&mut self, net: &mut Net, now: u64, packet: Packet) {
        if self.further.is_some() {
            self.receive::<true>(net, now, packet);
        } else {
            self.receive::<false>(net, now, packet);
        }
    }

    /// Handles a data packet. `FURTHER` is whether the receiver has `further`: most have not and
    /// need not test it repeatedly.
    #[inline(always)]
    fn receive<const FURTHER: bool>(&mut self, net: &mut Net, now: u64, packet: Packet) {
        self.received += 1;
        self.syns += u32::from(packet.flags() & flags::SYN != 0);
        let seq = packet.seq();
        let in_order = seq == self.expected;
        let pushed = in_order && packet.flags() & flags::PSH != 0;
        let at_once = FURTHER && (self.note(now, packet) | pushed);
        if self.ecn {
            self.marked += u32::from(is_marked(packet));
            if self.policy.del_ack_sink {
                self.unacked_flags |= packet.flags();
            } else {
                self.update_echo(packet.flags());
            }
        }
        // RFC 7323 section 4.3: an older timestamp is that of a packet that was overtaken.
        if self.stamps.is_some()
            && seq <= self.expected
            && packet.aux().wrapping_sub(self.recent_stamp).cast_signed() >= 0
        {
            self.recent_stamp = packet.aux();
        }
        let holes = self.blocks.count > 0;
        if in_order {
            self.count(now, packet);
            self.expected += 1;
            if holes {
                self.expected = self.blocks.release(self.expected);
            }
        } else if seq > self.expected {
            if FURTHER && self.must_report_blocks(seq) {
                self.acknowledge::<true>(net, now);
            }
            if self.blocks.add(self.expected, seq) {
                self.count(now, packet);
            }
        }
        let gapless = seq >= self.highest;
        self.highest = self.highest.max(seq);
        let further = if FURTHER { self.further.as_mut() } else { None };
        if let Some(delays) = further.and_then(|further| further.delays.as_mut()) {
            let cwr = self.ecn && packet.flags() & flags::CWR != 0;
            // RFC 5681 section 4.2: the acknowledgement of a packet that fills the last gap is sent
            // at once.
            let fills = holes && self.blocks.count == 0;
            if !fills
                && !cwr
                && !at_once
                && packet.flags() & flags::SYN == 0
                && let Some(delay) = delays.delay(self.expected, self.blocks.count > 0)
            {
                if self.pending == NONE {
                    self.pending = now + delay;
                    net.arm(self.timer as usize, self.pending);
                }
                return;
            }
        } else if self.ack_delay != NONE
            && gapless
            && (in_order || self.policy.del_ack_sink && seq + 1 == self.expected)
            && self.pending == NONE
            && !at_once
            && packet.flags() & flags::SYN == 0
            && (seq != 0 || !self.policy.del_ack_sink)
        {
            self.pending = now + self.ack_delay;
            net.arm(self.timer as usize, self.pending);
            return;
        }
        self.pending = NONE;
        self.acknowledge::<FURTHER>(net, now);
    }

    /// Updates what only some receivers have for a packet that arrives. Returns whether AccECN
    /// acknowledges the packet at once.
    #[inline(always)]
    fn note(&mut self, now: u64, packet: Packet) -> bool {
        let Some(further) = &mut self.further else { return false };
        let seq = packet.seq();
        let duplicate = seq < self.expected || self.blocks.holds(self.expected, seq);
        if duplicate && further.dsack {
            further.duplicate = Some(seq);
        }
        if let Some(delays) = &mut further.delays {
            if seq == self.expected {
                delays.received(now, packet.flags() & flags::SYN != 0);
            }
            if seq < self.expected {
                delays.duplicate();
            }
            let echoed = self.echo && packet.flags() & flags::CWR == 0;
            if self.ecn && packet.flags() & flags::CE != 0 && !echoed {
                delays.marked();
            }
        }
        let Some(marks) = &mut further.marks else { return false };
        self.marked += u32::from(is_marked(packet));
        marks.received(packet)
    }

    /// Returns whether packet `seq` would displace blocks of a waiting compressed SACK, which is
    /// then sent first: if two other blocks are more recent (`TCP_SACK_BLOCKS_EXPECTED` of Linux).
    #[cold]
    fn must_report_blocks(&mut self, seq: u32) -> bool {
        let delays = self.further.as_ref().and_then(|further| further.delays.as_ref());
        delays.is_some_and(DelayedAcks::compresses) && self.blocks.displaces(self.expected, seq)
    }

    /// Whether an acknowledgement is delayed.
    pub(super) fn ack_is_delayed(&self) -> bool {
        self.pending != NONE
    }

    /// Handles an expired delayed-acknowledgement timer.
    pub(crate) fn wake(&mut self, net: &mut Net, now: u64) {
        if self.pending <= now {
            self.pending = NONE;
            if let Some(further) = &mut self.further
                && let Some(delays) = &mut further.delays
            {
                delays.expired();
            }
            self.acknowledge::<true>(net, now);
        } else if self.pending != NONE {
            net.arm(self.timer as usize, self.pending);
        }
    }

    #[inline(always)]
    fn acknowledge<const FURTHER: bool>(&mut self, net: &mut Net, now: u64) {
        let mut blocks = self.sack && self.blocks.count > 0;
        let mut accecn = false;
        if FURTHER && let Some(further) = &mut self.further {
            blocks |= self.sack && further.duplicate.is_some();
            accecn = further.marks.is_some();
            if let Some(delays) = &mut further.delays {
                delays.acknowledged(self.expected);
            }
        }
        let (aux, options) = if blocks || self.stamps.is_some() || accecn {
            self.extra(net, now, blocks)
        } else {
            (0, 0)
        };
        if self.ecn && self.policy.del_ack_sink {
            let merged = std::mem::take(&mut self.unacked_flags);
            self.update_echo(merged);
        }
        let echo = if self.echo { flags::ECE } else { 0 };
        let size = self.ack_size + options;
        self.acks_sent = self.acks_sent.wrapping_add(1);
        net.send(now, Packet::new(self.expected, self.hop, aux, size, flags::ACK | echo));
    }

    /// Updates ECN echo by the flags of a packet, or of several that are merged. CWR ends the echo,
    /// and CE begins it: also CE on the packet with CWR, and on each later packet (RFC 3168 section
    /// 6.1.3).
    #[inline(always)]
    fn update_echo(&mut self, received: u16) {
        self.echo = received & flags::CE != 0 || self.echo && received & flags::CWR == 0;
    }

    /// Stores SACK blocks, timestamps and AccECN's feedback in the table of extras. Returns the
    /// index and the options' size in bytes.
    #[inline]
    fn extra(&mut self, net: &mut Net, now: u64, blocks: bool) -> (u32, u16) {
        let (number, extra) = net.extras[self.timer as usize / TIMERS].push();
        if blocks {
            (extra.blocks, extra.count) = self.blocks.report(self.expected);
            let further = self.further.as_mut();
            if let Some(seq) = further.and_then(|further| further.duplicate.take()) {
                // The duplicate comes first (RFC 2883 section 4).
                extra.blocks.rotate_right(1);
                extra.blocks[0] = (seq, seq + 1);
                extra.count = (extra.count + 1).min(3);
            }
        }
        if let Some(granularity) = self.stamps {
            extra.stamp = low32(now / granularity);
            extra.echo = self.recent_stamp;
        }
        let timestamps = if self.stamps.is_some() { self.policy.timestamps } else { 0 };
        let mut options = u16::from(timestamps);
        let marks = self.further.as_mut().and_then(|further| further.marks.as_mut());
        if let Some(marks) = marks {
            extra.accecn = marks.feedback();
            options += extra.accecn.and_then(|it| it.option).map_or(0, |option| option.size());
            // AccECN's option precedes the third SACK block (RFC 9768 section 3.2.3.3).
            let room = OPTION_SPACE.saturating_sub(options + u16::from(self.policy.sack_header));
            extra.count = extra.count.min(u32::from(room / 8));
        }
        if extra.count > 0 {
            options += u16::from(self.policy.sack_header) + 8 * saturate16(extra.count as usize);
        }
        (number, options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tap::Seen;
    use crate::network::Traffic;
    use crate::packet::SINK;
    use crate::scenario::Scenario;
    use proptest::prelude::*;
    use std::sync::{Arc, Mutex};

    /// The flags of the acknowledgements of packets that arrive in order, with the number of
    /// packets that had arrived before each. `tcp` is the table of the scenario; a packet has its
    /// flags and the nanoseconds since the one before.
    fn acknowledgements(tcp: &str, packets: &[(u16, u64)]) -> Vec<(u32, u16)> {
        let text = format!(
            "duration = 60\ntcp = {{ ecn = true, syn = false, {tcp} }}\n[dumbbell]\n\
             rate = \"1gbit\"\ndelay = \"1ms\"\n[[flow]]\ncontroller = \"reno\"\n"
        );
        let network = Scenario::from_toml(&text, "echo").unwrap().network(1).unwrap();
        let (mut net, hops) = Net::new(&network, 1, true).unwrap();
        let Traffic::Tcp(tcp) = &*network.flows[0].traffic else { panic!("not TCP") };
        let mut receiver = Receiver::new(tcp, net.clock, hops[0][SINK], SINK);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let watched = Arc::clone(&seen);
        let tap = move |one: &Seen| watched.lock().unwrap().push(one.packet);
        net.set_tap(network.flows[0].back[0], Box::new(tap));
        let mut now = 0;
        for (&(flags, gap), seq) in packets.iter().zip(0..) {
            now += net.clock.ticks(gap);
            if receiver.pending <= now {
                receiver.wake(&mut net, receiver.pending);
            }
            receiver.data(&mut net, now, Packet::new(seq, hops[0][0], 0, 1500, flags));
        }
        seen.lock().unwrap().iter().map(|ack| (ack.seq(), ack.flags())).collect()
    }

    proptest! {
        /// RFC 3168 section 6.1.3: ECN echo begins with CE and ends with CWR, in the order of the
        /// packets, also if one acknowledgement covers several.
        #[test]
        fn the_echo_ends_with_cwr_and_begins_with_ce(
            tcp in prop::sample::select(vec![
                "conventions = \"rfc\"",
                "conventions = \"rfc\", delayed_acks = false",
                "conventions = \"rfc5681\", recovery = \"newreno\"",
                "conventions = \"linux\"",
            ]),
            packets in prop::collection::vec(
                (prop::sample::select(vec![0, 0, flags::CE, flags::CWR, flags::CE | flags::CWR]), 0..100_000_000u64),
                1..60,
            ),
        ) {
            let acks = acknowledgements(tcp, &packets);
            prop_assert!(!acks.is_empty() || packets.len() == 1);
            for (covered, sent) in acks {
                let last = packets[..covered as usize].iter().rev().find(|packet| packet.0 != 0);
                let marked = last.is_some_and(|packet| packet.0 & flags::CE != 0);
                prop_assert_eq!(sent & flags::ECE != 0, marked, "{} packets", covered);
            }
        }
    }

    /// ns-2's `DelAckSink`: CE takes precedence over CWR, whatever their order.
    #[test]
    fn ns_2_merges_marks() {
        let tcp = "conventions = \"ns2\", delayed_acks = true";
        let packets =
            [(0, 0), (flags::CE, 1000), (flags::CWR, 1000), (0, 1000), (flags::CWR, 1000)];
        let echoes = acknowledgements(tcp, &packets);
        assert_eq!(
            echoes.iter().map(|ack| (ack.0, ack.1 & flags::ECE != 0)).collect::<Vec<_>>(),
            [(1, false), (3, true), (5, false)]
        );
    }

    /// RFC 2018 section 4, RFC 2883 section 4: the block of the packet that arrived last comes
    /// first, also if it is a duplicate.
    #[test]
    fn the_block_of_the_last_packet_comes_first() {
        let mut blocks = Blocks::default();
        for seq in [5, 6, 9, 12] {
            blocks.add(2, seq);
        }
        assert_eq!(blocks.report(2), ([(12, 13), (9, 10), (5, 7)], 3));
        blocks.add(2, 6);
        assert_eq!(blocks.report(2), ([(5, 7), (12, 13), (9, 10)], 3));
        blocks.add(2, 9);
        assert_eq!(blocks.report(2), ([(9, 10), (5, 7), (12, 13)], 3));
    }
}
