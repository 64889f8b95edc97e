//! Packet protection of a connection: the layer between the state machine and the socket, which
//! encrypts datagrams if the connection has credentials.

use crate::packet::HEADER;
use crate::secure::{Exhausted, Initiator, OVERHEAD, PublicKey, Refused, Session, packet_size};
use crate::{Config, Filled, Transmit, reset};
use cwnd::Time;
use std::io;
use std::net::IpAddr;

/// The protection of one connection's datagrams.
#[derive(Debug)]
pub(super) enum Protection {
    /// Unencrypted UDT.
    Plain,
    /// A client that has requested a session, and why the listener's last datagram was dropped, if
    /// one was.
    Handshake(Box<Initiator>, Option<Refused>),
    Sealed(Box<Session>),
}

/// The validity of a reset.
pub(super) enum Reset {
    /// Valid if the connection has sent this header.
    Echo([u8; HEADER]),
    /// Authenticated.
    Authentic,
    Invalid,
}

/// Outgoing datagrams of a connection.
pub(super) enum Outgoing<'a> {
    /// Unencrypted datagrams in the connection's buffer.
    Plain(Transmit<'a>),
    /// Copied datagrams of this size with room for header and tag: they can be sealed without the
    /// connection's lock.
    Unsealed(usize),
}

fn io_error(refused: Refused) -> io::Error {
    match refused {
        Refused::Credentials(error) => io::Error::new(io::ErrorKind::InvalidInput, error),
        other => io::Error::other(other),
    }
}

/// MTUs of paths that are probed: of jumbo frames, Ethernet, PPPoE, tunnels, the least of IPv6, and
/// that of IPv4 hosts.
const COMMON_MTUS: [u32; 8] = [9000, 1500, 1492, 1460, 1420, 1400, 1280, 576];
/// The bytes by which IPv6's header exceeds IPv4's, which UDT counts in the packet size.
const IPV6_EXCESS: u32 = 20;

/// The configuration of the state machine, which probes the path to `peer`. With credentials its
/// packet sizes leave room for the overhead of sealing.
pub(super) fn inner_config(config: &Config, peer: IpAddr) -> Config {
    let excess = if peer.is_ipv6() { IPV6_EXCESS } else { 0 };
    let common = COMMON_MTUS.iter().map(|mtu| mtu - excess);
    let largest = config.packet_size - excess.min(config.packet_size);
    let sizes = std::iter::once(largest)
        .chain(common.filter(|size| *size < largest))
        .map(|size| if config.credentials.is_some() { packet_size(size) } else { size });
    let probes: Vec<_> = sizes.collect();
    Config { packet_size: probes[0], probes, ..config.clone() }
}

impl Protection {
    /// Creates the protection of the connection `id`. Without a `session`, a connection with
    /// credentials is a client that requests one.
    pub(super) fn new(
        config: &Config,
        session: Option<Box<Session>>,
        now: Time,
        id: u32,
    ) -> io::Result<Self> {
        Ok(match (session, &config.credentials) {
            (Some(session), _) => Protection::Sealed(session),
            (None, None) => Protection::Plain,
            (None, Some(credentials)) => {
                let timeout = config.connect_timeout;
                let initiator = Initiator::new(credentials, now, id, timeout);
                Protection::Handshake(Box::new(initiator.map_err(io_error)?), None)
            }
        })
    }

    /// Checks a reset from the peer's address.
    pub(super) fn check_reset(&self, datagram: &[u8]) -> Reset {
        match (self, reset::parse(datagram)) {
            (Protection::Plain, Some(header)) => Reset::Echo(header),
            (Protection::Sealed(session), _) if session.is_reset(datagram) => Reset::Authentic,
            _ => Reset::Invalid,
        }
    }

    /// The next timer of the session's handshake; `None` if there is no handshake or it is done.
    pub(super) fn handshake_wakeup(&self) -> Option<Time> {
        match self {
            Protection::Handshake(initiator, _) => Some(initiator.next_wakeup()),
            _ => None,
        }
    }

    /// The datagram of the session's handshake to send now.
    pub(super) fn poll_handshake(&mut self, now: Time) -> Option<&[u8]> {
        match self {
            Protection::Handshake(initiator, _) => initiator.poll(now),
            _ => None,
        }
    }

    /// Prepares datagrams for sending; copies them to `wire` if they are to be sealed.
    #[inline]
    pub(super) fn prepare<'a>(
        &mut self,
        plain: Transmit<'a>,
        wire: &mut Vec<u8>,
    ) -> Result<Outgoing<'a>, Exhausted> {
        match self {
            Protection::Plain => Ok(Outgoing::Plain(plain)),
            Protection::Handshake(..) => {
                Ok(Outgoing::Plain(Transmit { datagrams: &[], segment: 1 }))
            }
            Protection::Sealed(session) => {
                let Transmit { datagrams, segment } = plain;
                Ok(Outgoing::Unsealed(session.sealer.copy_unsealed(datagrams, segment, wire)?))
            }
        }
    }

    /// Seals the [prepared](Self::prepare) datagrams in `wire`. Call it once.
    pub(super) fn seal(&mut self, wire: &mut [u8], segment: usize) {
        if let Protection::Sealed(session) = self {
            session.sealer.seal_in_place(wire, segment);
        }
    }

    /// Opens a batch of received datagrams and moves the plaintexts to its front.
    #[inline]
    pub(super) fn open(&mut self, now: Time, datagrams: &mut [u8], segment: usize) -> Filled {
        match self {
            Protection::Plain => Filled { length: datagrams.len(), segment },
            Protection::Handshake(initiator, refused) => {
                for datagram in datagrams.chunks(segment.max(1)) {
                    match initiator.handle(now, datagram) {
                        Ok(None) => {}
                        Ok(Some(session)) => {
                            // The listener sends no sealed datagram before the client's first one.
                            *self = Protection::Sealed(Box::new(session));
                            break;
                        }
                        Err(Refused::Foreign) => {}
                        Err(reason) => *refused = Some(reason),
                    }
                }
                Filled { length: 0, segment }
            }
            Protection::Sealed(session) => session.opener.open_batch(datagrams, segment),
        }
    }

    /// The bytes by which it lengthens a datagram.
    pub(super) fn overhead(&self) -> usize {
        if let Protection::Sealed(_) = self { OVERHEAD } else { 0 }
    }

    /// The authenticated public key of the peer.
    pub(super) fn identity(&self) -> Option<PublicKey> {
        match self {
            Protection::Sealed(session) => session.identity(),
            _ => None,
        }
    }

    /// The likely reason why a client's handshake has failed.
    pub(super) fn failure_reason(&self) -> Option<String> {
        match self {
            Protection::Handshake(initiator, None) => Some(initiator.timeout_reason().into()),
            Protection::Handshake(_, Some(refused)) => {
                Some(format!("the handshake failed: {refused}"))
            }
            _ => None,
        }
    }
}
