//! The listener's side of a handshake before the connection exists: UDT's cookies, sessions of
//! clients with credentials, and the limits of both.

use super::rate_limit::RateLimits;
use crate::secure::{
    Credentials, Refused, Reply, Responder, Session, destination, is_hello, random,
};
use crate::{Answer, Config, Incoming, Listener};
use cwnd::{Dur, Time};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

/// The price of checking a hello, in answers: it takes about 10 µs, several times as long as an
/// unencrypted answer.
const HELLO_PRICE: u64 = 4;
/// The price of a hello whose check multiplies public keys, which takes about 150 µs.
const PUBLIC_KEY_PRICE: u64 = 40;
/// The largest number of pending handshakes of authenticated clients.
const MAX_PENDING: usize = 1024;
/// A pending handshake is dropped after this time without a datagram from its client.
const PENDING_TIMEOUT: Dur = Dur::from_millis(5_000);

/// The reaction to a client's datagram.
#[derive(Debug)]
pub(super) enum Action {
    Ignore,
    Send(Vec<u8>),
    /// Accept the client's connection, in this session if the listener has credentials.
    Accept(Incoming, Option<Box<Session>>),
    /// The listener's one-time code has been revoked. Returned once.
    CodeRevoked,
}

/// Answers the clients of a listener that have no connection yet.
#[derive(Debug)]
pub(super) enum HandshakeResponder {
    Plain(Listener),
    Secure(Box<Mutex<SecureResponder>>),
}

/// A handshake responder with credentials: UDT's handshake takes place in a session.
#[derive(Debug)]
pub(super) struct SecureResponder {
    listener: Listener,
    sessions: Responder,
    /// Pending handshakes by session id.
    pending: HashMap<u32, PendingHandshake>,
    /// [`Action::CodeRevoked`] was returned.
    reported_revoked: bool,
}

/// An authenticated client that has a session and no connection.
#[derive(Debug)]
struct PendingHandshake {
    from: SocketAddr,
    session: Box<Session>,
    expires: Time,
}

impl HandshakeResponder {
    /// Creates the responder of a listener bound to `local`.
    pub(super) fn new(config: &Config, local: SocketAddr) -> io::Result<Self> {
        let listener = Listener::new(random()?, config.socket_type);
        Ok(match &config.credentials {
            None => HandshakeResponder::Plain(listener),
            Some(credentials) => {
                let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
                credentials.check_listener().map_err(invalid)?;
                let responder = SecureResponder::new(listener, credentials, local)?;
                HandshakeResponder::Secure(Box::new(Mutex::new(responder)))
            }
        })
    }

    /// Admits no further clients with the listener's one-time code.
    pub(super) fn spend_code(&self) {
        if let HandshakeResponder::Secure(responder) = self {
            responder.lock().unwrap_or_else(PoisonError::into_inner).spend_code();
        }
    }

    /// Processes a client's datagram. `id` generates session ids; `has_room` returns whether the
    /// accept queue has room. A client that gets no answer repeats its request.
    pub(super) fn handle(
        &self,
        (now, from): (Time, SocketAddr),
        datagram: &mut [u8],
        limits: &mut RateLimits,
        id: impl FnMut() -> u32,
        has_room: impl FnOnce() -> bool,
    ) -> Action {
        match self {
            HandshakeResponder::Plain(listener) => match listener.handle(now, from, datagram) {
                Answer::Reply(reply) if limits.handshakes.take(now, 1) => {
                    Action::Send(padded(&reply, datagram.len()))
                }
                Answer::Accept(incoming) if has_room() => Action::Accept(incoming, None),
                _ => Action::Ignore,
            },
            HandshakeResponder::Secure(responder) => {
                let mut responder = responder.lock().unwrap_or_else(PoisonError::into_inner);
                responder.handle((now, from), datagram, limits, id, has_room)
            }
        }
    }
}

/// Pads the answer to a request to its length, at which it may probe the path.
fn padded(reply: &[u8], length: usize) -> Vec<u8> {
    let mut padded = reply.to_vec();
    padded.resize(length.max(reply.len()), 0);
    padded
}

/// Identifies a listener among those with the same credentials: the machine and the local address,
/// which survive a restart.
fn listener_id(local: SocketAddr) -> Vec<u8> {
    // Systems without this file are identified by their host name.
    let machine = std::fs::read("/etc/machine-id").unwrap_or_default();
    let uname = rustix::system::uname();
    [&machine, &b"\n"[..], uname.nodename().to_bytes(), b"\n", local.to_string().as_bytes()]
        .concat()
}

impl SecureResponder {
    fn new(listener: Listener, credentials: &Credentials, local: SocketAddr) -> io::Result<Self> {
        let sessions = Responder::new(credentials, random()?, &listener_id(local));
        Ok(SecureResponder { listener, sessions, pending: HashMap::new(), reported_revoked: false })
    }

    fn spend_code(&mut self) {
        self.sessions.spend_code();
        // Only clients with a one-time code are dropped: other credentials stay valid.
        if self.sessions.has_code() {
            self.pending.clear();
        }
    }

