//! Streams of bytes, of one connection each. Compiled for each stack.

use super::path;
use super::quic_stack::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use super::quic_stack::{
    ClientConfig, Connection, ConnectionError, MtuDiscoveryConfig, ReadError, RecvStream,
    SendStream, ServerConfig, StoppedError, TransportConfig, TransportErrorCode, VarInt,
    WriteError,
};
use super::stack::{controlled, endpoint};
use crate::authenticate::{Binding, LABEL, OTHER, initiate, respond};
use crate::stream::{
    FIRST_WINDOW, KEEP_ALIVE, OPEN_TIMEOUT, Stream, StreamOptions, StreamStats, WINDOW, silent,
    wait,
};
use crate::{Error, Identity, refused, tls};
use cwnd_udt::secure::Credentials;
use cwnd_udt::{Admission, counted_address};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// Connections of a listener at most, those that are being opened included.
const MAX_CONNECTIONS: usize = 1024;
/// Interval in which an end tells how much it has read.
const TELL_INTERVAL: Duration = Duration::from_millis(10);
/// Time in which the notice of a closed connection leaves this host.
const NOTICE_TIMEOUT: Duration = Duration::from_millis(100);
const CLOSED: VarInt = VarInt::from_u32(0);
const REFUSED: VarInt = VarInt::from_u32(1);
/// TLS's `no_application_protocol`.
const NO_PROTOCOL: u8 = 120;

/// Returns the transport configuration of an end.
fn transport(options: &mut StreamOptions) -> Result<TransportConfig, Error> {
    let quic = options.quic();
    let (mut config, _) = controlled(&quic, options.controllers.take())?;
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(options.payload()?);
    config
        .mtu_discovery_config(Some(discovery))
        .send_window(WINDOW.into())
        .receive_window(VarInt::from_u32(FIRST_WINDOW))
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(1))
        .datagram_receive_buffer_size(None)
        .keep_alive_interval(Some(KEEP_ALIVE));
    Ok(config)
}

/// Connects to a listener.
pub(crate) fn connect(
    socket: UdpSocket,
    peer: SocketAddr,
    mut options: StreamOptions,
    patience: Duration,
) -> Result<impl Future<Output = io::Result<Box<dyn Stream>>> + Send + use<>, Error> {
    let transport = transport(&mut options)?;
    let mut tls = tls::client(None)?;
    tls.alpn_protocols = tls::protocols(options.credentials.is_some());
    let tls = QuicClientConfig::try_from(tls).map_err(refused)?;
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(Arc::new(transport));
    let endpoint = endpoint(options.payload()?, socket, None)?;
    let credentials = options.credentials;
    Ok(async move {
        let open = async {
            let connecting =
                endpoint.connect_with(config, peer, "listener").map_err(io::Error::other)?;
            let connection = connecting.await.map_err(broken)?;
            let ends = [peer, endpoint.local_addr()?];
            let duplex = Duplex::new(connection, ends, credentials, true).await?;
            Ok(Box::new(duplex) as Box<dyn Stream>)
        };
        timeout(patience, open).await.unwrap_or_else(|_| Err(silent()))
    })
}

/// Accepts connections, until it is dropped.
pub(crate) fn listen(
    socket: UdpSocket,
    mut options: StreamOptions,
    admission: Admission,
    queue: mpsc::Sender<Box<dyn Stream>>,
) -> Result<impl Future<Output = ()> + Send + use<>, Error> {
    let transport = transport(&mut options)?;
    let mut tls = Identity::generate()?.server()?;
    tls.alpn_protocols = tls::protocols(options.credentials.is_some());
    let tls = QuicServerConfig::try_from(tls).map_err(refused)?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(Arc::new(transport));
    let endpoint = endpoint(options.payload()?, socket, Some(config))?;
    let (local, credentials) = (endpoint.local_addr()?, options.credentials);
    Ok(async move {
        let mut places = Places { most: admission.per_address, open: HashMap::new() };
        while let Some(incoming) = endpoint.accept().await {
            let peer = incoming.remote_address();
            let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
            if !admission.allows(peer.ip()) || endpoint.open_connections() >= MAX_CONNECTIONS {
                incoming.ignore();
                continue;
            }
            if !incoming.remote_address_validated() {
                // The first packet of an address is answered and forgotten.
                let _ = incoming.retry();
                continue;
            }
            let Some(place) = places.take(counted_address(peer.ip())) else {
                incoming.ignore();
                continue;
            };
            let (credentials, queue) = (credentials.clone(), queue.clone());
            tokio::spawn(async move {
                let open = async {
                    let connection = incoming.await.map_err(broken)?;
                    Duplex::new(connection, [peer, local], credentials, false).await
                };
                if let Ok(Ok(mut duplex)) = timeout(OPEN_TIMEOUT, open).await {
                    duplex.place = Some(place);
                    // Without room the connection is closed.
                    let _ = queue.try_send(Box::new(duplex));
                }
            });
        }
    })
}

