//! Loads the facts that a command is decided on. Changes nothing but which accounts are in memory.

use ledger_core::schema::Schema;
use ledger_core::{
    Command, Facts, KnownTransaction, Metadata, Needs, Rejection, SlotList, Target, Timestamp, TransactionId,
    Volumes, needs, reverting_reference,
};
use ledger_journal::Position;
use ledger_journal::entry::Recognition;

use super::accounts::{DocumentState, Near, Place};
use super::batch::Batch;
use super::hints::{Hints, Prior};
use super::holding::HoldingState;
use super::locate::Located;
use super::size::{ENTRY_BYTES_MAX, is_too_large};
use super::state::State;
use super::written::Written;
use crate::error::ReadError;
use crate::fingerprint::{KeyKind, key_space};

/// The facts on which a command is decided, and those with which its entry is applied.
pub(super) struct Loaded {
    pub(super) facts: Facts,
    pub(super) hints: Hints,
}

impl State {
    /// Loads everything that a settled command is decided on, and returns the slots of its postings. Sizes are checked
    /// on the way, so that no more is loaded for a command that is too large.
    pub(super) fn load_facts(
        &mut self,
        (ledger, near): (u32, &[Near]),
        command: &Command,
        schema: Option<&Schema>,
        loaded: &mut Loaded,
        batch: &mut Batch,
        written: &impl Written,
    ) -> Result<Result<SlotList, Rejection>, ReadError> {
        let Loaded { facts, hints } = loaded;
        self.find_target(ledger, command, facts, hints, batch, written)?;
        let slots = self.find_holdings((ledger, near), command, facts, hints, batch, written)?;
        if self.has_too_many_assets(ledger, &hints.located) {
            return Ok(Err(Rejection::TooManyAssets));
        }
        hints.defaults = self.defaults(ledger, schema, command)?;
        if is_too_large(command, facts, &hints.defaults) {
            return Ok(Err(Rejection::TransactionTooLarge { bytes_max: ENTRY_BYTES_MAX }));
        }
        self.find_rest(ledger, command, facts, hints, batch, written)?;
        Ok(Ok(slots))
    }

    /// Whether the new ones among the assets of these holdings are more than the ledger has numbers for.
    pub(super) fn has_too_many_assets(&mut self, ledger: u32, holdings: &[Located]) -> bool {
        let new = holdings.iter().filter(|holding| holding.asset.is_none()).count();
        new > 0 && self.ledger(ledger).head.assets.len() + new > crate::names::NAMES_MAX
    }

    /// Finds what a command needs beside holdings: whether its reference is taken, and the accounts that get
    /// metadata.
    pub(super) fn find_rest(
        &mut self,
        ledger: u32,
        command: &Command,
        facts: &mut Facts,
        hints: &mut Hints,
        batch: &mut Batch,
        written: &impl Written,
    ) -> Result<(), ReadError> {
        if let Command::CreateTransaction(create) = command {
            if let Some(reference) = &create.reference {
                facts.reference_taken =
                    self.reference_taken(ledger, reference.as_str(), hints, batch, written)?;
            }
            for account in create.account_metadata.keys() {
                hints.located.push(self.locate(ledger, account.as_str())?);
            }
        }
        if let Command::InsertSchema(insert) = command {
            facts.schema_exists = self.has_schema(ledger, &insert.version)?;
            if !facts.schema_exists {
                hints.stored = Prior::Absent;
            }
        }
        if let (Command::RevertTransaction(revert), Some(original)) = (command, &facts.transaction)
            && let Some(reference) = reverting_reference(&revert.rules, original)
        {
            facts.reference_taken =
                self.reference_taken(ledger, reference.as_str(), hints, batch, written)?;
        }
        if let Command::SetMetadata { target: Target::Account(account), .. }
        | Command::DeleteMetadata { target: Target::Account(account), .. } = command
        {
            hints.located.push(self.locate(ledger, account.as_str())?);
        }
        Ok(())
    }

    /// The entry that a key was used for, and the hash that it was used with. `known` is its fingerprint, if it was
    /// computed before.
    pub(super) fn used_key(
        &self,
        ledger: u32,
        key: &str,
        known: Option<u64>,
        batch: &mut Batch,
        written: &impl Written,
    ) -> Result<Option<(Position, Recognition)>, ReadError> {
        let probe = match known {
            Some(fingerprint) => (key_space(ledger, KeyKind::Idempotency), fingerprint),
            None => self.probe_key(ledger, KeyKind::Idempotency, key),
        };
        if self.known.prove_absent(probe) {
            return Ok(None);
        }
        if let Some(recent) = self.keys.find(ledger, KeyKind::Idempotency, probe.1, key) {
            return Ok(Position::new(recent.value).zip(recent.request.as_deref().cloned()));
        }
        for position in self.stored_keys(probe)? {
            self.reading()?;
            if let Some(position) = Position::new(position)
                && let Some((have, recognition)) = written.idempotency(batch, position)?
                && have == key
            {
                return Ok(Some((position, recognition)));
            }
        }
        Ok(None)
    }

