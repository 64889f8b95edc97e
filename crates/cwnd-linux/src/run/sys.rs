//! System calls of flows: options and statistics of TCP sockets.
#![expect(unsafe_code, reason = "some system calls have no safe wrapper")]

use std::ffi::c_int;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};

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
