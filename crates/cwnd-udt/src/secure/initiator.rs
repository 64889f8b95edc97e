//! The client's side of the handshake.

use super::key::Key;
use super::wire::{
    ANSWER, ANSWER_LEN, COOKIE, COOKIE_LEN, COOKIE_REPLY_LEN, HEAD, HELLO, HELLO_LEN, Keys,
    MESSAGE, VERSION, head, noise, read_id, refusal, signed,
};
use super::{Refused, Session};
use cwnd::{Dur, Time};
use ring::hmac;
use snow::HandshakeState;

/// The time between two hellos, UDT4's between two requests.
const REPEAT: Dur = Dur::from_millis(250);

/// A client that asks for a session.
#[derive(Debug)]
pub struct Initiator {
    key: Key,
    id: u32,
    noise: Box<HandshakeState>,
    hello: [u8; HELLO_LEN],
    next_send: Time,
    deadline: Time,
}

impl Initiator {
    /// A client that asks for a session and gives up after `timeout`. `id` names its end of the session: no
    /// other session of the port has it. Random numbers are the system's.
    ///
    /// # Errors
    /// [`Refused::NoRandom`], if the system gives none.
    pub fn new(key: &Key, now: Time, id: u32, timeout: Dur) -> Result<Self, Refused> {
        let noise = noise(key, id, true).map_err(|error| refusal(&error))?;
        Initiator::with_noise(key, now, id, timeout, noise)
    }

    pub(super) fn with_noise(
        key: &Key,
        now: Time,
        id: u32,
        timeout: Dur,
        mut noise: HandshakeState,
    ) -> Result<Self, Refused> {
        let mut hello = [0; HELLO_LEN];
        hello[..HEAD].copy_from_slice(&head(HELLO, id));
        noise.write_message(&[], &mut hello[MESSAGE..]).map_err(|error| refusal(&error))?;
        let (key, noise) = (key.clone(), Box::new(noise));
        Ok(Initiator { key, id, noise, hello, next_send: now, deadline: now + timeout })
    }

    /// What to send now.
    pub fn poll(&mut self, now: Time) -> Option<&[u8]> {
        if self.next_send > now || self.is_over(now) {
            return None;
        }
        self.next_send = now + REPEAT;
        Some(&self.hello)
    }

    /// When to [poll](Self::poll) again, if nothing arrives before.
    pub fn next_wakeup(&self) -> Time {
        self.next_send.min(self.deadline)
    }

    /// Nobody answered in time: there is no listener at the address, it has no key, or another one. A
    /// listener does not tell those who do not have its key.
    pub fn is_over(&self, now: Time) -> bool {
        self.deadline <= now
    }

    /// A datagram arrived: the session, once the answer is there. With nothing there may be something to
    /// [send](Self::poll) at once.
    ///
    /// # Errors
    /// Why the datagram is dropped. The right answer may still come.
    pub fn handle(&mut self, now: Time, datagram: &[u8]) -> Result<Option<Session>, Refused> {
        let own = |kind| datagram.starts_with(&head(kind, self.id));
        match datagram.len() {
            COOKIE_REPLY_LEN if own(COOKIE) => self.show(now, datagram).map(|()| None),
            ANSWER_LEN if own(ANSWER) => {
                let mut peer = [0; 4];
                self.noise
                    .read_message(&datagram[HEAD..], &mut peer)
                    .map_err(|error| refusal(&error))?;
                let keys = Keys::of(&mut self.noise);
                Ok(Some(Session::new(self.id, u32::from_be_bytes(peer), &keys)))
            }
            HEAD..
                if matches!(datagram[0], COOKIE | ANSWER)
                    && datagram[1] != VERSION
                    && read_id(&datagram[4..]) == Some(self.id) =>
            {
                Err(Refused::Version)
            }
            _ => Err(Refused::Foreign),
        }
    }

    /// The responder is busy and wants a cookie to be shown.
    fn show(&mut self, now: Time, datagram: &[u8]) -> Result<(), Refused> {
        let (cookie, signature) = datagram[HEAD..].split_at(COOKIE_LEN);
        let mut shown = [0; COOKIE_LEN];
        shown.copy_from_slice(cookie);
        hmac::verify(&self.key.cookies, &signed(&self.hello, &shown), signature)
            .map_err(|_| Refused::WrongKey)?;
        if self.hello[HEAD..MESSAGE] != shown {
            self.hello[HEAD..MESSAGE].copy_from_slice(&shown);
            self.next_send = now;
        }
        Ok(())
    }
}
