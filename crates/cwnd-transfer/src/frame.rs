//! Frames of the protocol: encoding and decoding without I/O. docs/transfer.md describes the
//! protocol.

use crate::hash::{BLOCK, Value};
use crate::names::MAX_PATH;

/// Greeting of both sides, followed by [`VERSION`].
pub const MAGIC: &[u8; 7] = b"cwndxfr";
/// Version of the protocol.
pub const VERSION: u8 = 3;
/// Bytes of a frame's kind and length.
pub const HEADER: usize = 5;
/// Maximum length of a reason in bytes.
pub const MAX_REASON: usize = 512;
/// Maximum number of offers without their last answer.
pub const WINDOW: usize = 1024;
/// Maximum number of offers without their last answer of files of more than one block or of unknown
/// size.
pub const LARGE_WINDOW: usize = 8;
/// Maximum number of values in one CLAIM.
pub const VALUES: usize = 64;
/// Maximum number of ranges of missing blocks of a file.
pub const RANGES: usize = 4096;
/// Maximum number of damaged blocks of a file that are requested again.
pub const DAMAGED: u64 = 8;
/// Maximum number of runs of data in one BLOCK: that of pages of 4096 bytes.
pub const EXTENTS: usize = 129;

const BLOCK_HEAD: usize = 8 + 8 + 32 + 4 + 2;

/// A violation of the protocol by the peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("protocol violation by the peer: {0}")]
pub struct ProtocolError(pub String);

/// Returns the error of a violation of the protocol.
pub(crate) fn violation<T>(what: impl Into<String>) -> Result<T, ProtocolError> {
    Err(ProtocolError(what.into()))
}

/// Returns the violation `what` of the protocol unless the condition holds.
pub(crate) fn require(holds: bool, what: &str) -> Result<(), ProtocolError> {
    if holds { Ok(()) } else { violation(what) }
}

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $value:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_doc])* $variant = $value,)* }

        impl $name {
            fn from_byte(byte: u8) -> Option<Self> {
                match byte { $($value => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

numbered! {
    /// The kind of a frame.
    Kind {
        /// Number of files and bytes.
        Plan = 1,
        /// A file, folder or link that could be sent.
        Offer = 2,
        /// Values of blocks that the sender has.
        Claim = 3,
        /// A block of a file.
        Block = 4,
        /// Blocks without data.
        Hole = 5,
        /// All of a file was sent.
        End = 6,
        /// An offer is withdrawn.
        Abort = 7,
        /// The survey is complete.
        Counted = 8,
        /// The receiver's decision on an offer.
        Answer = 16,
        /// Blocks that the receiver wants.
        Want = 17,
        /// The receiver's answer to the plan.
        Room = 18,
        /// The transfer ends early.
        Stop = 32,
        /// The transfer is complete.
        Done = 33,
        /// The connection is in use.
        Ping = 34,
    }
}

numbered! {
    /// Type of an offer.
    What {
        /// A file.
        File = 1,
        /// A file of unknown size.
        Stream = 2,
        /// A folder.
        Folder = 3,
        /// Mode and time of a folder that is complete.
        Seal = 4,
        /// A symbolic link.
        Symlink = 5,
        /// A hard link to a file of this transfer.
        Link = 6,
    }
}

numbered! {
    /// Decision of a receiver on an offer.
    Decision {
        /// The entry is complete at the receiver: the last answer.
        Present = 1,
        /// Send the blocks from `first` on.
        Send = 2,
        /// Claim the values of the first `first` blocks.
        Claim = 3,
        /// The entry is refused: the last answer.
        Refused = 4,
        /// Another sender is sending the same file: an answer follows.
        Wait = 5,
    }
}

impl Kind {
    /// Returns the largest payload of this kind in bytes.
    #[must_use]
    pub const fn max_length(self) -> usize {
        match self {
            Kind::Plan => 25,
            Kind::Offer => 36 + 2 * MAX_PATH + 8,
            Kind::Claim => 16 + 32 * VALUES,
            Kind::Block => BLOCK_HEAD + 8 * EXTENTS + BLOCK as usize,
            Kind::Hole | Kind::Want => 24,
            Kind::End => 48,
            Kind::Abort => 8 + MAX_REASON,
            Kind::Answer => 17 + MAX_REASON,
            Kind::Room => 1,
            Kind::Stop => 1 + MAX_REASON,
            Kind::Counted | Kind::Done | Kind::Ping => 0,
        }
    }
}

/// Totals and flags of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Number of files.
    pub files: u64,
    /// Their sizes in bytes.
    pub bytes: u64,
    /// Bytes that they occupy: fewer than `bytes` for sparse files.
    pub space: u64,
    /// Dry run: the receiver decides on each offer but writes nothing.
    pub dry_run: bool,
    /// Files are compared by hashes, not by size and time.
    pub checksum: bool,
}

/// A time since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Whole seconds.
    pub secs: i64,
    /// Nanoseconds of the second: below 1,000,000,000.
    pub nanos: u32,
}

/// A file, folder or link that could be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer<'a> {
    /// The type.
    pub what: What,
    /// Hard links to this file follow.
    pub linked: bool,
    /// Its permission bits.
    pub mode: u16,
    /// Its size in bytes; 0 if unknown.
    pub size: u64,
    /// Bytes that it occupies.
    pub space: u64,
    /// Modification time.
    pub mtime: Stamp,
    /// Its path within the receiver's folder.
    pub path: &'a [u8],
    /// Target of a symbolic link; for a hard link, the number of the file's offer (`u64`) and the
    /// file's path.
    pub target: &'a [u8],
}

/// A block of a file. A sparse block has only its runs of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The offer's number.
    pub number: u64,
    /// The block's position in the file.
    pub index: u64,
    /// The value of the whole block.
    pub value: Value,
    /// The length of the whole block in bytes.
    pub length: u32,
    extents: &'a [u8],
    /// The runs of data, concatenated.
    pub data: &'a [u8],
}

