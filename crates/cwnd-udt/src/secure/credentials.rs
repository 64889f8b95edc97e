//! What an end proves to its peer, and what it wants proved.

use super::code::Code;
use super::key::Key;
use super::pair::{KeyPair, PublicKey};

/// How two ends prove to each other that they may talk. Both ends need the same kind.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Credentials {
    /// One secret that both ends have. Whoever has it is let in, and nobody can tell the holders apart.
    Key(Key),
    /// Each end has a key pair and knows the other's public key.
    Pair {
        /// This end's pair.
        own: KeyPair,
        /// The public keys of those a listener lets in. A client names one: its listener's.
        peers: Vec<PublicKey>,
        /// A secret that both ends have besides. It protects recordings against quantum computers.
        psk: Option<Key>,
    },
    /// A short code that the listener's user tells the client's. It lets in one client at a time.
    Code(Code),
}

/// Why credentials cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CredentialsError {
    /// A client has to know whom it talks to.
    #[error("to connect, name one public key, that of the listener; there are {0}")]
    OneListener(usize),
    /// Nobody could come in.
    #[error("a listener needs the public keys of the peers it lets in; there are none")]
    NoPeers,
}

impl Credentials {
    /// Checks whether a client can connect with these.
    ///
    /// # Errors
    /// When they are a pair and do not name one listener.
    pub fn check_client(&self) -> Result<(), CredentialsError> {
        match self {
            Credentials::Pair { peers, .. } if peers.len() != 1 => {
                Err(CredentialsError::OneListener(peers.len()))
            }
            _ => Ok(()),
        }
    }

    /// Checks whether a listener can let anybody in with these.
    ///
    /// # Errors
    /// When they are a pair without peers.
    pub fn check_listener(&self) -> Result<(), CredentialsError> {
        match self {
            Credentials::Pair { peers, .. } if peers.is_empty() => Err(CredentialsError::NoPeers),
            _ => Ok(()),
        }
    }
}
