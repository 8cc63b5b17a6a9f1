//! The answers to writes of a [`Ledger`](super::Ledger).

use std::ops::Deref;

use ledger_core::{
    AccountAddress, HoldingVolumes, LogEntry, LogId, LogPayload, Metadata, Postings, Reference, Timestamp,
    Transaction,
};

use crate::submission::Receipt;

/// A transaction that is on disk.
///
/// It dereferences to the [`Transaction`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Committed {
    /// The transaction as it was recorded.
    pub transaction: Transaction,
    /// Its entry in the log of the ledger.
    pub log: LogId,
    /// Whether an earlier request with the same idempotency key recorded it, and this one did nothing.
    pub replayed: bool,
}

impl Deref for Committed {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        &self.transaction
    }
}

/// A transaction as it would have been recorded. It has no ids: nothing reserves the next ones.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DryRun {
    /// The postings, also those of a script.
    pub postings: Postings,
    /// Its metadata.
    pub metadata: Metadata,
    /// Metadata that it sets on accounts, sorted by address.
    pub account_metadata: Vec<(AccountAddress, Metadata)>,
    /// Its effective date.
    pub timestamp: Timestamp,
    /// Its reference.
    pub reference: Option<Reference>,
    /// Totals of the holdings that it moves, right after it.
    pub post_commit_volumes: Vec<HoldingVolumes>,
}

impl Committed {
    /// The answer to a command that records a transaction, decided with [`Detail::Entry`](crate::Detail::Entry).
    pub(super) fn of(receipt: Receipt) -> Self {
        let Receipt { log, replayed, entry, .. } = receipt;
        Self { transaction: recorded(entry).0, log, replayed }
    }
}

impl DryRun {
    /// As [`Committed::of`], for a dry run.
    pub(super) fn of(receipt: Receipt) -> Self {
        let (transaction, account_metadata) = recorded(receipt.entry);
        let Transaction { postings, metadata, timestamp, reference, post_commit_volumes, .. } = transaction;
        Self { postings, metadata, account_metadata, timestamp, reference, post_commit_volumes }
    }
}

fn recorded(entry: Option<Box<LogEntry>>) -> (Transaction, Vec<(AccountAddress, Metadata)>) {
    match entry.expect("the entry was asked for").payload {
        LogPayload::NewTransaction { transaction, account_metadata, .. } => (*transaction, account_metadata),
        LogPayload::RevertedTransaction { transaction, .. } => (*transaction, Vec::new()),
        LogPayload::SetMetadata { .. }
        | LogPayload::DeleteMetadata { .. }
        | LogPayload::InsertedSchema { .. } => {
            unreachable!("a key is answered with the log of the same operation only")
        }
    }
}
