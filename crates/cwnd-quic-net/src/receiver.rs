//! The receiving end of a flow.

use crate::{Error, Identity, noq, quinn, run};
use cwnd_sim::network::{Quic, QuicStack};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// The receiving end of a flow: its state, which other threads may read while it runs.
#[derive(Debug, Default)]
pub struct Receiver {
    received: AtomicU64,
    last_arrival: Mutex<Option<Instant>>,
    closed: OnceLock<(Instant, String)>,
}

impl Receiver {
    /// Accepts one connection on a socket and reads its streams, until `stopped` returns true.
    ///
    /// # Errors
    /// A system call fails, or the stack refuses an option. A connection that is closed is
    /// [state](Self::closed).
    pub fn run(
        self: &Arc<Self>,
        socket: UdpSocket,
        quic: &Quic,
        identity: &Identity,
        stopped: impl Fn() -> bool,
    ) -> Result<(), Error> {
        let tls = identity.server()?;
        match quic.stack {
            QuicStack::Noq => run(noq::receive(self.clone(), socket, quic, tls), stopped),
            QuicStack::Quinn => run(quinn::receive(self.clone(), socket, quic, tls), stopped),
        }
    }

    /// Returns the bytes that were read, in order for each stream.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Returns when bytes were last read.
    pub fn last_arrival(&self) -> Option<Instant> {
        *self.last_arrival.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when and why the connection was closed, also by the sender.
    pub fn closed(&self) -> Option<&(Instant, String)> {
        self.closed.get()
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
        *self.last_arrival.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    pub(crate) fn close(&self, reason: impl ToString) {
        self.closed.get_or_init(|| (Instant::now(), reason.to_string()));
    }
}
