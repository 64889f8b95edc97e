//! System calls without a safe wrapper: options and statistics of TCP sockets, and routes with
//! metrics.
#![expect(unsafe_code, reason = "these system calls have no safe wrapper")]

use std::ffi::{CString, c_int};
use std::io;
use std::mem::size_of;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Bytes of `struct tcp_info` that are read. Older kernels fill fewer; the rest is zero.
const INFO_SIZE: usize = 248;

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Sets a socket option.
pub(super) fn set_option(
    socket: impl AsFd,
    level: c_int,
    name: c_int,
    value: &[u8],
) -> io::Result<()> {
    let (fd, size) = (socket.as_fd().as_raw_fd(), value.len() as libc::socklen_t);
    // SAFETY: the pointer and the size are those of `value`.
    check(unsafe { libc::setsockopt(fd, level, name, value.as_ptr().cast(), size) })?;
    Ok(())
}

/// Sets an integer socket option.
pub(super) fn set_integer_option(
    socket: impl AsFd,
    level: c_int,
    name: c_int,
    value: u64,
) -> io::Result<()> {
    let value = c_int::try_from(value).unwrap_or(c_int::MAX);
    set_option(socket, level, name, &value.to_ne_bytes())
}

/// Whether the kernel has a congestion controller for TCP. The kernel loads its module if there is
/// one.
pub(super) fn has_controller(name: &str) -> bool {
    let select =
        |socket| set_option(&socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes());
    socket(Ipv4Addr::LOCALHOST).and_then(select).is_ok()
}

/// Creates a non-blocking TCP socket bound to `local`.
pub(super) fn socket(local: Ipv4Addr) -> io::Result<TcpStream> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers are passed.
    let fd = check(unsafe { libc::socket(libc::AF_INET, kind, 0) })?;
    // SAFETY: the descriptor is new and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let (address, size) = sockaddr_in(SocketAddrV4::new(local, 0));
    // SAFETY: the pointer and the size are those of `address`.
    check(unsafe { libc::bind(fd, (&raw const address).cast(), size) })?;
    Ok(TcpStream::from(socket))
}

/// Starts to connect a non-blocking socket.
pub(super) fn connect(socket: &TcpStream, peer: SocketAddrV4) -> io::Result<()> {
    let (address, size) = sockaddr_in(peer);
    // SAFETY: the pointer and the size are those of `address`.
    match check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), size) }) {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
        other => other.map(drop),
    }
}

fn sockaddr_in(address: SocketAddrV4) -> (libc::sockaddr_in, libc::socklen_t) {
    // SAFETY: all-zero bytes are a valid `sockaddr_in`.
    let mut sockaddr: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    sockaddr.sin_family = libc::AF_INET as libc::sa_family_t;
    sockaddr.sin_port = address.port().to_be();
    sockaddr.sin_addr.s_addr = address.ip().to_bits().to_be();
    (sockaddr, size_of::<libc::sockaddr_in>() as libc::socklen_t)
}

/// Statistics of a connection (`struct tcp_info` of `linux/tcp.h`).
#[derive(Clone, Copy, Debug)]
pub(super) struct TcpInfo([u8; INFO_SIZE]);

