//! The listener's end of the handshake.

use super::credentials::Credentials;
use super::handshake::{NoiseParams, cookie_key, hello_mac, noise};
use super::key_pair::PublicKey;
use super::pending_exchanges::PendingExchanges;
use super::reset::Resets;
use super::wire::{
    ANSWER, ANSWER_LEN, ANSWER_PAYLOAD_LEN, ASK, ASK_LEN, COOKIE, COOKIE_LEN, COOKIE_REPLY_LEN,
    DATA, EXCHANGE_LEN, HANDSHAKE_HEADER, HELLO, HELLO_LEN, Keys, MAC_LEN, MESSAGE_OFFSET,
    PAIR_HELLO, PAIR_HELLO_LEN, RESET_LEN, VERSION, cookie_signature_input, destination,
    handshake_header, noise_error, read_id, request,
};
use super::{Refused, Session};
use crate::Listener;
use crate::handshake::{Handshake, Request};
use crate::packet::{self, Body, Control, Packet};
use cwnd::{Dur, Time};
use ring::hmac;
use snow::HandshakeState;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use subtle::ConstantTimeEq;

/// The largest number of pending sessions, of about 6 KiB each.
const MAX_PENDING: usize = 1024;
/// The lifetime of a pending session.
const PENDING_TIMEOUT: Dur = Dur::from_millis(5_000);
/// The number of pending sessions from which clients with a shared key must return a cookie.
const COOKIE_THRESHOLD: usize = 64;
/// The period in nanoseconds after which cookies change. A cookie is valid for one more period.
const COOKIE_PERIOD: u64 = 60_000_000_000;

/// A session whose client has not sent a sealed datagram yet.
#[derive(Debug)]
struct PendingSession {
    from: SocketAddr,
    hello: Vec<u8>,
    answer: [u8; ANSWER_LEN],
    session: Session,
    expires: Time,
}

/// The reaction to a datagram that is not for an open session.
#[derive(Debug)]
pub enum Reply<'a> {
    /// Drop it, for this reason.
    Ignore(Refused),
    /// Send this answer. It is not longer than the datagram.
    Send(Vec<u8>),
    /// A client without credentials requests a connection ([`Refused::NoKey`]): send this UDT
    /// handshake, which refuses it and has the length of the request.
    Refuse([u8; packet::HEADER + Handshake::LENGTH]),
    /// A client is authenticated: its session, and the plaintext of its first sealed datagram.
    Open(Box<Session>, &'a mut [u8]),
}

/// The handshake responder of a listener with credentials.
#[derive(Debug)]
pub struct Responder {
    credentials: Credentials,
    /// Signs cookies.
    signing: hmac::Key,
    /// Generates cookies.
    cookies: hmac::Key,
    /// Verifies the MAC of a pair's hello.
    hello_macs: hmac::Key,
    resets: Option<Resets>,
    exchanges: Option<PendingExchanges>,
    /// Pending sessions by id.
    pending: HashMap<u32, PendingSession>,
    /// The ids of pending sessions by the client's address and hello.
    by_request: HashMap<(SocketAddr, Vec<u8>), u32>,
    /// When expired sessions are removed next.
    next_expiry: Time,
}

impl Responder {
    /// Creates a responder. `secret` generates cookies and should be random. `listener_id`
    /// distinguishes this listener from others with the same credentials, and should not change
    /// when the listener is restarted.
    pub fn new(credentials: &Credentials, secret: [u8; 32], listener_id: &[u8]) -> Self {
        let public = match credentials {
            Credentials::Pair { own, .. } => own.public(),
            _ => PublicKey([0; 32]),
        };
        Responder {
            credentials: credentials.clone(),
            signing: cookie_key(credentials, &public),
            cookies: hmac::Key::new(hmac::HMAC_SHA256, &secret),
            hello_macs: public.derive_key(b"mac1"),
            resets: Resets::new(credentials, listener_id),
            exchanges: match credentials {
                Credentials::Code(code) => Some(PendingExchanges::new(code)),
                _ => None,
            },
            pending: HashMap::new(),
            by_request: HashMap::new(),
            next_expiry: Time::ZERO,
        }
    }

