//! Errors of commands about clients, tokens and keys.

use std::borrow::Cow;
use std::error::Error;
use std::io;
use std::path::PathBuf;

use hyper::StatusCode;
use hyper::header::InvalidHeaderValue;
use ledger_store::{OpenError, ReadError, WriteError};
use thiserror::Error;

use crate::auth::authority::AuthorityError;
use crate::auth::guard::error::{FetchError, UrlError};
use crate::auth::keys::error::OpenKeysError;
use crate::cli::directory::{self, SharedDirectory};
use crate::http::error::ApiError;

/// The reason why a command failed. The texts are for a person and show no secret.
#[derive(Debug)]
pub enum Failure {
    /// The command line is not valid.
    Usage(String),
    /// The command was executed and failed.
    Failed(Box<dyn Error + Send + Sync>),
}

/// The reason why a command on a stopped store failed.
#[derive(Debug, Error)]
pub(super) enum LocalError {
    #[error("{path}: {source}", path = path.display())]
    Open { path: PathBuf, source: OpenError },
    /// The directory does not contain a store. Opening it would create one.
    #[error("{}", directory::no_store(.0))]
    NoStore(PathBuf),
    #[error(transparent)]
    Shared(#[from] SharedDirectory),
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    #[error(transparent)]
    Keys(#[from] OpenKeysError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Close(#[from] WriteError),
    /// The change violates a rule.
    #[error("{0}")]
    Refused(Cow<'static, str>),
    #[error("there is no client {0:?}")]
    NoClient(String),
    #[error("there are clients already; auth client create makes another")]
    HasClients,
}

impl From<ApiError> for LocalError {
    fn from(error: ApiError) -> Self {
        Self::Refused(error.reason().to_owned().into())
    }
}

/// The reason why a command on a running server failed.
#[derive(Debug, Error)]
pub(super) enum RemoteError {
    #[error(transparent)]
    Address(#[from] UrlError),
    #[error(transparent)]
    Runtime(#[from] io::Error),
    /// The token is not a valid header value.
    #[error(transparent)]
    Token(#[from] InvalidHeaderValue),
    #[error("{url}: {source}")]
    Fetch { url: String, source: FetchError },
    #[error("{url}: {status}{reason}")]
    Refused { url: String, status: StatusCode, reason: String },
    #[error("the answer has no {0}")]
    Missing(&'static str),
}

/// The error of a stopped store or of a running server.
#[derive(Debug, Error)]
pub(super) enum TargetError {
    #[error(transparent)]
    Local(#[from] LocalError),
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

macro_rules! fails_by {
    ($($error:ty),+) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::Failed(error.into())
            }
        })+
    };
}

fails_by!(LocalError, RemoteError, TargetError, io::Error);
