//! The application's calls of a connection: writing, reading, closing and statistics.

use super::{Connection, Halves, State, WakeThreshold};
use crate::config::{CloseReason, Counters, Error, Stats};
use crate::handshake::SocketType;
use cwnd::record::Record;
use cwnd::{AnyController, Cut, Dur, Limit, Time};

impl Connection {
    fn require(&self, socket_type: SocketType) -> Result<(), Error> {
        if self.config.socket_type == socket_type { Ok(()) } else { Err(Error::WrongType) }
    }

    /// The halves of a connection that accepts data.
    fn writing(&mut self) -> Result<&mut Halves, Error> {
        match self.state {
            State::Connecting(_) => Err(Error::NotConnected),
            State::Lingering(_) => Err(Error::Closed(CloseReason::Local)),
            State::Closed(reason, _) => Err(Error::Closed(reason)),
            State::Open => self.halves.as_deref_mut().ok_or(Error::NotConnected),
        }
    }

    /// Appends `data` to the stream as far as there is room, and returns the number of bytes
    /// written. If that is less than the length of `data`,
    /// [`Event::Writable`](crate::Event::Writable) reports when there is room.
    ///
    /// # Errors
    /// If the connection is not open, or carries messages.
    pub fn write(&mut self, data: &[u8]) -> Result<usize, Error> {
        self.require(SocketType::Stream)?;
        let buffer = &mut self.writing()?.sender.buffer;
        let written = buffer.write(data);
        if written < data.len() {
            self.blocked_writer = Some(WakeThreshold::BufferShare);
        }
        Ok(written)
    }

