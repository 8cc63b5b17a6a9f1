//! Loads the facts for a command with postings, and checks the limits that only they show.

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
    let mut wanted = needs(command, original.as_ref());
    load::load(context, &wanted, prefetched, date, loaded)?;
    let Loaded { facts, hints } = loaded;
    if has_too_many_assets(context, &hints.located) {
        return Err(Rejection::TooManyAssets.into());
    }
    let schema = facts.named_schema.as_deref().and_then(|schema| schema.as_ref().ok());
    hints.defaults = defaults(schema, command, &wanted, &hints.located);
    if is_too_large(command, original.as_ref(), &facts.volumes, &hints.defaults) {
        return Err(Rejection::TransactionTooLarge { bytes_max: ENTRY_BYTES_MAX }.into());
    }
    let slots = std::mem::take(&mut wanted.slots);
    drop(wanted);
    facts.transaction = original;
    Ok(slots)
}

/// Returns whether these holdings have more new assets than the ledger has numbers left.
fn has_too_many_assets(
    LedgerContext { state, ledger, .. }: &LedgerContext<'_, impl WrittenEntries>,
    holdings: &[Located],
) -> bool {
    let new = holdings.iter().filter(|holding| holding.asset.is_none()).count();
    new > 0 && state.ledgers[*ledger].head.assets.len() + new > crate::names::NAMES_MAX
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
