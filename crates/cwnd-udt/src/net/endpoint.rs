//! A UDP port that connections share.

use super::listener::UdtListener;
use super::port::{Begin, Port};
use super::stream::UdtStream;
use crate::Config;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

/// Releases the port when it is dropped.
#[derive(Debug)]
struct Hold(Arc<Port>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// A UDP port, with one thread that drives all its connections: any number of outgoing ones, and one listener.
///
/// [`UdtStream::connect`] and [`UdtListener::bind`] open a port of their own. Clones are the same port. The port is
/// closed once all clones are dropped and its last connection has ended.
#[derive(Clone, Debug)]
pub struct Endpoint(Arc<Hold>);

impl Endpoint {
    /// Opens a UDP port; 0 is any free one.
    ///
    /// # Errors
    /// If the port cannot be opened, for example because it is in use.
    pub fn bind(addr: impl ToSocketAddrs) -> io::Result<Self> {
        first(addr, |addr| Ok(Endpoint(Arc::new(Hold(Port::open(addr)?)))))
    }

    /// Opens a free port of the address family of `peer`.
    pub(super) fn towards(peer: SocketAddr) -> io::Result<Self> {
        let any = match peer {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        Endpoint::bind((any, 0))
    }

    pub(super) fn port(&self) -> &Arc<Port> {
        &self.0.0
    }

    /// The address of the port.
    pub fn local_addr(&self) -> SocketAddr {
        self.port().local
    }

    /// Accepts connections on this port, with `config`.
    ///
    /// # Errors
    /// If the port has a listener, or the credentials are a key pair without peers.
    pub fn listen(&self, config: &Config) -> io::Result<UdtListener> {
        UdtListener::new(self.clone(), config)
    }

    /// Connects to the listener at `peer` and waits for the connection.
    ///
    /// # Errors
    /// If no listener answers within [`Config::connect_timeout`], or the listener refuses.
    pub fn connect(&self, peer: SocketAddr, config: &Config) -> io::Result<UdtStream> {
        let stream = self.begin(peer, config, Begin::Connect)?;
        stream.connected_until(None)?;
        Ok(stream)
    }

    /// The same, in any async runtime.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_async(&self, peer: SocketAddr, config: &Config) -> io::Result<UdtStream> {
        let stream = self.begin(peer, config, Begin::Connect)?;
        std::future::poll_fn(|cx| stream.poll_connected(cx)).await?;
        Ok(stream)
    }

    /// Connects by rendezvous to `peer`, which connects to this end at the same time, and waits for the connection.
    /// Neither end listens.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and with credentials: only clients and listeners support them.
    pub fn rendezvous(&self, peer: SocketAddr, config: &Config) -> io::Result<UdtStream> {
        if config.credentials.is_some() {
            let text = "there is no rendezvous with credentials";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let stream = self.begin(peer, config, Begin::Meet)?;
        stream.connected_until(None)?;
        Ok(stream)
    }

    /// Begins to connect and returns at once; [`UdtStream::connected_until`] waits for the connection.
    ///
    /// # Errors
    /// If the port cannot take another connection.
    pub fn connecting(&self, peer: SocketAddr, config: &Config) -> io::Result<UdtStream> {
        self.begin(peer, config, Begin::Connect)
    }

    pub(super) fn begin(
        &self,
        peer: SocketAddr,
        config: &Config,
        begin: Begin<'_>,
    ) -> io::Result<UdtStream> {
        // A port of IPv6 uses IPv4-mapped addresses.
        let peer = match (self.local_addr(), peer) {
            (SocketAddr::V6(_), SocketAddr::V4(peer)) => {
                SocketAddr::from((peer.ip().to_ipv6_mapped(), peer.port()))
            }
            _ => peer,
        };
        self.port().begin(peer, config, begin, None).map(UdtStream::new)
    }
}

/// The result for the first address that succeeds, or the error of the last one.
pub(super) fn first<T>(
    addr: impl ToSocketAddrs,
    mut attempt: impl FnMut(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let mut failed = None;
    for addr in addr.to_socket_addrs()? {
        match attempt(addr) {
            Ok(value) => return Ok(value),
            Err(error) => failed = Some(error),
        }
    }
    let nothing = || io::Error::new(io::ErrorKind::InvalidInput, "the name has no address");
    Err(failed.unwrap_or_else(nothing))
}
