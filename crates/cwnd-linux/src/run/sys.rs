//! What no crate wraps: options and statistics of TCP sockets, and routes with metrics.
#![expect(unsafe_code, reason = "these system calls have no safe wrapper")]

use std::ffi::{CString, c_int};
use std::io;
use std::mem::size_of;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Bytes of `struct tcp_info` up to what is read of it; older kernels know less and leave zeros.
const INFO: usize = 248;

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Sets an option of a socket.
pub(super) fn set(socket: impl AsFd, level: c_int, name: c_int, value: &[u8]) -> io::Result<()> {
    let (fd, size) = (socket.as_fd().as_raw_fd(), value.len() as libc::socklen_t);
    // SAFETY: the kernel reads as many bytes as there are.
    check(unsafe { libc::setsockopt(fd, level, name, value.as_ptr().cast(), size) })?;
    Ok(())
}

/// Sets an option that is a number.
pub(super) fn set_number(
    socket: impl AsFd,
    level: c_int,
    name: c_int,
    value: u64,
) -> io::Result<()> {
    let value = c_int::try_from(value).unwrap_or(c_int::MAX);
    set(socket, level, name, &value.to_ne_bytes())
}

/// A TCP socket at `local` that is not connected and never waits.
pub(super) fn socket(local: Ipv4Addr) -> io::Result<TcpStream> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers are passed.
    let fd = check(unsafe { libc::socket(libc::AF_INET, kind, 0) })?;
    // SAFETY: the descriptor is new and nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let (address, size) = internet(SocketAddrV4::new(local, 0));
    // SAFETY: the address is as long as is said.
    check(unsafe { libc::bind(fd, (&raw const address).cast(), size) })?;
    Ok(TcpStream::from(socket))
}

/// Begins to connect such a socket.
pub(super) fn connect(socket: &TcpStream, peer: SocketAddrV4) -> io::Result<()> {
    let (address, size) = internet(peer);
    // SAFETY: the address is as long as is said.
    match check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), size) }) {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
        other => other.map(drop),
    }
}

fn internet(address: SocketAddrV4) -> (libc::sockaddr_in, libc::socklen_t) {
    // SAFETY: all-zero bytes are a valid `sockaddr_in`.
    let mut plain: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    plain.sin_family = libc::AF_INET as libc::sa_family_t;
    plain.sin_port = address.port().to_be();
    plain.sin_addr.s_addr = address.ip().to_bits().to_be();
    (plain, size_of::<libc::sockaddr_in>() as libc::socklen_t)
}

/// What the kernel tells of a connection (`struct tcp_info` of `linux/tcp.h`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Info([u8; INFO]);

impl Info {
    /// Of this socket.
    pub(super) fn of(socket: &TcpStream) -> io::Result<Self> {
        let mut bytes = [0; INFO];
        let mut size = INFO as libc::socklen_t;
        let (fd, at) = (socket.as_raw_fd(), bytes.as_mut_ptr().cast());
        // SAFETY: the kernel writes no more bytes than there are.
        check(unsafe {
            libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, at, &raw mut size)
        })?;
        Ok(Info(bytes))
    }

    fn short(&self, at: usize) -> u64 {
        u16::from_ne_bytes(std::array::from_fn(|k| self.0[at + k])).into()
    }

    fn word(&self, at: usize) -> u64 {
        u32::from_ne_bytes(std::array::from_fn(|k| self.0[at + k])).into()
    }

    fn long(&self, at: usize) -> u64 {
        u64::from_ne_bytes(std::array::from_fn(|k| self.0[at + k]))
    }

    /// Packets sent and not acknowledged.
    pub(super) fn unacknowledged(&self) -> u64 {
        self.word(24)
    }

    /// The smoothed round-trip time in microseconds; 0 before the first sample.
    pub(super) fn rtt(&self) -> u64 {
        self.word(68)
    }

    /// The threshold of slow start in packets; `None` before the first cut.
    pub(super) fn ssthresh(&self) -> Option<u64> {
        Some(self.word(76)).filter(|&packets| packets < i32::MAX as u64)
    }

    /// The window in packets.
    pub(super) fn window(&self) -> u64 {
        self.word(80)
    }

    /// Packets sent again.
    pub(super) fn retransmitted(&self) -> u64 {
        self.word(100)
    }

    /// Bytes that arrived in order.
    pub(super) fn received(&self) -> u64 {
        self.long(128)
    }

    /// Bytes written that were not sent yet.
    pub(super) fn unsent(&self) -> u64 {
        self.word(144)
    }

    /// The smallest round-trip time in microseconds.
    pub(super) fn min_rtt(&self) -> Option<u64> {
        Some(self.word(148)).filter(|&micros| micros < u32::MAX.into())
    }

    /// Packets with data that were sent.
    pub(super) fn sent(&self) -> u64 {
        self.word(156)
    }

    /// Microseconds in which there was something to send; limited by the receiver's window; limited by
    /// the buffer of this end.
    pub(super) fn busy(&self) -> [u64; 3] {
        [168, 176, 184].map(|at| self.long(at))
    }

    /// Timeouts (Linux 6.7; 0 before).
    pub(super) fn timeouts(&self) -> u64 {
        self.short(240)
    }
}

