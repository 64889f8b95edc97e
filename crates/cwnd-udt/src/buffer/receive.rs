//! The receive buffer: a ring buffer of payloads, a bitmap of the packets received, and the read
//! position.

use super::{INITIAL_SLOTS, Usage, resized, slots_for};
use crate::bitmap::Bitmap;
use crate::cast::{saturate16, to_index};
use crate::packet::Message;
use crate::seq::Seq;

/// The result of inserting a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// A new packet.
    New {
        /// The packet's number.
        at: u64,
        /// The number of packets directly before it that are newly missing.
        gap: u64,
    },
    /// Received or dropped before.
    Duplicate,
    /// Beyond the receive window, or larger than the largest payload.
    Refused,
}

#[derive(Clone, Debug)]
pub(crate) struct ReceiveBuffer {
    /// Payloads of up to `payload` bytes, `stride` bytes apart. The stride is 0 if all packets
    /// share one payload.
    bytes: Vec<u8>,
    payload: usize,
    stride: usize,
    mask: u64,
    /// The configured capacity in packets.
    capacity: u64,
    /// The current limit of packets held, at most `capacity`.
    limit: u64,
    initial: Seq,
    lengths: Vec<u16>,
    /// For a received packet its message field, for a missing packet the time of its last loss
    /// report in milliseconds.
    tags: Vec<u32>,
    /// Packets that were received or dropped.
    received: Bitmap,
    /// The first unread packet.
    read: u64,
    /// The first missing packet.
    next: u64,
    /// One past the highest received packet.
    highest: u64,
    /// Missing packets between `next` and `highest`.
    missing: u64,
    /// The number of bytes of packet `read` that were read.
    read_offset: usize,
    usage: Usage,
}

impl ReceiveBuffer {
    /// Creates a buffer for `packets` of up to `payload` bytes; with `shared` all packets share one
    /// payload.
    pub(crate) fn new(packets: u32, (payload, shared): (usize, bool), initial: Seq) -> Self {
        let max_slots = slots_for(packets);
        let slots = max_slots.min(INITIAL_SLOTS);
        let count = slots as usize;
        let (stride, payload_slots) = if shared { (0, 1) } else { (payload, count) };
        ReceiveBuffer {
            bytes: vec![0; payload_slots * payload],
            payload,
            stride,
            mask: slots - 1,
            capacity: u64::from(packets),
            limit: u64::from(packets),
            initial,
            lengths: vec![0; count],
            tags: vec![0; count],
            received: Bitmap::new(max_slots),
            read: 0,
            next: 0,
            highest: 0,
            missing: 0,
            read_offset: 0,
            usage: Usage::default(),
        }
    }

    /// Grows the ring buffer to hold the packets before `end`.
    #[cold]
    fn grow(&mut self, end: u64) {
        if end - self.read > self.mask + 1 {
            self.resize((end - self.read).next_power_of_two());
        }
    }

    #[cold]
    fn resize(&mut self, slots: u64) {
        let held = (self.read, self.highest);
        if self.stride > 0 {
            self.bytes = resized(&self.bytes, self.stride, slots, held);
        }
        self.lengths = resized(&self.lengths, 1, slots, held);
        self.tags = resized(&self.tags, 1, slots, held);
        self.mask = slots - 1;
    }

    #[inline]
    fn index(&self, at: u64) -> usize {
        to_index(at & self.mask)
    }

    /// The first unread packet.
    pub(crate) fn read(&self) -> u64 {
        self.read
    }

    /// The first missing packet.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// One past the highest received packet.
    #[inline]
    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    /// The number of missing packets before the highest received one.
    #[inline]
    pub(crate) fn missing(&self) -> u64 {
        self.missing
    }

    /// One past the last packet of the receive window.
    pub(crate) fn end(&self) -> u64 {
        self.read + self.limit
    }