    /// Whether a transaction has this reference.
    pub(super) fn reference_taken(
        &self,
        ledger: u32,
        reference: &str,
        hints: &mut Hints,
        batch: &mut Batch,
        written: &impl Written,
    ) -> Result<bool, ReadError> {
        let space = key_space(ledger, KeyKind::Reference);
        let fingerprint =
            *hints.prints.reference.get_or_insert_with(|| self.fingerprints.of(space, reference));
        let probe = (space, fingerprint);
        if self.known.prove_absent(probe) {
            return Ok(false);
        }
        if self.keys.find(ledger, KeyKind::Reference, fingerprint, reference).is_some() {
            return Ok(true);
        }
        for id in self.stored_keys(probe)? {
            self.reading()?;
            if written.reference(batch, ledger, id)?.is_some_and(|have| have == reference) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Loads the transaction that a command is about.
    pub(super) fn find_target(
        &mut self,
        ledger: u32,
        command: &Command,
        facts: &mut Facts,
        hints: &mut Hints,
        batch: &mut Batch,
        written: &impl Written,
    ) -> Result<(), ReadError> {
        let id = match command {
            Command::RevertTransaction(revert) => revert.id,
            Command::SetMetadata { target: Target::Transaction(id), .. }
            | Command::DeleteMetadata { target: Target::Transaction(id), .. } => *id,
            Command::CreateTransaction(_)
            | Command::InsertSchema(_)
            | Command::SetMetadata { target: Target::Account(_), .. }
            | Command::DeleteMetadata { target: Target::Account(_), .. } => return Ok(()),
        };
        if id.get() >= self.ledger(ledger).head.counters.next_transaction {
            return Ok(());
        }
        self.reading()?;
        let Some(recorded) = written.transaction(batch, ledger, id)? else { return Ok(()) };
        let document = self.transaction_document(ledger, id.get())?;
        hints.original = Some(recorded.metadata.clone());
        hints.changed = Prior::of(document.clone().map(Box::new));
        facts.transaction = Some(KnownTransaction {
            postings: recorded.postings,
            timestamp: recorded.timestamp,
            reference: recorded.reference,
            reverted: document.as_ref().is_some_and(|document| document.reverted.is_some()),
            metadata: document.map_or(recorded.metadata, |document| document.metadata),
        });
        Ok(())
    }

    /// Finds the accounts and volumes that a command moves. `near` is where the ends of its postings may be.
    pub(super) fn find_holdings(
        &mut self,
        (ledger, near): (u32, &[Near]),
        command: &Command,
        facts: &mut Facts,
        hints: &mut Hints,
        batch: &mut Batch,
        written: &impl Written,
    ) -> Result<SlotList, ReadError> {
        let needs = needs(command, facts.transaction.as_ref());
        // Where no two ends are one holding, these are in the same order.
        let near = if near.len() == needs.holdings.len() { near } else { &[] };
        for (at, holding) in needs.holdings.iter().enumerate() {
            let mut located = self.locate_near(ledger, holding.account.as_str(), near.get(at))?;
            located.asset = self.ledger(ledger).asset(holding.asset.as_str());
            let have = match (located.place(), located.asset) {
                (Some(place), Some(asset)) => self.accounts.get(place).holding(asset),
                _ => None,
            };
            located.holding = have.map(|have| have.holding);
            facts.volumes.push(have.map_or_else(Volumes::default, HoldingState::totals));
            hints.located.push(located);
        }
        let Needs { slots, metadata, last_date, .. } = needs;
        for slot in metadata {
            if let Some(place) = hints.located[slot as usize].place() {
                facts.metadata.push((slot, self.account_metadata(place)?));
            }
        }
        if last_date {
            facts.last_date = self.last_date(ledger, batch, written)?;
        }
        Ok(slots)
    }

    fn account_metadata(&mut self, place: Place) -> Result<Metadata, ReadError> {
        self.load_document(place)?;
        Ok(match &self.accounts.get(place).document {
            DocumentState::Loaded(document) => document.metadata.clone(),
            DocumentState::Plain { .. } | DocumentState::Stored => Metadata::EMPTY,
        })
    }

    /// The effective date of the last transaction.
    pub(super) fn last_date(
        &mut self,
        ledger: u32,
        batch: &mut Batch,
        written: &impl Written,
    ) -> Result<Option<Timestamp>, ReadError> {
        let next = self.ledger(ledger).head.counters.next_transaction;
        let Some(last) = next.checked_sub(1) else { return Ok(None) };
        self.reading()?;
        let last = written.transaction(batch, ledger, TransactionId::new(last))?;
        Ok(last.map(|transaction| transaction.timestamp))
    }
}
