//! Network namespaces without a name: each lasts as long as somebody has it open or lives in it.

use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::sys;

/// The namespace of the thread that opens it, whatever the process's is.
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace.
#[derive(Debug)]
pub struct Space(File);

impl Space {
    /// A new one, with nothing in it but a loopback device.
    ///
    /// # Errors
    /// When this is not permitted: it needs `CAP_SYS_ADMIN`.
    pub fn new() -> io::Result<Self> {
        let make = || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            sys::Interfaces::new()?.raise("lo")?;
            Space::current()
        };
        join(thread::Builder::new().spawn(make)?)?
    }

    /// The calling thread's.
    ///
    /// # Errors
    /// When there is no `/proc`.
    pub fn current() -> io::Result<Self> {
        Ok(Space(File::open(OWN)?))
    }

    /// The same namespace once more.
    ///
    /// # Errors
    /// When there are too many open files.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Space(self.0.try_clone()?))
    }

    /// Puts the calling thread into the namespace for good.
    pub(crate) fn enter(&self) -> io::Result<()> {
        Ok(setns(&self.0, CloneFlags::CLONE_NEWNET)?)
    }

    /// Does something in the namespace, in a thread of its own, and waits for it. Sockets that it
    /// makes, and processes that it starts, stay in the namespace.
    ///
    /// # Errors
    /// When the namespace cannot be entered.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let enter = || {
                self.enter()?;
                Ok(work())
            };
            let thread = thread::Builder::new().spawn_scoped(scope, enter)?;
            thread.join().unwrap_or_else(|_| Err(panicked()))
        })
    }

    /// Starts a command in the namespace. It and all of its descendants are in a PID namespace of
    /// their own, of which nothing is left when the command ends, when what is returned is dropped
    /// and when this process dies, however that happens.
    ///
    /// # Errors
    /// When the command cannot be started.
    pub fn start(&self, mut command: Command) -> io::Result<Running> {
        let namespace = self.0.try_clone()?;
        let (tell, told) = channel();
        let watch = move || {
            let mut spawn = || {
                setns(&namespace, CloneFlags::CLONE_NEWNET)?;
                unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS)?;
                sys::confine(&mut command);
                command.spawn()
            };
            // The thread stays as long as the command: its end would be the command's.
            match spawn() {
                Ok(mut child) => {
                    let _ = tell.send(Ok(Pid::from_raw(child.id() as i32)));
                    child.wait()
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                    Ok(ExitStatus::from_raw(0))
                }
            }
        };
        let thread = thread::Builder::new().name("cwnd-command".into()).spawn(watch)?;
        let first = told.recv().unwrap_or_else(|_| Err(panicked()))?;
        Ok(Running { first, thread: Some(thread) })
    }
}

/// A command that was started.
#[derive(Debug)]
pub struct Running {
    /// The first process of its PID namespace.
    first: Pid,
    thread: Option<JoinHandle<io::Result<ExitStatus>>>,
}

impl Running {
    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for its end. A status above 128 is a signal's number and 128, as in shells.
    ///
    /// # Errors
    /// When the status cannot be had.
    pub fn wait(mut self) -> io::Result<ExitStatus> {
        self.thread.take().map_or_else(|| Err(panicked()), |thread| join(thread)?)
    }

    /// Sends it a signal; 9 ends all of its descendants as well.
    ///
    /// # Errors
    /// When it has ended, or there is no such signal.
    pub fn signal(&self, number: i32) -> io::Result<()> {
        if self.is_finished() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(kill(self.first, Signal::try_from(number)?)?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.signal(Signal::SIGKILL as i32);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

pub(super) fn panicked() -> io::Error {
    io::Error::other("a thread failed")
}

pub(super) fn join<T>(thread: JoinHandle<T>) -> io::Result<T> {
    thread.join().map_err(|_| panicked())
}
