//! Authenticated resets: the answer to a sealed datagram of a session that a listener does not know, as RFC
//! 9000 has them (section 10.3).
//!
//! A listener derives a token from its long-term secret, its place and the session's id, so that it can do so
//! again after a restart. It tells the client the token in the sealed part of the handshake. A reset repeats
//! counter and id of the datagram that it answers, with a code under the token: the token itself is never
//! revealed, and a reset says nothing about another datagram.
//!
//! The place is what distinguishes listeners that have the same secret: this machine and the bound address.
//! Without it, a datagram that somebody carries from one listener to another would make the second one end
//! the connection with the first (the oracle of RFC 9000 section 21.11).

use super::credentials::Credentials;
use super::wire::{DATA, HEADER, MAC, OVERHEAD, RESET, RESET_LEN, TOKEN, counter};
use ring::hmac;
use subtle::ConstantTimeEq;

/// The secret of one session's resets.
pub(super) type Token = [u8; TOKEN];
/// A reset counts only if it answers one of the last 2²⁰ datagrams: a second at a million packets a second.
const RECENT: u64 = 1 << 20;

/// What a listener's resets are made with.
pub(super) struct Resets(hmac::Key);

impl Resets {
    /// Those of a listener at `place`. With a code there are none: its secret ends with the process.
    pub(super) fn new(credentials: &Credentials, place: &[u8]) -> Option<Self> {
        let secret = match credentials {
            Credentials::Key(key) => key.resets,
            Credentials::Pair { own, .. } => own.resets(),
            Credentials::Code(_) => return None,
        };
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let here = hmac::sign(&secret, place);
        Some(Resets(hmac::Key::new(hmac::HMAC_SHA256, here.as_ref())))
    }

    /// The token of the session `id`.
    pub(super) fn token(&self, id: u32) -> Token {
        let mut token = [0; TOKEN];
        token.copy_from_slice(&hmac::sign(&self.0, &id.to_be_bytes()).as_ref()[..TOKEN]);
        token
    }

    /// The answer to a sealed datagram of an unknown session, which is longer than the answer.
    pub(super) fn answer(&self, datagram: &[u8]) -> Option<[u8; RESET_LEN]> {
        let header = datagram.first_chunk::<HEADER>()?;
        if header[0] != DATA || datagram.len() <= OVERHEAD {
            return None;
        }
        let id = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
        Some(reset(&self.token(id), *header))
    }
}

fn reset(token: &Token, mut header: [u8; HEADER]) -> [u8; RESET_LEN] {
    header[0] = RESET;
    let key = hmac::Key::new(hmac::HMAC_SHA256, token);
    let mac = hmac::sign(&key, &header);
    let mut reset = [0; RESET_LEN];
    reset[..HEADER].copy_from_slice(&header);
    reset[HEADER..].copy_from_slice(&mac.as_ref()[..MAC]);
    reset
}

/// Whether `datagram` is the reset of a datagram to the session `to` that was sent recently, where `sent` is
/// the next counter.
pub(super) fn is_genuine(token: &Token, to: u32, sent: u64, datagram: &[u8]) -> bool {
    let Some(header) = datagram.first_chunk::<HEADER>() else { return false };
    let counter = counter(header);
    if datagram.len() != RESET_LEN
        || header[0] != RESET
        || header[8..] != to.to_be_bytes()
        || !(sent.saturating_sub(RECENT)..sent).contains(&counter)
    {
        return false;
    }
    reset(token, *header).ct_eq(datagram).into()
}

/// Keeps the secret out of logs.
impl std::fmt::Debug for Resets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Resets(..)")
    }
}

// A reset answers with fewer bytes, and is too short to be answered.
const _: () = assert!(RESET_LEN <= OVERHEAD);
