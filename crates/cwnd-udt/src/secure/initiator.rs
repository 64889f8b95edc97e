//! The client's side of the handshake.

use super::credentials::{Credentials, CredentialsError};
use super::handshake::{Exchange, Proof, cookie_key, hello_mac, noise};
use super::pair::PublicKey;
use super::reset::Token;
use super::wire::{
    ANSWER, ANSWER_LEN, ASK, ASK_LEN, COOKIE, COOKIE_LEN, COOKIE_REPLY_LEN, EXCHANGE, EXCHANGE_LEN,
    HEAD, HELLO, HELLO_LEN, Keys, MAC, MESSAGE, PAIR_HELLO, PAIR_HELLO_LEN, PAYLOAD, VERSION, head,
    read_id, refusal, signed,
};
use super::{Refused, Session};
use cwnd::{Dur, Time};
use ring::hmac;
use snow::HandshakeState;

/// The time between two hellos: UDT4's time between two requests.
const REPEAT: Dur = Dur::from_millis(250);

/// The datagram that a client waits for.
#[derive(Debug)]
enum Stage {
    /// The listener's message of a key exchange. Only one is accepted: each exchange is one guess for an attacker that
    /// pretends to be the listener.
    Exchange(Option<Box<Exchange>>),
    /// The answer to the hello.
    Hello(Box<HandshakeState>),
}

/// A client that requests a session.
#[derive(Debug)]
pub struct Initiator {
    credentials: Credentials,
    /// Verifies the listener's cookies.
    cookies: hmac::Key,
    /// The listener's public key, with a key pair.
    listener: Option<PublicKey>,
    id: u32,
    stage: Stage,
    question: Vec<u8>,
    next_send: Time,
    deadline: Time,
}

impl Initiator {
    /// Creates a client that requests a session and gives up after `timeout`. `id` is that of its end of the session
    /// and unique on the port. Random numbers are the system's.
    ///
    /// # Errors
    /// [`Refused::NoRandom`] if the system has no random numbers, and [`Refused::Credentials`] for credentials with
    /// which no client can connect.
    pub fn new(
        credentials: &Credentials,
        now: Time,
        id: u32,
        timeout: Dur,
    ) -> Result<Self, Refused> {
        let stage = match credentials {
            Credentials::Code(code) => Stage::Exchange(Some(Box::new(Exchange::new(code, true)))),
            Credentials::Key(key) => Stage::hello(noise(Proof::Shared(&key.psk), id, true))?,
            Credentials::Pair { own, peers, psk } => {
                let proof = Proof::Pair(own, peers.first(), psk.as_ref());
                credentials.check_client()?;
                Stage::hello(noise(proof, id, true))?
            }
        };
        Initiator::with_stage(credentials, now, id, timeout, stage)
    }

    /// Creates a client with the handshake `noise`, for which tests use fixed keys.
    #[cfg(test)]
    pub(super) fn with_noise(
        credentials: &Credentials,
        now: Time,
        id: u32,
        timeout: Dur,
        noise: HandshakeState,
    ) -> Result<Self, Refused> {
        Initiator::with_stage(credentials, now, id, timeout, Stage::hello(Ok(noise))?)
    }

    fn with_stage(
        credentials: &Credentials,
        now: Time,
        id: u32,
        timeout: Dur,
        mut stage: Stage,
    ) -> Result<Self, Refused> {
        let listener = match credentials {
            Credentials::Pair { peers, .. } => peers.first().copied(),
            _ => None,
        };
        let cookies = cookie_key(credentials, listener.as_ref().unwrap_or(&PublicKey([0; 32])));
        let question = stage.question(id, listener.as_ref())?;
        Ok(Initiator {
            credentials: credentials.clone(),
            cookies,
            listener,
            id,
            stage,
            question,
            next_send: now,
            deadline: now + timeout,
        })
    }

    /// The datagram to send now.
    pub fn poll(&mut self, now: Time) -> Option<&[u8]> {
        if self.next_send > now || self.is_over(now) {
            return None;
        }
        self.next_send = now + REPEAT;
        Some(&self.question)
    }

    /// The time of the next [poll](Self::poll), unless a datagram arrives before.
    pub fn next_wakeup(&self) -> Time {
        self.next_send.min(self.deadline)
    }

    /// Whether no answer arrived in time: [`silence`](Self::silence) is the likely reason.
    pub fn is_over(&self, now: Time) -> bool {
        self.deadline <= now
    }

