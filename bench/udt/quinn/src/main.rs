//! Transfers bytes over QUIC, for bench/udt.py:
//!
//! ```text
//! bench-quinn recv|send PORT BYTES [plain]
//! ```
//!
//! The receiver prints the seconds from the first byte to the last. Packets have 1500 bytes, as
//! UDT's. The socket buffers are those of `quinn-perf`: with the smaller defaults of the system
//! quinn loses packets on loopback, and its congestion control limits the rate. The flow-control
//! windows are as large as UDT's receive buffer. Everything else is quinn's default.

mod plain;

use plain::Plain;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use socket2::{Domain, Socket, Type};
use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error>>;

const PIECE: usize = 1 << 20;
/// Unread or unacknowledged bytes at most: UDT's 16,384 packets. quinn's default of 1.25 MB would
/// limit the rate.
const WINDOW: u32 = 16_384 * 1456;
/// Bytes of the socket's buffers in each direction, as in quinn-perf.
const SOCKET_BUFFER: usize = 2 << 20;
/// UDP payload of a packet of 1500 bytes over IPv6: the upper bound of quinn's MTU discovery.
const MTU: u16 = 1452;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let (verb, port, bytes, plain) = match words[..] {
        [verb, port, bytes] => (verb, port, bytes, false),
        [verb, port, bytes, "plain"] => (verb, port, bytes, true),
        _ => return Err("recv or send, PORT, BYTES, and perhaps plain".into()),
    };
    let address = SocketAddr::from(([127, 0, 0, 1], port.parse()?));
    let bytes = bytes.parse()?;
    if verb == "recv" {
        recv(address, bytes, plain).await
    } else {
        send(address, bytes, plain).await
    }
}

/// File in which the receiver stores its certificate for the sender.
fn certificate(address: SocketAddr) -> PathBuf {
    std::env::temp_dir().join(format!("bench-quinn-{}.der", address.port()))
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.initial_mtu(MTU).mtu_discovery_config(None);
    transport.stream_receive_window(WINDOW.into()).send_window(WINDOW.into());
    Arc::new(transport)
}

/// An endpoint on `address`, which accepts connections if it has a server `config`.
fn endpoint(address: SocketAddr, config: Option<ServerConfig>) -> Outcome<Endpoint> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    socket.bind(&address.into())?;
    socket.set_send_buffer_size(SOCKET_BUFFER)?;
    socket.set_recv_buffer_size(SOCKET_BUFFER)?;
    let runtime = Arc::new(TokioRuntime);
    Ok(Endpoint::new(EndpointConfig::default(), config, socket.into(), runtime)?)
}

async fn recv(address: SocketAddr, bytes: usize, plain: bool) -> Outcome<()> {
    let made = rcgen::generate_simple_self_signed(["localhost".into()])?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)?;
    let crypto = Arc::new(QuicServerConfig::try_from(tls)?);
    let mut config = if plain {
        ServerConfig::with_crypto(Arc::new(Plain(crypto)))
    } else {
        ServerConfig::with_crypto(crypto)
    };
    config.transport_config(transport());
    let endpoint = endpoint(address, Some(config))?;
    std::fs::write(certificate(address), made.cert.der())?;
    let connection = endpoint.accept().await.ok_or("no connection")?.await?;
    let mut stream = connection.accept_uni().await?;
    let mut left = bytes;
    let mut start = None;
    while left > 0 {
        let chunk = stream.read_chunk(PIECE, true).await?.ok_or("the stream ended too soon")?;
        start.get_or_insert_with(Instant::now);
        left = left.saturating_sub(chunk.bytes.len());
    }
    println!("received {:.6}", start.ok_or("nothing came")?.elapsed().as_secs_f64());
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    std::fs::remove_file(certificate(address))?;
    Ok(())
}

async fn send(address: SocketAddr, bytes: usize, plain: bool) -> Outcome<()> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(std::fs::read(certificate(address))?.into())?;
    let tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let crypto = Arc::new(QuicClientConfig::try_from(tls)?);
    let mut config =
        if plain { ClientConfig::new(Arc::new(Plain(crypto))) } else { ClientConfig::new(crypto) };
    config.transport_config(transport());
    let mut endpoint = endpoint(([127, 0, 0, 1], 0).into(), None)?;
    endpoint.set_default_client_config(config);
    let connection = endpoint.connect(address, "localhost")?.await?;
    let mut stream = connection.open_uni().await?;
    let piece = vec![0x5a; PIECE];
    let mut left = bytes;
    while left > 0 {
        let count = left.min(PIECE);
        stream.write_all(&piece[..count]).await?;
        left -= count;
    }
    stream.finish()?;
    connection.closed().await;
    Ok(())
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
