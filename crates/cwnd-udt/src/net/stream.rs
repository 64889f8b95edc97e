//! The blocking and asynchronous interface of a connection.

use super::endpoint::{Endpoint, first};
use super::link::{Link, Side, State};
use crate::secure::PublicKey;
use crate::{CloseReason, Config, Connection, Error, SocketType, Stats};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The largest number of bytes copied while the driver waits for the lock.
const CHUNK: usize = 1 << 16;

/// A UDT connection: a stream of bytes, or of messages.
///
/// Reading and writing take a shared reference, and clones are the same connection: one thread may read while another
/// writes. Dropping the last clone shuts the connection down: written data is still delivered while the process lives,
/// and [`close`](Self::close) waits for that.
///
/// Waiting calls have three forms: plain ones that block the thread ([`Read`] and [`Write`] among them, with
/// [timeouts](Self::set_read_timeout) if set), `..._until` ones with a deadline, and `poll_...` and `..._async` ones
/// for tasks of any runtime. With the feature `tokio` a stream is also `tokio::io::AsyncRead` and `AsyncWrite`.
///
/// Errors of kind [`BrokenPipe`](io::ErrorKind::BrokenPipe) mean that the connection was closed,
/// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) that the peer no longer answers. After the peer has closed a
/// stream, reads return 0 bytes.
#[derive(Clone, Debug)]
pub struct UdtStream(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    link: Arc<Link>,
    /// In nanoseconds; 0 is none.
    timeouts: [AtomicU64; 2],
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.link.shutdown();
    }
}

impl Link {
    fn shutdown(self: &Arc<Self>) {
        let now = self.port.socket.now();
        let _ = self.block(Side::Write, None, |state| {
            state.connection.shutdown(now);
            Some(Ok(()))
        });
    }
}

impl UdtStream {
    /// Advertises the whole receive buffer to the peer: the application has accepted the connection.
    pub(super) fn accepted(&self) {
        let now = self.link().port.socket.now();
        let _ = self.link().block(Side::Read, None, |state| {
            state.connection.release_room(now);
            Some(Ok(()))
        });
    }

    pub(super) fn new(link: Arc<Link>) -> Self {
        UdtStream(Arc::new(Handle { link, timeouts: Default::default() }))
    }

    fn link(&self) -> &Arc<Link> {
        &self.0.link
    }

    /// Connects to a listener from a new UDP port, and waits for the connection.
    ///
    /// # Errors
    /// If the name has no address, no listener answers within [`Config::connect_timeout`], or the listener refuses.
    pub fn connect(addr: impl ToSocketAddrs, config: &Config) -> io::Result<Self> {
        first(addr, |peer| Endpoint::towards(peer)?.connect(peer, config))
    }

