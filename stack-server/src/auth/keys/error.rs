//! Errors of creating, reading and using the keys of the authorization server.

use std::io;
use std::path::PathBuf;

use ledger_store::{ReadError, WriteError};
use thiserror::Error;

use crate::http::error::ApiError;

/// The operating system returned no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the system has no random bytes: {0}")]
pub struct NoRandomBytes(pub(super) getrandom::Error);

impl From<getrandom::Error> for NoRandomBytes {
    fn from(error: getrandom::Error) -> Self {
        Self(error)
    }
}

impl From<NoRandomBytes> for ApiError {
    fn from(error: NoRandomBytes) -> Self {
        Self::fault(&error.to_string())
    }
}

/// A text that is not a key. The error does not repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a key is 64 hexadecimal digits or the base64 of 32 bytes")]
pub struct NotAKey;

/// The reason why the key file of the operator cannot be used.
#[derive(Debug, Error)]
#[error("key file {path}: {reason}", path = path.display())]
pub(crate) struct KeyFileError {
    pub(super) path: PathBuf,
    #[source]
    pub(super) reason: KeyFileFault,
}

/// The operation on a key file that failed.
#[derive(Debug, Error)]
pub(crate) enum KeyFileFault {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Content(#[from] NotAKey),
    #[error(transparent)]
    Random(#[from] NoRandomBytes),
    #[error("it is not there, and this data directory holds keys that it sealed: bring it back")]
    Missing,
}

/// The reason why the vault of a store cannot be opened.
#[derive(Debug, Error)]
pub(crate) enum VaultError {
    #[error(transparent)]
    Key(#[from] KeyFileError),
    #[error(transparent)]
    Random(#[from] NoRandomBytes),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(
        "the key of the authorization server does not open what this data directory holds: another key sealed it"
    )]
    OtherKey,
    #[error("the vault is gone")]
    Gone,
}

/// The reason why a signing key cannot be created or used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum SigningError {
    #[error("an RSA key could not be made")]
    Generate,
    #[error("a token could not be signed")]
    Sign,
    #[error(transparent)]
    Random(#[from] NoRandomBytes),
}

impl From<SigningError> for ApiError {
    fn from(error: SigningError) -> Self {
        Self::fault(&error.to_string())
    }
}

/// The reason why the vault or the signing keys of a store cannot be opened.
#[derive(Debug, Error)]
pub(crate) enum OpenKeysError {
    #[error(transparent)]
    Vault(#[from] VaultError),
    #[error(transparent)]
    Signing(#[from] SigningError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl From<OpenKeysError> for ApiError {
    fn from(error: OpenKeysError) -> Self {
        Self::fault(&format!("authorization server: {error}"))
    }
}
