//! The effects of a log entry on a ledger.
//!
//! A ledger's state is a fold over its log. The same entries in the same order always yield the same changes,
//! in any store.

use ledger_core::{
    AccountAddress, LogEntry, LogPayload, Metadata, Posting, Target, Timestamp, Transaction, TransactionId,
};

/// Receiver of the changes of log entries. Each method is one change, and `at` is the insertion date.
///
/// A posting or a write of metadata brings an account into existence. A removal of metadata does not.
pub(crate) trait Changes {
    /// A transaction was recorded. Its postings follow one by one.
    fn transaction_recorded(&mut self, transaction: &Transaction, at: Timestamp);

    /// `posting` of `transaction` moved its amount: output of its source and input of its destination, both
    /// at the insertion date `at` and at the effective date of the transaction.
    fn volumes_moved(&mut self, posting: &Posting, transaction: &Transaction, at: Timestamp);

    /// The transaction `id` was reverted by the transaction `by`.
    fn transaction_reverted(&mut self, id: TransactionId, by: TransactionId, at: Timestamp);

    /// These keys of an account were set, and its other keys stay. Without any keys, the account comes into
    /// existence all the same.
    fn account_metadata_set(&mut self, account: &AccountAddress, metadata: &Metadata, at: Timestamp);

    /// This key of an account was removed if it was present.
    fn account_metadata_deleted(&mut self, account: &AccountAddress, key: &str, at: Timestamp);

    /// These keys of a transaction were set, and its other keys stay.
    fn transaction_metadata_set(&mut self, id: TransactionId, metadata: &Metadata, at: Timestamp);

    /// This key of a transaction was removed if it was present.
    fn transaction_metadata_deleted(&mut self, id: TransactionId, key: &str, at: Timestamp);
}

/// Passes the changes of `entry` to `changes` in a fixed order: the transaction, its postings, the revert of
/// the original, metadata of accounts by address.
pub(crate) fn apply<C: Changes + ?Sized>(entry: &LogEntry, changes: &mut C) {
    let at = entry.date;
    let defaults = |changes: &mut C| {
        for (account, metadata) in &entry.defaults {
            changes.account_metadata_set(account, metadata, at);
        }
    };
    match &entry.payload {
        LogPayload::NewTransaction { transaction, account_metadata, effective_volumes: _ } => {
            record(transaction, at, changes);
            defaults(changes);
            for (account, metadata) in account_metadata {
                changes.account_metadata_set(account, metadata, at);
            }
        }
        LogPayload::RevertedTransaction { reverted, transaction, effective_volumes: _ } => {
            record(transaction, at, changes);
            changes.transaction_reverted(*reverted, transaction.id, at);
        }
        LogPayload::SetMetadata { target: Target::Account(account), metadata } => {
            defaults(changes);
            changes.account_metadata_set(account, metadata, at);
        }
        LogPayload::SetMetadata { target: Target::Transaction(id), metadata } => {
            changes.transaction_metadata_set(*id, metadata, at);
        }
        LogPayload::DeleteMetadata { target: Target::Account(account), key } => {
            changes.account_metadata_deleted(account, key, at);
        }
        LogPayload::DeleteMetadata { target: Target::Transaction(id), key } => {
            changes.transaction_metadata_deleted(*id, key, at);
        }
        LogPayload::InsertedSchema { schema: _ } => {}
    }
}

fn record<C: Changes + ?Sized>(transaction: &Transaction, at: Timestamp, changes: &mut C) {
    changes.transaction_recorded(transaction, at);
    for posting in &transaction.postings {
        changes.volumes_moved(posting, transaction, at);
    }
}
