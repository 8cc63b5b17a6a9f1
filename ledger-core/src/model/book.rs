//! A ledger of the model: its log, and the answers that a walk over it gives.

use std::collections::{BTreeMap, BTreeSet};

use super::question::{ModelAccount, MoveDate, Window};
use crate::command::Target;
use crate::ledger::{LedgerOptions, Switch};
use crate::log::{Idempotency, LogEntry, LogPayload};
use crate::preconditions::Preconditions;
use crate::rejection::Rejection;
use ledger_values::{
    AccountAddress, Asset, HoldingVolumes, Metadata, Posting, Timestamp, Transaction, TransactionId, Volumes,
};

/// A ledger: its options and its whole log. Every answer comes from a walk over the log.
#[derive(Clone, Debug, Default)]
pub(super) struct Book {
    pub(super) options: LedgerOptions,
    pub(super) log: Vec<LogEntry>,
    /// Number of imported entries at the beginning of the log.
    pub(super) imported: usize,
}

/// Volumes by account and asset.
pub(super) type Totals = BTreeMap<(AccountAddress, Asset), Volumes>;

impl Book {
    pub(super) fn entry_of_key(&self, given: &Idempotency) -> Option<(usize, &LogEntry)> {
        let has_key = |entry: &LogEntry| entry.idempotency.as_ref().is_some_and(|have| have.key == given.key);
        self.log.iter().enumerate().find(|(_, entry)| has_key(entry))
    }

    /// Iterates over all transactions with their insertion dates, oldest first.
    pub(super) fn transactions(&self) -> impl Iterator<Item = (Timestamp, &Transaction)> {
        self.log.iter().filter_map(|entry| match &entry.payload {
            LogPayload::NewTransaction { transaction, .. }
            | LogPayload::RevertedTransaction { transaction, .. } => Some((entry.date, &**transaction)),
            _ => None,
        })
    }

    /// Sums the postings of the transactions for which `counts` returns true. Its arguments are a transaction
    /// and the insertion date.
    pub(super) fn totals(&self, counts: impl Fn(&Transaction, Timestamp) -> bool) -> Totals {
        let mut totals = Totals::new();
        for (date, transaction) in self.transactions() {
            if counts(transaction, date) {
                add_up(&mut totals, &transaction.postings);
            }
        }
        totals
    }

    pub(super) fn addresses(&self) -> BTreeSet<AccountAddress> {
        let mut all = BTreeSet::new();
        for entry in &self.log {
            match &entry.payload {
                LogPayload::NewTransaction { account_metadata, .. } => {
                    all.extend(account_metadata.iter().map(|(address, _)| address.clone()));
                }
                LogPayload::SetMetadata { target: Target::Account(address), .. } => {
                    all.insert(address.clone());
                }
                _ => {}
            }
        }
        for (_, transaction) in self.transactions() {
            for posting in &transaction.postings {
                all.insert(posting.source.clone());
                all.insert(posting.destination.clone());
            }
        }
        all
    }

    pub(super) fn account(&self, address: &AccountAddress, pit: Option<Timestamp>) -> Option<ModelAccount> {
        let mut account = self.account_without_volumes(address, pit)?;
        let held = |by| {
            let window = Window::until(pit, by);
            let counts = |transaction: &Transaction, date| {
                touches(transaction, address) && window.holds(transaction.timestamp, date)
            };
            self.totals(counts)
                .into_iter()
                .filter(|((have, _), _)| have == address)
                .map(|((_, asset), volumes)| (asset, volumes))
                .collect()
        };
        account.volumes = held(MoveDate::Insertion);
        account.effective_volumes = held(MoveDate::Effective);
        Some(account)
    }

    /// Refuses a request whose accounts do not exist or are not new, as it requires.
    pub(super) fn check(&self, preconditions: Option<&Preconditions>) -> Result<(), Rejection> {
        let Some(Preconditions { existing, new }) = preconditions else { return Ok(()) };
        if let Some(account) =
            existing.iter().find(|account| self.account_without_volumes(account, None).is_none())
        {
            return Err(Rejection::AccountNotFound { account: account.clone() });
        }
        match new.iter().find(|account| self.account_without_volumes(account, None).is_some()) {
            Some(account) => Err(Rejection::AccountExists { account: account.clone() }),
            None => Ok(()),
        }
    }

