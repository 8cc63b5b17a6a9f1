//! Creates the content of a log entry for a caller that requested it.

use std::borrow::Cow;

use ledger_core::{
    Command, Decision, HoldingVolumes, LogPayload, Metadata, Movement, NewTransaction, Postings, Timestamp,
    Transaction, TransactionId, Volumes,
};
use smallvec::SmallVec;

use super::numbers::holding_names;
use crate::read::sort_volumes;

/// A decision without references to its command.
pub(super) enum EntryContent {
    /// A new transaction that still lacks data of its command; see [`complete_payload`].
    Created(Box<Transaction>),
    /// A complete payload.
    Payload(LogPayload),
}

impl EntryContent {
    /// Converts a decision that is recorded at `date`. `id` is the id of its transaction, if it creates one, and
    /// `volumes` are those after it.
    pub(super) fn of(
        decision: Decision<'_>,
        volumes: SmallVec<[Volumes; 4]>,
        id: TransactionId,
        date: Timestamp,
    ) -> Self {
        Self::Payload(match decision {
            Decision::Transaction(new) => {
                let mut transaction = Box::new(Transaction {
                    id,
                    postings: Postings::new(),
                    metadata: Metadata::EMPTY,
                    timestamp: new.timestamp,
                    reference: None,
                    template: None,
                    inserted_at: date,
                    updated_at: date,
                    reverted_at: None,
                    post_commit_volumes: post_commit_volumes(&new, volumes),
                });
                let Some(reverted) = new.reverts else { return Self::Created(transaction) };
                transaction.postings = new.postings.as_ref().into();
                transaction.metadata = new.metadata.into_owned();
                transaction.reference = new.reference.map(Cow::into_owned);
                LogPayload::RevertedTransaction { reverted, transaction, effective_volumes: None }
            }
            Decision::SetMetadata { target, metadata } => {
                LogPayload::SetMetadata { target: target.clone(), metadata: metadata.clone() }
            }
            Decision::DeleteMetadata { target, key } => {
                LogPayload::DeleteMetadata { target: target.clone(), key: key.into() }
            }
            Decision::InsertSchema { schema, .. } => LogPayload::InsertedSchema { schema },
        })
    }
}

/// Returns a new transaction with the data of its command, which is moved out because the command is no longer needed.
pub(super) fn complete_payload(mut transaction: Box<Transaction>, command: &mut Command) -> LogPayload {
    let Command::CreateTransaction(create) = command else {
        unreachable!("only this command creates a new transaction")
    };
    if let Movement::Postings(postings) = &mut create.movement {
        transaction.postings = std::mem::take(postings);
    }
    transaction.metadata = std::mem::take(&mut create.metadata);
    transaction.reference = create.reference.take();
    transaction.template = create.template.take().map(Into::into);
    // Moving the map out costs something even if it is empty.
    let account_metadata = if create.account_metadata.is_empty() {
        Vec::new()
    } else {
        std::mem::take(&mut create.account_metadata).into_iter().collect()
    };
    LogPayload::NewTransaction { transaction, account_metadata, effective_volumes: None }
}

fn post_commit_volumes(new: &NewTransaction<'_>, volumes: SmallVec<[Volumes; 4]>) -> Vec<HoldingVolumes> {
    let names = holding_names(new, volumes.len());
    let holding = |((account, asset), volumes): ((&_, &_), _)| HoldingVolumes {
        account: Clone::clone(account),
        asset: Clone::clone(asset),
        volumes,
    };
    let mut all: Vec<HoldingVolumes> = names.into_iter().zip(volumes).map(holding).collect();
    sort_volumes(&mut all);
    all
}
