//! UDT sockets for Unix: [`crate::Connection`]s over UDP ports.
//!
//! ```
//! use cwnd::Spec;
//! use cwnd_udt::{Config, UdtListener, UdtStream};
//! use std::io::{Read, Write};
//!
//! let config = Config::new(Spec::parse("udt")?);
//! let listener = UdtListener::bind("127.0.0.1:0", &config)?;
//! let addr = listener.local_addr();
//! let client = std::thread::spawn(move || {
//!     let mut stream = UdtStream::connect(addr, &config)?;
//!     stream.write_all(b"hello")?;
//!     stream.close()
//! });
//! let (mut stream, _) = listener.accept()?;
//! let mut text = String::new();
//! stream.read_to_string(&mut text)?;
//! assert_eq!(text, "hello");
//! client.join().unwrap()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Threads
//!
//! Each port has one driver thread. It receives datagrams, sends the packets that the controllers
//! of its connections allow, and sleeps until the next timer. Packets of equal size are sent in one
//! `UDP_SEGMENT` call and received in `UDP_GRO` batches if the system supports them; on the wire
//! they are single packets. Paced packets are sent in bursts of 100 µs, or one by one if their
//! interval is longer. The thread sleeps between bursts and never spins.
//!
//! The application and the driver share a connection behind a lock. It is held for at most one
//! batch of packets or 64 KiB of the application's data.
//!
//! # Credentials
//!
//! With [`Config::credentials`](crate::Config::credentials) at both ends all datagrams are
//! encrypted and authenticated ([`crate::secure`]). A listener with credentials accepts only
//! clients that prove theirs; a listener without credentials does not answer clients with
//! credentials. [`Config::admission`](crate::Config::admission) restricts the client addresses.

mod accept_queue;
mod connection;
mod driver;
mod endpoint;
mod handshake;
mod listener;
mod port;
mod protection;
mod rate_limit;
mod socket;
mod stream;
#[cfg(feature = "tokio")]
mod tokio;

use cwnd::Dur;
use std::sync::{Condvar, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

pub use endpoint::Endpoint;
pub use listener::UdtListener;
pub use stream::UdtStream;

/// Converts a duration, saturating.
fn dur(span: Duration) -> Dur {
    Dur::from_nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

/// Waits for a signal, at most until the deadline. Returns also whether the deadline was over before.
fn wait<'a, T>(
    signal: &Condvar,
    guard: MutexGuard<'a, T>,
    deadline: Option<Instant>,
) -> (MutexGuard<'a, T>, bool) {
    let left = deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
    let (guard, _) = signal.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner);
    (guard, left.is_zero())
}

/// Adds a task to those that are woken, once.
fn register(tasks: &mut Vec<Waker>, cx: &Context<'_>) {
    if !tasks.iter().any(|task| task.will_wake(cx.waker())) {
        tasks.push(cx.waker().clone());
    }
}
