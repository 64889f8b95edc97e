//! The sender's ring of whole packets, header and payload: consecutive packets are one piece of memory and are passed
//! to the system without a copy.

use super::{FIRST_SLOTS, Usage, moved, slots_for};
use crate::bits::Bits;
use crate::cast::{saturate16, to_index};
use crate::packet::{HEADER, Message, write_data_header};
use crate::seq::{MessageNo, Seq};
use cwnd::Time;
use std::ops::Range;

#[derive(Clone, Debug)]
pub(crate) struct SendBuffer {
    /// Packets of `size` bytes, `stride` bytes apart: 0 if all share one slot.
    bytes: Vec<u8>,
    size: usize,
    stride: usize,
    mask: u64,
    /// Packets that may be held.
    limit: u64,
    initial: Seq,
    next_message: MessageNo,
    messages: Vec<u32>,
    lengths: Vec<u16>,
    /// When each packet was last sent, and the number of its transmissions.
    sent_at: Vec<u64>,
    sends: Vec<u8>,
    /// When each packet's message expires, in nanoseconds; 0 is never. Empty for a stream.
    expiries: Vec<u64>,
    lost: Bits,
    dropped: Bits,
    lost_count: u64,
    dropped_count: u64,
    /// No packet before this one is lost.
    lost_from: u64,
    /// The first packet not acknowledged, the first not sent, and one past the last written.
    una: u64,
    next: u64,
    end: u64,
    /// Bytes of user data from `una` on.
    held: u64,
    /// Maximum of the outstanding packets. It decays by a sixteenth each round trip, which ends when packet `round` is
    /// acknowledged. Decay by acknowledgement would lose the maximum after each repair, when few packets are
    /// outstanding.
    peak: u64,
    round: u64,
    usage: Usage,
}

/// The least number of packets queued for sending while the user has more.
const LEAST_QUEUE: u64 = 512;

impl SendBuffer {
    /// Creates a ring for `packets` of `payload` bytes; with `same` all share one payload.
    pub(crate) fn new(
        packets: u32,
        (payload, same): (usize, bool),
        initial: Seq,
        messages: bool,
    ) -> Self {
        let most = slots_for(packets);
        let slots = most.min(FIRST_SLOTS);
        let (count, size) = (slots as usize, HEADER + payload);
        let (stride, places) = if same { (0, 1) } else { (size, count) };
        SendBuffer {
            bytes: vec![0; places * size],
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
            lost: Bits::new(most),
            dropped: Bits::new(if messages { most } else { 64 }),
            lost_count: 0,
            dropped_count: 0,
            lost_from: 0,
            una: 0,
            next: 0,
            end: 0,
            held: 0,
            peak: 0,
            round: 0,
            usage: Usage::default(),
        }
    }

    /// Whether a data packet with exactly this header is outstanding.
    pub(crate) fn is_outstanding(&self, header: &[u8; HEADER]) -> bool {
        let [a, b, c, d, ..] = *header;
        let seq = u32::from_be_bytes([a, b, c, d]);
        let at = (seq >> 31 == 0).then(|| self.packet_of(Seq::new(seq))).flatten();
        at.is_some_and(|at| {
            (self.una..self.next).contains(&at) && self.datagrams(at, 1).starts_with(header)
        })
    }

    #[cold]
    fn resize(&mut self, slots: u64) {
        let held = (self.una, self.end);
        if self.stride > 0 {
            self.bytes = moved(&self.bytes, self.stride, slots, held);
        }
        self.messages = moved(&self.messages, 1, slots, held);
        self.lengths = moved(&self.lengths, 1, slots, held);
        self.sent_at = moved(&self.sent_at, 1, slots, held);
        self.sends = moved(&self.sends, 1, slots, held);
        self.expiries = moved(&self.expiries, 1, slots, held);
        self.mask = slots - 1;
    }

    /// Packets that the ring should hold now: for a stream as many as keep the path busy.
    fn wanted(&self) -> u64 {
        if self.expiries.is_empty() {
            self.limit.min(LEAST_QUEUE + 2 * self.peak)
        } else {
            self.limit
        }
    }

