//! Reassembly of messages, in order or, if the sender allows it, out of order.

use super::ReceiveBuffer;
use crate::bits::Bits;
use crate::seq::MessageNo;
use std::collections::VecDeque;

/// The messages that can be read: at most one entry for each message in the window.
#[derive(Clone, Debug)]
pub(crate) struct Messages {
    /// Complete messages in the order in which they are read.
    ready: VecDeque<(u64, u64)>,
    /// Packets of messages that are in `ready`, read or given up.
    done: Bits,
    /// Packets of messages that were read or given up: their slots can be freed.
    free: Bits,
    /// The packets before this one were scanned.
    scanned: u64,
    /// The first packet of the message being scanned.
    open: Option<u64>,
}

impl Messages {
    pub(crate) fn new(packets: u32) -> Self {
        let slots = super::slots_for(packets);
        Messages {
            ready: VecDeque::new(),
            done: Bits::new(slots),
            free: Bits::new(slots),
            scanned: 0,
            open: None,
        }
    }

    /// Whether a message can be read.
    pub(crate) fn any(&self) -> bool {
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
        // Free only scanned packets: the scan continues at a packet that must still be held.
        let to = self.free.next_clear(read, self.scanned).unwrap_or(self.scanned);
        self.done.clear_range(read, to);
        self.free.clear_range(read, to);
        buffer.free_to(to);
    }

    /// Processes the arrival of packet `at`. `filled`: later packets arrived before it.
    pub(crate) fn arrived(&mut self, buffer: &mut ReceiveBuffer, at: u64, filled: bool) {
        let message = buffer.message(at);
        if at >= buffer.next() && !message.in_order() && (message.is_last() || filled) {
            self.deliver_ahead(buffer, at);
        }
        self.scan(buffer);
    }

    /// Makes a complete message ready if it may be delivered out of order.
    fn deliver_ahead(&mut self, buffer: &ReceiveBuffer, at: u64) {
        let number = buffer.message(at).number();
        let same = |at: u64| {
            buffer.is_here(at) && !self.done.get(at) && buffer.message(at).number() == number
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

    /// Scans the packets that are now in order.
    pub(crate) fn scan(&mut self, buffer: &mut ReceiveBuffer) {
        let mut useless = None;
        while self.scanned < buffer.next() {
            let at = self.scanned;
            self.scanned += 1;
            let message = buffer.message(at);
            if self.done.get(at) {
                useless = useless.or(self.open.take());
            } else if message.is_first() {
                useless = useless.or(self.open.take());
                self.open = Some(at);
            } else if let Some(first) = self.open
                && buffer.message(first).number() != message.number()
            {
                useless = useless.or(self.open.take());
            }
            match self.open {
                Some(first) if message.is_last() => {
                    self.done.set_range(first, at + 1);
                    self.ready.push_back((first, at + 1));
                    self.open = None;
                }
                None if !self.done.get(at) => useless = useless.or(Some(at)),
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
        if let Some(from) = useless {
            self.discard(buffer, from);
        } else if buffer.read() < self.scanned && self.free.get(buffer.read()) {
            // Read out of order before, and now in order.
            self.release(buffer, buffer.read(), buffer.read());
        }
    }

    /// Frees the packets from `from` on that belong to no message to be read.
    fn discard(&mut self, buffer: &mut ReceiveBuffer, from: u64) {
        let to = self.open.unwrap_or(self.scanned);
        let mut at = from;
        while let Some(idle) = self.done.next_clear(at, to) {
            self.done.set(idle);
            self.free.set(idle);
            at = idle + 1;
        }
        self.release(buffer, from, from);
    }

    /// Gives up message `number` in the packets `from..to`: the sender retransmits no more of it.
    pub(crate) fn give_up(
        &mut self,
        buffer: &mut ReceiveBuffer,
        from: u64,
        to: u64,
        number: MessageNo,
    ) {
        let from = from.max(self.scanned);
        for at in from..to.min(buffer.highest()) {
            let of_it = buffer.is_here(at) && buffer.message(at).number() == number;
            if of_it && self.done.set(at) {
                self.free.set(at);
            }
        }
    }
}
