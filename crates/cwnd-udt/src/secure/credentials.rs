//! The credentials of an end, and those that it requires of its peer.

use super::code::Code;
use super::key::Key;
use super::pair::{KeyPair, PublicKey};

/// The means by which two ends authenticate each other. Both ends need the same kind.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Credentials {
    /// A secret shared by both ends. Every holder is admitted, and holders cannot be distinguished.
    Key(Key),
    /// Each end has a key pair and knows the other's public key.
    Pair {
        /// This end's pair.
        own: KeyPair,
        /// The public keys of the clients that a listener admits. A client names one: its listener's.
        peers: Vec<PublicKey>,
        /// An additional shared secret. It protects recorded traffic against quantum computers.
        psk: Option<Key>,
    },
    /// A short code that the listener's user tells the client's user. It admits one client at a time.
    Code(Code),
}

/// Why credentials cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CredentialsError {
    /// A client must know its listener's public key.
    #[error("to connect, name one public key, that of the listener; there are {0}")]
    OneListener(usize),
    /// No client could be admitted.
    #[error("a listener needs the public keys of the peers it lets in; there are none")]
    NoPeers,
}

impl Credentials {
    /// Checks whether a client can connect with these.
    ///
    /// # Errors
    /// If they are a key pair and do not name exactly one peer.
    pub fn check_client(&self) -> Result<(), CredentialsError> {
        match self {
            Credentials::Pair { peers, .. } if peers.len() != 1 => {
                Err(CredentialsError::OneListener(peers.len()))
            }
            _ => Ok(()),
        }
    }

    /// Checks whether a listener can admit clients with these.
    ///
    /// # Errors
    /// If they are a key pair without peers.
    pub fn check_listener(&self) -> Result<(), CredentialsError> {
        match self {
            Credentials::Pair { peers, .. } if peers.is_empty() => Err(CredentialsError::NoPeers),
            _ => Ok(()),
        }
    }
}
