//! What the connections of one receiver share: who receives which file, and what was taken in all.

use crate::channel::Pulse;
use crate::folder::{Folder, Refusal, refusal};
use crate::part::{Content, Part};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The silence of a sender after which another may take over its file.
pub const TAKEOVER: Duration = Duration::from_secs(3);
/// The time in which a sender that was turned away may come again.
const WANTED: Duration = Duration::from_secs(10);

/// Free disk space that a receiver leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reserve {
    /// A share of the file system, 0 to 1.
    Share(f64),
    /// Bytes.
    Bytes(u64),
}

impl std::str::FromStr for Reserve {
    type Err = String;

    /// Reads a share such as `5%` or a size such as `10GB`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is neither a share such as 5% nor a size such as 10GB");
        let number = |digits: &str| digits.trim().parse::<f64>().ok().filter(|value| *value >= 0.0);
        if let Some(percent) = text.trim().strip_suffix('%') {
            let percent = number(percent).filter(|percent| *percent <= 100.0);
            return percent.map(|percent| Reserve::Share(percent / 100.0)).ok_or_else(wrong);
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
        bytes.map(|bytes| Reserve::Bytes(bytes as u64)).ok_or_else(wrong)
    }
}

/// How a receiver receives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiveOptions {
    /// Bytes that are taken at most, in all transfers together.
    pub max_bytes: Option<u64>,
    /// Files, folders and links that are taken at most, in all transfers together.
    pub max_files: Option<u64>,
    /// Disk space that stays free.
    pub reserve: Reserve,
    /// Replace files that differ.
    pub overwrite: bool,
    /// End after one transfer that was completed.
    pub once: bool,
}

impl Default for ReceiveOptions {
    fn default() -> Self {
        ReceiveOptions {
            max_bytes: None,
            max_files: None,
            reserve: Reserve::Share(0.05),
            overwrite: false,
            once: false,
        }
    }
}

/// A connection as a holder of files.
#[derive(Debug)]
pub(crate) struct Holder {
    pub pulse: Arc<Pulse>,
    superseded: AtomicBool,
}

impl Holder {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Holder { pulse: Pulse::new(), superseded: AtomicBool::new(false) })
    }

    /// Whether another sender has taken over one of its files.
    pub(crate) fn is_superseded(&self) -> bool {
        self.superseded.load(Ordering::Acquire)
    }
}

/// A file that a connection receives.
#[derive(Debug)]
pub(crate) struct Slot {
    holder: Arc<Holder>,
    content: Content,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Held(Option<Part>),
    Taken,
}

impl Slot {
    pub(crate) fn new(holder: Arc<Holder>, content: Content) -> Arc<Self> {
        Arc::new(Slot { holder, content, state: Mutex::new(State::Held(None)) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on the part; `None` if another sender has taken over.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Option<Part>) -> T) -> Option<T> {
        match &mut *self.state() {
            State::Held(part) => Some(work(part)),
            State::Taken => None,
        }
    }
}

/// What came of a claim.
#[derive(Debug)]
pub(crate) enum Claim {
    Taken(Arc<Slot>),
    /// Another sender is sending it: with `same`, the same content.
    Held {
        same: bool,
    },
}

/// What the connections of a receiver share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub folder: Arc<Folder>,
    pub options: ReceiveOptions,
    slots: Mutex<HashMap<Vec<u8>, Arc<Slot>>>,
    bytes: AtomicU64,
    entries: AtomicU64,
    /// When a sender was turned away last, and whose place it could have had; `None` is anybody's.
    wanted: Mutex<Option<(Instant, Option<IpAddr>)>>,
}

impl Shared {
    pub(crate) fn new(folder: Folder, options: ReceiveOptions) -> Arc<Self> {
        Arc::new(Shared {
            folder: Arc::new(folder),
            options,
            slots: Mutex::default(),
            bytes: AtomicU64::new(0),
            entries: AtomicU64::new(0),
            wanted: Mutex::default(),
        })
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a file for a connection, if no other sender is sending it. One that sends the same content takes over
    /// from a sender that has fallen silent; the part of other content is its sender's until its connection ends.
    pub(crate) fn claim(&self, path: &[u8], content: Content, holder: &Arc<Holder>) -> Claim {
        let mut slots = self.slots();
        if let Some(slot) = slots.get(path) {
            let same = slot.content == content && !Arc::ptr_eq(&slot.holder, holder);
            if !same || slot.holder.pulse.silence() < TAKEOVER {
                return Claim::Held { same };
            }
            slot.holder.superseded.store(true, Ordering::Release);
            // The part is closed, and unlocked with that.
            *slot.state() = State::Taken;
        }
        let slot = Slot::new(Arc::clone(holder), content);
        slots.insert(path.into(), Arc::clone(&slot));
        Claim::Taken(slot)
    }

    /// Gives a file back.
    pub(crate) fn release(&self, path: &[u8], slot: &Arc<Slot>) {
        let mut slots = self.slots();
        if slots.get(path).is_some_and(|held| Arc::ptr_eq(held, slot)) {
            slots.remove(path);
        }
    }

    /// Notes that a sender was turned away that could have had the place of one from this address.
    pub(crate) fn want_place(&self, of: Option<IpAddr>) {
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), of));
    }

    /// Whether somebody else wants the place of a sender from this address; one place for each who does.
    pub(crate) fn is_place_wanted(&self, address: Option<IpAddr>) -> bool {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |(at, of): &mut (Instant, Option<IpAddr>)| {
            at.elapsed() < WANTED && (of.is_none() || *of == address)
        };
        wanted.take_if(fits).is_some()
    }

    /// Counts an entry that is taken.
    pub(crate) fn take_entry(&self) -> Result<(), Refusal> {
        let before = self.entries.fetch_add(1, Ordering::Relaxed);
        match self.options.max_files {
            Some(most) if before >= most => {
                self.entries.fetch_sub(1, Ordering::Relaxed);
                Err(refusal(format!("the receiver takes {most} files, folders and links at most")))
            }
            _ => Ok(()),
        }
    }

    /// Uncounts an entry of which nothing stays.
    pub(crate) fn give_entry_back(&self) {
        self.entries.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts bytes that are taken; `coming` are expected besides.
    pub(crate) fn take_bytes(&self, count: u64, coming: u64) -> Result<(), Refusal> {
        let most = self.options.max_bytes.unwrap_or(u64::MAX);
        let add = |sum: u64| {
            let sum = sum.saturating_add(count);
            (sum.saturating_add(coming) <= most).then_some(sum)
        };
        match self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(_) => Ok(()),
            Err(_) => Err(refusal(format!("the receiver takes {most} bytes at most"))),
        }
    }

    /// Returns how many bytes may still be written, and how many stay reserved.
    pub(crate) fn room(&self) -> (u64, u64) {
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