    /// The same, in any async runtime.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_async(peer: SocketAddr, config: &Config) -> io::Result<Self> {
        Endpoint::towards(peer)?.connect_async(peer, config).await
    }

    /// Begins to connect and returns at once; [`connected_until`](Self::connected_until) waits for the connection.
    ///
    /// # Errors
    /// If no UDP port can be opened.
    pub fn connecting(peer: SocketAddr, config: &Config) -> io::Result<Self> {
        Endpoint::towards(peer)?.connecting(peer, config)
    }

    /// Connects to `peer` by rendezvous from the port `local`: both ends connect to each other, and neither listens.
    /// This works through address translators that admit answers.
    ///
    /// # Errors
    /// If the port cannot be opened, or the peer does not connect within [`Config::connect_timeout`].
    pub fn rendezvous(
        local: impl ToSocketAddrs,
        peer: SocketAddr,
        config: &Config,
    ) -> io::Result<Self> {
        Endpoint::bind(local)?.rendezvous(peer, config)
    }

    /// The peer's address.
    pub fn peer_addr(&self) -> SocketAddr {
        let peer = self.link().peer;
        SocketAddr::new(peer.ip().to_canonical(), peer.port())
    }

    /// The address of this end's UDP port.
    pub fn local_addr(&self) -> SocketAddr {
        self.link().port.local
    }

    /// The public key that the peer has proved, with [`Credentials::Pair`](crate::secure::Credentials).
    pub fn identity(&self) -> Option<PublicKey> {
        self.link().identity()
    }

    /// Waits until the connection is established.
    ///
    /// # Errors
    /// If connecting fails, or is not done by `deadline` ([`TimedOut`](io::ErrorKind::TimedOut)).
    pub fn connected_until(&self, deadline: Option<Instant>) -> io::Result<()> {
        self.link().block(Side::Write, deadline, connected)
    }

    /// Waits until the connection is established, for a task.
    ///
    /// # Errors
    /// If connecting fails.
    pub fn poll_connected(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        self.link().poll(Side::Write, cx, connected)
    }

    /// Sets the timeout of [`Read`] and [`recv_message`](Self::recv_message); `None` waits without limit.
    pub fn set_read_timeout(&self, limit: Option<Duration>) {
        self.set_timeout(Side::Read, limit);
    }

    /// Sets the timeout of [`Write`] and [`send_message`](Self::send_message); `None` waits without limit.
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

    /// Reads the available data, waiting for some until `deadline`.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) if no data arrived, and as described [above](Self).
    pub fn read_until(&self, out: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
        self.link().block(Side::Read, deadline, |state| self.try_read(state, out))
    }

    /// Reads the available data, for a task.
    ///
    /// # Errors
    /// As described [above](Self).
    pub fn poll_read(&self, cx: &Context<'_>, out: &mut [u8]) -> Poll<io::Result<usize>> {
        self.link().poll(Side::Read, cx, |state| self.try_read(state, out))
    }

    fn try_read(&self, state: &mut State, out: &mut [u8]) -> Option<io::Result<usize>> {
        let part = out.len().min(CHUNK);
        match state.connection.read(self.link().port.socket.now(), &mut out[..part]) {
            Ok(0) if !out.is_empty() => None,
            Ok(count) => Some(Ok(count)),
            Err(Error::NotConnected) => None,
            Err(Error::Closed(reason)) => Some(ended(state, reason).map(|()| 0)),
            Err(error) => Some(Err(state.explain(error))),
        }
    }

    /// Writes as much as fits into the send buffer, waiting for room until `deadline`.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) if there was no room, and as described [above](Self).
    pub fn write_until(&self, data: &[u8], deadline: Option<Instant>) -> io::Result<usize> {
        self.link().block(Side::Write, deadline, |state| try_write(state, data))
    }

    /// Writes as much as fits into the send buffer, for a task.
    ///
    /// # Errors
    /// As described [above](Self).
    pub fn poll_write(&self, cx: &Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.link().poll(Side::Write, cx, |state| try_write(state, data))
    }

    /// Sends a message, waiting for room until the write timeout.
    ///
    /// After `ttl` the message is no longer sent, and the receiver continues without it. With `in_order` it is
    /// delivered after all earlier messages, otherwise as soon as it is complete.
    ///
    /// # Errors
    /// When the connection is a stream or the message is larger than the send buffer
    /// ([`InvalidInput`](io::ErrorKind::InvalidInput)), and as described [above](Self).
    pub fn send_message(
        &self,
        data: &[u8],
        ttl: Option<Duration>,
        in_order: bool,
    ) -> io::Result<()> {
        self.send_message_until(data, (ttl, in_order), self.deadline(Side::Write))
    }

    /// Sends a message, waiting for room until `deadline`; `(ttl, in_order)` are as for
    /// [`send_message`](Self::send_message).
    ///
    /// # Errors
    /// As [`send_message`](Self::send_message).
    pub fn send_message_until(
        &self,
        data: &[u8],
        how: (Option<Duration>, bool),
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        self.link().block(Side::Write, deadline, |state| self.try_send(state, data, how))
    }

    /// Sends a message if there is room, for a task.
    ///
    /// # Errors
    /// As [`send_message`](Self::send_message).
    pub fn poll_send_message(
        &self,
        cx: &Context<'_>,
        data: &[u8],
        how: (Option<Duration>, bool),
    ) -> Poll<io::Result<()>> {
        self.link().poll(Side::Write, cx, |state| self.try_send(state, data, how))
    }

    fn try_send(
        &self,
        state: &mut State,
        data: &[u8],
        (ttl, in_order): (Option<Duration>, bool),
    ) -> Option<io::Result<()>> {
        let now = self.link().port.socket.now();
        let ttl = ttl.map(super::dur);
        match state.connection.send_message(now, data, ttl, in_order) {
            Ok(true) => Some(Ok(())),
            Ok(false) | Err(Error::NotConnected) => None,
            Err(error) => Some(Err(state.explain(error))),
        }
    }

    /// Copies the next message to `out` and returns its length; 0 if the peer has closed. Waits for a message until the
    /// read timeout.
    ///
    /// # Errors
    /// When the connection is a stream or `out` is too small
    /// ([`InvalidInput`](io::ErrorKind::InvalidInput); the message stays), and as described
    /// [above](Self).
    pub fn recv_message(&self, out: &mut [u8]) -> io::Result<usize> {
        let deadline = self.deadline(Side::Read);
        self.link().block(Side::Read, deadline, |state| self.try_recv(state, out))
    }

    /// Returns the next message of any length; `None` if the peer has closed.
    ///
    /// # Errors
    /// As [`recv_message`](Self::recv_message), and [`TimedOut`](io::ErrorKind::TimedOut) if none arrived by
    /// `deadline`.
    pub fn next_message_until(&self, deadline: Option<Instant>) -> io::Result<Option<Vec<u8>>> {
        self.link().block(Side::Read, deadline, |state| self.try_next(state))
    }

    /// Returns the next message, for a task; `None` if the peer has closed.
    ///
    /// # Errors
    /// As [`recv_message`](Self::recv_message).
    pub fn poll_next_message(&self, cx: &Context<'_>) -> Poll<io::Result<Option<Vec<u8>>>> {
        self.link().poll(Side::Read, cx, |state| self.try_next(state))
    }

    fn try_next(&self, state: &mut State) -> Option<io::Result<Option<Vec<u8>>>> {
        let mut out = vec![0; state.connection.next_message().unwrap_or(0)];
        let there = state.connection.next_message().is_some();
        let answer = self.try_recv(state, &mut out)?;
        Some(answer.map(|_| there.then_some(out)))
    }

    fn try_recv(&self, state: &mut State, out: &mut [u8]) -> Option<io::Result<usize>> {
        match state.connection.recv_message(self.link().port.socket.now(), out) {
            Ok(None) | Err(Error::NotConnected) => None,
            Ok(Some(length)) => Some(Ok(length)),
            Err(Error::Closed(reason)) => Some(ended(state, reason).map(|()| 0)),
            Err(error) => Some(Err(state.explain(error))),
        }
    }

    /// Closes the connection without waiting: no more data can be written, written data is delivered within
    /// [`Config::linger`](crate::Config::linger), and then a shutdown is sent. UDT has no half-closed connections.
    pub fn finish(&self) {
        self.link().shutdown();
    }

    /// Closes the connection and waits until all written data is delivered.
    ///
    /// # Errors
    /// If data was not delivered: the peer was lost or has closed, or the linger time expired.
    pub fn close(self) -> io::Result<()> {
        self.close_until(None)
    }

    /// The same, until `deadline` at the latest.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) if data is still being delivered, and as [`close`](Self::close).
    pub fn close_until(&self, deadline: Option<Instant>) -> io::Result<()> {
        self.finish();
        self.link().block(Side::Write, deadline, delivered)
    }

    /// Closes the connection, for a task that waits until all written data is delivered.
    ///
    /// # Errors
    /// As [`close`](Self::close).
    pub fn poll_close(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        self.finish();
        self.link().poll(Side::Write, cx, delivered)
    }

    /// Closes the connection at once; undelivered data is lost.
    pub fn abort(&self) {
        self.link().abort();
    }

    /// The socket type: a stream of bytes or of messages.
    pub fn socket_type(&self) -> SocketType {
        self.link().lock().connection.socket_type()
    }

    /// Why the connection has ended, if it has.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.link().lock().connection.close_reason()
    }

    /// Bytes written and not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.link().lock().connection.unacknowledged()
    }

    /// Calls a function with the connection, for values that are not in [`stats`](Self::stats). The port's thread waits
    /// meanwhile.
    pub fn look<T>(&self, look: impl FnOnce(&mut Connection) -> T) -> T {
        look(&mut self.link().lock().connection)
    }

    /// The statistics of the connection, under UDT4's names. With `clear` a new interval begins.
    pub fn stats(&self, clear: bool) -> Stats {
        let now = self.link().port.socket.now();
        self.link().lock().connection.stats(now, clear)
    }
}

