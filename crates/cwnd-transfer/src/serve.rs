//! Receiving: accepts connections and serves each in a thread.

use crate::channel::{Failure, Writer};
use crate::event::Observe;
use crate::folder::Folder;
use crate::frame::Frame;
use crate::receiver::Receiver;
use crate::report::{Meter, peer_of};
use crate::send::Control;
use crate::shared::{ReceiveOptions, Shared, counted_address};
use crate::stream::{Stream, is_timeout};
use cwnd_udt::UdtListener;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// Maximum number of simultaneous transfers.
pub const TRANSFERS: usize = 16;
/// Maximum number of simultaneous transfers from one address, if peers are not authenticated.
pub const TRANSFERS_PER_ADDRESS: usize = 4;

/// Interval at which the stop flag is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Timeout for the delivery of the last frames.
const CLOSING: Duration = Duration::from_secs(5);

/// Accepts connections.
pub trait Listener: Sync {
    /// Waits until `deadline` for a connection.
    ///
    /// # Errors
    /// There was no connection ([`TimedOut`](io::ErrorKind::TimedOut)), or the socket failed.
    fn accept(&self, deadline: Instant) -> io::Result<Arc<dyn Stream>>;

    /// Whether peers are authenticated by a secret.
    fn is_authenticated(&self) -> bool {
        false
    }
}

impl Listener for UdtListener {
    fn accept(&self, deadline: Instant) -> io::Result<Arc<dyn Stream>> {
        self.accept_until(Some(deadline)).map(|(stream, _)| Arc::new(stream) as Arc<dyn Stream>)
    }

    fn is_authenticated(&self) -> bool {
        self.has_credentials()
    }
}

/// Number of running transfers by address.
#[derive(Default)]
struct ActiveTransfers(Mutex<HashMap<Option<IpAddr>, usize>>);

impl ActiveTransfers {
    /// Counts a new transfer.
    ///
    /// # Errors
    /// The limit is reached: that of this address, or, with `None`, that of all addresses.
    fn start(&self, address: Option<IpAddr>, authenticated: bool) -> Result<(), Option<IpAddr>> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = counts.values().sum();
        let count = counts.get(&address).copied().unwrap_or_default();
        if !authenticated && count >= TRANSFERS_PER_ADDRESS {
            return Err(address);
        }
        if all >= TRANSFERS {
            return Err(None);
        }
        counts.insert(address, count + 1);
        Ok(())
    }

    /// Counts the end of a transfer.
    fn end(&self, address: Option<IpAddr>) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&address);
            }
        }
    }
}

/// Receives from `listeners` into the folder `out` until `control` stops it; with `once`, until one
/// transfer is complete. Limits hold for all listeners together.
///
/// # Errors
/// The folder cannot be opened, or a listener failed.
pub fn receive(
    listeners: &[&dyn Listener],
    out: &Path,
    options: ReceiveOptions,
    observe: Observe<'_>,
    control: &Control,
) -> io::Result<()> {
    let reception = Reception {
        shared: Shared::new(Folder::open(out)?, options),
        active: ActiveTransfers::default(),
        transfers: AtomicU64::new(0),
        completed: AtomicBool::new(false),
        failed: AtomicBool::new(false),
        observe,
        control,
    };
    let failure = std::thread::scope(|scope| {
        let reception = &reception;
        let accepting: Vec<_> = listeners
            .iter()
            .map(|listener| scope.spawn(move || reception.accept(scope, *listener)))
            .collect();
        let results = accepting.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let result = results.fold(Ok(()), Result::and);
        if reception.completed.load(Ordering::Acquire) {
            // Other transfers are aborted. Their partial files are kept for another attempt.
            control.stop();
        }
        result
    });
    if reception.completed.load(Ordering::Acquire) { Ok(()) } else { failure }
}

/// State of a running [`receive`].
struct Reception<'a> {
    shared: Arc<Shared>,
    active: ActiveTransfers,
    /// Number of transfers so far.
    transfers: AtomicU64,
    completed: AtomicBool,
    failed: AtomicBool,
    observe: Observe<'a>,
    control: &'a Control,
}

impl Reception<'_> {
    fn is_over(&self) -> bool {
        let flags = [&self.completed, &self.failed];
        self.control.is_stopped() || flags.iter().any(|flag| flag.load(Ordering::Acquire))
    }

    /// Accepts connections, and serves each in a thread of `scope`.
    fn accept<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        listener: &dyn Listener,
    ) -> io::Result<()> {
        while !self.is_over() {
            let stream = match listener.accept(Instant::now() + POLL_INTERVAL) {
                Ok(stream) => stream,
                Err(error) if is_timeout(&error) => continue,
                Err(error) => {
                    // Running transfers continue: a listener also fails after wrong guesses of a
                    // one-time code.
                    self.failed.store(true, Ordering::Release);
                    return Err(error);
                }
            };
            let address = counted_address(&*stream);
            if let Err(needed) = self.active.start(address, listener.is_authenticated()) {
                self.shared.record_rejection(needed);
                reject(&stream);
                continue;
            }
            let transfer = 1 + self.transfers.fetch_add(1, Ordering::Relaxed);
            scope.spawn(move || {
                let tracked = self.control.track(&stream);
                let shared = Arc::clone(&self.shared);
                if receive_one(shared, &stream, transfer, self.observe) && self.shared.options.once
                {
                    self.completed.store(true, Ordering::Release);
                }
                drop(tracked);
                self.active.end(address);
            });
        }
        Ok(())
    }
}

/// Rejects a sender with STOP.
fn reject(stream: &Arc<dyn Stream>) {
    let mut writer = Writer::new(Arc::clone(stream));
    let reason = b"it already serves the maximum number of senders";
    let result = writer.greet().and_then(|()| {
        writer.put(&Frame::Stop { again: true, reason });
        writer.flush()
    });
    // The stream delivers written data after it is dropped.
    drop(result);
}

/// Receives from one sender; returns whether a transfer was completed.
fn receive_one(
    shared: Arc<Shared>,
    stream: &Arc<dyn Stream>,
    transfer: u64,
    observe: Observe<'_>,
) -> bool {
    let mut meter = Meter::new(transfer, false, observe);
    let result = Receiver::new(shared, Arc::clone(stream), &mut meter).run();
    let path = stream.path();
    match &result {
        Ok(_) | Err(Failure::Protocol(_) | Failure::GivenUp { .. } | Failure::Incompatible(_)) => {
            let _ = stream.close(Instant::now() + CLOSING);
        }
        Err(_) => stream.abort(),
    }
    let reason = result.as_ref().err().map(ToString::to_string);
    let end = meter.end(peer_of(&**stream), &path, reason);
    matches!(result, Ok(true)) && (end.not_sent == 0 || end.files > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_senders_are_not_tracked() {
        let active = ActiveTransfers::default();
        let address = |last: usize| Some(IpAddr::from([192, 0, 2, last as u8]));
        assert!(
            (0..100).filter(|last| active.start(address(*last), false).is_ok()).count()
                == TRANSFERS
        );
        assert_eq!(active.0.lock().unwrap().len(), TRANSFERS);
        (0..TRANSFERS).for_each(|last| active.end(address(last)));
        assert!(
            (0..9).filter(|_| active.start(address(0), false).is_ok()).count()
                == TRANSFERS_PER_ADDRESS
        );
        assert!(active.start(address(0), true).is_ok());
    }
}
