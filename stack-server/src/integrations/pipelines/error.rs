//! Errors of exporters and of pushes.

use std::io;

use hyper::StatusCode;
use ledger_store::ReadError;
use thiserror::Error;
use tokio::task::JoinError;

use crate::duration::DurationError;
use crate::http::json::JsonError;
use crate::limits::{
    EXPORTER_CONFIG_BYTES_MAX, EXPORTER_FILE_BYTES_MIN, EXPORTER_FILE_NAME_MAX, PIPELINE_ITEMS_MAX,
};
use crate::outbound::{AddressError, AddressRefusal, OutboundError, Target};

/// The driver is unknown, or does not accept its configuration. The text is for the client.
#[derive(Debug, Error)]
#[error("driver '{driver}' invalid: {reason}")]
pub(crate) struct ExporterError {
    /// The beginning of the driver's name.
    pub(super) driver: String,
    #[source]
    pub(super) reason: ConfigError,
}

/// The invalid part of an exporter's configuration.
#[derive(Debug, Error)]
pub(super) enum ConfigError {
    #[error("not found")]
    UnknownDriver,
    #[error("its configuration is longer than {EXPORTER_CONFIG_BYTES_MAX} bytes")]
    TooLong,
    #[error(transparent)]
    Json(#[from] JsonError),
    #[error("empty {0}")]
    Empty(&'static str),
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error(transparent)]
    Forbidden(#[from] AddressRefusal),
    #[error(transparent)]
    Dsn(#[from] DsnError),
    #[error("endpoint: {0}")]
    Endpoint(#[source] AddressError),
    #[error("index {0:?} is no name of one: lower-case letters, digits, '-', '_' and '.'")]
    Index(String),
    #[error("authentication.awsEnabled: this server does not sign requests for AWS")]
    AwsSignature,
    #[error("authentication: username and password come together")]
    IncompleteUser,
    #[error(transparent)]
    NoFolder(#[from] NoFolder),
    #[error(
        "name: letters, digits, '_', '-' and '.' but not at the beginning, at most {EXPORTER_FILE_NAME_MAX} of them"
    )]
    FileName,
    #[error("maxBytes is no number from {EXPORTER_FILE_BYTES_MIN} on")]
    FileBytes,
    #[error("maxFiles is no number")]
    FileCount,
    #[error("batching.maxItems is no number up to {PIPELINE_ITEMS_MAX}")]
    Items,
    #[error("batching.flushInterval: {0}")]
    Interval(#[from] DurationError),
    #[error("batching.flushInterval is longer than an hour")]
    IntervalTooLong,
}

/// The invalid part of a data source name of `ClickHouse`.
#[derive(Debug, Error)]
pub(super) enum DsnError {
    #[error("dsn is no address")]
    NoAddress,
    #[error("dsn begins with none of clickhouse://, http:// and https://")]
    Scheme,
    #[error("dsn: {0}")]
    Address(#[from] AddressError),
    #[error("dsn: the name of the database is letters, digits, '_' and '-'")]
    Database,
}

/// The operator has not allowed exporters to write files.
#[derive(Debug, Error)]
#[error("this server was given no folder for files (--exporters-directory)")]
pub(super) struct NoFolder;

/// A push failed. The logs may have arrived nevertheless.
#[derive(Debug, Error)]
pub(super) enum PushError {
    #[error(transparent)]
    Request(#[from] OutboundError),
    #[error("{0}: the index is not created: answered {1}")]
    IndexRefused(Target, StatusCode),
    #[error("{0}: documents were refused")]
    DocumentsRefused(Target),
    #[error("{0}: the answer is none of a bulk")]
    UnknownAnswer(Target),
    #[error(transparent)]
    NoFolder(#[from] NoFolder),
    #[error(transparent)]
    Write(#[from] io::Error),
    /// The writing thread panicked.
    #[error(transparent)]
    Thread(#[from] JoinError),
}

/// The store could not read the logs.
#[derive(Debug, Error)]
pub(super) enum LogsError {
    #[error("ledger not found")]
    LedgerNotFound,
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The reading thread panicked.
    #[error(transparent)]
    Thread(#[from] JoinError),
}