impl<'a> Block<'a> {
    /// Iterates over the runs of data: their offset in the block, and the bytes.
    pub fn runs(&self) -> impl Iterator<Item = (usize, &'a [u8])> + use<'a> {
        let dense = self.extents.is_empty() && !self.data.is_empty();
        let mut rest = self.data;
        let runs = self.extents.chunks_exact(8).map(move |entry| {
            let mut fields = Fields(entry);
            let offset = fields.u32().unwrap_or_default() as usize;
            let length = fields.u32().unwrap_or_default() as usize;
            let (run, remainder) = rest.split_at(length.min(rest.len()));
            rest = remainder;
            (offset, run)
        });
        dense.then_some((0, self.data)).into_iter().chain(runs)
    }

    /// Whether the block has no holes.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        self.data.len() == self.length as usize
    }
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of docs/transfer.md")]
pub enum Frame<'a> {
    Plan(Plan),
    Offer(Offer<'a>),
    Claim { number: u64, first: u64, values: &'a [u8] },
    Block(Block<'a>),
    Hole { number: u64, first: u64, count: u64 },
    End { number: u64, size: u64, root: Option<Value> },
    Abort { number: u64, reason: &'a [u8] },
    Counted,
    Answer { number: u64, decision: Decision, first: u64, reason: &'a [u8] },
    Want { number: u64, first: u64, count: u64 },
    Room { survey: bool },
    Stop { again: bool, reason: &'a [u8] },
    Done,
    Ping,
}

/// Truncates a reason to the length that a frame allows, at the end of a character.
fn truncate_reason(reason: &[u8]) -> &[u8] {
    let mut end = reason.len().min(MAX_REASON);
    while end < reason.len() && end > 0 && reason[end] & 0xC0 == 0x80 {
        end -= 1;
    }
    &reason[..end]
}

/// Appends the header of a BLOCK frame, whose data follow. Returns the offset of its value, which
/// [`finish_block`] writes.
pub(crate) fn begin_block(out: &mut Vec<u8>, number: u64, index: u64) -> usize {
    out.push(Kind::Block as u8);
    out.extend([0; 4]);
    out.extend(number.to_be_bytes());
    out.extend(index.to_be_bytes());
    let at = out.len();
    out.extend([0; 38]);
    at
}

/// Completes the header from [`begin_block`]: `extents` (offset, length) already follow the header.
pub(crate) fn finish_block(out: &mut [u8], at: usize, value: &Value, length: u32, extents: u16) {
    let begin = at - 16;
    let payload = (out.len() - begin) as u32;
    out[begin - 4..begin].copy_from_slice(&payload.to_be_bytes());
    out[at..at + 32].copy_from_slice(value);
    out[at + 32..at + 36].copy_from_slice(&length.to_be_bytes());
    out[at + 36..at + 38].copy_from_slice(&extents.to_be_bytes());
}

impl<'a> Frame<'a> {
    /// Returns the kind of the frame.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Frame::Plan(_) => Kind::Plan,
            Frame::Offer(_) => Kind::Offer,
            Frame::Claim { .. } => Kind::Claim,
            Frame::Block(_) => Kind::Block,
            Frame::Hole { .. } => Kind::Hole,
            Frame::End { .. } => Kind::End,
            Frame::Abort { .. } => Kind::Abort,
            Frame::Counted => Kind::Counted,
            Frame::Answer { .. } => Kind::Answer,
            Frame::Want { .. } => Kind::Want,
            Frame::Room { .. } => Kind::Room,
            Frame::Stop { .. } => Kind::Stop,
            Frame::Done => Kind::Done,
            Frame::Ping => Kind::Ping,
        }
    }

    /// Appends the frame to `out`, header included.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.kind() as u8);
        let at = out.len();
        out.extend([0; 4]);
        match *self {
            Frame::Plan(plan) => {
                put(out, &[plan.files, plan.bytes, plan.space]);
                out.push(u8::from(plan.dry_run) | u8::from(plan.checksum) << 1);
            }
            Frame::Offer(ref offer) => offer.encode(out),
            Frame::Claim { number, first, values } => {
                put(out, &[number, first]);
                out.extend(values);
            }
            Frame::Block(ref block) => {
                put(out, &[block.number, block.index]);
                out.extend(block.value);
                out.extend(block.length.to_be_bytes());
                out.extend(((block.extents.len() / 8) as u16).to_be_bytes());
                out.extend(block.extents);
                out.extend(block.data);
            }
            Frame::Hole { number, first, count } | Frame::Want { number, first, count } => {
                put(out, &[number, first, count]);
            }
            Frame::End { number, size, root } => {
                put(out, &[number, size]);
                out.extend(root.iter().flatten());
            }
            Frame::Abort { number, reason } => {
                put(out, &[number]);
                out.extend(truncate_reason(reason));
            }
            Frame::Answer { number, decision, first, reason } => {
                put(out, &[number]);
                out.push(decision as u8);
                put(out, &[first]);
                out.extend(truncate_reason(reason));
            }
            Frame::Room { survey } => out.push(u8::from(survey)),
            Frame::Stop { again, reason } => {
                out.push(u8::from(again));
                out.extend(truncate_reason(reason));
            }
            Frame::Counted | Frame::Done | Frame::Ping => {}
        }
        let length = (out.len() - at - 4) as u32;
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// Reads the kind and the payload's length from the first [`HEADER`] bytes.
    ///
    /// # Errors
    /// The kind is unknown, or the frame is longer than its kind allows.
    pub fn header(bytes: &[u8; HEADER]) -> Result<(Kind, usize), ProtocolError> {
        let Some(kind) = Kind::from_byte(bytes[0]) else {
            return violation(format!("a frame of kind {}", bytes[0]));
        };
        let length = u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]) as usize;
        if length > kind.max_length() {
            return violation(format!("a frame {kind:?} of {length} bytes"));
        }
        Ok((kind, length))
    }

    /// Decodes a payload.
    ///
    /// # Errors
    /// The payload is not valid for the kind.
    pub fn decode(kind: Kind, payload: &'a [u8]) -> Result<Self, ProtocolError> {
        Self::read(kind, Fields(payload)).ok_or_else(|| {
            ProtocolError(format!("a malformed frame {kind:?} of {} bytes", payload.len()))
        })
    }

    fn read(kind: Kind, mut fields: Fields<'a>) -> Option<Self> {
        let frame = match kind {
            Kind::Plan => {
                let (files, bytes, space) = (fields.u64()?, fields.u64()?, fields.u64()?);
                let flags = fields.u8()?;
                let (dry_run, checksum) = (flags & 1 != 0, flags & 2 != 0);
                Frame::Plan(Plan { files, bytes, space, dry_run, checksum })
            }
            Kind::Offer => Frame::Offer(Offer::read(&mut fields)?),
            Kind::Claim => {
                let (number, first, values) = (fields.u64()?, fields.u64()?, fields.rest());
                let whole = !values.is_empty() && values.len().is_multiple_of(32);
                whole.then_some(Frame::Claim { number, first, values })?
            }
            Kind::Block => Frame::Block(Block::read(&mut fields)?),
            Kind::Hole | Kind::Want => {
                let (number, first, count) = (fields.u64()?, fields.u64()?, fields.u64()?);
                (count > 0).then_some(())?;
                match kind {
                    Kind::Hole => Frame::Hole { number, first, count },
                    _ => Frame::Want { number, first, count },
                }
            }
            Kind::End => {
                let (number, size, rest) = (fields.u64()?, fields.u64()?, fields.rest());
                let root = if rest.is_empty() { None } else { Some(rest.try_into().ok()?) };
                Frame::End { number, size, root }
            }
            Kind::Abort => Frame::Abort { number: fields.u64()?, reason: fields.rest() },
            Kind::Answer => Frame::Answer {
                number: fields.u64()?,
                decision: Decision::from_byte(fields.u8()?)?,
                first: fields.u64()?,
                reason: fields.rest(),
            },
            Kind::Room => Frame::Room { survey: fields.u8()? != 0 },
            Kind::Stop => Frame::Stop { again: fields.u8()? != 0, reason: fields.rest() },
            Kind::Counted => Frame::Counted,
            Kind::Done => Frame::Done,
            Kind::Ping => Frame::Ping,
        };
        fields.0.is_empty().then_some(frame)
    }
}

impl<'a> Offer<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend([self.what as u8, u8::from(self.linked)]);
        out.extend(self.mode.to_be_bytes());
        put(out, &[self.size, self.space]);
        out.extend(self.mtime.secs.to_be_bytes());
        out.extend(self.mtime.nanos.to_be_bytes());
        out.extend((self.path.len() as u16).to_be_bytes());
        out.extend(self.path);
        out.extend(self.target);
    }

