//! UDT sockets, for `cwnd.udt`.

use crate::SpecError;
use cwnd::Dur;
use cwnd::Spec;
use cwnd_udt::secure::Key;
use cwnd_udt::{Config, Counters, SocketType, UdtListener, UdtStream};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a wait may go on before Python's signals are looked at.
const SLICE: Duration = Duration::from_millis(100);
/// Bytes that one call receives at most: what a lock of the connection covers.
const PIECE: usize = 1 << 16;

/// How a connection is made: a dictionary.
#[derive(FromPyObject)]
pub struct Settings {
    #[pyo3(item)]
    controller: String,
    #[pyo3(item)]
    messages: bool,
    #[pyo3(item)]
    packet_size: u32,
    #[pyo3(item)]
    buffer: u32,
    #[pyo3(item)]
    rate_limit: Option<f64>,
    #[pyo3(item)]
    timeout: f64,
    #[pyo3(item)]
    key: Option<Vec<u8>>,
}

fn read_key(contents: &[u8]) -> PyResult<Key> {
    Key::from_file_contents(contents).map_err(|error| PyValueError::new_err(error.to_string()))
}

impl Settings {
    fn config(&self) -> PyResult<Config> {
        let spec = Spec::parse(&self.controller);
        let spec = spec.map_err(|error| SpecError::new_err(error.to_string()))?;
        let defaults = Config::new(spec);
        Ok(Config {
            socket_type: if self.messages { SocketType::Message } else { SocketType::Stream },
            packet_size: self.packet_size,
            // As in UDT4, the window may be larger than the buffer behind it is by default.
            flow_window: defaults.flow_window.max(self.buffer),
            send_buffer: self.buffer,
            receive_buffer: self.buffer,
            rate_limit: self.rate_limit,
            connect_timeout: Dur::from_secs(self.timeout),
            key: self.key.as_deref().map(read_key).transpose()?,
            ..defaults
        })
    }
}

/// Waits without the interpreter's lock, in slices: Ctrl-C is heard.
fn wait<T: Send>(
    py: Python<'_>,
    timeout: Option<f64>,
    mut attempt: impl FnMut(Option<Instant>) -> io::Result<T> + Send,
) -> PyResult<T> {
    let limit = timeout.and_then(|secs| Duration::try_from_secs_f64(secs).ok());
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    loop {
        let slice = Instant::now() + SLICE;
        let until = deadline.map_or(slice, |deadline| deadline.min(slice));
        match py.detach(|| attempt(Some(until))) {
            // An error of the connection has a text of its own.
            Err(error)
                if error.kind() == io::ErrorKind::TimedOut
                    && error.get_ref().is_none()
                    && until == slice =>
            {
                py.check_signals()?;
            }
            other => return Ok(other?),
        }
    }
}

fn address(addr: SocketAddr) -> (String, u16) {
    (addr.ip().to_string(), addr.port())
}

/// One end of a connection.
#[pyclass(frozen, name = "UdtStream", module = "cwnd._native")]
pub struct Stream(UdtStream);

#[pymethods]
impl Stream {
    fn peer(&self) -> (String, u16) {
        address(self.0.peer_addr())
    }

    fn local(&self) -> (String, u16) {
        address(self.0.local_addr())
    }

    /// Up to `size` bytes; none when the peer has closed.
    fn read<'py>(
        &self,
        py: Python<'py>,
        size: usize,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let data = wait(py, timeout, |until| {
            let mut piece = vec![0; size.min(PIECE)];
            let count = self.0.read_until(&mut piece, until)?;
            piece.truncate(count);
            Ok(piece)
        })?;
        Ok(PyBytes::new(py, &data))
    }

    /// Writes all of the data.
    fn write(&self, py: Python<'_>, data: &[u8], timeout: Option<f64>) -> PyResult<()> {
        let mut rest = data;
        wait(py, timeout, |until| {
            while !rest.is_empty() {
                rest = &rest[self.0.write_until(rest, until)?..];
            }
            Ok(())
        })
    }

    fn send_message(
        &self,
        py: Python<'_>,
        data: &[u8],
        ttl: Option<f64>,
        in_order: bool,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        let ttl = ttl.and_then(|secs| Duration::try_from_secs_f64(secs).ok());
        wait(py, timeout, |until| self.0.send_message_until(data, (ttl, in_order), until))
    }

    /// The next message; `None` when the peer has closed.
    fn recv_message<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let message = wait(py, timeout, |until| self.0.next_message_until(until))?;
        Ok(message.map(|data| PyBytes::new(py, &data)))
    }

    fn stats<'py>(&self, py: Python<'py>, clear: bool) -> PyResult<Bound<'py, PyDict>> {
        let stats = py.detach(|| self.0.stats(clear));
        let dict = PyDict::new(py);
        dict.set_item("ms_time_stamp", stats.ms_time_stamp)?;
        add_counters(&dict, "_total", &stats.total)?;
        add_counters(&dict, "", &stats.interval)?;
        dict.set_item("mbps_send_rate", stats.mbps_send_rate)?;
        dict.set_item("mbps_recv_rate", stats.mbps_recv_rate)?;
        dict.set_item("us_pkt_snd_period", stats.us_pkt_snd_period)?;
        dict.set_item("pkt_flow_window", stats.pkt_flow_window)?;
        dict.set_item("pkt_congestion_window", stats.pkt_congestion_window)?;
        dict.set_item("pkt_flight_size", stats.pkt_flight_size)?;
        dict.set_item("ms_rtt", stats.ms_rtt)?;
        dict.set_item("mbps_bandwidth", stats.mbps_bandwidth)?;
        dict.set_item("byte_avail_snd_buf", stats.byte_avail_snd_buf)?;
        dict.set_item("byte_avail_rcv_buf", stats.byte_avail_rcv_buf)?;
        Ok(dict)
    }

    /// Ends the connection without waiting.
    fn finish(&self, py: Python<'_>) {
        py.detach(|| self.0.finish());
    }

    /// Ends the connection at once.
    fn abort(&self, py: Python<'_>) {
        py.detach(|| self.0.abort());
    }

    /// Ends the connection and waits until everything is delivered.
    fn close(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        wait(py, timeout, |until| self.0.close_until(until))
    }
}