    fn handle(
        &mut self,
        (now, from): (Time, SocketAddr),
        datagram: &mut [u8],
        limits: &mut RateLimits,
        id: impl FnMut() -> u32,
        has_room: impl FnOnce() -> bool,
    ) -> Action {
        let session_id = destination(datagram).unwrap_or_default();
        if let Some(pending) = self.pending.get_mut(&session_id) {
            if pending.from != from {
                return Action::Ignore;
            }
            return match pending.session.opener.open(datagram) {
                Ok(plain) => self.handle_plain(now, session_id, plain, has_room),
                Err(_) => Action::Ignore,
            };
        }
        if is_hello(datagram) {
            let costly = self.sessions.is_costly(now, from, datagram);
            let price = if costly { PUBLIC_KEY_PRICE } else { HELLO_PRICE };
            if !limits.handshakes.take(now, price) {
                return Action::Ignore;
            }
        }
        match self.sessions.handle(now, from, datagram, id) {
            Reply::Send(answer) => Action::Send(answer),
            Reply::Refuse(refusal) if limits.handshakes.take(now, 1) => {
                Action::Send(refusal.to_vec())
            }
            Reply::Open(session, first) => {
                self.pending.retain(|_, pending| pending.expires > now);
                let session_id = session.id();
                if self.pending.len() < MAX_PENDING {
                    let pending = PendingHandshake { from, session, expires: now };
                    self.pending.insert(session_id, pending);
                }
                self.handle_plain(now, session_id, first, has_room)
            }
            Reply::Ignore(Refused::Unknown) if limits.resets.take(now, 1) => {
                let reset = self.sessions.reset(datagram);
                reset.map_or(Action::Ignore, |reset| Action::Send(reset.to_vec()))
            }
            Reply::Ignore(Refused::WrongKey)
                if self.sessions.is_revoked() && !self.reported_revoked =>
            {
                self.reported_revoked = true;
                Action::CodeRevoked
            }
            _ => Action::Ignore,
        }
    }

    /// Processes the decrypted UDT datagram of a pending handshake.
    fn handle_plain(
        &mut self,
        now: Time,
        session_id: u32,
        plain: &[u8],
        has_room: impl FnOnce() -> bool,
    ) -> Action {
        let Some(pending) = self.pending.get_mut(&session_id) else { return Action::Ignore };
        pending.expires = now + PENDING_TIMEOUT;
        match self.listener.handle(now, pending.from, plain) {
            Answer::Ignore => Action::Ignore,
            Answer::Reply(reply) => {
                let mut wire = Vec::new();
                let reply = padded(&reply, plain.len());
                let sealed = pending.session.sealer.seal(&reply, reply.len(), &mut wire);
                sealed.map_or(Action::Ignore, |_| Action::Send(wire))
            }
            Answer::Accept(incoming) if has_room() => {
                let session = self.pending.remove(&session_id).map(|pending| pending.session);
                Action::Accept(incoming, session)
            }
            Answer::Accept(_) => Action::Ignore,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secure::{Initiator, Key};
    use crate::testing::at;
    use crate::{Connection, Seq, SocketType};

    const CLIENTS: usize = MAX_PENDING + 100;

    /// Clients that open a session and request a cookie are kept up to a limit, and dropped when
    /// they are silent.
    #[test]
    fn pending_handshakes_are_limited_and_expire() {
        let key =
            Key::from_file_contents(&std::array::from_fn::<u8, 32, _>(|at| at.to_le_bytes()[0]))
                .unwrap();
        let (key, local) = (Credentials::Key(key), "192.0.2.2:9".parse().unwrap());
        let listener = Listener::new([1; 16], SocketType::Stream);
        let mut responder = SecureResponder::new(listener, &key, local).unwrap();
        let (from, mut last) = ("192.0.2.1:9".parse().unwrap(), 0);
        let mut request = |responder: &mut SecureResponder, now: Time| {
            let id = || {
                last += 1;
                last
            };
            let limits = &mut RateLimits::default();
            let mut initiator = Initiator::new(&key, now, 7, Dur::from_millis(100)).unwrap();
            let mut hello = initiator.poll(now).unwrap().to_vec();
            let action = responder.handle((now, from), &mut hello, limits, id, || true);
            let Action::Send(answer) = action else { panic!("{action:?}") };
            let mut session = initiator.handle(now, &answer).unwrap().unwrap();
            let config = Config::new(cwnd::Spec::parse("udt").unwrap());
            let mut client = Connection::connect(&config, now, 7, Seq::new(1), from.ip());
            let request = client.poll_transmit(now, 1).unwrap();
            let mut wire = Vec::new();
            session.sealer.seal(request.datagrams, request.segment, &mut wire).unwrap();
            let action = responder.handle((now, from), &mut wire, limits, || 0, || true);
            let mut answers = 0;
            if let Action::Send(mut reply) = action {
                // The sealed cookie.
                assert_eq!(session.opener.open(&mut reply).unwrap().len(), 64);
                answers += 1;
            }
            answers
        };
        let answers: usize = (0..CLIENTS).map(|_| request(&mut responder, at(10))).sum();
        let pending = (responder.pending.len(), responder.sessions.pending());
        assert_eq!((answers, pending), (MAX_PENDING, (MAX_PENDING, 0)));
        assert_eq!(request(&mut responder, at(5_009)), 0);
        assert_eq!(request(&mut responder, at(5_011)), 1);
        assert_eq!(responder.pending.len(), 1);
    }
}
