//! Queue of the receiver's replies. A separate thread reads them, so that sender and receiver
//! cannot block each other.

use crate::channel::{Failure, IDLE_TIMEOUT, Reader, stopped, unexpected};
use crate::frame::{Decision, Frame, WINDOW};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

/// Maximum number of queued replies.
const MAX_REPLIES: usize = 4 * WINDOW;

/// A reply.
#[derive(Debug)]
pub(super) enum Reply {
    Answer { number: u64, decision: Decision, first: u64, reason: Vec<u8> },
    Want { number: u64, first: u64, count: u64 },
    Room(bool),
    Done,
}

#[derive(Debug)]
pub(super) struct ReplyQueue {
    queue: SyncSender<Result<Reply, Failure>>,
    replies: Receiver<Result<Reply, Failure>>,
}

impl Default for ReplyQueue {
    fn default() -> Self {
        let (queue, replies) = sync_channel(MAX_REPLIES);
        ReplyQueue { queue, replies }
    }
}

impl ReplyQueue {
    /// Returns the work of the reading thread: it reads replies until DONE, a failure (such as that
    /// of an aborted stream), or the end of this queue.
    pub(super) fn filler(&self, mut reader: Reader) -> impl FnOnce() + Send + use<> {
        let queue = self.queue.clone();
        move || loop {
            let reply = match reader.next(Instant::now() + IDLE_TIMEOUT) {
                Ok(None | Some(Frame::Ping)) => continue,
                Ok(Some(frame)) => parse(&frame),
                Err(failure) => Err(failure),
            };
            let is_last = matches!(reply, Ok(Reply::Done) | Err(_));
            if queue.send(reply).is_err() || is_last {
                return;
            }
        }
    }

    /// Removes a reply from the queue, if there is one.
    pub(super) fn take(&self) -> Result<Option<Reply>, Failure> {
        self.replies.try_recv().ok().transpose()
    }

    /// Waits for a reply until `deadline`.
    pub(super) fn next(&self, deadline: Instant) -> Result<Option<Reply>, Failure> {
        let remaining = deadline.saturating_duration_since(Instant::now());
        self.replies.recv_timeout(remaining).ok().transpose()
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