    /// Returns an account without its volumes. A ledger without metadata history shows the current metadata
    /// and the date of its last write.
    pub(super) fn account_without_volumes(
        &self,
        address: &AccountAddress,
        pit: Option<Timestamp>,
    ) -> Option<ModelAccount> {
        let known_until = pit.filter(|_| self.options.features.account_metadata_history == Switch::On);
        let mut found: Option<ModelAccount> = None;
        for entry in &self.log {
            let visible = known_until.is_none_or(|until| entry.date <= until);
            let (used, written) = match &entry.payload {
                LogPayload::NewTransaction { transaction, account_metadata, .. } => {
                    let written = account_metadata.iter().find(|(have, _)| have == address);
                    let moved = touches(transaction, address);
                    ((moved || written.is_some()).then_some(transaction.timestamp), written.map(|(_, m)| m))
                }
                LogPayload::RevertedTransaction { transaction, .. } => {
                    (touches(transaction, address).then_some(transaction.timestamp), None)
                }
                LogPayload::SetMetadata { target: Target::Account(have), metadata } if have == address => {
                    (Some(entry.date), Some(metadata))
                }
                LogPayload::DeleteMetadata { target: Target::Account(have), key } if have == address => {
                    // A removal does not bring an account into existence.
                    if visible
                        && let Some(account) = &mut found
                        && account.metadata.remove(key).is_some()
                    {
                        account.updated_at = entry.date;
                    }
                    continue;
                }
                _ => continue,
            };
            let Some(used) = used else { continue };
            let account = found.get_or_insert_with(|| ModelAccount {
                address: address.clone(),
                metadata: Metadata::EMPTY,
                first_usage: used,
                insertion_date: entry.date,
                updated_at: entry.date,
                volumes: BTreeMap::new(),
                effective_volumes: BTreeMap::new(),
            });
            if used < account.first_usage {
                account.first_usage = used;
                if visible {
                    account.updated_at = entry.date;
                }
            }
            if visible && let Some((_, given)) = entry.defaults.iter().find(|(have, _)| have == address) {
                account.metadata.merge(given);
            }
            if visible && let Some(metadata) = written {
                // Writing the current values is not an update.
                if metadata.iter().any(|(key, value)| account.metadata.get(key) != Some(value)) {
                    account.updated_at = entry.date;
                }
                account.metadata.merge(metadata);
            }
        }
        found
    }

    /// Returns a transaction. A ledger without metadata history shows the current metadata.
    pub(super) fn transaction(&self, id: TransactionId, pit: Option<Timestamp>) -> Option<Transaction> {
        let known_until = pit.filter(|_| self.options.features.transaction_metadata_history == Switch::On);
        let (_, recorded) = self.transactions().find(|(_, transaction)| transaction.id == id)?;
        let mut transaction = recorded.clone();
        let mut present = recorded.metadata.clone();
        for entry in &self.log {
            let counts = pit.is_none_or(|pit| entry.date <= pit);
            let shows = known_until.is_none_or(|until| entry.date <= until);
            match &entry.payload {
                LogPayload::RevertedTransaction { reverted, .. } if *reverted == id => {
                    if counts {
                        transaction.reverted_at = Some(entry.date);
                    }
                }
                LogPayload::SetMetadata { target: Target::Transaction(have), metadata } if *have == id => {
                    if shows {
                        transaction.metadata.merge(metadata);
                    }
                    let is_there = |(key, value)| present.get(key) == Some(value);
                    if metadata.iter().all(is_there) {
                        continue;
                    }
                    present.merge(metadata);
                }
                LogPayload::DeleteMetadata { target: Target::Transaction(have), key } if *have == id => {
                    if shows {
                        transaction.metadata.remove(key);
                    }
                    if present.remove(key).is_none() {
                        continue;
                    }
                }
                _ => continue,
            }
            // The current date of change, even for a point in time: other servers of this API do the same.
            transaction.updated_at = entry.date;
        }
        Some(transaction)
    }

    pub(super) fn effective_after(&self, last: &Transaction) -> Vec<HoldingVolumes> {
        let mut totals = self
            .totals(|transaction, _| (transaction.timestamp, transaction.id) <= (last.timestamp, last.id));
        totals.retain(|(account, asset), _| holds(last, account, asset));
        rows(totals)
    }

    /// Returns the effective volumes right after `transaction`, which is not in the log yet. Returns `None`
    /// if they equal the volumes in order of insertion.
    pub(super) fn effective_at_commit(&self, transaction: &Transaction) -> Option<Vec<HoldingVolumes>> {
        let mut totals = self.totals(|before, _| before.timestamp <= transaction.timestamp);
        add_up(&mut totals, &transaction.postings);
        totals.retain(|(account, asset), _| holds(transaction, account, asset));
        let effective = rows(totals);
        let kept = self.options.features.effective_volumes == Switch::On;
        (kept && effective != transaction.post_commit_volumes).then_some(effective)
    }
}

pub(super) fn add_up(totals: &mut Totals, postings: &[Posting]) {
    for posting in postings {
        let source = (posting.source.clone(), posting.asset.clone());
        totals.entry(source).or_default().output += &posting.amount;
        let destination = (posting.destination.clone(), posting.asset.clone());
        totals.entry(destination).or_default().input += &posting.amount;
    }
}

pub(super) fn rows(totals: Totals) -> Vec<HoldingVolumes> {
    totals.into_iter().map(|((account, asset), volumes)| HoldingVolumes { account, asset, volumes }).collect()
}

pub(super) fn touches(transaction: &Transaction, address: &AccountAddress) -> bool {
    transaction.postings.iter().any(|posting| posting.source == *address || posting.destination == *address)
}

pub(super) fn holds(transaction: &Transaction, account: &AccountAddress, asset: &Asset) -> bool {
    let of_asset = |posting: &&Posting| posting.asset == *asset;
    transaction
        .postings
        .iter()
        .filter(of_asset)
        .any(|posting| posting.source == *account || posting.destination == *account)
}
