//! What a transfer needs of the transport.

use cwnd_udt::{Counters, UdtStream};
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

/// A reliable stream of bytes in both directions. One thread may read while another writes.
pub trait Stream: Send + Sync {
    /// Reads what is there, and waits until `deadline` for something to be there; 0 bytes are the end.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) when nothing came, or the failure of the connection.
    fn read(&self, out: &mut [u8], deadline: Instant) -> io::Result<usize>;

    /// Writes as much as there is room for, and waits until `deadline` for room.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) when there was none, or the failure of the connection.
    fn write(&self, data: &[u8], deadline: Instant) -> io::Result<usize>;

    /// Ends the connection, and waits until `deadline` for everything to be delivered.
    ///
    /// # Errors
    /// When it was not.
    fn close(&self, deadline: Instant) -> io::Result<()>;

    /// Ends the connection at once: calls that wait in other threads return.
    fn abort(&self);

    /// The peer's address, if the transport has one.
    fn peer(&self) -> Option<SocketAddr>;

    /// The name of a peer that has proved who it is.
    fn identity(&self) -> Option<String> {
        None
    }

    /// How the path and the connection are doing.
    fn path(&self) -> PathStats;
}

/// How a connection is doing, in the direction that carries more.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathStats {
    /// The smoothed round-trip time in seconds.
    pub rtt_s: f64,
    /// The share of packets that were lost, 0 to 1.
    pub loss_rate: f64,
    /// Bytes that were written and are not acknowledged.
    pub pending: u64,
    /// Retransmitted packets.
    pub retransmissions: u64,
    /// What limited the sender of this end.
    pub limited: Limits,
}

/// Microseconds in which each cause limited the rate of a connection's sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The congestion window.
    pub window: u64,
    /// The time between packets.
    pub pacing: u64,
    /// The peer's receive buffer.
    pub receiver: u64,
    /// Nothing was written to the connection.
    pub application: u64,
    /// The processor: the connection could send and had not yet.
    pub processor: u64,
}

/// Whether an error only says that a deadline is over: an error of the connection has a text of its own.
#[must_use]
pub fn is_timeout(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut && error.get_ref().is_none()
}

impl Stream for UdtStream {
    fn read(&self, out: &mut [u8], deadline: Instant) -> io::Result<usize> {
        self.read_until(out, Some(deadline))
    }

    fn write(&self, data: &[u8], deadline: Instant) -> io::Result<usize> {
        self.write_until(data, Some(deadline))
    }

    fn close(&self, deadline: Instant) -> io::Result<()> {
        self.close_until(Some(deadline))
    }

    fn abort(&self) {
        UdtStream::abort(self);
    }

    fn peer(&self) -> Option<SocketAddr> {
        Some(self.peer_addr())
    }

    fn identity(&self) -> Option<String> {
        UdtStream::identity(self).map(|key| key.to_string())
    }

    fn path(&self) -> PathStats {
        let stats = self.stats(false);
        let count = &stats.total;
        let (lost, all) = if count.pkt_sent > count.pkt_recv {
            (count.pkt_retrans, count.pkt_sent)
        } else {
            (count.pkt_rcv_loss, count.pkt_recv + count.pkt_rcv_loss)
        };
        PathStats {
            rtt_s: stats.ms_rtt / 1e3,
            loss_rate: if all == 0 { 0.0 } else { (lost as f64 / all as f64).min(1.0) },
            pending: self.unacknowledged(),
            retransmissions: count.pkt_retrans,
            limited: limits(count),
        }
    }
}

/// The times of `count` by cause.
fn limits(count: &Counters) -> Limits {
    Limits {
        window: count.us_limited_window,
        pacing: count.us_limited_pacing,
        receiver: count.us_limited_receiver,
        application: count.us_limited_application,
        processor: count.us_limited_processor,
    }
}
