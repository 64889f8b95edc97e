//! Listeners: the application's interface.

use super::accept_queue::AcceptQueue;
use super::endpoint::Endpoint;
use super::stream::UdtStream;
use super::{register, wait};
use crate::Config;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// A UDT socket that accepts connections.
///
/// Up to 128 connections wait for [`accept`](Self::accept); further clients repeat their requests.
/// Dropping the listener closes the waiting connections, but no accepted ones.
#[derive(Debug)]
pub struct UdtListener {
    endpoint: Endpoint,
    accept_queue: Arc<AcceptQueue>,
}

impl UdtListener {
    /// Listens on a new UDP port. Accepted connections use `config`.
    ///
    /// # Errors
    /// If the port cannot be opened, for example because it is in use.
    pub fn bind(addr: impl ToSocketAddrs, config: &Config) -> io::Result<Self> {
        Endpoint::bind(addr)?.listen(config)
    }

    pub(super) fn new(endpoint: Endpoint, config: &Config) -> io::Result<Self> {
        let accept_queue = Arc::new(AcceptQueue::new(config, endpoint.local_addr())?);
        let port = endpoint.port();
        let mut table = port.table();
        if table.accept_queue.is_some() {
            let text = "another listener uses this port";
            return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
        }
        table.accept_queue = Some(Arc::clone(&accept_queue));
        drop(table);
        Ok(UdtListener { endpoint, accept_queue })
    }

    /// The port, which can open outgoing connections too.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The local address.
    pub fn local_addr(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// Whether clients must prove credentials.
    pub fn has_credentials(&self) -> bool {
        self.accept_queue.config.credentials.is_some()
    }

    /// Invalidates the one-time code of this listener: no more clients are admitted. Existing
    /// connections stay open. Without a code this does nothing.
    pub fn spend_code(&self) {
        self.accept_queue.responder.spend_code();
    }

    /// Accepts the next connection: waits for it and returns it with its peer's address.
    ///
    /// # Errors
    /// If the port's socket fails, and [`PermissionDenied`](io::ErrorKind::PermissionDenied) after
    /// too many wrong guesses of the listener's one-time code.
    pub fn accept(&self) -> io::Result<(UdtStream, SocketAddr)> {
        self.accept_until(None)
    }

    /// As [`accept`](Self::accept), with a deadline.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) at the deadline, and as [`accept`](Self::accept).
    pub fn accept_until(&self, deadline: Option<Instant>) -> io::Result<(UdtStream, SocketAddr)> {
        let mut backlog = self.accept_queue.lock();
        loop {
            if let Some(result) = AcceptQueue::pop(&mut backlog) {
                drop(backlog);
                return result.map(accepted);
            }
            let (woken, expired) = wait(&self.accept_queue.signal, backlog, deadline);
            if expired {
                return Err(io::ErrorKind::TimedOut.into());
            }
            backlog = woken;
        }
    }

    /// Polls for the next connection: see [`accept`](Self::accept).
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn poll_accept(&self, cx: &Context<'_>) -> Poll<io::Result<(UdtStream, SocketAddr)>> {
        let mut backlog = self.accept_queue.lock();
        match AcceptQueue::pop(&mut backlog) {
            Some(result) => {
                drop(backlog);
                Poll::Ready(result.map(accepted))
            }
            None => {
                register(&mut backlog.tasks, cx);
                Poll::Pending
            }
        }
    }

    /// Accepts the next connection in any async runtime.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub async fn accept_async(&self) -> io::Result<(UdtStream, SocketAddr)> {
        std::future::poll_fn(|cx| self.poll_accept(cx)).await
    }
}

/// Marks a connection as accepted and returns it with its peer's address.
fn accepted(stream: UdtStream) -> (UdtStream, SocketAddr) {
    stream.accepted();
    let peer = stream.peer_addr();
    (stream, peer)
}

impl Drop for UdtListener {
    fn drop(&mut self) {
        let accept_queue = self.endpoint.port().table().accept_queue.take();
        // Dropping a stream takes locks: hold none.
        let streams = accept_queue.map(|queue| std::mem::take(&mut queue.lock().streams));
        drop(streams);
    }
}
