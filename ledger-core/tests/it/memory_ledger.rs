//! A ledger in memory that uses the core as a store does: `needs`, look up, `decide`, log, `apply`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use ledger_core::{
    AccountAddress, Asset, Balance, Command, Decision, Facts, HoldingVolumes, KnownTransaction, LogEntry,
    LogId, LogPayload, Metadata, Needs, NewTransaction, Posting, Reference, Rejection, Timestamp,
    Transaction, TransactionId, Volumes, check_sizes, decide, needs,
};

use crate::fold::{Changes, apply};

/// The state of a ledger, built from its log.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MemoryLedger {
    pub(crate) volumes: BTreeMap<(AccountAddress, Asset), Volumes>,
    pub(crate) accounts: BTreeMap<AccountAddress, Metadata>,
    pub(crate) transactions: BTreeMap<TransactionId, KnownTransaction>,
    references: BTreeSet<Reference>,
    log: Vec<LogEntry>,
}

impl MemoryLedger {
    /// Executes a command. Ids start at 1, and entries have no effective volumes.
    pub(crate) fn execute(&mut self, command: &Command, now: Timestamp) -> Result<LogEntry, Rejection> {
        let date = self.log.last().map_or(now, |last| now.max(last.date));
        check_sizes(command)?;
        let original = command.transaction().and_then(|id| self.transactions.get(&id).cloned());
        let wanted = needs(command, original.as_ref());
        let mut facts = Facts {
            volumes: wanted
                .holdings
                .iter()
                .map(|holding| (holding.account.clone(), holding.asset.clone()))
                .map(|holding| self.volumes.get(&holding).cloned().unwrap_or_default())
                .collect(),
            reference_taken: wanted
                .reference
                .as_deref()
                .is_some_and(|reference| self.references.contains(reference)),
            transaction: original.clone().map(Box::new),
            ..Facts::default()
        };
        let decision = decide(command, &wanted.slots, &mut facts, date)?;
        let payload = self.payload(decision, &wanted, facts.volumes, date);
        let id = LogId::new(1 + self.log.len() as u64);
        let entry = LogEntry {
            id,
            date,
            idempotency: None,
            schema_version: None,
            payload,
            request_hash: None,
            defaults: Vec::new(),
        };
        apply(&entry, self);
        self.log.push(entry.clone());
        Ok(entry)
    }

    /// Makes the payload of the log entry of a decision. `volumes` are those after it, in the order of the needs.
    fn payload(
        &self,
        decision: Decision<'_>,
        wanted: &Needs<'_>,
        volumes: impl IntoIterator<Item = Volumes>,
        date: Timestamp,
    ) -> LogPayload {
        match decision {
            Decision::SetMetadata { target, metadata } => {
                LogPayload::SetMetadata { target: target.clone(), metadata: metadata.clone() }
            }
            Decision::DeleteMetadata { target, key } => {
                LogPayload::DeleteMetadata { target: target.clone(), key: key.into() }
            }
            Decision::InsertSchema { schema, .. } => LogPayload::InsertedSchema { schema },
            Decision::Transaction(new) => self.transaction_payload(new, wanted, volumes, date),
        }
    }

    /// Makes the payload of a new or reverting transaction.
    fn transaction_payload(
        &self,
        new: NewTransaction<'_>,
        wanted: &Needs<'_>,
        volumes: impl IntoIterator<Item = Volumes>,
        date: Timestamp,
    ) -> LogPayload {
        let mut post_commit_volumes: Vec<_> = wanted
            .holdings
            .iter()
            .zip(volumes)
            .map(|(holding, volumes)| HoldingVolumes {
                account: holding.account.clone(),
                asset: holding.asset.clone(),
                volumes,
            })
            .collect();
        post_commit_volumes.sort_by(|a, b| (&a.account, &a.asset).cmp(&(&b.account, &b.asset)));
        let transaction = Box::new(Transaction {
            id: TransactionId::new(1 + self.transactions.len() as u64),
            postings: new.postings.into_owned().into(),
            metadata: new.metadata.into_owned(),
            timestamp: new.timestamp,
            reference: new.reference.map(Cow::into_owned),
            template: None,
            inserted_at: date,
            updated_at: date,
            reverted_at: None,
            post_commit_volumes,
        });
        let effective_volumes = None;
        match new.reverts {
            Some(reverted) => LogPayload::RevertedTransaction { reverted, transaction, effective_volumes },
            None => LogPayload::NewTransaction {
                transaction,
                account_metadata: new.account_metadata.clone().into_iter().collect(),
                effective_volumes,
            },
        }
    }

    /// Returns the sum of all balances of each asset.
    pub(crate) fn sums(&self) -> BTreeMap<Asset, Balance> {
        let mut sums = BTreeMap::new();
        for ((_, asset), volumes) in &self.volumes {
            *sums.entry(asset.clone()).or_insert(Balance::ZERO) += &volumes.balance();
        }
        sums
    }

    /// Returns the balance of every holding.
    pub(crate) fn balances(&self) -> BTreeMap<(AccountAddress, Asset), Balance> {
        self.volumes.iter().map(|(holding, volumes)| (holding.clone(), volumes.balance())).collect()
    }
}

impl Changes for MemoryLedger {
    fn transaction_recorded(&mut self, transaction: &Transaction, _at: Timestamp) {
        let known = KnownTransaction {
            postings: transaction.postings.clone(),
            timestamp: transaction.timestamp,
            reference: transaction.reference.clone(),
            metadata: transaction.metadata.clone(),
            reverted: false,
        };
        assert_eq!(self.transactions.insert(transaction.id, known), None, "ids are new");
        self.references.extend(transaction.reference.clone());
    }

    fn volumes_moved(&mut self, posting: &Posting, _transaction: &Transaction, _at: Timestamp) {
        let mut holding = |account: &AccountAddress| {
            self.accounts.entry(account.clone()).or_default();
            (account.clone(), posting.asset.clone())
        };
        let (source, destination) = (holding(&posting.source), holding(&posting.destination));
        self.volumes.entry(source).or_default().output += &posting.amount;
        self.volumes.entry(destination).or_default().input += &posting.amount;
    }

    fn transaction_reverted(&mut self, id: TransactionId, by: TransactionId, _at: Timestamp) {
        assert!(self.transactions.contains_key(&by), "the reverting transaction comes first");
        self.transactions.get_mut(&id).expect("the original exists").reverted = true;
    }

    fn account_metadata_set(&mut self, account: &AccountAddress, metadata: &Metadata, _at: Timestamp) {
        self.accounts.entry(account.clone()).or_default().merge(metadata);
    }

    fn account_metadata_deleted(&mut self, account: &AccountAddress, key: &str, _at: Timestamp) {
        if let Some(metadata) = self.accounts.get_mut(account) {
            metadata.remove(key);
        }
    }

    fn transaction_metadata_set(&mut self, id: TransactionId, metadata: &Metadata, _at: Timestamp) {
        self.transactions.get_mut(&id).expect("it exists").metadata.merge(metadata);
    }

    fn transaction_metadata_deleted(&mut self, id: TransactionId, key: &str, _at: Timestamp) {
        self.transactions.get_mut(&id).expect("it exists").metadata.remove(key);
    }
}
