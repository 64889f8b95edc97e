//! What the user of a connection does: write, read, close, and look at it.

use super::{Connection, Halves, State, Wanted};
use crate::config::{CloseReason, Counters, Error, Stats};
use crate::handshake::SocketType;
use cwnd::record::Record;
use cwnd::{AnyController, Cut, Dur, Limit, Time};

impl Connection {
    fn require(&self, socket_type: SocketType) -> Result<(), Error> {
        if self.config.socket_type == socket_type { Ok(()) } else { Err(Error::WrongType) }
    }

    /// Both halves, while the user may write.
    fn writing(&mut self) -> Result<&mut Halves, Error> {
        match self.state {
            State::Opening(_) => Err(Error::NotConnected),
            State::Lingering(_) => Err(Error::Closed(CloseReason::Local)),
            State::Closed(reason, _) => Err(Error::Closed(reason)),
            State::Open => self.halves.as_deref_mut().ok_or(Error::NotConnected),
        }
    }

    /// Appends to the stream and returns how many bytes were taken. Where that is less than all,
    /// [`Event::Writable`](crate::Event::Writable) follows when there is room.
    ///
    /// # Errors
    /// When the connection is not open, or has messages.
    pub fn write(&mut self, data: &[u8]) -> Result<usize, Error> {
        self.require(SocketType::Stream)?;
        let buffer = &mut self.writing()?.sender.buffer;
        let written = buffer.write(data);
        if written < data.len() {
            self.wanted = Some(Wanted::Worthwhile);
        }
        Ok(written)
    }

    /// Sends a message. False if there is no room for it now: then
    /// [`Event::Writable`](crate::Event::Writable) follows when there is.
    ///
    /// After `ttl` it is not sent any more, and the receiver is told not to wait for it. With
    /// `in_order` it is delivered after all that were sent before it, otherwise as soon as it is whole.
    ///
    /// # Errors
    /// When the connection is not open or is a stream, or the message is larger than the send buffer.
    pub fn send_message(
        &mut self,
        now: Time,
        data: &[u8],
        ttl: Option<Dur>,
        in_order: bool,
    ) -> Result<bool, Error> {
        self.require(SocketType::Message)?;
        let buffer = &mut self.writing()?.sender.buffer;
        let (length, room) = (data.len(), buffer.capacity());
        if length > room {
            return Err(Error::MessageTooLarge { length, room });
        }
        if length == 0 {
            return Ok(true);
        }
        if buffer.room() < length {
            self.wanted = Some(Wanted::Bytes(length));
            return Ok(false);
        }
        let expiry = ttl.map_or(0, |ttl| (now + ttl).as_nanos().max(1));
        buffer.write_message(data, in_order, expiry);
        Ok(true)
    }

    /// Both halves, while there is something to read: after the end, too.
    fn reading(&mut self) -> Result<&mut Halves, Error> {
        let ended = self.close_reason();
        let Some(halves) = self.halves.as_deref_mut() else {
            return Err(ended.map_or(Error::NotConnected, Error::Closed));
        };
        match ended {
            Some(reason) if !halves.receiver.is_readable() => Err(Error::Closed(reason)),
            _ => Ok(halves),
        }
    }

    /// Copies the stream's next bytes and returns how many: 0 if none are there now.
    ///
    /// # Errors
    /// When the connection has ended and all was read, is not open yet, or has messages.
    pub fn read(&mut self, now: Time, out: &mut [u8]) -> Result<usize, Error> {
        self.require(SocketType::Stream)?;
        let receiver = &mut self.reading()?.receiver;
        let count = receiver.buffer.copy_to(out);
        receiver.announce_room(now);
        Ok(count)
    }

