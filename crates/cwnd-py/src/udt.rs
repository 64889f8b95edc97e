//! UDT sockets, for `cwnd.udt`.

use crate::custom::{Failure, Given};
use crate::export::export;
use cwnd::Dur;
use cwnd_transfer::stream::is_timeout;
use cwnd_udt::secure::{Code, Credentials, Key, KeyPair, PublicKey, file};
use cwnd_udt::{Admission, Config, Counters, Endpoint, SocketType, UdtListener, UdtStream};
use ipnet::IpNet;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The interval at which a wait checks Python's signals.
const SLICE: Duration = Duration::from_millis(100);
/// The maximum number of bytes that one call receives, under one lock of the connection.
pub(crate) const PIECE: usize = 1 << 16;

/// Options of a socket of UDT or QUIC: a Python dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SocketOptions {
    pub(crate) controller: Given,
    messages: bool,
    pub(crate) mtu: u32,
    buffer: u32,
    rate_limit: Option<f64>,
    pub(crate) timeout: f64,
    key: Option<Vec<u8>>,
    pair: Option<Vec<u8>>,
    peers: Vec<String>,
    code: Option<String>,
    allow: Vec<String>,
    per_address: Option<usize>,
    /// The local address to connect from.
    pub(crate) bind: Option<String>,
}

fn wrong(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn read_key(contents: &[u8]) -> PyResult<Key> {
    Key::from_file_contents(contents).map_err(wrong)
}

fn read_pair(contents: &[u8]) -> PyResult<KeyPair> {
    KeyPair::from_file_contents(contents).map_err(wrong)
}

fn parse<T: FromStr<Err: ToString>>(text: &str) -> PyResult<T> {
    text.parse().map_err(wrong)
}

/// A network such as `10.0.0.0/8`; an address alone is a network of one.
fn read_network(text: &str) -> PyResult<IpNet> {
    let address = || text.parse::<IpAddr>().map(IpNet::from);
    text.parse().or_else(|_| address()).map_err(|_| {
        let text = format!("{text:?} is no network, such as 10.0.0.0/8, fd00::/8 or 192.0.2.1");
        PyValueError::new_err(text)
    })
}

impl SocketOptions {
    pub(crate) fn credentials(&self) -> PyResult<Option<Credentials>> {
        let key = self.key.as_deref().map(read_key).transpose()?;
        Ok(match (&self.pair, &self.code) {
            (Some(pair), _) => Some(Credentials::Pair {
                own: read_pair(pair)?,
                peers: self.peers.iter().map(|text| parse(text)).collect::<PyResult<_>>()?,
                psk: key,
            }),
            (None, Some(code)) => Some(Credentials::Code(parse(code)?)),
            (None, None) => key.map(Credentials::Key),
        })
    }

    pub(crate) fn admission(&self) -> PyResult<Admission> {
        let allow = self.allow.iter().map(|text| read_network(text)).collect::<PyResult<_>>()?;
        Ok(Admission { allow, per_address: self.per_address })
    }

    /// The configuration that these options describe. Errors of a controller written in Python are
    /// kept in `failure`.
    ///
    /// # Errors
    /// `SpecError` for the controller, `ValueError` for anything else.
    pub(crate) fn config(&self, failure: &Arc<Failure>) -> PyResult<Config> {
        let defaults = Config::new(self.controller.read(failure)?);
        Ok(Config {
            socket_type: if self.messages { SocketType::Message } else { SocketType::Stream },
            packet_size: self.mtu,
            // As in UDT4, the window may be larger than the buffer behind it is by default.
            flow_window: defaults.flow_window.max(self.buffer),
            send_buffer: self.buffer,
            receive_buffer: self.buffer,
            rate_limit: self.rate_limit,
            connect_timeout: Dur::from_secs(self.timeout),
            admission: self.admission()?,
            credentials: self.credentials()?,
            ..defaults
        })
    }
}

/// Waits without the GIL, in slices: Ctrl-C and failures of a controller are noticed.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    failure: &Failure,
    timeout: Option<f64>,
    mut attempt: impl FnMut(Option<Instant>) -> io::Result<T> + Send,
) -> PyResult<T> {
    let limit = timeout.and_then(|secs| Duration::try_from_secs_f64(secs).ok());
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    loop {
        let slice = Instant::now() + SLICE;
        let until = deadline.map_or(slice, |deadline| deadline.min(slice));
        let outcome = py.detach(|| attempt(Some(until)));
        failure.check()?;
        match outcome {
            Err(error) if is_timeout(&error) && until == slice => py.check_signals()?,
            other => return Ok(other?),
        }
    }
}

