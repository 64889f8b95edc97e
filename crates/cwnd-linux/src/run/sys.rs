//! System calls of flows: options and statistics of TCP sockets, and routes with metrics.
#![expect(unsafe_code, reason = "some system calls have no safe wrapper")]

use std::ffi::c_int;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with, sockopt,
};

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets an integer option of TCP.
pub(super) fn set_tcp_option(socket: impl AsFd, name: c_int, value: u64) -> io::Result<()> {
    let value = c_int::try_from(value).unwrap_or(c_int::MAX);
    let (fd, size) = (socket.as_fd().as_raw_fd(), size_of::<c_int>() as libc::socklen_t);
    let at = (&raw const value).cast();
    // SAFETY: the pointer and the size are those of `value`.
    check(unsafe { libc::setsockopt(fd, libc::IPPROTO_TCP, name, at, size) })
}

/// Whether the kernel has a congestion controller for TCP. The kernel loads its module if there is
/// one.
pub(super) fn has_controller(name: &str) -> bool {
    socket(Ipv4Addr::LOCALHOST)
        .is_ok_and(|socket| sockopt::set_tcp_congestion(socket, name).is_ok())
}

/// Creates a non-blocking TCP socket bound to `local`.
pub(super) fn socket(local: Ipv4Addr) -> io::Result<TcpStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(local, 0))?;
    Ok(socket.into())
}

/// Starts to connect a non-blocking socket.
pub(super) fn connect(socket: &TcpStream, peer: SocketAddrV4) -> io::Result<()> {
    match rustix::net::connect(socket, &peer) {
        Err(Errno::INPROGRESS) => Ok(()),
        other => Ok(other?),
    }
}

/// Reads the statistics of a connection. Older kernels fill fewer; the rest is zero.
pub(super) fn tcp_info(socket: &TcpStream) -> io::Result<libc::tcp_info> {
    let (fd, mut size) = (socket.as_raw_fd(), size_of::<libc::tcp_info>() as libc::socklen_t);
    // SAFETY: all-zero bytes are a valid `tcp_info`, and the kernel writes at most its size.
    unsafe {
        let mut info: libc::tcp_info = std::mem::zeroed();
        let at = (&raw mut info).cast();
        check(libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, at, &raw mut size))?;
        Ok(info)
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
    let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
    // The default protocol of netlink is that of routes.
    let socket = socket_with(AddressFamily::NETLINK, kind, flags, None)?;
    let index = name_to_index(&socket, device)?;
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
    rustix::net::send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0; 512];
    let (length, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::empty())?;
    let error = i32::from_ne_bytes(std::array::from_fn(|k| answer[16 + k]));
    match (length, error) {
        (20.., 0) => Ok(()),
        (20.., error) => Err(io::Error::from_raw_os_error(-error)),
        _ => Err(io::Error::other("invalid answer of rtnetlink")),
    }
}
