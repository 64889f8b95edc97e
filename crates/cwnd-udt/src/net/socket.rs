//! The UDP socket of a port. It sends and receives batches with `UDP_SEGMENT` and `UDP_GRO` where
//! the system supports them, and single datagrams elsewhere.

use crate::config::{PACKET_SIZE, RECEIVE_BUFFER};
use cwnd::{Dur, Time};
use quinn_udp::{RecvMeta, Transmit as Datagrams, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
#[cfg(target_os = "linux")]
use rustix::net::sockopt;
use std::io::{self, IoSliceMut, PipeReader, Read};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Requested sizes of the system's buffers in bytes; the system doubles them and may grant less. A
/// whole receive window may arrive while the driver waits for a processor. Packets that do not fit
/// are lost, and a rate law decreases its rate by a ninth. UDT4 requests the size of its receive
/// buffer as well.
const RECEIVE_BUFFER_SIZE: usize = (RECEIVE_BUFFER * PACKET_SIZE) as usize;
const SEND_BUFFER_SIZE: usize = 4 << 20;
/// The largest UDP payload over IPv4. It bounds a batch.
const MAX_UDP_PAYLOAD: usize = 65_507;
/// The number of buffers for one receive call, and their size in bytes: that of the largest
/// `UDP_GRO` batch.
const BATCHES: usize = 8;
const BUFFER_SIZE: usize = 1 << 16;
/// Packets in a batch without segmentation offload.
const UNSEGMENTED_BATCH: usize = 16;
/// The largest age of a system timestamp. Older ones are ignored: the system's clock may have been
/// set.
const MAX_TIMESTAMP_AGE: Duration = Duration::from_millis(100);

/// The outcome of a send.
#[derive(Debug)]
pub(super) enum SendOutcome {
    Complete,
    /// The system's send buffer is full after this number of bytes.
    Blocked(usize),
    /// The datagrams are lost.
    Failed(io::Error),
}

impl SendOutcome {
    /// A copy of the datagrams that were not sent, and their segment size.
    pub(super) fn unsent(&self, datagrams: &[u8], segment: usize) -> Option<(Vec<u8>, usize)> {
        match self {
            SendOutcome::Blocked(sent) => Some((datagrams[*sent..].to_vec(), segment)),
            _ => None,
        }
    }
}

/// The socket events that ended a wait.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Readiness {
    pub readable: bool,
    pub writable: bool,
}

/// Whether datagrams exceed the MTU.
fn is_too_large(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error())
}

#[derive(Debug)]
pub(super) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    epoch: Instant,
    /// Whether routers may fragment datagrams.
    routers_fragment: AtomicBool,
}

/// Who may fragment a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fragmentation {
    /// Nobody: datagrams above the MTU are lost.
    Never,
    /// This system, if it knows that the path MTU is smaller.
    Here,
    /// Routers, too, over IPv4.
    Everywhere,
}

/// The buffers of a receive call.
pub(super) struct ReceiveBuffers {
    bytes: Box<[u8]>,
    metadata: [RecvMeta; BATCHES],
}

impl ReceiveBuffers {
    pub(super) fn new() -> Self {
        ReceiveBuffers {
            bytes: vec![0; BATCHES * BUFFER_SIZE].into_boxed_slice(),
            metadata: [RecvMeta::default(); BATCHES],
        }
    }

    /// The first `count` batches, each with its metadata.
    pub(super) fn batches(&mut self, count: usize) -> impl Iterator<Item = (&RecvMeta, &mut [u8])> {
        let batches = self.metadata.iter().zip(self.bytes.chunks_mut(BUFFER_SIZE)).take(count);
        batches.map(|(metadata, bytes)| (metadata, &mut bytes[..metadata.len]))
    }
}

impl Socket {
    pub(super) const BATCHES: usize = BATCHES;

