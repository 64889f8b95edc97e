//! QUIC streams, for `cwnd.perf.quic`.

use crate::custom::{Failure, Given};
use crate::registry::SpecError;
use crate::udt::{PIECE, SocketOptions, address, resolve, wait};
use cwnd_quic_net::{
    Connecting, Controllers, Error, Stream, StreamListener, StreamOptions, client_socket,
};
use cwnd_sim::network::{QuicStack, own_name};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

fn refused(error: Error) -> PyErr {
    match error {
        Error::System(error) => error.into(),
        other => SpecError::new_err(other.to_string()),
    }
}

/// Returns the options of a stream. Errors of a controller written in Python are kept in `failure`.
fn stream_options(
    options: &SocketOptions,
    stack: &str,
    failure: &Arc<Failure>,
) -> PyResult<StreamOptions> {
    let (controller, controllers) = match &options.controller {
        Given::Spec(spec) if own_name(spec).is_some() => (spec.clone(), None),
        given => (String::new(), Some(Controllers::from(given.read(failure)?))),
    };
    Ok(StreamOptions {
        stack: QuicStack::ALL.into_iter().find(|each| each.name() == stack).ok_or_else(|| {
            let names = QuicStack::ALL.map(QuicStack::name).join(", ");
            PyValueError::new_err(format!("no stack {stack}: {names}"))
        })?,
        controller,
        controllers,
        mtu: options.mtu,
        credentials: options.credentials()?,
    })
}

/// One end of a connection, with the methods of `cwnd.udt.Connection` that `cwnd.perf` calls.
#[pyclass(frozen, name = "QuicConnection", module = "cwnd._native")]
pub(crate) struct QuicConnection {
    /// Taken when it is dropped.
    stream: Option<Box<dyn Stream>>,
    failure: Arc<Failure>,
}

impl QuicConnection {
    fn stream(&self) -> &dyn Stream {
        self.stream.as_deref().expect("only a drop takes it")
    }
}

impl Drop for QuicConnection {
    fn drop(&mut self) {
        // A thread of the runtime may wait for the interpreter, in a controller, while it has the
        // connection's lock.
        let stream = self.stream.take();
        Python::attach(|py| py.detach(|| drop(stream)));
    }
}

#[pymethods]
impl QuicConnection {
    #[getter]
    fn peer(&self) -> (String, u16) {
        address(self.stream().peer())
    }

    #[getter]
    fn address(&self) -> (String, u16) {
        address(self.stream().local())
    }

    /// Up to `size` bytes; none when the peer has closed.
    fn recv(&self, py: Python<'_>, size: usize) -> PyResult<Vec<u8>> {
        wait(py, &self.failure, None, |until| {
            let mut piece = vec![0; size.min(PIECE)];
            let count = self.stream().read_until(&mut piece, until)?;
            piece.truncate(count);
            Ok(piece)
        })
    }

    /// Writes all of the data.
    fn send(&self, py: Python<'_>, data: &[u8]) -> PyResult<()> {
        let mut rest = data;
        wait(py, &self.failure, None, |until| {
            while !rest.is_empty() {
                rest = &rest[self.stream().write_until(rest, until)?..];
            }
            Ok(())
        })
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = py.detach(|| self.stream().stats());
        let dict = PyDict::new(py);
        dict.set_item("ms_rtt", stats.rtt.as_secs_f64() * 1e3)?;
        dict.set_item("byte_congestion_window", stats.window)?;
        dict.set_item("pkt_retrans_total", stats.lost)?;
        dict.set_item("byte_avail_snd_buf", stats.send_buffer.saturating_sub(stats.unread))?;
        Ok(dict)
    }

    /// Ends the connection at once.
    fn abort(&self, py: Python<'_>) {
        py.detach(|| self.stream().abort());
    }

    /// Ends the connection and waits until everything is delivered.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, &self.failure, None, |until| self.stream().close_until(until))
    }
}

/// A socket that accepts connections, with the methods of `cwnd.udt.Listener` that `cwnd.perf` calls.
#[pyclass(frozen, name = "QuicListener", module = "cwnd._native")]
pub(crate) struct QuicListener {
    listener: Mutex<Option<Arc<StreamListener>>>,
    local: SocketAddr,
    failure: Arc<Failure>,
}

impl QuicListener {
    fn open(&self) -> io::Result<Arc<StreamListener>> {
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner).clone();
        listener.ok_or_else(|| io::Error::other("the listener is closed"))
    }
}

#[pymethods]
impl QuicListener {
    #[getter]
    fn address(&self) -> (String, u16) {
        address(self.local)
    }

    #[pyo3(signature = (*, timeout))]
    fn accept(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<QuicConnection> {
        let failure = &self.failure;
        let stream = wait(py, failure, timeout, |until| self.open()?.accept_until(until))?;
        Ok(QuicConnection { stream: Some(stream), failure: failure.clone() })
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.listener.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Connects to a listener.
#[pyfunction]
pub(crate) fn quic_connect(
    py: Python<'_>,
    host: &str,
    port: u16,
    options: SocketOptions,
    stack: &str,
) -> PyResult<QuicConnection> {
    let failure = Arc::<Failure>::default();
    let from = match options.bind.as_deref() {
        Some(host) => resolve(py, host, 0)?.first().copied(),
        None => None,
    };
    let peers = resolve(py, host, port)?;
    let peer = *peers.first().ok_or_else(|| PyOSError::new_err("the name has no address"))?;
    let patience = Duration::try_from_secs_f64(options.timeout).unwrap_or(Duration::MAX);
    let options = stream_options(&options, stack, &failure)?;
    let connecting = || Connecting::new(client_socket(from, peer)?, peer, options, patience);
    let mut connecting = py.detach(connecting).map_err(refused)?;
    let stream = wait(py, &failure, None, |until| connecting.until(until))?;
    Ok(QuicConnection { stream: Some(stream), failure })
}

/// Accepts connections at a port.
#[pyfunction]
pub(crate) fn quic_listen(
    py: Python<'_>,
    host: &str,
    port: u16,
    options: SocketOptions,
    stack: &str,
) -> PyResult<QuicListener> {
    let failure = Arc::default();
    let admission = options.admission()?;
    let options = stream_options(&options, stack, &failure)?;
    let addresses = resolve(py, host, port)?;
    let socket = UdpSocket::bind(&addresses[..])?;
    let listener =
        py.detach(|| StreamListener::new(socket, options, admission)).map_err(refused)?;
    let local = listener.local();
    Ok(QuicListener { listener: Mutex::new(Some(Arc::new(listener))), local, failure })
}