    /// The stream's next bytes where they lie, up to the end of a packet; empty if none are there now.
    /// [`consume`](Self::consume) takes them.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn peek(&mut self) -> Result<&[u8], Error> {
        self.require(SocketType::Stream)?;
        Ok(self.reading()?.receiver.buffer.peek())
    }

    /// Takes `count` bytes of the stream that [`peek`](Self::peek) has shown.
    pub fn consume(&mut self, now: Time, count: usize) {
        if let (SocketType::Stream, Some(halves)) = (self.config.socket_type, &mut self.halves) {
            halves.receiver.buffer.consume(count);
            halves.receiver.announce_room(now);
        }
    }

    /// Bytes of the next message, if one can be read now.
    pub fn next_message(&self) -> Option<usize> {
        let receiver = &self.halves.as_ref()?.receiver;
        receiver.messages.as_ref()?.peek(&receiver.buffer)
    }

    /// Copies the next message and returns its length; `None` if none is there now.
    ///
    /// # Errors
    /// When `out` is too small (the message stays), the connection has ended and all was read, is not
    /// open yet, or is a stream.
    pub fn recv_message(&mut self, now: Time, out: &mut [u8]) -> Result<Option<usize>, Error> {
        self.require(SocketType::Message)?;
        let receiver = &mut self.reading()?.receiver;
        let Some(messages) = &mut receiver.messages else { return Err(Error::WrongType) };
        match messages.peek(&receiver.buffer) {
            None => Ok(None),
            Some(length) if length > out.len() => Err(Error::BufferTooSmall(length)),
            Some(_) => {
                let length = messages.take(&mut receiver.buffer, out);
                receiver.announce_room(now);
                Ok(length)
            }
        }
    }

    /// Whether something can be read now.
    pub fn is_readable(&mut self) -> bool {
        self.halves.as_mut().is_some_and(|halves| halves.receiver.is_readable())
    }

    /// Bytes that can be written now.
    pub fn room(&self) -> usize {
        match (&self.state, &self.halves) {
            (State::Open, Some(halves)) => halves.sender.buffer.room(),
            _ => 0,
        }
    }

    /// Bytes that were written and are not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.halves.as_ref().map_or(0, |halves| halves.sender.buffer.held())
    }

    /// Limits what is received to `packets` until [`release_room`](Self::release_room). Acknowledgements
    /// advertise no more room, and later packets are dropped. The flow window in the handshake stays that of
    /// [`Config`](crate::Config): UDT4 takes it for the largest congestion window of the whole connection.
    pub fn hold_room(&mut self, packets: u32) {
        if let Some(halves) = &mut self.halves {
            halves.receiver.hold_room(packets.max(2));
        }
    }

    /// Ends [`hold_room`](Self::hold_room): the whole receive buffer is advertised, at once.
    pub fn release_room(&mut self, now: Time) {
        if let Some(halves) = &mut self.halves {
            halves.receiver.release_room(now);
        }
    }

    /// Ends the connection: nothing more can be written, and what was is delivered within
    /// [`Config::linger`](crate::Config::linger). UDT has no half-closed connections: the peer's end is
    /// closed with this one.
    pub fn shutdown(&mut self, now: Time) {
        match self.state {
            State::Opening(_) => self.close(now, CloseReason::Local),
            State::Open => self.state = State::Lingering(now + self.config.linger),
            _ => {}
        }
    }

    /// Ends the connection at once; what was not delivered is lost.
    pub fn abort(&mut self, now: Time) {
        match self.state {
            State::Opening(_) => self.close(now, CloseReason::Local),
            State::Open | State::Lingering(_) => self.finish(now, CloseReason::Local),
            State::Closed(..) => {}
        }
    }

    /// The controller of what this end sends, once the connection is open.
    pub fn controller(&self) -> Option<&AnyController> {
        self.halves.as_ref().map(|halves| halves.sender.controller())
    }

    /// The controller's last cut, if there was one since this was last asked.
    pub fn take_cut(&mut self) -> Option<Cut> {
        self.halves.as_mut()?.sender.take_cut()
    }

    /// The last round-trip time that the controller was told, if there was one since this was last
    /// asked.
    pub fn take_rtt(&mut self) -> Option<Dur> {
        self.halves.as_mut()?.sender.take_sample()
    }

    /// What happened since the connection was made.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What the controller was told and answered, with [`Config::record`](crate::Config::record).
    pub fn record(&self) -> Option<&Record> {
        self.halves.as_ref()?.sender.told()
    }

    /// What keeps this end from sending more, as of the last
    /// [`poll_transmit`](Self::poll_transmit) that returned nothing.
    pub fn limit(&self) -> Limit {
        self.halves.as_ref().map_or(Limit::Application, |halves| halves.sender.limit())
    }

    /// The time between two packets that the pace leaves; zero while nothing paces them.
    pub fn pacing_period(&self) -> Dur {
        self.halves.as_ref().map_or(Dur::ZERO, |halves| halves.sender.period())
    }

    /// How the connection is doing. With `clear` the interval's counters begin anew.
    pub fn stats(&mut self, now: Time, clear: bool) -> Stats {
        self.account(now);
        let (since, before) = self.cleared;
        let interval = self.counters.since(&before);
        let micros = (now.since(since).as_nanos() as f64 / 1000.0).max(1.0);
        let halves = self.halves.as_deref();
        let sender = halves.map(|halves| &halves.sender);
        let bits = halves.map_or(0.0, |halves| halves.payload as f64 * 8.0);
        let capacity = sender.and_then(|sender| sender.capacity);
        if clear {
            self.cleared = (now, self.counters);
        }
        Stats {
            ms_time_stamp: now.since(self.start).as_nanos() / 1_000_000,
            total: self.counters,
            interval,
            mbps_send_rate: interval.pkt_sent as f64 * bits / micros,
            mbps_recv_rate: interval.pkt_recv as f64 * bits / micros,
            us_pkt_snd_period: sender.map_or(0.0, |s| s.period().as_nanos() as f64 / 1000.0),
            pkt_flow_window: sender.map_or(0, |sender| sender.flow_window()),
            pkt_congestion_window: sender.map_or(0.0, |sender| sender.output().window.get()),
            pkt_flight_size: sender.map_or(0, |sender| sender.buffer.outstanding()),
            ms_rtt: self.rtt.smoothed.as_nanos() as f64 / 1e6,
            mbps_bandwidth: capacity.map_or(0.0, |rate| rate.as_per_sec() * bits / 1e6),
            byte_avail_snd_buf: sender.map_or(0, |sender| sender.buffer.room() as u64),
            byte_avail_rcv_buf: halves.map_or(0, |halves| halves.receiver.room()),
        }
    }
}
