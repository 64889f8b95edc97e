//! What no crate wraps: network devices, the real-time scheduler and the first process of a PID
//! namespace. All `unsafe` of the emulator is here.
#![expect(unsafe_code, reason = "these system calls have no safe wrapper")]

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::zeroed;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::mount::{MsFlags, mount};
use nix::sys::prctl;
use nix::sys::signal::Signal;

/// Offloads of a TUN device: checksums left open, TCP in pieces of up to 64 KiB.
const OFFLOADS: libc::c_ulong = (libc::TUN_F_CSUM | libc::TUN_F_TSO4) as libc::c_ulong;

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A request about the interface `name`.
fn request(name: &str) -> libc::ifreq {
    // SAFETY: all-zero bytes are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { zeroed() };
    // The last byte stays zero.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

/// Makes a TUN device in the calling thread's network namespace. It is there as long as its file is
/// open. Each read and write is one packet behind a `virtio_net_hdr`.
pub(super) fn open_tun(name: &str) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    let mut request = request(name);
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as i16;
    let fd = file.as_raw_fd();
    // SAFETY: the descriptor is open, and TUNSETIFF reads and writes one `ifreq`.
    check(unsafe { libc::ioctl(fd, libc::TUNSETIFF as _, &raw mut request) })?;
    // SAFETY: the descriptor is a TUN device's, and TUNSETOFFLOAD takes its argument by value.
    check(unsafe { libc::ioctl(fd, libc::TUNSETOFFLOAD as _, OFFLOADS) })?;
    Ok(file)
}

/// Requests about interfaces of the namespace in which this was made.
pub(super) struct Interfaces(OwnedFd);

impl Interfaces {
    /// Of the calling thread's network namespace.
    pub(super) fn new() -> io::Result<Self> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers are passed.
        let fd = check(unsafe { libc::socket(libc::AF_INET, kind, 0) })?;
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Interfaces(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    fn ask<T>(&self, what: libc::c_ulong, argument: &mut T) -> io::Result<()> {
        // SAFETY: the callers pass the structure that the request reads and writes.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), what as _, &raw mut *argument) })?;
        Ok(())
    }

    /// Brings an interface up.
    pub(super) fn raise(&self, name: &str) -> io::Result<()> {
        let mut request = request(name);
        self.ask(libc::SIOCGIFFLAGS, &mut request)?;
        // SAFETY: the kernel has just written the flags.
        unsafe { request.ifr_ifru.ifru_flags |= (libc::IFF_UP | libc::IFF_RUNNING) as i16 };
        self.ask(libc::SIOCSIFFLAGS, &mut request)
    }

    /// Gives an interface an address; whatever shares its first `prefix` bits is behind it.
    pub(super) fn address(&self, name: &str, address: Ipv4Addr, prefix: u32) -> io::Result<()> {
        let mut request = request(name);
        request.ifr_ifru.ifru_addr = internet(address);
        self.ask(libc::SIOCSIFADDR, &mut request)?;
        let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or(0);
        request.ifr_ifru.ifru_netmask = internet(Ipv4Addr::from_bits(mask));
        self.ask(libc::SIOCSIFNETMASK, &mut request)
    }

    /// Sets how many packets may wait for whoever reads the device.
    pub(super) fn room(&self, name: &str, packets: i32) -> io::Result<()> {
        let mut request = request(name);
        request.ifr_ifru.ifru_metric = packets;
        self.ask(libc::SIOCSIFTXQLEN, &mut request)
    }

    /// Sends everything without a route of its own through an interface.
    pub(super) fn default_route(&self, name: &str) -> io::Result<()> {
        let mut device = request(name).ifr_name;
        // SAFETY: all-zero bytes are a valid `rtentry`.
        let mut route: libc::rtentry = unsafe { zeroed() };
        route.rt_dst = internet(Ipv4Addr::UNSPECIFIED);
        route.rt_genmask = internet(Ipv4Addr::UNSPECIFIED);
        route.rt_flags = libc::RTF_UP as _;
        route.rt_dev = device.as_mut_ptr();
        self.ask(libc::SIOCADDRT, &mut route)
    }
}

fn internet(address: Ipv4Addr) -> libc::sockaddr {
    // SAFETY: a `sockaddr_in` is as large as a `sockaddr` and made to stand for one.
    unsafe {
        let mut socket: libc::sockaddr_in = zeroed();
        socket.sin_family = libc::AF_INET as libc::sa_family_t;
        socket.sin_addr.s_addr = address.to_bits().to_be();
        std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(socket)
    }
}

/// Has the calling thread run before all others that are not of this kind.
pub(super) fn run_first() -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid `sched_param`.
    let mut parameters: libc::sched_param = unsafe { zeroed() };
    parameters.sched_priority = 1;
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 is the calling thread, and the structure is only read.
    check(unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) })?;
    Ok(())
}

/// Has `command` run below a process that nobody outlives: when the thread that spawns it ends, for
/// whatever reason, the kernel kills all of its descendants. That thread must have a PID namespace
/// for its children. Signals that are sent to the process are passed on.
pub(super) fn confine(command: &mut Command) {
    // SAFETY: `preside` and what it calls make system calls only, which is allowed after a fork.
    unsafe { command.pre_exec(preside) };
}

/// In the first process of a PID namespace: goes on in a child of it, and lets this one look after
/// the namespace.
fn preside() -> io::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    // Its own view of processes, where that is allowed.
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    if mount(None::<&str>, c"/", None::<&str>, private, None::<&str>).is_ok() {
        let _ = mount(Some(c"proc"), c"/proc", Some(c"proc"), MsFlags::empty(), None::<&str>);
    }
    // SAFETY: this process has one thread; the parent's branch makes system calls only.
    match check(unsafe { libc::fork() })? {
        0 => Ok(()),
        child => look_after(child),
    }
}

/// Passes signals on and collects the dead, until `child` is one of them; leaves with its status.
fn look_after(child: libc::pid_t) -> ! {
    // SAFETY: system calls on values of this frame.
    unsafe {
        // Who waits for the end of a pipe must not wait for this process.
        libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0);
        let mut all: libc::sigset_t = zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        loop {
            loop {
                let mut status = 0;
                let dead = libc::waitpid(-1, &raw mut status, libc::WNOHANG);
                if dead == child && libc::WIFEXITED(status) {
                    libc::_exit(libc::WEXITSTATUS(status));
                }
                if dead == child {
                    // As shells tell it.
                    libc::_exit(128 + libc::WTERMSIG(status));
                }
                if dead <= 0 {
                    break;
                }
            }
            let mut about: libc::siginfo_t = zeroed();
            let signal = libc::sigwaitinfo(&raw const all, &raw mut about);
            // A terminal has told the child itself.
            if signal > 0 && signal != libc::SIGCHLD && about.si_code <= libc::SI_USER {
                libc::kill(child, signal);
            }
        }
    }
}
