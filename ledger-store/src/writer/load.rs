//! Loads the facts that a decision requires. Changes nothing except which accounts are in memory.

use ledger_core::schema::Schema;
use ledger_core::{
    Command, Facts, KnownTransaction, Metadata, Needs, Rejection, SlotList, Timestamp, TransactionId,
    Volumes, check_sizes, needs,
};
use ledger_journal::Position;
use ledger_journal::entry::Recognition;

use super::accounts::{AccountHint, DocumentState, Place};
use super::batch::Batch;
use super::hints::{Hints, Prior};
use super::holding::HoldingState;
use super::locate::Located;
use super::size::{ENTRY_BYTES_MAX, is_too_large};
use super::state::State;
use super::written::Written;
use crate::error::ReadError;
use crate::fingerprint::{KeyKind, key_space};

/// The facts for deciding a command and the hints for applying its entry.
pub(super) struct Loaded {
    pub(super) facts: Facts,
    pub(super) hints: Hints,
}

impl State {
    /// Loads everything that deciding a settled command requires, and returns the slots of its postings. Checks sizes
    /// first, so that little is loaded for a command that is too large.
    pub(super) fn load_facts(
        &mut self,
        (ledger, hint): (u32, &[AccountHint]),
        command: &Command,
        schema: Option<&Schema>,
        loaded: &mut Loaded,
        batch: &mut Batch,
        written: &impl Written,
    ) -> Result<Result<SlotList, Rejection>, ReadError> {
        let Loaded { facts, hints } = loaded;
        if let Err(rejection) = check_sizes(command) {
            return Ok(Err(rejection));
        }
        let original = self.find_original(ledger, command.transaction(), hints, batch, written)?;
        let mut wanted = needs(command, original.as_ref());
        self.find_holdings((ledger, hint), &wanted, facts, hints, batch, written)?;
        if self.has_too_many_assets(ledger, &hints.located) {
            return Ok(Err(Rejection::TooManyAssets));
        }
        hints.defaults = self.defaults(ledger, schema, command)?;
        if is_too_large(command, original.as_ref(), &facts.volumes, &hints.defaults) {
            return Ok(Err(Rejection::TransactionTooLarge { bytes_max: ENTRY_BYTES_MAX }));
        }
        self.find_rest(ledger, &wanted, facts, hints, batch, written)?;
        let slots = std::mem::take(&mut wanted.slots);
        drop(wanted);
        facts.transaction = original;
        Ok(Ok(slots))
    }

    /// Returns whether these holdings have more new assets than the ledger has numbers left.
    pub(super) fn has_too_many_assets(&mut self, ledger: u32, holdings: &[Located]) -> bool {
        let new = holdings.iter().filter(|holding| holding.asset.is_none()).count();
        new > 0 && self.ledgers[ledger].head.assets.len() + new > crate::names::NAMES_MAX
    }

    /// Loads what a command needs apart from holdings: whether its reference is taken, the accounts that get metadata,
    /// and whether a schema version exists.
    pub(super) fn find_rest(
        &mut self,
        ledger: u32,
        wanted: &Needs<'_>,
        facts: &mut Facts,
        hints: &mut Hints,
        batch: &mut Batch,
        written: &impl Written,
    ) -> Result<(), ReadError> {
        if let Some(reference) = &wanted.reference {
            facts.reference_taken =
                self.reference_taken(ledger, reference.as_str(), hints, batch, written)?;
        }
        for account in &wanted.accounts {
            hints.located.push(self.locate(ledger, account.as_str())?);
        }
        if let Some(version) = wanted.schema {
            facts.schema_exists = self.has_schema(ledger, version)?;
            if !facts.schema_exists {
                hints.stored = Prior::Absent;
            }
        }
        Ok(())
    }

    /// Returns the entry that used an idempotency key, and the data that recognises its request. `known` is the key's
    /// fingerprint, if it was computed before.
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

    /// Returns whether a transaction has this reference.
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

    /// Loads the transaction that a command changes or reverts.
    pub(super) fn find_original(
        &mut self,
        ledger: u32,
        id: Option<TransactionId>,
        hints: &mut Hints,
        batch: &mut Batch,
        written: &impl Written,
    ) -> Result<Option<KnownTransaction>, ReadError> {
        let Some(id) = id else { return Ok(None) };
        if id.get() >= self.ledgers[ledger].head.counters.next_transaction {
            return Ok(None);
        }
        self.reading()?;
        let Some(recorded) = written.transaction(batch, ledger, id)? else { return Ok(None) };
        let document = self.transaction_document(ledger, id.get())?;
        hints.original = Some(recorded.metadata.clone());
        hints.changed = Prior::of(document.clone().map(Box::new));
        Ok(Some(KnownTransaction {
            postings: recorded.postings,
            timestamp: recorded.timestamp,
            reference: recorded.reference,
            reverted: document.as_ref().is_some_and(|document| document.reverted.is_some()),
            metadata: document.map_or(recorded.metadata, |document| document.metadata),
        }))
    }

    /// Loads the accounts and volumes that a command moves. `near` holds the prefetched accounts of its postings.
    pub(super) fn find_holdings(
        &mut self,
        (ledger, hint): (u32, &[AccountHint]),
        wanted: &Needs<'_>,
        facts: &mut Facts,
        hints: &mut Hints,
        batch: &mut Batch,
        written: &impl Written,
    ) -> Result<(), ReadError> {
        // If no holding occurs twice, both lists have the same order.
        let hint = if hint.len() == wanted.holdings.len() { hint } else { &[] };
        for (at, holding) in wanted.holdings.iter().enumerate() {
            let mut located = self.locate_by_hint(ledger, holding.account.as_str(), hint.get(at))?;
            located.asset = self.ledgers[ledger].asset(holding.asset.as_str());
            let have = match (located.place(), located.asset) {
                (Some(place), Some(asset)) => self.accounts.get(place).holding(asset),
                _ => None,
            };
            located.holding = have.map(|have| have.holding);
            facts.volumes.push(have.map_or_else(Volumes::default, HoldingState::totals));
            hints.located.push(located);
        }
        for &slot in &wanted.metadata {
            if let Some(place) = hints.located[slot as usize].place() {
                facts.metadata.push((slot, self.account_metadata(place)?));
            }
        }
        if wanted.last_date {
            facts.last_date = self.last_date(ledger, batch, written)?;
        }
        Ok(())
    }

    fn account_metadata(&mut self, place: Place) -> Result<Metadata, ReadError> {
        self.load_document(place)?;
        Ok(match &self.accounts.get(place).document {
            DocumentState::Loaded(document) => document.metadata.clone(),
            DocumentState::Plain { .. } | DocumentState::Stored => Metadata::EMPTY,
        })
    }

    /// Returns the effective date of the last transaction.
    pub(super) fn last_date(
        &mut self,
        ledger: u32,
        batch: &mut Batch,
        written: &impl Written,
    ) -> Result<Option<Timestamp>, ReadError> {
        let next = self.ledgers[ledger].head.counters.next_transaction;
        let Some(last) = next.checked_sub(1) else { return Ok(None) };
        self.reading()?;
        let last = written.transaction(batch, ledger, TransactionId::new(last))?;
        Ok(last.map(|transaction| transaction.timestamp))
    }
}
