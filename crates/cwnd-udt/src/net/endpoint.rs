//! A UDP port that connections share.

use super::listener::UdtListener;
use super::port::{Begin, Port};
use super::stream::UdtStream;
use crate::Config;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

/// The last one to go releases the port.
#[derive(Debug)]
struct Hold(Arc<Port>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// A UDP port, with one thread that drives all its connections: any number out of it, and one listener.
///
/// [`UdtStream::connect`] and [`UdtListener::bind`] open a port of their own. Clones are the same port. It
/// is closed when nobody holds it any more and its last connection has ended.
#[derive(Clone, Debug)]
pub struct Endpoint(Arc<Hold>);

impl Endpoint {
    /// Opens a UDP port; 0 is any free one.
    ///
    /// # Errors
    /// When it cannot be had, such as one that is in use.
    pub fn bind(addr: impl ToSocketAddrs) -> io::Result<Self> {
        first(addr, |addr| Ok(Endpoint(Arc::new(Hold(Port::open(addr)?)))))
    }

    /// Any free port that can reach `peer`.
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

    /// Accepts connections here, with `config`.
    ///
    /// # Errors
    /// When there is a listener already, or the credentials are a pair without peers.
    pub fn listen(&self, config: &Config) -> io::Result<UdtListener> {
        UdtListener::new(self.clone(), config)
    }

    /// Connects to the listener at `peer` and waits until that is done.
    ///
    /// # Errors
    /// When nobody answers within [`Config::connect_timeout`], or the answer is no.
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

    /// Meets `peer`, which calls this end at the same time, and waits until that is done. Neither end
    /// listens.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and with credentials: only clients and listeners have some.
    pub fn rendezvous(&self, peer: SocketAddr, config: &Config) -> io::Result<UdtStream> {
        if config.credentials.is_some() {
            let text = "there is no rendezvous with credentials";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let stream = self.begin(peer, config, Begin::Meet)?;
        stream.connected_until(None)?;
        Ok(stream)
    }

    pub(super) fn begin(
        &self,
        peer: SocketAddr,
        config: &Config,
        begin: Begin<'_>,
    ) -> io::Result<UdtStream> {
        // A port of IPv6 knows IPv4's addresses by another name.
        let peer = match (self.local_addr(), peer) {
            (SocketAddr::V6(_), SocketAddr::V4(peer)) => {
                SocketAddr::from((peer.ip().to_ipv6_mapped(), peer.port()))
            }
            _ => peer,
        };
        self.port().begin(peer, config, begin, None).map(UdtStream::new)
    }
}

/// What the first address gives that works, or the error of the last.
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
