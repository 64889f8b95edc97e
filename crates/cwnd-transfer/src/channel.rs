//! Frames over a stream.

use crate::frame::{Frame, HEADER, Kind, MAGIC, ProtocolError, VERSION};
use crate::names::printable;
use crate::stream::{Stream, is_timeout};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time in which the other side has to send its greeting.
pub const GREETING: Duration = Duration::from_secs(10);
/// The time after which a connection without a byte from the sender is ended.
pub const SILENCE: Duration = Duration::from_secs(15);
/// The time between the PINGs of a sender that has nothing else to send: well below the time after which another
/// sender may take over.
pub const PING: Duration = Duration::from_secs(1);

/// Bytes that a writer gathers before it writes them.
const BATCH: usize = 1 << 18;
/// Free bytes in a reader's buffer before it reads.
const ROOM: usize = 1 << 17;

/// Why a transfer ended early.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The connection failed.
    #[error("{0}")]
    Connection(#[from] io::Error),
    /// The peer violates the protocol.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The peer gave up; with `again`, another attempt may succeed.
    #[error("{reason}")]
    Stopped {
        /// Another attempt may succeed.
        again: bool,
        /// Why, fit to be printed.
        reason: String,
    },
    /// This side gives up, for the reason that the peer is told as well.
    #[error("{reason}")]
    GivenUp {
        /// Another attempt may succeed.
        again: bool,
        /// Why, fit to be printed.
        reason: String,
    },
    /// The peer speaks something else: there is nobody to talk to.
    #[error("{0}")]
    Stranger(String),
    /// The user ended the transfer.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// Whether another attempt may succeed.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Failure::Connection(_) => true,
            Failure::Stopped { again, .. } | Failure::GivenUp { again, .. } => *again,
            Failure::Protocol(_) | Failure::Stranger(_) | Failure::Interrupted => false,
        }
    }

    /// This side's decision to end the transfer for good.
    pub(crate) fn give_up(reason: impl Into<String>) -> Self {
        Failure::GivenUp { again: false, reason: reason.into() }
    }
}

/// The end of a connection that the peer closed without a word.
fn ended() -> Failure {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the other side has ended the connection").into()
}

/// Writes frames. Small ones are gathered until [`flush`](Self::flush).
pub(crate) struct Writer {
    stream: Arc<dyn Stream>,
    /// Frames that were not written yet. A large block is built in place.
    pub out: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(stream: Arc<dyn Stream>) -> Self {
        Writer { stream, out: Vec::new() }
    }

    /// Gathers a frame.
    pub(crate) fn put(&mut self, frame: &Frame<'_>) {
        frame.encode(&mut self.out);
    }

    /// Whether enough was gathered to be written.
    pub(crate) fn is_batch(&self) -> bool {
        self.out.len() >= BATCH
    }

    /// Writes everything.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.write(0..self.out.len())?;
        self.out.clear();
        Ok(())
    }

    /// Writes some of what was gathered; a peer that takes nothing for [`SILENCE`] has failed.
    pub(crate) fn write(&self, range: Range<usize>) -> Result<(), Failure> {
        let mut rest = &self.out[range];
        while !rest.is_empty() {
            let written = self.stream.write(rest, Instant::now() + SILENCE);
            let count = written.map_err(|error| match is_timeout(&error) {
                true => io::Error::new(error.kind(), "the other side reads nothing"),
                false => error,
            })?;
            rest = &rest[count..];
        }
        Ok(())
    }

    pub(crate) fn greet(&mut self) -> Result<(), Failure> {
        self.out.extend(MAGIC);
        self.out.push(VERSION);
        self.flush()
    }
}

/// When bytes arrived from a peer last.
#[derive(Debug)]
pub(crate) struct Pulse {
    start: Instant,
    /// Milliseconds after `start`.
    last: AtomicU64,
}

