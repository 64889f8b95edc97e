//! The application's interface of a connection, blocking and asynchronous.

use super::connection::{SharedConnection, Side, State};
use crate::secure::PublicKey;
use crate::{CloseReason, Connection, Error, SocketType, Stats};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The largest number of bytes copied while the application holds the connection's lock.
const CHUNK: usize = 1 << 16;

/// A UDT connection that carries a stream of bytes or messages.
///
/// Reading and writing take a shared reference, and clones are the same connection: one thread may
/// read while another writes. Dropping the last clone shuts the connection down: written data is
/// still delivered while the process lives, and [`close`](Self::close) waits for that.
///
/// Waiting calls have three forms: blocking calls ([`Read`] and [`Write`] among them) with an
/// optional [timeout](Self::set_read_timeout), `..._until` calls with a deadline, and `poll_...`
/// and `..._async` calls for tasks of any async runtime. With the feature `tokio`, streams
/// implement `tokio::io::AsyncRead` and `AsyncWrite`.
///
/// An error of kind [`BrokenPipe`](io::ErrorKind::BrokenPipe) means that the connection was closed,
/// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) that the peer stopped responding, and
/// [`ConnectionReset`](io::ErrorKind::ConnectionReset) that the peer no longer knows the
/// connection. Reads return 0 bytes after the peer has closed the connection.
#[derive(Clone, Debug)]
pub struct UdtStream(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    connection: Arc<SharedConnection>,
    /// The timeout of each side in nanoseconds; 0 is none.
    timeouts: [AtomicU64; 2],
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.connection.update(Side::Write, Connection::shutdown);
    }
}

impl UdtStream {
    /// Advertises the whole receive buffer to the peer: the application has accepted the
    /// connection.
    pub(super) fn accepted(&self) {
        self.connection().update(Side::Read, Connection::restore_receive_window);
    }

    pub(super) fn new(connection: Arc<SharedConnection>) -> Self {
        UdtStream(Arc::new(Handle { connection, timeouts: Default::default() }))
    }

    fn connection(&self) -> &Arc<SharedConnection> {
        &self.0.connection
    }

    /// The peer's address.
    pub fn peer_addr(&self) -> SocketAddr {
        let peer = self.connection().peer;
        SocketAddr::new(peer.ip().to_canonical(), peer.port())
    }

    /// The address of this end's UDP port.
    pub fn local_addr(&self) -> SocketAddr {
        self.connection().port.local
    }

    /// The authenticated public key of the peer, with
    /// [`Credentials::Pair`](crate::secure::Credentials).
    pub fn identity(&self) -> Option<PublicKey> {
        self.connection().identity()
    }

    /// Waits until the connection is open.
    ///
    /// # Errors
    /// If the handshake fails, or is not complete by `deadline`
    /// ([`TimedOut`](io::ErrorKind::TimedOut)).
    pub fn connected_until(&self, deadline: Option<Instant>) -> io::Result<()> {
        self.connection().block(Side::Write, deadline, connected)
    }

    /// Polls whether the connection is open.
    ///
    /// # Errors
    /// If the handshake fails.
    pub fn poll_connected(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        self.connection().poll(Side::Write, cx, connected)
    }

    /// Sets the timeout of [`Read`] and [`recv_message`](Self::recv_message); `None` waits without
    /// limit.
    pub fn set_read_timeout(&self, limit: Option<Duration>) {
        self.set_timeout(Side::Read, limit);
    }

    /// Sets the timeout of [`Write`] and [`send_message`](Self::send_message); `None` waits without
    /// limit.
    pub fn set_write_timeout(&self, limit: Option<Duration>) {
        self.set_timeout(Side::Write, limit);
    }

    fn set_timeout(&self, side: Side, limit: Option<Duration>) {
        let nanos = limit.map_or(0, |limit| super::dur(limit).as_nanos().max(1));
        self.0.timeouts[side as usize].store(nanos, Ordering::Relaxed);
    }

    fn deadline(&self, side: Side) -> Option<Instant> {
        let nanos = self.0.timeouts[side as usize].load(Ordering::Relaxed);
        (nanos > 0).then(|| Instant::now().checked_add(Duration::from_nanos(nanos))).flatten()
    }

    /// Reads the available data. Waits until `deadline` if there is none.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) if no data has arrived by the deadline, and as
    /// described [above](Self).
    pub fn read_until(&self, out: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
        self.connection().block(Side::Read, deadline, |state| self.try_read(state, out))
    }

    /// Polls for available data and reads it.
    ///
    /// # Errors
    /// As described [above](Self).
    pub fn poll_read(&self, cx: &Context<'_>, out: &mut [u8]) -> Poll<io::Result<usize>> {
        self.connection().poll(Side::Read, cx, |state| self.try_read(state, out))
    }

