//! The STREAM and ACK frames of a datagram, whose packets are not encrypted (RFC 9000 sections 12,
//! 17, 19).

use crate::handshake::{TAG, number};
use crate::seed::CID;
use std::ops::{Range, RangeInclusive};

/// The bytes of a STREAM frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamFrame {
    pub id: u64,
    /// Offsets in the stream.
    pub range: Range<u64>,
}

/// A frame in a packet with a short header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A STREAM frame, and the number of its packet.
    Stream(u64, StreamFrame),
    /// Packet numbers that an ACK frame acknowledges.
    Ack(RangeInclusive<u64>),
}

/// Calls `take` for each STREAM frame of a datagram, and for each range of an ACK frame. What a stack
/// of this version does not send ends the reading.
pub(crate) fn frames(datagram: &[u8], mut take: impl FnMut(Frame)) {
    let mut rest = Reader(datagram);
    while !rest.0.is_empty() {
        if rest.packet(&mut take).is_none() {
            return;
        }
    }
}

/// Calls `take` for each STREAM frame of a datagram.
pub(crate) fn stream_frames(datagram: &[u8], mut take: impl FnMut(StreamFrame)) {
    frames(datagram, |frame| {
        if let Frame::Stream(_, frame) = frame {
            take(frame);
        }
    });
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

    /// Skips bytes behind their number.
    fn sized(&mut self) -> Option<()> {
        let count = self.integer()?;
        self.bytes(usize::try_from(count).ok()?).map(drop)
    }

    /// Reads a packet. Those of the handshake have no STREAM frames, and acknowledge none.
    fn packet(&mut self, take: &mut impl FnMut(Frame)) -> Option<()> {
        let first = self.byte()?;
        if first & 0x80 != 0 {
            self.bytes(4)?;
            for _ in 0..2 {
                let length = self.byte()?;
                self.bytes(length.into())?;
            }
            match first >> 4 & 3 {
                // Initial, with a token.
                0 => self.sized()?,
                // 0-RTT and Handshake.
                1 | 2 => {}
                // Retry.
                _ => return None,
            }
            return self.sized();
        }
        self.bytes(CID + usize::from(first & 3) + 1)?;
        let frames = self.bytes(self.0.len().checked_sub(TAG)?)?;
        let number = number(self.bytes(TAG)?)?;
        let mut frames = Reader(frames);
        while !frames.0.is_empty() {
            frames.frame(number, take)?;
        }
        Some(())
    }

    /// Reads an ACK frame without its counts of marks.
    fn ack(&mut self, take: &mut impl FnMut(Frame)) -> Option<()> {
        let mut largest = self.integer()?;
        self.integer()?;
        let ranges = self.integer()?;
        let mut smallest = largest.checked_sub(self.integer()?)?;
        take(Frame::Ack(smallest..=largest));
        for _ in 0..ranges {
            largest = smallest.checked_sub(self.integer()?.checked_add(2)?)?;
            smallest = largest.checked_sub(self.integer()?)?;
            take(Frame::Ack(smallest..=largest));
        }
        Some(())
    }

    /// Reads a frame of packet `number`.
    fn frame(&mut self, number: u64, take: &mut impl FnMut(Frame)) -> Option<()> {
        let kind = self.integer()?;
        match kind {
            // PADDING, PING, IMMEDIATE_ACK, HANDSHAKE_DONE.
            0x00 | 0x01 | 0x1f | 0x1e => Some(()),
            0x02 | 0x03 => {
                self.ack(take)?;
                self.integers(if kind == 0x03 { 3 } else { 0 })
            }
            // RESET_STREAM.
            0x04 => self.integers(3),
            0x06 => {
                self.integer()?;
                self.sized()
            }
            // NEW_TOKEN.
            0x07 => self.sized(),
            0x08..=0x0f => {
                let id = self.integer()?;
                let offset = if kind & 4 != 0 { self.integer()? } else { 0 };
                let length = match kind & 2 {
                    0 => self.0.len() as u64,
                    _ => self.integer()?,
                };
                self.bytes(usize::try_from(length).ok()?)?;
                let range = offset..offset.checked_add(length)?;
                take(Frame::Stream(number, StreamFrame { id, range }));
                Some(())
            }
            // Limits, and reports that they are reached; RETIRE_CONNECTION_ID.
            0x10 | 0x12 | 0x13 | 0x14 | 0x16 | 0x17 | 0x19 => self.integers(1),
            // STOP_SENDING, and limits of a stream.
            0x05 | 0x11 | 0x15 => self.integers(2),
            // NEW_CONNECTION_ID.
            0x18 => {
                self.integers(2)?;
                let length = self.byte()?;
                self.bytes(usize::from(length) + 16).map(drop)
            }
            // PATH_CHALLENGE, PATH_RESPONSE.
            0x1a | 0x1b => self.bytes(8).map(drop),
            // CONNECTION_CLOSE of a stack, and of an application.
            0x1c => {
                self.integers(2)?;
                self.sized()
            }
            0x1d => {
                self.integer()?;
                self.sized()
            }
            // ACK_FREQUENCY.
            0xaf => self.integers(4),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::seal;

    fn found(datagram: &[u8]) -> Vec<Frame> {
        let mut found = Vec::new();
        frames(datagram, |frame| found.push(frame));
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
        let mut datagram = vec![0xe0, 0, 0, 0, 1, 1, 9, 0, 3, 7, 7, 7];
        // A short header with a packet number of two bytes.
        datagram.extend([0x41, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1]);
        // ACK with a second range, MAX_DATA, and STREAM frames with all fields and with few.
        datagram.extend([0x02, 9, 0, 1, 2, 0, 3, 0x10, 0x40, 9]);
        let acknowledged = [7..=9, 2..=5].map(Frame::Ack);
        datagram.extend([0x0e, 2, 0x44, 0, 3, 0, 0, 0, 0x08, 6, 0, 0]);
        datagram.extend([0; TAG]);
        seal(&mut datagram, 0, 7);
        let streams =
            [StreamFrame { id: 2, range: 1024..1027 }, StreamFrame { id: 6, range: 0..2 }]
                .map(|frame| Frame::Stream(7, frame));
        assert_eq!(found(&datagram), [acknowledged, streams].concat());
        for end in 0..datagram.len() {
            found(&datagram[..end]);
        }
    }
}