    /// The number of pending sessions, whose clients have not sent a sealed datagram yet.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Invalidates the one-time code: no more clients are accepted. Other credentials are not
    /// affected.
    pub fn spend_code(&mut self) {
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.spend();
            self.pending.clear();
            self.by_request.clear();
        }
    }

    /// Whether the credentials are a one-time code.
    pub fn has_code(&self) -> bool {
        self.exchanges.is_some()
    }

    /// Whether the one-time code was revoked after too many wrong guesses.
    pub fn is_revoked(&self) -> bool {
        self.exchanges.as_ref().is_some_and(PendingExchanges::is_revoked)
    }

    /// Whether [`handle`](Self::handle) takes about ten times as long for this datagram as for
    /// other hellos: it performs elliptic-curve operations for clients with a valid cookie.
    pub fn is_costly(&self, now: Time, from: SocketAddr, datagram: &[u8]) -> bool {
        match (request(datagram), read_id(&datagram[datagram.len().min(4)..])) {
            (Some((PAIR_HELLO | ASK, _)), Some(id)) => {
                self.has_valid_cookie(now, from, id, datagram)
            }
            _ => false,
        }
    }

    /// The reset that answers a sealed datagram of an [unknown](Refused::Unknown) session. It is
    /// shorter than the datagram, and only the datagram's sender accepts it.
    pub fn reset(&self, datagram: &[u8]) -> Option<[u8; RESET_LEN]> {
        self.resets.as_ref()?.answer(datagram)
    }

    /// Processes a datagram that is not for an open session of the port. `id` generates unused
    /// session ids.
    pub fn handle<'a>(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &'a mut [u8],
        id: impl FnMut() -> u32,
    ) -> Reply<'a> {
        match datagram.first() {
            Some(&DATA) => self.handle_sealed(now, from, datagram),
            Some(&(HELLO | PAIR_HELLO | ASK)) => match self.handle_request(now, from, datagram, id)
            {
                Ok(reply) => Reply::Send(reply),
                Err(refused) => Reply::Ignore(refused),
            },
            _ => refuse(datagram),
        }
    }

    /// Processes a sealed datagram, which opens a pending session if it is authentic.
    fn handle_sealed<'a>(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &'a mut [u8],
    ) -> Reply<'a> {
        let Some(id) = destination(datagram) else { return Reply::Ignore(Refused::Foreign) };
        let Some(pending) = self.pending.get_mut(&id) else {
            return Reply::Ignore(Refused::Unknown);
        };
        if pending.from != from || pending.expires <= now {
            return Reply::Ignore(Refused::Foreign);
        }
        match pending.session.opener.open(datagram) {
            Err(refused) => Reply::Ignore(refused),
            Ok(first) => match self.remove_pending(id) {
                Some(session) => Reply::Open(Box::new(session), first),
                None => Reply::Ignore(Refused::Foreign),
            },
        }
    }

    fn handle_request(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &[u8],
        id: impl FnMut() -> u32,
    ) -> Result<Vec<u8>, Refused> {
        if datagram.get(1).is_some_and(|version| *version != VERSION) {
            return Err(Refused::Version);
        }
        let (kind, hello) = request(datagram).ok_or(Refused::Foreign)?;
        let client =
            read_id(&datagram[4..]).filter(|id| datagram.starts_with(&handshake_header(kind, *id)));
        let client = client.ok_or(Refused::Foreign)?;
        self.expire(now);
        let key = (from, hello.to_vec());
        let before = self.by_request.get(&key).and_then(|id| self.pending.get(id));
        if let Some(pending) = before
            && pending.answer.starts_with(&handshake_header(ANSWER, client))
        {
            return Ok(pending.answer.to_vec());
        }
        let cookie = self.has_valid_cookie(now, from, client, datagram);
        let noise = match (&self.credentials, kind, &mut self.exchanges) {
            (Credentials::Key(key), HELLO, _) => {
                // The tag of the hello authenticates the client. Others get no answer.
                let mut noise =
                    noise(NoiseParams::Shared(&key.psk), client, false).map_err(noise_error)?;
                noise.read_message(hello, &mut []).map_err(noise_error)?;
                if self.pending.len() >= COOKIE_THRESHOLD && !cookie {
                    return Ok(self.request_cookie(now, from, client, datagram));
                }
                noise
            }
            (Credentials::Pair { own, peers, psk }, PAIR_HELLO, _) => {
                let mac = hello_mac(&self.hello_macs, datagram);
                if !bool::from(mac.ct_eq(&hello[..MAC_LEN])) {
                    return Err(Refused::WrongKey);
                }
                // Two elliptic-curve operations follow before the client is authenticated.
                if !cookie {
                    return Ok(self.request_cookie(now, from, client, datagram));
                }
                let params = NoiseParams::Pair(own, None, psk.as_ref());
                let mut noise = noise(params, client, false).map_err(noise_error)?;
                noise.read_message(&hello[MAC_LEN..], &mut []).map_err(noise_error)?;
                let public_key = noise.get_remote_static();
                if !peers.iter().any(|peer| public_key == Some(&peer.0[..])) {
                    return Err(Refused::WrongKey);
                }
                noise
            }
            (Credentials::Code(_), ASK, Some(exchanges)) => {
                if !cookie {
                    return Ok(self.request_cookie(now, from, client, datagram));
                }
                return exchanges.begin(now, (from, client), hello);
            }
            (Credentials::Code(_), HELLO, Some(exchanges)) => {
                let psk = exchanges.take(now, from, client).ok_or(Refused::Foreign)?;
                let mut noise = noise(psk.params(), client, false).map_err(noise_error)?;
                noise.read_message(hello, &mut []).map_err(|_| {
                    exchanges.count_wrong_guess();
                    Refused::WrongKey
                })?;
                noise
            }
            _ => return Err(Refused::Foreign),
        };
        if self.pending.len() >= MAX_PENDING {
            return Err(Refused::Busy);
        }
        self.begin(now, (from, client), hello, noise, id)
    }

    /// Creates a pending session and returns the answer to the client.
    pub(super) fn begin(
        &mut self,
        now: Time,
        (from, client): (SocketAddr, u32),
        hello: &[u8],
        mut noise: HandshakeState,
        mut id: impl FnMut() -> u32,
    ) -> Result<Vec<u8>, Refused> {
        // The generator does not know the ids of pending sessions.
        let id = (0..100).map(|_| id()).find(|id| !self.pending.contains_key(id));
        let id = id.ok_or(Refused::Busy)?;
        let mut answer = [0; ANSWER_LEN];
        answer[..HANDSHAKE_HEADER].copy_from_slice(&handshake_header(ANSWER, client));
        let mut payload = [0; ANSWER_PAYLOAD_LEN];
        payload[..4].copy_from_slice(&id.to_be_bytes());
        if let Some(resets) = &self.resets {
            payload[4..].copy_from_slice(&resets.token(id));
        }
        noise.write_message(&payload, &mut answer[HANDSHAKE_HEADER..]).map_err(noise_error)?;
        let public_key =
            noise.get_remote_static().and_then(|key| key.try_into().ok()).map(PublicKey);
        let session = Session::new(id, client, &Keys::from_noise(&mut noise), public_key, None);
        let expires = now + PENDING_TIMEOUT;
        self.by_request.insert((from, hello.to_vec()), id);
        self.pending
            .insert(id, PendingSession { from, hello: hello.to_vec(), answer, session, expires });
        Ok(answer.to_vec())
    }

    fn remove_pending(&mut self, id: u32) -> Option<Session> {
        let pending = self.pending.remove(&id)?;
        self.by_request.remove(&(pending.from, pending.hello));
        Some(pending.session)
    }

    fn expire(&mut self, now: Time) {
        if self.next_expiry > now {
            return;
        }
        self.next_expiry = now + Dur::from_millis(1_000);
        self.pending.retain(|_, pending| pending.expires > now);
        self.by_request.retain(|_, id| self.pending.contains_key(id));
    }

    fn has_valid_cookie(&self, now: Time, from: SocketAddr, client: u32, hello: &[u8]) -> bool {
        let period = now.as_nanos() / COOKIE_PERIOD;
        let shown = &hello[HANDSHAKE_HEADER..MESSAGE_OFFSET];
        [period, period.wrapping_sub(1)]
            .into_iter()
            .any(|period| self.cookie(from, client, period).ct_eq(shown).into())
    }

    fn request_cookie(&self, now: Time, from: SocketAddr, client: u32, hello: &[u8]) -> Vec<u8> {
        let cookie = self.cookie(from, client, now.as_nanos() / COOKIE_PERIOD);
        let signature = hmac::sign(&self.signing, &cookie_signature_input(hello, &cookie));
        [&handshake_header(COOKIE, client), &cookie[..], signature.as_ref()].concat()
    }

    /// The cookie of the client with id `client` at `from`.
    fn cookie(&self, from: SocketAddr, client: u32, period: u64) -> [u8; COOKIE_LEN] {
        let mut context = hmac::Context::with_key(&self.cookies);
        match from.ip() {
            IpAddr::V4(ip) => context.update(&ip.octets()),
            IpAddr::V6(ip) => context.update(&ip.octets()),
        }
        context.update(&from.port().to_be_bytes());
        context.update(&client.to_be_bytes());
        context.update(&period.to_be_bytes());
        let mut cookie = [0; COOKIE_LEN];
        cookie.copy_from_slice(&context.sign().as_ref()[..COOKIE_LEN]);
        cookie
    }
}

/// Refuses the connection request of a client without credentials; other datagrams get no answer.
fn refuse<'a>(datagram: &[u8]) -> Reply<'a> {
    match Packet::parse(datagram) {
        Ok(Packet {
            destination: 0, body: Body::Control(Control::Handshake(by_request)), ..
        }) if by_request.request == Request::Connect && by_request.is_valid() => {
            Reply::Refuse(Listener::refuse(&by_request))
        }
        _ => Reply::Ignore(Refused::Foreign),
    }
}

// No answer is longer than the request.
const _: () = {
    assert!(ANSWER_LEN <= HELLO_LEN && ANSWER_LEN <= PAIR_HELLO_LEN);
    assert!(COOKIE_REPLY_LEN <= HELLO_LEN && COOKIE_REPLY_LEN <= PAIR_HELLO_LEN);
    assert!(COOKIE_REPLY_LEN <= ASK_LEN && EXCHANGE_LEN <= ASK_LEN);
};
