//! The packets and frames of a datagram, whose packets are not encrypted (RFC 9000 sections 12, 17, 19).

use crate::handshake::TAG;
use crate::seed::CID;
use cwnd_sim::record::{QuicKind, QuicPacket};
use std::ops::Range;

/// The bytes of a STREAM frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamFrame {
    pub id: u64,
    /// Offsets in the stream.
    pub range: Range<u64>,
}

/// What a datagram contains, in order.
enum Part {
    /// A packet: its type, the last bytes of its number, their count, and the bytes of the packet.
    Packet(QuicKind, u64, usize, usize),
    /// An acknowledgement of the packets from the first number to the last.
    Acked(u64, u64),
    Stream(StreamFrame),
    /// Another frame that elicits an acknowledgement.
    Eliciting,
}

/// Calls `take` for each STREAM frame of a datagram. What a stack of this version does not send ends
/// the reading.
pub(crate) fn stream_frames(datagram: &[u8], mut take: impl FnMut(StreamFrame)) {
    read(datagram, |part| {
        if let Part::Stream(frame) = part {
            take(frame);
        }
    });
}

/// Returns the packets of a datagram. `expand` returns the whole number of a packet of this type
/// from its last bytes and their count.
pub(crate) fn packets(
    datagram: &[u8],
    mut expand: impl FnMut(QuicKind, u64, usize) -> u64,
) -> Box<[QuicPacket]> {
    let mut packets: Vec<QuicPacket> = Vec::new();
    read(datagram, |part| {
        if let Part::Packet(kind, bits, count, size) = part {
            let (number, size) =
                (expand(kind, bits, count), u16::try_from(size).unwrap_or(u16::MAX));
            let (streams, acked) = (Vec::new(), Vec::new());
            packets.push(QuicPacket { kind, number, size, eliciting: false, streams, acked });
            return;
        }
        let Some(packet) = packets.last_mut() else { return };
        packet.eliciting |= !matches!(part, Part::Acked(..));
        match part {
            Part::Acked(first, last) => packet.acked.push((first, last)),
            Part::Stream(StreamFrame { id, range }) => {
                packet.streams.push((id, range.start, range.end - range.start));
            }
            Part::Packet(..) | Part::Eliciting => {}
        }
    });
    packets.into()
}

