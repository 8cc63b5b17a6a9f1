//! Refusals of requests, and how errors of the inner layers become one.
//!
//! Inner layers have their own errors and know nothing of HTTP; this is the one place that converts. The set of
//! codes is closed: clients fail on a word that they do not know.

use std::borrow::Cow;

use hyper::StatusCode;
use ledger_core::script::ErrorClass;
use ledger_core::{Rejection, Runtime};
use ledger_store::{ReadError, WriteError};

use crate::log::{self, Level};

/// Which generation of clients a request speaks for. They differ only where one cannot read the other's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// 2.0: the SDKs of the stack, under `/api/ledger/v2`.
    Stack,
    /// 2.x: the SDKs of the ledger's own later releases, under `/v2`.
    Ledger,
}

/// The words of `errorCode`.
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
    /// The word. Clients of profile 2.0 cannot decode those that came later.
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

/// A refusal, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    status: StatusCode,
    pub(crate) code: Code,
    pub(crate) message: Cow<'static, str>,
    /// Whether the same request may succeed in a moment.
    pub(crate) transient: bool,
}

/// The message of a fault of the server: the log has the rest.
const INTERNAL_MESSAGE: &str = "Internal error. Consult logs/traces to have more details.";

impl ApiError {
    /// With the status that belongs to the code.
    pub(crate) fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status: code.status(), code, message: message.into(), transient: false }
    }

    /// 400 `VALIDATION`.
    pub(crate) fn validation(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Validation, message)
    }

    /// `VALIDATION` with a status other than 400.
    pub(crate) fn refused(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, ..Self::validation(message) }
    }

    /// 404 for anything but a ledger that a request goes into.
    pub(crate) fn not_found(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::NotFound, message)
    }

    /// 404 for a sub-resource of a ledger that does not exist.
    pub(crate) fn ledger_not_found() -> Self {
        Self::new(Code::LedgerNotFound, "ledger not found")
    }

    /// 503: come back in a moment.
    pub(crate) fn busy(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            transient: true,
            ..Self::new(Code::Internal, message)
        }
    }

    /// 503 for a write of which only the next start can say whether it is on disk; the reason goes into the log. No
    /// client is asked to come back by itself: without a key it would write twice.
    fn unknown(reason: &str) -> Self {
        log::event(Level::Error, "fault", &[("reason", &reason)]);
        let message = "whether this write took place is not known; repeat it with the same Idempotency-Key";
        Self { transient: false, ..Self::busy(message) }
    }

    /// 500, with a fixed text for the client and the reason in the log.
    pub(crate) fn fault(reason: &str) -> Self {
        log::event(Level::Error, "fault", &[("reason", &reason)]);
        Self::new(Code::Internal, INTERNAL_MESSAGE)
    }

    /// Whether the fault is not the request's: the same request may succeed later.
    pub(crate) fn is_temporary(&self) -> bool {
        self.transient || self.status.is_server_error() || self.code == Code::ReadOnly
    }

    /// The status line. The first generation answered a conflict with 400.
    pub(crate) fn status(&self, profile: Profile) -> StatusCode {
        match (self.code, profile) {
            (Code::Conflict, Profile::Stack) => StatusCode::BAD_REQUEST,
            _ => self.status,
        }
    }
}

impl From<Rejection> for ApiError {
    fn from(rejection: Rejection) -> Self {
        let code = match &rejection {
            Rejection::IdempotencyMismatch { .. }
            | Rejection::TooManyPostings { .. }
            | Rejection::MetadataTooLarge { .. }
            | Rejection::TransactionTooLarge { .. }
            | Rejection::PastDate { .. }
            | Rejection::TooManyAssets
            | Rejection::TemplateWithoutVersion { .. }
            | Rejection::TemplateNotFound { .. }
            | Rejection::TemplateRequired { .. }
            | Rejection::AccountOutsideChart { .. } => Code::Validation,
            Rejection::SchemaNotSpecified => Code::SchemaNotSpecified,
            Rejection::SchemaExists { .. } => Code::SchemaAlreadyExists,
            Rejection::Script { error, runtime } => script_code(error.kind.class(), *runtime),
            Rejection::MetadataOverride { .. } => Code::MetadataOverride,
            Rejection::TransactionNotFound { .. }
            | Rejection::MetadataKeyNotFound { .. }
            | Rejection::SchemaNotFound { .. } => Code::NotFound,
            Rejection::AlreadyReverted { .. } => Code::AlreadyRevert,
            Rejection::InsufficientFunds { .. } => Code::InsufficientFund,
            Rejection::NoPostings => Code::NoPostings,
            Rejection::ReferenceTaken { .. } => Code::Conflict,
        };
        Self::new(code, rejection.to_string())
    }
}

/// The word for a script that fails. Only who asks for the interpreter knows the interpreter's words.
fn script_code(class: ErrorClass, runtime: Runtime) -> Code {
    match (class, runtime) {
        (ErrorClass::Funds, _) => Code::InsufficientFund,
        (ErrorClass::Syntax, Runtime::Interpreter) => Code::InterpreterParse,
        (_, Runtime::Interpreter) => Code::InterpreterRuntime,
        (_, Runtime::Machine) => Code::CompilationFailed,
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
            WriteError::Storage { .. } => Self::busy("the disk of the server refused"),
            WriteError::Stopped { .. } => Self::busy("the server takes no writes"),
            WriteError::Read(error) => Self::from(error),
            WriteError::OutcomeUnknown { reason } => Self::unknown(&reason),
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
            ReadError::Damaged { .. } | ReadError::Io { .. } => Self::fault(&error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use ledger_core::Reference;

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
    fn what_the_caller_can_repeat_is_told_to_come_back() {
        let busy = ApiError::from(WriteError::Busy);
        assert_eq!(shown(&busy, Profile::Ledger), (503, "INTERNAL"));
        assert!(busy.transient);
        let full = ApiError::from(WriteError::DiskNearlyFull);
        assert_eq!((shown(&full, Profile::Ledger), full.transient), ((503, "INTERNAL"), true));
        let unknown = ApiError::from(WriteError::OutcomeUnknown { reason: "disk".into() });
        assert_eq!((shown(&unknown, Profile::Ledger), unknown.transient), ((503, "INTERNAL"), false));
        assert!(unknown.message.contains("Idempotency-Key") && !unknown.message.contains("disk"));
        assert!(
            [&busy, &full, &unknown, &ApiError::new(Code::ReadOnly, "")].iter().all(|one| one.is_temporary())
        );
        assert!(!ApiError::validation("").is_temporary() && !ApiError::not_found("").is_temporary());
    }
}
