//! The credentials of an end of a connection.

use super::key_pair::{KeyPair, PublicKey};
use super::one_time_code::Code;
use super::shared_key::Key;

/// The means by which two ends authenticate each other. Both ends need the same kind.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Credentials {
    /// A shared secret. Every holder is accepted, and holders cannot be distinguished.
    Key(Key),
    /// A key pair of this end and the public keys of its peers.
    Pair {
        /// This end's key pair.
        own: KeyPair,
        /// For a listener, the public keys of the accepted clients. For a client, exactly one: the
        /// listener's.
        peers: Vec<PublicKey>,
        /// An additional shared secret. It protects recorded traffic against quantum computers.
        psk: Option<Key>,
    },
    /// A one-time code that the listener's user tells the client's user. One client at a time is
    /// accepted.
    Code(Code),
}

/// Why credentials cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CredentialsError {
    /// A client needs exactly one public key, its listener's. There are this many.
    #[error("a client needs exactly one public key, that of the listener, and has {0}")]
    OneListener(usize),
    /// A listener without public keys accepts no client.
    #[error("a listener needs the public keys of the accepted clients and has none")]
    NoPeers,
}

impl Credentials {
    /// Checks whether a client can use these credentials.
    ///
    /// # Errors
    /// For a key pair without exactly one peer.
    pub fn check_client(&self) -> Result<(), CredentialsError> {
        match self {
            Credentials::Pair { peers, .. } if peers.len() != 1 => {
                Err(CredentialsError::OneListener(peers.len()))
            }
            _ => Ok(()),
        }
    }

    /// Checks whether a listener can use these credentials.
    ///
    /// # Errors
    /// For a key pair without peers.
    pub fn check_listener(&self) -> Result<(), CredentialsError> {
        match self {
            Credentials::Pair { peers, .. } if peers.is_empty() => Err(CredentialsError::NoPeers),
            _ => Ok(()),
        }
    }
}
