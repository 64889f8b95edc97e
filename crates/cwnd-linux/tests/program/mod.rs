//! A C program of this directory with the headers of `kernel/`, compiled for the host: it reads rows
//! of numbers and answers each with a row of results.

use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

/// Passes rows to the program `source`, compiled under this name, and its results to `take`.
pub(crate) fn run<const ROW: usize, const RESULTS: usize>(
    source: &str,
    name: &str,
    rows: impl ExactSizeIterator<Item = [u64; ROW]> + Send,
    mut take: impl FnMut([u64; RESULTS]),
) {
    let mut child = start(source, name);
    let mut input = BufWriter::with_capacity(1 << 16, child.stdin.take().unwrap());
    let output = child.stdout.take().unwrap();
    let count = rows.len();
    thread::scope(|scope| {
        scope.spawn(move || {
            for number in rows.flatten() {
                if input.write_all(&number.to_ne_bytes()).is_err() {
                    return; // A check failed: nobody reads the pipe.
                }
            }
        });
        // The reader is owned by this scope: a failed check closes the pipe, and the other thread
        // ends.
        let mut output = BufReader::with_capacity(1 << 16, output);
        let mut number = || {
            let mut bytes = [0; 8];
            output.read_exact(&mut bytes).unwrap();
            u64::from_ne_bytes(bytes)
        };
        (0..count).for_each(|_| take(std::array::from_fn(|_| number())));
    });
    assert!(child.wait().unwrap().success());
}

pub(crate) fn pow2(power: i32) -> f64 {
    2f64.powi(power)
}

/// Compiles the program under this name, and starts it with pipes.
fn start(source: &str, name: &str) -> Child {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let done = Command::new("cc")
        .args(["-O2", "-Wall", "-Werror", "-I"])
        .arg(root.join("../../kernel"))
        .arg(root.join("tests").join(source))
        .arg("-o")
        .arg(&program)
        .status();
    assert!(done.expect("a C compiler, which Rust links with").success());
    Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}