    /// Queues a message. Returns false if there is no room for it;
    /// [`Event::Writable`](crate::Event::Writable) reports when there is.
    ///
    /// After `ttl` the message is no longer sent, and the receiver skips it after a drop request.
    /// With `in_order` it is delivered after all earlier messages, otherwise as soon as it is
    /// complete.
    ///
    /// # Errors
    /// If the connection is not open or carries a stream, or the message is larger than the send
    /// buffer.
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
            self.blocked_writer = Some(WakeThreshold::Bytes(length));
            return Ok(false);
        }
        let expiry = ttl.map_or(0, |ttl| (now + ttl).as_nanos().max(1));
        buffer.write_message(data, in_order, expiry);
        Ok(true)
    }

    /// The halves of a connection that is open, or has ended with unread data.
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

    /// Copies the next bytes of the stream to `out` and returns their number; 0 if none are
    /// available.
    ///
    /// # Errors
    /// If the connection is not open yet, has ended and all data was read, or carries messages.
    pub fn read(&mut self, now: Time, out: &mut [u8]) -> Result<usize, Error> {
        self.require(SocketType::Stream)?;
        let receiver = &mut self.reading()?.receiver;
        let count = receiver.buffer.copy_to(out);
        receiver.update_window(now);
        Ok(count)
    }

    /// Returns the next bytes of the stream without copying them, up to the end of a packet; empty
    /// if none are available. [`consume`](Self::consume) removes them.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn peek(&mut self) -> Result<&[u8], Error> {
        self.require(SocketType::Stream)?;
        Ok(self.reading()?.receiver.buffer.peek())
    }

    /// Removes the first `count` of the bytes that [`peek`](Self::peek) returned.
    pub fn consume(&mut self, now: Time, count: usize) {
        if let (SocketType::Stream, Some(halves)) = (self.config.socket_type, &mut self.halves) {
            halves.receiver.buffer.consume(count);
            halves.receiver.update_window(now);
        }
    }

    /// The length of the next message in bytes; `None` if none is available.
    pub fn next_message(&self) -> Option<usize> {
        let receiver = &self.halves.as_ref()?.receiver;
        receiver.messages.as_ref()?.peek(&receiver.buffer)
    }

    /// Copies the next message to `out` and returns its length; `None` if none is available.
    ///
    /// # Errors
    /// If `out` is too small (the message can be read again); or the connection is not open yet,
    /// has ended and all messages were read, or carries a stream.
    pub fn recv_message(&mut self, now: Time, out: &mut [u8]) -> Result<Option<usize>, Error> {
        self.require(SocketType::Message)?;
        let receiver = &mut self.reading()?.receiver;
        let Some(messages) = &mut receiver.messages else { return Err(Error::WrongType) };
        match messages.peek(&receiver.buffer) {
            None => Ok(None),
            Some(length) if length > out.len() => Err(Error::BufferTooSmall(length)),
            Some(_) => {
                let length = messages.take(&mut receiver.buffer, out);
                receiver.update_window(now);
                Ok(length)
            }
        }
    }

    /// Whether data or a message can be read.
    pub fn is_readable(&mut self) -> bool {
        self.halves.as_mut().is_some_and(|halves| halves.receiver.is_readable())
    }

    /// The free space in the send buffer in bytes.
    pub fn room(&self) -> usize {
        match (&self.state, &self.halves) {
            (State::Open, Some(halves)) => halves.sender.buffer.room(),
            _ => 0,
        }
    }

    /// Bytes written and not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.halves.as_ref().map_or(0, |halves| halves.sender.buffer.unacknowledged_bytes())
    }

    /// Limits the receive window to `packets` until
    /// [`restore_receive_window`](Self::restore_receive_window). Acknowledgements advertise this
    /// window, and packets beyond it are dropped. The flow window in the handshake is not limited:
    /// UDT4 uses it as the largest congestion window of the whole connection.
    pub fn limit_receive_window(&mut self, packets: u32) {
        if let Some(halves) = &mut self.halves {
            halves.receiver.limit_receive_window(packets.max(2));
        }
    }

    /// Removes the limit of [`limit_receive_window`](Self::limit_receive_window) and advertises the
    /// whole receive buffer at once.
    pub fn restore_receive_window(&mut self, now: Time) {
        if let Some(halves) = &mut self.halves {
            halves.receiver.restore_receive_window(now);
        }
    }

    /// Closes the connection: no more data can be written, and written data is delivered within
    /// [`Config::linger`](crate::Config::linger). UDT has no half-closed connections: the peer
    /// closes its end too.
    pub fn shutdown(&mut self, now: Time) {
        match self.state {
            State::Connecting(_) => self.close(now, CloseReason::Local),
            State::Open => self.state = State::Lingering(now + self.config.linger),
            _ => {}
        }
    }

    /// Closes the connection at once; undelivered data is lost.
    pub fn abort(&mut self, now: Time) {
        match self.state {
            State::Connecting(_) => self.close(now, CloseReason::Local),
            State::Open | State::Lingering(_) => self.close_with_shutdown(now, CloseReason::Local),
            State::Closed(..) => {}
        }
    }

    /// The congestion controller of this end, once the connection is open.
    pub fn controller(&self) -> Option<&AnyController> {
        self.halves.as_ref().map(|halves| halves.sender.controller())
    }

    /// Takes the controller's last decrease since the previous call.
    pub fn take_cut(&mut self) -> Option<Cut> {
        self.halves.as_mut()?.sender.take_cut()
    }

    /// Takes the last round-trip time passed to the controller since the previous call.
    pub fn take_rtt(&mut self) -> Option<Dur> {
        self.halves.as_mut()?.sender.take_sample()
    }

    /// The counters since the connection was created.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The controller's recorded events and outputs, with
    /// [`Config::record`](crate::Config::record).
    pub fn record(&self) -> Option<&Record> {
        self.halves.as_ref()?.sender.record()
    }

    /// What limited this end's sender at the last [`poll_transmit`](Self::poll_transmit) that
    /// returned `None`.
    pub fn limit(&self) -> Limit {
        self.halves.as_ref().map_or(Limit::Application, |halves| halves.sender.limit())
    }

    /// The pacing interval between two packets; zero without pacing.
    pub fn pacing_period(&self) -> Dur {
        self.halves.as_ref().map_or(Dur::ZERO, |halves| halves.sender.period())
    }

    /// The statistics of the connection. With `clear`, a new interval starts.
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
