//! The keys of the authorization server: one that the operator keeps, and those that it keeps itself.
//!
//! - [`master`]: the operator's key, from a file or the environment.
//! - [`vault`]: seals private values before they become documents, and computes tags of secrets.
//! - [`signing`]: the keys that sign tokens.
//! - [`ring`]: the signing keys in use, and how they follow each other.
//! - [`error`]: the reasons why keys cannot be had.

pub(crate) mod error;
pub(crate) mod master;
pub(crate) mod ring;
pub(crate) mod signing;
pub(crate) mod vault;

use error::NoRandomBytes;

/// Random bytes from the operating system.
///
/// # Errors
///
/// If it has none.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], NoRandomBytes> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// A random UUID.
///
/// # Errors
///
/// As [`random`].
pub(crate) fn random_uuid() -> Result<String, NoRandomBytes> {
    Ok(crate::uuid::text(random()?, 4))
}
