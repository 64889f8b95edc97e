//! The wire format of the connection handshake: draft-gg-udt-03 section 5, with the values of UDT
//! 4.11.

use crate::packet::{HEADER, IP_UDP_HEADERS, word};
use crate::seq::Seq;
use std::net::IpAddr;

/// The protocol version.
pub const VERSION: u32 = 4;
/// The timestamp of the answers of this crate's listeners. Requests of this crate have smaller
/// ones, but not 0, and UDT4's listener echoes them; requests of UDT4 have 0.
pub(crate) const ANSWER_TIMESTAMP: u32 = 1 << 31;
/// The smallest accepted packet size in bytes, IP and UDP headers included.
pub const MIN_PACKET_SIZE: u32 = 100;
/// The largest packet size in bytes: that of an IPv4 packet.
pub const MAX_PACKET_SIZE: u32 = 65_535;
/// The largest flow window in packets. A larger window of a peer is reduced to this.
pub const MAX_FLOW_WINDOW: u32 = 1 << 20;

/// The bytes of user data in a full packet of `packet_size` bytes.
pub const fn payload_of(packet_size: u32) -> usize {
    packet_size as usize - IP_UDP_HEADERS - HEADER
}

/// How data is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SocketType {
    /// A stream of bytes (UDT4: `SOCK_STREAM`).
    #[default]
    Stream,
    /// Messages (UDT4: `SOCK_DGRAM`).
    Message,
    /// Not a type of UDT.
    Unknown(u32),
}

/// The type of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// 1: a client's request, or a listener's answer with a cookie.
    Connect,
    /// -1: a client's request with the cookie, or the answer that accepts it. In a rendezvous: the
    /// second step.
    Agree,
    /// -2: the confirmation of a rendezvous.
    Confirm,
    /// 0: the first step of a rendezvous.
    Rendezvous,
    /// 1002: refused.
    Refused,
    /// Anything else.
    Unknown(u32),
}

/// The fields of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// The protocol version; UDT4 leaves it 0 in [`Request::Confirm`].
    pub version: u32,
    /// How data is delivered. On the wire 1 is a stream and 2 are messages, unlike in the draft.
    pub socket_type: SocketType,
    /// The first sequence number of the sender of this handshake. A listener adopts the client's.
    pub initial: Seq,
    /// The largest packet in bytes, IP and UDP headers included.
    pub packet_size: u32,
    /// The receive window of the sender of this handshake in packets.
    pub flow_window: u32,
    /// The type of this handshake.
    pub request: Request,
    /// The id of the sending socket.
    pub socket: u32,
    /// The listener's cookie.
    pub cookie: u32,
    /// The destination address of this handshake, see [`address`].
    pub peer: [u8; 16],
}

impl Handshake {
    /// The length of a handshake in bytes, without the packet header.
    pub const LENGTH: usize = 48;

    /// Parses a handshake of [`Self::LENGTH`] bytes.
    pub(crate) fn parse(info: &[u8]) -> Self {
        let word = |n: usize| word(info, 4 * n);
        let mut peer = [0; 16];
        if let Some(bytes) = info.get(32..48) {
            peer.copy_from_slice(bytes);
        }
        Handshake {
            version: word(0),
            socket_type: SocketType::from_wire(word(1)),
            initial: Seq::new(word(2)),
            packet_size: word(3),
            flow_window: word(4),
            request: Request::from_wire(word(5)),
            socket: word(6),
            cookie: word(7),
            peer,
        }
    }

    pub(crate) fn words(&self) -> [u32; 12] {
        let mut words = [0; 12];
        words[..8].copy_from_slice(&[
            self.version,
            self.socket_type.to_wire(),
            self.initial.value(),
            self.packet_size,
            self.flow_window,
            self.request.to_wire(),
            self.socket,
            self.cookie,
        ]);
        words[8..].copy_from_slice(&[0, 4, 8, 12].map(|at| word(&self.peer, at)));
        words
    }

    /// Whether the offered values are usable: a packet size that holds data, a window of at least
    /// two packets, and a valid socket id.
    pub fn is_valid(&self) -> bool {
        (MIN_PACKET_SIZE..=MAX_PACKET_SIZE).contains(&self.packet_size)
            && self.flow_window >= 2
            && (1..1 << 31).contains(&self.socket)
    }
}

impl SocketType {
    fn from_wire(value: u32) -> Self {
        match value {
            1 => SocketType::Stream,
            2 => SocketType::Message,
            _ => SocketType::Unknown(value),
        }
    }

    fn to_wire(self) -> u32 {
        match self {
            SocketType::Stream => 1,
            SocketType::Message => 2,
            SocketType::Unknown(value) => value,
        }
    }
}

impl Request {
    fn from_wire(value: u32) -> Self {
        match value.cast_signed() {
            1 => Request::Connect,
            -1 => Request::Agree,
            -2 => Request::Confirm,
            0 => Request::Rendezvous,
            1002 => Request::Refused,
            _ => Request::Unknown(value),
        }
    }

    fn to_wire(self) -> u32 {
        match self {
            Request::Connect => 1,
            Request::Agree => (-1i32).cast_unsigned(),
            Request::Confirm => (-2i32).cast_unsigned(),
            Request::Rendezvous => 0,
            Request::Refused => 1002,
            Request::Unknown(value) => value,
        }
    }
}

/// Encodes an address as UDT4 does on a little-endian machine: each group of four bytes is
/// reversed.
pub fn address(ip: IpAddr) -> [u8; 16] {
    let mut bytes = [0; 16];
    match ip {
        IpAddr::V4(ip) => bytes[..4].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => bytes = ip.octets(),
    }
    bytes.chunks_exact_mut(4).for_each(<[u8]>::reverse);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;

    #[test]
    fn addresses_are_reversed_in_groups() {
        assert_eq!(address("127.0.0.1".parse().unwrap())[..4], [1, 0, 0, 127]);
        let bytes = address("::1".parse().unwrap());
        assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn unusable_values_are_invalid() {
        let good = request();
        assert!(good.is_valid());
        assert!(!Handshake { packet_size: 44, ..good }.is_valid());
        assert!(!Handshake { packet_size: 1 << 20, ..good }.is_valid());
        assert!(!Handshake { flow_window: 1, ..good }.is_valid());
        assert!(!Handshake { socket: 0, ..good }.is_valid());
        assert!(!Handshake { socket: 1 << 31, ..good }.is_valid());
    }
}
