//! The error of a request, and its conversion from the errors of the store.
//!
//! The store has its own errors and knows nothing of HTTP. The set of codes is closed, because clients fail on a code that
//! they do not know.

use std::borrow::Cow;

use hyper::StatusCode;
use ledger_store::{ReadError, WriteError};

use crate::log::{self, Level};

/// The group of clients whose response shapes a request gets. Shapes differ only where one cannot read the other's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// The SDKs of stack 2.0, under `/api/ledger/v2`.
    Stack,
    /// The SDKs of later releases of the ledger, under `/v2`.
    Ledger,
}

/// The values of `errorCode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Validation,
    InsufficientFund,
    Conflict,
    NoPostings,
    CompilationFailed,
    InterpreterParse,
    InterpreterRuntime,
    MetadataOverride,
    NoScript,
    AlreadyRevert,
    NotFound,
    LedgerNotFound,
    LedgerAlreadyExists,
    BulkSizeExceeded,
    Import,
    SchemaAlreadyExists,
    SchemaNotSpecified,
    ReadOnly,
    Internal,
}

impl Code {
    /// Returns the text on the wire. Clients of the stack cannot decode the codes of later releases.
    pub(crate) const fn text(self, profile: Profile) -> &'static str {
        match (self, profile) {
            (Self::Validation, _)
            | (
                Self::LedgerAlreadyExists
                | Self::BulkSizeExceeded
                | Self::Import
                | Self::SchemaAlreadyExists
                | Self::SchemaNotSpecified,
                Profile::Stack,
            ) => "VALIDATION",
            (Self::InsufficientFund, _) => "INSUFFICIENT_FUND",
            (Self::Conflict, _) => "CONFLICT",
            (Self::NoPostings, _) => "NO_POSTINGS",
            (Self::CompilationFailed, _)
            | (Self::InterpreterParse | Self::InterpreterRuntime, Profile::Stack) => "COMPILATION_FAILED",
            (Self::InterpreterParse, Profile::Ledger) => "INTERPRETER_PARSE",
            (Self::InterpreterRuntime, Profile::Ledger) => "INTERPRETER_RUNTIME",
            (Self::MetadataOverride, _) => "METADATA_OVERRIDE",
            (Self::NoScript, _) => "NO_SCRIPT",
            (Self::AlreadyRevert, _) => "ALREADY_REVERT",
            (Self::NotFound, _) => "NOT_FOUND",
            (Self::LedgerNotFound, _) => "LEDGER_NOT_FOUND",
            (Self::LedgerAlreadyExists, Profile::Ledger) => "LEDGER_ALREADY_EXISTS",
            (Self::BulkSizeExceeded, Profile::Ledger) => "BULK_SIZE_EXCEEDED",
            (Self::Import, Profile::Ledger) => "IMPORT",
            (Self::SchemaAlreadyExists, Profile::Ledger) => "SCHEMA_ALREADY_EXISTS",
            (Self::SchemaNotSpecified, Profile::Ledger) => "SCHEMA_NOT_SPECIFIED",
            (Self::ReadOnly, _) => "READ_ONLY",
            (Self::Internal, _) => "INTERNAL",
        }
    }

    const fn status(self) -> StatusCode {
        match self {
            Self::Validation
            | Self::InsufficientFund
            | Self::NoPostings
            | Self::CompilationFailed
            | Self::InterpreterParse
            | Self::InterpreterRuntime
            | Self::MetadataOverride
            | Self::NoScript
            | Self::AlreadyRevert
            | Self::LedgerAlreadyExists
            | Self::Import
            | Self::SchemaNotSpecified
            | Self::ReadOnly => StatusCode::BAD_REQUEST,
            Self::Conflict | Self::SchemaAlreadyExists => StatusCode::CONFLICT,
            Self::NotFound | Self::LedgerNotFound => StatusCode::NOT_FOUND,
            Self::BulkSizeExceeded => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// A refused request: what the client sees, and the cause that only the log shows.
///
/// Creating an error logs nothing. The code that turns it into a response, or that drops it, calls
/// [`ApiError::log_cause`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    status: StatusCode,
    pub(crate) code: Code,
    /// The message for the client.
    pub(crate) message: Cow<'static, str>,
    /// True if the same request may succeed in a moment.
    pub(crate) transient: bool,
    /// The cause for the log, if the message does not tell it.
    cause: Option<Box<str>>,
}

/// The message for the client if the server is at fault. Only the log shows the cause.
const INTERNAL_MESSAGE: &str = "Internal error. Consult logs/traces to have more details.";

impl ApiError {
    /// Creates an error with the status that belongs to the code.
    pub(crate) fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status: code.status(), code, message: message.into(), transient: false, cause: None }
    }

    /// Creates a 400 `VALIDATION`.
    pub(crate) fn validation(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Validation, message)
    }

    /// Creates a `VALIDATION` with a status other than 400.
    pub(crate) fn refused(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, ..Self::validation(message) }
    }

    /// Creates the 404 of anything but a missing ledger.
    pub(crate) fn not_found(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::NotFound, message)
    }

    /// Creates the 404 of a request into a ledger that does not exist.
    pub(crate) fn ledger_not_found() -> Self {
        Self::new(Code::LedgerNotFound, "ledger not found")
    }

    /// Creates a 503 that asks the client to retry.
    pub(crate) fn busy(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            transient: true,
            ..Self::new(Code::Internal, message)
        }
    }

    /// Creates the 503 of a write whose outcome only the next start of the server can tell. It does not ask the client to
    /// retry, because a repetition without an idempotency key could write twice.
    fn unknown(cause: String) -> Self {
        let message = "whether this write took place is not known; repeat it with the same Idempotency-Key";
        Self { transient: false, cause: Some(cause.into()), ..Self::busy(message) }
    }

    /// Creates a 500 with a fixed message for the client. The cause is for the log.
    pub(crate) fn fault(cause: &str) -> Self {
        Self { cause: Some(cause.into()), ..Self::new(Code::Internal, INTERNAL_MESSAGE) }
    }

    /// Returns why the request failed, for the log: the cause, or the message if it tells everything.
    pub(crate) fn reason(&self) -> &str {
        self.cause.as_deref().unwrap_or(&self.message)
    }

    /// Logs the cause, if the message for the client does not tell it.
    pub(crate) fn log_cause(&self) {
        if let Some(cause) = &self.cause {
            log::event(Level::Error, "fault", &[("reason", cause)]);
        }
    }

    /// Returns whether the request itself is not at fault, so that it may succeed later.
    pub(crate) fn is_temporary(&self) -> bool {
        self.transient || self.status.is_server_error() || self.code == Code::ReadOnly
    }

    /// Returns the HTTP status. Clients of the stack expect 400 for a conflict.
    pub(crate) fn status(&self, profile: Profile) -> StatusCode {
        match (self.code, profile) {
            (Code::Conflict, Profile::Stack) => StatusCode::BAD_REQUEST,
            _ => self.status,
        }
    }
}

