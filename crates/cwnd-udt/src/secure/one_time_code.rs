//! One-time codes: short texts that one user tells another.

use super::shared_key::random;
use std::fmt;
use std::str::FromStr;
use subtle::ConstantTimeEq;

const CONSONANTS: &[u8; 16] = b"bdfghjklmnprstvz";
const VOWELS: &[u8; 5] = b"aeiou";
/// The number of codes: four digits and four syllables of a consonant and a vowel.
const CODES: u128 = 10_000 * (16 * 5_u128).pow(4);

/// A one-time code such as `4821-kavo-miro`: four digits and four syllables, 38.6 bits.
#[derive(Clone, Eq)]
pub struct Code(String);

/// A text that is not a code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a code: a code has four digits and two groups of four letters, such as \
     4821-kavo-miro"
)]
pub struct CodeError(String);

impl Code {
    /// Generates a code from the system's random numbers.
    ///
    /// # Errors
    /// If the system's random number generator fails.
    pub fn generate() -> std::io::Result<Self> {
        // 128 bits for one of 2^38.6 codes: the bias is below 2^-89.
        let mut rest = u128::from_ne_bytes(random()?) % CODES;
        let mut draw = |count: usize| {
            let drawn = (rest % count as u128) as usize;
            rest /= count as u128;
            drawn
        };
        let number = draw(10_000);
        let mut syllables = || {
            (0..2).fold(String::new(), |mut text, _| {
                text.push(char::from(CONSONANTS[draw(16)]));
                text.push(char::from(VOWELS[draw(5)]));
                text
            })
        };
        let (first, second) = (syllables(), syllables());
        Ok(Code(format!("{number:04}-{first}-{second}")))
    }

    /// The password of the key exchange.
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Parses a code in any case, with hyphens, spaces or no separators.
impl FromStr for Code {
    type Err = CodeError;

    fn from_str(text: &str) -> Result<Self, CodeError> {
        let error = || CodeError(text.chars().take(60).collect());
        let plain: Vec<u8> = text
            .bytes()
            .filter(|byte| !byte.is_ascii_whitespace() && *byte != b'-')
            .map(|byte| byte.to_ascii_lowercase())
            .collect();
        let fits = |(at, byte): (usize, &u8)| match at {
            0..4 => byte.is_ascii_digit(),
            _ if at % 2 == 0 => CONSONANTS.contains(byte),
            _ => VOWELS.contains(byte),
        };
        if plain.len() != 12 || !plain.iter().enumerate().all(fits) {
            return Err(error());
        }
        let parts = plain.chunks(4).map(str::from_utf8).collect::<Result<Vec<_>, _>>();
        Ok(Code(parts.map_err(|_| error())?.join("-")))
    }
}

/// Prints the code itself, for the user.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Compares in constant time.
impl PartialEq for Code {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes().ct_eq(other.as_bytes()).into()
    }
}

opaque_debug!(Code);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn codes_differ_and_are_parsed_in_any_case_and_with_any_separators() {
        let codes: Vec<Code> = (0..1000).map(|_| Code::generate().unwrap()).collect();
        for code in &codes {
            let text = code.to_string();
            assert_eq!(text.len(), 14);
            for typed in [text.to_uppercase(), text.replace('-', " "), text.replace('-', "")] {
                assert_eq!(typed.parse::<Code>().unwrap(), *code, "{typed}");
            }
        }
        let different: std::collections::HashSet<_> = codes.iter().map(Code::to_string).collect();
        // Two of 1000 codes are equal with a probability of 1 in 800,000.
        assert_eq!(different.len(), codes.len());
        let firsts: std::collections::HashSet<_> = codes.iter().map(|code| &code.0[..1]).collect();
        assert_eq!(firsts.len(), 10);
        assert_eq!(format!("{:?}", codes[0]), "Code(..)");
    }

    #[test]
    fn invalid_codes_are_rejected() {
        for text in
            ["", "4821", "4821-kavo-mir", "482-kavo-mirol", "4821-kavo-miry", "é821kavomiro"]
        {
            let error = text.parse::<Code>().unwrap_err();
            assert!(error.to_string().contains("4821-kavo-miro"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_rejected_or_round_trips(text: String) {
            if let Ok(code) = text.parse::<Code>() {
                prop_assert_eq!(code.to_string().parse::<Code>(), Ok(code));
            }
        }
    }
}
