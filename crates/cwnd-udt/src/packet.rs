//! The wire format of packets: draft-gg-udt-03 section 2, with the lengths of UDT 4.11.
//!
//! Parsed packets borrow from the datagram. Invalid datagrams are [`Malformed`]; control packets
//! that UDT4 ignores parse to [`Control::Other`].

mod nak;

pub use nak::{Losses, NakWriter, Range};

use crate::handshake::Handshake;
use crate::seq::{AckNo, MESSAGE_MASK, MessageNo, Seq};

/// The length of a packet header in bytes, for data and control packets.
pub const HEADER: usize = 16;
/// The length of the IPv4 and UDP headers in bytes, which UDT4 includes in the packet size (also
/// over IPv6).
pub const IP_UDP_HEADERS: usize = 28;

const CONTROL: u32 = 1 << 31;

/// Why a datagram is not a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It is shorter than a header.
    #[error("a datagram of {0} bytes is too short: a packet header has 16 bytes")]
    Short(usize),
    /// The information of a control packet has an invalid length for its type.
    #[error("a control packet of type {kind} with {length} bytes of information")]
    Length {
        /// The type of the control packet.
        kind: u16,
        /// The number of bytes after its header.
        length: usize,
    },
    /// A loss report is empty or has an invalid range.
    #[error("an empty loss report, or one with an invalid range")]
    Range,
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet<'a> {
    /// Microseconds since the sender created its connection; 0 in control packets of UDT4.
    pub timestamp: u32,
    /// The id of the destination socket; 0 in the first packets of a handshake.
    pub destination: u32,
    /// The content.
    pub body: Body<'a>,
}

/// The content of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body<'a> {
    /// User data.
    Data(Data<'a>),
    /// Control information.
    Control(Control<'a>),
}

/// A data packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Data<'a> {
    /// Its sequence number.
    pub seq: Seq,
    /// Its position in its message.
    pub message: Message,
    /// User data.
    pub payload: &'a [u8],
}

/// The message field of a data packet: the bits `FF` (first and last packet), `O` (in order) and
/// the message number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message(pub u32);

impl Message {
    const FIRST: u32 = 1 << 31;
    const LAST: u32 = 1 << 30;
    const ORDER: u32 = 1 << 29;

    /// The field of a packet of message `number`.
    pub const fn new(number: MessageNo, first: bool, last: bool, in_order: bool) -> Self {
        Message(
            number.value()
                | if first { Message::FIRST } else { 0 }
                | if last { Message::LAST } else { 0 }
                | if in_order { Message::ORDER } else { 0 },
        )
    }

    /// Whether the message begins with this packet.
    pub const fn is_first(self) -> bool {
        self.0 & Message::FIRST != 0
    }

    /// Whether the message ends with this packet.
    pub const fn is_last(self) -> bool {
        self.0 & Message::LAST != 0
    }

    /// Whether the message is delivered after all earlier messages.
    pub const fn in_order(self) -> bool {
        self.0 & Message::ORDER != 0
    }

    /// The message number.
    pub const fn number(self) -> MessageNo {
        MessageNo::new(self.0 & MESSAGE_MASK)
    }
}

/// A control packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control<'a> {
    /// Type 0: a request for a connection, or the answer to one.
    Handshake(Handshake),
    /// Type 1: a keep-alive.
    KeepAlive,
    /// Type 2 without further fields: a light acknowledgement, which only advances the window.
    LightAck(Seq),
    /// Type 2: a full acknowledgement, which is answered by type 6.
    Ack(Ack),
    /// Type 3: a loss report.
    Nak(Losses<'a>),
    /// Type 5: the peer has closed the connection.
    Shutdown,
    /// Type 6: the acknowledgement of an acknowledgement.
    Ack2(AckNo),
    /// Type 7: a drop request for an expired message.
    Drop(DropRequest),
    /// Type 0x7fff, subtype [`PROGRESS`]: how much of an incomplete window has arrived. Only this
    /// crate sends it; UDT4 ignores it.
    Progress(Progress),
    /// An ignored type: UDT4's congestion warning (4) and error signal (8), and user-defined
    /// packets (0x7fff) of other subtypes.
    Other {
        /// The type.
        kind: u16,
        /// Bits 16 to 31: the subtype of a user-defined packet.
        subtype: u16,
    },
}