/// The open connections of each address.
struct Places {
    most: Option<usize>,
    open: HashMap<IpAddr, Arc<()>>,
}

impl Places {
    fn take(&mut self, ip: IpAddr) -> Option<Arc<()>> {
        self.open.retain(|_, place| Arc::strong_count(place) > 1);
        let place = self.open.entry(ip).or_default();
        let free = self.most.is_none_or(|most| Arc::strong_count(place) <= most);
        free.then(|| place.clone())
    }
}

/// Counters that an end and the tasks of its connection share.
#[derive(Debug, Default)]
struct Counters {
    /// Bytes that this end has read.
    read: AtomicU64,
    /// Bytes of this end that the peer has read, as it says.
    read_by_peer: AtomicU64,
}

/// An end of a connection with one stream in both directions.
#[derive(Debug)]
struct Duplex {
    connection: Connection,
    /// The addresses of the peer and of the socket.
    ends: [SocketAddr; 2],
    output: Mutex<SendStream>,
    input: Mutex<RecvStream>,
    written: AtomicU64,
    counters: Arc<Counters>,
    /// Counts the connections of an address while it exists.
    place: Option<Arc<()>>,
}

impl Duplex {
    /// Opens or accepts the stream of a connection, and proves the credentials to each other.
    async fn new(
        connection: Connection,
        ends: [SocketAddr; 2],
        credentials: Option<Credentials>,
        is_client: bool,
    ) -> io::Result<Self> {
        let streams =
            if is_client { connection.open_bi().await } else { connection.accept_bi().await };
        let (mut output, mut input) = streams.map_err(broken)?;
        if let Some(credentials) = credentials {
            let mut binding = Binding::default();
            let exported = connection.export_keying_material(&mut binding, LABEL, b"");
            exported.map_err(|_| io::Error::other("TLS exports no value"))?;
            let proof = if is_client {
                initiate(&credentials, binding, &mut output, &mut input).await
            } else {
                respond(&credentials, binding, ends[0], &mut output, &mut input).await
            };
            if let Err(error) = proof {
                let reason = connection.close_reason();
                connection.close(REFUSED, b"");
                return Err(reason.map_or(error, broken));
            }
        }
        // Both stacks send the new limit.
        connection.set_receive_window(VarInt::from_u32(WINDOW));
        let counters = Arc::<Counters>::default();
        tokio::spawn(tell(connection.clone(), counters.clone()));
        tokio::spawn(hear(connection.clone(), counters.clone()));
        Ok(Duplex {
            connection,
            ends,
            output: Mutex::new(output),
            input: Mutex::new(input),
            written: AtomicU64::new(0),
            counters,
            place: None,
        })
    }
}

/// Tells the peer how much of its data was read, until the connection ends.
async fn tell(connection: Connection, counters: Arc<Counters>) {
    let Ok(mut output) = connection.open_uni().await else { return };
    let (mut told, mut clock) = (0, interval(TELL_INTERVAL));
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while connection.close_reason().is_none() {
        clock.tick().await;
        let read = counters.read.load(Ordering::Relaxed);
        if read != told && output.write_all(&read.to_be_bytes()).await.is_err() {
            return;
        }
        told = read;
    }
}