    #[inline]
    fn place(&self, at: u64) -> usize {
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

    /// Packets sent and not acknowledged.
    #[inline]
    pub(crate) fn outstanding(&self) -> u64 {
        self.next - self.una
    }

    /// Outstanding packets of dropped messages, which are not in flight.
    #[inline]
    pub(crate) fn dropped_count(&self) -> u64 {
        self.dropped_count
    }

    pub(crate) fn lost_count(&self) -> u64 {
        self.lost_count
    }

    /// Bytes written and not acknowledged.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// Bytes that can be written.
    pub(crate) fn room(&self) -> usize {
        to_index(self.wanted().saturating_sub(self.end - self.una)).saturating_mul(self.payload())
    }

    /// The least room in bytes for which a writer is woken.
    pub(crate) fn worthwhile(&self) -> usize {
        to_index((self.wanted() / 4).max(1)).saturating_mul(self.payload())
    }

    /// Capacity in bytes.
    pub(crate) fn capacity(&self) -> usize {
        to_index(self.limit).saturating_mul(self.payload())
    }

    /// The number on the wire of packet `at`.
    #[inline]
    pub(crate) fn seq(&self, at: u64) -> Seq {
        self.initial.plus(at)
    }

    /// The packet of a sequence number, which may be up to half the number space away from the first
    /// unacknowledged one.
    #[inline]
    pub(crate) fn packet_of(&self, seq: Seq) -> Option<u64> {
        self.una.checked_add_signed(i64::from(self.seq(self.una).to(seq)))
    }

    /// When packet `at` was last sent.
    #[inline]
    pub(crate) fn sent_at(&self, at: u64) -> Time {
        Time::from_nanos(self.sent_at[self.place(at)])
    }

    #[inline]
    pub(crate) fn sends(&self, at: u64) -> u8 {
        self.sends[self.place(at)]
    }

    /// Appends to the stream and returns the bytes taken. The last packet is filled up until it is sent.
    pub(crate) fn write(&mut self, mut data: &[u8]) -> usize {
        let before = data.len();
        if self.end > self.next {
            let place = self.place(self.end - 1);
            let length = usize::from(self.lengths[place]);
            let count = data.len().min(self.payload() - length);
            let from = place * self.stride + HEADER + length;
            self.bytes[from..from + count].copy_from_slice(&data[..count]);
            self.lengths[place] = saturate16(length + count);
            data = &data[count..];
        }
        let wanted = self.wanted();
        while !data.is_empty() && self.end - self.una < wanted {
            let count = data.len().min(self.payload());
            let message = Message::new(self.next_message, true, true, false);
            self.push(&data[..count], message, 0);
            self.next_message = self.next_message.next();
            data = &data[count..];
        }
        let written = before - data.len();
        self.held += written as u64;
        written
    }

    /// Appends a message, for which there must be room. It expires at `expiry` in nanoseconds; 0 is never.
    pub(crate) fn write_message(&mut self, data: &[u8], in_order: bool, expiry: u64) {
        let count = data.len().div_ceil(self.payload());
        for (n, part) in data.chunks(self.payload()).enumerate() {
            let message = Message::new(self.next_message, n == 0, n + 1 == count, in_order);
            self.push(part, message, expiry);
        }
        self.held += data.len() as u64;
        self.next_message = self.next_message.next();
    }

    fn push(&mut self, part: &[u8], message: Message, expiry: u64) {
        if self.end - self.una > self.mask {
            self.resize(2 * (self.mask + 1));
        }
        let place = self.place(self.end);
        let from = place * self.stride + HEADER;
        self.bytes[from..from + part.len()].copy_from_slice(part);
        self.lengths[place] = saturate16(part.len());
        self.messages[place] = message.0;
        self.sends[place] = 0;
        if let Some(slot) = self.expiries.get_mut(place) {
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
    pub(crate) fn lose(&mut self, at: u64) -> bool {
        let fresh = self.lost.set(at);
        self.lost_count += u64::from(fresh);
        self.lost_from = self.lost_from.min(at);
        fresh
    }

    /// Marks all outstanding packets as lost and returns how many were not marked before.
    pub(crate) fn lose_all(&mut self) -> u64 {
        let fresh = self.lost.set_range(self.una, self.next);
        self.lost_count += fresh;
        self.lost_from = self.una;
        fresh
    }

    /// Marks all that is outstanding as lost, except packets before `highest` that were never reported lost:
    /// those have arrived. Returns how many were not marked before.
    pub(crate) fn lose_missing(&mut self, highest: u64) -> u64 {
        let ahead = highest.clamp(self.una, self.next);
        let mut fresh = self.lost.set_range(ahead, self.next);
        for at in self.una..ahead {
            // The first one is missing even if the report of that was lost.
            if at == self.una || self.sends(at) > 1 {
                fresh += u64::from(self.lost.set(at));
            }
        }
        self.lost_count += fresh;
        self.lost_from = self.una;
        fresh
    }

    /// Acknowledges all packets before `at`.
    pub(crate) fn acknowledge(&mut self, at: u64) {
        if at > self.round {
            self.peak -= self.peak / 16;
            self.round = self.next;
        }
        self.peak = self.peak.max(self.outstanding());
        self.lost_count -= self.lost.clear_range(self.una, at);
        if self.dropped_count > 0 {
            self.dropped_count -= self.dropped.clear_range(self.una, at);
        }
        let spare = self.usage.release(self.end - self.una, (self.una, at), self.mask);
        while self.una < at {
            self.held -= u64::from(self.lengths[self.place(self.una)]);
            self.una += 1;
        }
        if spare {
            self.resize(self.mask.div_ceil(2));
        }
    }

    /// Whether the message of packet `at` has expired.
    #[inline]
    pub(crate) fn is_over(&self, at: u64, now: Time) -> bool {
        let Some(&expiry) = self.expiries.get(self.place(at)) else { return false };
        expiry != 0 && (expiry < now.as_nanos() || self.dropped.get(at))
    }

    /// Drops the packets of the message of packet `at`, from the first unacknowledged one to the last
    /// before `edge`: its number, its packets, and whether it was not dropped before.
    pub(crate) fn drop_message(
        &mut self,
        now: Time,
        at: u64,
        edge: u64,
    ) -> (MessageNo, Range<u64>, bool) {
        let number = |buffer: &Self, at| Message(buffer.messages[buffer.place(at)]).number();
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
            let place = self.place(at);
            self.sent_at[place] = now.as_nanos();
        }
        self.lost_count -= self.lost.clear_range(first, last + 1);
        self.next = self.next.max(last + 1);
        (message, first..last + 1, fresh > 0)
    }

    /// Length of packet `at` as a datagram in bytes.
    #[inline]
    pub(crate) fn size(&self, at: u64) -> usize {
        HEADER + usize::from(self.lengths[self.place(at)])
    }

    /// Whether packet `at` is adjacent to the one before it in memory.
    #[inline]
    pub(crate) fn follows(&self, at: u64) -> bool {
        at & self.mask != 0 && self.stride > 0
    }

    /// Whether packet `at` is full.
    #[inline]
    pub(crate) fn is_full(&self, at: u64) -> bool {
        self.size(at) == self.size
    }

    /// Writes the header of packet `at` for sending: a retransmission if `again`, otherwise the next packet.
    #[inline]
    pub(crate) fn send(
        &mut self,
        now: Time,
        at: u64,
        again: bool,
        timestamp: u32,
        destination: u32,
    ) {
        let place = self.place(at);
        let from = place * self.stride;
        let seq = self.initial.plus(at);
        let header = &mut self.bytes[from..from + HEADER];
        write_data_header(seq, Message(self.messages[place]), timestamp, destination, header);
        self.sent_at[place] = now.as_nanos();
        self.sends[place] = self.sends[place].saturating_add(1);
        if again {
            self.lost_count -= u64::from(self.lost.clear(at));
        } else {
            self.next = at + 1;
        }
    }

    /// The datagrams of `count` packets from `at`, which must be [adjacent](Self::follows) and full but the last.
    pub(crate) fn datagrams(&self, at: u64, count: u64) -> &[u8] {
        let from = self.place(at) * self.stride;
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
    fn a_stream_fills_packets_that_were_not_sent() {
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
        assert_eq!((buffer.room(), buffer.held()), (0, 32));
        buffer.acknowledge(1);
        assert_eq!((buffer.room(), buffer.held(), buffer.outstanding()), (10, 22, 1));
        assert_eq!(buffer.packet_of(Seq::new(1)), Some(2));
        assert_eq!(buffer.packet_of(Seq::MAX), Some(0));
        assert_eq!(buffer.packet_of(Seq::new(5).plus(1 << 30)), None);
    }

    #[test]
    fn what_is_lost_is_found_in_order() {
        let mut buffer = buffer();
        buffer.write_message(&[1; 40], true, 0);
        for at in 0..4 {
            buffer.send(Time::ZERO, at, false, 0, 0);
        }
        assert!(buffer.lose(2) && buffer.lose(1) && !buffer.lose(2));
        assert_eq!((buffer.first_lost(), buffer.lost_count()), (Some(1), 2));
        buffer.send(Time::ZERO, 1, true, 0, 0);
        assert_eq!(buffer.first_lost(), Some(2));
        buffer.acknowledge(3);
        assert_eq!((buffer.first_lost(), buffer.lost_count(), buffer.sends(1)), (None, 0, 2));
        assert_eq!(buffer.lose_all(), 1);
    }

    #[test]
    fn a_message_whose_time_is_over_goes_as_a_whole() {
        let mut buffer = buffer();
        buffer.write_message(&[1; 10], true, 0);
        buffer.write_message(&[2; 25], true, 100);
        let now = Time::from_nanos(101);
        buffer.send(Time::ZERO, 0, false, 0, 0);
        buffer.send(Time::ZERO, 1, false, 0, 0);
        assert!(!buffer.is_over(0, now) && buffer.is_over(1, now));
        assert!(!buffer.is_over(1, Time::from_nanos(100)));
        buffer.lose(1);
        assert_eq!(buffer.drop_message(now, 1, 3), (MessageNo::new(2), 1..3, true));
        assert_eq!((buffer.next(), buffer.lost_count()), (3, 0));
        assert_eq!(buffer.drop_message(now, 3, 4), (MessageNo::new(2), 1..4, true));
        assert_eq!(buffer.drop_message(now, 2, 4), (MessageNo::new(2), 1..4, false));
    }

    /// A repair makes all that came behind it acknowledged at once. The window that follows has the room
    /// of the one before.
    #[test]
    fn a_repair_leaves_the_stream_its_room() {
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
        // The next ones are acknowledged one by one as the window opens again.
        let una = buffer.una();
        send(&mut buffer, una + 500);
        for at in 1..=500 {
            buffer.acknowledge(una + at);
        }
        send(&mut buffer, una + 5500);
    }

    /// Five hundred packets on their way have headers of their own and one payload.
    #[test]
    fn payloads_that_are_the_same_have_one_place() {
        let mut buffer = SendBuffer::new(4096, (10, true), Seq::MAX, false);
        for at in 0..500 {
            assert_eq!(buffer.write(&[7; 10]), 10);
            buffer.send(Time::ZERO, at, false, 0, 0);
            assert!(!buffer.follows(at));
        }
        assert_eq!((buffer.held(), buffer.bytes.len()), (5000, HEADER + 10));
        buffer.lose(5);
        buffer.send(Time::ZERO, 5, true, 0, 0);
        let packet = buffer.datagrams(5, 1);
        assert_eq!((&packet[..4], &packet[HEADER..]), (&[0, 0, 0, 4][..], &[7; 10][..]));
        assert_eq!(buffer.write(&[7; 3]), 3);
        assert_eq!(buffer.size(500), HEADER + 3);
    }

    /// A ring that was large once shrinks when little of it is used, and keeps its packets.
    #[test]
    fn a_ring_shrinks_with_its_use() {
        let mut buffer = SendBuffer::new(4096, (10, false), Seq::MAX, false);
        let (mut sent, mut seen) = (0, 0);
        let mut burst = |buffer: &mut SendBuffer, packets: u64| {
            for at in sent..sent + packets {
                assert_eq!(buffer.write(&[(at & 0xff) as u8; 10]), 10);
                buffer.send(Time::ZERO, at, false, 0, 0);
            }
            sent += packets;
        };
        // The stream may hold more as more is outstanding.
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
        assert_eq!((buffer.mask + 1, seen), (FIRST_SLOTS, 50_000));
        assert_eq!(buffer.bytes.len() as u64, FIRST_SLOTS * buffer.size as u64);
    }

    /// A ring that grows keeps its packets, and a stream queues no more than the path takes.
    #[test]
    fn a_ring_grows_with_its_use() {
        let mut buffer = SendBuffer::new(4096, (10, false), Seq::MAX, false);
        let data: Vec<u8> = (0..100_000u32).map(|n| (n & 0xff) as u8).collect();
        let (mut written, mut sent, mut seen) = (0, 0, Vec::new());
        while seen.len() < data.len() {
            written += buffer.write(&data[written..]);
            // The path holds ever more, up to the ring's limit.
            while sent < buffer.end() {
                buffer.send(Time::ZERO, sent, false, 0, 0);
                sent += 1;
            }
            let half = buffer.outstanding().div_ceil(2);
            for at in buffer.una()..buffer.una() + half {
                seen.extend_from_slice(&buffer.datagrams(at, 1)[HEADER..]);
            }
            assert!(buffer.outstanding() <= LEAST_QUEUE + 2 * buffer.peak.max(1));
            buffer.acknowledge(buffer.una() + half);
        }
        assert_eq!(seen, data);
        assert!(buffer.mask > 1024, "{}", buffer.mask);
    }
}
