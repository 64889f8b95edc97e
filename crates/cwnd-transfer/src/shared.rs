//! State shared by the connections of one receiver: locks of the files being received, counters of
//! the limits, and free disk space.

use crate::channel::{GREETING_TIMEOUT, IDLE_TIMEOUT, IdleTimer};
use crate::folder::{Folder, Refusal, refusal};
use crate::part::{Content, Part};
use crate::stream::Stream;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Idle time of a sender after which another one may take over its file.
pub const TAKEOVER: Duration = Duration::from_secs(3);
/// Time in which a rejected sender is expected to try again.
const RETRY_TIME: Duration = Duration::from_secs(10);

/// Disk space that a receiver keeps free.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reserve {
    /// A fraction of the file system, 0 to 1.
    Share(f64),
    /// Bytes.
    Bytes(u64),
}

impl Default for Reserve {
    fn default() -> Self {
        Reserve::Share(0.05)
    }
}

impl std::str::FromStr for Reserve {
    type Err = String;

    /// Parses a percentage such as `5%` or a size such as `10GB`.
    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("{text:?} is neither a share such as 5% nor a size such as 10GB");
        let number = |digits: &str| digits.trim().parse::<f64>().ok().filter(|value| *value >= 0.0);
        if let Some(percent) = text.trim().strip_suffix('%') {
            let percent = number(percent).filter(|percent| *percent <= 100.0);
            return percent.map(|percent| Reserve::Share(percent / 100.0)).ok_or_else(invalid);
        }
        let digits = text.trim().trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = text.trim()[digits.len()..].to_ascii_lowercase();
        let power = |prefix: char| " kmgtpe".find(prefix).map(|power| power as i32);
        let factor = match unit.strip_suffix('b').unwrap_or(&unit).as_bytes() {
            [] => Some(1.0),
            [prefix] => power((*prefix).into()).map(|power| 1e3_f64.powi(power)),
            [prefix, b'i'] => power((*prefix).into()).map(|power| 1024_f64.powi(power)),
            _ => None,
        };
        let bytes = factor.and_then(|factor| Some(factor * number(digits)?));
        bytes.map(|bytes| Reserve::Bytes(bytes as u64)).ok_or_else(invalid)
    }
}

/// Options of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReceiveOptions {
    /// Maximum bytes of all transfers together.
    pub max_bytes: Option<u64>,
    /// Maximum number of files, folders and links of all transfers together.
    pub max_files: Option<u64>,
    /// Disk space to keep free.
    pub reserve: Reserve,
    /// Whether existing files that differ are replaced.
    pub overwrite: bool,
    /// Whether names at the top of the folder may begin with a dot.
    pub allow_dotfiles: bool,
    /// Whether the receiver ends after the first completed transfer.
    pub once: bool,
    /// Timeouts of each connection.
    pub timeouts: Timeouts,
}

/// Timeouts of a connection at the receiver. Tests shorten them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timeouts {
    /// Timeout of the sender's greeting.
    pub greeting: Duration,
    /// Timeout of a connection without a byte from the sender.
    pub idle: Duration,
    /// Timeout of an offer that waits for another sender of the same file.
    pub wait: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let wait = Duration::from_secs(10);
        Timeouts { greeting: GREETING_TIMEOUT, idle: IDLE_TIMEOUT, wait }
    }
}

/// Returns the address by which the transfers of a peer are counted: one for all loopback
/// addresses.
pub(crate) fn counted_address(stream: &dyn Stream) -> Option<IpAddr> {
    let ip = stream.peer()?.ip().to_canonical();
    Some(if ip.is_loopback() { Ipv4Addr::LOCALHOST.into() } else { cwnd_udt::counted_address(ip) })
}

/// A connection that owns locks.
#[derive(Debug)]
pub(crate) struct LockOwner {
    pub idle_timer: Arc<IdleTimer>,
    superseded: AtomicBool,
}

impl LockOwner {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(LockOwner { idle_timer: IdleTimer::new(), superseded: AtomicBool::new(false) })
    }

    /// Whether another connection has taken over one of its files.
    pub(crate) fn is_superseded(&self) -> bool {
        self.superseded.load(Ordering::Acquire)
    }
}

/// The lock of a file that a connection receives, with its part.
#[derive(Debug)]
pub(crate) struct FileLock {
    owner: Arc<LockOwner>,
    content: Content,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Owned(Option<Part>),
    TakenOver,
}

