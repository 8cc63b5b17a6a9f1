//! Encryption of secrets at rest. A secret is sealed with a key for a purpose. Opening it requires the same key and
//! purpose.
//!
//! A sealed text consists of a version byte, eight bytes that identify the key, a nonce, and the AES-256-GCM
//! ciphertext. The purpose is authenticated data, so a text that was sealed for one purpose cannot be opened for
//! another.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use thiserror::Error;

/// Version of the layout.
const VERSION: u8 = 1;

/// Length of the key id in bytes.
const KEY_ID_BYTES: usize = 8;

/// Length of a key in bytes.
pub(crate) const KEY_BYTES: usize = 32;

/// The operator's keys for secrets at rest. Each is a text of at least 32 bytes. The first encrypts, and the others are
/// earlier keys. `Debug` hides them.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptionKey(Vec<Box<[u8]>>);

impl EncryptionKey {
    /// Parses keys, one per line.
    ///
    /// # Errors
    ///
    /// Fails if there is no key, or if a key has fewer than 32 bytes: short texts can be guessed.
    pub fn parse(text: &str) -> Result<Self, EncryptionKeyError> {
        let lines = text.trim().lines().map(str::trim);
        let keys = lines.filter(|line| !line.is_empty()).map(|line| match line.len() {
            KEY_BYTES.. => Ok(line.as_bytes().into()),
            length => Err(EncryptionKeyError::TooShort(length)),
        });
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() {
            return Err(EncryptionKeyError::Missing);
        }
        Ok(Self(keys))
    }

    /// Creates the sealer for these keys.
    pub(crate) fn sealer(&self) -> Sealer {
        let mut sealers = self.0.iter().map(|key| Sealer::of_secret(key));
        let first = sealers.next().expect("`parse` refuses a text without keys");
        Sealer { earlier: sealers.collect(), ..first }
    }
}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncryptionKey")
    }
}

/// The text does not contain valid encryption keys. The error does not repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EncryptionKeyError {
    /// A key is too short: it has this number of bytes.
    #[error("an encryption key has at least {KEY_BYTES} characters, this one has {0}")]
    TooShort(usize),
    /// The text contains no key.
    #[error("there is no encryption key")]
    Missing,
}

/// Seals and opens secrets.
pub(crate) struct Sealer {
    key: LessSafeKey,
    id: [u8; KEY_ID_BYTES],
    /// The sealers of earlier keys, which only decrypt.
    earlier: Vec<Sealer>,
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer")
    }
}

/// The reason why a sealed text cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum OpenError {
    #[error("a secret was encrypted with another key than the one that is configured")]
    OtherKey,
    /// The text was changed, truncated, or sealed for another purpose.
    #[error("an encrypted secret is not what was written")]
    Damaged,
}

impl Sealer {
    /// Creates a sealer with this key.
    pub(crate) fn new(key: &[u8; KEY_BYTES]) -> Self {
        let digest = blake3::derive_key("stack-server 2026 key id of secrets", key);
        let mut id = [0; KEY_ID_BYTES];
        id.copy_from_slice(&digest[..KEY_ID_BYTES]);
        let key = UnboundKey::new(&AES_256_GCM, key).expect("the key has the length of the cipher");
        Self { key: LessSafeKey::new(key), id, earlier: vec![] }
    }

    /// Creates a sealer with a key that is derived from a secret of any length.
    pub(crate) fn of_secret(secret: &[u8]) -> Self {
        Self::new(&blake3::derive_key("stack-server 2026 key of secrets", secret))
    }

