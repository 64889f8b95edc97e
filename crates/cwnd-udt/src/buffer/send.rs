//! The send buffer: a ring buffer of whole packets, header and payload. Consecutive packets are
//! contiguous in memory and are passed to the system without a copy.

use super::{INITIAL_SLOTS, Usage, resized, slots_for};
use crate::bitmap::Bitmap;
use crate::cast::{saturate16, to_index};
use crate::packet::{HEADER, Message, word, write_data_header};
use crate::seq::{MessageNo, Seq};
use cwnd::Time;
use std::ops::Range;

#[derive(Clone, Debug)]
pub(crate) struct SendBuffer {
    /// Packets of `size` bytes, `stride` bytes apart. The stride is 0 if all packets share one
    /// payload.
    bytes: Vec<u8>,
    size: usize,
    stride: usize,
    mask: u64,
    /// The configured capacity in packets.
    limit: u64,
    initial: Seq,
    next_message: MessageNo,
    messages: Vec<u32>,
    lengths: Vec<u16>,
    /// The time of each packet's last transmission in nanoseconds.
    sent_at: Vec<u64>,
    /// The number of each packet's transmissions.
    sends: Vec<u8>,
    /// When each packet's message expires, in nanoseconds; 0 is never. Empty for a stream.
    expiries: Vec<u64>,
    /// The loss list: packets declared lost and not yet retransmitted.
    lost: Bitmap,
    /// Packets of dropped messages.
    dropped: Bitmap,
    lost_count: u64,
    dropped_count: u64,
    /// A lower bound of the first lost packet.
    lost_from: u64,
    /// The first unacknowledged packet.
    una: u64,
    /// The first packet not sent.
    next: u64,
    /// One past the last packet written.
    end: u64,
    /// Bytes of user data from `una` on.
    unacknowledged_bytes: u64,
    /// The recent maximum of the outstanding packets. It decays by a sixteenth each round trip. A
    /// decay with each acknowledgement would reduce it too much after a repair, when few packets
    /// are outstanding.
    peak: u64,
    /// The round trip ends when this packet is acknowledged.
    round_end: u64,
    usage: Usage,
}

/// The smallest number of packets that a stream queues if the application writes enough.
const MIN_QUEUE: u64 = 512;

impl SendBuffer {
    /// Creates a buffer for `packets` of `payload` bytes; with `shared` all packets share one
    /// payload.
    pub(crate) fn new(
        packets: u32,
        (payload, shared): (usize, bool),
        initial: Seq,
        messages: bool,
    ) -> Self {
        let max_slots = slots_for(packets);
        let slots = max_slots.min(INITIAL_SLOTS);
        let (count, size) = (slots as usize, HEADER + payload);
        let (stride, payload_slots) = if shared { (0, 1) } else { (size, count) };
        SendBuffer {
            bytes: vec![0; payload_slots * size],
            size,
            stride,
            mask: slots - 1,
            limit: u64::from(packets),
            initial,
            next_message: MessageNo::FIRST,
            messages: vec![0; count],
            lengths: vec![0; count],
            sent_at: vec![0; count],
            sends: vec![0; count],
            expiries: if messages { vec![0; count] } else { Vec::new() },
            lost: Bitmap::new(max_slots),
            dropped: Bitmap::new(if messages { max_slots } else { 64 }),
            lost_count: 0,
            dropped_count: 0,
            lost_from: 0,
            una: 0,
            next: 0,
            end: 0,
            unacknowledged_bytes: 0,
            peak: 0,
            round_end: 0,
            usage: Usage::default(),
        }
    }

    /// Whether a data packet with exactly this header is outstanding.
    pub(crate) fn is_outstanding(&self, header: &[u8; HEADER]) -> bool {
        let seq = word(header, 0);
        let at = (seq >> 31 == 0).then(|| self.packet_of(Seq::new(seq))).flatten();
        at.is_some_and(|at| {
            (self.una..self.next).contains(&at) && self.datagrams(at, 1).starts_with(header)
        })
    }

    #[cold]
    fn resize(&mut self, slots: u64) {
        let held = (self.una, self.end);
        if self.stride > 0 {
            self.bytes = resized(&self.bytes, self.stride, slots, held);
        }
        self.messages = resized(&self.messages, 1, slots, held);
        self.lengths = resized(&self.lengths, 1, slots, held);
        self.sent_at = resized(&self.sent_at, 1, slots, held);
        self.sends = resized(&self.sends, 1, slots, held);
        self.expiries = resized(&self.expiries, 1, slots, held);
        self.mask = slots - 1;
    }

