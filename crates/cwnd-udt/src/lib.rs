//! UDT version 4 as a state machine without I/O: wire-compatible with UDT 4.11, and driven by any
//! controller of the `cwnd` crate. No clock, no socket, no thread: a simulator, a fuzzer and real sockets
//! drive the same code.
//!
//! # Driving a connection
//!
//! A [`Connection`] is one end. Its driver owns the UDP socket and the clock ([`cwnd::Time`], nanoseconds
//! since any epoch) and does four things:
//!
//! 1. A datagram arrived: [`Connection::handle_datagram`], or [`Connection::handle_batch`] for what the
//!    system's receive offload joined. `now` is when it arrived: arrival speed and capacity are
//!    estimated from it, so pass the system's time stamp where there is one, and the same time for all
//!    datagrams of one batch.
//! 2. The user wants something: [`write`](Connection::write) and [`read`](Connection::read) for streams,
//!    [`send_message`](Connection::send_message) and [`recv_message`](Connection::recv_message) for
//!    messages, [`shutdown`](Connection::shutdown).
//! 3. After either, and at each wake-up: [`Connection::poll_transmit`] until it returns nothing. Each call
//!    returns datagrams of one size that lie one behind the other, ready for one `UDP_SEGMENT` send.
//!    Pacing is inside: a packet is returned once its time has come. A driver that wakes late gets what
//!    has become due meanwhile, up to five milliseconds' worth.
//! 4. [`Connection::next_wakeup`] tells when to call [`Connection::handle_timeout`] (and then
//!    `poll_transmit`) if nothing happens before; [`Connection::poll_event`] what the user may want to
//!    know.
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
//! [`Routes`] finds the connection that a datagram is for, by its socket id and its source address,
//! before anything else is looked at. What is for none goes to the [`Listener`], which remembers nothing
//! about those who ask: 64 bytes in, at most 64 bytes out, and a keyed hash in between. Only a client that
//! repeats the cookie sent to its address becomes an [`Answer::Accept`]. Register it with
//! [`Routes::accept`], so that its repeated request finds the connection.
//!
//! A datagram for an id that is not there, [`Route::Unknown`], may be answered with a [`reset`], and a
//! [`Route::Reset`] goes to [`Connection::handle_reset`] of each connection that the port
//! [began with](Routes::begun_with) its sender. Ids that a listener gives are odd for clients that know resets
//! ([`Invitation::knows_resets`]); all others are even.
//!
//! # Which law, which acknowledgements
//!
//! A rate law (`udt`, `daimd`, `tfrc`) is told of the receiver's full acknowledgements (every 10 ms, with
//! arrival speed and capacity) as `Report`s, and its rate is kept by send times. A window law is told of
//! every acknowledgement, light ones included. UDT4 sends a light one for each 64 packets; this receiver
//! sends one for every packet as long as they are 100 µs apart, whatever the sender's law: UDT4 takes
//! them. While packets are missing, cumulative numbers stand still; then this receiver tells in a
//! user-defined control packet how much of the window has arrived ([`packet::Progress`]), and a window
//! law goes on being clocked. UDT4 ignores that packet.
//!
//! # Memory
//!
//! Bounded by the sizes in [`Config`]; no datagram raises the bound. Each buffer is a ring that begins
//! with 256 slots and doubles as it is used, at most to the next power of two of its configured packets. At
//! their largest the rings of a connection hold
//!
//! * `send_buffer` slots × (packet size − 28 + 15 bytes; messages: + 8). A stream holds no more than twice
//!   what was outstanding lately and 512 packets; the rest waits with the user.
//! * `receive_buffer` slots × (packet size − 44 + 6 bytes), as far as the user has been behind; for messages
//!   also 16 bytes for each whole message, of which there are no more than slots,
//!
//! and besides two to three bits a slot of either kind, 24 KiB of sent acknowledgements and 4 KiB of all
//! else. With the defaults that is 24 MB each way at most, and under 1 MB for a connection that is idle or
//! keeps up. [`Connection::hold_room`] bounds what is received before the application has accepted. A peer
//! cannot raise these bounds: its flow window only limits what is sent, and its packet size can only lower
//! this end's. With [`Config::record`] the record of the controller's events grows without bound, as asked.
//!
//! No datagram costs more work than a walk over one window.
//!
//! # Credentials
//!
//! UDT is in clear. [`secure`] seals whole datagrams between two ends that prove to each other who they are,
//! and the sockets of [`net`] do so with [`Config::credentials`].
//!
//! What the wire looks like, and where the draft, UDT 4.11 and this crate differ, is in `docs/udt.md`.

#![forbid(unsafe_code)]

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
