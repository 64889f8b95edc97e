//! X25519 key pairs and their text formats.

use super::shared_key::{derive, random};
use base64ct::{Base64, Encoding};
use ring::hmac;
use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use std::fmt;
use std::str::FromStr;
use subtle::ConstantTimeEq;

const SALT: &[u8] = b"cwnd-udt pair 1";
/// The prefix of a private key file.
const PREFIX: &str = "cwnd-private-key-v1";

/// An X25519 public key, which identifies a peer. Its text form is 44 characters of base64.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey(pub(super) [u8; 32]);

/// An X25519 private key and its public key.
#[derive(Clone)]
pub struct KeyPair {
    pub(super) private: [u8; 32],
    public: PublicKey,
}

/// Why a text is not a public key, a private key or a list of public keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// Not a public key.
    #[error(
        "{0:?} is not a public key: a public key has 44 characters of base64, as in the private \
         key's FILE.pub"
    )]
    Public(String),
    /// Not a private key.
    #[error(
        "not a private key file, which has the line \"cwnd-private-key-v1 BASE64\": `cwnd keygen \
         --pair FILE` writes one"
    )]
    Private,
    /// A line of a list of peers has no public key: its number and the error.
    #[error("line {0}: {1}")]
    Line(usize, Box<PairError>),
    /// The list of peers is empty.
    #[error("there is no public key in the list of peers")]
    NoPeers,
}

/// Decodes 32 bytes of base64.
fn decode(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let length = Base64::decode(text, &mut bytes).ok()?.len();
    (length == bytes.len()).then_some(bytes)
}

impl KeyPair {
    /// Generates a pair from the system's random numbers.
    ///
    /// # Errors
    /// If the system's random number generator fails.
    pub fn generate() -> std::io::Result<Self> {
        Ok(KeyPair::from_private(random()?))
    }

    fn from_private(private: [u8; 32]) -> Self {
        let mut dh =
            DefaultResolver.resolve_dh(&DHChoice::Curve25519).expect("snow is built with X25519");
        dh.set(&private);
        let mut public = [0; 32];
        public.copy_from_slice(dh.pubkey());
        KeyPair { private, public: PublicKey(public) }
    }

    /// Parses the contents of a private key file: the line `cwnd-private-key-v1 BASE64`.
    ///
    /// # Errors
    /// For any other contents.
    pub fn from_file_contents(contents: &[u8]) -> Result<Self, PairError> {
        let text = std::str::from_utf8(contents).map_err(|_| PairError::Private)?;
        let mut words = text.split_whitespace();
        match (words.next(), words.next().and_then(decode), words.next()) {
            (Some(PREFIX), Some(private), None) => Ok(KeyPair::from_private(private)),
            _ => Err(PairError::Private),
        }
    }

    /// The contents of the private key file.
    pub fn to_file_contents(&self) -> String {
        format!("{PREFIX} {}\n", Base64::encode_string(&self.private))
    }

    /// The public key.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// The key from which a listener with this pair derives reset tokens.
    pub(super) fn resets(&self) -> [u8; 32] {
        derive(SALT, &self.private, b"resets")
    }
}

impl PublicKey {
    /// Derives the MAC key for `purpose` from this public key of a listener.
    pub(super) fn derive_key(&self, purpose: &[u8]) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &derive(SALT, &self.0, purpose))
    }

    /// Parses a list of peers: one public key per line, followed by an optional name. `#` starts a
    /// comment, and blank lines are skipped.
    ///
    /// # Errors
    /// For the first line without a public key, and for a list without keys.
    pub fn parse_list(text: &str) -> Result<Vec<(PublicKey, Option<String>)>, PairError> {
        let mut peers = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (key, name) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let key = key.parse().map_err(|error| PairError::Line(at + 1, Box::new(error)))?;
            let name = name.trim();
            peers.push((key, (!name.is_empty()).then(|| name.to_owned())));
        }
        if peers.is_empty() { Err(PairError::NoPeers) } else { Ok(peers) }
    }
}

impl FromStr for PublicKey {
    type Err = PairError;

    fn from_str(text: &str) -> Result<Self, PairError> {
        decode(text).map(PublicKey).ok_or_else(|| {
            // The text may be a whole file: quote its beginning.
            PairError::Public(text.chars().take(60).collect())
        })
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Base64::encode_string(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

/// Compares in constant time.
impl PartialEq for KeyPair {
    fn eq(&self, other: &Self) -> bool {
        self.private.ct_eq(&other.private).into()
    }
}

/// Prints the public key only.
impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPair(.., {})", self.public)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7748 section 6.1: Alice's keys.
    const PRIVATE: [u8; 32] = [
        0x77, 0x07, 0x6d, 0x0a, 0x73, 0x18, 0xa5, 0x7d, 0x3c, 0x16, 0xc1, 0x72, 0x51, 0xb2, 0x66,
        0x45, 0xdf, 0x4c, 0x2f, 0x87, 0xeb, 0xc0, 0x99, 0x2a, 0xb1, 0x77, 0xfb, 0xa5, 0x1d, 0xb9,
        0x2c, 0x2a,
    ];
    const PUBLIC: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";

    #[test]
    fn keys_and_their_text_forms() {
        let pair = KeyPair::from_private(PRIVATE);
        assert_eq!(pair.public().to_string(), PUBLIC);
        assert_eq!(PUBLIC.parse::<PublicKey>().unwrap(), pair.public());
        let contents = pair.to_file_contents();
        assert_eq!(KeyPair::from_file_contents(contents.as_bytes()).unwrap(), pair);
        assert_eq!(format!("{pair:?}"), format!("KeyPair(.., {PUBLIC})"));
        let [one, two] = [(); 2].map(|()| KeyPair::generate().unwrap());
        assert_ne!(one.public(), two.public());
    }

    #[test]
    fn invalid_keys_are_rejected() {
        for text in ["", "x", &PUBLIC[1..], &format!("{PUBLIC}="), &PUBLIC.replace('=', "!")] {
            assert!(matches!(text.parse::<PublicKey>(), Err(PairError::Public(_))), "{text:?}");
        }
        let good = KeyPair::from_private(PRIVATE).to_file_contents();
        for bad in ["", PUBLIC, &good[1..], &good[..40], &format!("{good} more")] {
            assert_eq!(KeyPair::from_file_contents(bad.as_bytes()), Err(PairError::Private));
        }
        assert_eq!(KeyPair::from_file_contents(&[0xff; 40]), Err(PairError::Private));
    }

    #[test]
    fn a_list_of_peers_is_parsed_and_errors_have_line_numbers() {
        let text = format!("# ours\n\n{PUBLIC} alice at home\n  {PUBLIC}# no name\r\n");
        let key: PublicKey = PUBLIC.parse().unwrap();
        let peers = PublicKey::parse_list(&text).unwrap();
        assert_eq!(peers, [(key, Some("alice at home".to_owned())), (key, None)]);
        let error = PublicKey::parse_list(&format!("{PUBLIC}\n#\nbob {PUBLIC}\n")).unwrap_err();
        assert!(error.to_string().starts_with("line 3: \"bob\" is not a public key"), "{error}");
        assert_eq!(PublicKey::parse_list("# nobody\n"), Err(PairError::NoPeers));
    }
}
