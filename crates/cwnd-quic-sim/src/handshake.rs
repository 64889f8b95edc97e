//! A handshake with the messages of TLS 1.3, whose contents are the transport parameters alone, and
//! packets that are not encrypted.

use bytes::BytesMut;

/// Bytes of an authentication tag: that of AES-GCM and of ChaCha20-Poly1305.
pub(crate) const TAG: usize = 16;
/// The beginning of what stands in place of a tag. It detects packets that are none, such as
/// stateless resets.
const SEAL: [u8; 7] = *b"no key:";

/// Sizes of the messages in bytes without transport parameters, as rustls 0.23 sends them: X25519,
/// AES-256-GCM, the protocol `h3`, and a certificate of one P-256 key for `localhost` signed by
/// itself.
const CLIENT_HELLO: usize = 192;
const SERVER_HELLO: usize = 90;
/// Encrypted extensions, certificate, its verification, and the end.
const SERVER_FLIGHT: usize = 519;
const CLIENT_FINISHED: usize = 52;
/// Session tickets, after the handshake.
const TICKETS: usize = 178;
/// The sizes of a message and of its parameters, at its beginning.
const PREFIX: usize = 4;

/// The handshake of one end.
pub(crate) struct Handshake {
    client: bool,
    params: Vec<u8>,
    peer_params: Option<Vec<u8>>,
    /// Bytes of an incomplete message.
    buffer: Vec<u8>,
    /// Messages received and sent.
    received: usize,
    sent: usize,
}

impl Handshake {
    pub(crate) fn new(client: bool, params: Vec<u8>) -> Self {
        Handshake { client, params, peer_params: None, buffer: Vec::new(), received: 0, sent: 0 }
    }

    /// Whether the peer's last message before the data is missing.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.received < 2
    }

    pub(crate) fn peer_params(&self) -> Option<&[u8]> {
        self.peer_params.as_deref()
    }

    /// Reads a part of the peer's messages.
    pub(crate) fn read(&mut self, part: &[u8]) {
        self.buffer.extend_from_slice(part);
        while let Some(&[a, b, c, d]) = self.buffer.first_chunk::<PREFIX>() {
            let [size, params] = [[a, b], [c, d]].map(|each| usize::from(u16::from_be_bytes(each)));
            if self.buffer.len() < size || size < PREFIX + params {
                return;
            }
            if params > 0 {
                self.peer_params = Some(self.buffer[PREFIX..PREFIX + params].to_vec());
            }
            self.buffer.drain(..size);
            self.received += 1;
        }
    }

    /// Appends the next message, if it is time for one. Returns whether the keys of the next
    /// encryption level are available then.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>) -> bool {
        let (size, params, needed, keys) = match (self.client, self.sent) {
            (true, 0) => (CLIENT_HELLO, true, 0, false),
            (true, 1) => (0, false, 1, true),
            (true, 2) => (CLIENT_FINISHED, false, 2, true),
            (false, 0) => (SERVER_HELLO, false, 1, true),
            (false, 1) => (SERVER_FLIGHT, true, 1, true),
            (false, 2) => (TICKETS, false, 2, false),
            _ => return false,
        };
        if self.received < needed {
            return false;
        }
        self.sent += 1;
        if size > 0 {
            let params = if params { &self.params[..] } else { &[] };
            let all = size + params.len();
            for length in [all, params.len()] {
                out.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
            }
            out.extend_from_slice(params);
            out.resize(out.len() + size - PREFIX, 0);
        }
        keys
    }
}

/// The seal of a packet with this number, by the keys of this phase. The receiver of a packet
/// reconstructs both from a few bits (RFC 9000 section 17.1, RFC 9001 section 6), and drops the
/// packet if it is wrong.
fn tag(phase: u8, number: u64) -> [u8; TAG] {
    let mut tag = [0; TAG];
    tag[..7].copy_from_slice(&SEAL);
    tag[7] = phase;
    tag[8..].copy_from_slice(&number.to_be_bytes());
    tag
}

/// Writes the seal in the place of the tag, at the end of a packet.
pub(crate) fn seal(packet: &mut [u8], phase: u8, number: u64) {
    let place = packet.len() - TAG;
    packet[place..].copy_from_slice(&tag(phase, number));
}

/// Returns the packet number in a seal.
pub(crate) fn number(tag: &[u8]) -> Option<u64> {
    tag.last_chunk().map(|number| u64::from_be_bytes(*number))
}

/// Removes the seal. Returns whether it was there.
pub(crate) fn unseal(payload: &mut BytesMut, phase: u8, number: u64) -> bool {
    let sealed = payload.ends_with(&tag(phase, number));
    if sealed {
        payload.truncate(payload.len() - TAG);
    }
    sealed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_get_keys_and_parameters_in_any_parts() {
        for part in [1, 7, 1000] {
            let mut ends =
                [Handshake::new(true, vec![7; 100]), Handshake::new(false, vec![8; 150])];
            let (mut sizes, mut keys) = ([Vec::new(), Vec::new()], [0; 2]);
            for turn in 0..8 {
                let (from, to) = (turn % 2, 1 - turn % 2);
                loop {
                    let mut out = Vec::new();
                    let new = ends[from].write(&mut out);
                    keys[from] += u32::from(new);
                    out.chunks(part).for_each(|part| ends[to].read(part));
                    sizes[from].extend((!out.is_empty()).then_some(out.len()));
                    if out.is_empty() && !new {
                        break;
                    }
                }
            }
            assert_eq!(sizes, [vec![292, 52], vec![90, 669, 178]]);
            assert_eq!(keys, [2, 2]);
            assert_eq!(ends[0].peer_params(), Some(&[8; 150][..]));
            assert_eq!(ends[1].peer_params(), Some(&[7; 100][..]));
            assert!(ends.iter().all(|end| !end.is_handshaking()));
        }
    }
}
