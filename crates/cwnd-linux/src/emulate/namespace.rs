//! Network namespaces without names: each exists while a process or thread is in it, or a file
//! descriptor refers to it.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::sys;

/// The namespace of the calling thread, which may differ from that of the process.
const THREAD_NAMESPACE: &str = "/proc/thread-self/ns/net";

/// Settings by which the kernel may enlarge the buffers of a TCP connection to 512 MiB.
pub(crate) const LARGE_BUFFERS: [(&str, &str); 2] =
    [("tcp_rmem", "4096 131072 536870912"), ("tcp_wmem", "4096 16384 536870912")];

/// Sets `net.ipv4.NAME` in the network namespace of the calling thread.
pub(crate) fn set_sysctl(name: &str, value: &str) -> io::Result<()> {
    fs::write(format!("/proc/sys/net/ipv4/{name}"), value)
}

/// A network namespace.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// Creates a namespace that contains only a loopback device.
    ///
    /// # Errors
    /// Not permitted: this needs `CAP_SYS_ADMIN`.
    pub fn new() -> io::Result<Self> {
        let create = || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            sys::Interfaces::new()?.bring_up("lo")?;
            Namespace::current()
        };
        join(thread::Builder::new().spawn(create)?)?
    }

    /// Returns the namespace of the calling thread.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub fn current() -> io::Result<Self> {
        Namespace::open(Path::new(THREAD_NAMESPACE))
    }

    /// Opens the namespace of a file, such as `/proc/1/ns/net`.
    pub(crate) fn open(file: &Path) -> io::Result<Self> {
        Ok(Namespace(File::open(file)?))
    }

    /// Duplicates the file descriptor of the namespace.
    ///
    /// # Errors
    /// Too many open files.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Namespace(self.0.try_clone()?))
    }

    /// Moves the calling thread into the namespace.
    pub(crate) fn enter(&self) -> io::Result<()> {
        Ok(setns(&self.0, CloneFlags::CLONE_NEWNET)?)
    }

    /// Runs `work` in a new thread in the namespace, and waits for it. Sockets and processes that
    /// it creates stay in the namespace.
    ///
    /// # Errors
    /// The namespace cannot be entered.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let enter = || {
                self.enter()?;
                Ok(work())
            };
            let thread = thread::Builder::new().spawn_scoped(scope, enter)?;
            thread.join().unwrap_or_else(|_| Err(thread_panicked()))
        })
    }

    /// Starts a command in the namespace. The command and its descendants are in a PID namespace of
    /// their own. The kernel kills all of them when the command ends, when the returned value is
    /// dropped, and when this process ends for any reason.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn start(&self, mut command: Command) -> io::Result<RunningCommand> {
        let namespace = self.0.try_clone()?;
        let (sender, receiver) = channel();
        let spawn_and_wait = move || {
            let mut spawn = || {
                setns(&namespace, CloneFlags::CLONE_NEWNET)?;
                unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS)?;
                sys::kill_with_thread(&mut command);
                command.spawn()
            };
            // The parent-death signal is sent when the thread ends: it must outlive the command.
            match spawn() {
                Ok(mut child) => {
                    let _ = sender.send(Ok(Pid::from_raw(child.id() as i32)));
                    child.wait()
                }
                Err(error) => {
                    let _ = sender.send(Err(error));
                    Ok(ExitStatus::from_raw(0))
                }
            }
        };
        let thread = thread::Builder::new().name("cwnd-command".into()).spawn(spawn_and_wait)?;
        let init = receiver.recv().unwrap_or_else(|_| Err(thread_panicked()))?;
        Ok(RunningCommand { init, thread: Some(thread) })
    }
}

/// A running command.
#[derive(Debug)]
pub struct RunningCommand {
    /// The init process of the PID namespace.
    init: Pid,
    thread: Option<JoinHandle<io::Result<ExitStatus>>>,
}

impl RunningCommand {
    /// Whether the command has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the command. A status above 128 is 128 plus the number of a signal, as in shells.
    ///
    /// # Errors
    /// The status is not available.
    pub fn wait(mut self) -> io::Result<ExitStatus> {
        self.thread.take().map_or_else(|| Err(thread_panicked()), |thread| join(thread)?)
    }

    /// Sends a signal to the command; SIGKILL (9) ends all of its descendants too.
    ///
    /// # Errors
    /// The command has ended, or there is no such signal.
    pub fn signal(&self, number: i32) -> io::Result<()> {
        if self.is_finished() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(kill(self.init, Signal::try_from(number)?)?)
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        let _ = self.signal(Signal::SIGKILL as i32);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

pub(super) fn thread_panicked() -> io::Error {
    io::Error::other("a thread panicked")
}

pub(super) fn join<T>(thread: JoinHandle<T>) -> io::Result<T> {
    thread.join().map_err(|_| thread_panicked())
}
