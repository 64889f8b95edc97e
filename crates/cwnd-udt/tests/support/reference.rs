//! The reference library's end: a process of `udt4.cpp`, which is compiled when it is first asked for.

use super::{Hash, Messages};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The compiled peer; `None`, with the reason printed, where it cannot be compiled.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM.get_or_init(compile).as_deref()
}

fn compile() -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/udt4.cpp");
    // Tests of one crate run in several processes, perhaps at once.
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
    // Where the library is there, a peer that does not compile is a mistake and no lack.
    assert!(!Path::new("/usr/include/udt/udt.h").exists(), "the UDT4 peer: {reason}");
    None
}

/// Whether there is a reference library. Where there is not, a test says so and is left out.
pub(crate) fn is_here() -> bool {
    let here = program().is_some();
    if !here {
        println!(
            "left out: there is no UDT4 library here (Debian's libudt-dev), or no C++ compiler"
        );
    }
    here
}

/// A process with an end of UDT4's. It is killed when it is dropped.
pub(crate) struct Reference {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Reference {
    /// Starts `udt4` with these words, separated by spaces.
    pub(crate) fn start(words: &str) -> Self {
        let program = program().expect("a test asks whether the library is here");
        let mut child = Command::new(program)
            .args(words.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (told, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if told.send(line).is_err() {
                    break;
                }
            }
        });
        Reference { child, input, lines }
    }

    /// A listener, and where it listens.
    pub(crate) fn listen(words: &str) -> (Self, SocketAddr) {
        let reference = Reference::start(&format!("listen {words}"));
        let port = reference.expect("port")[0].parse().unwrap();
        (reference, SocketAddr::from(([127, 0, 0, 1], port)))
    }

    /// The next line, if one comes in time.
    pub(crate) fn line(&self, patience: Duration) -> Option<String> {
        match self.lines.recv_timeout(patience) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some("error the process has ended".into()),
        }
    }

    /// Waits for the line that begins with `what`, leaving out those of statistics: its other words.
    pub(crate) fn expect(&self, what: &str) -> Vec<String> {
        loop {
            let line =
                self.line(super::PATIENCE).unwrap_or_else(|| panic!("no \"{what}\" in time"));
            let mut words = line.split_whitespace().map(String::from);
            match words.next().as_deref() {
                Some(first) if first == what => return words.collect(),
                Some("perfmon") => {}
                _ => panic!("waited for \"{what}\", got \"{line}\""),
            }
        }
    }

    /// The hash of what it has `"sent"` or `"received"`.
    pub(crate) fn hash(&self, what: &str) -> Hash {
        Hash(u64::from_str_radix(&self.expect(what)[1], 16).unwrap())
    }

    /// What it says of the messages that it received.
    pub(crate) fn messages(&self) -> Messages {
        let words = self.expect("messages");
        let number = |n: usize| words[n].parse().unwrap();
        Messages { whole: number(0), wrong: number(2), early: number(4) }
    }

    /// Lets a process go on that was started with `--hold`.
    pub(crate) fn go_on(&mut self) {
        self.input.take().unwrap().write_all(b"\n").unwrap();
    }

    /// Ends the process as a crash does.
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
