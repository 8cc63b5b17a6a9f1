//! The identity of a store: its id, which is public, and its secret, which is not.

use std::fmt;
use std::io;

/// 16 random bytes that tell one store from every other.
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
/// They key the digests of stored values, so that a client who chooses what
/// is stored still cannot choose how a stored page begins.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub [u8; 32]);

impl Secret {
    /// The digest of a stored value: `parts` one after the other, keyed.
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

/// Says nothing of the bytes: the secret must not reach a log.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The id and the secret, which tell a store from every other and its values from forged ones.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Stands in every file of the store.
    pub store: StoreId,
    /// Keys the digests of what is stored.
    pub secret: Secret,
}

impl Identity {
    /// A new identity from the system's random source.
    ///
    /// # Errors
    ///
    /// If the system has no randomness to give.
    pub fn random() -> io::Result<Self> {
        let mut store = [0; 16];
        let mut secret = [0; 32];
        let failed = |error: getrandom::Error| io::Error::other(error.to_string());
        getrandom::fill(&mut store).map_err(failed)?;
        getrandom::fill(&mut secret).map_err(failed)?;
        Ok(Self { store: StoreId(store), secret: Secret(secret) })
    }
}