    /// The likely reason why there is no session. A listener does not answer clients without its credentials.
    pub fn silence(&self) -> &'static str {
        match (&self.credentials, &self.stage) {
            (Credentials::Key(_), _) => {
                "nobody answered: no listener there, or none that has this key"
            }
            (Credentials::Pair { .. }, _) => {
                "nobody answered: no listener there, or none that has this public key and lets this \
                 end's in"
            }
            (Credentials::Code(_), Stage::Exchange(_)) => {
                "nobody answered: no listener there, or none that waits for a code"
            }
            (Credentials::Code(_), Stage::Hello(_)) => "the code is wrong or has expired",
        }
    }

    /// Processes a datagram. Returns the session once the listener has answered. If it returns `None`, a datagram may
    /// be due [at once](Self::poll).
    ///
    /// # Errors
    /// The reason why the datagram is dropped. A valid answer may still arrive.
    pub fn handle(&mut self, now: Time, datagram: &[u8]) -> Result<Option<Session>, Refused> {
        let own = |kind| datagram.starts_with(&head(kind, self.id));
        match datagram.len() {
            COOKIE_REPLY_LEN if own(COOKIE) => self.show(now, datagram).map(|()| None),
            EXCHANGE_LEN if own(EXCHANGE) => self.greet(now, &datagram[HEAD..]).map(|()| None),
            ANSWER_LEN if own(ANSWER) => self.finish(&datagram[HEAD..]).map(Some),
            HEAD..
                if matches!(datagram[0], COOKIE | ANSWER | EXCHANGE)
                    && datagram[1] != VERSION
                    && read_id(&datagram[4..]) == Some(self.id) =>
            {
                Err(Refused::Version)
            }
            _ => Err(Refused::Foreign),
        }
    }

    /// Processes the responder's request for a cookie.
    fn show(&mut self, now: Time, datagram: &[u8]) -> Result<(), Refused> {
        let (cookie, signature) = datagram[HEAD..].split_at(COOKIE_LEN);
        let mut shown = [0; COOKIE_LEN];
        shown.copy_from_slice(cookie);
        hmac::verify(&self.cookies, &signed(&self.question, &shown), signature)
            .map_err(|_| Refused::WrongKey)?;
        if self.question[HEAD..MESSAGE] != shown {
            self.question[HEAD..MESSAGE].copy_from_slice(&shown);
            self.next_send = now;
        }
        Ok(())
    }

    /// Processes the listener's message of the exchange. A hello proves its result.
    fn greet(&mut self, now: Time, point: &[u8]) -> Result<(), Refused> {
        let Stage::Exchange(exchange) = &mut self.stage else { return Err(Refused::Foreign) };
        if !Exchange::is_point(point) {
            return Err(Refused::Foreign);
        }
        let exchange = exchange.take().ok_or(Refused::Foreign)?;
        let secret = exchange.finish(self.id, point).ok_or(Refused::Foreign)?;
        self.stage = Stage::hello(noise(secret.proof(), self.id, true))?;
        self.question = self.stage.question(self.id, None)?;
        self.next_send = now;
        Ok(())
    }

    fn finish(&mut self, message: &[u8]) -> Result<Session, Refused> {
        let Stage::Hello(noise) = &mut self.stage else { return Err(Refused::Foreign) };
        let mut payload = [0; PAYLOAD];
        noise.read_message(message, &mut payload).map_err(|error| refusal(&error))?;
        let [a, b, c, d, rest @ ..] = payload;
        let peer = u32::from_be_bytes([a, b, c, d]);
        let token: Token = rest;
        let keys = Keys::of(noise);
        // A listener with a code sends no resets.
        let token = (!matches!(self.credentials, Credentials::Code(_))).then_some(token);
        Ok(Session::new(self.id, peer, &keys, self.listener, token))
    }
}

impl Stage {
    fn hello(noise: Result<HandshakeState, snow::Error>) -> Result<Self, Refused> {
        noise.map(|noise| Stage::Hello(Box::new(noise))).map_err(|error| refusal(&error))
    }

    /// The content of the request, without a cookie.
    fn question(&mut self, id: u32, listener: Option<&PublicKey>) -> Result<Vec<u8>, Refused> {
        let start = |kind, length| {
            let mut question = vec![0; length];
            question[..HEAD].copy_from_slice(&head(kind, id));
            question
        };
        match self {
            Stage::Exchange(exchange) => {
                let mut question = start(ASK, ASK_LEN);
                let exchange = exchange.as_ref().ok_or(Refused::Foreign)?;
                question[MESSAGE..].copy_from_slice(&exchange.point);
                Ok(question)
            }
            Stage::Hello(noise) => {
                let (mut question, at) = match listener {
                    None => (start(HELLO, HELLO_LEN), MESSAGE),
                    Some(_) => (start(PAIR_HELLO, PAIR_HELLO_LEN), MESSAGE + MAC),
                };
                noise.write_message(&[], &mut question[at..]).map_err(|error| refusal(&error))?;
                if let Some(listener) = listener {
                    let mac = hello_mac(&listener.known(b"mac1"), &question);
                    question[MESSAGE..at].copy_from_slice(&mac);
                }
                Ok(question)
            }
        }
    }
}

impl From<CredentialsError> for Refused {
    fn from(error: CredentialsError) -> Self {
        Refused::Credentials(error)
    }
}
