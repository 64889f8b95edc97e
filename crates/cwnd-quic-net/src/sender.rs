//! The sending end of a flow.

use crate::{Error, Identity, noq, quinn, run, tls};
use cwnd::{Cut, Dur, Limit, Packets, Rate};
use cwnd_quic::Controllers;
use cwnd_sim::network::{Quic, QuicStack};
use std::fmt;
use std::net::{SocketAddr, UdpSocket};
use std::sync::OnceLock;
use std::time::Instant;

/// What a sender is to do.
#[derive(Debug)]
pub struct Job<'a> {
    /// The stack and its options, the controller and the number of bytes.
    pub quic: &'a Quic,
    /// Makes the controller, unless it is one of the stack's own.
    pub controllers: Option<Controllers>,
    /// The key of the receiver.
    pub identity: &'a Identity,
    /// The address of the receiver.
    pub peer: SocketAddr,
    /// When the sender stops: it then sends nothing, not even lost data again.
    pub stop: Option<Instant>,
}

/// State of a sender at one time. Counters begin with the connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// STREAM frames sent: packets with data, if there is one stream.
    pub sent: u64,
    /// Packets declared lost; their data is retransmitted.
    pub lost: u64,
    /// How often persistent congestion was established.
    pub timeouts: u64,
    /// Reductions of the window in response to marks.
    pub mark_cuts: u64,
    /// The window in packets of the present size.
    pub window: Packets,
    /// The pacing rate, if the controller sets one.
    pub pace: Option<Rate>,
    /// What limits the sender at this time, if it has data.
    pub limit: Limit,
    /// Variables of the controller.
    pub gauges: Vec<(&'static str, f64)>,
}

/// What happened since the last call.
#[derive(Clone, Debug, Default)]
pub struct News {
    /// The last sample of the round-trip time.
    pub rtt: Option<Dur>,
    /// Reductions of the window.
    pub cuts: Vec<Cut>,
}

/// A connection of either stack.
pub(crate) trait Open: Send + Sync {
    fn snapshot(&self) -> Snapshot;
    fn news(&self) -> News;
}

/// The sending end of a flow: its state, which other threads may read while it runs.
#[derive(Default)]
pub struct Sender {
    connection: OnceLock<Box<dyn Open>>,
    acknowledged: OnceLock<Instant>,
    closed: OnceLock<(Instant, String)>,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("closed", &self.closed).finish_non_exhaustive()
    }
}

impl Sender {
    /// Connects and sends the data from a socket, then keeps the connection until `stopped` returns
    /// true.
    ///
    /// # Errors
    /// A system call fails, or the stack refuses an option. A connection that is closed is
    /// [state](Self::closed).
    pub fn run(
        &self,
        socket: UdpSocket,
        job: Job<'_>,
        stopped: impl Fn() -> bool,
    ) -> Result<(), Error> {
        let tls = tls::client(Some(job.identity))?;
        match job.quic.stack {
            QuicStack::Noq => run(noq::send(self, socket, job, tls), stopped),
            QuicStack::Quinn => run(quinn::send(self, socket, job, tls), stopped),
        }
    }

    /// Returns the current state, once the connection is open.
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.connection.get().map(|connection| connection.snapshot())
    }

    /// Returns what happened since the last call.
    pub fn news(&self) -> News {
        self.connection.get().map_or_else(News::default, |connection| connection.news())
    }

    /// Returns when all data was acknowledged.
    pub fn acknowledged(&self) -> Option<Instant> {
        self.acknowledged.get().copied()
    }

    /// Returns when and why the connection was closed before all data was acknowledged.
    pub fn closed(&self) -> Option<&(Instant, String)> {
        self.closed.get()
    }

    pub(crate) fn open(&self, connection: impl Open + 'static) {
        self.connection.get_or_init(|| Box::new(connection));
    }

    pub(crate) fn acknowledge(&self) {
        self.acknowledged.get_or_init(Instant::now);
    }

    pub(crate) fn close(&self, reason: impl ToString) {
        self.closed.get_or_init(|| (Instant::now(), reason.to_string()));
    }
}
