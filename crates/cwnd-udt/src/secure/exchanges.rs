//! The key exchanges of a listener with a one-time code.

use super::Refused;
use super::code::Code;
use super::handshake::{Exchange, Secret};
use super::wire::{EXCHANGE, EXCHANGE_LEN, HEAD, POINT, head};
use cwnd::{Dur, Time};
use std::collections::HashMap;
use std::net::SocketAddr;

/// The largest number of exchanges whose client has sent no hello, in total and of one address, and their lifetime.
const MOST: usize = 64;
const MOST_OF_ADDRESS: usize = 8;
const PATIENCE: Dur = Dur::from_millis(10_000);
/// The number of wrong guesses that make a code void.
pub(super) const GUESSES: u32 = 5;

/// One client's exchange, which is valid for one hello.
#[derive(Debug)]
struct Open {
    question: [u8; POINT],
    answer: [u8; EXCHANGE_LEN],
    secret: Secret,
    until: Time,
}

/// A code and its pending exchanges.
#[derive(Debug)]
pub(super) struct Exchanges {
    code: Code,
    open: HashMap<(SocketAddr, u32), Open>,
    wrong: u32,
    spent: bool,
}

impl Exchanges {
    pub(super) fn new(code: &Code) -> Self {
        Exchanges { code: code.clone(), open: HashMap::new(), wrong: 0, spent: false }
    }

    /// Admits no further clients.
    pub(super) fn spend(&mut self) {
        self.spent = true;
        self.open.clear();
    }

    /// Whether too many guesses were wrong.
    pub(super) fn is_void(&self) -> bool {
        self.wrong >= GUESSES
    }

    /// Begins the exchange of a client at the verified address `from` with its message.
    pub(super) fn ask(
        &mut self,
        now: Time,
        (from, client): (SocketAddr, u32),
        point: &[u8],
    ) -> Result<Vec<u8>, Refused> {
        if self.spent || self.is_void() {
            return Err(Refused::Void);
        }
        self.open.retain(|_, open| open.until > now);
        if let Some(open) = self.open.get(&(from, client)) {
            let again = open.question == point;
            return if again { Ok(open.answer.to_vec()) } else { Err(Refused::Busy) };
        }
        let of_address = self.open.keys().filter(|(other, _)| other.ip() == from.ip()).count();
        if self.open.len() >= MOST || of_address >= MOST_OF_ADDRESS {
            return Err(Refused::Busy);
        }
        let question = <[u8; POINT]>::try_from(point).map_err(|_| Refused::Foreign)?;
        if !Exchange::is_point(point) {
            return Err(Refused::Foreign);
        }
        let exchange = Exchange::new(&self.code, false);
        let mut answer = [0; EXCHANGE_LEN];
        answer[..HEAD].copy_from_slice(&head(EXCHANGE, client));
        answer[HEAD..].copy_from_slice(&exchange.point);
        let secret = exchange.finish(client, point).ok_or(Refused::Foreign)?;
        let open = Open { question, answer, secret, until: now + PATIENCE };
        self.open.insert((from, client), open);
        Ok(answer.to_vec())
    }

    /// Ends a client's exchange and returns its secret: each exchange is valid for one hello.
    pub(super) fn take(&mut self, now: Time, from: SocketAddr, client: u32) -> Option<Secret> {
        let open = self.open.remove(&(from, client)).filter(|open| open.until > now)?;
        (!self.spent && !self.is_void()).then_some(open.secret)
    }

    /// Counts a wrong guess: a hello was made with another code.
    pub(super) fn guessed_wrong(&mut self) {
        self.wrong += 1;
        if self.is_void() {
            self.open.clear();
        }
    }
}