/// The subtype of [`Control::Progress`].
pub const PROGRESS: u16 = 0x4357;

/// The fields of a full acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The number of this acknowledgement, which its acknowledgement repeats.
    pub number: AckNo,
    /// The cumulative acknowledgement: the first packet that has not arrived.
    pub next: Seq,
    /// The receiver's smoothed round-trip time in microseconds.
    pub rtt_us: u32,
    /// The mean deviation of the receiver's round-trip time in microseconds.
    pub rtt_var_us: u32,
    /// The receive window in packets (not in bytes, as the draft says); at least 2.
    pub available: u32,
    /// The arrival rate and the path's capacity in packets per second, 0 if unknown. Absent in
    /// acknowledgements less than 10 ms apart.
    pub rates: Option<(u32, u32)>,
}

/// A drop request: the packets of this message will not be sent or retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropRequest {
    /// The message number.
    pub message: MessageNo,
    /// Its first packet.
    pub first: Seq,
    /// Its last packet; UDT4 names the one after it.
    pub last: Seq,
}

/// A progress report: how much of a window with missing packets has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The cumulative acknowledgement: the first packet that has not arrived.
    pub next: Seq,
    /// One past the highest packet that has arrived.
    pub highest: Seq,
    /// The number of missing packets between the two.
    pub missing: u32,
}

/// The 32-bit big-endian word at the offset `at`; 0 beyond the end.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
}

/// The destination socket id of a datagram; `None` if it is too short for a packet.
pub fn destination(datagram: &[u8]) -> Option<u32> {
    (datagram.len() >= HEADER).then(|| word(datagram, 12))
}

impl<'a> Packet<'a> {
    /// Parses a datagram.
    ///
    /// # Errors
    /// [`Malformed`] if it is not a UDT packet.
    #[inline]
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Malformed> {
        if datagram.len() < HEADER {
            return Err(Malformed::Short(datagram.len()));
        }
        let (header, info) = datagram.split_at(HEADER);
        let first = word(header, 0);
        let body = if first & CONTROL == 0 {
            let message = Message(word(header, 4));
            Body::Data(Data { seq: Seq::new(first), message, payload: info })
        } else {
            Body::Control(Control::parse(
                (first >> 16) as u16 & 0x7fff,
                (first & 0xffff) as u16,
                header,
                info,
            )?)
        };
        Ok(Packet { timestamp: word(header, 8), destination: word(header, 12), body })
    }
}

impl<'a> Control<'a> {
    fn parse(kind: u16, subtype: u16, header: &[u8], info: &'a [u8]) -> Result<Self, Malformed> {
        let add = word(header, 4);
        let wrong = Err(Malformed::Length { kind, length: info.len() });
        let next = Seq::new(word(info, 0));
        Ok(match (kind, info.len()) {
            // Requests that are probes of the path MTU are padded, and their answers.
            (0, length) if length >= Handshake::LENGTH => {
                Control::Handshake(Handshake::parse(&info[..Handshake::LENGTH]))
            }
            (1, 0 | 4) => Control::KeepAlive,
            (2, 4) => Control::LightAck(next),
            (2, length @ (16 | 24)) => Control::Ack(Ack {
                number: AckNo::new(add),
                next,
                rtt_us: word(info, 4),
                rtt_var_us: word(info, 8),
                available: word(info, 12),
                rates: (length == 24).then(|| (word(info, 16), word(info, 20))),
            }),
            (3, _) => Control::Nak(Losses::parse(info).ok_or(Malformed::Range)?),
            (5, 0 | 4) => Control::Shutdown,
            (6, 0 | 4) => Control::Ack2(AckNo::new(add)),
            (7, 8) => Control::Drop(DropRequest {
                message: MessageNo::new(add),
                first: next,
                last: Seq::new(word(info, 4)),
            }),
            (0x7fff, 12) if subtype == PROGRESS => Control::Progress(Progress {
                next,
                highest: Seq::new(word(info, 4)),
                missing: word(info, 8),
            }),
            (0..=2 | 5..=7, _) => return wrong,
            _ => Control::Other { kind, subtype },
        })
    }

