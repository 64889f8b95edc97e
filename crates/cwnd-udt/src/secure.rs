//! Encryption of whole UDT datagrams between two ends that authenticate each other. No I/O, except
//! in [`mod@file`].
//!
//! The handshake is Noise (revision 34): `Noise_NNpsk0_25519_AESGCM_SHA256` with a shared key, and
//! `Noise_IKpsk2_25519_AESGCM_SHA256` with key pairs. With a one-time code, SPAKE2 first derives a
//! shared key. Each handshake derives new keys for each direction, with forward secrecy. Datagrams
//! are Noise transport messages with explicit counters (section 11.4), encrypted by AES-256-GCM.
//! `docs/udt.md` describes the protocol and its security properties under "Credentials".
//!
//! * [`Credentials`] are a shared [`Key`], a [`KeyPair`] with the [`PublicKey`]s of peers, or a
//!   [`Code`]. [`mod@file`] reads and writes key files.
//! * A client drives an [`Initiator`] until it returns a [`Session`]. The datagrams of its
//!   [`Connection`](crate::Connection) then pass through the session.
//! * A port with credentials has one [`Responder`]. Received datagrams are for the session or the
//!   client with the id [`destination`], or for the responder if there is none. When a client is
//!   authenticated, the responder returns its session and its first datagram, which is UDT's
//!   handshake for the [`Listener`](crate::Listener).
//! * A [`Session`] has a [`Sealer`] for the datagrams of
//!   [`poll_transmit`](crate::Connection::poll_transmit) and an [`Opener`] for received datagrams.
//!   Sealing lengthens each datagram by [`OVERHEAD`]; [`packet_size`] returns the packet size to
//!   configure for the connection.
//!
//! ```
//! use cwnd::{Dur, Time};
//! use cwnd_udt::secure::{Credentials, Initiator, Key, Reply, Responder};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let key = Key::from_file_contents(b"6a09e667bb67ae853c6ef372a54ff53a510e527f9b05688c1f83d9ab5be0cd19")?;
//! let credentials = Credentials::Key(key);
//! let (now, client) = (Time::ZERO, "192.0.2.1:9000".parse()?);
//! let mut responder = Responder::new(&credentials, [0; 32], b"here"); // use random bytes
//! let mut initiator = Initiator::new(&credentials, now, 17, Dur::from_millis(3_000))?;
//!
//! let mut hello = initiator.poll(now).unwrap().to_vec();
//! let Reply::Send(answer) = responder.handle(now, client, &mut hello, || 18) else { panic!() };
//! let mut client_end = initiator.handle(now, &answer)?.unwrap();
//!
//! let mut wire = Vec::new();
//! client_end.sealer.seal(b"twelve bytes of UDT", 12, &mut wire)?;
//! let Reply::Open(mut listener_end, first) = responder.handle(now, client, &mut wire[..40], || 19) else {
//!     panic!()
//! };
//! assert_eq!(first, b"twelve bytes");
//! assert_eq!(listener_end.opener.open(&mut wire[40..])?, b" of UDT");
//! # Ok(())
//! # }
//! ```

/// Implements `Debug` for a type whose contents are secret: only its name is printed.
macro_rules! opaque_debug {
    ($name:ident) => {
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($name), "(..)"))
            }
        }
    };
}

mod credentials;
pub mod file;
mod handshake;
mod initiator;
mod key_pair;
mod one_time_code;
mod pending_exchanges;
mod replay_window;
mod reset;
mod responder;
mod seal;
mod shared_key;
#[cfg(test)]
mod tests;
mod wire;

pub use credentials::{Credentials, CredentialsError};
pub use initiator::Initiator;
pub use key_pair::{KeyPair, PairError, PublicKey};
pub use one_time_code::{Code, CodeError};
pub use responder::{Reply, Responder};
pub use seal::{Exhausted, Opener, Refusals, Sealer};
pub use shared_key::{Key, KeyError};
pub use wire::{
    OVERHEAD, Refused, destination, is_hello, is_reset, is_secure_datagram, packet_size,
};
#[cfg(all(unix, feature = "net"))]
pub(crate) use {shared_key::random, wire::DESTINATION};

use reset::Token;
use wire::Keys;

/// The encryption of one connection, at one end.
#[derive(Debug)]
pub struct Session {
    /// Encrypts the datagrams of this end.
    pub sealer: Sealer,
    /// Decrypts the datagrams of the peer.
    pub opener: Opener,
    identity: Option<PublicKey>,
    /// The token that authenticates the listener's resets. Only clients have it.
    token: Option<Token>,
}

impl Session {
    /// Creates the session of the end with id `id` and the end with id `peer`.
    fn new(
        id: u32,
        peer: u32,
        keys: &Keys,
        identity: Option<PublicKey>,
        token: Option<Token>,
    ) -> Self {
        let sealer = Sealer::new(&keys.send, peer);
        Session { sealer, opener: Opener::new(&keys.receive, id), identity, token }
    }

    /// Whether `datagram` is an authentic reset of this session by the listener, which answers a
    /// recent datagram.
    pub fn is_reset(&self, datagram: &[u8]) -> bool {
        let (to, sent) = (self.sealer.to(), self.sealer.sealed());
        self.token.as_ref().is_some_and(|token| reset::is_authentic(token, to, sent, datagram))
    }

    /// The authenticated public key of the peer, with [`Credentials::Pair`].
    pub fn identity(&self) -> Option<PublicKey> {
        self.identity
    }

    /// The id of this end in sealed datagrams, see [`destination`].
    pub fn id(&self) -> u32 {
        self.opener.id()
    }
}