    pub(super) fn bind(addr: SocketAddr) -> io::Result<Self> {
        let io = UdpSocket::bind(addr)?;
        let state = UdpSocketState::new((&io).into())?;
        // Only a process with CAP_NET_ADMIN, and only on Linux, can exceed the system's limit.
        #[cfg(target_os = "linux")]
        let is_set = sockopt::set_socket_recv_buffer_size_force(&io, RECEIVE_BUFFER_SIZE).is_ok();
        #[cfg(not(target_os = "linux"))]
        let is_set = false;
        if !is_set {
            state.set_recv_buffer_size((&io).into(), RECEIVE_BUFFER_SIZE)?;
        }
        state.set_send_buffer_size((&io).into(), SEND_BUFFER_SIZE)?;
        let routers_fragment = AtomicBool::new(false);
        let socket = Socket { io, state, epoch: Instant::now(), routers_fragment };
        // quinn-udp forbids fragmentation, but a peer of UDT4 does not discover the path MTU.
        socket.set_fragmentation(Fragmentation::Here);
        Ok(socket)
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    pub(super) fn now(&self) -> Time {
        Time::ZERO + super::dur(self.epoch.elapsed())
    }

    /// The arrival time of a batch: the system's timestamp if there is one, otherwise `now`.
    pub(super) fn arrival(&self, now: Time, clock: SystemTime, metadata: &RecvMeta) -> Time {
        let waited = metadata.timestamp.and_then(|stamp| {
            clock.duration_since(SystemTime::UNIX_EPOCH).ok()?.checked_sub(stamp)
        });
        let waited = waited.filter(|waited| *waited < MAX_TIMESTAMP_AGE).unwrap_or_default();
        now - super::dur(waited)
    }

    /// The largest number of packets of `size` bytes in a batch.
    pub(super) fn max_segments(&self, size: usize) -> usize {
        match self.state.max_gso_segments() {
            1 => UNSEGMENTED_BATCH,
            segments => segments.min(MAX_UDP_PAYLOAD / size.max(1)).max(1),
        }
    }

    /// Sends datagrams of `segment` bytes each; the last one may be shorter.
    pub(super) fn send(
        &self,
        to: SocketAddr,
        from: Option<IpAddr>,
        datagrams: &[u8],
        segment: usize,
    ) -> SendOutcome {
        let mut sent = 0;
        while sent < datagrams.len() {
            let segments =
                self.state.max_gso_segments().min(MAX_UDP_PAYLOAD / segment.max(1)).max(1);
            let end = datagrams.len().min(sent + segments * segment);
            let batch = Datagrams {
                destination: to,
                ecn: None,
                contents: &datagrams[sent..end],
                segment_size: (end - sent > segment).then_some(segment),
                src_ip: from,
            };
            match self.state.try_send((&self.io).into(), &batch) {
                Ok(()) => sent = end,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return SendOutcome::Blocked(sent);
                }
                // quinn-udp has found that the device does not support segmentation: send single
                // datagrams.
                Err(_) if segments > 1 && self.state.max_gso_segments() == 1 => {}
                // The datagrams are larger than the path MTU that the system knows. It fragments
                // single ones.
                Err(error) if end - sent > segment && is_too_large(&error) => {
                    for datagram in datagrams[sent..end].chunks(segment) {
                        match self.send(to, from, datagram, segment) {
                            SendOutcome::Complete => sent += datagram.len(),
                            SendOutcome::Blocked(_) => return SendOutcome::Blocked(sent),
                            failed => return failed,
                        }
                    }
                }
                Err(error) => return SendOutcome::Failed(error),
            }
        }
        SendOutcome::Complete
    }

    /// Sends a handshake's datagram unfragmented. A datagram above the interface's MTU is dropped
    /// silently.
    pub(super) fn send_handshake(
        &self,
        to: SocketAddr,
        from: Option<IpAddr>,
        datagram: &[u8],
    ) -> SendOutcome {
        self.set_fragmentation(Fragmentation::Never);
        let outcome = self.send(to, from, datagram, datagram.len());
        self.set_fragmentation(match self.routers_fragment.load(Ordering::Relaxed) {
            false => Fragmentation::Here,
            true => Fragmentation::Everywhere,
        });
        match outcome {
            SendOutcome::Failed(error) if is_too_large(&error) => SendOutcome::Complete,
            other => other,
        }
    }

    /// Lets routers fragment the datagrams of this port, after one of its connections has met a
    /// black hole: their errors do not arrive.
    pub(super) fn let_routers_fragment(&self) {
        if !self.routers_fragment.swap(true, Ordering::Relaxed) {
            self.set_fragmentation(Fragmentation::Everywhere);
        }
    }

    fn set_fragmentation(&self, allowed: Fragmentation) {
        #[cfg(target_os = "linux")]
        {
            use sockopt::{Ipv4PathMtuDiscovery as Ipv4, Ipv6PathMtuDiscovery as Ipv6};
            let (ipv4, ipv6) = match allowed {
                Fragmentation::Never => (Ipv4::PROBE, Ipv6::PROBE),
                Fragmentation::Here => (Ipv4::WANT, Ipv6::WANT),
                Fragmentation::Everywhere => (Ipv4::DONT, Ipv6::WANT),
            };
            // A socket of IPv6 may send to addresses of IPv4, too. The options of the other version
            // fail.
            let _ = sockopt::set_ip_mtu_discover(&self.io, ipv4);
            let _ = sockopt::set_ipv6_mtu_discover(&self.io, ipv6);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = allowed;
    }

    /// Receives up to [`Socket::BATCHES`] batches that have arrived, and returns their number.
    pub(super) fn receive(&self, buffers: &mut ReceiveBuffers) -> io::Result<usize> {
        let mut parts = buffers.bytes.chunks_mut(BUFFER_SIZE);
        let mut slots: [IoSliceMut<'_>; BATCHES] =
            std::array::from_fn(|_| IoSliceMut::new(parts.next().unwrap_or_default()));
        match self.state.recv((&self.io).into(), &mut slots, &mut buffers.metadata) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            other => other,
        }
    }

    /// Sleeps until a datagram arrives, `wake` becomes readable, or `limit` has passed; with
    /// `blocked` also until the socket is writable.
    pub(super) fn wait(
        &self,
        wake: &mut PipeReader,
        limit: Option<Dur>,
        blocked: bool,
    ) -> io::Result<Readiness> {
        // A limit beyond the range of `Timespec` is ignored.
        let limit =
            limit.and_then(|limit| Timespec::try_from(Duration::from_nanos(limit.as_nanos())).ok());
        let wanted = if blocked { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let (socket, woken) = {
            let mut files = [PollFd::new(&self.io, wanted), PollFd::new(wake, PollFlags::IN)];
            match poll(&mut files, limit.as_ref()) {
                Ok(_) => (files[0].revents(), !files[1].revents().is_empty()),
                Err(Errno::INTR) => return Ok(Readiness::default()),
                Err(error) => return Err(error.into()),
            }
        };
        if woken {
            let _ = wake.read(&mut [0; 64])?;
        }
        Ok(Readiness {
            readable: socket.intersects(PollFlags::IN | PollFlags::ERR),
            writable: socket.contains(PollFlags::OUT),
        })
    }
}