    fn read(fields: &mut Fields<'a>) -> Option<Self> {
        let what = What::from_byte(fields.u8()?)?;
        let linked = fields.u8()? != 0;
        let mode = fields.u16()?;
        let (size, space) = (fields.u64()?, fields.u64()?);
        let mtime = Stamp { secs: fields.u64()?.cast_signed(), nanos: fields.u32()? };
        let length = fields.u16()? as usize;
        let path = fields.take(length)?;
        let offer = Offer { what, linked, mode, size, space, mtime, path, target: fields.rest() };
        (mtime.nanos < 1_000_000_000).then_some(offer)
    }
}

impl<'a> Block<'a> {
    fn read(fields: &mut Fields<'a>) -> Option<Self> {
        let (number, index) = (fields.u64()?, fields.u64()?);
        let value = fields.take(32)?.try_into().ok()?;
        let length = fields.u32()?;
        let count = fields.u16()? as usize;
        let (extents, data) = (fields.take(8 * count)?, fields.rest());
        let (mut end, mut sum) = (0, 0);
        for entry in extents.chunks_exact(8) {
            let mut entry = Fields(entry);
            let (offset, run) = (u64::from(entry.u32()?), u64::from(entry.u32()?));
            (run > 0 && offset >= end).then_some(())?;
            end = offset + run;
            sum += run;
        }
        if count == 0 {
            (end, sum) = (data.len() as u64, data.len() as u64);
            (sum == u64::from(length)).then_some(())?;
        }
        let fits = end <= u64::from(length) && sum == data.len() as u64;
        let bounded = length > 0 && u64::from(length) <= BLOCK && count <= EXTENTS;
        (fits && bounded).then_some(Block { number, index, value, length, extents, data })
    }
}

