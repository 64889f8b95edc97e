//! The client's end of the handshake.

use super::credentials::Credentials;
use super::handshake::{Exchange, NoiseParams, cookie_key, hello_mac, noise};
use super::key_pair::PublicKey;
use super::reset::Token;
use super::wire::{
    ANSWER, ANSWER_LEN, ANSWER_PAYLOAD_LEN, ASK, ASK_LEN, COOKIE, COOKIE_LEN, COOKIE_REPLY_LEN,
    EXCHANGE, EXCHANGE_LEN, HANDSHAKE_HEADER, HELLO, HELLO_LEN, Keys, MAC_LEN, MESSAGE_OFFSET,
    PAIR_HELLO, PAIR_HELLO_LEN, VERSION, cookie_signature_input, handshake_header, noise_error,
    read_id,
};
use super::{Refused, Session};
use cwnd::{Dur, Time};
use ring::hmac;
use snow::HandshakeState;

/// The interval between two requests, as in UDT4.
const REQUEST_INTERVAL: Dur = Dur::from_millis(250);

/// The state of the handshake.
#[derive(Debug)]
pub(super) enum State {
    /// Waits for the listener's message of a key exchange. Only one is accepted: each gives an
    /// impostor of the listener one guess of the code.
    Exchange(Option<Box<Exchange>>),
    /// Waits for the answer to the hello.
    Hello(Box<HandshakeState>),
}

/// The handshake of a client that requests a session.
#[derive(Debug)]
pub struct Initiator {
    credentials: Credentials,
    /// Verifies the listener's cookies.
    cookies: hmac::Key,
    /// The listener's public key; only with key pairs.
    listener: Option<PublicKey>,
    id: u32,
    state: State,
    request: Vec<u8>,
    next_send: Time,
    deadline: Time,
}

impl Initiator {
    /// Starts a handshake that fails after `timeout`. `id` is the id of this end of the session and
    /// unique on the port.
    ///
    /// # Errors
    /// [`Refused::NoRandom`] if the system's random number generator fails, and
    /// [`Refused::Credentials`] for credentials that a client cannot use.
    pub fn new(
        credentials: &Credentials,
        now: Time,
        id: u32,
        timeout: Dur,
    ) -> Result<Self, Refused> {
        let state = match credentials {
            Credentials::Code(code) => State::Exchange(Some(Box::new(Exchange::new(code, true)))),
            Credentials::Key(key) => State::hello(noise(NoiseParams::Shared(&key.psk), id, true))?,
            Credentials::Pair { own, peers, psk } => {
                let params = NoiseParams::Pair(own, peers.first(), psk.as_ref());
                credentials.check_client()?;
                State::hello(noise(params, id, true))?
            }
        };
        Initiator::with_state(credentials, now, id, timeout, state)
    }

    /// Starts a handshake in a given state.
    pub(super) fn with_state(
        credentials: &Credentials,
        now: Time,
        id: u32,
        timeout: Dur,
        mut state: State,
    ) -> Result<Self, Refused> {
        let listener = match credentials {
            Credentials::Pair { peers, .. } => peers.first().copied(),
            _ => None,
        };
        let cookies = cookie_key(credentials, listener.as_ref().unwrap_or(&PublicKey([0; 32])));
        let request = state.request(id, listener.as_ref())?;
        Ok(Initiator {
            credentials: credentials.clone(),
            cookies,
            listener,
            id,
            state,
            request,
            next_send: now,
            deadline: now + timeout,
        })
    }

    /// The request to send now, if one is due.
    pub fn poll(&mut self, now: Time) -> Option<&[u8]> {
        if self.next_send > now || self.has_timed_out(now) {
            return None;
        }
        self.next_send = now + REQUEST_INTERVAL;
        Some(&self.request)
    }

    /// When to call [`poll`](Self::poll) next, if no datagram arrives before.
    pub fn next_wakeup(&self) -> Time {
        self.next_send.min(self.deadline)
    }

    /// Whether the handshake has timed out. [`timeout_reason`](Self::timeout_reason) returns the
    /// likely reason.
    pub fn has_timed_out(&self, now: Time) -> bool {
        self.deadline <= now
    }

