//! The listener's side of the handshake.

use super::credentials::Credentials;
use super::exchanges::Exchanges;
use super::handshake::{Proof, cookie_key, hello_mac, noise};
use super::pair::PublicKey;
use super::reset::Resets;
use super::wire::{
    ANSWER, ANSWER_LEN, ASK, ASK_LEN, COOKIE, COOKIE_LEN, COOKIE_REPLY_LEN, DATA, EXCHANGE_LEN,
    HEAD, HELLO, HELLO_LEN, Keys, MAC, MESSAGE, PAIR_HELLO, PAIR_HELLO_LEN, PAYLOAD, RESET_LEN,
    VERSION, destination, head, question, read_id, refusal, signed,
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

/// The largest number of sessions that wait for their client's first datagram, of about 6 KiB each, and their lifetime.
const MOST: usize = 1024;
const PATIENCE: Dur = Dur::from_millis(5_000);
/// The number of waiting sessions from which a client must prove its address by a cookie.
const BUSY: usize = 64;
/// The interval in nanoseconds after which cookies change. A cookie is valid for one more interval.
const SLOT: u64 = 60_000_000_000;

/// A session whose client has sent no datagram in it.
#[derive(Debug)]
struct Waiting {
    from: SocketAddr,
    hello: Vec<u8>,
    answer: [u8; ANSWER_LEN],
    session: Session,
    until: Time,
}

/// The reaction to a datagram that is for no session.
#[derive(Debug)]
pub enum Reply<'a> {
    /// Drop it, for this reason.
    Ignore(Refused),
    /// Send this back. It is no longer than the datagram.
    Send(Vec<u8>),
    /// A client without a key requests a plain connection ([`Refused::NoKey`]): send this back, UDT's refusal, of the
    /// length of the request.
    Refuse([u8; packet::HEADER + Handshake::LENGTH]),
    /// An authenticated client: its session, which passes to the caller, and its first datagram.
    Open(Box<Session>, &'a mut [u8]),
}

/// Answers clients on a port with credentials.
#[derive(Debug)]
pub struct Responder {
    credentials: Credentials,
    /// Signs datagrams to clients, and generates cookies.
    signing: hmac::Key,
    cookies: hmac::Key,
    /// Verifies the code at the front of a hello, with a key pair.
    macs: hmac::Key,
    resets: Option<Resets>,
    exchanges: Option<Exchanges>,
    waiting: HashMap<u32, Waiting>,
    asked: HashMap<(SocketAddr, Vec<u8>), u32>,
    sweep: Time,
}

impl Responder {
    /// Creates a responder. `secret` is random and generates cookies; no other host needs it. `place` distinguishes
    /// this listener from others with the same credentials and survives a restart.
    pub fn new(credentials: &Credentials, secret: [u8; 32], place: &[u8]) -> Self {
        let public = match credentials {
            Credentials::Pair { own, .. } => own.public(),
            _ => PublicKey([0; 32]),
        };
        Responder {
            credentials: credentials.clone(),
            signing: cookie_key(credentials, &public),
            cookies: hmac::Key::new(hmac::HMAC_SHA256, &secret),
            macs: public.known(b"mac1"),
            resets: Resets::new(credentials, place),
            exchanges: match credentials {
                Credentials::Code(code) => Some(Exchanges::new(code)),
                _ => None,
            },
            waiting: HashMap::new(),
            asked: HashMap::new(),
            sweep: Time::ZERO,
        }
    }

    /// The number of sessions that wait for their client's first datagram.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Invalidates the one-time code. Other credentials are not affected.
    pub fn spend_code(&mut self) {
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.spend();
            self.waiting.clear();
            self.asked.clear();
        }
    }

    /// Whether the credentials are a one-time code.
    pub fn has_code(&self) -> bool {
        self.exchanges.is_some()
    }

    /// Whether too many wrong guesses have made the one-time code void.
    pub fn is_void(&self) -> bool {
        self.exchanges.as_ref().is_some_and(Exchanges::is_void)
    }

    /// Whether [`handle`](Self::handle) would take about ten times as long as for other hellos: it multiplies public
    /// keys for clients with a verified address.
    pub fn is_costly(&self, now: Time, from: SocketAddr, datagram: &[u8]) -> bool {
        match (question(datagram), read_id(&datagram[datagram.len().min(4)..])) {
            (Some((PAIR_HELLO | ASK, _)), Some(id)) => self.has_cookie(now, from, id, datagram),
            _ => false,
        }
    }

    /// The reset that answers a sealed datagram of an [unknown](Refused::Unknown) session. It is shorter than the
    /// datagram and valid only for its sender.
    pub fn reset(&self, datagram: &[u8]) -> Option<[u8; RESET_LEN]> {
        self.resets.as_ref()?.answer(datagram)
    }

    /// Processes a datagram that is for no session of the port. `id` returns an unused session id and is called when a
    /// session begins.
    pub fn handle<'a>(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &'a mut [u8],
        id: impl FnMut() -> u32,
    ) -> Reply<'a> {
        match datagram.first() {
            Some(&DATA) => self.open(now, from, datagram),
            Some(&(HELLO | PAIR_HELLO | ASK)) => match self.greet(now, from, datagram, id) {
                Ok(reply) => Reply::Send(reply),
                Err(refused) => Reply::Ignore(refused),
            },
            _ => refuse(datagram),
        }
    }

    /// Processes the first sealed datagram of a client, if it is one.
    fn open<'a>(&mut self, now: Time, from: SocketAddr, datagram: &'a mut [u8]) -> Reply<'a> {
        let Some(id) = destination(datagram) else { return Reply::Ignore(Refused::Foreign) };
        let Some(waiting) = self.waiting.get_mut(&id) else {
            return Reply::Ignore(Refused::Unknown);
        };
        if waiting.from != from || waiting.until <= now {
            return Reply::Ignore(Refused::Foreign);
        }
        match waiting.session.opener.open(datagram) {
            Err(refused) => Reply::Ignore(refused),
            Ok(first) => match self.forget(id) {
                Some(session) => Reply::Open(Box::new(session), first),
                None => Reply::Ignore(Refused::Foreign),
            },
        }
    }

    fn greet(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &[u8],
        id: impl FnMut() -> u32,
    ) -> Result<Vec<u8>, Refused> {
        if datagram.get(1).is_some_and(|version| *version != VERSION) {
            return Err(Refused::Version);
        }
        let (kind, hello) = question(datagram).ok_or(Refused::Foreign)?;
        let client = read_id(&datagram[4..]).filter(|id| datagram.starts_with(&head(kind, *id)));
        let client = client.ok_or(Refused::Foreign)?;
        self.expire(now);
        let key = (from, hello.to_vec());
        let before = self.asked.get(&key).and_then(|id| self.waiting.get(id));
        if let Some(waiting) = before
            && waiting.answer.starts_with(&head(ANSWER, client))
        {
            return Ok(waiting.answer.to_vec());
        }
        let cookie = self.has_cookie(now, from, client, datagram);
        let noise = match (&self.credentials, kind, &mut self.exchanges) {
            (Credentials::Key(key), HELLO, _) => {
                // A client without the key gets no answer.
                let mut noise = noise(Proof::Shared(&key.psk), client, false)
                    .map_err(|error| refusal(&error))?;
                noise.read_message(hello, &mut []).map_err(|error| refusal(&error))?;
                if self.waiting.len() >= BUSY && !cookie {
                    return Ok(self.ask_for_cookie(now, from, client, datagram));
                }
                noise
            }
            (Credentials::Pair { own, peers, psk }, PAIR_HELLO, _) => {
                let mac = hello_mac(&self.macs, datagram);
                if !bool::from(mac.ct_eq(&hello[..MAC])) {
                    return Err(Refused::WrongKey);
                }
                // Two multiplications follow before the client is authenticated.
                if !cookie {
                    return Ok(self.ask_for_cookie(now, from, client, datagram));
                }
                let proof = Proof::Pair(own, None, psk.as_ref());
                let mut noise = noise(proof, client, false).map_err(|error| refusal(&error))?;
                noise.read_message(&hello[MAC..], &mut []).map_err(|error| refusal(&error))?;
                let who = noise.get_remote_static();
                if !peers.iter().any(|peer| who == Some(&peer.0[..])) {
                    return Err(Refused::WrongKey);
                }
                noise
            }
            (Credentials::Code(_), ASK, Some(exchanges)) => {
                if !cookie {
                    return Ok(self.ask_for_cookie(now, from, client, datagram));
                }
                return exchanges.ask(now, (from, client), hello);
            }
            (Credentials::Code(_), HELLO, Some(exchanges)) => {
                let secret = exchanges.take(now, from, client).ok_or(Refused::Foreign)?;
                let mut noise =
                    noise(secret.proof(), client, false).map_err(|error| refusal(&error))?;
                noise.read_message(hello, &mut []).map_err(|_| {
                    exchanges.guessed_wrong();
                    Refused::WrongKey
                })?;
                noise
            }
            _ => return Err(Refused::Foreign),
        };
        if self.waiting.len() >= MOST {
            return Err(Refused::Busy);
        }
        self.begin(now, (from, client), hello, noise, id)
    }

    /// Creates a session and answers.
    pub(super) fn begin(
        &mut self,
        now: Time,
        (from, client): (SocketAddr, u32),
        hello: &[u8],
        mut noise: HandshakeState,
        mut id: impl FnMut() -> u32,
    ) -> Result<Vec<u8>, Refused> {
        // The caller does not know the ids of waiting sessions.
        let id = (0..100).map(|_| id()).find(|id| !self.waiting.contains_key(id));
        let id = id.ok_or(Refused::Busy)?;
        let mut answer = [0; ANSWER_LEN];
        answer[..HEAD].copy_from_slice(&head(ANSWER, client));
        let mut payload = [0; PAYLOAD];
        payload[..4].copy_from_slice(&id.to_be_bytes());
        if let Some(resets) = &self.resets {
            payload[4..].copy_from_slice(&resets.token(id));
        }
        noise.write_message(&payload, &mut answer[HEAD..]).map_err(|error| refusal(&error))?;
        let who = noise.get_remote_static().and_then(|key| key.try_into().ok()).map(PublicKey);
        let session = Session::new(id, client, &Keys::of(&mut noise), who, None);
        let until = now + PATIENCE;
        self.asked.insert((from, hello.to_vec()), id);
        self.waiting.insert(id, Waiting { from, hello: hello.to_vec(), answer, session, until });
        Ok(answer.to_vec())
    }

    fn forget(&mut self, id: u32) -> Option<Session> {
        let waiting = self.waiting.remove(&id)?;
        self.asked.remove(&(waiting.from, waiting.hello));
        Some(waiting.session)
    }

    fn expire(&mut self, now: Time) {
        if self.sweep > now {
            return;
        }
        self.sweep = now + Dur::from_millis(1_000);
        self.waiting.retain(|_, waiting| waiting.until > now);
        self.asked.retain(|_, id| self.waiting.contains_key(id));
    }

    fn has_cookie(&self, now: Time, from: SocketAddr, client: u32, hello: &[u8]) -> bool {
        let slot = now.as_nanos() / SLOT;
        let shown = &hello[HEAD..MESSAGE];
        [slot, slot.wrapping_sub(1)]
            .into_iter()
            .any(|slot| self.cookie(from, client, slot).ct_eq(shown).into())
    }

    fn ask_for_cookie(&self, now: Time, from: SocketAddr, client: u32, hello: &[u8]) -> Vec<u8> {
        let cookie = self.cookie(from, client, now.as_nanos() / SLOT);
        let signature = hmac::sign(&self.signing, &signed(hello, &cookie));
        [&head(COOKIE, client), &cookie[..], signature.as_ref()].concat()
    }

    /// The cookie of the client at `from`.
    fn cookie(&self, from: SocketAddr, client: u32, slot: u64) -> [u8; COOKIE_LEN] {
        let mut context = hmac::Context::with_key(&self.cookies);
        match from.ip() {
            IpAddr::V4(ip) => context.update(&ip.octets()),
            IpAddr::V6(ip) => context.update(&ip.octets()),
        }
        context.update(&from.port().to_be_bytes());
        context.update(&client.to_be_bytes());
        context.update(&slot.to_be_bytes());
        let mut cookie = [0; COOKIE_LEN];
        cookie.copy_from_slice(&context.sign().as_ref()[..COOKIE_LEN]);
        cookie
    }
}

/// Refuses a plain client, with no more bytes than its request; other datagrams get no answer.
fn refuse<'a>(datagram: &[u8]) -> Reply<'a> {
    match Packet::parse(datagram) {
        Ok(Packet { destination: 0, body: Body::Control(Control::Handshake(asked)), .. })
            if asked.request == Request::Connect && asked.is_sound() =>
        {
            Reply::Refuse(Listener::refuse(&asked))
        }
        _ => Reply::Ignore(Refused::Foreign),
    }
}

// No answer is longer than its request.
const _: () = {
    assert!(ANSWER_LEN <= HELLO_LEN && ANSWER_LEN <= PAIR_HELLO_LEN);
    assert!(COOKIE_REPLY_LEN <= HELLO_LEN && COOKIE_REPLY_LEN <= PAIR_HELLO_LEN);
    assert!(COOKIE_REPLY_LEN <= ASK_LEN && EXCHANGE_LEN <= ASK_LEN);
};
