//! Errors of a request to an issuer of tokens, and of the construction of a guard.

use std::error::Error;
use std::io;

use hyper::StatusCode;
use thiserror::Error;

use crate::auth::keys::error::OpenKeysError;
use crate::limits::ISSUER_KEYS_MAX;
use crate::outbound::TlsError;

/// A text that is not an address of an issuer or of this server. The error hides possible secrets in the text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum UrlError {
    #[error("{0:?} is no http or https address")]
    NoAddress(String),
    #[error("{0:?} has a path, a query or a fragment")]
    MoreThanOrigin(String),
}

/// The reason why another server did not answer. The texts contain nothing of the request.
#[derive(Debug, Error)]
pub(crate) enum FetchError {
    #[error("it did not answer in time")]
    Timeout,
    #[error(transparent)]
    Connect(#[from] io::Error),
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The parts do not form a valid request.
    #[error(transparent)]
    Request(#[from] hyper::http::Error),
    #[error(transparent)]
    Exchange(#[from] hyper::Error),
    /// The body is incomplete or too long.
    #[error(transparent)]
    Body(Box<dyn Error + Send + Sync>),
}

/// An unusable response of another server.
#[derive(Debug, Error)]
#[error("{address}: {reason}")]
pub(crate) struct AnswerError {
    pub(super) address: String,
    #[source]
    pub(super) reason: AnswerFault,
}

/// The reason why a response cannot be used.
#[derive(Debug, Error)]
pub(crate) enum AnswerFault {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("it answers {0}")]
    Status(StatusCode),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("it is of issuer {0}")]
    OtherIssuer(String),
    #[error("it has no {0}")]
    Missing(&'static str),
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error("{0} is http, and the issuer is https")]
    Unprotected(String),
    #[error("it has {0} RSA keys; at least 1 and at most {ISSUER_KEYS_MAX}")]
    KeyCount(usize),
    #[error("two of its keys have one name")]
    SameKeyName,
}

/// The reason why a guard cannot be built from the settings.
#[derive(Debug, Error)]
pub(crate) enum GuardError {
    #[error(transparent)]
    Issuer(#[from] UrlError),
    #[error(transparent)]
    OwnKeys(#[from] OpenKeysError),
    #[error("own tokens are asked for, but there is no authorization server")]
    NoAuthority,
    #[error("tokens are asked for, but no issuer is named whose tokens they could be")]
    NoIssuer,
}
