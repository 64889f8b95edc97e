//! The format of sealed datagrams and of the handshake: see `docs/udt.md`, "Credentials".

use super::Refused;
use crate::packet::IP_UDP_HEADERS;
use snow::HandshakeState;
use std::ops::Range;

/// The version of the protocol.
pub(super) const VERSION: u8 = 2;

/// The first bytes of datagrams. For UDT these are control packets of unknown types, which it drops; no packet of UDT
/// begins with them.
pub(super) const HELLO: u8 = 0xf1;
pub(super) const COOKIE: u8 = 0xf2;
pub(super) const ANSWER: u8 = 0xf3;
pub(super) const DATA: u8 = 0xf4;
pub(super) const ASK: u8 = 0xf5;
pub(super) const EXCHANGE: u8 = 0xf6;
pub(super) const PAIR_HELLO: u8 = 0xf7;
pub(super) const RESET: u8 = 0xf8;

/// The header of handshake datagrams: kind, version, two zero bytes and the client's id.
pub(super) const HEAD: usize = 8;
/// Bytes of a cookie, none of them anything where there is no cookie.
pub(super) const COOKIE_LEN: usize = 16;
/// Where a client's question begins, behind its cookie.
pub(super) const MESSAGE: usize = HEAD + COOKIE_LEN;
/// A message of SPAKE2: a point of the curve.
pub(super) const POINT: usize = 32;
/// The code that a pair's hello shows its knowledge of the listener's public key with.
pub(super) const MAC: usize = 16;
/// Noise's `psk, e`: a public key, and the tag of an empty text.
pub(super) const HELLO_LEN: usize = MESSAGE + 32 + TAG;
/// A code, and Noise's `e, es, s, ss` with an empty text.
pub(super) const PAIR_HELLO_LEN: usize = MESSAGE + MAC + 32 + 32 + TAG + TAG;
/// The client's message of SPAKE2.
pub(super) const ASK_LEN: usize = MESSAGE + POINT;
/// The listener's.
pub(super) const EXCHANGE_LEN: usize = HEAD + POINT;
/// What the responder's answer seals: its id, and the token of its resets.
pub(super) const PAYLOAD: usize = 4 + TOKEN;
/// Noise's second message: a public key and the payload.
pub(super) const ANSWER_LEN: usize = HEAD + 32 + PAYLOAD + TAG;
/// A cookie and its signature.
pub(super) const COOKIE_REPLY_LEN: usize = HEAD + COOKIE_LEN + 32;
/// Bytes of the secret that the resets of one session are made with.
pub(super) const TOKEN: usize = 12;
/// The header of the datagram that a reset answers, and a code.
pub(super) const RESET_LEN: usize = HEADER + MAC;

/// The header of a sealed datagram: kind, counter (7 bytes) and the receiver's id.
pub(super) const HEADER: usize = 12;
/// A tag of AES-GCM.
pub(super) const TAG: usize = 16;
/// A block of AES.
const BLOCK: u32 = 16;
/// The number of bytes by which encryption lengthens a datagram.
pub const OVERHEAD: usize = HEADER + TAG;

/// The packet size to configure for a sealed connection, so that sealed datagrams with their IP and UDP headers have at
/// most `on_the_wire` bytes. The plaintext of a full packet is a whole number of AES blocks: in ring a partial block
/// costs as much as 256 bytes.
#[expect(clippy::cast_possible_truncation, reason = "the sizes of headers are small constants")]
pub const fn packet_size(on_the_wire: u32) -> u32 {
    let lower = IP_UDP_HEADERS as u32;
    let datagram = on_the_wire.saturating_sub(lower + OVERHEAD as u32);
    lower + datagram / BLOCK * BLOCK
}

/// The position of the receiver's id in a sealed datagram.
pub(crate) const DESTINATION: Range<usize> = HEADER - 4..HEADER;

/// Whether the first byte of a datagram is one of this protocol.
pub fn is_sealing(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|kind| (HELLO..=RESET).contains(kind))
}

/// Whether a datagram looks like an authenticated reset.
pub fn is_reset(datagram: &[u8]) -> bool {
    datagram.len() == RESET_LEN && datagram[0] == RESET
}

/// The id of the end for which a datagram is: a session's, or that of a client in its handshake. `None` for hellos and
/// for datagrams of other protocols.
#[inline]
pub fn destination(datagram: &[u8]) -> Option<u32> {
    match *datagram.first()? {
        DATA if datagram.len() >= OVERHEAD => read_id(&datagram[DESTINATION]),
        COOKIE | ANSWER | EXCHANGE if datagram.len() >= HEAD => read_id(&datagram[HEAD - 4..]),
        _ => None,
    }
}

/// Whether a datagram looks like a client's request for a session. A full check takes longer.
pub fn is_hello(datagram: &[u8]) -> bool {
    question(datagram).is_some()
}

/// The kind and the question of a client's datagram, if it has the length of its kind.
pub(super) fn question(datagram: &[u8]) -> Option<(u8, &[u8])> {
    let kind = *datagram.first()?;
    let length = match kind {
        HELLO => HELLO_LEN,
        PAIR_HELLO => PAIR_HELLO_LEN,
        ASK => ASK_LEN,
        _ => return None,
    };
    (datagram.len() == length).then(|| (kind, &datagram[MESSAGE..]))
}

/// The header of sealed datagram number `counter` to `id`.
pub(super) fn header(counter: u64, id: u32) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&counter.to_be_bytes());
    header[0] = DATA;
    header[8..].copy_from_slice(&id.to_be_bytes());
    header
}

/// Counter of a sealed datagram.
pub(super) fn counter(header: &[u8; HEADER]) -> u64 {
    let [_, a, b, c, d, e, f, g, ..] = *header;
    u64::from_be_bytes([0, a, b, c, d, e, f, g])
}

/// How a datagram of the handshake begins.
pub(super) fn head(kind: u8, client: u32) -> [u8; HEAD] {
    let [a, b, c, d] = client.to_be_bytes();
    [kind, VERSION, 0, 0, a, b, c, d]
}

pub(super) fn read_id(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().copied().map(u32::from_be_bytes)
}

/// What somebody signs who asks for a cookie to be shown.
pub(super) fn signed(question: &[u8], cookie: &[u8; COOKIE_LEN]) -> Vec<u8> {
    [&question[..HEAD], cookie, &question[MESSAGE..]].concat()
}

/// What Noise's failures mean.
pub(super) fn refusal(error: &snow::Error) -> Refused {
    match error {
        snow::Error::Decrypt => Refused::WrongKey,
        snow::Error::Rng => Refused::NoRandom,
        _ => Refused::Foreign,
    }
}

/// The keys of the two directions, as one end sees them.
pub(super) struct Keys {
    pub out: [u8; 32],
    pub inward: [u8; 32],
}

impl Keys {
    /// The keys of a handshake that is done.
    pub(super) fn of(noise: &mut HandshakeState) -> Self {
        let (initiators, responders) = noise.dangerously_get_raw_split();
        if noise.is_initiator() {
            Keys { out: initiators, inward: responders }
        } else {
            Keys { out: responders, inward: initiators }
        }
    }
}
