//! Loss reports (NAKs): compressed loss lists, draft-gg-udt-03 section 6.4.

use super::{Malformed, word};
use crate::seq::Seq;

const RANGE: u32 = 1 << 31;

/// A range of missing packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first missing packet.
    pub first: Seq,
    /// The last missing packet.
    pub last: Seq,
}

/// An iterator over the ranges of a loss list. The list is not empty, and no range ends before it
/// begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Losses<'a>(&'a [u8]);

impl<'a> Losses<'a> {
    /// Parses a loss list in wire format; `None` if it is empty or has an invalid range.
    pub fn parse(info: &'a [u8]) -> Option<Self> {
        if info.is_empty() || !info.len().is_multiple_of(4) {
            return None;
        }
        let mut at = 0;
        while at < info.len() {
            let (range, next) = Losses::read(info, at)?;
            if range.first.to(range.last) < 0 {
                return None;
            }
            at = next;
        }
        Some(Losses(info))
    }

    fn read(info: &[u8], at: usize) -> Option<(Range, usize)> {
        let first = word(info, at);
        if first & RANGE == 0 {
            return Some((Range { first: Seq::new(first), last: Seq::new(first) }, at + 4));
        }
        let last = word(info, at + 4);
        let range = Range { first: Seq::new(first), last: Seq::new(last) };
        (at + 8 <= info.len() && last & RANGE == 0).then_some((range, at + 8))
    }

    /// The loss list in wire format.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }
}

impl Iterator for Losses<'_> {
    type Item = Range;

    fn next(&mut self) -> Option<Range> {
        if self.0.is_empty() {
            return None;
        }
        let (range, next) = Losses::read(self.0, 0)?;
        self.0 = &self.0[next..];
        Some(range)
    }
}

/// Encodes a loss list into a buffer.
#[derive(Debug)]
pub struct NakWriter<'a> {
    buffer: &'a mut [u8],
    length: usize,
}

impl<'a> NakWriter<'a> {
    /// Creates an empty loss list in `buffer`.
    pub fn new(buffer: &'a mut [u8]) -> Self {
        NakWriter { buffer, length: 0 }
    }

    /// Adds a range. Returns false if it does not fit.
    pub fn push(&mut self, range: Range) -> bool {
        let Range { first, last } = range;
        let single = first == last;
        let needed = if single { 4 } else { 8 };
        let Some(room) = self.buffer.get_mut(self.length..self.length + needed) else {
            return false;
        };
        let mark = if single { 0 } else { RANGE };
        room[..4].copy_from_slice(&(first.value() | mark).to_be_bytes());
        if !single {
            room[4..].copy_from_slice(&last.value().to_be_bytes());
        }
        self.length += needed;
        true
    }

    /// Returns the loss list.
    ///
    /// # Errors
    /// [`Malformed::Range`] if no range was added, or a range ends before it begins.
    pub fn finish(self) -> Result<Losses<'a>, Malformed> {
        Losses::parse(&self.buffer[..self.length]).ok_or(Malformed::Range)
    }
}