    /// The likely reason of a timeout. A listener does not answer clients with other credentials.
    pub fn timeout_reason(&self) -> &'static str {
        match (&self.credentials, &self.state) {
            (Credentials::Key(_), _) => "no answer: there is no listener, or it has another key",
            (Credentials::Pair { .. }, _) => {
                "no answer: there is no listener, it has another public key, or it does not accept \
                 this end's public key"
            }
            (Credentials::Code(_), State::Exchange(_)) => {
                "no answer: there is no listener, or it uses no code"
            }
            (Credentials::Code(_), State::Hello(_)) => "the code is wrong or has expired",
        }
    }

    /// Processes a datagram. Returns the session when the handshake is complete. Otherwise call
    /// [`poll`](Self::poll): a request may be due at once.
    ///
    /// # Errors
    /// The reason why the datagram is dropped. The handshake continues.
    pub fn handle(&mut self, now: Time, datagram: &[u8]) -> Result<Option<Session>, Refused> {
        let own = |kind| datagram.starts_with(&handshake_header(kind, self.id));
        match datagram.len() {
            COOKIE_REPLY_LEN if own(COOKIE) => self.handle_cookie(now, datagram).map(|()| None),
            EXCHANGE_LEN if own(EXCHANGE) => {
                self.handle_exchange(now, &datagram[HANDSHAKE_HEADER..]).map(|()| None)
            }
            ANSWER_LEN if own(ANSWER) => {
                self.handle_answer(&datagram[HANDSHAKE_HEADER..]).map(Some)
            }
            HANDSHAKE_HEADER..
                if matches!(datagram[0], COOKIE | ANSWER | EXCHANGE)
                    && datagram[1] != VERSION
                    && read_id(&datagram[4..]) == Some(self.id) =>
            {
                Err(Refused::Version)
            }
            _ => Err(Refused::Foreign),
        }
    }

    /// Processes a cookie from the listener: the next request contains it.
    fn handle_cookie(&mut self, now: Time, datagram: &[u8]) -> Result<(), Refused> {
        let (cookie, signature) = datagram[HANDSHAKE_HEADER..].split_at(COOKIE_LEN);
        let mut shown = [0; COOKIE_LEN];
        shown.copy_from_slice(cookie);
        hmac::verify(&self.cookies, &cookie_signature_input(&self.request, &shown), signature)
            .map_err(|_| Refused::WrongKey)?;
        if self.request[HANDSHAKE_HEADER..MESSAGE_OFFSET] != shown {
            self.request[HANDSHAKE_HEADER..MESSAGE_OFFSET].copy_from_slice(&shown);
            self.next_send = now;
        }
        Ok(())
    }

    /// Processes the listener's message of the key exchange. A hello with the resulting key
    /// follows.
    fn handle_exchange(&mut self, now: Time, point: &[u8]) -> Result<(), Refused> {
        let State::Exchange(exchange) = &mut self.state else { return Err(Refused::Foreign) };
        if !Exchange::is_point(point) {
            return Err(Refused::Foreign);
        }
        let exchange = exchange.take().ok_or(Refused::Foreign)?;
        let psk = exchange.finish(self.id, point).ok_or(Refused::Foreign)?;
        self.state = State::hello(noise(psk.params(), self.id, true))?;
        self.request = self.state.request(self.id, None)?;
        self.next_send = now;
        Ok(())
    }

    /// Processes the listener's answer to the hello.
    fn handle_answer(&mut self, message: &[u8]) -> Result<Session, Refused> {
        let State::Hello(noise) = &mut self.state else { return Err(Refused::Foreign) };
        let mut payload = [0; ANSWER_PAYLOAD_LEN];
        noise.read_message(message, &mut payload).map_err(noise_error)?;
        let [a, b, c, d, rest @ ..] = payload;
        let peer = u32::from_be_bytes([a, b, c, d]);
        let token: Token = rest;
        let keys = Keys::from_noise(noise);
        // A listener with a code sends no resets.
        let token = (!matches!(self.credentials, Credentials::Code(_))).then_some(token);
        Ok(Session::new(self.id, peer, &keys, self.listener, token))
    }
}

impl State {
    pub(super) fn hello(noise: Result<HandshakeState, snow::Error>) -> Result<Self, Refused> {
        noise.map(|noise| State::Hello(Box::new(noise))).map_err(noise_error)
    }

    /// The request of this state, without a cookie.
    fn request(&mut self, id: u32, listener: Option<&PublicKey>) -> Result<Vec<u8>, Refused> {
        let start = |kind, length| {
            let mut request = vec![0; length];
            request[..HANDSHAKE_HEADER].copy_from_slice(&handshake_header(kind, id));
            request
        };
        match self {
            State::Exchange(exchange) => {
                let mut request = start(ASK, ASK_LEN);
                let exchange = exchange.as_ref().ok_or(Refused::Foreign)?;
                request[MESSAGE_OFFSET..].copy_from_slice(&exchange.point);
                Ok(request)
            }
            State::Hello(noise) => {
                let (mut request, at) = match listener {
                    None => (start(HELLO, HELLO_LEN), MESSAGE_OFFSET),
                    Some(_) => (start(PAIR_HELLO, PAIR_HELLO_LEN), MESSAGE_OFFSET + MAC_LEN),
                };
                noise.write_message(&[], &mut request[at..]).map_err(noise_error)?;
                if let Some(listener) = listener {
                    let mac = hello_mac(&listener.derive_key(b"mac1"), &request);
                    request[MESSAGE_OFFSET..at].copy_from_slice(&mac);
                }
                Ok(request)
            }
        }
    }
}