    /// The receive window to advertise: the number of packets from [`next`](Self::next) on that fit
    /// into the buffer.
    pub(crate) fn available(&self) -> u64 {
        self.end() - self.next
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Limits the number of packets held; `None` restores the full capacity.
    pub(crate) fn set_limit(&mut self, packets: Option<u32>) {
        self.limit = packets.map_or(self.capacity, |packets| self.capacity.min(packets.into()));
    }

    /// Whether the buffer is full and stays full until data is read.
    pub(crate) fn is_full(&self) -> bool {
        self.limit == self.capacity && self.available() == 0
    }

    /// The bytes of user data in a full packet.
    pub(crate) fn payload(&self) -> usize {
        self.payload
    }

    /// The sequence number of packet `at`.
    pub(crate) fn seq(&self, at: u64) -> Seq {
        self.initial.plus(at)
    }

    /// The packet with sequence number `seq`; `None` if it precedes the first packet.
    #[inline]
    pub(crate) fn packet_of(&self, seq: Seq) -> Option<u64> {
        self.next.checked_add_signed(i64::from(self.seq(self.next).to(seq)))
    }

    /// Inserts a received packet.
    #[inline]
    pub(crate) fn insert(&mut self, seq: Seq, message: Message, payload: &[u8]) -> Arrival {
        let Some(at) = self.packet_of(seq) else { return Arrival::Duplicate };
        if at < self.next {
            return Arrival::Duplicate;
        }
        if at >= self.end() || payload.len() > self.payload {
            return Arrival::Refused;
        }
        if !self.received.set(at) {
            return Arrival::Duplicate;
        }
        if at - self.read > self.mask {
            self.grow(at + 1);
        }
        let index = self.index(at);
        let from = index * self.stride;
        self.bytes[from..from + payload.len()].copy_from_slice(payload);
        self.lengths[index] = saturate16(payload.len());
        self.tags[index] = message.0;
        let gap = self.extend_to(at, at + 1);
        if gap == 0 && at + 1 < self.highest {
            self.missing -= 1;
        }
        self.advance();
        Arrival::New { at, gap }
    }

    /// Raises `highest` to `end`. Marks the packets from the old value to `at` as missing and
    /// returns their number.
    fn extend_to(&mut self, at: u64, end: u64) -> u64 {
        if end <= self.highest {
            return 0;
        }
        let gap = at.saturating_sub(self.highest);
        for missing in self.highest..at {
            let index = self.index(missing);
            self.tags[index] = 0;
        }
        self.missing += gap;
        self.highest = end;
        gap
    }

    #[inline]
    fn advance(&mut self) {
        if self.missing == 0 {
            self.next = self.highest;
        } else if let Some(next) = self.received.next_clear(self.next, self.highest) {
            self.next = next;
        }
    }

    /// Drops the missing packets in `from..to`: they count as received, empty, and neither first
    /// nor last of a message. Returns the number of newly missing packets before `from`.
    pub(crate) fn drop_missing(&mut self, from: u64, to: u64) -> u64 {
        let (from, to) = (from.max(self.next), to.min(self.end()));
        if from >= to {
            return 0;
        }
        self.grow(to);
        let known = self.highest;
        let gap = self.extend_to(from, to);
        let mut at = from;
        while let Some(absent) = self.received.next_clear(at, to) {
            self.received.set(absent);
            let index = self.index(absent);
            self.lengths[index] = 0;
            self.tags[index] = 0;
            self.missing -= u64::from(absent < known);
            at = absent + 1;
        }
        self.advance();
        gap
    }

    /// The first hole in `from..highest`: a range of missing packets.
    pub(crate) fn hole(&self, from: u64) -> Option<(u64, u64)> {
        let first = self.received.next_clear(from.max(self.next), self.highest)?;
        Some((first, self.received.next_set(first, self.highest).unwrap_or(self.highest)))
    }

    /// The time of the last loss report for the missing packet `at` in milliseconds; 0 if it was
    /// not reported.
    pub(crate) fn reported(&self, at: u64) -> u32 {
        self.tags[self.index(at)]
    }

    pub(crate) fn set_reported(&mut self, at: u64, millis: u32) {
        let index = self.index(at);
        self.tags[index] = millis;
    }

    /// Whether packet `at` was received or dropped.
    pub(crate) fn is_received(&self, at: u64) -> bool {
        self.received.get(at)
    }

    /// The message field of a received packet.
    pub(crate) fn message(&self, at: u64) -> Message {
        Message(self.tags[self.index(at)])
    }

    /// The payload of a received packet.
    pub(crate) fn bytes(&self, at: u64) -> &[u8] {
        let index = self.index(at);
        let from = index * self.stride;
        &self.bytes[from..from + usize::from(self.lengths[index])]
    }

    /// The next contiguous bytes of the stream; empty if none are available.
    pub(crate) fn peek(&mut self) -> &[u8] {
        self.skip_empty();
        if self.read < self.next { &self.bytes(self.read)[self.read_offset..] } else { &[] }
    }

    fn skip_empty(&mut self) {
        while self.read < self.next && self.bytes(self.read).is_empty() {
            self.free_to(self.read + 1);
        }
    }

    /// Whether the stream has bytes to read.
    pub(crate) fn is_readable(&mut self) -> bool {
        self.skip_empty();
        self.read < self.next
    }

    /// Advances the read position by `count` bytes.
    pub(crate) fn consume(&mut self, mut count: usize) {
        while self.read < self.next {
            let left = usize::from(self.lengths[self.index(self.read)]) - self.read_offset;
            if count < left {
                self.read_offset += count;
                return;
            }
            count -= left;
            self.read_offset = 0;
            self.free_to(self.read + 1);
        }
    }

    /// Copies the next bytes of the stream to `out` and returns their number.
    pub(crate) fn copy_to(&mut self, out: &mut [u8]) -> usize {
        let mut copied = 0;
        while copied < out.len() && self.read < self.next {
            let part = &self.bytes(self.read)[self.read_offset..];
            let count = part.len().min(out.len() - copied);
            out[copied..copied + count].copy_from_slice(&part[..count]);
            copied += count;
            if self.read_offset + count < self.bytes(self.read).len() {
                self.read_offset += count;
            } else {
                self.read_offset = 0;
                self.free_to(self.read + 1);
            }
        }
        copied
    }

    /// Frees the packets before `at`, all of which were received or dropped.
    pub(crate) fn free_to(&mut self, at: u64) {
        self.received.clear_range(self.read, at);
        let held = self.highest.max(at) - self.read;
        let spare = self.usage.release(held, (self.read, at), self.mask);
        self.read = at;
        if spare {
            self.resize(self.mask.div_ceil(2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NONE: Message = Message(0);

    /// The byte that fills packet `at`.
    fn byte_of(at: u64) -> u8 {
        (at & 0xff) as u8
    }

    fn put(buffer: &mut ReceiveBuffer, at: u64) -> Arrival {
        buffer.insert(Seq::MAX.plus(at), NONE, &[byte_of(at); 3])
    }

    #[test]
    fn holes_open_and_close() {
        let mut buffer = ReceiveBuffer::new(8, (4, false), Seq::MAX);
        assert_eq!(put(&mut buffer, 0), Arrival::New { at: 0, gap: 0 });
        assert_eq!(put(&mut buffer, 3), Arrival::New { at: 3, gap: 2 });
        assert_eq!(put(&mut buffer, 3), Arrival::Duplicate);
        assert_eq!(put(&mut buffer, 5), Arrival::New { at: 5, gap: 1 });
        assert_eq!(put(&mut buffer, 8), Arrival::Refused);
        assert_eq!(
            (buffer.hole(0), buffer.hole(3), buffer.missing()),
            (Some((1, 3)), Some((4, 5)), 3)
        );
        assert_eq!(put(&mut buffer, 1), Arrival::New { at: 1, gap: 0 });
        assert_eq!((buffer.next(), buffer.missing(), buffer.highest()), (2, 2, 6));
        assert_eq!(buffer.drop_missing(2, 3), 0);
        assert_eq!((buffer.next(), buffer.missing()), (4, 1));
        let mut out = [0; 20];
        assert_eq!(buffer.copy_to(&mut out[..4]), 4);
        assert_eq!(buffer.peek(), [1, 1]);
        buffer.consume(1);
        assert_eq!(buffer.copy_to(&mut out), 4);
        assert_eq!(out[..4], [1, 3, 3, 3]);
        assert_eq!((buffer.read(), buffer.available()), (4, 8));
        assert_eq!(put(&mut buffer, 4), Arrival::New { at: 4, gap: 0 });
        assert_eq!((buffer.next(), buffer.missing(), buffer.hole(0)), (6, 0, None));
    }

    #[test]
    fn dropped_packets_at_the_end_advance_the_window() {
        let mut buffer = ReceiveBuffer::new(8, (4, false), Seq::new(0));
        buffer.insert(Seq::new(0), NONE, &[1]);
        assert_eq!(buffer.drop_missing(2, 100), 1);
        assert_eq!((buffer.next(), buffer.highest(), buffer.missing()), (1, 8, 1));
        buffer.insert(Seq::new(1), NONE, &[2]);
        assert_eq!((buffer.next(), buffer.missing()), (8, 0));
    }

    #[test]
    fn shared_payloads_are_stored_once() {
        let mut buffer = ReceiveBuffer::new(600, (4, true), Seq::MAX);
        put_same(&mut buffer, 500, 4);
        put_same(&mut buffer, 0, 2);
        assert_eq!(buffer.peek(), [9, 9]);
        buffer.consume(2);
        (1..500).for_each(|at| put_same(&mut buffer, at, 3));
        assert_eq!((buffer.next(), buffer.bytes.len()), (501, 4));
        let mut out = [0; 2000];
        assert_eq!(buffer.copy_to(&mut out), 499 * 3 + 4);
        assert!(out[..499 * 3 + 4].iter().all(|byte| *byte == 9));
    }

    fn put_same(buffer: &mut ReceiveBuffer, at: u64, length: usize) {
        buffer.insert(Seq::MAX.plus(at), NONE, &[9; 4][..length]);
    }

    /// The ring buffer does not stay large after one late read.
    #[test]
    fn the_buffer_shrinks_when_it_is_read() {
        let mut buffer = ReceiveBuffer::new(4096, (4, false), Seq::MAX);
        let (mut at, mut out) = (0, [0; 5000 * 3]);
        let mut arrive = |buffer: &mut ReceiveBuffer, packets: u64| {
            for packet in at..at + packets {
                put(buffer, packet);
            }
            at += packets;
        };
        arrive(&mut buffer, 3000);
        assert_eq!(buffer.mask + 1, 4096);
        assert_eq!(buffer.copy_to(&mut out), 9000);
        for round in 0..500 {
            arrive(&mut buffer, 50);
            assert_eq!(buffer.copy_to(&mut out), 150);
            let first = 3000 + 50 * round;
            assert!(
                (0..150).all(|byte| out[byte] == byte_of((first + byte / 3) as u64)),
                "{round}"
            );
        }
        assert_eq!(buffer.mask + 1, INITIAL_SLOTS);
    }

    proptest! {
        /// The stream does not depend on the order of arrival, and the missing count agrees with
        /// the holes.
        #[test]
        fn packets_in_any_order_give_the_stream(order in prop::collection::vec(0u64..600, 0..300)) {
            // The buffer must grow for packets that arrive far ahead.
            let mut buffer = ReceiveBuffer::new(600, (4, false), Seq::MAX);
            let mut out = Vec::new();
            for at in order.into_iter().chain(0..600) {
                put(&mut buffer, at);
                let (mut from, mut missing) = (0, 0);
                while let Some((first, end)) = buffer.hole(from) {
                    missing += end - first;
                    from = end;
                }
                prop_assert_eq!(missing, buffer.missing());
                let mut chunk = [0; 7];
                let count = buffer.copy_to(&mut chunk);
                out.extend_from_slice(&chunk[..count]);
            }
            let mut rest = [0; 1800];
            let count = buffer.copy_to(&mut rest);
            out.extend_from_slice(&rest[..count]);
            let all: Vec<u8> = (0..600u64).flat_map(|at| [byte_of(at); 3]).collect();
            prop_assert_eq!(out, all);
        }
    }
}