pub(crate) fn address(addr: SocketAddr) -> (String, u16) {
    (addr.ip().to_string(), addr.port())
}

/// Adds these fields to a dictionary, with a suffix of their names.
macro_rules! set_fields {
    ($dict:ident, $suffix:expr, $of:ident: $($field:ident)+) => {
        $($dict.set_item(format!("{}{}", stringify!($field), $suffix), $of.$field)?;)+
    };
}

/// One end of a connection.
#[pyclass(frozen, name = "UdtStream", module = "cwnd._native")]
pub(crate) struct Stream {
    /// Taken when it is dropped.
    stream: Option<UdtStream>,
    failure: Arc<Failure>,
}

impl Stream {
    fn stream(&self) -> &UdtStream {
        self.stream.as_ref().expect("only a drop takes it")
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // The port's thread may wait for the interpreter, in a controller, while it has the
        // connection's lock.
        let stream = self.stream.take();
        Python::attach(|py| py.detach(|| drop(stream)));
    }
}

#[pymethods]
impl Stream {
    fn peer(&self) -> (String, u16) {
        address(self.stream().peer_addr())
    }

    fn local(&self) -> (String, u16) {
        address(self.stream().local_addr())
    }

    /// The public key that the peer has proved, with key pairs.
    fn identity(&self) -> Option<String> {
        self.stream().identity().map(|key| key.to_string())
    }

    /// Up to `size` bytes; none when the peer has closed.
    fn read(&self, py: Python<'_>, size: usize, timeout: Option<f64>) -> PyResult<Vec<u8>> {
        wait(py, &self.failure, timeout, |until| {
            let mut piece = vec![0; size.min(PIECE)];
            let count = self.stream().read_until(&mut piece, until)?;
            piece.truncate(count);
            Ok(piece)
        })
    }

    /// Writes all of the data.
    fn write(&self, py: Python<'_>, data: &[u8], timeout: Option<f64>) -> PyResult<()> {
        let mut rest = data;
        wait(py, &self.failure, timeout, |until| {
            while !rest.is_empty() {
                rest = &rest[self.stream().write_until(rest, until)?..];
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
        wait(py, &self.failure, timeout, |until| {
            self.stream().send_message_until(data, (ttl, in_order), until)
        })
    }

    /// The next message; `None` when the peer has closed.
    fn recv_message(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Vec<u8>>> {
        wait(py, &self.failure, timeout, |until| self.stream().next_message_until(until))
    }

    fn stats<'py>(&self, py: Python<'py>, clear: bool) -> PyResult<Bound<'py, PyDict>> {
        let stats = py.detach(|| self.stream().stats(clear));
        let dict = PyDict::new(py);
        set_fields!(dict, "", stats: ms_time_stamp);
        add_counters(&dict, "_total", &stats.total)?;
        add_counters(&dict, "", &stats.interval)?;
        set_fields!(dict, "", stats:
            mbps_send_rate mbps_recv_rate us_pkt_snd_period pkt_flow_window pkt_congestion_window
            pkt_flight_size ms_rtt mbps_bandwidth byte_avail_snd_buf byte_avail_rcv_buf);
        Ok(dict)
    }

    /// Ends the connection without waiting.
    fn finish(&self, py: Python<'_>) {
        py.detach(|| self.stream().finish());
    }

    /// Ends the connection at once.
    fn abort(&self, py: Python<'_>) {
        py.detach(|| self.stream().abort());
    }

    /// Ends the connection and waits until everything is delivered.
    fn close(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        wait(py, &self.failure, timeout, |until| self.stream().close_until(until))
    }
}

fn add_counters(dict: &Bound<'_, PyDict>, suffix: &str, counters: &Counters) -> PyResult<()> {
    set_fields!(dict, suffix, counters:
        pkt_sent pkt_recv pkt_snd_loss pkt_rcv_loss pkt_retrans pkt_sent_ack pkt_recv_ack
        pkt_sent_nak pkt_recv_nak us_snd_duration byte_sent byte_recv timeouts pkt_duplicate
        pkt_ignored msg_dropped us_limited_window us_limited_pacing us_limited_receiver
        us_limited_application us_limited_processor);
    Ok(())
}

/// A socket that accepts connections.
#[pyclass(frozen, name = "UdtListener", module = "cwnd._native")]
pub(crate) struct Listener {
    listener: Mutex<Option<Arc<UdtListener>>>,
    pub(crate) failure: Arc<Failure>,
}

impl Listener {
    /// The listener itself.
    ///
    /// # Errors
    /// When it is closed.
    pub(crate) fn open(&self) -> io::Result<Arc<UdtListener>> {
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner).clone();
        listener.ok_or_else(|| io::Error::other("the listener is closed"))
    }
}

#[pymethods]
impl Listener {
    fn local(&self) -> PyResult<(String, u16)> {
        Ok(address(self.open()?.local_addr()))
    }