    fn try_read(&self, state: &mut State, out: &mut [u8]) -> Option<io::Result<usize>> {
        let part = out.len().min(CHUNK);
        match state.connection.read(self.connection().port.socket.now(), &mut out[..part]) {
            Ok(0) if !out.is_empty() => None,
            Ok(count) => Some(Ok(count)),
            Err(Error::NotConnected) => None,
            Err(Error::Closed(reason)) => Some(end_result(state, reason).map(|()| 0)),
            Err(error) => Some(Err(state.io_error(error))),
        }
    }

    /// Writes as much as fits into the send buffer. Waits until `deadline` if it is full.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) if the buffer is still full at the deadline, and as
    /// described [above](Self).
    pub fn write_until(&self, data: &[u8], deadline: Option<Instant>) -> io::Result<usize> {
        self.connection().block(Side::Write, deadline, |state| try_write(state, data))
    }

    /// Polls for room in the send buffer and writes as much as fits.
    ///
    /// # Errors
    /// As described [above](Self).
    pub fn poll_write(&self, cx: &Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.connection().poll(Side::Write, cx, |state| try_write(state, data))
    }

    /// Sends a message. Waits up to the write timeout if the send buffer has no room for it.
    ///
    /// After `ttl` the message is no longer sent, and the receiver skips it. With `in_order` it is
    /// delivered after all earlier messages, otherwise as soon as it is complete.
    ///
    /// # Errors
    /// If the connection carries a stream of bytes, or the message is larger than the send buffer
    /// ([`InvalidInput`](io::ErrorKind::InvalidInput)), and as described [above](Self).
    pub fn send_message(
        &self,
        data: &[u8],
        ttl: Option<Duration>,
        in_order: bool,
    ) -> io::Result<()> {
        self.send_message_until(data, (ttl, in_order), self.deadline(Side::Write))
    }

    /// As [`send_message`](Self::send_message) with `(ttl, in_order)`, and with a deadline.
    ///
    /// # Errors
    /// As [`send_message`](Self::send_message).
    pub fn send_message_until(
        &self,
        data: &[u8],
        how: (Option<Duration>, bool),
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        self.connection()
            .block(Side::Write, deadline, |state| self.try_send_message(state, data, how))
    }

    /// Polls for room in the send buffer and sends a message: see
    /// [`send_message`](Self::send_message).
    ///
    /// # Errors
    /// As [`send_message`](Self::send_message).
    pub fn poll_send_message(
        &self,
        cx: &Context<'_>,
        data: &[u8],
        how: (Option<Duration>, bool),
    ) -> Poll<io::Result<()>> {
        self.connection().poll(Side::Write, cx, |state| self.try_send_message(state, data, how))
    }

    fn try_send_message(
        &self,
        state: &mut State,
        data: &[u8],
        (ttl, in_order): (Option<Duration>, bool),
    ) -> Option<io::Result<()>> {
        let now = self.connection().port.socket.now();
        let ttl = ttl.map(super::dur);
        match state.connection.send_message(now, data, ttl, in_order) {
            Ok(true) => Some(Ok(())),
            Ok(false) | Err(Error::NotConnected) => None,
            Err(error) => Some(Err(state.io_error(error))),
        }
    }

    /// Copies the next message to `out` and returns its length; 0 if the peer has closed the
    /// connection. Waits up to the read timeout if there is none.
    ///
    /// # Errors
    /// If the connection carries a stream of bytes, or `out` is too small
    /// ([`InvalidInput`](io::ErrorKind::InvalidInput); the message can be read again), and as
    /// described [above](Self).
    pub fn recv_message(&self, out: &mut [u8]) -> io::Result<usize> {
        let deadline = self.deadline(Side::Read);
        self.connection().block(Side::Read, deadline, |state| self.try_recv_message(state, out))
    }

    /// Returns the next message; `None` if the peer has closed the connection. Waits until
    /// `deadline` if there is none.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) if no message has arrived by the deadline, and as
    /// [`recv_message`](Self::recv_message).
    pub fn next_message_until(&self, deadline: Option<Instant>) -> io::Result<Option<Vec<u8>>> {
        self.connection().block(Side::Read, deadline, |state| self.try_next_message(state))
    }

    /// Polls for the next message; `None` if the peer has closed the connection.
    ///
    /// # Errors
    /// As [`recv_message`](Self::recv_message).
    pub fn poll_next_message(&self, cx: &Context<'_>) -> Poll<io::Result<Option<Vec<u8>>>> {
        self.connection().poll(Side::Read, cx, |state| self.try_next_message(state))
    }

