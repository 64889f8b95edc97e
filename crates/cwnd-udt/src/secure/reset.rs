//! Authenticated resets: a listener's answer to a sealed datagram of an unknown session, as in RFC
//! 9000 section 10.3.
//!
//! A listener derives a token from its long-term secret, its listener id and the session id, and
//! can derive it again after a restart. It sends the token to the client in the encrypted part of
//! the handshake. A reset repeats the counter and the id of the datagram that it answers, and has a
//! MAC with the token as key: it does not reveal the token, and is valid for this datagram only.
//!
//! The listener id is the machine and the bound address, which distinguish listeners with the same
//! secret. Without it, an attacker could forward a datagram to another listener, whose reset would
//! end the connection (the oracle of RFC 9000 section 21.11).

use super::credentials::Credentials;
use super::wire::{DATA, HEADER, MAC_LEN, OVERHEAD, RESET, RESET_LEN, TOKEN_LEN, counter};
use ring::hmac;
use subtle::ConstantTimeEq;

/// The key of one session's resets.
pub(super) type Token = [u8; TOKEN_LEN];
/// A reset is valid only if it answers one of the last 2²⁰ datagrams: about a second at a million
/// packets per second.
const RECENT: u64 = 1 << 20;

/// The key from which a listener derives the tokens of its sessions.
pub(super) struct Resets(hmac::Key);

impl Resets {
    /// Derives the key of the listener `listener_id`. `None` with a code, which has no long-term
    /// secret.
    pub(super) fn new(credentials: &Credentials, listener_id: &[u8]) -> Option<Self> {
        let secret = match credentials {
            Credentials::Key(key) => key.resets,
            Credentials::Pair { own, .. } => own.resets(),
            Credentials::Code(_) => return None,
        };
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let here = hmac::sign(&secret, listener_id);
        Some(Resets(hmac::Key::new(hmac::HMAC_SHA256, here.as_ref())))
    }

    /// The token of the session `id`.
    pub(super) fn token(&self, id: u32) -> Token {
        let mut token = [0; TOKEN_LEN];
        token.copy_from_slice(&hmac::sign(&self.0, &id.to_be_bytes()).as_ref()[..TOKEN_LEN]);
        token
    }

    /// The reset that answers a sealed datagram of an unknown session. `None` if it would not be
    /// shorter than the datagram.
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
    reset[HEADER..].copy_from_slice(&mac.as_ref()[..MAC_LEN]);
    reset
}

/// Whether `datagram` is an authentic reset that answers a recent datagram to the session `to`.
/// `sent` is the number of datagrams sent.
pub(super) fn is_authentic(token: &Token, to: u32, sent: u64, datagram: &[u8]) -> bool {
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

opaque_debug!(Resets);

// A reset is shorter than the datagram that it answers, and too short to be answered.
const _: () = assert!(RESET_LEN <= OVERHEAD);
