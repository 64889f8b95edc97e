//! Reassembly of messages. They are delivered in order, or out of order if the sender allows it.

use super::ReceiveBuffer;
use crate::bitmap::Bitmap;
use crate::seq::MessageNo;
use std::collections::VecDeque;

/// The reassembly queue: at most one entry for each message in the window.
#[derive(Clone, Debug)]
pub(crate) struct Reassembly {
    /// Complete messages in the order of delivery: the first packet, and one past the last.
    ready: VecDeque<(u64, u64)>,
    /// Packets of messages that are in `ready`, read or dropped.
    done: Bitmap,
    /// Packets of messages that were read or dropped: their slots can be freed.
    free: Bitmap,
    /// One past the last packet that was scanned for message boundaries.
    scanned: u64,
    /// The first packet of the incomplete message at the end of the scanned packets.
    open: Option<u64>,
}

impl Reassembly {
    pub(crate) fn new(packets: u32) -> Self {
        let slots = super::slots_for(packets);
        Reassembly {
            ready: VecDeque::new(),
            done: Bitmap::new(slots),
            free: Bitmap::new(slots),
            scanned: 0,
            open: None,
        }
    }

    /// Whether a message can be read.
    pub(crate) fn has_message(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The length of the next message in bytes.
    pub(crate) fn peek(&self, buffer: &ReceiveBuffer) -> Option<usize> {
        let &(first, end) = self.ready.front()?;
        Some((first..end).map(|at| buffer.bytes(at).len()).sum())
    }

    /// Copies the next message to `out`, which must be large enough, and removes it.
    pub(crate) fn take(&mut self, buffer: &mut ReceiveBuffer, out: &mut [u8]) -> Option<usize> {
        let (first, end) = self.ready.pop_front()?;
        let mut length = 0;
        for at in first..end {
            let part = buffer.bytes(at);
            out[length..length + part.len()].copy_from_slice(part);
            length += part.len();
        }
        self.release(buffer, first, end);
        Some(length)
    }

    fn release(&mut self, buffer: &mut ReceiveBuffer, first: u64, end: u64) {
        self.done.set_range(first, end);
        self.free.set_range(first, end);
        let read = buffer.read();
        // Free scanned packets only: the scan continues with the next one.
        let to = self.free.next_clear(read, self.scanned).unwrap_or(self.scanned);
        self.done.clear_range(read, to);
        self.free.clear_range(read, to);
        buffer.free_to(to);
    }

    /// Processes the arrival of packet `at`. `fills_gap` tells whether later packets have arrived
    /// before it.
    pub(crate) fn arrived(&mut self, buffer: &mut ReceiveBuffer, at: u64, fills_gap: bool) {
        let message = buffer.message(at);
        if at >= buffer.next() && !message.in_order() && (message.is_last() || fills_gap) {
            self.complete_out_of_order(buffer, at);
        }
        self.scan(buffer);
    }

    /// Makes the message of packet `at` ready if it is complete, before earlier packets have
    /// arrived.
    fn complete_out_of_order(&mut self, buffer: &ReceiveBuffer, at: u64) {
        let number = buffer.message(at).number();
        let same = |at: u64| {
            buffer.is_received(at) && !self.done.get(at) && buffer.message(at).number() == number
        };
        let (mut first, mut last) = (at, at);
        while !buffer.message(first).is_first() {
            if first == buffer.next() || !same(first - 1) {
                return;
            }
            first -= 1;
        }
        while !buffer.message(last).is_last() {
            if last + 1 >= buffer.highest() || !same(last + 1) {
                return;
            }
            last += 1;
        }
        self.done.set_range(first, last + 1);
        self.ready.push_back((first, last + 1));
    }

    /// Scans the packets that are now in order for complete messages.
    pub(crate) fn scan(&mut self, buffer: &mut ReceiveBuffer) {
        let mut unneeded = None;
        while self.scanned < buffer.next() {
            let at = self.scanned;
            self.scanned += 1;
            let message = buffer.message(at);
            if self.done.get(at) {
                unneeded = unneeded.or(self.open.take());
            } else if message.is_first() {
                unneeded = unneeded.or(self.open.take());
                self.open = Some(at);
            } else if let Some(first) = self.open
                && buffer.message(first).number() != message.number()
            {
                unneeded = unneeded.or(self.open.take());
            }
            match self.open {
                Some(first) if message.is_last() => {
                    self.done.set_range(first, at + 1);
                    self.ready.push_back((first, at + 1));
                    self.open = None;
                }
                None if !self.done.get(at) => unneeded = unneeded.or(Some(at)),
                _ => {}
            }
        }
        // A message larger than the buffer is truncated, as in UDT4, so that later packets fit.
        if let Some(first) = self.open
            && first == buffer.read()
            && buffer.is_full()
        {
            self.done.set_range(first, self.scanned);
            self.ready.push_back((first, self.scanned));
            self.open = None;
        }
        if let Some(from) = unneeded {
            self.discard(buffer, from);
        } else if buffer.read() < self.scanned && self.free.get(buffer.read()) {
            // The next message in order was read out of order before.
            self.release(buffer, buffer.read(), buffer.read());
        }
    }

    /// Frees the packets from `from` on that belong to no complete or open message.
    fn discard(&mut self, buffer: &mut ReceiveBuffer, from: u64) {
        let to = self.open.unwrap_or(self.scanned);
        let mut at = from;
        while let Some(packet) = self.done.next_clear(at, to) {
            self.done.set(packet);
            self.free.set(packet);
            at = packet + 1;
        }
        self.release(buffer, from, from);
    }

    /// Drops message `number` in the packets `from..to`: the sender does not retransmit it.
    pub(crate) fn drop_message(
        &mut self,
        buffer: &mut ReceiveBuffer,
        from: u64,
        to: u64,
        number: MessageNo,
    ) {
        let from = from.max(self.scanned);
        for at in from..to.min(buffer.highest()) {
            let same_message = buffer.is_received(at) && buffer.message(at).number() == number;
            if same_message && self.done.set(at) {
                self.free.set(at);
            }
        }
    }
}
