//! The wire format of the handshake and of sealed datagrams: see `docs/udt.md`, "Credentials".

use super::credentials::CredentialsError;
use crate::packet::IP_UDP_HEADERS;
use snow::HandshakeState;
use std::ops::Range;

/// Why a datagram is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refused {
    /// Neither a sealed datagram nor a datagram of the handshake, or not for this end.
    #[error("not a sealed datagram of this connection")]
    Foreign,
    /// A request with another protocol version.
    #[error("the peer uses another protocol version")]
    Version,
    /// A request without credentials.
    #[error("the peer has no credentials")]
    NoKey,
    /// A request or an answer that is damaged, or was made with another key or code, or with an
    /// unlisted public key.
    #[error("the peer has another key")]
    WrongKey,
    /// A sealed datagram of an unknown session.
    #[error("unknown session")]
    Unknown,
    /// The one-time code was spent or revoked.
    #[error("the code is no longer valid")]
    Revoked,
    /// The credentials cannot be used by a client.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// Too many handshakes are pending.
    #[error("too many pending handshakes")]
    Busy,
    /// A duplicate, or a datagram whose counter is below the replay window.
    #[error("a replayed datagram")]
    Replayed,
    /// A datagram that is damaged, or was not made with this connection's keys.
    #[error("a damaged or forged datagram")]
    Forged,
    /// The system's random number generator failed.
    #[error("the system's random number generator failed")]
    NoRandom,
}

/// The protocol version.
pub(super) const VERSION: u8 = 2;

/// The kind of a datagram, which is its first byte. To UDT, these datagrams are control packets of
/// unknown types, which it drops. No UDT packet begins with one of these bytes.
pub(super) const HELLO: u8 = 0xf1;
pub(super) const COOKIE: u8 = 0xf2;
pub(super) const ANSWER: u8 = 0xf3;
pub(super) const DATA: u8 = 0xf4;
pub(super) const ASK: u8 = 0xf5;
pub(super) const EXCHANGE: u8 = 0xf6;
pub(super) const PAIR_HELLO: u8 = 0xf7;
pub(super) const RESET: u8 = 0xf8;

/// The length of the header of handshake datagrams: kind, version, two zero bytes and the client's
/// id.
pub(super) const HANDSHAKE_HEADER: usize = 8;
/// The length of a cookie, which is all zeros in a request without a cookie.
pub(super) const COOKIE_LEN: usize = 16;
/// The offset of a client's message, after the cookie.
pub(super) const MESSAGE_OFFSET: usize = HANDSHAKE_HEADER + COOKIE_LEN;
/// The length of a SPAKE2 message: a point on the curve.
pub(super) const POINT_LEN: usize = 32;
/// The length of a MAC, in a pair's hello and in resets.
pub(super) const MAC_LEN: usize = 16;
/// A hello with a pre-shared key. Noise's `psk, e`: a public key, and the tag of an empty
/// plaintext.
pub(super) const HELLO_LEN: usize = MESSAGE_OFFSET + 32 + TAG;
/// A pair's hello: a MAC, and Noise's `e, es, s, ss` with an empty plaintext.
pub(super) const PAIR_HELLO_LEN: usize = MESSAGE_OFFSET + MAC_LEN + 32 + 32 + TAG + TAG;
/// The client's SPAKE2 message.
pub(super) const ASK_LEN: usize = MESSAGE_OFFSET + POINT_LEN;
/// The listener's SPAKE2 message.
pub(super) const EXCHANGE_LEN: usize = HANDSHAKE_HEADER + POINT_LEN;
/// The encrypted payload of the listener's answer: its id, and the token of its resets.
pub(super) const ANSWER_PAYLOAD_LEN: usize = 4 + TOKEN_LEN;
/// The listener's answer. Noise's second message: a public key and the encrypted payload.
pub(super) const ANSWER_LEN: usize = HANDSHAKE_HEADER + 32 + ANSWER_PAYLOAD_LEN + TAG;
/// A cookie and its signature.
pub(super) const COOKIE_REPLY_LEN: usize = HANDSHAKE_HEADER + COOKIE_LEN + 32;
/// The length of a session's reset token.
pub(super) const TOKEN_LEN: usize = 12;
/// A reset: the header of the datagram that it answers, and a MAC.
pub(super) const RESET_LEN: usize = HEADER + MAC_LEN;

/// The length of the header of a sealed datagram: kind, counter (7 bytes) and the receiver's id.
pub(super) const HEADER: usize = 12;
/// The length of an AES-GCM tag.
pub(super) const TAG: usize = 16;
/// The length of an AES block.
const BLOCK: u32 = 16;
/// The number of bytes by which sealing lengthens a datagram.
pub const OVERHEAD: usize = HEADER + TAG;