impl FileLock {
    pub(crate) fn new(owner: Arc<LockOwner>, content: Content) -> Arc<Self> {
        Arc::new(FileLock { owner, content, state: Mutex::new(State::Owned(None)) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on the part; `None` if another connection has taken over.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Option<Part>) -> T) -> Option<T> {
        match &mut *self.state() {
            State::Owned(part) => Some(work(part)),
            State::TakenOver => None,
        }
    }
}

/// Result of locking a file.
#[derive(Debug)]
pub(crate) enum LockResult {
    Acquired(Arc<FileLock>),
    /// Another connection receives the file: with `same`, the same content.
    Busy {
        same: bool,
    },
}

/// State shared by the connections of a receiver.
#[derive(Debug)]
pub(crate) struct Shared {
    pub folder: Arc<Folder>,
    pub options: ReceiveOptions,
    locks: Mutex<HashMap<Vec<u8>, Arc<FileLock>>>,
    bytes: AtomicU64,
    entries: AtomicU64,
    /// Time of the last rejection, and the address whose connections exceed the limit; `None` if
    /// the limit is that of all addresses.
    rejected: Mutex<Option<(Instant, Option<IpAddr>)>>,
}

impl Shared {
    pub(crate) fn new(folder: Folder, options: ReceiveOptions) -> Arc<Self> {
        Arc::new(Shared {
            folder: Arc::new(folder),
            options,
            locks: Mutex::default(),
            bytes: AtomicU64::new(0),
            entries: AtomicU64::new(0),
            rejected: Mutex::default(),
        })
    }

    fn locks(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Arc<FileLock>>> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks a file for a connection. A sender of the same content takes over from an idle sender;
    /// a part of other content stays locked until its connection ends.
    pub(crate) fn lock_file(
        &self,
        path: &[u8],
        content: Content,
        owner: &Arc<LockOwner>,
    ) -> LockResult {
        let mut locks = self.locks();
        if let Some(lock) = locks.get(path) {
            let same = lock.content == content && !Arc::ptr_eq(&lock.owner, owner);
            if !same || lock.owner.idle_timer.idle() < TAKEOVER {
                return LockResult::Busy { same };
            }
            lock.owner.superseded.store(true, Ordering::Release);
            // This closes the part, and thereby unlocks its file.
            *lock.state() = State::TakenOver;
        }
        let lock = FileLock::new(Arc::clone(owner), content);
        locks.insert(path.into(), Arc::clone(&lock));
        LockResult::Acquired(lock)
    }

    /// Unlocks a file.
    pub(crate) fn unlock_file(&self, path: &[u8], lock: &Arc<FileLock>) {
        let mut locks = self.locks();
        if locks.get(path).is_some_and(|current| Arc::ptr_eq(current, lock)) {
            locks.remove(path);
        }
    }

    /// Records that a sender was rejected, because of the number of connections from `needed` or in
    /// total.
    pub(crate) fn record_rejection(&self, needed: Option<IpAddr>) {
        *self.rejected.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((Instant::now(), needed));
    }

    /// Whether a sender was rejected that could be served instead of one from `address`. Each
    /// rejection is returned once.
    pub(crate) fn take_rejection(&self, address: Option<IpAddr>) -> bool {
        let mut rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        let applies = |(at, needed): &mut (Instant, Option<IpAddr>)| {
            at.elapsed() < RETRY_TIME && (needed.is_none() || *needed == address)
        };
        rejected.take_if(applies).is_some()
    }

    /// Counts a new file, folder or link.
    pub(crate) fn count_entry(&self) -> Result<(), Refusal> {
        let before = self.entries.fetch_add(1, Ordering::Relaxed);
        match self.options.max_files {
            Some(limit) if before >= limit => {
                self.entries.fetch_sub(1, Ordering::Relaxed);
                Err(refusal(format!(
                    "the receiver accepts at most {limit} files, folders and links"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Uncounts an entry that was not created.
    pub(crate) fn uncount_entry(&self) {
        self.entries.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts received bytes; `expected` more bytes must fit within the limit.
    pub(crate) fn count_bytes(&self, count: u64, expected: u64) -> Result<(), Refusal> {
        let limit = self.options.max_bytes.unwrap_or(u64::MAX);
        let add = |sum: u64| {
            let sum = sum.saturating_add(count);
            (sum.saturating_add(expected) <= limit).then_some(sum)
        };
        match self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(_) => Ok(()),
            Err(_) => Err(refusal(format!("the receiver accepts at most {limit} bytes"))),
        }
    }

    /// Returns the bytes that may still be written, and the bytes of the reserve.
    pub(crate) fn free_space(&self) -> (u64, u64) {
        let Ok((free, all)) = self.folder.space() else { return (u64::MAX, 0) };
        let reserve = match self.options.reserve {
            Reserve::Share(share) => (all as f64 * share.clamp(0.0, 1.0)) as u64,
            Reserve::Bytes(bytes) => bytes,
        };
        (free.saturating_sub(reserve), reserve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserves_are_read() {
        let read = |text: &str| text.parse::<Reserve>();
        assert_eq!(read("5%"), Ok(Reserve::Share(0.05)));
        assert_eq!(
            (read("0"), read("10GB")),
            (Ok(Reserve::Bytes(0)), Ok(Reserve::Bytes(10_000_000_000)))
        );
        assert_eq!(read("1.5 MiB"), Ok(Reserve::Bytes(3 << 19)));
        for wrong in ["", "x", "101%", "-1", "5 parsecs", "%", "NaN", "1ib"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
