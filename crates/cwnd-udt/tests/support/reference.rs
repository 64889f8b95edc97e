//! A peer with the reference library: a process of `udt4.cpp`, which is compiled at its first use.

use super::{Hash, Messages};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The compiled program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program(&'static Path);

/// Returns the compiled program. If the library or a compiler is missing, prints that the test is
/// skipped.
pub(crate) fn program() -> Option<Program> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let program = PROGRAM.get_or_init(compile).as_deref().map(Program);
    if program.is_none() {
        println!(
            "skipped: the UDT4 library (Debian's libudt-dev) or a C++ compiler is not installed"
        );
    }
    program
}

fn compile() -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/udt4.cpp");
    // The tests of a crate run in several processes, possibly in parallel.
    let program =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("udt4-{}", std::process::id()));
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let done = Command::new(&compiler)
        .args(["-std=c++17", "-O2", "-Wall", "-Wextra", "-o"])
        .args([&program, &source])
        .args(["-ludt", "-lpthread"])
        .output();
    let reason = match done {
        Ok(done) if done.status.success() => return Some(program),
        Ok(done) => String::from_utf8_lossy(&done.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    // If the library is installed, a compiler error is a failure of the test.
    assert!(!Path::new("/usr/include/udt/udt.h").exists(), "compiling udt4.cpp: {reason}");
    None
}

/// A process with one end of a UDT4 connection. It is killed on drop.
pub(crate) struct Reference {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Program {
    /// Starts `udt4` with these arguments, separated by spaces.
    pub(crate) fn start(self, words: &str) -> Reference {
        let mut child = Command::new(self.0)
            .args(words.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Reference { child, input, lines }
    }

    /// Starts a listener and returns its address.
    pub(crate) fn listen(self, words: &str) -> (Reference, SocketAddr) {
        self.start_bound(&format!("listen {words}"))
    }

    /// Starts an end of a rendezvous and returns its address. It waits for that of its peer.
    pub(crate) fn rendezvous(self, words: &str) -> (Reference, SocketAddr) {
        self.start_bound(&format!("rendezvous {words}"))
    }

    fn start_bound(self, words: &str) -> (Reference, SocketAddr) {
        let reference = self.start(words);
        let port = reference.expect("port")[0].parse().unwrap();
        (reference, SocketAddr::from(([127, 0, 0, 1], port)))
    }
}

impl Reference {
    /// The next line of output; `None` after the timeout.
    pub(crate) fn line(&self, timeout: Duration) -> Option<String> {
        match self.lines.recv_timeout(timeout) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some("error the process has ended".into()),
        }
    }

    /// Waits for a line that begins with `what`, ignoring statistics, and returns its other words.
    pub(crate) fn expect(&self, what: &str) -> Vec<String> {
        loop {
            let line = self.line(super::TIMEOUT).unwrap_or_else(|| panic!("no \"{what}\" in time"));
            let mut words = line.split_whitespace().map(String::from);
            match words.next().as_deref() {
                Some(first) if first == what => return words.collect(),
                Some("perfmon") => {}
                _ => panic!("waited for \"{what}\", got \"{line}\""),
            }
        }
    }

    /// Waits until the peer has `"sent"` or `"received"` all data and returns the hash of the data.
    pub(crate) fn hash(&self, what: &str) -> Hash {
        Hash(u64::from_str_radix(&self.expect(what)[1], 16).unwrap())
    }

    /// Waits for the peer's counts of received messages.
    pub(crate) fn messages(&self) -> Messages {
        let words = self.expect("messages");
        let number = |n: usize| words[n].parse().unwrap();
        Messages { whole: number(0), wrong: number(2), early: number(4) }
    }

    /// Tells an end of a rendezvous the address of its peer.
    pub(crate) fn set_peer(&mut self, peer: SocketAddr) {
        writeln!(self.input.as_mut().unwrap(), "{peer}").unwrap();
    }

    /// Resumes a process that was started with `--hold`.
    pub(crate) fn resume(&mut self) {
        self.input.take().unwrap().write_all(b"\n").unwrap();
    }

    /// Kills the process.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