/// The packet size to configure for a sealed connection whose datagrams have at most `on_the_wire`
/// bytes with their IP and UDP headers. The plaintext of a full packet is a whole number of AES
/// blocks: in ring, a partial block costs as much as 256 bytes.
#[expect(clippy::cast_possible_truncation, reason = "the sizes of headers are small constants")]
pub const fn packet_size(on_the_wire: u32) -> u32 {
    let lower = IP_UDP_HEADERS as u32;
    let datagram = on_the_wire.saturating_sub(lower + OVERHEAD as u32);
    lower + datagram / BLOCK * BLOCK
}

/// The position of the receiver's id in a sealed datagram.
pub(crate) const DESTINATION: Range<usize> = HEADER - 4..HEADER;

/// Whether a datagram is of this module's protocol, by its first byte.
pub fn is_secure_datagram(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|kind| (HELLO..=RESET).contains(kind))
}

/// Whether a datagram has the kind and the length of an authenticated reset. Does not check its
/// MAC.
pub fn is_reset(datagram: &[u8]) -> bool {
    datagram.len() == RESET_LEN && datagram[0] == RESET
}

/// The destination id of a datagram: that of a session's end, or of a client in its handshake.
/// `None` for requests of clients, and for datagrams of other protocols.
#[inline]
pub fn destination(datagram: &[u8]) -> Option<u32> {
    match *datagram.first()? {
        DATA if datagram.len() >= OVERHEAD => read_id(&datagram[DESTINATION]),
        COOKIE | ANSWER | EXCHANGE if datagram.len() >= HANDSHAKE_HEADER => {
            read_id(&datagram[HANDSHAKE_HEADER - 4..])
        }
        _ => None,
    }
}

/// Whether a datagram has the kind and the length of a client's request. Does not check its
/// contents.
pub fn is_hello(datagram: &[u8]) -> bool {
    request(datagram).is_some()
}

/// The kind and the message of a client's request; `None` if its length does not match its kind.
pub(super) fn request(datagram: &[u8]) -> Option<(u8, &[u8])> {
    let kind = *datagram.first()?;
    let length = match kind {
        HELLO => HELLO_LEN,
        PAIR_HELLO => PAIR_HELLO_LEN,
        ASK => ASK_LEN,
        _ => return None,
    };
    (datagram.len() == length).then(|| (kind, &datagram[MESSAGE_OFFSET..]))
}

/// The header of sealed datagram number `counter` to `id`.
pub(super) fn header(counter: u64, id: u32) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&counter.to_be_bytes());
    header[0] = DATA;
    header[8..].copy_from_slice(&id.to_be_bytes());
    header
}

/// The counter of a sealed datagram.
pub(super) fn counter(header: &[u8; HEADER]) -> u64 {
    let [_, a, b, c, d, e, f, g, ..] = *header;
    u64::from_be_bytes([0, a, b, c, d, e, f, g])
}

/// The header of a handshake datagram.
pub(super) fn handshake_header(kind: u8, client: u32) -> [u8; HANDSHAKE_HEADER] {
    let [a, b, c, d] = client.to_be_bytes();
    [kind, VERSION, 0, 0, a, b, c, d]
}

pub(super) fn read_id(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().copied().map(u32::from_be_bytes)
}

/// The input of a cookie's signature: the client's request with the new cookie in it.
pub(super) fn cookie_signature_input(request: &[u8], cookie: &[u8; COOKIE_LEN]) -> Vec<u8> {
    [&request[..HANDSHAKE_HEADER], cookie, &request[MESSAGE_OFFSET..]].concat()
}

/// Converts an error of the Noise handshake.
pub(super) fn noise_error(error: snow::Error) -> Refused {
    match error {
        snow::Error::Decrypt => Refused::WrongKey,
        snow::Error::Rng => Refused::NoRandom,
        _ => Refused::Foreign,
    }
}

/// The transport keys of one end.
pub(super) struct Keys {
    pub send: [u8; 32],
    pub receive: [u8; 32],
}

impl Keys {
    /// The keys of a completed handshake.
    pub(super) fn from_noise(noise: &mut HandshakeState) -> Self {
        let (initiators, responders) = noise.dangerously_get_raw_split();
        if noise.is_initiator() {
            Keys { send: initiators, receive: responders }
        } else {
            Keys { send: responders, receive: initiators }
        }
    }
}
