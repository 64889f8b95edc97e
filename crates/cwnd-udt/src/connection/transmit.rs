//! What a connection sends.

use super::{Connection, Halves, State};
use crate::cast::low32;
use crate::config::CloseReason;
use crate::packet::Control;
use crate::sender::Next;
use cwnd::Time;

/// Datagrams to send to the peer, one behind the other: all of `segment` bytes but the last, which may
/// be shorter. They can go out in one call with `UDP_SEGMENT`, or one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<'a> {
    /// The datagrams.
    pub datagrams: &'a [u8],
    /// Bytes of each but the last.
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
    /// Bytes of each datagram but the last.
    pub segment: usize,
}

/// What goes out, before it is borrowed.
enum Planned {
    Scratch(usize),
    Run { at: u64, count: u64, size: usize },
}

impl Connection {
    /// The next datagrams that may go now: a control packet, or up to `most` data packets. Nothing when
    /// there are none, or it is too early for them: then [`next_wakeup`](Self::next_wakeup) tells when.
    ///
    /// The datagrams lie in the connection's own buffer: nothing is copied. Data packets count as sent
    /// with this call.
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

    /// The same, copied to the front of `buffer`: for callers that cannot keep the connection borrowed
    /// while they send. Writes as many datagrams as fit, and nothing if `buffer` has less than the
    /// packet size.
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
            // A listener tells this crate from UDT4 by a time stamp that is not 0.
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

    /// A lingering connection that has delivered everything ends here, but not at once: a UDT4 receiver
    /// that waits for a message loses it when the shutdown comes before it has woken up.
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