    /// The number of packets to queue now: for a stream, enough to keep the path busy.
    fn target_len(&self) -> u64 {
        if self.expiries.is_empty() {
            self.limit.min(MIN_QUEUE + 2 * self.peak)
        } else {
            self.limit
        }
    }

    #[inline]
    fn index(&self, at: u64) -> usize {
        to_index(at & self.mask)
    }

    fn payload(&self) -> usize {
        self.size - HEADER
    }

    #[inline]
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The number of packets sent and not acknowledged.
    #[inline]
    pub(crate) fn outstanding(&self) -> u64 {
        self.next - self.una
    }

    /// The number of outstanding packets of dropped messages, which are not in flight.
    #[inline]
    pub(crate) fn dropped_count(&self) -> u64 {
        self.dropped_count
    }

    pub(crate) fn lost_count(&self) -> u64 {
        self.lost_count
    }

    /// Bytes written and not acknowledged.
    pub(crate) fn unacknowledged_bytes(&self) -> u64 {
        self.unacknowledged_bytes
    }

    /// The free space in bytes.
    pub(crate) fn room(&self) -> usize {
        to_index(self.target_len().saturating_sub(self.end - self.una))
            .saturating_mul(self.payload())
    }

    /// The free space in bytes at which a blocked writer is woken.
    pub(crate) fn wake_threshold(&self) -> usize {
        to_index((self.target_len() / 4).max(1)).saturating_mul(self.payload())
    }

    /// The capacity in bytes.
    pub(crate) fn capacity(&self) -> usize {
        to_index(self.limit).saturating_mul(self.payload())
    }

    /// The sequence number of packet `at`.
    #[inline]
    pub(crate) fn seq(&self, at: u64) -> Seq {
        self.initial.plus(at)
    }

    /// The packet with sequence number `seq`, which is within half of the sequence space of the
    /// first unacknowledged one. `None` if it precedes the first packet of the connection.
    #[inline]
    pub(crate) fn packet_of(&self, seq: Seq) -> Option<u64> {
        self.una.checked_add_signed(i64::from(self.seq(self.una).to(seq)))
    }

    /// The time of the last transmission of packet `at`.
    #[inline]
    pub(crate) fn sent_at(&self, at: u64) -> Time {
        Time::from_nanos(self.sent_at[self.index(at)])
    }

    #[inline]
    pub(crate) fn sends(&self, at: u64) -> u8 {
        self.sends[self.index(at)]
    }

    /// Appends to the stream and returns the number of bytes written. The last packet is filled
    /// until it is sent.
    pub(crate) fn write(&mut self, mut data: &[u8]) -> usize {
        let before = data.len();
        if self.end > self.next {
            let index = self.index(self.end - 1);
            let length = usize::from(self.lengths[index]);
            let count = data.len().min(self.payload() - length);
            let from = index * self.stride + HEADER + length;
            self.bytes[from..from + count].copy_from_slice(&data[..count]);
            self.lengths[index] = saturate16(length + count);
            data = &data[count..];
        }
        let target_len = self.target_len();
        while !data.is_empty() && self.end - self.una < target_len {
            let count = data.len().min(self.payload());
            let message = Message::new(self.next_message, true, true, false);
            self.push(&data[..count], message, 0);
            self.next_message = self.next_message.next();
            data = &data[count..];
        }
        let written = before - data.len();
        self.unacknowledged_bytes += written as u64;
        written
    }

    /// Appends a message, for which there must be room. It expires at the time `expiry` in
    /// nanoseconds; 0 is never.
    pub(crate) fn write_message(&mut self, data: &[u8], in_order: bool, expiry: u64) {
        let count = data.len().div_ceil(self.payload());
        for (n, part) in data.chunks(self.payload()).enumerate() {
            let message = Message::new(self.next_message, n == 0, n + 1 == count, in_order);
            self.push(part, message, expiry);
        }
        self.unacknowledged_bytes += data.len() as u64;
        self.next_message = self.next_message.next();
    }

