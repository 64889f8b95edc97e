//! System calls without a safe wrapper: network devices, real-time scheduling, and the init process
//! of a PID namespace. This file has all `unsafe` code of the emulator.
#![expect(unsafe_code, reason = "these system calls have no safe wrapper")]

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::zeroed;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use ipnet::Ipv4Net;
use nix::mount::{MsFlags, mount};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

/// Offloads of a TUN device: partial checksums, and TCP super-packets of up to 64 KiB.
const OFFLOADS: libc::c_ulong = (libc::TUN_F_CSUM | libc::TUN_F_TSO4) as libc::c_ulong;

/// Above the lowest real-time priority, which `bench/agreement_linux.py` gives to sources and
/// sinks.
const EMULATOR_PRIORITY: c_int = 2;

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Returns an `ifreq` for the interface `name`.
fn interface_request(name: &str) -> libc::ifreq {
    // SAFETY: all-zero bytes are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { zeroed() };
    // The last byte remains zero.
    let capacity = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..capacity].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

/// Creates a TUN device in the network namespace of the calling thread. It exists while its file is
/// open. Each read and write is one packet with a `virtio_net_hdr`.
pub(super) fn open_tun(name: &str) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    let mut request = interface_request(name);
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as i16;
    let fd = file.as_raw_fd();
    // SAFETY: the descriptor is open, and TUNSETIFF reads and writes one `ifreq`.
    check(unsafe { libc::ioctl(fd, libc::TUNSETIFF as _, &raw mut request) })?;
    // SAFETY: the descriptor is a TUN device's, and TUNSETOFFLOAD takes its argument by value.
    check(unsafe { libc::ioctl(fd, libc::TUNSETOFFLOAD as _, OFFLOADS) })?;
    Ok(file)
}

/// The group `SKNLGRP_INET_TCP_DESTROY`: messages on TCP sockets over IPv4 that are closed.
const CLOSED_TCP: u32 = 1;
/// Receive buffer of a socket for such messages: of about ten thousand sockets.
const DIAGNOSIS_BUFFER: usize = 1 << 24;

/// Opens a socket for the diagnosis of TCP sockets in the network namespace of the calling thread.
/// It receives a message on each TCP socket that is closed.
pub(super) fn open_tcp_diagnosis() -> io::Result<File> {
    let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
    let socket = socket_with(AddressFamily::NETLINK, kind, flags, Some(netlink::SOCK_DIAG))?;
    // An error leaves the default size.
    let _ = set_socket_recv_buffer_size_force(&socket, DIAGNOSIS_BUFFER);
    bind(&socket, &SocketAddrNetlink::new(0, CLOSED_TCP))?;
    Ok(socket.into())
}

/// Socket for interface requests in the namespace in which it was created.
pub(super) struct Interfaces(OwnedFd);

impl Interfaces {
    /// Opens the socket in the network namespace of the calling thread.
    pub(super) fn new() -> io::Result<Self> {
        let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
        Ok(Interfaces(socket_with(AddressFamily::INET, kind, flags, None)?))
    }

    fn ioctl<T>(&self, code: libc::c_ulong, argument: &mut T) -> io::Result<()> {
        // SAFETY: the callers pass the structure that the request reads and writes.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), code as _, &raw mut *argument) })?;
        Ok(())
    }

    /// Brings an interface up.
    pub(super) fn bring_up(&self, name: &str) -> io::Result<()> {
        let mut request = interface_request(name);
        self.ioctl(libc::SIOCGIFFLAGS, &mut request)?;
        // SAFETY: the kernel has just written the flags.
        unsafe { request.ifr_ifru.ifru_flags |= (libc::IFF_UP | libc::IFF_RUNNING) as i16 };
        self.ioctl(libc::SIOCSIFFLAGS, &mut request)
    }