    fn try_next_message(&self, state: &mut State) -> Option<io::Result<Option<Vec<u8>>>> {
        let mut out = vec![0; state.connection.next_message().unwrap_or(0)];
        let available = state.connection.next_message().is_some();
        let result = self.try_recv_message(state, &mut out)?;
        Some(result.map(|_| available.then_some(out)))
    }

    fn try_recv_message(&self, state: &mut State, out: &mut [u8]) -> Option<io::Result<usize>> {
        match state.connection.recv_message(self.connection().port.socket.now(), out) {
            Ok(None) | Err(Error::NotConnected) => None,
            Ok(Some(length)) => Some(Ok(length)),
            Err(Error::Closed(reason)) => Some(end_result(state, reason).map(|()| 0)),
            Err(error) => Some(Err(state.io_error(error))),
        }
    }

    /// Starts to close the connection and returns at once: no more data can be written, written
    /// data is delivered within [`Config::linger`](crate::Config::linger), and then a shutdown is
    /// sent. UDT has no half-closed connections.
    pub fn finish(&self) {
        self.connection().update(Side::Write, Connection::shutdown);
    }

    /// Closes the connection and waits until all written data is delivered.
    ///
    /// # Errors
    /// If data was not delivered: the peer stopped responding or has closed, or the linger time has
    /// expired.
    pub fn close(self) -> io::Result<()> {
        self.close_until(None)
    }

    /// As [`close`](Self::close), with a deadline.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) if data is undelivered at the deadline, and as
    /// [`close`](Self::close).
    pub fn close_until(&self, deadline: Option<Instant>) -> io::Result<()> {
        self.finish();
        self.connection().block(Side::Write, deadline, delivered)
    }

    /// Starts to close the connection and polls whether all written data is delivered.
    ///
    /// # Errors
    /// As [`close`](Self::close).
    pub fn poll_close(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        self.finish();
        self.connection().poll(Side::Write, cx, delivered)
    }

    /// Closes the connection at once; undelivered data is lost.
    pub fn abort(&self) {
        self.connection().update(Side::Write, Connection::abort);
    }

    /// The socket type: a stream of bytes, or messages.
    pub fn socket_type(&self) -> SocketType {
        self.connection().lock().connection.socket_type()
    }

    /// Why the connection has ended, if it has.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.connection().lock().connection.close_reason()
    }

    /// Bytes written and not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.connection().lock().connection.unacknowledged()
    }

    /// Calls `f` with the state machine, for values that are not in [`stats`](Self::stats). The
    /// connection is locked during the call.
    pub fn with_connection<T>(&self, f: impl FnOnce(&mut Connection) -> T) -> T {
        f(&mut self.connection().lock().connection)
    }

    /// The statistics of the connection, with UDT4's names. With `clear`, a new interval starts.
    pub fn stats(&self, clear: bool) -> Stats {
        let now = self.connection().port.socket.now();
        self.connection().lock().connection.stats(now, clear)
    }
}

fn connected(state: &mut State) -> Option<io::Result<()>> {
    if state.connection.is_open() {
        return Some(Ok(()));
    }
    let reason = state.connection.close_reason()?;
    Some(Err(state.io_error(Error::Closed(reason))))
}

fn try_write(state: &mut State, data: &[u8]) -> Option<io::Result<usize>> {
    match state.connection.write(&data[..data.len().min(CHUNK)]) {
        Ok(0) if !data.is_empty() => None,
        Ok(count) => Some(Ok(count)),
        Err(Error::NotConnected) => None,
        Err(error) => Some(Err(state.io_error(error))),
    }
}

/// The result of a read at the end of the data: success if the connection was closed, otherwise an
/// error.
fn end_result(state: &State, reason: CloseReason) -> io::Result<()> {
    match (reason, state.io_error(Error::Closed(reason))) {
        (CloseReason::Local | CloseReason::Peer, error)
            if error.kind() == io::ErrorKind::BrokenPipe =>
        {
            Ok(())
        }
        (_, error) => Err(error),
    }
}

/// The result of closing; `None` until the connection has ended.
fn delivered(state: &mut State) -> Option<io::Result<()>> {
    let reason = state.connection.close_reason()?;
    match reason {
        CloseReason::Peer if state.connection.unacknowledged() > 0 => {
            Some(Err(state.io_error(Error::Closed(reason))))
        }
        _ => Some(end_result(state, reason)),
    }
}

impl Read for &UdtStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.read_until(out, self.deadline(Side::Read))
    }
}

impl Write for &UdtStream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.write_until(data, self.deadline(Side::Write))
    }

    /// Does nothing: written data is sent as soon as the controller and the peer's window allow.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for UdtStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        (&*self).read(out)
    }
}

impl Write for UdtStream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        (&*self).write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
