//! Loads the facts that a decision requires. Changes nothing except which accounts are in memory.

use ledger_core::{
    Facts, IdempotencyKey, KnownTransaction, Metadata, Needs, PriorRequest, Timestamp, TransactionId, Volumes,
};
use ledger_journal::Position;

use super::accounts::{AccountHint, DocumentState, SlotId};
use super::context::LedgerContext;
use super::hints::{Hints, PriorTransaction};
use super::holding::HoldingState;
use super::prefetch::KeyFingerprints;
use super::state::State;
use super::written_entries::WrittenEntries;
use super::{locate, schema};
use crate::error::ReadError;
use crate::fingerprint::{KeyKind, key_space};

/// The facts for deciding a command and the hints for applying its entry.
#[derive(Default)]
pub(super) struct Loaded {
    pub(super) facts: Facts,
    pub(super) hints: Hints,
}

impl Loaded {
    /// Nothing is loaded yet. `key_fingerprints` are those of the request's keys that were computed before.
    pub(super) fn nothing(key_fingerprints: KeyFingerprints) -> Self {
        Self { facts: Facts::default(), hints: Hints { key_fingerprints, ..Hints::default() } }
    }
}

/// Loads everything that `wanted` names, and adds it to what is loaded already. Nothing else reads for a decision, except
/// a script while it runs ([`super::script_reads`]). `prefetched` holds the prefetched accounts of the postings, and
/// `date` is the date of the new entry.
pub(super) fn load(
    context: &mut LedgerContext<'_, impl WrittenEntries>,
    wanted: &Needs<'_>,
    prefetched: &[AccountHint],
    date: Timestamp,
    loaded: &mut Loaded,
) -> Result<(), ReadError> {
    if let Some(key) = wanted.idempotency_key {
        find_prior(context, key, loaded)?;
        if loaded.facts.prior.is_some() {
            return Ok(());
        }
    }
    find_schemas(context, wanted, loaded)?;
    if let Some(id) = wanted.transaction {
        loaded.facts.transaction = find_transaction(context, id, &mut loaded.hints)?.map(Box::new);
    }
    find_holdings(context, prefetched, wanted, date, loaded)?;
    let Loaded { facts, hints } = loaded;
    if wanted.last_date {
        facts.last_date = last_effective_date(context)?;
    }
    if let Some(reference) = &wanted.reference {
        facts.reference_taken = reference_taken(context, reference.as_str(), hints)?;
    }
    let LedgerContext { state, ledger, .. } = context;
    for account in &wanted.accounts {
        let located = locate::by_address(state, *ledger, account.as_str())?;
        if let Some(slot) = located.slot() {
            locate::load_document(state, slot)?;
        }
        hints.located.push(located);
    }
    for account in &wanted.existence {
        let located = locate::by_address(state, *ledger, account.as_str())?;
        facts.existence.push(located.slot().is_some());
    }
    Ok(())
}

/// Finds the request that used an idempotency key before.
fn find_prior(
    context: &mut LedgerContext<'_, impl WrittenEntries>,
    key: &IdempotencyKey,
    Loaded { facts, hints }: &mut Loaded,
) -> Result<(), ReadError> {
    let fingerprint = hints.key_fingerprints.idempotency;
    if let Some((position, request)) = find_key_use(context, key.as_str(), fingerprint)? {
        hints.prior = Some(position);
        facts.prior = Some(request.into());
    }
    Ok(())
}

/// Loads the schema versions that a decision requires.
fn find_schemas(
    LedgerContext { state, ledger, .. }: &mut LedgerContext<'_, impl WrittenEntries>,
    wanted: &Needs<'_>,
    Loaded { facts, hints }: &mut Loaded,
) -> Result<(), ReadError> {
    if wanted.has_schemas {
        facts.has_schemas = state.ledgers[*ledger].head.counters.schemas > 0;
    }
    if let Some(version) = wanted.named_schema {
        facts.named_schema = schema::named(state, *ledger, version)?;
    }
    if let Some(version) = wanted.new_schema {
        hints.stored = schema::stored(state, *ledger, version)?;
        facts.schema_exists = hints.stored.is_some();
    }
    Ok(())
}

/// Returns the entry that used an idempotency key, and its request. `computed` is the key's fingerprint, if it was
/// computed before.
fn find_key_use(
    context: &mut LedgerContext<'_, impl WrittenEntries>,
    key: &str,
    computed: Option<u64>,
) -> Result<Option<(Position, PriorRequest)>, ReadError> {
    let LedgerContext { state, ledger, batch, written } = context;
    let probe = match computed {
        Some(fingerprint) => (key_space(*ledger, KeyKind::Idempotency), fingerprint),
        None => state.probe_key(*ledger, KeyKind::Idempotency, key),
    };
    if state.known.prove_absent(probe) {
        return Ok(None);
    }
    if let Some(recent) = state.keys.find(*ledger, KeyKind::Idempotency, probe.1, key) {
        return Ok(Position::new(recent.value).zip(recent.request.as_deref().cloned()));
    }
    for position in state.stored_keys(probe)? {
        state.reading()?;
        if let Some(position) = Position::new(position)
            && let Some((have, prior_request)) = written.idempotency(batch, position)?
            && have == key
        {
            return Ok(Some((position, prior_request)));
        }
    }
    Ok(None)
}