fn read(datagram: &[u8], mut take: impl FnMut(Part)) {
    let mut rest = Reader(datagram);
    while !rest.0.is_empty() {
        if rest.packet(&mut take).is_none() {
            return;
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        self.bytes(1)?.first().copied()
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads a variable-length integer.
    fn integer(&mut self) -> Option<u64> {
        let first = *self.0.first()?;
        let bytes = self.bytes(1 << (first >> 6))?;
        Some(big_endian(bytes) & (u64::MAX >> (66 - 8 * bytes.len())))
    }

    fn integers(&mut self, count: u64) -> Option<()> {
        (0..count).try_for_each(|_| self.integer().map(drop))
    }

    /// Returns bytes behind their number.
    fn sized(&mut self) -> Option<&'a [u8]> {
        let count = self.integer()?;
        self.bytes(usize::try_from(count).ok()?)
    }

    /// Reads a packet.
    fn packet(&mut self, take: &mut impl FnMut(Part)) -> Option<()> {
        let size = self.0.len();
        let first = self.byte()?;
        let count = usize::from(first & 3) + 1;
        if first & 0x80 == 0 {
            self.bytes(CID)?;
            let number = big_endian(self.bytes(count)?);
            take(Part::Packet(QuicKind::OneRtt, number, count, size));
            let frames = self.bytes(self.0.len().checked_sub(TAG)?)?;
            self.bytes(TAG)?;
            return Reader(frames).frames(take);
        }
        self.bytes(4)?;
        for _ in 0..2 {
            let length = self.byte()?;
            self.bytes(length.into())?;
        }
        let kind = match first >> 4 & 3 {
            // With a token.
            0 => self.sized().map(|_| QuicKind::Initial)?,
            2 => QuicKind::Handshake,
            // 0-RTT and Retry.
            _ => return None,
        };
        let mut rest = Reader(self.sized()?);
        let number = big_endian(rest.bytes(count)?);
        take(Part::Packet(kind, number, count, size - self.0.len()));
        // A frame that is not known does not hide the next packet.
        let _ = Reader(&rest.0[..rest.0.len().saturating_sub(TAG)]).frames(take);
        Some(())
    }

    fn frames(&mut self, take: &mut impl FnMut(Part)) -> Option<()> {
        while !self.0.is_empty() {
            self.frame(take)?;
        }
        Some(())
    }

    fn frame(&mut self, take: &mut impl FnMut(Part)) -> Option<()> {
        let kind = self.integer()?;
        match kind {
            // PADDING.
            0x00 => return Some(()),
            0x02 | 0x03 => return self.acknowledgement(kind == 0x03, take),
            0x08..=0x0f => {
                let id = self.integer()?;
                let offset = if kind & 4 != 0 { self.integer()? } else { 0 };
                let length = match kind & 2 {
                    0 => self.0.len() as u64,
                    _ => self.integer()?,
                };
                self.bytes(usize::try_from(length).ok()?)?;
                take(Part::Stream(StreamFrame { id, range: offset..offset + length }));
                return Some(());
            }
            // CONNECTION_CLOSE of a stack, and of an application.
            0x1c => {
                self.integers(2)?;
                return self.sized().map(drop);
            }
            0x1d => {
                self.integer()?;
                return self.sized().map(drop);
            }
            // PING, IMMEDIATE_ACK, HANDSHAKE_DONE.
            0x01 | 0x1f | 0x1e => {}
            // RESET_STREAM.
            0x04 => self.integers(3)?,
            // CRYPTO.
            0x06 => {
                self.integer()?;
                self.sized()?;
            }
            // NEW_TOKEN.
            0x07 => {
                self.sized()?;
            }
            // Limits, and reports that they are reached; RETIRE_CONNECTION_ID.
            0x10 | 0x12 | 0x13 | 0x14 | 0x16 | 0x17 | 0x19 => self.integers(1)?,
            // STOP_SENDING, and limits of a stream.
            0x05 | 0x11 | 0x15 => self.integers(2)?,
            // NEW_CONNECTION_ID.
            0x18 => {
                self.integers(2)?;
                let length = self.byte()?;
                self.bytes(usize::from(length) + 16)?;
            }
            // PATH_CHALLENGE, PATH_RESPONSE.
            0x1a | 0x1b => {
                self.bytes(8)?;
            }
            // ACK_FREQUENCY.
            0xaf => self.integers(4)?,
            _ => return None,
        }
        take(Part::Eliciting);
        Some(())
    }

    /// Reads an ACK frame, from its largest number down.
    fn acknowledgement(&mut self, ecn: bool, take: &mut impl FnMut(Part)) -> Option<()> {
        let mut last = self.integer()?;
        self.integer()?;
        let ranges = self.integer()?;
        let mut first = last.checked_sub(self.integer()?)?;
        take(Part::Acked(first, last));
        for _ in 0..ranges {
            last = first.checked_sub(self.integer()? + 2)?;
            first = last.checked_sub(self.integer()?)?;
            take(Part::Acked(first, last));
        }
        self.integers(if ecn { 3 } else { 0 })
    }
}

/// Returns the number of at most four bytes.
fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(datagram: &[u8]) -> Vec<StreamFrame> {
        let mut found = Vec::new();
        stream_frames(datagram, |frame| found.push(frame));
        found
    }

    #[test]
    fn integers_have_four_lengths() {
        // RFC 9000 appendix A.1.
        let encoded: [(&[u8], u64); 4] = [
            (&[0x25], 37),
            (&[0x7b, 0xbd], 15_293),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
        ];
        for (bytes, value) in encoded {
            assert_eq!(Reader(bytes).integer(), Some(value));
            assert_eq!(Reader(&bytes[1..]).integer().filter(|&read| read == value), None);
        }
    }

    #[test]
    fn streams_are_found_behind_a_handshake_packet_and_other_frames() {
        let mut datagram = vec![0xe0, 0, 0, 0, 1, 1, 9, 0, 3, 7, 7, 7];
        // A short header with a packet number of two bytes.
        datagram.extend([0x41, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1]);
        // ACK with a second range, MAX_DATA, and STREAM frames with all fields and with few.
        datagram.extend([0x02, 9, 0, 1, 2, 0, 3, 0x10, 0x40, 9]);
        datagram.extend([0x0e, 2, 0x44, 0, 3, 0, 0, 0, 0x08, 6, 0, 0]);
        datagram.extend([0xff; TAG]);
        let frames = [StreamFrame { id: 2, range: 1024..1027 }, StreamFrame { id: 6, range: 0..2 }];
        assert_eq!(found(&datagram), frames);
        let packets = packets(&datagram, |_, number, bytes| number + 100 * bytes as u64);
        let [handshake, data] = &*packets else { panic!("{packets:?}") };
        assert_eq!(
            (handshake.kind, handshake.number, handshake.size),
            (QuicKind::Handshake, 107, 12)
        );
        assert_eq!((data.kind, data.number, data.eliciting), (QuicKind::OneRtt, 201, true));
        assert_eq!((&data.acked[..], data.streams.len()), (&[(7, 9), (2, 5)][..], 2));
        for end in 0..datagram.len() {
            found(&datagram[..end]);
        }
    }
}
