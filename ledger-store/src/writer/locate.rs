//! Finds accounts in memory or in the index.

use ledger_core::Timestamp;

use super::accounts::{AccountHint, DocumentState, NewState, SlotId};
use super::holding::{HoldingState, Holdings};
use super::state::State;
use crate::error::ReadError;
use crate::fingerprint::KeyKind;
use crate::lookup::{self, missing, missing_in};
use crate::projection::StoredAccount;

/// An account that a command names and, for a holding, the asset in it. Absent parts do not exist yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Located {
    /// The hash of the account's key, or [`NO_HASH`].
    pub(crate) hash: u64,
    /// The slot and the number of the account.
    pub(crate) account: Option<(SlotId, u32)>,
    /// The number of the asset.
    pub(crate) asset: Option<u32>,
    /// The number of the holding.
    pub(crate) holding: Option<u32>,
}

/// Stands for the hash of an account that a replayed entry names by its number: only adding an account needs a hash.
pub(super) const NO_HASH: u64 = 0;

impl Located {
    pub(super) fn account(hash: u64, account: Option<(SlotId, u32)>) -> Self {
        Self { hash, account, asset: None, holding: None }
    }

    /// Returns the slot of the account.
    pub(crate) fn slot(&self) -> Option<SlotId> {
        self.account.map(|(slot, _)| slot)
    }
}

/// Finds an account like [`by_address`], but faster if it was prefetched.
pub(crate) fn by_hint(
    state: &mut State,
    ledger: u32,
    address: &str,
    hint: Option<&AccountHint>,
) -> Result<Located, ReadError> {
    match hint.and_then(|hint| state.accounts.find_by_hint(hint, ledger, address)) {
        Some((hash, account)) => Ok(Located::account(hash, Some(account))),
        None => by_address(state, ledger, address),
    }
}

/// Finds an account in memory or in the index.
pub(crate) fn by_address(state: &mut State, ledger: u32, address: &str) -> Result<Located, ReadError> {
    let hash = state.accounts.hash(ledger, address);
    if let Some(account) = state.accounts.find(hash, ledger, address) {
        return Ok(Located::account(hash, Some(account)));
    }
    let index = &state.index;
    if state.known.prove_absent(state.probe_key(ledger, KeyKind::Address, address)) {
        return Ok(Located::account(hash, None));
    }
    state.reading()?;
    let found = lookup::find_account(&index.snapshot, &index.keys, &state.fingerprints, ledger, address)?;
    let account = match found {
        Some((account, stored)) => Some((load(state, hash, ledger, account, stored)?, account)),
        None => None,
    };
    Ok(Located::account(hash, account))
}

/// Finds an existing account by number. Only during a replay.
pub(crate) fn by_number(state: &mut State, ledger: u32, account: u32) -> Result<SlotId, ReadError> {
    let replay = state.replay.as_ref().expect("accounts are located by number only in a replay");
    if let Some(slot) = replay.places.get(&(ledger, account)) {
        return Ok(*slot);
    }
    let stored = lookup::stored_account(&state.index.snapshot, ledger, account)?;
    let stored = stored.ok_or_else(|| missing("an account"))?;
    let hash = state.accounts.hash(ledger, &stored.address);
    load(state, hash, ledger, account, stored)
}

fn load(
    state: &mut State,
    hash: u64,
    ledger: u32,
    account: u32,
    stored: StoredAccount,
) -> Result<SlotId, ReadError> {
    state.reading()?;
    let first_usage = lookup::stored_first_usage(&state.index.snapshot, ledger, account)?;
    let mut holdings = Vec::with_capacity(stored.holdings.len());
    for (asset, holding) in &stored.holdings {
        let found = lookup::stored_holding(&state.index.snapshot, ledger, *holding)?;
        let found = found.ok_or_else(|| missing_in(&state.index.snapshot, "a holding"))?;
        let backdated = found.backdated.map(|sums| *sums);
        holdings.push(HoldingState::stored(
            *asset,
            *holding,
            found.transaction_count,
            &found.volumes,
            backdated,
        ));
    }
    let new = NewState {
        ledger,
        account,
        address: stored.address,
        first_usage,
        holdings: Holdings::from(holdings),
        document: DocumentState::Stored,
    };
    Ok(put_account(state, hash, new, 0))
}

/// Adds an account to the table. `flush` is 0 if the account was read from the index.
pub(crate) fn put_account(state: &mut State, hash: u64, new: NewState, flush: u64) -> SlotId {
    let key = (new.ledger, new.account);
    let slot = state.accounts.insert(hash, new, flush);
    if let Some(replay) = &mut state.replay {
        replay.places.insert(key, slot);
    }
    slot
}

/// Ensures that an account's document is in memory if `used_at` becomes the account's first usage.
#[inline]
pub(super) fn load_document_if_earlier(
    state: &mut State,
    located: &Located,
    used_at: Timestamp,
) -> Result<(), ReadError> {
    match located.slot() {
        Some(slot) if used_at < state.accounts.get(slot).first_usage => load_document(state, slot),
        _ => Ok(()),
    }
}

/// Ensures that an account's document is in memory.
pub(crate) fn load_document(state: &mut State, slot: SlotId) -> Result<(), ReadError> {
    let account = state.accounts.get(slot);
    if !matches!(account.document, DocumentState::Stored) {
        return Ok(());
    }
    state.reading()?;
    let document =
        lookup::account_document(&state.index.versions, account.ledger, account.account, u64::MAX)?
            .ok_or_else(|| missing_in(&state.index.snapshot, "the document of an account"))?;
    state.accounts.set_document(slot, document);
    Ok(())
}
