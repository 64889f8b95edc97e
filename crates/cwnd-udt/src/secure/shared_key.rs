//! Shared keys and their file format.

use ring::rand::{SecureRandom, SystemRandom};
use ring::{hkdf, hmac};
use std::io;
use subtle::ConstantTimeEq;

/// The minimum length of a key in bytes.
const MIN_LEN: usize = 32;
/// The maximum length of a key file in bytes.
const MAX_FILE_LEN: usize = 1024;
/// The minimum number of distinct bytes: 32 random bytes have fewer with a probability below 10⁻²⁴.
const MIN_DISTINCT_BYTES: usize = 12;

/// Returns random bytes of the system.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let failed = |_| io::Error::other("the system's random number generator failed");
    SystemRandom::new().fill(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Derives a key of 32 bytes for `purpose` from a secret by HKDF-SHA-256 (RFC 5869).
pub(super) fn derive(salt: &[u8], secret: &[u8], purpose: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    // HKDF supports up to 255 blocks of SHA-256; 32 bytes are one.
    hkdf::Salt::new(hkdf::HKDF_SHA256, salt)
        .extract(secret)
        .expand(&[purpose], hkdf::HKDF_SHA256)
        .and_then(|okm| okm.fill(&mut bytes))
        .expect("one block of HKDF");
    bytes
}

/// A key shared by both ends.
#[derive(Clone)]
pub struct Key {
    /// The pre-shared key for Noise.
    pub(super) psk: [u8; 32],
    /// The key that signs the cookies of a listener.
    pub(super) cookies: hmac::Key,
    /// The key from which a listener derives reset tokens.
    pub(super) resets: [u8; 32],
}

/// Why a file is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The key is shorter than 32 bytes.
    #[error(
        "the key has {0} bytes; it needs at least 32 random bytes: `cwnd keygen FILE` writes a key"
    )]
    TooShort(usize),
    /// The file is longer than 1024 bytes.
    #[error("the key file has more than 1024 bytes: it is not a key file")]
    TooLong,
    /// The file is text other than hexadecimal digits.
    #[error(
        "the key file is text: a pass phrase can be guessed; a key needs at least 32 random bytes, \
         binary or as 64 hexadecimal digits"
    )]
    Text,
    /// The number of hexadecimal digits is odd.
    #[error("the key has an odd number of hexadecimal digits: {0}")]
    OddDigits(usize),
    /// The key has too few distinct bytes.
    #[error("the key is not random: it has fewer than 12 distinct bytes")]
    NotRandom,
}

impl Key {
    /// Parses the contents of a key file: at least 32 random bytes, binary or as hexadecimal digits
    /// with optional white space. Both encodings of the same bytes are the same key.
    pub fn from_file_contents(contents: &[u8]) -> Result<Self, KeyError> {
        if contents.len() > MAX_FILE_LEN {
            return Err(KeyError::TooLong);
        }
        let digits: Vec<u8> =
            contents.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let is_text = contents.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace());
        let secret = match digits.iter().map(|b| (*b as char).to_digit(16)).collect() {
            Some::<Vec<u32>>(digits) if is_text => {
                if !digits.len().is_multiple_of(2) {
                    return Err(KeyError::OddDigits(digits.len()));
                }
                digits.chunks(2).map(|pair| ((pair[0] << 4 | pair[1]) & 0xff) as u8).collect()
            }
            _ if is_text && contents.len() >= MIN_LEN => return Err(KeyError::Text),
            _ => contents.to_vec(),
        };
        if secret.len() < MIN_LEN {
            return Err(KeyError::TooShort(secret.len()));
        }
        let mut seen = [false; 256];
        secret.iter().for_each(|byte| seen[usize::from(*byte)] = true);
        if seen.iter().filter(|seen| **seen).count() < MIN_DISTINCT_BYTES {
            return Err(KeyError::NotRandom);
        }
        Ok(Key::derive(&secret))
    }

    /// Derives the keys for all purposes from a secret of any length by HKDF (RFC 5869).
    fn derive(secret: &[u8]) -> Self {
        let derive = |purpose| derive(b"cwnd-udt key 1", secret, purpose);
        Key {
            psk: derive(b"noise psk"),
            cookies: hmac::Key::new(hmac::HMAC_SHA256, &derive(b"cookies")),
            resets: derive(b"resets"),
        }
    }
}

/// Compares in constant time.
impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.psk.ct_eq(&other.psk).into()
    }
}

opaque_debug!(Key);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEX: &str = "6a09e667bb67ae853c6ef372a54ff53a510e527f9b05688c1f83d9ab5be0cd19";

    fn raw() -> Vec<u8> {
        (0..32).map(|at| u8::from_str_radix(&HEX[2 * at..2 * at + 2], 16).unwrap()).collect()
    }

    fn error(contents: &[u8]) -> KeyError {
        Key::from_file_contents(contents).unwrap_err()
    }

    #[test]
    fn binary_and_hexadecimal_files_give_the_same_key() {
        let key = Key::from_file_contents(&raw()).unwrap();
        let lines = format!("{}\n{}\n", &HEX[..32], &HEX[32..].to_uppercase());
        for text in [HEX.to_owned(), format!("{HEX}\n"), format!(" {HEX}\r\n"), lines] {
            assert_eq!(Key::from_file_contents(text.as_bytes()).unwrap(), key, "{text:?}");
        }
        let mut longer = raw();
        longer.push(b'\n');
        assert_ne!(Key::from_file_contents(&longer).unwrap(), key, "raw bytes all count");
        assert_eq!(format!("{key:?}"), "Key(..)");
    }

    #[test]
    fn invalid_key_files_are_rejected_with_the_reason() {
        assert_eq!(error(b""), KeyError::TooShort(0));
        assert_eq!(error(&raw()[..31]), KeyError::TooShort(31));
        assert_eq!(error(&HEX.as_bytes()[..62]), KeyError::TooShort(31));
        assert_eq!(error(&HEX.as_bytes()[..63]), KeyError::OddDigits(63));
        assert_eq!(error(b"secret\n"), KeyError::TooShort(7));
        assert_eq!(error(b"correct horse battery staple, many times over\n"), KeyError::Text);
        assert_eq!(error(&[0; 32]), KeyError::NotRandom);
        assert_eq!(error(&[b'0'; 64]), KeyError::NotRandom);
        assert_eq!(error(&[7; 1025]), KeyError::TooLong);
        assert!(error(b"").to_string().contains("cwnd keygen FILE"));
    }

    proptest! {
        #[test]
        fn any_contents_are_rejected_or_give_a_key(contents in prop::collection::vec(any::<u8>(), 0..1100)) {
            if let Ok(key) = Key::from_file_contents(&contents) {
                prop_assert!(contents.len() >= 32);
                prop_assert_ne!(key.psk, [0; 32]);
            }
        }
    }
}