/// Notes how much the peer has read, until the connection ends.
async fn hear(connection: Connection, counters: Arc<Counters>) {
    let Ok(mut input) = connection.accept_uni().await else { return };
    let mut read = [0; 8];
    while input.read_exact(&mut read).await.is_ok() {
        counters.read_by_peer.fetch_max(u64::from_be_bytes(read), Ordering::Relaxed);
    }
}

impl Stream for Duplex {
    fn peer(&self) -> SocketAddr {
        self.ends[0]
    }

    fn local(&self) -> SocketAddr {
        self.ends[1]
    }

    fn read_until(&self, buffer: &mut [u8], until: Option<Instant>) -> io::Result<usize> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        match wait(until, input.read(buffer))? {
            Ok(bytes) => {
                let bytes = bytes.unwrap_or(0);
                self.counters.read.fetch_add(bytes as u64, Ordering::Relaxed);
                Ok(bytes)
            }
            Err(ReadError::ConnectionLost(ConnectionError::ApplicationClosed(_))) => Ok(0),
            Err(ReadError::ConnectionLost(reason)) => Err(broken(reason)),
            Err(error) => Err(io::Error::new(io::ErrorKind::BrokenPipe, error)),
        }
    }

    fn write_until(&self, data: &[u8], until: Option<Instant>) -> io::Result<usize> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        match wait(until, output.write(data))? {
            Ok(bytes) => {
                self.written.fetch_add(bytes as u64, Ordering::Relaxed);
                Ok(bytes)
            }
            Err(WriteError::ConnectionLost(reason)) => Err(broken(reason)),
            Err(error) => Err(io::Error::new(io::ErrorKind::BrokenPipe, error)),
        }
    }

    fn close_until(&self, until: Option<Instant>) -> io::Result<()> {
        let arrived = {
            let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
            // Of a second call the stream is finished already.
            let _ = output.finish();
            output.stopped()
        };
        match wait(until, arrived)? {
            Ok(None) => {}
            Ok(Some(_)) => return Err(broken(ConnectionError::LocallyClosed)),
            Err(StoppedError::ConnectionLost(reason)) => return Err(broken(reason)),
            Err(error) => return Err(io::Error::other(error)),
        }
        self.abort();
        Ok(())
    }

    fn abort(&self) {
        if self.connection.close_reason().is_some() {
            return;
        }
        self.connection.close(CLOSED, b"");
        // The process may end at once.
        let sent = async {
            while self.connection.stats().frame_tx.connection_close == 0 {
                sleep(Duration::from_millis(1)).await;
            }
        };
        let _ = wait(Some(Instant::now() + NOTICE_TIMEOUT), sent);
    }

    fn stats(&self) -> StreamStats {
        let written = self.written.load(Ordering::Relaxed);
        let read = self.counters.read_by_peer.load(Ordering::Relaxed);
        let path = path(&self.connection);
        StreamStats {
            rtt: path.map_or(Duration::ZERO, |path| path.rtt),
            window: path.map_or(0, |path| path.cwnd),
            lost: path.map_or(0, |path| path.lost_packets),
            unread: written.saturating_sub(read),
            send_buffer: WINDOW.into(),
        }
    }
}

impl Drop for Duplex {
    fn drop(&mut self) {
        // Its tasks have the connection too.
        self.connection.close(CLOSED, b"");
    }
}

/// Returns the error of a connection that ended.
fn broken(reason: ConnectionError) -> io::Error {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, Other, PermissionDenied};
    let (kind, text) = match &reason {
        ConnectionError::TimedOut => (ConnectionAborted, "the peer does not answer"),
        ConnectionError::Reset => (ConnectionReset, "the peer does not know the connection"),
        ConnectionError::LocallyClosed => (BrokenPipe, "the connection was closed"),
        ConnectionError::ApplicationClosed(close) if close.error_code == REFUSED => {
            (PermissionDenied, OTHER)
        }
        ConnectionError::ApplicationClosed(_) => (BrokenPipe, "the peer closed the connection"),
        ConnectionError::ConnectionClosed(close)
            if close.error_code == TransportErrorCode::crypto(NO_PROTOCOL) =>
        {
            (PermissionDenied, "one end has credentials and the other has none")
        }
        _ => return io::Error::new(Other, reason),
    };
    io::Error::new(kind, text)
}
