//! QUIC streams, in a build without the stacks.

use crate::export::export;
use crate::udt::SocketOptions;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

fn absent() -> PyErr {
    PyValueError::new_err("this build has no QUIC stacks: `make build` includes them")
}

export! {
    /// Fails: see `quic.rs`.
    quic_connect(host: &str, port: u16, options: SocketOptions, stack: &str) -> PyResult<()> = {
        let _ = (host, port, options, stack);
        Err(absent())
    };
    /// Fails: see `quic.rs`.
    quic_listen(host: &str, port: u16, options: SocketOptions, stack: &str) -> PyResult<()> = {
        let _ = (host, port, options, stack);
        Err(absent())
    };
}