    fn push(&mut self, part: &[u8], message: Message, expiry: u64) {
        if self.end - self.una > self.mask {
            self.resize(2 * (self.mask + 1));
        }
        let index = self.index(self.end);
        let from = index * self.stride + HEADER;
        self.bytes[from..from + part.len()].copy_from_slice(part);
        self.lengths[index] = saturate16(part.len());
        self.messages[index] = message.0;
        self.sends[index] = 0;
        if let Some(slot) = self.expiries.get_mut(index) {
            *slot = expiry;
        }
        self.end += 1;
    }

    /// The first lost packet.
    #[inline]
    pub(crate) fn first_lost(&mut self) -> Option<u64> {
        if self.lost_count == 0 {
            return None;
        }
        self.lost_from = self.lost.next_set(self.lost_from.max(self.una), self.next)?;
        Some(self.lost_from)
    }

    #[inline]
    pub(crate) fn is_lost(&self, at: u64) -> bool {
        self.lost.get(at)
    }

    /// Marks a sent packet as lost. Returns false if it was marked before.
    pub(crate) fn mark_lost(&mut self, at: u64) -> bool {
        let fresh = self.lost.set(at);
        self.lost_count += u64::from(fresh);
        self.lost_from = self.lost_from.min(at);
        fresh
    }

    /// Acknowledges all packets before `at`.
    pub(crate) fn acknowledge(&mut self, at: u64) {
        if at > self.round_end {
            self.peak -= self.peak / 16;
            self.round_end = self.next;
        }
        self.peak = self.peak.max(self.outstanding());
        self.lost_count -= self.lost.clear_range(self.una, at);
        if self.dropped_count > 0 {
            self.dropped_count -= self.dropped.clear_range(self.una, at);
        }
        let spare = self.usage.release(self.end - self.una, (self.una, at), self.mask);
        while self.una < at {
            self.unacknowledged_bytes -= u64::from(self.lengths[self.index(self.una)]);
            self.una += 1;
        }
        if spare {
            self.resize(self.mask.div_ceil(2));
        }
    }

    /// Whether the message of packet `at` has expired.
    #[inline]
    pub(crate) fn is_expired(&self, at: u64, now: Time) -> bool {
        let Some(&expiry) = self.expiries.get(self.index(at)) else { return false };
        expiry != 0 && (expiry < now.as_nanos() || self.dropped.get(at))
    }

    /// Drops the message of packet `at`, from its first unacknowledged packet to its last packet
    /// before `edge`. Returns its number, its packets, and whether it was not dropped before.
    pub(crate) fn drop_message(
        &mut self,
        now: Time,
        at: u64,
        edge: u64,
    ) -> (MessageNo, Range<u64>, bool) {
        let number = |buffer: &Self, at| Message(buffer.messages[buffer.index(at)]).number();
        let message = number(self, at);
        let (mut first, mut last) = (at, at);
        while first > self.una && number(self, first - 1) == message {
            first -= 1;
        }
        let end = self.end.min(edge.max(self.next));
        while last + 1 < end && number(self, last + 1) == message {
            last += 1;
        }
        let fresh = self.dropped.set_range(first, last + 1);
        self.dropped_count += fresh;
        for at in first..=last {
            let index = self.index(at);
            self.sent_at[index] = now.as_nanos();
        }
        self.lost_count -= self.lost.clear_range(first, last + 1);
        self.next = self.next.max(last + 1);
        (message, first..last + 1, fresh > 0)
    }

    /// The length of packet `at` in bytes, header included.
    #[inline]
    pub(crate) fn size(&self, at: u64) -> usize {
        HEADER + usize::from(self.lengths[self.index(at)])
    }

    /// Whether packet `at` follows the previous packet in memory.
    #[inline]
    pub(crate) fn follows(&self, at: u64) -> bool {
        at & self.mask != 0 && self.stride > 0
    }

    /// Whether packet `at` is full.
    #[inline]
    pub(crate) fn is_full(&self, at: u64) -> bool {
        self.size(at) == self.size
    }

    /// Writes the header of packet `at` and records its transmission: a retransmission, or the next
    /// new packet.
    #[inline]
    pub(crate) fn send(
        &mut self,
        now: Time,
        at: u64,
        retransmission: bool,
        timestamp: u32,
        destination: u32,
    ) {
        let index = self.index(at);
        let from = index * self.stride;
        let seq = self.initial.plus(at);
        let header = &mut self.bytes[from..from + HEADER];
        write_data_header(seq, Message(self.messages[index]), timestamp, destination, header);
        self.sent_at[index] = now.as_nanos();
        self.sends[index] = self.sends[index].saturating_add(1);
        if retransmission {
            self.lost_count -= u64::from(self.lost.clear(at));
        } else {
            self.next = at + 1;
        }
    }