impl TcpInfo {
    /// Reads the statistics of a socket.
    pub(super) fn read(socket: &TcpStream) -> io::Result<Self> {
        let mut bytes = [0; INFO_SIZE];
        let mut size = INFO_SIZE as libc::socklen_t;
        let (fd, at) = (socket.as_raw_fd(), bytes.as_mut_ptr().cast());
        // SAFETY: the kernel writes at most `size` bytes, the length of the buffer.
        check(unsafe {
            libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, at, &raw mut size)
        })?;
        Ok(TcpInfo(bytes))
    }

    fn u16_at(&self, at: usize) -> u64 {
        u16::from_ne_bytes(std::array::from_fn(|k| self.0[at + k])).into()
    }

    fn u32_at(&self, at: usize) -> u64 {
        u32::from_ne_bytes(std::array::from_fn(|k| self.0[at + k])).into()
    }

    fn u64_at(&self, at: usize) -> u64 {
        u64::from_ne_bytes(std::array::from_fn(|k| self.0[at + k]))
    }

    /// Returns the number of packets that are not acknowledged.
    pub(super) fn unacknowledged(&self) -> u64 {
        self.u32_at(24)
    }

    /// Returns the smoothed round-trip time in microseconds; 0 before the first sample.
    pub(super) fn rtt(&self) -> u64 {
        self.u32_at(68)
    }

    /// Returns the slow start threshold in packets; `None` before the first cut.
    pub(super) fn ssthresh(&self) -> Option<u64> {
        Some(self.u32_at(76)).filter(|&packets| packets < i32::MAX as u64)
    }

    /// Returns the congestion window in packets.
    pub(super) fn window(&self) -> u64 {
        self.u32_at(80)
    }

    /// Returns the number of retransmitted packets.
    pub(super) fn retransmitted(&self) -> u64 {
        self.u32_at(100)
    }

    /// Returns the bytes of data acknowledged. The kernel counts the SYN as a byte.
    pub(super) fn acknowledged(&self) -> u64 {
        self.u64_at(120).saturating_sub(1)
    }

    /// Returns the bytes received in order.
    pub(super) fn received(&self) -> u64 {
        self.u64_at(128)
    }

    /// Returns the bytes of data sent, retransmissions included (Linux 4.19; 0 before).
    pub(super) fn bytes_sent(&self) -> u64 {
        self.u64_at(200)
    }

    /// Returns the bytes that were written but not sent.
    pub(super) fn unsent(&self) -> u64 {
        self.u32_at(144)
    }

    /// Returns the minimum round-trip time in microseconds; `None` before the first sample.
    pub(super) fn min_rtt(&self) -> Option<u64> {
        Some(self.u32_at(148)).filter(|&micros| micros < u32::MAX.into())
    }

    /// Returns the number of data packets sent.
    pub(super) fn sent(&self) -> u64 {
        self.u32_at(156)
    }

    /// Returns the microseconds in which there were data to send, limited by the receiver's window,
    /// and limited by the send buffer.
    pub(super) fn busy(&self) -> [u64; 3] {
        [168, 176, 184].map(|at| self.u64_at(at))
    }

    /// Returns the number of timeouts (Linux 6.7; 0 before).
    pub(super) fn timeouts(&self) -> u64 {
        self.u16_at(240)
    }
}

/// Metrics of a route, which TCP applies to its connections.
#[derive(Clone, Copy, Debug)]
pub(super) enum Metric {
    /// Initial window in packets.
    InitialWindow(u32),
    /// Minimum retransmission timeout in milliseconds.
    MinRto(u32),
    /// Acknowledge every packet at once.
    QuickAck,
}

impl Metric {
    /// Returns the number of the metric (`RTAX_…` of `linux/rtnetlink.h`) and its value.
    fn pair(self) -> (u16, u32) {
        match self {
            Metric::InitialWindow(packets) => (11, packets),
            Metric::MinRto(millis) => (13, millis),
            Metric::QuickAck => (15, 1),
        }
    }
}

/// Returns an attribute of a netlink message. All contents are multiples of four bytes, so no
/// padding is needed.
fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
    let length = (content.len() + 4) as u16;
    [&length.to_ne_bytes(), &kind.to_ne_bytes(), content].concat()
}

/// Adds a route to one address through `device` in the network namespace of the calling thread.
pub(super) fn add_route(to: Ipv4Addr, device: &str, metrics: &[Metric]) -> io::Result<()> {
    const DST: u16 = 1;
    const OIF: u16 = 4;
    const METRICS: u16 = 8;
    let name = CString::new(device)?;
    // SAFETY: the name is a C string.
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
    request(&message)
}

/// Sends a request to rtnetlink, and returns the error of its answer.
fn request(message: &[u8]) -> io::Result<()> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers are passed.
    let fd = check(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) })?;
    // SAFETY: the descriptor is new and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut answer = [0; 512];
    // SAFETY: the pointers and sizes are those of `message` and `answer`.
    let length = unsafe {
        check(libc::send(socket.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) as c_int)?;
        check(libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) as c_int)?
    };
    let error = i32::from_ne_bytes(std::array::from_fn(|k| answer[16 + k]));
    match (length, error) {
        (20.., 0) => Ok(()),
        (20.., error) => Err(io::Error::from_raw_os_error(-error)),
        _ => Err(io::Error::other("invalid answer of rtnetlink")),
    }
}