fn add_counters(dict: &Bound<'_, PyDict>, suffix: &str, counters: &Counters) -> PyResult<()> {
    for (name, value) in [
        ("pkt_sent", counters.pkt_sent),
        ("pkt_recv", counters.pkt_recv),
        ("pkt_snd_loss", counters.pkt_snd_loss),
        ("pkt_rcv_loss", counters.pkt_rcv_loss),
        ("pkt_retrans", counters.pkt_retrans),
        ("pkt_sent_ack", counters.pkt_sent_ack),
        ("pkt_recv_ack", counters.pkt_recv_ack),
        ("pkt_sent_nak", counters.pkt_sent_nak),
        ("pkt_recv_nak", counters.pkt_recv_nak),
        ("us_snd_duration", counters.us_snd_duration),
        ("byte_sent", counters.byte_sent),
        ("byte_recv", counters.byte_recv),
        ("timeouts", counters.timeouts),
        ("pkt_duplicate", counters.pkt_duplicate),
        ("pkt_ignored", counters.pkt_ignored),
        ("msg_dropped", counters.msg_dropped),
        ("us_limited_window", counters.us_limited_window),
        ("us_limited_pacing", counters.us_limited_pacing),
        ("us_limited_receiver", counters.us_limited_receiver),
        ("us_limited_application", counters.us_limited_application),
        ("us_limited_processor", counters.us_limited_processor),
    ] {
        dict.set_item(format!("{name}{suffix}"), value)?;
    }
    Ok(())
}

/// A socket that accepts connections.
#[pyclass(frozen, name = "UdtListener", module = "cwnd._native")]
pub struct Listener(Mutex<Option<Arc<UdtListener>>>);

impl Listener {
    fn open(&self) -> io::Result<Arc<UdtListener>> {
        let listener = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        listener.ok_or_else(|| io::Error::other("the listener is closed"))
    }
}

#[pymethods]
impl Listener {
    fn local(&self) -> PyResult<(String, u16)> {
        Ok(address(self.open()?.local_addr()))
    }

    fn accept(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Stream> {
        let (stream, _) = wait(py, timeout, |until| self.open()?.accept_until(until))?;
        Ok(Stream(stream))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

fn resolve(py: Python<'_>, host: &str, port: u16) -> PyResult<Vec<SocketAddr>> {
    Ok(py.detach(|| (host, port).to_socket_addrs().map(Iterator::collect))?)
}

/// Whether a file holds a key; a warning if more than its owner can use it, as its mode of Unix says.
#[pyfunction]
#[pyo3(signature = (contents, mode=None))]
fn udt_check_key(contents: &[u8], mode: Option<u32>) -> PyResult<Option<String>> {
    read_key(contents)?;
    Ok(mode.and_then(Key::warning))
}

/// Connects to a listener.
#[pyfunction]
fn udt_connect(py: Python<'_>, host: &str, port: u16, settings: Settings) -> PyResult<Stream> {
    let config = settings.config()?;
    let mut failed = PyOSError::new_err("the name has no address");
    for peer in resolve(py, host, port)? {
        let stream = UdtStream::connecting(peer, &config)?;
        match wait(py, None, |until| stream.connected_until(until)) {
            Ok(()) => return Ok(Stream(stream)),
            Err(error) if error.is_instance_of::<PyOSError>(py) => failed = error,
            Err(error) => return Err(error),
        }
    }
    Err(failed)
}

/// Accepts connections at a port.
#[pyfunction]
fn udt_listen(py: Python<'_>, host: &str, port: u16, settings: Settings) -> PyResult<Listener> {
    let config = settings.config()?;
    let addresses = resolve(py, host, port)?;
    let listener = UdtListener::bind(&addresses[..], &config)?;
    Ok(Listener(Mutex::new(Some(Arc::new(listener)))))
}

/// Adds the sockets to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Stream>()?;
    module.add_class::<Listener>()?;
    module.add_function(wrap_pyfunction!(udt_check_key, module)?)?;
    module.add_function(wrap_pyfunction!(udt_connect, module)?)?;
    module.add_function(wrap_pyfunction!(udt_listen, module)?)
}
