//! Receiving from whoever connects.

use crate::channel::{Failure, Writer};
use crate::claims::{ReceiveOptions, Shared};
use crate::event::Observe;
use crate::folder::Folder;
use crate::frame::Frame;
use crate::receiver::Receiver;
use crate::report::Meter;
use crate::send::Control;
use crate::stream::{Stream, is_timeout};
use cwnd_udt::UdtListener;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Transfers at once.
pub const TRANSFERS: usize = 16;
/// Transfers at once from one address whose peers have proved nothing.
pub const TRANSFERS_PER_ADDRESS: usize = 4;

/// The time between two looks whether to stop.
const TICK: Duration = Duration::from_millis(100);
/// The time in which the last words may arrive.
const CLOSING: Duration = Duration::from_secs(5);

/// Accepts connections.
pub trait Listener: Sync {
    /// Waits until `deadline` for a connection.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) when there was none, or the failure of the socket.
    fn accept(&self, deadline: Instant) -> io::Result<Arc<dyn Stream>>;

    /// Whether peers have proved that they know a secret.
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

/// The transfers at once, by address.
#[derive(Default)]
struct Places(Mutex<HashMap<Option<IpAddr>, usize>>);

impl Places {
    /// Takes a place.
    ///
    /// # Errors
    /// The address of those whose place is needed; `None` if anybody's would do.
    fn enter(&self, address: Option<IpAddr>, authenticated: bool) -> Result<(), Option<IpAddr>> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = taken.values().sum();
        let own = taken.get(&address).copied().unwrap_or_default();
        if !authenticated && own >= TRANSFERS_PER_ADDRESS {
            return Err(address);
        }
        if all >= TRANSFERS {
            return Err(None);
        }
        taken.insert(address, own + 1);
        Ok(())
    }

    fn leave(&self, address: Option<IpAddr>) {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = taken.get_mut(&address) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&address);
            }
        }
    }
}

/// Receives into the folder `out` until `control` ends it; with `once`, until one transfer was completed.
///
/// # Errors
/// When the folder cannot be opened, or the listener fails.
pub fn receive(
    listener: &dyn Listener,
    out: &Path,
    options: ReceiveOptions,
    observe: Observe<'_>,
    control: &Control,
) -> io::Result<()> {
    let shared = Shared::new(Folder::open(out)?, options);
    let (places, completed) = (Places::default(), AtomicBool::new(false));
    let over = || control.is_stopped() || completed.load(Ordering::Acquire);
    let failure = std::thread::scope(|scope| {
        let mut transfer = 0;
        while !over() {
            let stream = match listener.accept(Instant::now() + TICK) {
                Ok(stream) => stream,
                Err(error) if is_timeout(&error) => continue,
                // Transfers that run go on: strangers can make a one-time code void.
                Err(error) => return Some(error),
            };
            let address = stream.peer().map(|peer| peer.ip());
            if let Err(whose) = places.enter(address, listener.is_authenticated()) {
                shared.want_place(whose);
                turn_away(&stream);
                continue;
            }
            transfer += 1;
            let (shared, places, completed) = (Arc::clone(&shared), &places, &completed);
            scope.spawn(move || {
                let tracked = control.track(&stream);
                if receive_one(shared, &stream, transfer, observe) && options.once {
                    completed.store(true, Ordering::Release);
                }
                drop(tracked);
                places.leave(address);
            });
        }
        if completed.load(Ordering::Acquire) {
            // Others are not waited for: their parts stay for another attempt.
            control.stop();
        }
        None
    });
    match failure {
        Some(error) if !completed.load(Ordering::Acquire) => Err(error),
        _ => Ok(()),
    }
}

/// Tells a sender that there is no place for it.
fn turn_away(stream: &Arc<dyn Stream>) {
    let mut writer = Writer::new(Arc::clone(stream));
    let reason = b"it serves as many senders as it can";
    let told = writer.greet().and_then(|()| {
        writer.put(&Frame::Stop { again: true, reason });
        writer.flush()
    });
    // What was written is delivered after the stream is dropped.
    drop(told);
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
    let peer = stream.peer().map_or_else(String::new, |peer| peer.to_string());
    match &result {
        Ok(_) | Err(Failure::Protocol(_) | Failure::GivenUp { .. } | Failure::Stranger(_)) => {
            let _ = stream.close(Instant::now() + CLOSING);
        }
        Err(_) => stream.abort(),
    }
    let reason = result.as_ref().err().map(ToString::to_string);
    let end = meter.end(peer, &path, reason);
    matches!(result, Ok(true)) && (end.not_sent == 0 || end.files > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_keep_nothing_about_senders_that_are_turned_away() {
        let places = Places::default();
        let address = |last: usize| Some(IpAddr::from([192, 0, 2, last as u8]));
        assert!(
            (0..100).filter(|last| places.enter(address(*last), false).is_ok()).count()
                == TRANSFERS
        );
        assert_eq!(places.0.lock().unwrap().len(), TRANSFERS);
        (0..TRANSFERS).for_each(|last| places.leave(address(last)));
        assert!(
            (0..9).filter(|_| places.enter(address(0), false).is_ok()).count()
                == TRANSFERS_PER_ADDRESS
        );
        assert!(places.enter(address(0), true).is_ok());
    }
}
