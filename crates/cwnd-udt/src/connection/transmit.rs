//! The datagrams that a connection sends.

use super::{Connection, Halves, State};
use crate::cast::low32;
use crate::config::CloseReason;
use crate::packet::Control;
use crate::sender::Next;
use cwnd::Time;

/// Concatenated datagrams for the peer: all have `segment` bytes but the last, which may be shorter. They can be sent
/// in one call with `UDP_SEGMENT`, or one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<'a> {
    /// The datagrams.
    pub datagrams: &'a [u8],
    /// The size in bytes of each datagram but the last.
    pub segment: usize,
}

impl<'a> Transmit<'a> {
    /// The datagrams one by one.
    pub fn iter(&self) -> std::slice::Chunks<'a, u8> {
        self.datagrams.chunks(self.segment.max(1))
    }
}

/// What [`Connection::poll_transmit_into`] wrote to the front of its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Bytes written.
    pub length: usize,
    /// The size in bytes of each datagram but the last.
    pub segment: usize,
}

/// The next output, before its buffer is borrowed.
enum Planned {
    Scratch(usize),
    Run { at: u64, count: u64, size: usize },
}

impl Connection {
    /// Returns the next datagrams to send: a control packet, or up to `most` data packets. `None` if there are none, or
    /// if it is too early for them: [`next_wakeup`](Self::next_wakeup) returns the time of the next ones.
    ///
    /// The datagrams are not copied: they are in the connection's own buffer. Data packets count as sent with this
    /// call.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time, most: usize) -> Option<Transmit<'_>> {
        match self.plan(now, most)? {
            Planned::Scratch(length) => {
                self.recent.add(&self.scratch[..length]);
                Some(Transmit { datagrams: &self.scratch[..length], segment: length })
            }
            Planned::Run { at, count, size } => {
                let buffer = &self.halves.as_ref()?.sender.buffer;
                Some(Transmit { datagrams: buffer.datagrams(at, count), segment: size })
            }
        }
    }

    /// Copies the next datagrams to the front of `buffer`, as many as fit: for callers that cannot keep the connection
    /// borrowed while they send. `None` also if `buffer` is smaller than the packet size.
    pub fn poll_transmit_into(
        &mut self,
        now: Time,
        most: usize,
        buffer: &mut [u8],
    ) -> Option<Filled> {
        let largest = self.config.packet_size as usize;
        let most = most.min(buffer.len() / largest.max(super::CONTROL_PACKET));
        if most == 0 {
            return None;
        }
        let Transmit { datagrams, segment } = self.poll_transmit(now, most)?;
        let length = datagrams.len();
        buffer.get_mut(..length)?.copy_from_slice(datagrams);
        Some(Filled { length, segment })
    }

    /// Records that sending what [`poll_transmit`](Self::poll_transmit) returned for the time `polled` took
    /// until `now`. It changes nothing but `us_limited_processor` and `us_limited_application` of the
    /// [counters](crate::Counters).
    pub fn sent_by(&mut self, polled: Time, now: Time) {
        if let (true, Some(halves)) = (self.is_open(), &mut self.halves) {
            halves.sender.sent_by(polled, now, &mut self.counters);
        }
    }

    #[inline]
    fn plan(&mut self, now: Time, most: usize) -> Option<Planned> {
        let timestamp = low32(now.since(self.start).as_nanos() / 1000);
        if let State::Opening(opening) = &mut self.state {
            let (handshake, to) = opening.poll(now)?;
            // By a time stamp other than 0 a listener recognises this crate; UDT4 sends 0.
            let timestamp = timestamp.max(1);
            let length = Control::Handshake(handshake).encode(timestamp, to, &mut self.scratch[..]);
            return Some(Planned::Scratch(length));
        }
        let halves = self.halves.as_mut()?;
        let Halves { sender, receiver, peer, .. } = &mut **halves;
        let to = (timestamp, *peer);
        let scratch = &mut self.scratch[..];
        let control = |control: Control, scratch: &mut [u8]| {
            Some(Planned::Scratch(control.encode(to.0, to.1, scratch)))
        };
        if let State::Closed(..) = self.state {
            if !std::mem::take(&mut self.owed.shutdown) {
                return None;
            }
            self.last_shutdown = now;
            return control(Control::Shutdown, scratch);
        }
        if let Some(handshake) = self.owed.handshake.take() {
            return control(Control::Handshake(handshake), scratch);
        }
        match receiver.poll(now, &self.rtt, to, scratch, &mut self.counters) {
            0 => {}
            length => return Some(Planned::Scratch(length)),
        }
        if let Some(number) = sender.poll_ack2(now) {
            return control(Control::Ack2(number), scratch);
        }
        if std::mem::take(&mut self.owed.keep_alive) {
            return control(Control::KeepAlive, scratch);
        }
        match sender.poll(now, self.start, most as u64, &mut self.counters) {
            Some(Next::Run { at, count, size }) => Some(Planned::Run { at, count, size }),
            Some(Next::Drop(request)) => control(Control::Drop(request), scratch),
            None => self.plan_end(now),
        }
    }

    /// Ends a lingering connection that has delivered everything, after a delay: a UDT4 receiver that waits for a
    /// message loses it if the shutdown arrives before its thread has woken up.
    fn plan_end(&mut self, now: Time) -> Option<Planned> {
        let State::Lingering(_) = self.state else { return None };
        let halves = self.halves.as_mut()?;
        if halves.sender.delivered_until().is_none_or(|quiet| quiet > now) {
            return None;
        }
        let last_word = halves.receiver.flush(now);
        if !last_word {
            self.finish(now, CloseReason::Local);
        }
        self.plan(now, 1)
    }
}