impl From<WriteError> for ApiError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::LedgerNotFound { .. } => Self::ledger_not_found(),
            WriteError::LedgerExists => Self::new(Code::LedgerAlreadyExists, "ledger already exists"),
            WriteError::BucketRemoved => Self::not_found("the bucket was removed for good"),
            WriteError::Document(rejection) => Self::new(Code::Conflict, rejection.to_string()),
            WriteError::Busy => Self::busy("too many writes are waiting"),
            WriteError::DiskNearlyFull => Self::busy("the disk of the server is nearly full"),
            WriteError::Storage(cause) => {
                Self { cause: Some(cause.to_string().into()), ..Self::busy("the disk of the server refused") }
            }
            WriteError::Stopped { .. } => Self::busy("the server takes no writes"),
            WriteError::Read(error) => Self::from(error),
            WriteError::OutcomeUnknown(cause) => Self::unknown(cause.to_string()),
            // A reason that a later release of the store adds.
            error => Self::fault(&error.to_string()),
        }
    }
}

impl From<getrandom::Error> for ApiError {
    fn from(error: getrandom::Error) -> Self {
        Self::fault(&error.to_string())
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::TooExpensive { .. } | ReadError::MissingFeature { .. } => {
                Self::validation(error.to_string())
            }
            ReadError::LedgerRemoved => Self::ledger_not_found(),
            error => Self::fault(&error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use ledger_core::{Reference, Rejection};

    use super::*;

    fn shown(error: &ApiError, profile: Profile) -> (u16, &'static str) {
        (error.status(profile).as_u16(), error.code.text(profile))
    }

    #[test]
    fn profiles_avoid_forms_unknown_to_their_clients() {
        let reference = Reference::parse("r").expect("a reference");
        let conflict = ApiError::from(Rejection::ReferenceTaken { reference });
        assert_eq!(shown(&conflict, Profile::Stack), (400, "CONFLICT"));
        assert_eq!(shown(&conflict, Profile::Ledger), (409, "CONFLICT"));
        let exists = ApiError::from(WriteError::LedgerExists);
        assert_eq!(shown(&exists, Profile::Stack), (400, "VALIDATION"));
        assert_eq!(shown(&exists, Profile::Ledger), (400, "LEDGER_ALREADY_EXISTS"));
        let bulk = ApiError::new(Code::BulkSizeExceeded, "");
        assert_eq!(shown(&bulk, Profile::Stack), (413, "VALIDATION"));
        assert_eq!(shown(&bulk, Profile::Ledger), (413, "BULK_SIZE_EXCEEDED"));
    }

    #[test]
    fn clients_never_see_the_cause_of_a_fault() {
        let damaged = ReadError::Damaged("block 7 of /data/index".into());
        let cause = damaged.to_string();
        let fault = ApiError::from(damaged);
        assert_eq!((fault.message.as_ref(), fault.reason()), (INTERNAL_MESSAGE, cause.as_str()));
        let refused = ApiError::validation("no amount");
        assert_eq!(refused.reason(), "no amount");
    }

    #[test]
    fn asks_the_caller_to_retry_transient_errors() {
        let busy = ApiError::from(WriteError::Busy);
        assert_eq!(shown(&busy, Profile::Ledger), (503, "INTERNAL"));
        assert!(busy.transient);
        let full = ApiError::from(WriteError::DiskNearlyFull);
        assert_eq!((shown(&full, Profile::Ledger), full.transient), ((503, "INTERNAL"), true));
        let refused = ApiError::from(WriteError::Storage("cannot read /data".into()));
        assert_eq!((shown(&refused, Profile::Ledger), refused.transient), ((503, "INTERNAL"), true));
        assert!(!refused.message.contains("/data") && refused.reason() == "cannot read /data");
        let unknown = ApiError::from(WriteError::OutcomeUnknown("disk".into()));
        assert_eq!((shown(&unknown, Profile::Ledger), unknown.transient), ((503, "INTERNAL"), false));
        assert!(unknown.message.contains("Idempotency-Key") && !unknown.message.contains("disk"));
        assert_eq!(unknown.reason(), "disk");
        assert!(
            [&busy, &full, &unknown, &ApiError::new(Code::ReadOnly, "")].iter().all(|one| one.is_temporary())
        );
        assert!(!ApiError::validation("").is_temporary() && !ApiError::not_found("").is_temporary());
    }
}
