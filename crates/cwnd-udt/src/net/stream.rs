//! A connection as the application sees it.

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

/// Bytes that are copied while the driver has to wait, at most.
const CHUNK: usize = 1 << 16;

/// A UDT connection: a stream of bytes, or of messages.
///
/// Reading and writing take a shared reference, and clones are the same connection: one thread may read
/// while another writes. The connection is shut down when the last clone is dropped: what was written is
/// still delivered as long as the process lives, and [`close`](Self::close) waits until it is.
///
/// Waiting calls come in three kinds: plain ones that block the thread ([`Read`] and [`Write`] among
/// them, with [timeouts](Self::set_read_timeout) if set), `..._until` ones with a deadline, and `poll_...`
/// and `..._async` ones for tasks of any runtime. With the feature `tokio` a stream is also
/// `tokio::io::AsyncRead` and `AsyncWrite`.
///
/// Errors of kind [`BrokenPipe`](io::ErrorKind::BrokenPipe) mean that the connection was closed,
/// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) that the peer does not answer any more. A
/// stream that the peer has closed ends with 0 bytes.
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
    /// The application has accepted the connection: the peer may fill the receive buffer.
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

    /// Connects to a listener, from a UDP port of its own, and waits until that is done.
    ///
    /// # Errors
    /// When the name has no address, nobody answers there within [`Config::connect_timeout`], or the
    /// answer is no.
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

    /// Begins to connect and returns at once: [`connected_until`](Self::connected_until) waits.
    ///
    /// # Errors
    /// When there is no UDP port to connect from.
    pub fn connecting(peer: SocketAddr, config: &Config) -> io::Result<Self> {
        Endpoint::towards(peer)?.connecting(peer, config)
    }

    /// Meets `peer` from the port `local`: both ends call each other, and none listens. That passes
    /// through address translators that let answers in.
    ///
    /// # Errors
    /// When the port cannot be had, or the peer does not call within [`Config::connect_timeout`].
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

    /// Waits until the connection is made.
    ///
    /// # Errors
    /// When it is not, or not by `deadline` ([`TimedOut`](io::ErrorKind::TimedOut)).
    pub fn connected_until(&self, deadline: Option<Instant>) -> io::Result<()> {
        self.link().block(Side::Write, deadline, connected)
    }

    /// Whether the connection is made, for a task.
    ///
    /// # Errors
    /// When it will not be.
    pub fn poll_connected(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        self.link().poll(Side::Write, cx, connected)
    }

    /// How long [`Read`] and [`recv_message`](Self::recv_message) wait at most; `None` is for ever.
    pub fn set_read_timeout(&self, limit: Option<Duration>) {
        self.set_timeout(Side::Read, limit);
    }

    /// How long [`Write`] and [`send_message`](Self::send_message) wait at most; `None` is for ever.
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

    /// Reads what is there, and waits until `deadline` for something to be there.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) when nothing came, and as described [above](Self).
    pub fn read_until(&self, out: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
        self.link().block(Side::Read, deadline, |state| self.try_read(state, out))
    }

    /// What is there to read, for a task.
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

    /// Writes as much as there is room for, and waits until `deadline` for room.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) when there was none, and as described [above](Self).
    pub fn write_until(&self, data: &[u8], deadline: Option<Instant>) -> io::Result<usize> {
        self.link().block(Side::Write, deadline, |state| try_write(state, data))
    }

    /// Writes as much as there is room for, for a task.
    ///
    /// # Errors
    /// As described [above](Self).
    pub fn poll_write(&self, cx: &Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.link().poll(Side::Write, cx, |state| try_write(state, data))
    }

    /// Sends a message, waiting for room as long as the write timeout says.
    ///
    /// After `ttl` it is not sent any more, and the receiver goes on without it. With `in_order` it is
    /// delivered after those sent before it, otherwise as soon as it is whole.
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

    /// The same, with a deadline of its own; `(ttl, in_order)` are as for
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

    /// The next message in `out`, and how long it is; 0 when the peer has closed. Waits for one as long
    /// as the read timeout says.
    ///
    /// # Errors
    /// When the connection is a stream or `out` is too small
    /// ([`InvalidInput`](io::ErrorKind::InvalidInput); the message stays), and as described
    /// [above](Self).
    pub fn recv_message(&self, out: &mut [u8]) -> io::Result<usize> {
        let deadline = self.deadline(Side::Read);
        self.link().block(Side::Read, deadline, |state| self.try_recv(state, out))
    }

    /// The next message, whatever its length; `None` when the peer has closed.
    ///
    /// # Errors
    /// As [`recv_message`](Self::recv_message), and [`TimedOut`](io::ErrorKind::TimedOut) when none came
    /// by `deadline`.
    pub fn next_message_until(&self, deadline: Option<Instant>) -> io::Result<Option<Vec<u8>>> {
        self.link().block(Side::Read, deadline, |state| self.try_next(state))
    }

    /// The next message, for a task; `None` when the peer has closed.
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

    /// Ends the connection, without waiting: nothing more can be written, what was is still delivered
    /// within [`Config::linger`](crate::Config::linger), and then the peer is told. UDT has no
    /// half-closed connections.
    pub fn finish(&self) {
        self.link().shutdown();
    }

    /// Ends the connection and waits until everything that was written is delivered.
    ///
    /// # Errors
    /// When it was not: the peer is gone or has closed, or the linger time was over.
    pub fn close(self) -> io::Result<()> {
        self.close_until(None)
    }

    /// The same, until `deadline` at the latest.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) while it goes on, and as [`close`](Self::close).
    pub fn close_until(&self, deadline: Option<Instant>) -> io::Result<()> {
        self.finish();
        self.link().block(Side::Write, deadline, delivered)
    }

    /// Ends the connection, for a task that waits until everything is delivered.
    ///
    /// # Errors
    /// As [`close`](Self::close).
    pub fn poll_close(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        self.finish();
        self.link().poll(Side::Write, cx, delivered)
    }

    /// Ends the connection at once: what is not delivered is lost.
    pub fn abort(&self) {
        self.link().abort();
    }

    /// Whether it is a stream of bytes or of messages.
    pub fn socket_type(&self) -> SocketType {
        self.link().lock().connection.socket_type()
    }

    /// Why the connection has ended, if it has.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.link().lock().connection.close_reason()
    }

    /// Bytes that were written and are not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.link().lock().connection.unacknowledged()
    }

    /// Looks at the connection itself, for what [`stats`](Self::stats) does not tell. Its thread waits
    /// meanwhile.
    pub fn look<T>(&self, look: impl FnOnce(&mut Connection) -> T) -> T {
        look(&mut self.link().lock().connection)
    }

    /// How the connection is doing, with UDT4's names. With `clear` the interval's counters begin anew.
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

/// An ended connection that everything was read of: an orderly end, or an error.
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

/// Whether everything arrived before the connection ended, once it has.
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