impl Pulse {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Pulse { start: Instant::now(), last: AtomicU64::new(0) })
    }

    pub(crate) fn beat(&self) {
        self.last.store(self.start.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// The time since.
    pub(crate) fn silence(&self) -> Duration {
        self.start
            .elapsed()
            .saturating_sub(Duration::from_millis(self.last.load(Ordering::Relaxed)))
    }
}

/// Reads frames into one buffer, which grows only as bytes arrive.
pub(crate) struct Reader {
    stream: Arc<dyn Stream>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    pulse: Arc<Pulse>,
}

impl Reader {
    pub(crate) fn new(stream: Arc<dyn Stream>, pulse: Arc<Pulse>) -> Self {
        Reader { stream, buffer: Vec::new(), start: 0, end: 0, pulse }
    }

    /// Whether a whole frame is in the buffer.
    pub(crate) fn has_frame(&self) -> bool {
        let have = &self.buffer[self.start..self.end];
        let header = have.first_chunk::<HEADER>().map(Frame::header);
        header.is_some_and(|header| header.is_ok_and(|(_, length)| have.len() >= HEADER + length))
    }

    /// Reads until `count` bytes are in the buffer; false when `deadline` is over before.
    fn fill(&mut self, count: usize, deadline: Instant) -> Result<bool, Failure> {
        while self.end - self.start < count {
            if self.start > 0 && self.buffer.len() - self.end < ROOM {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            if self.buffer.len() - self.end < ROOM {
                self.buffer.resize(self.end + 2 * ROOM, 0);
            }
            match self.stream.read(&mut self.buffer[self.end..], deadline) {
                Ok(0) => return Err(ended()),
                Ok(count) => self.end += count,
                Err(error) if is_timeout(&error) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
            self.pulse.beat();
        }
        Ok(true)
    }

    /// Reads the greeting.
    ///
    /// # Errors
    /// When it is another one, of another version, or does not come in [`GREETING`].
    pub(crate) fn expect_greeting(&mut self) -> Result<(), Failure> {
        let stranger = |reason: &str| Err(Failure::Stranger(reason.into()));
        if !self.fill(MAGIC.len() + 1, Instant::now() + GREETING)? {
            return stranger("the other side says nothing");
        }
        let greeting = &self.buffer[self.start..self.start + MAGIC.len() + 1];
        let (magic, version) = (&greeting[..MAGIC.len()], greeting[MAGIC.len()]);
        if magic != MAGIC {
            return stranger("the other side is neither cwnd send nor cwnd recv");
        }
        if version != VERSION {
            let older = if version < VERSION { "it" } else { "this one" };
            return Err(Failure::Stranger(format!(
                "the other side speaks version {version} of the transfer protocol, \
                 this one version {VERSION}: update {older}"
            )));
        }
        self.start += MAGIC.len() + 1;
        Ok(())
    }

    /// Reads the next frame; `None` when `deadline` is over before it is complete.
    pub(crate) fn next(&mut self, deadline: Instant) -> Result<Option<Frame<'_>>, Failure> {
        if !self.fill(HEADER, deadline)? {
            return Ok(None);
        }
        let header = self.buffer[self.start..].first_chunk::<HEADER>();
        let (kind, length) = Frame::header(header.unwrap_or(&[0; HEADER]))?;
        if !self.fill(HEADER + length, deadline)? {
            return Ok(None);
        }
        let payload = self.start + HEADER;
        self.start = payload + length;
        Ok(Some(Frame::decode(kind, &self.buffer[payload..self.start])?))
    }
}

/// Reads a frame that either side may send: what ends the transfer.
pub(crate) fn stopped(again: bool, reason: &[u8], who: &str) -> Failure {
    Failure::Stopped { again, reason: format!("{who} gave up: {}", printable(reason)) }
}

/// Fails because a frame of this kind is not expected here.
pub(crate) fn unexpected(kind: Kind, from: &str) -> Failure {
    ProtocolError(format!("a frame {kind:?} from a {from}")).into()
}
