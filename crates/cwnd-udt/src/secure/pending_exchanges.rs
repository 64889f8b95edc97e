//! A listener's pending SPAKE2 key exchanges with a one-time code.

use super::Refused;
use super::handshake::{Exchange, Psk};
use super::one_time_code::Code;
use super::wire::{EXCHANGE, EXCHANGE_LEN, HANDSHAKE_HEADER, POINT_LEN, handshake_header};
use crate::config::counted_address;
use cwnd::{Dur, Time};
use std::collections::HashMap;
use std::net::SocketAddr;

/// The largest number of pending exchanges, whose clients have sent no hello.
const MAX_PENDING: usize = 64;
/// The largest number of pending exchanges of one address, or of one IPv6 network of 64 bits.
const MAX_PER_ADDRESS: usize = 8;
/// The lifetime of a pending exchange.
const TIMEOUT: Dur = Dur::from_millis(10_000);
/// The number of wrong guesses after which a code is revoked.
pub(super) const MAX_WRONG_GUESSES: u32 = 5;

/// One client's exchange. It is valid for one hello.
#[derive(Debug)]
struct PendingExchange {
    request: [u8; POINT_LEN],
    answer: [u8; EXCHANGE_LEN],
    psk: Psk,
    expires: Time,
}

/// A one-time code and its pending exchanges, by the client's address and id.
#[derive(Debug)]
pub(super) struct PendingExchanges {
    code: Code,
    pending: HashMap<(SocketAddr, u32), PendingExchange>,
    wrong_guesses: u32,
    spent: bool,
}

impl PendingExchanges {
    pub(super) fn new(code: &Code) -> Self {
        PendingExchanges {
            code: code.clone(),
            pending: HashMap::new(),
            wrong_guesses: 0,
            spent: false,
        }
    }

    /// Accepts no further clients.
    pub(super) fn spend(&mut self) {
        self.spent = true;
        self.pending.clear();
    }

    /// Whether the code was revoked after too many wrong guesses.
    pub(super) fn is_revoked(&self) -> bool {
        self.wrong_guesses >= MAX_WRONG_GUESSES
    }

    /// Begins an exchange with a client's message and returns the answer. The client's address
    /// `from` must be verified.
    pub(super) fn begin(
        &mut self,
        now: Time,
        (from, client): (SocketAddr, u32),
        point: &[u8],
    ) -> Result<Vec<u8>, Refused> {
        if self.spent || self.is_revoked() {
            return Err(Refused::Revoked);
        }
        self.pending.retain(|_, pending| pending.expires > now);
        if let Some(pending) = self.pending.get(&(from, client)) {
            let again = pending.request == point;
            return if again { Ok(pending.answer.to_vec()) } else { Err(Refused::Busy) };
        }
        let of_address = self
            .pending
            .keys()
            .filter(|(other, _)| counted_address(other.ip()) == counted_address(from.ip()))
            .count();
        if self.pending.len() >= MAX_PENDING || of_address >= MAX_PER_ADDRESS {
            return Err(Refused::Busy);
        }
        let request = <[u8; POINT_LEN]>::try_from(point).map_err(|_| Refused::Foreign)?;
        if !Exchange::is_point(point) {
            return Err(Refused::Foreign);
        }
        let exchange = Exchange::new(&self.code, false);
        let mut answer = [0; EXCHANGE_LEN];
        answer[..HANDSHAKE_HEADER].copy_from_slice(&handshake_header(EXCHANGE, client));
        answer[HANDSHAKE_HEADER..].copy_from_slice(&exchange.point);
        let psk = exchange.finish(client, point).ok_or(Refused::Foreign)?;
        let pending = PendingExchange { request, answer, psk, expires: now + TIMEOUT };
        self.pending.insert((from, client), pending);
        Ok(answer.to_vec())
    }

    /// Ends a client's exchange and returns its pre-shared key: each exchange is valid for one
    /// hello.
    pub(super) fn take(&mut self, now: Time, from: SocketAddr, client: u32) -> Option<Psk> {
        let pending =
            self.pending.remove(&(from, client)).filter(|pending| pending.expires > now)?;
        (!self.spent && !self.is_revoked()).then_some(pending.psk)
    }

    /// Counts a hello that was made with another code.
    pub(super) fn count_wrong_guess(&mut self) {
        self.wrong_guesses += 1;
        if self.is_revoked() {
            self.pending.clear();
        }
    }
}