    fn kind(&self) -> (u16, u16) {
        match *self {
            Control::Handshake(_) => (0, 0),
            Control::KeepAlive => (1, 0),
            Control::LightAck(_) | Control::Ack(_) => (2, 0),
            Control::Nak(_) => (3, 0),
            Control::Shutdown => (5, 0),
            Control::Ack2(_) => (6, 0),
            Control::Drop(_) => (7, 0),
            Control::Progress(_) => (0x7fff, PROGRESS),
            Control::Other { kind, subtype } => (kind & 0x7fff, subtype),
        }
    }

    /// Writes the packet to the front of `buffer` and returns its length; 0 if it does not fit.
    ///
    /// Packets without information are padded with four bytes, as in UDT4.
    pub fn encode(&self, timestamp: u32, destination: u32, buffer: &mut [u8]) -> usize {
        let mut words = [0; 12];
        let (add, count) = match *self {
            Control::Handshake(handshake) => {
                words = handshake.words();
                (0, 12)
            }
            Control::KeepAlive | Control::Shutdown | Control::Other { .. } => (0, 1),
            Control::LightAck(next) => {
                words[0] = next.value();
                (0, 1)
            }
            Control::Ack(ack) => {
                let (arrival, capacity) = ack.rates.unwrap_or_default();
                let fields = [
                    ack.next.value(),
                    ack.rtt_us,
                    ack.rtt_var_us,
                    ack.available,
                    arrival,
                    capacity,
                ];
                words[..6].copy_from_slice(&fields);
                (ack.number.value(), if ack.rates.is_some() { 6 } else { 4 })
            }
            Control::Nak(losses) => {
                let info = losses.as_bytes();
                let Some(room) = buffer.get_mut(HEADER..HEADER + info.len()) else { return 0 };
                room.copy_from_slice(info);
                write_header(self.kind(), 0, timestamp, destination, buffer);
                return HEADER + info.len();
            }
            Control::Ack2(number) => (number.value(), 1),
            Control::Drop(DropRequest { message, first, last }) => {
                words[..2].copy_from_slice(&[first.value(), last.value()]);
                (message.value(), 2)
            }
            Control::Progress(Progress { next, highest, missing }) => {
                words[..3].copy_from_slice(&[next.value(), highest.value(), missing]);
                (0, 3)
            }
        };
        let length = HEADER + 4 * count;
        if buffer.len() < length {
            return 0;
        }
        write_header(self.kind(), add, timestamp, destination, buffer);
        for (room, word) in buffer[HEADER..length].chunks_exact_mut(4).zip(words) {
            room.copy_from_slice(&word.to_be_bytes());
        }
        length
    }
}

fn write_header(kind: (u16, u16), add: u32, timestamp: u32, destination: u32, buffer: &mut [u8]) {
    let first = CONTROL | u32::from(kind.0) << 16 | u32::from(kind.1);
    write_words([first, add, timestamp, destination], buffer);
}

#[inline]
fn write_words(words: [u32; 4], buffer: &mut [u8]) {
    for (room, word) in buffer.chunks_exact_mut(4).zip(words) {
        room.copy_from_slice(&word.to_be_bytes());
    }
}

/// Writes the header of a data packet to the front of `buffer`, which has at least [`HEADER`]
/// bytes.
#[inline]
pub fn write_data_header(
    seq: Seq,
    message: Message,
    timestamp: u32,
    destination: u32,
    buffer: &mut [u8],
) {
    write_words([seq.value(), message.0, timestamp, destination], buffer);
}

#[cfg(test)]
mod tests;
