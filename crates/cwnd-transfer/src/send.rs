//! Sending, with several attempts.

use crate::channel::Failure;
use crate::event::{End, Event, Observe};
use crate::report::{Meter, peer_of};
use crate::sender::{EntryState, Sender, Task};
use crate::source::Source;
use crate::stream::{PathStats, Stream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use crate::sender::SendOptions;

/// Delay before the second attempt; it doubles with each attempt.
const FIRST_DELAY: Duration = Duration::from_millis(500);
/// Maximum delay between two attempts.
const MAX_DELAY: Duration = Duration::from_secs(8);
/// Timeout for the last acknowledgement.
const CLOSING: Duration = Duration::from_secs(5);

/// Stops transfers from another thread.
#[derive(Default)]
pub struct Control {
    stopped: AtomicBool,
    streams: Mutex<Vec<(u64, Arc<dyn Stream>)>>,
    next: AtomicU64,
}

impl Control {
    /// Aborts all connections, and prevents new ones.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        for (_, stream) in self.streams().iter() {
            stream.abort();
        }
    }

    /// Whether [`stop`](Self::stop) was called.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn streams(&self) -> std::sync::MutexGuard<'_, Vec<(u64, Arc<dyn Stream>)>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a connection until the guard is dropped.
    pub(crate) fn track(&self, stream: &Arc<dyn Stream>) -> Tracked<'_> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.streams().push((id, Arc::clone(stream)));
        if self.is_stopped() {
            stream.abort();
        }
        Tracked(self, id)
    }
}

pub(crate) struct Tracked<'a>(&'a Control, u64);

impl Drop for Tracked<'_> {
    fn drop(&mut self) {
        self.0.streams().retain(|(id, _)| *id != self.1);
    }
}

/// Opens a connection to the receiver.
pub type Connect<'a> = &'a mut dyn FnMut() -> std::io::Result<Arc<dyn Stream>>;

/// Sends files, folders and standard input (`-`), and returns the outcome.
///
/// If there is no connection, or it fails, another attempt continues where the last one stopped. If
/// the transfer fails, `reason` of the result is the cause.
///
/// # Errors
/// A source cannot be sent. No connection was opened.
pub fn send(
    sources: &[PathBuf],
    options: SendOptions,
    connect: Connect<'_>,
    observe: Observe<'_>,
    control: &Control,
) -> Result<End, String> {
    let mut source = Source::find(sources, &options.select)?;
    let errors = std::mem::take(&mut source.errors);
    let states = vec![EntryState::Open; source.entries.len()];
    let mut task = Task { source, options, states, consumed: false };
    let mut meter = Meter::new(1, true, observe);
    for (path, reason) in &errors {
        meter.error(Some(path), reason);
    }
    let (files, bytes, _) = task.source.total();
    meter.progress.total_bytes = (bytes > 0).then_some(bytes);
    meter.emit(Event::Plan { transfer: meter.transfer(), files, bytes });
    let mut delay = FIRST_DELAY;
    let (mut peer, mut path) = (String::new(), PathStats::default());
    let mut attempt = 0;
    let failure = loop {
        attempt += 1;
        let failure = match connect() {
            Ok(stream) => {
                peer = peer_of(&*stream);
                let tracked = control.track(&stream);
                let result = Sender::new(Arc::clone(&stream), &mut meter, &mut task).run(attempt);
                path = stream.path();
                if result.is_ok() {
                    let _ = stream.close(Instant::now() + CLOSING);
                    return Ok(meter.end(peer, &path, None));
                }
                drop(tracked);
                stream.abort();
                result.err().unwrap_or(Failure::Interrupted)
            }
            Err(error) => Failure::Connection(error),
        };
        let retry = failure.is_retryable() && !task.consumed;
        if control.is_stopped() {
            break Failure::Interrupted;
        }
        if !retry || attempt > task.options.retry {
            break failure;
        }
        meter.keep(&path);
        meter.progress.done_bytes = meter.bytes;
        path = PathStats::default();
        let (transfer, of) = (meter.transfer(), task.options.retry);
        let delay_s = delay.as_secs_f64();
        meter.emit(Event::Retry { transfer, attempt, of, delay_s, reason: failure.to_string() });
        let until = Instant::now() + delay;
        while Instant::now() < until && !control.is_stopped() {
            std::thread::sleep(Duration::from_millis(20));
        }
        delay = (2 * delay).min(MAX_DELAY);
    };
    Ok(meter.end(peer, &path, Some(failure.to_string())))
}
