//! Entries of a ledger's log.

use compact_str::CompactString;

use crate::command::Target;
use crate::metadata::Metadata;
use crate::names::{AccountAddress, IdempotencyKey};
use crate::timestamp::Timestamp;
use crate::transaction::{Transaction, TransactionId};
use crate::volumes::HoldingVolumes;

/// The number of an entry in its ledger's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId(u64);

impl LogId {
    /// From the number.
    pub const fn new(id: u64) -> Self {
        Self(id)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The one after this.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A caller's idempotency key with what identifies the request it came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The key.
    pub key: IdempotencyKey,
    /// The text that a repetition must equal (base64url of a SHA-256 of the request); empty where it is not
    /// known, as in logs of older releases: then nothing is compared.
    pub hash: CompactString,
}

/// One entry of a ledger's log: something that happened, never changed afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Its number.
    pub id: LogId,
    /// When it was recorded; does not decrease along a log.
    pub date: Timestamp,
    /// The caller's idempotency key, if one was given.
    pub idempotency: Option<Idempotency>,
    /// The schema version that the request named.
    pub schema_version: Option<CompactString>,
    /// What happened.
    pub payload: LogPayload,
    /// Metadata that the chart of the schema version gave to accounts which this entry was the first to use, ascending
    /// by address. It goes before what the payload sets, and is no part of the entry's text.
    pub defaults: Vec<(AccountAddress, Metadata)>,
}

/// What a log entry records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogPayload {
    /// A transaction was recorded.
    NewTransaction {
        /// It, as it was right then.
        transaction: Box<Transaction>,
        /// Metadata that was set on accounts in the same step, ascending by address.
        account_metadata: Vec<(AccountAddress, Metadata)>,
        /// Volumes in effective order at that moment, where they differ from those in order of insertion.
        effective_volumes: Option<Vec<HoldingVolumes>>,
    },
    /// A transaction was reverted.
    RevertedTransaction {
        /// The original.
        reverted: TransactionId,
        /// The new transaction, its inverse.
        transaction: Box<Transaction>,
        /// As in [`LogPayload::NewTransaction`].
        effective_volumes: Option<Vec<HoldingVolumes>>,
    },
    /// Metadata keys were set.
    SetMetadata {
        /// On what.
        target: Target,
        /// The keys that were set.
        metadata: Metadata,
    },
    /// A metadata key was removed.
    DeleteMetadata {
        /// From what.
        target: Target,
        /// The key.
        key: CompactString,
    },
    /// A schema version was added.
    InsertedSchema {
        /// The schema, as compact JSON text.
        schema: CompactString,
    },
}

impl LogPayload {
    /// The name of its type on the wire, such as `NEW_TRANSACTION`.
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
