//! Streams of bytes for threads, of one connection each.

use crate::{Error, noq, quinn};
use cwnd::Dur;
use cwnd_quic::Controllers;
use cwnd_sim::network::{Quic, QuicStack};
use cwnd_udt::Admission;
use cwnd_udt::secure::Credentials;
use std::fmt::Debug;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::timeout_at;

/// Pieces of a stream that noq and quinn keep before a gap; they close the connection for one more.
const MAX_PIECES: u32 = 1024;
/// Bytes that the application of the peer has not read, at most. If every other packet of them is
/// lost, there are as many pieces as the stacks allow.
pub(crate) const WINDOW: u32 = 2 * MAX_PIECES * FIRST_PAYLOAD;
/// Bytes that a peer may send before it has proved its credentials.
pub(crate) const FIRST_WINDOW: u32 = 1 << 16;
/// Time in which a client must have opened its stream and proved its credentials.
pub(crate) const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of keep-alives: three of them may be lost.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(4);
/// Connections of a listener that are accepted and not taken.
const BACKLOG: usize = 128;
/// The UDP payload with which a connection starts (RFC 9000 section 14).
const FIRST_PAYLOAD: u32 = 1200;
/// Bytes of the headers of UDP and IPv6.
const HEADERS: u32 = 48;

/// Options of a stream.
#[derive(Debug)]
pub struct StreamOptions {
    /// The stack of this end.
    pub stack: QuicStack,
    /// The controller of this end, `own:` and the name of one of the stack's own; not read if there
    /// are `controllers`.
    pub controller: String,
    /// Makes the controllers of this end.
    pub controllers: Option<Controllers>,
    /// The largest packet in bytes, with the headers of UDP and IPv6. The path is probed for it.
    pub mtu: u32,
    /// The proof that both ends require. Without credentials everybody is accepted, and the
    /// connection is encrypted, but the peer may be anybody.
    pub credentials: Option<Credentials>,
}

impl StreamOptions {
    /// Returns the options of the stack.
    pub(crate) fn quic(&self) -> Quic {
        Quic {
            stack: self.stack,
            controller: self.controller.clone(),
            bytes: None,
            mtu: FIRST_PAYLOAD,
            mtu_discovery: true,
            receive_window: WINDOW.into(),
            ack_frequency: None,
            streams: 1,
            tls: true,
            idle_timeout: Dur::from_millis(15_000),
            packet_changes: Vec::new(),
        }
    }

    /// Returns the largest UDP payload in bytes.
    pub(crate) fn payload(&self) -> Result<u16, Error> {
        let least = FIRST_PAYLOAD + HEADERS;
        let payload = self.mtu.checked_sub(HEADERS).filter(|&payload| payload >= FIRST_PAYLOAD);
        payload.and_then(|payload| u16::try_from(payload).ok()).ok_or_else(|| {
            let mtu = self.mtu;
            Error::Refused(format!("packets of {mtu} bytes: QUIC needs {least} bytes or more"))
        })
    }
}

/// Measurements of a stream's connection.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct StreamStats {
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The congestion window in bytes.
    pub window: u64,
    /// Packets declared lost; their data is retransmitted.
    pub lost: u64,
    /// Bytes that were written and that the peer's application has not read.
    pub unread: u64,
    /// The bound of `unread`.
    pub send_buffer: u64,
}

/// A stream of bytes in both directions, with a connection of its own.
///
/// Calls wait until a time, if one is given; the error of a wait that is over is `TimedOut` without
/// text. Other errors are of the kinds `BrokenPipe` (the connection was closed), `ConnectionReset`
/// (the peer does not know it) and `ConnectionAborted` (the peer does not answer).
pub trait Stream: Debug + Send + Sync {
    /// Returns the address of the peer.
    fn peer(&self) -> SocketAddr;

    /// Returns the address of the socket.
    fn local(&self) -> SocketAddr;

    /// Reads available bytes; 0 if the peer has closed.
    ///
    /// # Errors
    /// As described by the trait.
    fn read_until(&self, buffer: &mut [u8], until: Option<Instant>) -> io::Result<usize>;

