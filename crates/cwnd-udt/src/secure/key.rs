//! The shared key and its file.

use ring::{hkdf, hmac};
use std::fmt;
use subtle::ConstantTimeEq;

/// The least number of bytes of a key.
const LEAST: usize = 32;
/// The largest size of a key file in bytes: a longer file is not a key.
const MOST: usize = 1024;
/// The least number of different bytes: a random key of 32 bytes has fewer with a probability below 10⁻²⁴.
const DIFFERENT: usize = 12;

/// Derives 32 bytes for one purpose from a secret by HKDF-SHA-256 (RFC 5869).
pub(super) fn derive(salt: &[u8], secret: &[u8], purpose: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    // 32 bytes are one block of SHA-256: HKDF gives up to 255 of them.
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
    /// The `psk` of Noise.
    pub(super) psk: [u8; 32],
    /// The key that signs the cookies of a listener.
    pub(super) cookies: hmac::Key,
    /// The secret of the listener's resets.
    pub(super) resets: [u8; 32],
}

/// Why a file is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Too short to be safe.
    #[error(
        "the key has {0} bytes, at least 32 random ones are needed: `cwnd keygen FILE` writes them"
    )]
    TooShort(usize),
    /// Longer than any key.
    #[error("the key file has more than 1024 bytes: it seems to be another file")]
    TooLong,
    /// Text that is not hexadecimal.
    #[error(
        "the key file holds text: a pass phrase can be guessed, the key has to be at least 32 random \
         bytes or 64 hexadecimal digits"
    )]
    Text,
    /// Hexadecimal digits that are not pairs.
    #[error("the key has an odd number of hexadecimal digits: {0}")]
    OddDigits(usize),
    /// Bytes that are not random.
    #[error("the key is not random: nearly all of its bytes are the same")]
    NotRandom,
}

impl Key {
    /// Reads a key from the contents of its file: at least 32 random bytes, binary or as hexadecimal digits with white
    /// space around them and between lines. Both forms of the same bytes are the same key.
    pub fn from_file_contents(contents: &[u8]) -> Result<Self, KeyError> {
        if contents.len() > MOST {
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
            _ if is_text && contents.len() >= LEAST => return Err(KeyError::Text),
            _ => contents.to_vec(),
        };
        if secret.len() < LEAST {
            return Err(KeyError::TooShort(secret.len()));
        }
        let mut seen = [false; 256];
        secret.iter().for_each(|byte| seen[usize::from(*byte)] = true);
        if seen.iter().filter(|seen| **seen).count() < DIFFERENT {
            return Err(KeyError::NotRandom);
        }
        Ok(Key::derive(&secret))
    }

    /// Derives by HKDF (RFC 5869) the key for Noise and those for other uses from a secret of any length.
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

/// Keeps the secret out of logs.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

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
    fn raw_bytes_and_digits_are_the_same_key() {
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
    fn what_is_no_key_is_refused_with_its_reason() {
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
        fn no_file_is_too_strange(contents in prop::collection::vec(any::<u8>(), 0..1100)) {
            if let Ok(key) = Key::from_file_contents(&contents) {
                prop_assert!(contents.len() >= 32);
                prop_assert_ne!(key.psk, [0; 32]);
            }
        }
    }
}