    fn accept(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Stream> {
        let failure = &self.failure;
        let (stream, _) = wait(py, failure, timeout, |until| self.open()?.accept_until(until))?;
        Ok(Stream { stream: Some(stream), failure: failure.clone() })
    }

    /// Uses up the one-time code.
    fn spend_code(&self) -> PyResult<()> {
        self.open()?.spend_code();
        Ok(())
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.listener.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

pub(crate) fn resolve(py: Python<'_>, host: &str, port: u16) -> PyResult<Vec<SocketAddr>> {
    Ok(py.detach(|| (host, port).to_socket_addrs().map(Iterator::collect))?)
}

export! {
    /// Checks that bytes are a shared key.
    udt_check_key(contents: &[u8]) -> PyResult<()> = read_key(contents).map(drop);
    /// The public key of a private key's file contents.
    udt_check_pair(contents: &[u8]) -> PyResult<String> =
        Ok(read_pair(contents)?.public().to_string());
    /// Checks that a text is a public key.
    udt_check_peer(text: &str) -> PyResult<()> = parse::<PublicKey>(text).map(drop);
    /// A one-time code as it is printed.
    udt_check_code(text: &str) -> PyResult<String> = Ok(parse::<Code>(text)?.to_string());
    /// Checks that a text is a network or an address.
    udt_check_network(text: &str) -> PyResult<()> = read_network(text).map(drop);
    /// A new one-time code.
    udt_generate_code() -> PyResult<String> = Ok(Code::generate()?.to_string());
    /// Public keys and names in a list of peers.
    udt_parse_peers(text: &str) -> PyResult<Vec<(String, Option<String>)>> = {
        let peers = PublicKey::parse_list(text).map_err(wrong)?;
        Ok(peers.into_iter().map(|(key, name)| (key.to_string(), name)).collect())
    };
    /// The contents of a file that only its owner can use.
    udt_read_secret(py: Python<'_>, path: PathBuf) -> PyResult<Vec<u8>> =
        Ok(py.detach(|| file::read_secret(&path))?);
    /// Writes a new shared key.
    udt_generate_key(path: PathBuf) -> PyResult<()> = Ok(file::generate_key(&path)?);
    /// Writes a new key pair: its public key.
    udt_generate_pair(path: PathBuf) -> PyResult<String> =
        Ok(file::generate_pair(&path)?.public().to_string());
}

/// Connects to a listener.
#[pyfunction]
pub(crate) fn udt_connect(
    py: Python<'_>,
    host: &str,
    port: u16,
    options: SocketOptions,
) -> PyResult<Stream> {
    let failure = Arc::<Failure>::default();
    let config = options.config(&failure)?;
    let local = options.bind.as_deref().map(|host| Endpoint::bind((host, 0))).transpose()?;
    let mut failed = PyOSError::new_err("the name has no address");
    for peer in resolve(py, host, port)? {
        let stream = py.detach(|| match &local {
            Some(endpoint) => endpoint.connecting(peer, &config),
            None => UdtStream::connecting(peer, &config),
        })?;
        let stream = Stream { stream: Some(stream), failure: failure.clone() };
        match wait(py, &failure, None, |until| stream.stream().connected_until(until)) {
            Ok(()) => return Ok(stream),
            Err(error) if error.is_instance_of::<PyOSError>(py) => failed = error,
            Err(error) => return Err(error),
        }
    }
    Err(failed)
}

/// Accepts connections at a port.
#[pyfunction]
pub(crate) fn udt_listen(
    py: Python<'_>,
    host: &str,
    port: u16,
    options: SocketOptions,
) -> PyResult<Listener> {
    let failure = Arc::default();
    let config = options.config(&failure)?;
    let addresses = resolve(py, host, port)?;
    let listener = UdtListener::bind(&addresses[..], &config)?;
    Ok(Listener { listener: Mutex::new(Some(Arc::new(listener))), failure })
}