    /// The datagrams of `count` packets from `at`. They must be [contiguous](Self::follows), and
    /// all but the last full.
    pub(crate) fn datagrams(&self, at: u64, count: u64) -> &[u8] {
        let from = self.index(at) * self.stride;
        let before = to_index(count - 1) * self.stride;
        &self.bytes[from..from + before + self.size(at + count - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer() -> SendBuffer {
        SendBuffer::new(4, (10, false), Seq::MAX, true)
    }

    #[test]
    fn a_stream_fills_unsent_packets() {
        let mut buffer = SendBuffer::new(4, (10, false), Seq::MAX, false);
        assert_eq!(buffer.write(b"abcde"), 5);
        assert_eq!(buffer.write(b"fghijkl"), 7);
        assert_eq!(buffer.end(), 2);
        let now = Time::from_nanos(5);
        buffer.send(now, 0, false, 0, 0);
        buffer.send(now, 1, false, 0, 0);
        assert_eq!(&buffer.datagrams(0, 2)[HEADER..HEADER + 10], b"abcdefghij");
        assert_eq!(buffer.datagrams(1, 1).len(), HEADER + 2);
        assert_eq!((buffer.seq(0), buffer.seq(1)), (Seq::MAX, Seq::new(0)));
        assert_eq!(buffer.write(&[0; 100]), 20);
        assert_eq!((buffer.room(), buffer.unacknowledged_bytes()), (0, 32));
        buffer.acknowledge(1);
        assert_eq!(
            (buffer.room(), buffer.unacknowledged_bytes(), buffer.outstanding()),
            (10, 22, 1)
        );
        assert_eq!(buffer.packet_of(Seq::new(1)), Some(2));
        assert_eq!(buffer.packet_of(Seq::MAX), Some(0));
        assert_eq!(buffer.packet_of(Seq::new(5).plus(1 << 30)), None);
    }

    #[test]
    fn lost_packets_are_found_in_order() {
        let mut buffer = buffer();
        buffer.write_message(&[1; 40], true, 0);
        for at in 0..4 {
            buffer.send(Time::ZERO, at, false, 0, 0);
        }
        assert!(buffer.mark_lost(2) && buffer.mark_lost(1) && !buffer.mark_lost(2));
        assert_eq!((buffer.first_lost(), buffer.lost_count()), (Some(1), 2));
        buffer.send(Time::ZERO, 1, true, 0, 0);
        assert_eq!(buffer.first_lost(), Some(2));
        buffer.acknowledge(3);
        assert_eq!((buffer.first_lost(), buffer.lost_count(), buffer.sends(1)), (None, 0, 2));
        assert!(buffer.mark_lost(3));
    }

    #[test]
    fn an_expired_message_is_dropped_as_a_whole() {
        let mut buffer = buffer();
        buffer.write_message(&[1; 10], true, 0);
        buffer.write_message(&[2; 25], true, 100);
        let now = Time::from_nanos(101);
        buffer.send(Time::ZERO, 0, false, 0, 0);
        buffer.send(Time::ZERO, 1, false, 0, 0);
        assert!(!buffer.is_expired(0, now) && buffer.is_expired(1, now));
        assert!(!buffer.is_expired(1, Time::from_nanos(100)));
        buffer.mark_lost(1);
        assert_eq!(buffer.drop_message(now, 1, 3), (MessageNo::new(2), 1..3, true));
        assert_eq!((buffer.next(), buffer.lost_count()), (3, 0));
        assert_eq!(buffer.drop_message(now, 3, 4), (MessageNo::new(2), 1..4, true));
        assert_eq!(buffer.drop_message(now, 2, 4), (MessageNo::new(2), 1..4, false));
    }

    /// When a repair arrives, a whole window is acknowledged at once. The stream must still be able
    /// to queue as much as before.
    #[test]
    fn a_repair_does_not_reduce_the_queue() {
        let mut buffer = SendBuffer::new(1 << 14, (10, false), Seq::MAX, false);
        let mut sent = 0;
        let mut send = |buffer: &mut SendBuffer, to: u64| {
            while sent < to {
                if buffer.end() == sent {
                    assert_eq!(buffer.write(&[0; 10]), 10, "no room for {sent}");
                }
                buffer.send(Time::ZERO, sent, false, 0, 0);
                sent += 1;
            }
        };
        for window in [500, 1400, 3200, 5000] {
            let to = buffer.next() + window;
            send(&mut buffer, to);
            buffer.acknowledge(to);
        }
        // The next packets are acknowledged one by one.
        let una = buffer.una();
        send(&mut buffer, una + 500);
        for at in 1..=500 {
            buffer.acknowledge(una + at);
        }
        send(&mut buffer, una + 5500);
    }

    /// Packets have separate headers and one payload.
    #[test]
    fn shared_payloads_are_stored_once() {
        let mut buffer = SendBuffer::new(4096, (10, true), Seq::MAX, false);
        for at in 0..500 {
            assert_eq!(buffer.write(&[7; 10]), 10);
            buffer.send(Time::ZERO, at, false, 0, 0);
            assert!(!buffer.follows(at));
        }
        assert_eq!((buffer.unacknowledged_bytes(), buffer.bytes.len()), (5000, HEADER + 10));
        buffer.mark_lost(5);
        buffer.send(Time::ZERO, 5, true, 0, 0);
        let packet = buffer.datagrams(5, 1);
        assert_eq!((&packet[..4], &packet[HEADER..]), (&[0, 0, 0, 4][..], &[7; 10][..]));
        assert_eq!(buffer.write(&[7; 3]), 3);
        assert_eq!(buffer.size(500), HEADER + 3);
    }

    /// A large ring buffer shrinks when few of its slots are used, and keeps its packets.
    #[test]
    fn the_buffer_shrinks() {
        let mut buffer = SendBuffer::new(4096, (10, false), Seq::MAX, false);
        let (mut sent, mut seen) = (0, 0);
        let mut burst = |buffer: &mut SendBuffer, packets: u64| {
            for at in sent..sent + packets {
                assert_eq!(buffer.write(&[(at & 0xff) as u8; 10]), 10);
                buffer.send(Time::ZERO, at, false, 0, 0);
            }
            sent += packets;
        };
        // The stream may queue more when more packets are outstanding.
        for packets in [500, 400, 300, 200] {
            burst(&mut buffer, packets);
            let una = buffer.una();
            buffer.acknowledge(una + 50);
        }
        let large = buffer.mask + 1;
        assert!(large >= 2048, "{large}");
        let all = buffer.next();
        buffer.acknowledge(all);
        for _ in 0..1000 {
            burst(&mut buffer, 50);
            let una = buffer.una();
            for at in una..una + 50 {
                assert_eq!(buffer.datagrams(at, 1)[HEADER..], [(at & 0xff) as u8; 10]);
                seen += 1;
            }
            buffer.acknowledge(una + 50);
        }
        assert_eq!((buffer.mask + 1, seen), (INITIAL_SLOTS, 50_000));
        assert_eq!(buffer.bytes.len() as u64, INITIAL_SLOTS * buffer.size as u64);
    }

    /// A ring buffer keeps its packets when it grows, and a stream queues a multiple of the
    /// outstanding packets.
    #[test]
    fn the_buffer_grows() {
        let mut buffer = SendBuffer::new(4096, (10, false), Seq::MAX, false);
        let data: Vec<u8> = (0..100_000u32).map(|n| (n & 0xff) as u8).collect();
        let (mut written, mut sent, mut seen) = (0, 0, Vec::new());
        while seen.len() < data.len() {
            written += buffer.write(&data[written..]);
            // The number of outstanding packets grows up to the buffer's limit.
            while sent < buffer.end() {
                buffer.send(Time::ZERO, sent, false, 0, 0);
                sent += 1;
            }
            let half = buffer.outstanding().div_ceil(2);
            for at in buffer.una()..buffer.una() + half {
                seen.extend_from_slice(&buffer.datagrams(at, 1)[HEADER..]);
            }
            assert!(buffer.outstanding() <= MIN_QUEUE + 2 * buffer.peak.max(1));
            buffer.acknowledge(buffer.una() + half);
        }
        assert_eq!(seen, data);
        assert!(buffer.mask > 1024, "{}", buffer.mask);
    }
}
