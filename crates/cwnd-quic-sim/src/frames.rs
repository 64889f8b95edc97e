//! The packets and frames of a datagram, whose packets are not encrypted (RFC 9000 sections 12, 17, 19).

use crate::handshake::{TAG, number};
use crate::seed::CID;
use cwnd_sim::record::{QuicKind, QuicPacket};
use std::ops::{Range, RangeInclusive};

/// The bytes of a STREAM frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamFrame {
    pub id: u64,
    /// Their places in the stream.
    pub range: Range<u64>,
}

/// A frame other than PADDING.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Stream(StreamFrame),
    /// Packet numbers that an ACK frame acknowledges, from the largest down.
    Ack(RangeInclusive<u64>),
    /// Another frame that elicits an acknowledgement.
    Eliciting,
}

/// The header of a packet, and the bytes of the packet.
#[derive(Clone, Copy)]
struct Header {
    kind: QuicKind,
    number: u64,
    size: usize,
}

/// Calls `take` for each frame in a packet with a short header, with the number of the packet. What a
/// stack of this version does not send ends the reading.
pub(crate) fn frames(datagram: &[u8], mut take: impl FnMut(u64, Frame)) {
    read(datagram, |header, frame| {
        if let (QuicKind::OneRtt, Some(frame)) = (header.kind, frame) {
            take(header.number, frame);
        }
    });
}

/// Returns the packets of a datagram.
pub(crate) fn packets(datagram: &[u8]) -> Box<[QuicPacket]> {
    let mut packets: Vec<QuicPacket> = Vec::new();
    read(datagram, |Header { kind, number, size }, frame| {
        let Some(frame) = frame else {
            let size = u16::try_from(size).unwrap_or(u16::MAX);
            let (streams, acked) = (Vec::new(), Vec::new());
            packets.push(QuicPacket { kind, number, size, eliciting: false, streams, acked });
            return;
        };
        let Some(packet) = packets.last_mut() else { return };
        packet.eliciting |= !matches!(frame, Frame::Ack(_));
        match frame {
            Frame::Ack(numbers) => packet.acked.push(numbers.into_inner()),
            Frame::Stream(StreamFrame { id, range }) => {
                packet.streams.push((id, range.start, range.end - range.start));
            }
            Frame::Eliciting => {}
        }
    });
    packets.into()
}

/// Calls `take` for each packet with its header alone, and for each of its frames.
fn read(datagram: &[u8], mut take: impl FnMut(Header, Option<Frame>)) {
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
        let value = bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
        Some(value & (u64::MAX >> (66 - 8 * bytes.len())))
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
    fn packet(&mut self, take: &mut impl FnMut(Header, Option<Frame>)) -> Option<()> {
        let size = self.0.len();
        let first = self.byte()?;
        let count = usize::from(first & 3) + 1;
        if first & 0x80 == 0 {
            self.bytes(CID + count)?;
            let sealed = self.bytes(self.0.len())?;
            return frames_of(QuicKind::OneRtt, sealed, size, take);
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
        rest.bytes(count)?;
        // A frame that is not known does not hide the next packet.
        let _ = frames_of(kind, rest.0, size - self.0.len(), take);
        Some(())
    }

    fn frame(&mut self, take: &mut impl FnMut(Frame)) -> Option<()> {
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
                let range = offset..offset.checked_add(length)?;
                take(Frame::Stream(StreamFrame { id, range }));
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
        take(Frame::Eliciting);
        Some(())
    }

    /// Reads an ACK frame, from its largest number down.
    fn acknowledgement(&mut self, ecn: bool, take: &mut impl FnMut(Frame)) -> Option<()> {
        let mut last = self.integer()?;
        self.integer()?;
        let ranges = self.integer()?;
        let mut first = last.checked_sub(self.integer()?)?;
        take(Frame::Ack(first..=last));
        for _ in 0..ranges {
            last = first.checked_sub(self.integer()?.checked_add(2)?)?;
            first = last.checked_sub(self.integer()?)?;
            take(Frame::Ack(first..=last));
        }
        self.integers(if ecn { 3 } else { 0 })
    }
}

/// Reads the frames of a packet, which its seal follows. The number of the packet is in the seal.
fn frames_of(
    kind: QuicKind,
    sealed: &[u8],
    size: usize,
    take: &mut impl FnMut(Header, Option<Frame>),
) -> Option<()> {
    let (frames, tag) = sealed.split_at_checked(sealed.len().checked_sub(TAG)?)?;
    let header = Header { kind, number: number(tag)?, size };
    take(header, None);
    let mut frames = Reader(frames);
    while !frames.0.is_empty() {
        frames.frame(&mut |frame| take(header, Some(frame)))?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::seal;

    fn found(datagram: &[u8]) -> Vec<(u64, Frame)> {
        let mut found = Vec::new();
        frames(datagram, |number, frame| found.push((number, frame)));
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
    fn frames_are_found_behind_a_handshake_packet_and_others() {
        // A handshake packet with a packet number of one byte, and an ACK frame.
        let mut datagram = vec![0xe0, 0, 0, 0, 1, 1, 9, 0, 1 + 5 + TAG as u8, 3, 0x02, 2, 0, 0, 1];
        datagram.extend([0; TAG]);
        seal(&mut datagram, 0, 259);
        let handshake_size = datagram.len();
        // A short header with a packet number of two bytes.
        datagram.extend([0x41, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1]);
        // ACK with a second range, MAX_DATA, and STREAM frames with all fields and with few.
        datagram.extend([0x02, 9, 0, 1, 2, 0, 3, 0x10, 0x40, 9]);
        datagram.extend([0x0e, 2, 0x44, 0, 3, 0, 0, 0, 0x08, 6, 0, 0]);
        datagram.extend([0; TAG]);
        seal(&mut datagram, 0, 7);
        let streams = [(2, 1024..1027), (6, 0..2)];
        let expected = [Frame::Ack(7..=9), Frame::Ack(2..=5), Frame::Eliciting]
            .into_iter()
            .chain(streams.map(|(id, range)| Frame::Stream(StreamFrame { id, range })))
            .map(|frame| (7, frame));
        assert_eq!(found(&datagram), expected.collect::<Vec<_>>());
        let packets = packets(&datagram);
        let [handshake, data] = &*packets else { panic!("{packets:?}") };
        assert_eq!((handshake.kind, handshake.number), (QuicKind::Handshake, 259));
        assert_eq!((usize::from(handshake.size), handshake.eliciting), (handshake_size, false));
        assert_eq!(handshake.acked, [(1, 2)]);
        assert_eq!((data.kind, data.number, data.eliciting), (QuicKind::OneRtt, 7, true));
        assert_eq!((&data.acked[..], data.streams.len()), (&[(7, 9), (2, 5)][..], 2));
        for end in 0..datagram.len() {
            found(&datagram[..end]);
        }
    }
}
