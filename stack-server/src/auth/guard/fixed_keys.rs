//! Fixed keys: bearer values that the operator has chosen. They are for clients that can only send one constant value.

use std::fmt;

use constant_time_eq::constant_time_eq_32;
use hyper::header::HeaderMap;
use thiserror::Error;

use crate::auth::guard::bearer_of;

/// Minimum number of characters of a key. Shorter texts can be guessed.
const KEY_CHARS_MIN: usize = 16;

/// The accepted keys. Only their digests are kept.
#[derive(Clone, PartialEq, Eq)]
pub struct FixedKeys(Vec<[u8; 32]>);

impl FixedKeys {
    /// Parses keys, one per line.
    ///
    /// # Errors
    ///
    /// Fails if there is no key, or if a key is too short or contains a character other than visible ASCII.
    pub fn parse(text: &str) -> Result<Self, FixedKeysError> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let keys = lines.map(|key| {
            if key.len() < KEY_CHARS_MIN {
                return Err(FixedKeysError::TooShort(key.len()));
            }
            if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(FixedKeysError::Character);
            }
            Ok(*blake3::hash(key.as_bytes()).as_bytes())
        });
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() { Err(FixedKeysError::Missing) } else { Ok(Self(keys)) }
    }

    /// Returns whether a request with these headers contains one of the keys.
    pub(crate) fn allow(&self, headers: &HeaderMap) -> bool {
        let Some(shown) = bearer_of(headers) else { return false };
        let digest = *blake3::hash(shown).as_bytes();
        self.0.iter().any(|key| constant_time_eq_32(key, &digest))
    }
}

impl fmt::Debug for FixedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FixedKeys")
    }
}

/// The text does not contain valid fixed keys. The error does not repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FixedKeysError {
    /// A key is too short: it has this number of bytes.
    #[error("a key has at least {KEY_CHARS_MIN} characters, this one has {0}")]
    TooShort(usize),
    /// A key contains a character other than visible ASCII, for example a space.
    #[error("a key has only visible ASCII characters")]
    Character,
    /// The text contains no key.
    #[error("there is no key")]
    Missing,
}

#[cfg(test)]
mod tests {
    use hyper::header::{AUTHORIZATION, HeaderValue};

    use super::*;

    const KEYS: &str = "\n 0123456789abcdef \nfedcba9876543210\n";

    #[test]
    fn allows_each_key_and_nothing_else() {
        let keys = FixedKeys::parse(KEYS).expect("the keys are well formed");
        let allows = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_str(value).expect("the value is visible ASCII"));
            keys.allow(&headers)
        };
        assert!(allows("Bearer 0123456789abcdef") && allows("Bearer fedcba9876543210"));
        for wrong in ["Bearer ", "Bearer 0123456789abcde", "Bearer 0123456789abcdef0", "0123456789abcdef"] {
            assert!(!allows(wrong), "{wrong}");
        }
        assert!(!keys.allow(&HeaderMap::new()));
    }

    #[test]
    fn refuses_texts_that_are_no_keys() {
        for (text, error) in [
            ("", FixedKeysError::Missing),
            (" \n\n", FixedKeysError::Missing),
            ("0123456789abcde", FixedKeysError::TooShort(15)),
            ("0123456789abcdef\nshort", FixedKeysError::TooShort(5)),
            ("0123456789 abcdef", FixedKeysError::Character),
            ("0123456789abcdé…", FixedKeysError::Character),
        ] {
            assert_eq!(FixedKeys::parse(text), Err(error), "{text:?}");
        }
        assert_eq!(format!("{:?}", FixedKeys::parse(KEYS)), "Ok(FixedKeys)");
    }
}
