//! Accepting connections.

use super::door::{Budgets, Door, Word};
use super::endpoint::Endpoint;
use super::link::Link;
use super::stream::UdtStream;
use crate::Config;
use crate::secure::Credentials;
use cwnd::Time;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// The largest number of connections that wait to be accepted.
const BACKLOG: usize = 128;

#[derive(Debug, Default)]
struct Waiting {
    streams: VecDeque<UdtStream>,
    tasks: Vec<Waker>,
    failure: Option<(io::ErrorKind, String)>,
}

/// State shared by the driver and a listener.
#[derive(Debug)]
pub(super) struct Queue {
    door: Door,
    pub config: Config,
    waiting: Mutex<Waiting>,
    /// The latest connection.
    holder: Mutex<Weak<Link>>,
    signal: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether clients must prove credentials.
    pub(super) fn is_locked(&self) -> bool {
        self.door.is_locked()
    }

    /// Whether a client at `ip` is answered; `open` counts the open connections of an address.
    pub(super) fn admits(&self, ip: IpAddr, open: impl FnOnce() -> usize) -> bool {
        let admission = &self.config.admission;
        admission.allows(ip) && admission.per_address.is_none_or(|most| open() < most)
    }

    pub(super) fn spend_code(&self) {
        self.door.spend_code();
    }

    /// Handles a datagram for the listener: see [`Door::hear`].
    pub(super) fn hear(
        &self,
        at: (Time, SocketAddr),
        datagram: &mut [u8],
        budgets: &mut Budgets,
        id: impl FnMut() -> u32,
    ) -> Word {
        let room = || self.lock().streams.len() < BACKLOG;
        self.door.hear(at, datagram, budgets, id, room)
    }

    /// Adds a new connection. With a one-time code it replaces the previous one.
    pub(super) fn push(&self, link: Arc<Link>) {
        if let Some(Credentials::Code(_)) = self.config.credentials {
            let newest = Arc::downgrade(&link);
            let mut holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
            let before = std::mem::replace(&mut *holder, newest);
            drop(holder);
            if let Some(before) = before.upgrade() {
                before.abort();
            }
        }
        let mut waiting = self.lock();
        waiting.streams.push_back(UdtStream::new(link));
        self.tell(waiting);
    }

    pub(super) fn fail(&self, kind: io::ErrorKind, text: &str) {
        let mut waiting = self.lock();
        waiting.failure = Some((kind, text.into()));
        self.tell(waiting);
    }

    fn tell(&self, mut waiting: MutexGuard<'_, Waiting>) {
        let tasks = std::mem::take(&mut waiting.tasks);
        drop(waiting);
        self.signal.notify_all();
        tasks.into_iter().for_each(Waker::wake);
    }

    fn take(waiting: &mut Waiting) -> Option<io::Result<UdtStream>> {
        if let Some(stream) = waiting.streams.pop_front() {
            return Some(Ok(stream));
        }
        let (kind, text) = waiting.failure.clone()?;
        Some(Err(io::Error::new(kind, text)))
    }
}

/// A UDT socket that accepts connections.
///
/// Up to 128 connections wait to be accepted; further clients repeat their requests. Dropping the listener closes the
/// waiting connections only.
#[derive(Debug)]
pub struct UdtListener {
    endpoint: Endpoint,
    queue: Arc<Queue>,
}

impl UdtListener {
    /// Listens on a UDP port of its own; `config` is that of the connections that will be accepted.
    ///
    /// # Errors
    /// If the port cannot be opened, for example because it is in use.
    pub fn bind(addr: impl ToSocketAddrs, config: &Config) -> io::Result<Self> {
        Endpoint::bind(addr)?.listen(config)
    }

    pub(super) fn new(endpoint: Endpoint, config: &Config) -> io::Result<Self> {
        let queue = Arc::new(Queue {
            door: Door::new(config, endpoint.local_addr())?,
            config: config.clone(),
            waiting: Mutex::default(),
            holder: Mutex::default(),
            signal: Condvar::new(),
        });
        let port = endpoint.port();
        let mut table = port.table();
        if table.queue.is_some() {
            let text = "another listener has this port";
            return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
        }
        table.queue = Some(Arc::clone(&queue));
        drop(table);
        Ok(UdtListener { endpoint, queue })
    }

    /// The port, for outgoing connections.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The local address.
    pub fn local_addr(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// Whether clients must prove credentials.
    pub fn has_credentials(&self) -> bool {
        self.queue.config.credentials.is_some()
    }

    /// Invalidates the one-time code of this listener: no more clients are admitted. Existing connections stay open.
    /// Without a code this does nothing.
    pub fn spend_code(&self) {
        self.queue.spend_code();
    }

    /// Waits for the next connection and returns it with its peer's address.
    ///
    /// # Errors
    /// When the port's socket fails, and of kind [`PermissionDenied`](io::ErrorKind::PermissionDenied) once
    /// too many wrong guesses have made the listener's one-time code void.
    pub fn accept(&self) -> io::Result<(UdtStream, SocketAddr)> {
        self.accept_until(None)
    }

    /// The same, until `deadline` at the latest.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) when none came, and as [`accept`](Self::accept).
    pub fn accept_until(&self, deadline: Option<Instant>) -> io::Result<(UdtStream, SocketAddr)> {
        let mut waiting = self.queue.lock();
        loop {
            if let Some(taken) = Queue::take(&mut waiting) {
                drop(waiting);
                return taken.map(with_peer);
            }
            waiting = match deadline {
                None => self.queue.signal.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    let woken = self.queue.signal.wait_timeout(waiting, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// The next connection, for a task: see [`accept`](Self::accept).
    ///
    /// # Errors
    /// When the port's socket fails.
    pub fn poll_accept(&self, cx: &Context<'_>) -> Poll<io::Result<(UdtStream, SocketAddr)>> {
        let mut waiting = self.queue.lock();
        match Queue::take(&mut waiting) {
            Some(taken) => {
                drop(waiting);
                Poll::Ready(taken.map(with_peer))
            }
            None => {
                if !waiting.tasks.iter().any(|task| task.will_wake(cx.waker())) {
                    waiting.tasks.push(cx.waker().clone());
                }
                Poll::Pending
            }
        }
    }

    /// The next connection, in any async runtime.
    ///
    /// # Errors
    /// When the port's socket fails.
    pub async fn accept_async(&self) -> io::Result<(UdtStream, SocketAddr)> {
        std::future::poll_fn(|cx| self.poll_accept(cx)).await
    }
}

fn with_peer(stream: UdtStream) -> (UdtStream, SocketAddr) {
    stream.accepted();
    let peer = stream.peer_addr();
    (stream, peer)
}

impl Drop for UdtListener {
    fn drop(&mut self) {
        let queue = self.endpoint.port().table().queue.take();
        // Streams are closed when no lock is held.
        let streams = queue.map(|queue| std::mem::take(&mut queue.lock().streams));
        drop(streams);
    }
}
