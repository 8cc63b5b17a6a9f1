//! Loads the facts that a decision requires. Changes nothing except which accounts are in memory.

use ledger_core::schema::Schema;
use ledger_core::{
    AccountAddress, Command, Facts, KnownTransaction, Metadata, Needs, Rejection, SlotList, Timestamp,
    TransactionId, Volumes, enforcement, needs,
};
use ledger_journal::Position;
use ledger_journal::entry::PriorRequest;

use super::accounts::{AccountHint, DocumentState, SlotId};
use super::context::{LedgerContext, Stop};
use super::hints::{Hints, PriorTransaction};
use super::holding::HoldingState;
use super::locate::Located;
use super::size::{ENTRY_BYTES_MAX, is_too_large};
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

/// Loads everything that deciding a settled command requires, and returns the slots of its postings. `hint` holds the
/// prefetched accounts of the postings, and `date` is the date of the new entry.
pub(super) fn facts(
    context: &mut LedgerContext<'_, impl WrittenEntries>,
    hint: &[AccountHint],
    command: &Command,
    schema: Option<&Schema>,
    date: Timestamp,
    loaded: &mut Loaded,
) -> Result<SlotList, Stop<Rejection>> {
    let original = find_original(context, command.transaction(), &mut loaded.hints)?;
    let mut wanted = needs(command, original.as_ref());
    find_holdings(context, hint, &wanted, date, loaded)?;
    let LedgerContext { state, ledger, .. } = context;
    if has_too_many_assets(state, *ledger, &loaded.hints.located) {
        return Err(Rejection::TooManyAssets.into());
    }
    find_rest(context, &wanted, loaded)?;
    loaded.hints.defaults = defaults(schema, command, &wanted, &loaded.hints.located);
    if is_too_large(command, original.as_ref(), &loaded.facts.volumes, &loaded.hints.defaults) {
        return Err(Rejection::TransactionTooLarge { bytes_max: ENTRY_BYTES_MAX }.into());
    }
    let slots = std::mem::take(&mut wanted.slots);
    drop(wanted);
    loaded.facts.transaction = original;
    Ok(slots)
}

/// Returns whether these holdings have more new assets than the ledger has numbers left.
pub(super) fn has_too_many_assets(state: &mut State, ledger: u32, holdings: &[Located]) -> bool {
    let new = holdings.iter().filter(|holding| holding.asset.is_none()).count();
    new > 0 && state.ledgers[ledger].head.assets.len() + new > crate::names::NAMES_MAX
}

/// Returns the default metadata of the accounts that a command brings into existence. `located` are the accounts of its
/// holdings, and those that get metadata.
pub(super) fn defaults(
    schema: Option<&Schema>,
    command: &Command,
    wanted: &Needs<'_>,
    located: &[Located],
) -> Vec<(AccountAddress, Metadata)> {
    // Removing metadata brings no account into existence.
    let Some(schema) = schema.filter(|_| !matches!(command, Command::DeleteMetadata { .. })) else {
        return Vec::new();
    };
    let named = wanted.holdings.iter().map(|holding| holding.account).chain(wanted.accounts.iter().copied());
    let new = named.zip(located).filter(|(_, located)| located.slot().is_none());
    enforcement::defaults(schema, new.map(|(account, _)| account))
}

/// Loads what a command needs apart from holdings: whether its reference is taken, the accounts that get metadata with
/// their documents, the schema version, and which accounts of its preconditions exist.
pub(super) fn find_rest(
    context: &mut LedgerContext<'_, impl WrittenEntries>,
    wanted: &Needs<'_>,
    Loaded { facts, hints }: &mut Loaded,
) -> Result<(), ReadError> {
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
    if let Some(version) = wanted.schema {
        hints.stored = schema::stored(state, *ledger, version)?;
        facts.schema_exists = hints.stored.is_some();
    }
    for account in &wanted.existence {
        let located = locate::by_address(state, *ledger, account.as_str())?;
        facts.existence.push(located.slot().is_some());
    }
    Ok(())
}

/// Returns the entry that used an idempotency key, and the data that recognises its request. `computed` is the key's
/// fingerprint, if it was computed before.
pub(super) fn used_key(
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

/// Loads the transaction that a command changes or reverts.
pub(super) fn find_original(
    context: &mut LedgerContext<'_, impl WrittenEntries>,
    id: Option<TransactionId>,
    hints: &mut Hints,
) -> Result<Option<KnownTransaction>, ReadError> {
    let LedgerContext { state, ledger, batch, written } = context;
    let Some(id) = id else { return Ok(None) };
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

/// Loads the accounts and volumes that a command moves, and the documents of those accounts that it uses before their
/// first usage. `hint` holds the prefetched accounts of its postings, and `date` is the date of the new entry.
pub(super) fn find_holdings(
    context: &mut LedgerContext<'_, impl WrittenEntries>,
    hint: &[AccountHint],
    wanted: &Needs<'_>,
    date: Timestamp,
    Loaded { facts, hints }: &mut Loaded,
) -> Result<(), ReadError> {
    let LedgerContext { state, ledger, .. } = context;
    let used_at = wanted.timestamp.unwrap_or(date);
    // If no holding occurs twice, both lists have the same order.
    let hint = if hint.len() == wanted.holdings.len() { hint } else { &[] };
    for (at, holding) in wanted.holdings.iter().enumerate() {
        let mut located = locate::by_hint(state, *ledger, holding.account.as_str(), hint.get(at))?;
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
    if wanted.last_date {
        facts.last_date = last_date(context)?;
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
fn last_date(context: &mut LedgerContext<'_, impl WrittenEntries>) -> Result<Option<Timestamp>, ReadError> {
    let LedgerContext { state, ledger, batch, written } = context;
    let next = state.ledgers[*ledger].head.counters.next_transaction;
    let Some(last) = next.checked_sub(1) else { return Ok(None) };
    state.reading()?;
    let last = written.transaction(batch, *ledger, TransactionId::new(last))?;
    Ok(last.map(|transaction| transaction.timestamp))
}