    /// Encrypts bytes for a purpose.
    ///
    /// # Errors
    ///
    /// Fails if the operating system returns no random bytes.
    pub(crate) fn seal(&self, purpose: &[u8], bytes: &[u8]) -> Result<Vec<u8>, getrandom::Error> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce)?;
        let mut sealed = vec![VERSION];
        sealed.extend_from_slice(&self.id);
        sealed.extend_from_slice(&nonce);
        let start = sealed.len();
        sealed.extend_from_slice(bytes);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, Aad::from(purpose), &mut sealed[start..])
            .expect("secrets are shorter than the cipher's limit");
        sealed.extend_from_slice(tag.as_ref());
        Ok(sealed)
    }

    /// Returns whether a text was sealed with another key than the one that encrypts now.
    pub(crate) fn is_outdated(&self, sealed: &[u8]) -> bool {
        sealed.get(1..=KEY_ID_BYTES).is_some_and(|id| id != self.id)
    }

    /// Decrypts a text that [`Sealer::seal`] returned for the same purpose.
    ///
    /// # Errors
    ///
    /// Fails if another key sealed the text, or if the text is damaged.
    pub(crate) fn open(&self, purpose: &[u8], sealed: &[u8]) -> Result<Vec<u8>, OpenError> {
        let (&version, rest) = sealed.split_first().ok_or(OpenError::Damaged)?;
        let (id, rest) = rest.split_first_chunk::<KEY_ID_BYTES>().ok_or(OpenError::Damaged)?;
        let (nonce, rest) = rest.split_first_chunk::<NONCE_LEN>().ok_or(OpenError::Damaged)?;
        if version != VERSION {
            return Err(OpenError::Damaged);
        }
        if *id != self.id {
            let earlier = self.earlier.iter().find(|earlier| earlier.id == *id);
            return earlier.ok_or(OpenError::OtherKey)?.open(purpose, sealed);
        }
        let mut bytes = rest.to_vec();
        let opened =
            self.key.open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(purpose), &mut bytes);
        let length = opened.map_err(|_| OpenError::Damaged)?.len();
        bytes.truncate(length);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_keys_open_and_the_first_one_seals() {
        let (old, new) = ("o".repeat(32), "n".repeat(32));
        let [before, after] =
            [old.clone(), new.clone()].map(|text| EncryptionKey::parse(&text).expect("a key").sealer());
        let both = EncryptionKey::parse(&format!("{new}\n\n{old}\n")).expect("two keys").sealer();
        let sealed = before.seal(b"a", b"x").expect("random bytes");
        assert_eq!(both.open(b"a", &sealed).as_deref(), Ok(&b"x"[..]));
        assert!(both.is_outdated(&sealed));
        let again = both.seal(b"a", b"x").expect("random bytes");
        assert!(!both.is_outdated(&again));
        assert_eq!(after.open(b"a", &again).as_deref(), Ok(&b"x"[..]));
        assert_eq!(after.open(b"a", &sealed), Err(OpenError::OtherKey));
        assert!(EncryptionKey::parse(&format!("{new}\nshort")).is_err());
    }

    #[test]
    fn an_encryption_key_is_long_and_prints_nothing() {
        let key = EncryptionKey::parse(&"k".repeat(32)).expect("long enough");
        assert_eq!(format!("{key:?}"), "EncryptionKey");
        let sealed = key.sealer().seal(b"a", b"x").expect("random bytes");
        assert_eq!(key.sealer().open(b"a", &sealed).as_deref(), Ok(&b"x"[..]));
        assert!(EncryptionKey::parse(&"k".repeat(31)).is_err());
    }

    #[test]
    fn a_secret_opens_with_its_key_and_purpose_only() {
        let sealer = Sealer::new(&[1; KEY_BYTES]);
        let sealed = sealer.seal(b"a", b"secret").expect("random bytes");
        assert!(!sealed.windows(6).any(|part| part == b"secret"));
        assert_eq!(sealer.open(b"a", &sealed).as_deref(), Ok(&b"secret"[..]));
        assert_eq!(sealer.open(b"b", &sealed), Err(OpenError::Damaged));
        assert_eq!(Sealer::of_secret(b"x").open(b"a", &sealed), Err(OpenError::OtherKey));
        assert_ne!(sealer.seal(b"a", b"secret").expect("random bytes"), sealed);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(sealer.open(b"a", &changed).is_err(), "changed at {at}");
            assert!(sealer.open(b"a", &sealed[..at]).is_err(), "cut at {at}");
        }
    }
}
