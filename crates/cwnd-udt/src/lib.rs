//! UDT version 4 as a state machine without I/O, wire-compatible with UDT 4.11. Any congestion
//! controller of the crate `cwnd` can be used. The state machine has no clock, socket or thread:
//! simulators, fuzzers and sockets use the same code.
//!
//! # Driving a connection
//!
//! A [`Connection`] is one end of a connection. Its driver owns the UDP socket and the clock
//! ([`cwnd::Time`], nanoseconds since any epoch) and has four tasks:
//!
//! 1. Pass received datagrams to [`Connection::handle_datagram`], or batches of the system's
//!    receive offload to [`Connection::handle_batch`]. `now` is the arrival time, from which the
//!    arrival rate and the capacity are estimated. Pass the system's timestamp if there is one, and
//!    the same time for all datagrams of a batch.
//! 2. Forward the application's calls: [`write`](Connection::write) and [`read`](Connection::read)
//!    for streams, [`send_message`](Connection::send_message) and
//!    [`recv_message`](Connection::recv_message) for messages, and
//!    [`shutdown`](Connection::shutdown).
//! 3. After each of these and after each timeout, call [`Connection::poll_transmit`] until it
//!    returns `None`. Each call returns concatenated datagrams of one size for one `UDP_SEGMENT`
//!    send. Packets are paced: each is returned when it is due. A driver that is late gets the
//!    packets that have become due in the meantime, but at most those of five milliseconds.
//! 4. At [`Connection::next_wakeup`] call [`Connection::handle_timeout`] and then `poll_transmit`.
//!    [`Connection::poll_event`] returns events for the application.
//!
//! ```
//! use cwnd::{Dur, Spec, Time};
//! use cwnd_udt::{Answer, Config, Connection, Listener, Seq, SocketType};
//!
//! let config = Config::new(Spec::parse("udt")?);
//! let client_addr = "192.0.2.1:9000".parse()?;
//! let server_addr: std::net::SocketAddr = "192.0.2.2:9000".parse()?;
//! let mut client = Connection::connect(&config, Time::ZERO, 17, Seq::new(42), server_addr.ip());
//! let listener = Listener::new([0; 16], SocketType::Stream); // use a random key
//! let mut server = None;
//! let mut now = Time::ZERO;
//! while server.is_none() {
//!     while let Some(transmit) = client.poll_transmit(now, 1) {
//!         match listener.handle(now, client_addr, transmit.datagrams) {
//!             Answer::Ignore => {}
//!             Answer::Reply(reply) => client.handle_datagram(now, &reply),
//!             Answer::Accept(incoming) => {
//!                 server = Some(Connection::accept(&config, now, 18, &incoming));
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
//! # Several connections on a port
//!
//! A [`Demultiplexer`] maps a datagram to its connection by its socket id and its source address.
//! Datagrams for socket 0 go to the [`Listener`], which keeps no state of clients: it answers 64
//! bytes with at most 64 bytes, at the cost of a keyed hash. Only a client that returns the cookie
//! sent to its address leads to an [`Answer::Accept`]. Register its connection with
//! [`Demultiplexer::accept`], so that repeated requests are routed to it.
//!
//! A datagram for an unknown id, [`Route::Unknown`], may be answered with a [`reset`]. Pass a
//! [`Route::Reset`] to [`Connection::handle_reset`] of each connection that the port
//! [initiated](Demultiplexer::initiated_to) to its sender. A listener assigns odd ids to clients
//! that support resets ([`Incoming::supports_resets`]) and even ids to all others.
//!
//! # Acknowledgements
//!
//! A rate law (`udt`, `daimd`, `tfrc`) receives the full acknowledgements (every 10 ms, with
//! arrival rate and capacity) as `Report`s, and its rate is enforced by pacing. A window law
//! receives every acknowledgement, including light ones. UDT4 sends a light acknowledgement for
//! each 64 packets. The receiver of this crate also sends one for each packet that arrives at least
//! 100 µs after the previous one, for any controller of the sender; UDT4 accepts them. While
//! packets are missing, the cumulative acknowledgement does not advance. The receiver then reports
//! how much of the window has arrived in a user-defined control packet ([`packet::Progress`]),
//! which keeps a window law ACK-clocked. UDT4 ignores this packet.
//!
//! # Memory
//!
//! The memory of a connection is bounded by the sizes in [`Config`]. Each buffer is a ring buffer
//! that starts with 256 slots and doubles when needed, at most to the next power of two of its
//! configured packets. The largest ring buffers of a connection have
//!
//! * `send_buffer` slots × (packet size − 28 + 15 bytes; messages: + 8). A stream queues at most
//!   512 packets and twice the recent maximum of outstanding packets.
//! * `receive_buffer` slots × (packet size − 44 + 6 bytes), as far as needed for unread data; for
//!   messages also 16 bytes for each complete message, of which there are at most as many as slots,
//!
//! plus two to three bits per slot, 24 KiB of sent acknowledgements and 4 KiB of other state. With
//! the defaults this is at most 24 MB in each direction, and less than 1 MB for a connection that
//! is idle or whose application keeps up. [`Connection::limit_receive_window`] bounds the data
//! received before the application accepts a connection. A peer cannot raise these bounds: its flow
//! window limits what is sent, and its packet size can only reduce the packet size. With
//! [`Config::record`] the record of the controller's events grows without bound.
//!
//! The processing time of a datagram is at most linear in the window.
//!
//! # Credentials
//!
//! UDT is neither encrypted nor authenticated. The module [`secure`] encrypts whole datagrams
//! between two ends that authenticate each other. The sockets of [`net`] use it with
//! [`Config::credentials`].
//!
//! `docs/udt.md` describes the wire format, and the differences between the draft, UDT 4.11 and
//! this crate.

#![forbid(unsafe_code)]
#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod bitmap;
mod buffer;
mod cast;
mod config;
mod connecting;
mod connection;
mod demultiplexer;
mod estimate;
pub mod handshake;
mod keep_alive;
mod limit_times;
mod listener;
#[cfg(all(unix, feature = "net"))]
pub mod net;
pub mod packet;
mod receiver;
pub mod reset;
#[cfg(feature = "secure")]
pub mod secure;
mod sender;
pub mod seq;
#[cfg(test)]
mod testing;

pub use config::{Admission, CloseReason, Config, Counters, Error, Event, Stats, counted_address};
pub use connection::{Connection, Filled, Transmit};
pub use demultiplexer::{Client, Demultiplexer, Route};
pub use estimate::{MedianFilter, PAIR_EVERY};
pub use handshake::SocketType;
pub use listener::{Answer, Incoming, Listener};
#[cfg(all(unix, feature = "net"))]
pub use net::{Endpoint, UdtListener, UdtStream};
pub use sender::{MIN_EXPIRY, SYN};
pub use seq::Seq;
