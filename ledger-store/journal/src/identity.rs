//! The identity of a store: a public id and a secret.

use std::fmt;
use std::io;

/// 16 random bytes that identify a store.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StoreId(pub [u8; 16]);

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreId({self})")
    }
}

/// 32 random bytes that only the store knows.
///
/// They key the digests of stored values, so that a client who chooses the stored data cannot choose the digest.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub [u8; 32]);

impl Secret {
    /// Returns the keyed digest of the concatenated `parts`.
    pub fn digest(&self, parts: &[&[u8]]) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for part in parts {
            hasher.update(part);
        }
        let mut half = [0; 16];
        hasher.finalize_xof().fill(&mut half);
        half
    }
}

/// Hides the bytes, because the secret must not reach a log.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The id and the secret of a store.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The id, which every file of the store contains.
    pub store: StoreId,
    /// The key for the digests of stored data.
    pub secret: Secret,
}

impl Identity {
    /// Creates a new identity from the system's random source.
    ///
    /// # Errors
    ///
    /// The error of the operating system, if it cannot provide random numbers.
    pub fn random() -> io::Result<Self> {
        let mut store = [0; 16];
        let mut secret = [0; 32];
        let failed = |error: getrandom::Error| io::Error::other(error.to_string());
        getrandom::fill(&mut store).map_err(failed)?;
        getrandom::fill(&mut secret).map_err(failed)?;
        Ok(Self { store: StoreId(store), secret: Secret(secret) })
    }
}
