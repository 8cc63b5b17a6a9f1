//! Entries of a ledger's log.

use smol_str::SmolStr;

use crate::command::Target;
use ledger_values::{
    AccountAddress, HoldingVolumes, IdempotencyKey, Metadata, Timestamp, Transaction, TransactionId,
};

/// The number of an entry in the log of its ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LogId(u64);

impl LogId {
    /// Makes an id from its number.
    pub const fn new(id: u64) -> Self {
        Self(id)
    }

    /// Returns the number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the next id.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl From<u64> for LogId {
    fn from(id: u64) -> Self {
        Self::new(id)
    }
}

impl From<LogId> for u64 {
    fn from(id: LogId) -> Self {
        id.get()
    }
}

impl std::fmt::Display for LogId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

impl std::str::FromStr for LogId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self::new)
    }
}

/// An idempotency key with the hash of the request that used it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
pub struct Idempotency {
    /// The key that the caller chose.
    pub key: IdempotencyKey,
    /// Hash that a repeated request must match: base64url of the SHA-256 of the request. Empty in logs of
    /// older releases, which did not store it; then nothing is compared.
    pub hash: SmolStr,
}

/// One entry of a ledger's log. It records a change and never changes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
pub struct LogEntry {
    /// The id of the entry.
    pub id: LogId,
    /// The insertion date, which never decreases along a log.
    pub date: Timestamp,
    /// The caller's idempotency key, if one was given.
    pub idempotency: Option<Idempotency>,
    /// For imported logs without a key: the text that identifies their request at the server that recorded them. Logs
    /// of this server have none, because it can be computed from their content.
    pub request_hash: Option<SmolStr>,
    /// The schema version that the request named.
    pub schema_version: Option<SmolStr>,
    /// The change that the entry records.
    pub payload: LogPayload,
    /// Default metadata from the chart of the schema version, for accounts that this entry was the first to
    /// use. Sorted by address. It takes effect before the payload, and the entry's text does not contain it.
    pub defaults: Vec<(AccountAddress, Metadata)>,
}

/// The change that a log entry records.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        tag = "type",
        content = "data",
        rename_all = "SCREAMING_SNAKE_CASE",
        rename_all_fields = "camelCase"
    )
)]
pub enum LogPayload {
    /// A transaction was recorded.
    NewTransaction {
        /// The transaction as it was recorded.
        transaction: Box<Transaction>,
        /// Metadata set on accounts in the same step, sorted by address.
        account_metadata: Vec<(AccountAddress, Metadata)>,
        /// Volumes in effective order at that moment, if they differ from those in order of insertion.
        effective_volumes: Option<Vec<HoldingVolumes>>,
    },
    /// A transaction was reverted.
    RevertedTransaction {
        /// The original transaction.
        reverted: TransactionId,
        /// The new transaction, the inverse of the original.
        transaction: Box<Transaction>,
        /// Volumes in effective order at that moment, if they differ from those in order of insertion.
        effective_volumes: Option<Vec<HoldingVolumes>>,
    },
    /// Metadata keys were set.
    SetMetadata {
        /// The account or transaction that changed.
        target: Target,
        /// The keys that were set.
        metadata: Metadata,
    },
    /// A metadata key was removed.
    DeleteMetadata {
        /// The account or transaction that changed.
        target: Target,
        /// The key that was removed.
        key: SmolStr,
    },
    /// A schema version was added.
    InsertedSchema {
        /// The schema as compact JSON.
        schema: SmolStr,
    },
}

impl LogPayload {
    /// Returns the name of the type on the wire, such as `NEW_TRANSACTION`.
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::NewTransaction { .. } => "NEW_TRANSACTION",
            Self::RevertedTransaction { .. } => "REVERTED_TRANSACTION",
            Self::SetMetadata { .. } => "SET_METADATA",
            Self::DeleteMetadata { .. } => "DELETE_METADATA",
            Self::InsertedSchema { .. } => "INSERTED_SCHEMA",
        }
    }
}
