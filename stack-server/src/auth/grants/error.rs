//! Errors of the protocol endpoints.

use std::borrow::Cow;

use hyper::StatusCode;

use crate::auth::keys::error::{NoRandomBytes, SigningError};
use crate::http::error::ApiError;

/// Values of the member `error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorCode {
    InvalidRequest,
    InvalidClient,
    InvalidGrant,
    InvalidScope,
    UnauthorizedClient,
    UnsupportedGrantType,
    ServerError,
    TemporarilyUnavailable,
    /// Too many wrong secrets. The value of `error` is one that clients know; only the status tells this case apart.
    TooManyTries,
}

impl ErrorCode {
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidClient | Self::TooManyTries => "invalid_client",
            Self::InvalidGrant => "invalid_grant",
            Self::InvalidScope => "invalid_scope",
            Self::UnauthorizedClient => "unauthorized_client",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::ServerError => "server_error",
            Self::TemporarilyUnavailable => "temporarily_unavailable",
        }
    }

    /// Returns the status of a response of the token endpoint. A fault of the server has status 400 there, as clients
    /// of this API expect.
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::InvalidClient => StatusCode::UNAUTHORIZED,
            Self::TemporarilyUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooManyTries => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

/// An OAuth error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OAuthError {
    pub(crate) code: ErrorCode,
    /// Text for a person. Some errors have none.
    pub(crate) description: Option<Cow<'static, str>>,
    /// The fault of the server that caused the error, if there is one.
    fault: Option<Box<ApiError>>,
}

impl OAuthError {
    /// Creates an error with a description, which must not contain a secret.
    pub(crate) fn new(code: ErrorCode, description: impl Into<Cow<'static, str>>) -> Self {
        Self { code, description: Some(description.into()), fault: None }
    }

    /// Returns the error for an unknown client or a wrong secret.
    pub(crate) const fn invalid_client() -> Self {
        Self { code: ErrorCode::InvalidClient, description: None, fault: None }
    }

    /// Creates a `server_error` with a description for the client. The cause is for the log.
    pub(crate) fn fault(description: &'static str, cause: &str) -> Self {
        Self {
            fault: Some(Box::new(ApiError::fault(cause))),
            ..Self::new(ErrorCode::ServerError, description)
        }
    }

    /// Logs the fault of the server that caused the error, if there is one.
    pub(crate) fn log_cause(&self) {
        if let Some(fault) = &self.fault {
            fault.log_cause();
        }
    }
}

impl From<ApiError> for OAuthError {
    fn from(error: ApiError) -> Self {
        let code = if error.transient { ErrorCode::TemporarilyUnavailable } else { ErrorCode::ServerError };
        Self { fault: Some(Box::new(error.clone())), ..Self::new(code, error.message) }
    }
}

impl From<ledger_store::ReadError> for OAuthError {
    fn from(error: ledger_store::ReadError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<ledger_store::WriteError> for OAuthError {
    fn from(error: ledger_store::WriteError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<NoRandomBytes> for OAuthError {
    fn from(error: NoRandomBytes) -> Self {
        ApiError::from(error).into()
    }
}

impl From<SigningError> for OAuthError {
    fn from(error: SigningError) -> Self {
        ApiError::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_does_not_tell_the_cause() {
        let error = OAuthError::fault("the provider cannot be asked", "10.0.0.7 refused");
        assert_eq!(error.code, ErrorCode::ServerError);
        assert_eq!(error.description.as_deref(), Some("the provider cannot be asked"));
        assert_eq!(error.fault.expect("a fault").reason(), "10.0.0.7 refused");
    }
}
