//! The transport interface of a transfer, and its implementation by UDT.

use cwnd_udt::UdtStream;
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

/// A reliable stream of bytes in both directions. One thread may read while another writes.
pub trait Stream: Send + Sync {
    /// Reads available bytes, or waits until `deadline` for some; 0 bytes are the end of the
    /// stream.
    ///
    /// # Errors
    /// No bytes arrived ([`TimedOut`](io::ErrorKind::TimedOut)), or the connection failed.
    fn read(&self, out: &mut [u8], deadline: Instant) -> io::Result<usize>;

    /// Writes as many bytes as the send buffer has space for, or waits until `deadline` for space.
    ///
    /// # Errors
    /// There was no space ([`TimedOut`](io::ErrorKind::TimedOut)), or the connection failed.
    fn write(&self, data: &[u8], deadline: Instant) -> io::Result<usize>;

    /// Closes the connection, and waits until `deadline` for the delivery of all data.
    ///
    /// # Errors
    /// Some data were not delivered.
    fn close(&self, deadline: Instant) -> io::Result<()>;

    /// Aborts the connection: waiting calls in other threads return.
    fn abort(&self);

    /// Returns the peer's address, if the transport has addresses.
    fn peer(&self) -> Option<SocketAddr>;

    /// Returns the identity of an authenticated peer.
    fn identity(&self) -> Option<String> {
        None
    }

    /// Returns statistics of the connection and its path.
    fn path(&self) -> PathStats;
}

/// Statistics of a connection, in the direction that carries more packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathStats {
    /// The smoothed round-trip time in seconds.
    pub rtt_s: f64,
    /// Packet loss rate, 0 to 1.
    pub loss_rate: f64,
    /// Bytes written and not acknowledged.
    pub pending: u64,
    /// Retransmitted packets.
    pub retransmissions: u64,
    /// Time by limit of this end's sender.
    pub limited: Limits,
}

/// Microseconds in which each limit applied to a connection's sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The congestion window.
    pub window: u64,
    /// Pacing.
    pub pacing: u64,
    /// The peer's receive buffer.
    pub receiver: u64,
    /// The application: no data to send.
    pub application: u64,
    /// The processor: the connection could send, but had not been scheduled.
    pub processor: u64,
}

/// Whether an error is an expired deadline. An error of the connection has a text of its own.
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
            limited: Limits {
                window: count.us_limited_window,
                pacing: count.us_limited_pacing,
                receiver: count.us_limited_receiver,
                application: count.us_limited_application,
                processor: count.us_limited_processor,
            },
        }
    }
}
