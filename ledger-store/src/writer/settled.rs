//! Loads the facts for a settled command, whose script has run if it had one, and checks the limits that need those facts.

use std::collections::BTreeSet;

use ledger_core::schema::Schema;
use ledger_core::{
    AccountAddress, Command, Metadata, Needs, Rejection, SlotList, Timestamp, enforcement, needs,
};

use super::accounts::AccountHint;
use super::context::{LedgerContext, Stop};
use super::load::{self, Loaded};
use super::locate::Located;
use super::size::{ENTRY_BYTES_MAX, is_too_large};
use super::written_entries::WrittenEntries;
use crate::names::NAMES_MAX;

/// Loads everything that deciding a settled command requires, and returns the slots of its postings. The facts of its
/// admission are in `loaded`. `prefetched` holds the prefetched accounts of the postings, and `date` is the date of the
/// new entry.
pub(super) fn load_facts(
    context: &mut LedgerContext<'_, impl WrittenEntries>,
    command: &Command,
    prefetched: &[AccountHint],
    date: Timestamp,
    loaded: &mut Loaded,
) -> Result<SlotList, Stop<Rejection>> {
    let original = loaded.facts.transaction.take();
    let mut wanted = needs(command, original.as_deref());
    load::load(context, &wanted, prefetched, date, loaded)?;
    let Loaded { facts, hints } = loaded;
    if has_too_many_assets(context, &wanted, &hints.located) {
        return Err(Rejection::TooManyAssets.into());
    }
    let schema = facts.named_schema.as_deref().and_then(|schema| schema.as_ref().ok());
    hints.defaults = defaults(schema, command, &wanted, &hints.located);
    if is_too_large(command, original.as_deref(), &facts.volumes, &hints.defaults) {
        return Err(Rejection::TransactionTooLarge { bytes_max: ENTRY_BYTES_MAX }.into());
    }
    let slots = std::mem::take(&mut wanted.slots);
    drop(wanted);
    facts.transaction = original;
    Ok(slots)
}

/// Returns whether the holdings of a command have more new assets than the ledger has numbers left. `located` begins with
/// the locations of these holdings.
fn has_too_many_assets(
    LedgerContext { state, ledger, .. }: &LedgerContext<'_, impl WrittenEntries>,
    wanted: &Needs<'_>,
    located: &[Located],
) -> bool {
    let holdings = wanted.holdings.iter().zip(located);
    let new =
        holdings.filter(|(_, located)| located.asset.is_none()).map(|(holding, _)| holding.asset.as_str());
    let numbers_left = NAMES_MAX.saturating_sub(state.ledgers[*ledger].head.assets.len());
    // Several holdings may have the same new asset. Only a ledger that is nearly full needs to know.
    new.clone().count() > numbers_left && new.collect::<BTreeSet<_>>().len() > numbers_left
}

/// Returns the default metadata of the accounts that a command brings into existence. `located` are the accounts of its
/// holdings, and those that get metadata.
fn defaults(
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
