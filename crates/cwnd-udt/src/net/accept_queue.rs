//! The accept queue of a listener.

use super::connection::{SharedConnection, Side};
use super::handshake::HandshakeResponder;
use super::stream::UdtStream;
use crate::secure::Credentials;
use crate::{Config, Connection};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;

/// The capacity of the accept queue.
const BACKLOG: usize = 128;

/// The contents of an accept queue.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    pub streams: VecDeque<UdtStream>,
    /// Tasks that wait for a connection.
    pub tasks: Vec<Waker>,
    /// The error that ended the listener.
    failure: Option<(io::ErrorKind, String)>,
}

/// The connections that wait for `accept`. The driver adds them, and the application removes them.
#[derive(Debug)]
pub(super) struct AcceptQueue {
    pub responder: HandshakeResponder,
    pub config: Config,
    backlog: Mutex<Backlog>,
    /// The connection added last.
    latest: Mutex<Weak<SharedConnection>>,
    pub signal: Condvar,
}

impl AcceptQueue {
    pub(super) fn new(config: &Config, local: SocketAddr) -> io::Result<Self> {
        Ok(AcceptQueue {
            responder: HandshakeResponder::new(config, local)?,
            config: config.clone(),
            backlog: Mutex::default(),
            latest: Mutex::default(),
            signal: Condvar::new(),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has_room(&self) -> bool {
        self.lock().streams.len() < BACKLOG
    }

    /// Whether a client at `ip` is answered; `open_connections` counts the open connections of that
    /// address.
    pub(super) fn admits(&self, ip: IpAddr, open_connections: impl FnOnce() -> usize) -> bool {
        let admission = &self.config.admission;
        admission.allows(ip) && admission.per_address.is_none_or(|max| open_connections() < max)
    }

    /// Adds a new connection. With a one-time code it replaces the previous one, which is aborted.
    pub(super) fn push(&self, connection: Arc<SharedConnection>) {
        if let Some(Credentials::Code(_)) = self.config.credentials {
            let newest = Arc::downgrade(&connection);
            let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
            let previous = std::mem::replace(&mut *latest, newest);
            drop(latest);
            if let Some(previous) = previous.upgrade() {
                previous.update(Side::Write, Connection::abort);
            }
        }
        let mut backlog = self.lock();
        backlog.streams.push_back(UdtStream::new(connection));
        self.notify(backlog);
    }

    /// Ends the listener with an error.
    pub(super) fn fail(&self, kind: io::ErrorKind, text: &str) {
        let mut backlog = self.lock();
        backlog.failure = Some((kind, text.into()));
        self.notify(backlog);
    }

    fn notify(&self, mut backlog: MutexGuard<'_, Backlog>) {
        let tasks = std::mem::take(&mut backlog.tasks);
        drop(backlog);
        self.signal.notify_all();
        tasks.into_iter().for_each(Waker::wake);
    }

    pub(super) fn pop(backlog: &mut Backlog) -> Option<io::Result<UdtStream>> {
        if let Some(stream) = backlog.streams.pop_front() {
            return Some(Ok(stream));
        }
        let (kind, text) = backlog.failure.clone()?;
        Some(Err(io::Error::new(kind, text)))
    }
}
