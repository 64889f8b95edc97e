//! Encryption of whole UDT datagrams between two ends that authenticate each other. No I/O, except in [`mod@file`].
//!
//! The handshake is Noise (revision 34): `Noise_NNpsk0_25519_AESGCM_SHA256` with a shared key,
//! `Noise_IKpsk2_25519_AESGCM_SHA256` with key pairs. A one-time code becomes a shared key by SPAKE2 first. Each
//! handshake derives fresh keys for each direction, with forward secrecy. Datagrams are Noise transport messages with
//! explicit counters (section 11.4), encrypted by AES-256-GCM. `docs/udt.md` describes the protection and its limits
//! under "Credentials".
//!
//! * [`Credentials`] are a [`Key`] that is shared, a [`KeyPair`] with the [`PublicKey`]s of peers, or a
//!   [`Code`]. [`mod@file`] reads and writes their files.
//! * A client drives an [`Initiator`] until it gives a [`Session`], and then its
//!   [`Connection`](crate::Connection) through that.
//! * A port with credentials has one [`Responder`]. Whatever comes from the network goes to the session or the
//!   client that [`destination`] names, and to the responder if there is none. Once a client has proved itself,
//!   the responder gives its session with the first datagram: UDT's own handshake, for the
//!   [`Listener`](crate::Listener).
//! * A [`Session`] has a [`Sealer`] for what [`poll_transmit`](crate::Connection::poll_transmit) returns
//!   and an [`Opener`] for what arrives. Datagrams of equal size stay so: each grows by [`OVERHEAD`]. A
//!   connection's packet size is made smaller by that: [`packet_size`].
//!
//! ```
//! use cwnd::{Dur, Time};
//! use cwnd_udt::secure::{Credentials, Initiator, Key, Reply, Responder};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let key = Key::from_file_contents(b"6a09e667bb67ae853c6ef372a54ff53a510e527f9b05688c1f83d9ab5be0cd19")?;
//! let credentials = Credentials::Key(key);
//! let (now, client) = (Time::ZERO, "192.0.2.1:9000".parse()?);
//! let mut responder = Responder::new(&credentials, [0; 32], b"here"); // random bytes, in earnest
//! let mut initiator = Initiator::new(&credentials, now, 17, Dur::from_millis(3_000))?;
//!
//! let mut hello = initiator.poll(now).unwrap().to_vec();
//! let Reply::Send(answer) = responder.handle(now, client, &mut hello, || 18) else { panic!() };
//! let mut near = initiator.handle(now, &answer)?.unwrap();
//!
//! let mut wire = Vec::new();
//! near.sealer.seal(b"twelve bytes of UDT", 12, &mut wire)?;
//! let Reply::Open(mut far, first) = responder.handle(now, client, &mut wire[..40], || 19) else {
//!     panic!()
//! };
//! assert_eq!(first, b"twelve bytes");
//! assert_eq!(far.opener.open(&mut wire[40..])?, b" of UDT");
//! # Ok(())
//! # }
//! ```

mod code;
mod credentials;
mod exchanges;
pub mod file;
mod handshake;
mod initiator;
mod key;
mod pair;
mod reset;
mod responder;
mod seal;
#[cfg(test)]
mod tests;
mod window;
mod wire;

pub use code::{Code, CodeError};
pub use credentials::{Credentials, CredentialsError};
pub use initiator::Initiator;
pub use key::{Key, KeyError};
pub use pair::{KeyPair, PairError, PublicKey};
pub use responder::{Reply, Responder};
pub use seal::{Exhausted, Opener, Refusals, Sealer};
#[cfg(all(unix, feature = "net"))]
pub(crate) use wire::DESTINATION;
pub use wire::{OVERHEAD, destination, is_hello, is_reset, is_sealing, packet_size};

use reset::Token;
use wire::Keys;

/// Why a datagram is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refused {
    /// Neither a sealed datagram nor a request for a session, or not for this end.
    #[error("not a sealed datagram of this connection")]
    Foreign,
    /// A request with another version of the protocol.
    #[error("the peer seals by another version")]
    Version,
    /// A request without a key.
    #[error("the peer has no key, and this end only talks to those who have it")]
    NoKey,
    /// A request or an answer that was damaged, made with another key or code, or made with a public key that is not in
    /// the list.
    #[error("the peer's key is another one")]
    WrongKey,
    /// A sealed datagram of a session that is not known here.
    #[error("no such session")]
    Unknown,
    /// The one-time code is used up or void.
    #[error("the code is not good any more")]
    Void,
    /// Credentials that no client can connect with.
    #[error(transparent)]
    Credentials(CredentialsError),
    /// Too many sessions wait for their client's first datagram.
    #[error("too many requests at once")]
    Busy,
    /// A datagram that arrived before, or whose counter is below the replay window.
    #[error("a repeated or much too late datagram")]
    Replayed,
    /// A datagram that was damaged, or made without this connection's keys.
    #[error("a damaged or forged datagram")]
    Forged,
    /// The system has no random numbers.
    #[error("the system gives no random numbers")]
    NoRandom,
}

/// The sealing of one connection, at one end.
#[derive(Debug)]
pub struct Session {
    /// For what this end sends.
    pub sealer: Sealer,
    /// For what arrives.
    pub opener: Opener,
    identity: Option<PublicKey>,
    /// At a client: the token that authenticates the listener's resets.
    token: Option<Token>,
}

impl Session {
    /// The session of the end `id` with the end `peer`.
    fn new(
        id: u32,
        peer: u32,
        keys: &Keys,
        identity: Option<PublicKey>,
        token: Option<Token>,
    ) -> Self {
        let sealer = Sealer::new(&keys.out, peer);
        Session { sealer, opener: Opener::new(&keys.inward, id), identity, token }
    }

    /// Whether `datagram` is the listener's reset of this session: the answer to a recent datagram, authenticated by
    /// the token from the handshake.
    pub fn is_reset(&self, datagram: &[u8]) -> bool {
        let (to, sent) = (self.sealer.to(), self.sealer.sealed());
        self.token.as_ref().is_some_and(|token| reset::is_genuine(token, to, sent, datagram))
    }

    /// The authenticated public key of the peer, with [`Credentials::Pair`].
    pub fn identity(&self) -> Option<PublicKey> {
        self.identity
    }

    /// The id of this end in sealed datagrams: see [`destination`].
    pub fn id(&self) -> u32 {
        self.opener.id()
    }
}
