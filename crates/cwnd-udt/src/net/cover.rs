//! The layer between a connection and its socket: none, or the encryption of a session.

use crate::packet::HEADER;
use crate::secure::{Exhausted, Initiator, PublicKey, Refused, Session, packet_size};
use crate::{Config, Filled, Transmit, reset};
use cwnd::Time;
use std::borrow::Cow;
use std::io;

/// The layer between a connection and the socket.
#[derive(Debug)]
pub(super) enum Cover {
    /// UDT in clear.
    Plain,
    /// A client that has requested a session, and the reason for a refusal if there was one.
    Asking(Box<Initiator>, Option<Refused>),
    Sealed(Box<Session>),
}

/// How a reset concerns a connection.
pub(super) enum Reset {
    /// It is valid if the connection has sent this header.
    Echo([u8; HEADER]),
    /// It is authenticated.
    Genuine,
    Forged,
}

/// Outgoing datagrams of a connection.
pub(super) enum Wrapped<'a> {
    /// Not copied: they are in the connection's buffer.
    AsTheyAre(Transmit<'a>),
    /// Copied with room for the seals, this many bytes each: they can be sealed and sent without the connection.
    LaidOut(usize),
}

fn refusal(refused: Refused) -> io::Error {
    match refused {
        Refused::Credentials(error) => io::Error::new(io::ErrorKind::InvalidInput, error),
        other => io::Error::other(other),
    }
}

/// What a connection is made with, if its datagrams grow by their seals on the way to the wire.
pub(super) fn inside(config: &Config) -> Cow<'_, Config> {
    match config.credentials {
        None => Cow::Borrowed(config),
        Some(_) => {
            let packet_size = packet_size(config.packet_size);
            Cow::Owned(Config { packet_size, ..config.clone() })
        }
    }
}

impl Cover {
    /// That of the end with this id: in `session` if there is one, or else a client's if there is a key.
    pub(super) fn new(
        config: &Config,
        session: Option<Box<Session>>,
        now: Time,
        id: u32,
    ) -> io::Result<Self> {
        Ok(match (session, &config.credentials) {
            (Some(session), _) => Cover::Sealed(session),
            (None, None) => Cover::Plain,
            (None, Some(credentials)) => {
                let timeout = config.connect_timeout;
                let initiator = Initiator::new(credentials, now, id, timeout);
                Cover::Asking(Box::new(initiator.map_err(refusal)?), None)
            }
        })
    }

    /// What a reset from the peer's address means.
    pub(super) fn read_reset(&self, datagram: &[u8]) -> Reset {
        match (self, reset::parse(datagram)) {
            (Cover::Plain, Some(header)) => Reset::Echo(header),
            (Cover::Sealed(session), _) if session.is_reset(datagram) => Reset::Genuine,
            _ => Reset::Forged,
        }
    }

    /// Whether the connection has to wait for a session, and when there is something to send for that.
    pub(super) fn waits_until(&self) -> Option<Time> {
        match self {
            Cover::Asking(initiator, _) => Some(initiator.next_wakeup()),
            _ => None,
        }
    }

    /// The datagram to send while the connection waits for a session.
    pub(super) fn hello(&mut self, now: Time) -> Option<&[u8]> {
        match self {
            Cover::Asking(initiator, _) => initiator.poll(now),
            _ => None,
        }
    }

    /// What the connection's datagrams are on the wire, with `wire` as memory for that.
    #[inline]
    pub(super) fn wrap<'a>(
        &mut self,
        plain: Transmit<'a>,
        wire: &mut Vec<u8>,
    ) -> Result<Wrapped<'a>, Exhausted> {
        match self {
            Cover::Plain => Ok(Wrapped::AsTheyAre(plain)),
            Cover::Asking(..) => Ok(Wrapped::AsTheyAre(Transmit { datagrams: &[], segment: 1 })),
            Cover::Sealed(session) => {
                let Transmit { datagrams, segment } = plain;
                Ok(Wrapped::LaidOut(session.sealer.lay_out(datagrams, segment, wire)?))
            }
        }
    }

    /// Seals what [`wrap`](Self::wrap) has laid out in `wire`, once.
    pub(super) fn seal(&mut self, wire: &mut [u8], segment: usize) {
        if let Cover::Sealed(session) = self {
            session.sealer.finish(wire, segment);
        }
    }

    /// Leaves what is for the connection at the front of a batch.
    #[inline]
    pub(super) fn open(&mut self, now: Time, datagrams: &mut [u8], segment: usize) -> Filled {
        match self {
            Cover::Plain => Filled { length: datagrams.len(), segment },
            Cover::Asking(initiator, refused) => {
                for datagram in datagrams.chunks(segment.max(1)) {
                    match initiator.handle(now, datagram) {
                        Ok(None) => {}
                        Ok(Some(session)) => {
                            // Nobody could have sealed anything for it yet.
                            *self = Cover::Sealed(Box::new(session));
                            break;
                        }
                        Err(Refused::Foreign) => {}
                        Err(reason) => *refused = Some(reason),
                    }
                }
                Filled { length: 0, segment }
            }
            Cover::Sealed(session) => session.opener.open_batch(datagrams, segment),
        }
    }

    /// The authenticated public key of the peer.
    pub(super) fn identity(&self) -> Option<PublicKey> {
        match self {
            Cover::Sealed(session) => session.identity(),
            _ => None,
        }
    }

    /// The reason why a client has no session, as far as it is known.
    pub(super) fn silence(&self) -> Option<String> {
        match self {
            Cover::Asking(initiator, None) => Some(initiator.silence().into()),
            Cover::Asking(_, Some(refused)) => Some(format!("no good answer: {refused}")),
            _ => None,
        }
    }
}
