//! The application's interface of a UDP port that connections share.

use super::listener::UdtListener;
use super::port::{Port, Role};
use super::stream::UdtStream;
use crate::Config;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

/// Releases the port when it is dropped.
#[derive(Debug)]
struct PortGuard(Arc<Port>);

impl Drop for PortGuard {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// A UDP port, with one thread that drives all its connections: any number of outgoing ones, and
/// one listener.
///
/// [`UdtStream::connect`] and [`UdtListener::bind`] open a port of their own. Clones are the same
/// port. The port is closed once all clones are dropped and its last connection has ended.
#[derive(Clone, Debug)]
pub struct Endpoint(Arc<PortGuard>);

impl Endpoint {
    /// Opens a UDP port; port 0 selects a free one.
    ///
    /// # Errors
    /// If the port cannot be opened, for example because it is in use.
    pub fn bind(addr: impl ToSocketAddrs) -> io::Result<Self> {
        try_addresses(addr, |addr| Ok(Endpoint(Arc::new(PortGuard(Port::open(addr)?)))))
    }

    /// Opens a free port for connections to `peer`, with the same address family.
    pub(super) fn for_peer(peer: SocketAddr) -> io::Result<Self> {
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

    /// Creates a listener on this port. Accepted connections use `config`.
    ///
    /// # Errors
    /// If the port already has a listener, or the credentials are a key pair without peers.
    pub fn listen(&self, config: &Config) -> io::Result<UdtListener> {
        UdtListener::new(self.clone(), config)
    }

    /// Connects to the listener at `peer` and waits until the connection is open.
    ///
    /// # Errors
    /// If no listener answers within [`Config::connect_timeout`], or the listener refuses.
    pub fn connect(&self, peer: SocketAddr, config: &Config) -> io::Result<UdtStream> {
        let stream = self.open_connection(peer, config, Role::Connect)?;
        stream.connected_until(None)?;
        Ok(stream)
    }

    /// As [`connect`](Self::connect), in any async runtime.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_async(&self, peer: SocketAddr, config: &Config) -> io::Result<UdtStream> {
        let stream = self.open_connection(peer, config, Role::Connect)?;
        std::future::poll_fn(|cx| stream.poll_connected(cx)).await?;
        Ok(stream)
    }

    /// Connects by rendezvous: `peer` connects to this end at the same time, and neither end
    /// listens. Waits until the connection is open.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and if there are credentials, which a rendezvous does not
    /// support.
    pub fn rendezvous(&self, peer: SocketAddr, config: &Config) -> io::Result<UdtStream> {
        if config.credentials.is_some() {
            let text = "a rendezvous does not support credentials";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let stream = self.open_connection(peer, config, Role::Rendezvous)?;
        stream.connected_until(None)?;
        Ok(stream)
    }

    /// Starts to connect and returns at once; [`UdtStream::connected_until`] waits until the
    /// connection is open.
    ///
    /// # Errors
    /// If the port's socket has failed, or the credentials cannot be used to connect.
    pub fn connecting(&self, peer: SocketAddr, config: &Config) -> io::Result<UdtStream> {
        self.open_connection(peer, config, Role::Connect)
    }

    pub(super) fn open_connection(
        &self,
        peer: SocketAddr,
        config: &Config,
        role: Role<'_>,
    ) -> io::Result<UdtStream> {
        // An IPv6 socket uses IPv4-mapped addresses.
        let peer = match (self.local_addr(), peer) {
            (SocketAddr::V6(_), SocketAddr::V4(peer)) => {
                SocketAddr::from((peer.ip().to_ipv6_mapped(), peer.port()))
            }
            _ => peer,
        };
        self.port().open_connection(peer, config, role, None).map(UdtStream::new)
    }
}

impl UdtStream {
    /// Connects to a listener from a new UDP port, and waits until the connection is open.
    ///
    /// # Errors
    /// If the name has no address, no listener answers within [`Config::connect_timeout`], or the
    /// listener refuses.
    pub fn connect(addr: impl ToSocketAddrs, config: &Config) -> io::Result<Self> {
        try_addresses(addr, |peer| Endpoint::for_peer(peer)?.connect(peer, config))
    }

    /// As [`connect`](Self::connect), in any async runtime.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_async(peer: SocketAddr, config: &Config) -> io::Result<Self> {
        Endpoint::for_peer(peer)?.connect_async(peer, config).await
    }

    /// Starts to connect and returns at once; [`connected_until`](Self::connected_until) waits
    /// until the connection is open.
    ///
    /// # Errors
    /// If no UDP port can be opened, or the credentials cannot be used to connect.
    pub fn connecting(peer: SocketAddr, config: &Config) -> io::Result<Self> {
        Endpoint::for_peer(peer)?.connecting(peer, config)
    }

    /// Connects to `peer` by rendezvous from the port `local`: both ends connect to each other, and
    /// neither listens. This works through network address translators that admit answers to
    /// outgoing datagrams.
    ///
    /// # Errors
    /// If the port cannot be opened, or the peer does not connect within
    /// [`Config::connect_timeout`].
    pub fn rendezvous(
        local: impl ToSocketAddrs,
        peer: SocketAddr,
        config: &Config,
    ) -> io::Result<Self> {
        Endpoint::bind(local)?.rendezvous(peer, config)
    }
}

/// Calls `attempt` for each address and returns the first success, or the last error.
pub(super) fn try_addresses<T>(
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
    let no_address = || io::Error::new(io::ErrorKind::InvalidInput, "the name has no address");
    Err(failed.unwrap_or_else(no_address))
}
