//! `native.c` with the headers of `kernel/`, compiled for the host: it reads rows and answers each
//! with results.

use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

pub(crate) const ROW: usize = 32;
const RESULTS: usize = 4;

pub(crate) type Row = [u64; ROW];
pub(crate) type Results = [u64; RESULTS];

/// Passes rows to the program, compiled under this name, and its results to `take`.
pub(crate) fn run(
    name: &str,
    rows: impl ExactSizeIterator<Item = Row> + Send,
    mut take: impl FnMut(Results),
) {
    let mut child = start(name);
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
fn start(name: &str) -> Child {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let done = Command::new("cc")
        .args(["-O2", "-Wall", "-Werror", "-I"])
        .arg(root.join("../../kernel"))
        .arg(root.join("tests/native.c"))
        .arg("-o")
        .arg(&program)
        .status();
    assert!(done.expect("a C compiler, which Rust links with").success());
    Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}
