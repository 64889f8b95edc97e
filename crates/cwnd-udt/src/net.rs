//! UDT sockets: [`crate::Connection`]s over the UDP ports of this machine (Unix).
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
//! # One thread for each port
//!
//! A port's thread receives, lets its connections send what their controllers allow, and sleeps until the
//! next thing is due. Packets of equal size leave in one `UDP_SEGMENT` call, and arrive joined by
//! `UDP_GRO`, where the system has these; on the wire both are single packets. Packets that are paced
//! leave in bursts of what is due in 100 µs, or one by one where they are further apart. Between bursts the
//! thread sleeps; it never spins.
//!
//! The application and that thread share a connection behind a lock, which is held for no more than a
//! batch of packets or 64 KiB of the application's data.
//!
//! # Credentials
//!
//! With [`Config::credentials`](crate::Config::credentials) at both ends all that travels is sealed
//! ([`crate::secure`]). A listener with credentials lets in only clients that prove theirs; one without
//! does not answer clients that have some. [`Config::admission`](crate::Config::admission) limits the
//! addresses that a listener answers at all.

mod cover;
mod door;
mod driver;
mod endpoint;
mod link;
mod listener;
mod port;
mod socket;
mod stream;
#[cfg(feature = "tokio")]
mod tokio;

use cwnd::Dur;
use std::time::Duration;

pub use endpoint::Endpoint;
pub use listener::UdtListener;
pub use stream::UdtStream;

/// Converts a duration, saturating.
fn dur(span: Duration) -> Dur {
    Dur::from_nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}
