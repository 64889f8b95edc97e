//! `native.c` with the headers of `kernel/`, compiled for the host: it reads rows and answers each
//! with results.

use std::path::Path;
use std::process::{Child, Command, Stdio};

pub(crate) const ROW: usize = 32;
pub(crate) const RESULTS: usize = 4;

pub(crate) type Row = [u64; ROW];
pub(crate) type Results = [u64; RESULTS];

/// Compiles the program under this name, and starts it with pipes.
pub(crate) fn start(name: &str) -> Child {
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