/// Returns whether a transaction has this reference.
fn reference_taken(
    context: &mut LedgerContext<'_, impl WrittenEntries>,
    reference: &str,
    hints: &mut Hints,
) -> Result<bool, ReadError> {
    let LedgerContext { state, ledger, batch, written } = context;
    let space = key_space(*ledger, KeyKind::Reference);
    let fingerprint =
        *hints.key_fingerprints.reference.get_or_insert_with(|| state.fingerprints.of(space, reference));
    let probe = (space, fingerprint);
    if state.known.prove_absent(probe) {
        return Ok(false);
    }
    if state.keys.find(*ledger, KeyKind::Reference, fingerprint, reference).is_some() {
        return Ok(true);
    }
    for id in state.stored_keys(probe)? {
        state.reading()?;
        if written.reference(batch, *ledger, id)?.is_some_and(|have| have == reference) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the transaction that a command changes or reverts, if it exists.
fn find_transaction(
    context: &mut LedgerContext<'_, impl WrittenEntries>,
    id: TransactionId,
    hints: &mut Hints,
) -> Result<Option<KnownTransaction>, ReadError> {
    let LedgerContext { state, ledger, batch, written } = context;
    if id.get() >= state.ledgers[*ledger].head.counters.next_transaction {
        return Ok(None);
    }
    state.reading()?;
    let Some(recorded) = written.transaction(batch, *ledger, id)? else { return Ok(None) };
    let document = state.transaction_document(*ledger, id.get())?;
    hints.transaction = Some(match document.clone() {
        Some(document) => PriorTransaction::Changed(Box::new(document)),
        None => PriorTransaction::AsRecorded(recorded.metadata.clone()),
    });
    Ok(Some(KnownTransaction {
        postings: recorded.postings,
        timestamp: recorded.timestamp,
        reference: recorded.reference,
        reverted: document.as_ref().is_some_and(|document| document.reverted.is_some()),
        metadata: document.map_or(recorded.metadata, |document| document.metadata),
    }))
}

/// Loads the accounts and volumes that a command moves, the documents of accounts whose first usage is later than the
/// command's date, and the metadata that contracts read.
fn find_holdings(
    LedgerContext { state, ledger, .. }: &mut LedgerContext<'_, impl WrittenEntries>,
    prefetched: &[AccountHint],
    wanted: &Needs<'_>,
    date: Timestamp,
    Loaded { facts, hints }: &mut Loaded,
) -> Result<(), ReadError> {
    let used_at = wanted.timestamp.unwrap_or(date);
    // Equal lengths mean that no holding occurs twice. Then both lists are in the same order.
    let prefetched = if prefetched.len() == wanted.holdings.len() { prefetched } else { &[] };
    for (at, holding) in wanted.holdings.iter().enumerate() {
        let mut located = locate::by_hint(state, *ledger, holding.account.as_str(), prefetched.get(at))?;
        located.asset = state.ledgers[*ledger].asset(holding.asset.as_str());
        locate::load_document_if_earlier(state, &located, used_at)?;
        let have = match (located.slot(), located.asset) {
            (Some(slot), Some(asset)) => state.accounts.get(slot).holding(asset),
            _ => None,
        };
        located.holding = have.map(|have| have.holding);
        facts.volumes.push(have.map_or_else(Volumes::default, HoldingState::totals));
        hints.located.push(located);
    }
    for &slot in &wanted.metadata {
        if let Some(place) = hints.located[slot as usize].slot() {
            facts.metadata.push((slot, account_metadata(state, place)?));
        }
    }
    Ok(())
}

fn account_metadata(state: &mut State, place: SlotId) -> Result<Metadata, ReadError> {
    locate::load_document(state, place)?;
    Ok(match &state.accounts.get(place).document {
        DocumentState::Loaded(document) => document.metadata.clone(),
        DocumentState::Plain { .. } | DocumentState::Stored => Metadata::EMPTY,
    })
}

/// Returns the effective date of the last transaction.
fn last_effective_date(
    context: &mut LedgerContext<'_, impl WrittenEntries>,
) -> Result<Option<Timestamp>, ReadError> {
    let LedgerContext { state, ledger, batch, written } = context;
    let next = state.ledgers[*ledger].head.counters.next_transaction;
    let Some(last) = next.checked_sub(1) else { return Ok(None) };
    state.reading()?;
    let last = written.transaction(batch, *ledger, TransactionId::new(last))?;
    Ok(last.map(|transaction| transaction.timestamp))
}
