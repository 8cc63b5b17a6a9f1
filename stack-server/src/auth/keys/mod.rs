//! The keys of the authorization server: the operator's key, and the signing keys in the store.
//!
//! - [`master`]: the operator's key, from a file or the environment.
//! - [`vault`]: seals private values before they become documents, and computes tags of secrets.
//! - [`signing`]: the keys that sign tokens.
//! - [`ring`]: the signing keys in use, and their rotation.
//! - [`error`]: errors of the keys.

pub(crate) mod error;
pub(crate) mod master;
pub(crate) mod ring;
pub(crate) mod signing;
pub(crate) mod vault;

use error::NoRandomBytes;

/// Returns random bytes from the operating system.
///
/// # Errors
///
/// Fails if the operating system returns none.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], NoRandomBytes> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// Returns a random UUID.
///
/// # Errors
///
/// Fails like [`random`].
pub(crate) fn random_uuid() -> Result<String, NoRandomBytes> {
    Ok(crate::uuid::text(random()?, 4))
}
