//! The reasons why nothing comes of a command about clients, tokens or keys.

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
use crate::cli::directory::SharedDirectory;
use crate::http::error::ApiError;

/// The reason why a command did nothing; the texts are for a person and show no secret.
#[derive(Debug)]
pub enum Failure {
    /// The command line makes no sense.
    Misused(String),
    /// It was tried, and failed.
    Failed(Box<dyn Error + Send + Sync>),
}

/// The reason why a stopped store does not do what it should.
#[derive(Debug, Error)]
pub(super) enum LocalError {
    #[error("{path}: {source}", path = path.display())]
    Open { path: PathBuf, source: OpenError },
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
    /// A rule refuses it.
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

/// The reason why a running server does not do what it should.
#[derive(Debug, Error)]
pub(super) enum RemoteError {
    #[error(transparent)]
    Address(#[from] UrlError),
    #[error(transparent)]
    Runtime(#[from] io::Error),
    /// Its token cannot stand in a header.
    #[error(transparent)]
    Token(#[from] InvalidHeaderValue),
    #[error("{url}: {source}")]
    Fetch { url: String, source: FetchError },
    #[error("{url}: {status}{reason}")]
    Refused { url: String, status: StatusCode, reason: String },
    #[error("the answer has no {0}")]
    Missing(&'static str),
}

/// The reason of a store, or of a running server.
#[derive(Debug, Error)]
pub(super) enum PlaceError {
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

fails_by!(LocalError, RemoteError, PlaceError, io::Error);
