//! Sending, with as many attempts as are allowed.

use crate::channel::Failure;
use crate::event::{End, Event, Observe};
use crate::report::Meter;
use crate::select::Select;
use crate::sender::{Fate, Sender, Task};
use crate::source::Source;
use crate::stream::{PathStats, Stream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The delay before the second attempt; it doubles with each.
const FIRST_DELAY: Duration = Duration::from_millis(500);
/// The longest delay between two attempts.
const LONGEST_DELAY: Duration = Duration::from_secs(8);
/// The time in which the last acknowledgement may arrive.
const CLOSING: Duration = Duration::from_secs(5);

/// How files are sent.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// Which files are sent.
    pub select: Select,
    /// Hashes decide what is there, not sizes and times.
    pub checksum: bool,
    /// Nothing is written at the receiver.
    pub dry_run: bool,
    /// Further attempts after a failure of the connection.
    pub retry: u32,
}

impl Default for SendOptions {
    fn default() -> Self {
        SendOptions { select: Select::default(), checksum: false, dry_run: false, retry: 5 }
    }
}

/// Ends transfers from another thread.
#[derive(Default)]
pub struct Control {
    stopped: AtomicBool,
    streams: Mutex<Vec<(u64, Arc<dyn Stream>)>>,
    next: AtomicU64,
}

impl Control {
    /// Ends every connection at once, and makes no other.
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

    /// Keeps a connection until the guard is dropped.
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

/// Makes a connection to the receiver.
pub type Connect<'a> = &'a mut dyn FnMut() -> std::io::Result<Arc<dyn Stream>>;

/// Sends files, folders and standard input (`-`), and returns what came of it.
///
/// A failure of a connection that had been made leads to another attempt, which goes on where the last one
/// stopped. The end's `reason` says why a transfer failed.
///
/// # Errors
/// A sentence about a source that cannot be sent; nothing was connected then.
pub fn send(
    sources: &[PathBuf],
    options: SendOptions,
    connect: Connect<'_>,
    observe: Observe<'_>,
    control: &Control,
) -> Result<End, String> {
    let mut source = Source::find(sources, &options.select)?;
    let errors = std::mem::take(&mut source.errors);
    let fates = vec![Fate::Open; source.entries.len()];
    let mut task = Task { source, options, fates, consumed: false };
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
        let (failure, connected) = match connect() {
            Ok(stream) => {
                peer = stream.peer().map_or_else(String::new, |peer| peer.to_string());
                let tracked = control.track(&stream);
                let result = Sender::new(Arc::clone(&stream), &mut meter, &mut task).run(attempt);
                path = stream.path();
                if result.is_ok() {
                    let _ = stream.close(Instant::now() + CLOSING);
                    return Ok(meter.end(peer, &path, None));
                }
                drop(tracked);
                stream.abort();
                (result.err(), true)
            }
            Err(error) => (Some(Failure::Connection(error)), false),
        };
        let failure = failure.unwrap_or(Failure::Interrupted);
        // Who never answered is not there: only a connection that failed is made again.
        let retried = failure.may_pass() && (connected || attempt > 1) && !task.consumed;
        if control.is_stopped() {
            break Failure::Interrupted;
        }
        if !retried || attempt > task.options.retry {
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
        delay = (2 * delay).min(LONGEST_DELAY);
    };
    Ok(meter.end(peer, &path, Some(failure.to_string())))
}