fn connected(state: &mut State) -> Option<io::Result<()>> {
    if state.connection.is_open() {
        return Some(Ok(()));
    }
    let reason = state.connection.close_reason()?;
    Some(Err(state.explain(Error::Closed(reason))))
}

fn try_write(state: &mut State, data: &[u8]) -> Option<io::Result<usize>> {
    match state.connection.write(&data[..data.len().min(CHUNK)]) {
        Ok(0) if !data.is_empty() => None,
        Ok(count) => Some(Ok(count)),
        Err(Error::NotConnected) => None,
        Err(error) => Some(Err(state.explain(error))),
    }
}

/// The result of reading from an ended connection whose data was read: an orderly end, or an error.
fn ended(state: &State, reason: CloseReason) -> io::Result<()> {
    match (reason, state.explain(Error::Closed(reason))) {
        (CloseReason::Local | CloseReason::Peer, error)
            if error.kind() == io::ErrorKind::BrokenPipe =>
        {
            Ok(())
        }
        (_, error) => Err(error),
    }
}

/// Whether all data was delivered, once the connection has ended.
fn delivered(state: &mut State) -> Option<io::Result<()>> {
    let reason = state.connection.close_reason()?;
    match reason {
        CloseReason::Peer if state.connection.unacknowledged() > 0 => {
            Some(Err(state.explain(Error::Closed(reason))))
        }
        _ => Some(ended(state, reason)),
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

    /// Nothing waits to be sent but what the network and the controller hold back.
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
