//! The current time in the unit of token dates.

use ledger_store::Store;

/// Returns the time of the store's clock in whole seconds since the Unix epoch. A time before the epoch counts as the
/// epoch.
pub(crate) fn now(store: &Store) -> u64 {
    u64::try_from(store.now().as_micros() / 1_000_000).unwrap_or(0)
}
