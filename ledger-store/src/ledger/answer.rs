//! The answers to writes of a [`Ledger`](super::Ledger).

use std::ops::Deref;

use ledger_core::{
    AccountAddress, HoldingVolumes, LogEntry, LogId, LogPayload, Metadata, Postings, Reference, Timestamp,
    Transaction,
};

use crate::submission::Receipt;

/// A transaction that is on disk.
///
/// Dereferences to its [`Transaction`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Committed {
    /// The transaction as it was recorded.
    pub transaction: Transaction,
    /// The id of its entry in the log of the ledger.
    pub log: LogId,
    /// True if an earlier request with the same idempotency key recorded the transaction, and this one recorded
    /// nothing.
    pub replayed: bool,
}

impl Deref for Committed {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        &self.transaction
    }
}

/// A transaction as it would have been recorded. It has no ids, because nothing reserves the next ones.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
#[non_exhaustive]
pub struct DryRun {
    /// The postings, including those that a script produced.
    pub postings: Postings,
    /// The metadata of the transaction.
    pub metadata: Metadata,
    /// Metadata that the transaction sets on accounts, sorted by address.
    pub account_metadata: Vec<(AccountAddress, Metadata)>,
    /// The effective date.
    pub timestamp: Timestamp,
    /// The reference.
    pub reference: Option<Reference>,
    /// Volumes of the affected holdings right after the transaction.
    pub post_commit_volumes: Vec<HoldingVolumes>,
}

impl Committed {
    /// Converts the receipt of a command that records a transaction. The command must have been submitted with
    /// [`Detail::Entry`](crate::Detail::Entry).
    pub(super) fn of(receipt: Receipt) -> Self {
        let Receipt { log, replayed, entry, .. } = receipt;
        Self { transaction: recorded(entry).0, log, replayed }
    }
}

impl DryRun {
    /// Converts the receipt of a dry run of such a command, like [`Committed::of`].
    pub(super) fn of(receipt: Receipt) -> Self {
        let (transaction, account_metadata) = recorded(receipt.entry);
        let Transaction { postings, metadata, timestamp, reference, post_commit_volumes, .. } = transaction;
        Self { postings, metadata, account_metadata, timestamp, reference, post_commit_volumes }
    }
}

fn recorded(entry: Option<Box<LogEntry>>) -> (Transaction, Vec<(AccountAddress, Metadata)>) {
    match entry.expect("the detail `Entry` was requested").payload {
        LogPayload::NewTransaction { transaction, account_metadata, .. } => (*transaction, account_metadata),
        LogPayload::RevertedTransaction { transaction, .. } => (*transaction, Vec::new()),
        LogPayload::SetMetadata { .. }
        | LogPayload::DeleteMetadata { .. }
        | LogPayload::InsertedSchema { .. } => {
            unreachable!("an idempotency key replays only a log of the same operation")
        }
    }
}
