//! Frames over a stream: reading, writing, greetings, and the errors of a transfer.

use crate::frame::{Frame, HEADER, Kind, MAGIC, ProtocolError, VERSION};
use crate::names::printable;
use crate::stream::{Stream, is_timeout};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Timeout of the peer's greeting.
pub const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a connection without a byte from the sender, and of a write that the peer does not
/// read.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// Interval of the PINGs of an idle sender: well below the time after which another sender may take
/// over its file.
pub const PING_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes that a writer buffers before it writes them.
const BATCH: usize = 1 << 18;
/// Minimum free space of a reader's buffer before a read, in bytes.
const MIN_FREE: usize = 1 << 17;

/// The reason why a transfer ended early.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The connection failed.
    #[error("{0}")]
    Connection(#[from] io::Error),
    /// The peer violates the protocol.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The peer stopped the transfer.
    #[error("{reason}")]
    Stopped {
        /// Another attempt may succeed.
        again: bool,
        /// The reason, printable.
        reason: String,
    },
    /// This side stops the transfer, and tells the peer the reason.
    #[error("{reason}")]
    GivenUp {
        /// Another attempt may succeed.
        again: bool,
        /// The reason, printable.
        reason: String,
    },
    /// The peer does not speak this version of the protocol.
    #[error("{0}")]
    Incompatible(String),
    /// The user ended the transfer.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// Whether another attempt may succeed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            // Another attempt would be refused too.
            Failure::Connection(error) => !matches!(
                error.kind(),
                io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::InvalidData
                    | io::ErrorKind::InvalidInput
                    | io::ErrorKind::PermissionDenied
            ),
            Failure::Stopped { again, .. } | Failure::GivenUp { again, .. } => *again,
            Failure::Protocol(_) | Failure::Incompatible(_) | Failure::Interrupted => false,
        }
    }

    /// This side stops the transfer; another attempt cannot succeed.
    pub(crate) fn give_up(reason: impl Into<String>) -> Self {
        Failure::GivenUp { again: false, reason: reason.into() }
    }
}

/// The error of a connection that the peer closed without STOP or DONE.
fn closed_by_peer() -> Failure {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the peer closed the connection").into()
}

/// Writes frames. Small ones are buffered until [`flush`](Self::flush).
pub(crate) struct Writer {
    stream: Arc<dyn Stream>,
    /// Frames that are not written yet. Large blocks are built in place.
    pub out: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(stream: Arc<dyn Stream>) -> Self {
        Writer { stream, out: Vec::new() }
    }

    /// Appends a frame to the buffer.
    pub(crate) fn put(&mut self, frame: &Frame<'_>) {
        frame.encode(&mut self.out);
    }

    /// Whether the buffer has enough bytes to be written.
    pub(crate) fn is_batch(&self) -> bool {
        self.out.len() >= BATCH
    }

    /// Writes the buffer.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.write(0..self.out.len())?;
        self.out.clear();
        Ok(())
    }

    /// Writes a part of the buffer. A peer that does not read for [`IDLE_TIMEOUT`] has failed.
    pub(crate) fn write(&self, range: Range<usize>) -> Result<(), Failure> {
        let mut rest = &self.out[range];
        while !rest.is_empty() {
            let written = self.stream.write(rest, Instant::now() + IDLE_TIMEOUT);
            let count = written.map_err(|error| match is_timeout(&error) {
                true => io::Error::new(error.kind(), "the peer does not read"),
                false => error,
            })?;
            rest = &rest[count..];
        }
        Ok(())
    }

    /// Writes the greeting.
    pub(crate) fn greet(&mut self) -> Result<(), Failure> {
        self.out.extend(MAGIC);
        self.out.push(VERSION);
        self.flush()
    }
}

/// Time since the last byte from the peer, or since this side was last busy with its data.
#[derive(Debug)]
pub(crate) struct IdleTimer {
    start: Instant,
    /// Milliseconds after `start`.
    last: AtomicU64,
}

impl IdleTimer {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(IdleTimer { start: Instant::now(), last: AtomicU64::new(0) })
    }

    /// Restarts the timer.
    pub(crate) fn touch(&self) {
        self.last.store(self.start.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// Returns the time since the last [`touch`](Self::touch).
    pub(crate) fn idle(&self) -> Duration {
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
    idle_timer: Arc<IdleTimer>,
}

impl Reader {
    pub(crate) fn new(stream: Arc<dyn Stream>, idle_timer: Arc<IdleTimer>) -> Self {
        Reader { stream, buffer: Vec::new(), start: 0, end: 0, idle_timer }
    }

    /// Whether the buffer has a complete frame.
    pub(crate) fn has_frame(&self) -> bool {
        let available = &self.buffer[self.start..self.end];
        let header = available.first_chunk::<HEADER>().map(Frame::header);
        header.is_some_and(|header| {
            header.is_ok_and(|(_, length)| available.len() >= HEADER + length)
        })
    }

    /// Reads until the buffer has `count` bytes; returns false at `deadline`.
    fn fill(&mut self, count: usize, deadline: Instant) -> Result<bool, Failure> {
        while self.end - self.start < count {
            if self.start > 0 && self.buffer.len() - self.end < MIN_FREE {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            if self.buffer.len() - self.end < MIN_FREE {
                self.buffer.resize(self.end + 2 * MIN_FREE, 0);
            }
            match self.stream.read(&mut self.buffer[self.end..], deadline) {
                Ok(0) => return Err(closed_by_peer()),
                Ok(count) => self.end += count,
                Err(error) if is_timeout(&error) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
            self.idle_timer.touch();
        }
        Ok(true)
    }

    /// Reads the peer's greeting.
    fn expect_greeting(&mut self, timeout: Duration) -> Result<(), Failure> {
        let incompatible = |reason: &str| Err(Failure::Incompatible(reason.into()));
        if !self.fill(MAGIC.len() + 1, Instant::now() + timeout)? {
            return incompatible("the peer sends no greeting");
        }
        let greeting = &self.buffer[self.start..self.start + MAGIC.len() + 1];
        let (magic, version) = (&greeting[..MAGIC.len()], greeting[MAGIC.len()]);
        if magic != MAGIC {
            return incompatible("the peer is neither cwnd send nor cwnd recv");
        }
        if version != VERSION {
            let older = if version < VERSION { "the peer" } else { "this side" };
            return Err(Failure::Incompatible(format!(
                "the peer uses version {version} of the transfer protocol, \
                 this side version {VERSION}: update {older}"
            )));
        }
        self.start += MAGIC.len() + 1;
        Ok(())
    }

    /// Reads the next frame; `None` if it is not complete at `deadline`.
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

/// Writes this side's greeting and reads the peer's. Fails if the peer's is of another protocol or
/// version, or does not arrive within `timeout`. If the peer has closed the connection, it may have
/// sent the reason before.
pub(crate) fn exchange_greetings(
    writer: &mut Writer,
    reader: &mut Reader,
    timeout: Duration,
) -> Result<(), Failure> {
    let greeted = writer.greet();
    reader.expect_greeting(timeout)?;
    greeted
}

/// Returns the failure for a STOP frame.
pub(crate) fn stopped(again: bool, reason: &[u8], who: &str) -> Failure {
    Failure::Stopped { again, reason: format!("{who} stopped the transfer: {}", printable(reason)) }
}

/// Returns the failure for a frame that is not allowed here.
pub(crate) fn unexpected(kind: Kind, from: &str) -> Failure {
    ProtocolError(format!("a frame {kind:?} from a {from}")).into()
}
