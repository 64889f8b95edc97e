//! The data of a flow on its streams.

use std::collections::BTreeMap;
use std::ops::Range;

/// The data of a stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    /// Bytes still to write; [`u64::MAX`] for no end.
    pub left: u64,
    pub written: u64,
    /// The end of what was sent.
    sent: u64,
    /// Whether the end of the data was written.
    pub finished: bool,
    /// Whether all data and the end were acknowledged.
    pub acknowledged: bool,
    /// Whether flow control refused the last write.
    pub blocked: bool,
}

impl Stream {
    /// Bytes that were written and have not been sent.
    pub(crate) fn unsent(&self) -> u64 {
        self.written - self.sent
    }

    /// Notes that a range was sent. Returns whether a part of it was sent before.
    pub(crate) fn transmitted(&mut self, range: Range<u64>) -> bool {
        let again = range.start < self.sent;
        self.sent = self.sent.max(range.end);
        again
    }
}

/// Returns a client's unidirectional streams by identifier (RFC 9000 section 2.1). `bytes` has the
/// number of bytes to send of each stream.
pub(crate) fn streams(bytes: impl Iterator<Item = u64>) -> BTreeMap<u64, Stream> {
    let stream = |(at, left): (u64, u64)| (4 * at + 2, Stream { left, ..Stream::default() });
    (0..).zip(bytes).map(stream).collect()
}