/// Metrics of a route, by which TCP begins and acknowledges.
#[derive(Clone, Copy, Debug)]
pub(super) enum Metric {
    /// Packets.
    InitialWindow(u32),
    /// Milliseconds.
    LeastTimeout(u32),
    /// Every packet is acknowledged at once.
    QuickAck,
}

impl Metric {
    /// `RTAX_…` of `linux/rtnetlink.h`, and its value.
    fn pair(self) -> (u16, u32) {
        match self {
            Metric::InitialWindow(packets) => (11, packets),
            Metric::LeastTimeout(millis) => (13, millis),
            Metric::QuickAck => (15, 1),
        }
    }
}

/// An attribute of a netlink message. All contents here are multiples of four bytes.
fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
    let length = (content.len() + 4) as u16;
    [&length.to_ne_bytes(), &kind.to_ne_bytes(), content].concat()
}

/// Adds a route to one address through `device`, in the calling thread's namespace.
pub(super) fn route(to: Ipv4Addr, device: &str, metrics: &[Metric]) -> io::Result<()> {
    const DST: u16 = 1;
    const OIF: u16 = 4;
    const METRICS: u16 = 8;
    let name = CString::new(device)?;
    // SAFETY: the name ends with a zero.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(io::Error::last_os_error());
    }
    let metrics = metrics.iter().map(|metric| metric.pair());
    let metrics: Vec<_> =
        metrics.flat_map(|(kind, value)| attribute(kind, &value.to_ne_bytes())).collect();
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    // `struct rtmsg`: family, bits of the address, …, table, protocol, scope and type.
    let kind = [
        libc::AF_INET as u8,
        32,
        0,
        0,
        libc::RT_TABLE_MAIN,
        libc::RTPROT_STATIC,
        libc::RT_SCOPE_LINK,
        libc::RTN_UNICAST,
    ];
    let mut body = [kind.as_slice(), &[0; 4]].concat();
    body.extend(attribute(DST, &to.octets()));
    body.extend(attribute(OIF, &index.to_ne_bytes()));
    body.extend(attribute(METRICS, &metrics));
    let length = (body.len() + 16) as u32;
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(libc::RTM_NEWROUTE.to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    ask(&message)
}

/// Sends a request to rtnetlink and takes the answer: a number of an error, or 0.
fn ask(message: &[u8]) -> io::Result<()> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers are passed.
    let fd = check(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) })?;
    // SAFETY: the descriptor is new and nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut answer = [0; 512];
    // SAFETY: the buffers are as long as is said.
    let got = unsafe {
        check(libc::send(socket.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) as c_int)?;
        check(libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) as c_int)?
    };
    let error = i32::from_ne_bytes(std::array::from_fn(|k| answer[16 + k]));
    match (got, error) {
        (20.., 0) => Ok(()),
        (20.., error) => Err(io::Error::from_raw_os_error(-error)),
        _ => Err(io::Error::other("rtnetlink does not answer")),
    }
}
