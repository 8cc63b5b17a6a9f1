//! What an entry of the log does to a ledger.
//!
//! The log is the truth, and everything else is folded from it: the same entries in the same order always
//! yield the same changes, whoever keeps them.

use crate::command::Target;
use crate::log::{LogEntry, LogPayload};
use crate::metadata::Metadata;
use crate::names::AccountAddress;
use crate::timestamp::Timestamp;
use crate::transaction::{Posting, Transaction, TransactionId};

/// Takes what entries change. Each method is one change; `at` is the insertion date.
///
/// An account exists once a posting or a write of metadata has named it; a removal of metadata does not
/// bring it into existence.
pub trait Changes {
    /// A transaction came into being; its postings follow one by one.
    fn transaction_recorded(&mut self, transaction: &Transaction, at: Timestamp);

    /// `posting` of `transaction` moved its amount: it counts as output of its source and as input of its
    /// destination, at the insertion date `at` and at the effective date of the transaction.
    fn volumes_moved(&mut self, posting: &Posting, transaction: &Transaction, at: Timestamp);

    /// The transaction `id` was reverted by the transaction `by`.
    fn transaction_reverted(&mut self, id: TransactionId, by: TransactionId, at: Timestamp);

    /// These keys of an account were set; the others stay. May be none: the account exists all the same.
    fn account_metadata_set(&mut self, account: &AccountAddress, metadata: &Metadata, at: Timestamp);

    /// This key of an account was removed, if it was there.
    fn account_metadata_deleted(&mut self, account: &AccountAddress, key: &str, at: Timestamp);

    /// These keys of a transaction were set; the others stay.
    fn transaction_metadata_set(&mut self, id: TransactionId, metadata: &Metadata, at: Timestamp);

    /// This key of a transaction was removed, if it was there.
    fn transaction_metadata_deleted(&mut self, id: TransactionId, key: &str, at: Timestamp);
}

/// Hands what `entry` changes to `changes`, in a fixed order: the transaction, its postings in order, the
/// revert of the original, metadata of accounts ascending by address.
pub fn apply<C: Changes + ?Sized>(entry: &LogEntry, changes: &mut C) {
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