    /// Writes bytes as far as there is room, at least one. Returns their number.
    ///
    /// # Errors
    /// As described by the trait.
    fn write_until(&self, data: &[u8], until: Option<Instant>) -> io::Result<usize>;

    /// Closes the connection when all that was written has arrived.
    ///
    /// # Errors
    /// Not all has arrived: as described by the trait.
    fn close_until(&self, until: Option<Instant>) -> io::Result<()>;

    /// Closes the connection at once.
    fn abort(&self);

    /// Returns the measurements.
    fn stats(&self) -> StreamStats;
}

/// A connection that is being opened.
#[derive(Debug)]
pub struct Connecting(JoinHandle<io::Result<Box<dyn Stream>>>);

impl Connecting {
    /// Connects to a listener from a socket, in at most `patience`.
    ///
    /// # Errors
    /// A system call fails, or the stack refuses an option.
    pub fn new(
        socket: UdpSocket,
        peer: SocketAddr,
        options: StreamOptions,
        patience: Duration,
    ) -> Result<Self, Error> {
        let runtime = runtime()?;
        let _context = runtime.enter();
        Ok(Connecting(match options.stack {
            QuicStack::Noq => runtime.spawn(noq::connect(socket, peer, options, patience)?),
            QuicStack::Quinn => runtime.spawn(quinn::connect(socket, peer, options, patience)?),
        }))
    }

    /// Waits for the connection.
    ///
    /// # Errors
    /// As of a [`Stream`]; `PermissionDenied` if the peer has other credentials.
    pub fn until(&mut self, until: Option<Instant>) -> io::Result<Box<dyn Stream>> {
        wait(until, &mut self.0)?.map_err(io::Error::other)?
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns a socket to connect from: by default at any address of the peer's family.
///
/// # Errors
/// A system call fails.
pub fn client_socket(from: Option<SocketAddr>, peer: SocketAddr) -> io::Result<UdpSocket> {
    UdpSocket::bind(from.unwrap_or_else(|| match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }))
}

/// Accepts connections. Open ones outlive it.
#[derive(Debug)]
pub struct StreamListener {
    local: SocketAddr,
    accepted: Mutex<mpsc::Receiver<Box<dyn Stream>>>,
    task: AbortHandle,
}

impl StreamListener {
    /// Listens on a socket for the peers that `admission` allows.
    ///
    /// # Errors
    /// A system call fails, or the stack refuses an option.
    pub fn new(
        socket: UdpSocket,
        options: StreamOptions,
        admission: Admission,
    ) -> Result<Self, Error> {
        let local = socket.local_addr()?;
        let (queue, accepted) = mpsc::channel(BACKLOG);
        let runtime = runtime()?;
        let _context = runtime.enter();
        let task = match options.stack {
            QuicStack::Noq => runtime.spawn(noq::listen(socket, options, admission, queue)?),
            QuicStack::Quinn => runtime.spawn(quinn::listen(socket, options, admission, queue)?),
        };
        Ok(StreamListener { local, accepted: Mutex::new(accepted), task: task.abort_handle() })
    }

    /// Returns the address of the socket.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Waits for the next connection whose peer has proved the credentials.
    ///
    /// # Errors
    /// As of a [`Stream`].
    pub fn accept_until(&self, until: Option<Instant>) -> io::Result<Box<dyn Stream>> {
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        wait(until, accepted.recv())?.ok_or_else(|| io::Error::other("the listener is closed"))
    }
}

impl Drop for StreamListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns the runtime of all streams of this process, whose threads drive their connections.
fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let made = Builder::new_multi_thread().enable_all().build()?;
    Ok(RUNTIME.get_or_init(|| made))
}

/// Waits for a future in this thread.
pub(crate) fn wait<T>(until: Option<Instant>, future: impl Future<Output = T>) -> io::Result<T> {
    runtime()?.block_on(async {
        match until {
            None => Ok(future.await),
            Some(until) => {
                timeout_at(until.into(), future).await.map_err(|_| io::ErrorKind::TimedOut.into())
            }
        }
    })
}

/// Returns the error of a client without an answer.
pub(crate) fn silent() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "no answer: no QUIC server is there")
}