fn put(out: &mut Vec<u8>, numbers: &[u64]) {
    for number in numbers {
        out.extend(number.to_be_bytes());
    }
}

/// The unread bytes of a payload.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn round_trip(frame: &Frame<'_>) -> Result<(), TestCaseError> {
        let mut out = Vec::new();
        frame.encode(&mut out);
        let (kind, length) = Frame::header(out[..HEADER].try_into().unwrap()).unwrap();
        prop_assert_eq!(length, out.len() - HEADER);
        prop_assert_eq!(&Frame::decode(kind, &out[HEADER..]).unwrap(), frame);
        Ok(())
    }

    proptest! {
        #[test]
        fn offers_survive(what in 1u8..=6, linked: bool, mode: u16, size: u64, space: u64, secs: i64,
                          nanos in 0u32..1_000_000_000, path in vec(any::<u8>(), 0..300),
                          target in vec(any::<u8>(), 0..300)) {
            let what = What::from_byte(what).unwrap();
            let mtime = Stamp { secs, nanos };
            let (path, target) = (&path[..], &target[..]);
            round_trip(&Frame::Offer(Offer { what, linked, mode, size, space, mtime, path, target }))?;
        }

        #[test]
        fn other_frames_survive(a: u64, b: u64, c in 1u64.., flag: bool, root: Option<[u8; 32]>,
                                reason in vec(any::<u8>(), 0..MAX_REASON), decision in 1u8..=5) {
            let decision = Decision::from_byte(decision).unwrap();
            let reason = &reason[..];
            let plan = Plan { files: a, bytes: b, space: c, dry_run: flag, checksum: !flag };
            for frame in [
                Frame::Plan(plan),
                Frame::Claim { number: a, first: b, values: &[7; 64] },
                Frame::Hole { number: a, first: b, count: c },
                Frame::Want { number: a, first: b, count: c },
                Frame::End { number: a, size: b, root },
                Frame::Abort { number: a, reason },
                Frame::Answer { number: a, decision, first: b, reason },
                Frame::Room { survey: flag },
                Frame::Stop { again: flag, reason },
                Frame::Counted, Frame::Done, Frame::Ping,
            ] {
                round_trip(&frame)?;
            }
        }

        #[test]
        fn noise_is_refused_or_decoded_within_bounds(kind: u8, payload in vec(any::<u8>(), 0..200)) {
            if let Some(kind) = Kind::from_byte(kind)
                && let Ok(Frame::Block(block)) = Frame::decode(kind, &payload)
            {
                let runs: Vec<_> = block.runs().collect();
                prop_assert!(runs.iter().all(|(at, run)| at + run.len() <= block.length as usize));
                prop_assert_eq!(runs.iter().map(|(_, run)| run.len()).sum::<usize>(), block.data.len());
            }
        }

        #[test]
        fn blocks_survive(index: u64, runs in vec((1u32..50, 1u32..50), 0..20), dense in 1usize..300) {
            let (mut extents, mut at, mut sum) = (Vec::new(), 0, 0);
            for (gap, run) in &runs {
                extents.extend((at + gap).to_be_bytes());
                extents.extend(run.to_be_bytes());
                (at, sum) = (at + gap + run, sum + run);
            }
            let data = vec![9; if runs.is_empty() { dense } else { sum as usize }];
            let length = if runs.is_empty() { dense as u32 } else { at + 3 };
            let block = Block { number: 3, index, value: [1; 32], length, extents: &extents, data: &data };
            round_trip(&Frame::Block(block))?;
            let mut out = Vec::new();
            let at = begin_block(&mut out, 3, index);
            out.extend(&extents);
            out.extend(&data);
            finish_block(&mut out, at, &[1; 32], length, runs.len() as u16);
            let mut other = Vec::new();
            Frame::Block(block).encode(&mut other);
            prop_assert_eq!(out, other);
        }
    }

    #[test]
    fn blocks_beyond_their_length_are_refused() {
        let encode = |length: u32, extents: &[(u32, u32)], data: usize| {
            let mut payload = vec![0; 48];
            payload.extend(length.to_be_bytes());
            payload.extend((extents.len() as u16).to_be_bytes());
            for (offset, run) in extents {
                payload.extend(offset.to_be_bytes());
                payload.extend(run.to_be_bytes());
            }
            payload.extend(vec![0; data]);
            Frame::decode(Kind::Block, &payload).is_ok()
        };
        assert!(encode(10, &[], 10) && encode(10, &[(2, 3), (5, 5)], 8));
        assert!(!encode(0, &[], 0) && !encode(10, &[], 9) && !encode(10, &[(8, 3)], 3));
        assert!(!encode(10, &[(2, 3), (4, 1)], 4) && !encode(10, &[(2, 3)], 4));
        assert!(!encode(10, &[(2, 0)], 0) && !encode(BLOCK as u32 + 1, &[(0, 1)], 1));
        assert!(!encode(10, &[(u32::MAX, u32::MAX)], 10));
    }

    #[test]
    fn reasons_are_truncated_between_characters() {
        let long = "ä".repeat(400);
        let mut out = Vec::new();
        Frame::Stop { again: false, reason: long.as_bytes() }.encode(&mut out);
        assert!(std::str::from_utf8(&out[6..]).is_ok() && out.len() <= 6 + MAX_REASON);
    }
}
