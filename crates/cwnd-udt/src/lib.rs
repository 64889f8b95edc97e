//! UDT version 4 as a state machine without I/O: wire-compatible with UDT 4.11, and driven by any
//! controller of the `cwnd` crate. No clock, no socket, no thread: a simulator, a fuzzer and real sockets
//! drive the same code.
//!
//! # Driving a connection
//!
//! A [`Connection`] is one end. Its driver owns the UDP socket and the clock ([`cwnd::Time`], nanoseconds since any
//! epoch) and has four tasks:
//!
//! 1. Pass datagrams to [`Connection::handle_datagram`], or to [`Connection::handle_batch`] if the system's
//!    receive offload has joined them. `now` is the time of arrival. Arrival speed and capacity are estimated
//!    from it: pass the system's time stamp if there is one, and the same time for all datagrams of a batch.
//! 2. Pass on the application's calls: [`write`](Connection::write) and [`read`](Connection::read) for streams,
//!    [`send_message`](Connection::send_message) and [`recv_message`](Connection::recv_message) for
//!    messages, [`shutdown`](Connection::shutdown).
//! 3. After either, and at each wake-up, call [`Connection::poll_transmit`] until it returns `None`. Each call
//!    returns concatenated datagrams of one size for one `UDP_SEGMENT` send. The connection paces its packets:
//!    each is returned when it is due. A driver that wakes late gets the packets that have become due
//!    meanwhile, of at most five milliseconds.
//! 4. At [`Connection::next_wakeup`] call [`Connection::handle_timeout`], then `poll_transmit`.
//!    [`Connection::poll_event`] returns events for the application.
//!
//! ```
//! use cwnd::{Dur, Spec, Time};
//! use cwnd_udt::{Answer, Config, Connection, Listener, Seq, SocketType};
//!
//! let config = Config::new(Spec::parse("udt")?);
//! let [here, there] = ["192.0.2.1:9000", "192.0.2.2:9000"].map(|a| a.parse().unwrap());
//! let there: std::net::SocketAddr = there;
//! let mut client = Connection::connect(&config, Time::ZERO, 17, Seq::new(42), there.ip());
//! let listener = Listener::new([0; 16], SocketType::Stream); // a random key, in earnest
//! let mut server = None;
//! let mut now = Time::ZERO;
//! while server.is_none() {
//!     while let Some(transmit) = client.poll_transmit(now, 1) {
//!         match listener.handle(now, here, transmit.datagrams) {
//!             Answer::Ignore => {}
//!             Answer::Reply(reply) => client.handle_datagram(now, &reply),
//!             Answer::Accept(asked) => {
//!                 server = Some(Connection::accept(&config, now, 18, &asked));
//!             }
//!         }
//!     }
//!     now += Dur::from_millis(1);
//! }
//! let mut server = server.unwrap();
//! server.write(b"hello")?;
//! while let Some(transmit) = server.poll_transmit(now, 64) {
//!     transmit.iter().for_each(|datagram| client.handle_datagram(now, datagram));
//! }
//! let mut buffer = [0; 100];
//! let count = client.read(now, &mut buffer)?;
//! assert_eq!(&buffer[..count], b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Many connections on a port
//!
//! [`Routes`] finds the connection of a datagram by its socket id and its source address. Datagrams for socket 0 go to
//! the [`Listener`], which keeps no state of clients: it answers 64 bytes with at most 64 bytes, at the cost of a keyed
//! hash. Only a client that returns the cookie sent to its address leads to an [`Answer::Accept`]. Register its
//! connection with [`Routes::accept`], so that a repeated request finds it.
//!
//! A datagram for an unknown id, [`Route::Unknown`], may be answered with a [`reset`], and a [`Route::Reset`] goes to
//! [`Connection::handle_reset`] of each connection that the port [began with](Routes::begun_with) its sender. Ids that
//! a listener gives are odd for clients that know resets ([`Invitation::knows_resets`]); all others are even.
//!
//! # Which law, which acknowledgements
//!
//! A rate law (`udt`, `daimd`, `tfrc`) receives the full acknowledgements (every 10 ms, with arrival speed and
//! capacity) as `Report`s, and its rate is enforced by send times. A window law receives every acknowledgement,
//! including light ones. UDT4 sends a light acknowledgement for each 64 packets. This receiver sends one for each
//! packet that is at least 100 µs later than the one before, whatever the sender's law; UDT4 accepts them. While
//! packets are missing, the cumulative number does not advance. This receiver then reports in a user-defined control
//! packet how much of the window has arrived ([`packet::Progress`]), which keeps a window law ACK-clocked. UDT4 ignores
//! that packet.
//!
//! # Memory
//!
//! The memory of a connection is bounded by the sizes in [`Config`]; no datagram raises the bound. Each buffer is a
//! ring that begins with 256 slots and doubles with its use, at most to the next power of two of its configured
//! packets. The largest rings of a connection hold
//!
//! * `send_buffer` slots × (packet size − 28 + 15 bytes; messages: + 8). A stream holds no more than twice
//!   what was outstanding lately and 512 packets; the rest waits with the user.
//! * `receive_buffer` slots × (packet size − 44 + 6 bytes), as far as the user has been behind; for messages
//!   also 16 bytes for each whole message, of which there are no more than slots,
//!
//! and in addition two to three bits per slot of either kind, 24 KiB of sent acknowledgements and 4 KiB of other state.
//! With the defaults that is 24 MB each way at most, and under 1 MB for a connection that is idle or keeps up.
//! [`Connection::hold_room`] bounds what is received before the application has accepted. A peer cannot raise these
//! bounds: its flow window only limits what is sent, and its packet size can only lower this end's. With
//! [`Config::record`] the record of the controller's events grows without bound, as asked.
//!
//! The work for a datagram is at most linear in the window.
//!
//! # Credentials
//!
//! UDT itself is neither encrypted nor authenticated. [`secure`] encrypts whole datagrams between two ends that
//! authenticate each other, and the sockets of [`net`] do so with [`Config::credentials`].
//!
//! The wire format, and the differences between the draft, UDT 4.11 and this crate, are in `docs/udt.md`.

#![forbid(unsafe_code)]
#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod bits;
mod buffer;
mod cast;
mod config;
mod connection;
mod estimate;
pub mod handshake;
mod listener;
#[cfg(all(unix, feature = "net"))]
pub mod net;
mod nudge;
mod opening;
pub mod packet;
mod receiver;
pub mod reset;
mod routes;
#[cfg(feature = "secure")]
pub mod secure;
mod sender;
pub mod seq;
mod shares;

pub use config::{Admission, CloseReason, Config, Counters, Error, Event, Stats};
pub use connection::{Connection, Filled, Transmit};
pub use handshake::SocketType;
pub use listener::{Answer, Invitation, Listener};
#[cfg(all(unix, feature = "net"))]
pub use net::{Endpoint, UdtListener, UdtStream};
pub use routes::{Client, Route, Routes};
pub use seq::Seq;
