//! Queue of the receiver's replies. A separate thread reads them, so that sender and receiver
//! cannot block each other.

use crate::channel::{Failure, Reader, stopped, unexpected};
use crate::frame::{Decision, Frame, WINDOW};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of queued replies.
const MAX_REPLIES: usize = 4 * WINDOW;
/// Interval at which the reading thread checks whether the queue is closed.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A reply.
#[derive(Debug)]
pub(super) enum Reply {
    Answer { number: u64, decision: Decision, first: u64, reason: Vec<u8> },
    Want { number: u64, first: u64, count: u64 },
    Room(bool),
    Done,
}

#[derive(Debug, Default)]
struct Replies {
    replies: VecDeque<Reply>,
    failure: Option<Failure>,
    closed: bool,
}

#[derive(Debug, Default)]
pub(super) struct ReplyQueue {
    queue: Mutex<Replies>,
    changed: Condvar,
}

impl ReplyQueue {
    fn queue(&self) -> MutexGuard<'_, Replies> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads replies until DONE, a failure, or [`close`](Self::close).
    pub(super) fn fill(&self, reader: &mut Reader) {
        let mut batch = Vec::new();
        loop {
            let reply = match reader.next(Instant::now() + POLL_INTERVAL) {
                Ok(None) => None,
                Ok(Some(Frame::Ping)) => None,
                Ok(Some(frame)) => match parse(&frame) {
                    Ok(reply) => Some(reply),
                    Err(failure) => return self.fail(batch, failure),
                },
                Err(failure) => return self.fail(batch, failure),
            };
            let done = matches!(reply, Some(Reply::Done));
            batch.extend(reply);
            // Queue all replies of one read at once.
            if done || !reader.has_frame() || batch.len() >= WINDOW {
                let mut queue = self.queue();
                while queue.replies.len() >= MAX_REPLIES && !queue.closed {
                    queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
                if !batch.is_empty() {
                    queue.replies.extend(batch.drain(..));
                    self.changed.notify_all();
                }
                if done || queue.closed {
                    return;
                }
            }
        }
    }

    fn fail(&self, batch: Vec<Reply>, failure: Failure) {
        let mut queue = self.queue();
        queue.replies.extend(batch);
        queue.failure = Some(failure);
        self.changed.notify_all();
    }

    /// Stops the reading thread.
    pub(super) fn close(&self) {
        self.queue().closed = true;
        self.changed.notify_all();
    }

    /// Removes a reply from the queue, if there is one.
    pub(super) fn take(&self) -> Result<Option<Reply>, Failure> {
        let mut queue = self.queue();
        let full = queue.replies.len() >= MAX_REPLIES;
        if let Some(reply) = queue.replies.pop_front() {
            if full {
                self.changed.notify_all();
            }
            return Ok(Some(reply));
        }
        queue.failure.take().map_or(Ok(None), Err)
    }

    /// Waits for a reply until `deadline`.
    pub(super) fn next(&self, deadline: Instant) -> Result<Option<Reply>, Failure> {
        let mut queue = self.queue();
        while queue.replies.is_empty() && queue.failure.is_none() {
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Ok(None);
            }
            let waited = self.changed.wait_timeout(queue, remaining);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(queue);
        self.take()
    }
}

fn parse(frame: &Frame<'_>) -> Result<Reply, Failure> {
    match *frame {
        Frame::Answer { number, decision, first, reason } => {
            Ok(Reply::Answer { number, decision, first, reason: reason.into() })
        }
        Frame::Want { number, first, count } => Ok(Reply::Want { number, first, count }),
        Frame::Room { survey } => Ok(Reply::Room(survey)),
        Frame::Done => Ok(Reply::Done),
        Frame::Stop { again, reason } => Err(stopped(again, reason, "the receiver")),
        ref other => Err(unexpected(other.kind(), "receiver")),
    }
}
