//! Output of a connection: the datagrams to send.

use super::{Connection, Halves, State};
use crate::cast::low32;
use crate::config::CloseReason;
use crate::handshake::ANSWER_TIMESTAMP;
use crate::packet::Control;
use crate::sender::Next;
use cwnd::Time;

/// Concatenated datagrams to send to the peer: all have `segment` bytes but the last, which may be
/// shorter. They can be sent in one call with `UDP_SEGMENT`, or one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<'a> {
    /// The datagrams.
    pub datagrams: &'a [u8],
    /// The size in bytes of each datagram but the last.
    pub segment: usize,
}

impl<'a> Transmit<'a> {
    /// An iterator over the datagrams.
    pub fn iter(&self) -> std::slice::Chunks<'a, u8> {
        self.datagrams.chunks(self.segment.max(1))
    }
}

/// The datagrams that were written to the front of a buffer, concatenated: see
/// [`Connection::poll_transmit_into`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    /// The length of all datagrams in bytes.
    pub length: usize,
    /// The size in bytes of each datagram but the last.
    pub segment: usize,
}

/// The location of the next datagrams.
enum Output {
    /// A control packet of this length in the scratch memory.
    Scratch(usize),
    /// Data packets in the send buffer.
    Run { at: u64, count: u64, size: usize },
}

impl Connection {
    /// Returns the next datagrams to send: a control packet, or up to `max_segments` data packets.
    /// `None` if nothing is due; [`next_wakeup`](Self::next_wakeup) then returns the next time to
    /// call.
    ///
    /// The datagrams are borrowed from the connection's buffer. This call counts data packets as
    /// sent.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time, max_segments: usize) -> Option<Transmit<'_>> {
        match self.next_output(now, max_segments)? {
            Output::Scratch(length) => {
                self.recent_headers.add(&self.scratch[..length]);
                Some(Transmit { datagrams: &self.scratch[..length], segment: length })
            }
            Output::Run { at, count, size } => {
                let buffer = &self.halves.as_ref()?.sender.buffer;
                Some(Transmit { datagrams: buffer.datagrams(at, count), segment: size })
            }
        }
    }

    /// Copies the next datagrams to the front of `buffer`, up to `max_segments` and as many as fit.
    /// For callers that cannot borrow the connection while they send. `None` also if `buffer` is
    /// smaller than the packet size.
    pub fn poll_transmit_into(
        &mut self,
        now: Time,
        max_segments: usize,
        buffer: &mut [u8],
    ) -> Option<Filled> {
        let largest = self.config.packet_size as usize;
        let max_segments = max_segments.min(buffer.len() / largest.max(super::CONTROL_PACKET));
        if max_segments == 0 {
            return None;
        }
        let Transmit { datagrams, segment } = self.poll_transmit(now, max_segments)?;
        let length = datagrams.len();
        buffer.get_mut(..length)?.copy_from_slice(datagrams);
        Some(Filled { length, segment })
    }

    /// Records that the datagrams returned by [`poll_transmit`](Self::poll_transmit) at the time
    /// `polled` were passed to the system at `now`. Only `us_limited_processor` and
    /// `us_limited_application` of the [counters](crate::Counters) depend on this.
    pub fn transmit_finished(&mut self, polled: Time, now: Time) {
        if let (true, Some(halves)) = (self.is_open(), &mut self.halves) {
            halves.sender.transmit_finished(polled, now, &mut self.counters);
        }
    }

    #[inline]
    fn next_output(&mut self, now: Time, max_segments: usize) -> Option<Output> {
        let timestamp = low32(now.since(self.start).as_nanos() / 1000);
        if let State::Connecting(connecting) = &mut self.state {
            let (handshake, to, length) = connecting.poll(now)?;
            let timestamp = (timestamp % ANSWER_TIMESTAMP).max(1);
            self.scratch.resize(length.max(super::CONTROL_PACKET), 0);
            Control::Handshake(handshake).encode(timestamp, to, &mut self.scratch);
            return Some(Output::Scratch(length));
        }
        let halves = self.halves.as_mut()?;
        let Halves { sender, receiver, peer, .. } = &mut **halves;
        let to = (timestamp, *peer);
        let scratch = &mut self.scratch[..];
        let control = |control: Control, scratch: &mut [u8]| {
            Some(Output::Scratch(control.encode(to.0, to.1, scratch)))
        };
        if let State::Closed(..) = self.state {
            if !std::mem::take(&mut self.pending_control.shutdown) {
                return None;
            }
            self.last_shutdown = now;
            return control(Control::Shutdown, scratch);
        }
        if let Some(handshake) = self.pending_control.handshake.take() {
            return control(Control::Handshake(handshake), scratch);
        }
        match receiver.poll(now, &self.rtt, to, scratch, &mut self.counters) {
            0 => {}
            length => return Some(Output::Scratch(length)),
        }
        if let Some(number) = sender.poll_ack2(now) {
            return control(Control::Ack2(number), scratch);
        }
        if std::mem::take(&mut self.pending_control.keep_alive) {
            return control(Control::KeepAlive, scratch);
        }
        match sender.poll(now, self.start, max_segments as u64, &mut self.counters) {
            Some(Next::Run { at, count, size }) => Some(Output::Run { at, count, size }),
            Some(Next::Drop(request)) => control(Control::Drop(request), scratch),
            None => self.finish_linger(now),
        }
    }

    /// Ends a lingering connection when all data is delivered and a delay has passed: a UDT4
    /// application that waits for a message loses it if the shutdown arrives before the application
    /// has woken up.
    fn finish_linger(&mut self, now: Time) -> Option<Output> {
        let State::Lingering(_) = self.state else { return None };
        let halves = self.halves.as_mut()?;
        if halves.sender.delivered_until().is_none_or(|quiet| quiet > now) {
            return None;
        }
        let ack_due = halves.receiver.flush(now);
        if !ack_due {
            self.close_with_shutdown(now, CloseReason::Local);
        }
        self.next_output(now, 1)
    }
}
