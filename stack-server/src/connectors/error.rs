//! Errors of configurations, installations and tasks of connectors.

use ledger_store::ReadError;
use thiserror::Error;

use crate::duration::DurationError;
use crate::http::error::ApiError;
use crate::log::{self, Level};
use crate::outbound::{AddressError, AddressRefusal, IdentityError};
use crate::sealing::OpenError;

/// The reason why a configuration is refused. It shows no secret.
#[derive(Debug, Error)]
pub(crate) enum ConfigError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("missing {0}")]
    Missing(&'static str),
    #[error("{name}: {reason}")]
    Parameter {
        name: &'static str,
        #[source]
        reason: ParameterError,
    },
    #[error("at most {0} accounts and payments are generated")]
    TooManyGenerated(u64),
}

/// The reason why the value of a parameter is refused.
#[derive(Debug, Error)]
pub(crate) enum ParameterError {
    #[error("{value} is no {kind}")]
    OtherKind { value: String, kind: &'static str },
    #[error("a secret or a name must be a text")]
    NoText,
    #[error("this is the mask of a secret, not the secret")]
    Mask,
    #[error("a key has no control characters")]
    ControlCharacter,
    #[error(transparent)]
    Duration(#[from] DurationError),
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error(transparent)]
    NotAllowed(#[from] AddressRefusal),
    #[error("an address has no user and no password; the provider's own parameters take them")]
    UserInAddress,
    #[error("the client certificate is not usable: {0}")]
    Certificate(#[from] IdentityError),
    #[error("{path:?} does not lie below {folder}, see --connectors-directory")]
    OutsideFolder { path: String, folder: String },
}

impl ParameterError {
    /// Converts the error to a configuration error that names the parameter.
    pub(super) fn of(self, name: &'static str) -> ConfigError {
        ConfigError::Parameter { name, reason: self }
    }
}

impl From<ConfigError> for ApiError {
    fn from(error: ConfigError) -> Self {
        Self::validation(error.to_string())
    }
}

/// The reason why an installation does not run.
#[derive(Debug, Error)]
pub(crate) enum InstallationError {
    #[error("connector {0} is unknown")]
    UnknownConnector(Box<str>),
    #[error("installation {name:?}: {reason}")]
    Sealed {
        name: String,
        #[source]
        reason: OpenError,
    },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The error is a fault of the server: the configuration does not come from the current request.
impl From<InstallationError> for ApiError {
    fn from(error: InstallationError) -> Self {
        Self::fault(&error.to_string())
    }
}

/// The reason why a task ended early.
#[derive(Debug, Error)]
pub(super) enum TaskError {
    /// The task failed. It shows this text as its error.
    #[error("{0}")]
    Failed(String),
    #[error("the server stops")]
    Stopped,
    #[error("the connector failed; see the log")]
    Panicked,
}

/// Logs the reason why an installation does not run.
pub(super) fn log_fault(installation: &str, reason: &str) {
    log::event(Level::Error, "connector", &[("installation", &installation), ("reason", &reason)]);
}