    /// Sets the address of an interface, with a route to its prefix.
    pub(super) fn set_address(&self, name: &str, address: Ipv4Net) -> io::Result<()> {
        let mut request = interface_request(name);
        request.ifr_ifru.ifru_addr = sockaddr_of(address.addr());
        self.ioctl(libc::SIOCSIFADDR, &mut request)?;
        request.ifr_ifru.ifru_netmask = sockaddr_of(address.netmask());
        self.ioctl(libc::SIOCSIFNETMASK, &mut request)
    }

    /// Sets the largest packet of an interface in bytes.
    pub(super) fn set_mtu(&self, name: &str, bytes: u16) -> io::Result<()> {
        let mut request = interface_request(name);
        request.ifr_ifru.ifru_mtu = bytes.into();
        self.ioctl(libc::SIOCSIFMTU, &mut request)
    }

    /// Sets the length of the transmit queue: packets that wait for the reader of the device.
    pub(super) fn set_queue_length(&self, name: &str, packets: i32) -> io::Result<()> {
        let mut request = interface_request(name);
        request.ifr_ifru.ifru_metric = packets;
        self.ioctl(libc::SIOCSIFTXQLEN, &mut request)
    }
}

fn sockaddr_of(address: Ipv4Addr) -> libc::sockaddr {
    // SAFETY: a `sockaddr_in` has the size of a `sockaddr`, and the kernel interprets it by its
    // family.
    unsafe {
        let mut socket: libc::sockaddr_in = zeroed();
        socket.sin_family = libc::AF_INET as libc::sa_family_t;
        socket.sin_addr.s_addr = address.to_bits().to_be();
        std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(socket)
    }
}

/// Makes the calling thread a real-time thread (`SCHED_FIFO`), which runs before all threads that
/// are not.
pub(super) fn set_realtime() -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid `sched_param`.
    let mut parameters: libc::sched_param = unsafe { zeroed() };
    parameters.sched_priority = EMULATOR_PRIORITY;
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 is the calling thread, and the structure is only read.
    check(unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) })?;
    Ok(())
}

/// Runs `command` under an init process. When the thread that spawns the command ends, the kernel
/// kills the init process and all of its descendants. The thread must have created a PID namespace
/// for its children. The init process forwards signals.
pub(super) fn kill_with_thread(command: &mut Command) {
    // SAFETY: `fork_init` and what it calls make system calls only, which is allowed after a fork.
    unsafe { command.pre_exec(fork_init) };
}

/// In the init process of a PID namespace: forks. The child returns, to execute the command; the
/// parent runs as the init process.
fn fork_init() -> io::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    // Mount a `/proc` for the PID namespace, if permitted.
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    if mount(None::<&str>, c"/", None::<&str>, private, None::<&str>).is_ok() {
        let _ = mount(Some(c"proc"), c"/proc", Some(c"proc"), MsFlags::empty(), None::<&str>);
    }
    // SAFETY: this process has one thread; the parent's branch makes system calls only.
    match check(unsafe { libc::fork() })? {
        0 => Ok(()),
        child => run_init(child),
    }
}

/// Forwards signals and reaps processes until `child` ends; exits with its status.
fn run_init(child: libc::pid_t) -> ! {
    // SAFETY: system calls on values of this frame.
    unsafe {
        // Close all files: a reader of a pipe must not wait for this process.
        libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0);
        let mut all: libc::sigset_t = zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        loop {
            loop {
                let mut status = 0;
                let pid = libc::waitpid(-1, &raw mut status, libc::WNOHANG);
                if pid == child && libc::WIFEXITED(status) {
                    libc::_exit(libc::WEXITSTATUS(status));
                }
                if pid == child {
                    // As in shells.
                    libc::_exit(128 + libc::WTERMSIG(status));
                }
                if pid <= 0 {
                    break;
                }
            }
            let mut info: libc::siginfo_t = zeroed();
            let signal = libc::sigwaitinfo(&raw const all, &raw mut info);
            // A terminal sends signals to the child itself.
            if signal > 0 && signal != libc::SIGCHLD && info.si_code <= libc::SI_USER {
                libc::kill(child, signal);
            }
        }
    }
}
