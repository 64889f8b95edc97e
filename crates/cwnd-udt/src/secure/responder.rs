//! The listener's side of the handshake.

use super::key::Key;
use super::wire::{
    ANSWER, ANSWER_LEN, COOKIE, COOKIE_LEN, COOKIE_REPLY_LEN, DATA, HEAD, HELLO, HELLO_LEN, Keys,
    MESSAGE, VERSION, destination, head, noise, read_id, refusal, signed,
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

/// Sessions that wait for their client's first word, at most, and for how long: about 6 KiB each.
const MOST: usize = 1024;
const PATIENCE: Dur = Dur::from_millis(5_000);
/// With so many, clients have to show that they are where they seem to be.
const BUSY: usize = 64;
/// How long a cookie is the newest, in nanoseconds. It is good for one such time more.
const SLOT: u64 = 60_000_000_000;

/// A session whose client has not yet said anything in it.
#[derive(Debug)]
struct Waiting {
    from: SocketAddr,
    hello: Question,
    answer: [u8; ANSWER_LEN],
    session: Session,
    until: Time,
}

/// Noise's part of a hello.
pub(super) type Question = [u8; HELLO_LEN - MESSAGE];

/// What to do with a datagram that is for no session.
#[derive(Debug)]
pub enum Reply<'a> {
    /// Nothing, for this reason.
    Ignore(Refused),
    /// Send this back. It is no longer than what came.
    Send(Vec<u8>),
    /// Somebody without a key asks for a plain connection ([`Refused::NoKey`]): send this back, UDT's own
    /// refusal, of the length of what came.
    Refuse([u8; packet::HEADER + Handshake::LENGTH]),
    /// A client has proved that it has the key: its session, and its first datagram. The session is the
    /// caller's from here on.
    Open(Box<Session>, &'a mut [u8]),
}

/// Answers clients on a port with a key.
#[derive(Debug)]
pub struct Responder {
    key: Key,
    cookies: hmac::Key,
    waiting: HashMap<u32, Waiting>,
    asked: HashMap<(SocketAddr, Question), u32>,
    sweep: Time,
}

impl Responder {
    /// A responder. `secret` is random; it makes cookies, and nobody else needs it.
    pub fn new(key: &Key, secret: [u8; 32]) -> Self {
        Responder {
            key: key.clone(),
            cookies: hmac::Key::new(hmac::HMAC_SHA256, &secret),
            waiting: HashMap::new(),
            asked: HashMap::new(),
            sweep: Time::ZERO,
        }
    }

    /// Sessions that wait for their client's first word.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Uses up the one-time code. Other credentials are not affected.
    pub fn spend_code(&mut self) {}

    /// A datagram arrived that is for no session of the port. `id` gives names that no session of the port
    /// has; one is asked for when a session begins.
    pub fn handle<'a>(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &'a mut [u8],
        id: impl FnMut() -> u32,
    ) -> Reply<'a> {
        match datagram.first() {
            Some(&DATA) => self.open(now, from, datagram),
            Some(&HELLO) => match self.greet(now, from, datagram, id) {
                Ok(reply) => Reply::Send(reply),
                Err(refused) => Reply::Ignore(refused),
            },
            _ => refuse(datagram),
        }
    }

    /// The first sealed datagram of a client, if it is one.
    fn open<'a>(&mut self, now: Time, from: SocketAddr, datagram: &'a mut [u8]) -> Reply<'a> {
        let Some((id, waiting)) = destination(datagram)
            .and_then(|id| Some((id, self.waiting.get_mut(&id)?)))
            .filter(|(_, waiting)| waiting.from == from && waiting.until > now)
        else {
            return Reply::Ignore(Refused::Foreign);
        };
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
        let Ok(hello) = <&[u8; HELLO_LEN]>::try_from(datagram) else {
            return Err(Refused::Foreign);
        };
        let client = read_id(&hello[4..]).filter(|id| hello.starts_with(&head(HELLO, *id)));
        let client = client.ok_or(Refused::Foreign)?;
        let mut question = [0; HELLO_LEN - MESSAGE];
        question.copy_from_slice(&hello[MESSAGE..]);
        self.expire(now);
        let before = self.asked.get(&(from, question)).and_then(|id| self.waiting.get(id));
        if let Some(waiting) = before
            && waiting.answer.starts_with(&head(ANSWER, client))
        {
            return Ok(waiting.answer.to_vec());
        }
        // Who does not have the key gets no further, and no answer.
        let mut noise = noise(&self.key, client, false).map_err(|error| refusal(&error))?;
        noise.read_message(&question, &mut []).map_err(|error| refusal(&error))?;
        if self.waiting.len() >= BUSY && !self.has_cookie(now, from, client, hello) {
            return Ok(self.ask_for_cookie(now, from, client, hello));
        }
        if self.waiting.len() >= MOST {
            return Err(Refused::Busy);
        }
        self.begin(now, (from, client), question, noise, id)
    }

    /// Makes a session and answers.
    pub(super) fn begin(
        &mut self,
        now: Time,
        (from, client): (SocketAddr, u32),
        hello: Question,
        mut noise: HandshakeState,
        mut id: impl FnMut() -> u32,
    ) -> Result<Vec<u8>, Refused> {
        // The caller does not know the names that wait here.
        let id = (0..100).map(|_| id()).find(|id| !self.waiting.contains_key(id));
        let id = id.ok_or(Refused::Busy)?;
        let mut answer = [0; ANSWER_LEN];
        answer[..HEAD].copy_from_slice(&head(ANSWER, client));
        noise
            .write_message(&id.to_be_bytes(), &mut answer[HEAD..])
            .map_err(|error| refusal(&error))?;
        let session = Session::new(id, client, &Keys::of(&mut noise));
        let until = now + PATIENCE;
        self.waiting.insert(id, Waiting { from, hello, answer, session, until });
        self.asked.insert((from, hello), id);
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
            .any(|slot| self.cookie(from, client, slot) == shown)
    }

    fn ask_for_cookie(
        &self,
        now: Time,
        from: SocketAddr,
        client: u32,
        hello: &[u8; HELLO_LEN],
    ) -> Vec<u8> {
        let cookie = self.cookie(from, client, now.as_nanos() / SLOT);
        let signature = hmac::sign(&self.key.cookies, &signed(hello, &cookie));
        [&head(COOKIE, client), &cookie[..], signature.as_ref()].concat()
    }

    /// What only the client at `from` can show.
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

/// A plain client is told, at no more than the length of its request; all else gets nothing.
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

const _: () = assert!(ANSWER_LEN <= HELLO_LEN && COOKIE_REPLY_LEN <= HELLO_LEN);
