//! The UDP socket of a port: batches out with `UDP_SEGMENT`, batches in with `UDP_GRO`, and one by one
//! where the system has neither.

use crate::config::{PACKET_SIZE, RECEIVE_BUFFER};
use cwnd::{Dur, Time};
use quinn_udp::{RecvMeta, Transmit as Datagrams, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt;
use std::io::{self, IoSliceMut, PipeReader, Read};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant, SystemTime};

/// Sizes requested for the system's buffers in bytes; the system doubles them and may grant less. The receiver's
/// whole announced room may arrive while its thread waits for a processor. Packets that do not fit are lost, and a
/// rate law gives up a ninth of its rate for that. UDT4 requests its receive buffer's size as well.
const TO_RECEIVE: usize = (RECEIVE_BUFFER * PACKET_SIZE) as usize;
const TO_SEND: usize = 4 << 20;
/// The largest UDP payload over IPv4, which bounds one batch.
const LARGEST: usize = 65_507;
/// Buffers for one receive call, and their size: that of the largest joined batch.
const SLOTS: usize = 8;
const SLOT: usize = 1 << 16;
/// Packets prepared together without segmentation offload.
const ONE_BY_ONE: usize = 16;
/// The oldest time stamp of the system that is trusted: its clock may have been set.
const PATIENCE: Duration = Duration::from_millis(100);

/// The outcome of a send.
#[derive(Debug)]
pub(super) enum Sent {
    All,
    /// The system's buffer is full; bytes sent before.
    Blocked(usize),
    /// The datagrams are lost.
    Failed(io::Error),
}

impl Sent {
    /// A copy of the datagrams that were not sent, and their segment size.
    pub(super) fn rest(&self, datagrams: &[u8], segment: usize) -> Option<(Vec<u8>, usize)> {
        match self {
            Sent::Blocked(sent) => Some((datagrams[*sent..].to_vec(), segment)),
            _ => None,
        }
    }
}

/// The events that ended a wait.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ready {
    pub datagrams: bool,
    pub room: bool,
}

#[derive(Debug)]
pub(super) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    epoch: Instant,
}

/// Receive buffers for datagrams.
pub(super) struct Inbox {
    bytes: Box<[u8]>,
    meta: [RecvMeta; SLOTS],
}

impl Inbox {
    pub(super) fn new() -> Self {
        Inbox {
            bytes: vec![0; SLOTS * SLOT].into_boxed_slice(),
            meta: [RecvMeta::default(); SLOTS],
        }
    }

    /// The first `count` batches: metadata and datagrams.
    pub(super) fn batches(&mut self, count: usize) -> impl Iterator<Item = (&RecvMeta, &mut [u8])> {
        let batches = self.meta.iter().zip(self.bytes.chunks_mut(SLOT)).take(count);
        batches.map(|(meta, bytes)| (meta, &mut bytes[..meta.len]))
    }
}

impl Socket {
    pub(super) const SLOTS: usize = SLOTS;

    pub(super) fn bind(addr: SocketAddr) -> io::Result<Self> {
        let io = UdpSocket::bind(addr)?;
        let state = UdpSocketState::new((&io).into())?;
        // Exceeding the system's limit needs CAP_NET_ADMIN.
        if sockopt::set_socket_recv_buffer_size_force(&io, TO_RECEIVE).is_err() {
            state.set_recv_buffer_size((&io).into(), TO_RECEIVE)?;
        }
        state.set_send_buffer_size((&io).into(), TO_SEND)?;
        // quinn-udp forbids fragmentation, but UDT has no path MTU discovery.
        #[cfg(target_os = "linux")]
        match addr {
            SocketAddr::V4(_) => {
                sockopt::set_ip_mtu_discover(&io, sockopt::Ipv4PathMtuDiscovery::WANT)?;
            }
            SocketAddr::V6(_) => {
                sockopt::set_ipv6_mtu_discover(&io, sockopt::Ipv6PathMtuDiscovery::WANT)?;
            }
        }
        Ok(Socket { io, state, epoch: Instant::now() })
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    pub(super) fn now(&self) -> Time {
        Time::ZERO + super::dur(self.epoch.elapsed())
    }

    /// The arrival time of a batch: the system's time stamp if there is one.
    pub(super) fn arrival(&self, now: Time, clock: SystemTime, meta: &RecvMeta) -> Time {
        let waited = meta.timestamp.and_then(|stamp| {
            clock.duration_since(SystemTime::UNIX_EPOCH).ok()?.checked_sub(stamp)
        });
        let waited = waited.filter(|waited| *waited < PATIENCE).unwrap_or_default();
        now - super::dur(waited)
    }

    /// The number of packets of `size` bytes in the largest batch.
    pub(super) fn most(&self, size: usize) -> usize {
        match self.state.max_gso_segments() {
            1 => ONE_BY_ONE,
            segments => segments.min(LARGEST / size.max(1)).max(1),
        }
    }

    /// Sends datagrams of `segment` bytes each; the last one may be shorter.
    pub(super) fn send(
        &self,
        to: SocketAddr,
        from: Option<IpAddr>,
        datagrams: &[u8],
        segment: usize,
    ) -> Sent {
        let mut sent = 0;
        while sent < datagrams.len() {
            let segments = self.state.max_gso_segments().min(LARGEST / segment.max(1)).max(1);
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
                    return Sent::Blocked(sent);
                }
                // Segmentation has been found not to work on this device: send one by one.
                Err(_) if segments > 1 && self.state.max_gso_segments() == 1 => {}
                Err(error) => return Sent::Failed(error),
            }
        }
        Sent::All
    }

    /// Receives the batches that have arrived, up to [`Socket::SLOTS`].
    pub(super) fn receive(&self, inbox: &mut Inbox) -> io::Result<usize> {
        let mut parts = inbox.bytes.chunks_mut(SLOT);
        let mut slots: [IoSliceMut<'_>; SLOTS] =
            std::array::from_fn(|_| IoSliceMut::new(parts.next().unwrap_or_default()));
        match self.state.recv((&self.io).into(), &mut slots, &mut inbox.meta) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            other => other,
        }
    }

    /// Sleeps until a datagram arrives, `wake` is written to, or `limit` has passed; with `blocked` also until there
    /// is room to send.
    pub(super) fn wait(
        &self,
        wake: &mut PipeReader,
        limit: Option<Dur>,
        blocked: bool,
    ) -> io::Result<Ready> {
        // A limit beyond the range of `Timespec` is none.
        let limit =
            limit.and_then(|limit| Timespec::try_from(Duration::from_nanos(limit.as_nanos())).ok());
        let wanted = if blocked { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let (socket, woken) = {
            let mut files = [PollFd::new(&self.io, wanted), PollFd::new(wake, PollFlags::IN)];
            match poll(&mut files, limit.as_ref()) {
                Ok(_) => (files[0].revents(), !files[1].revents().is_empty()),
                Err(Errno::INTR) => return Ok(Ready::default()),
                Err(error) => return Err(error.into()),
            }
        };
        if woken {
            let _ = wake.read(&mut [0; 64])?;
        }
        Ok(Ready {
            datagrams: socket.intersects(PollFlags::IN | PollFlags::ERR),
            room: socket.contains(PollFlags::OUT),
        })
    }
}
