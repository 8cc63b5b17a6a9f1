//! The metadata that a run sets.

use std::collections::BTreeMap;

use smol_str::SmolStr;

use crate::limits::SCRIPT_TEXT_BYTES_MAX;
use crate::program::AccountId;
use ledger_values::{AccountAddress, Metadata, MetadataValue};

/// Metadata entries in the order in which the script set them. Sorting them once at the end finds the last
/// value of each key in time that does not depend on the order of the keys.
#[derive(Debug, Default)]
pub(super) struct MetadataWrites {
    entries: Vec<Entry>,
    /// Total length of all keys and values in bytes.
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    /// The account, or `None` for the transaction.
    account: Option<AccountId>,
    key: SmolStr,
    value: SmolStr,
}

impl MetadataWrites {
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }

    pub(super) fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// Sets a key on an account, or on the transaction if there is no account. Returns `false` above the
    /// limit of written text, because a script can write a long text often.
    #[must_use]
    pub(super) fn set(&mut self, account: Option<AccountId>, key: &str, value: SmolStr) -> bool {
        self.bytes = self.bytes.saturating_add(key.len()).saturating_add(value.len());
        let fits = self.bytes <= SCRIPT_TEXT_BYTES_MAX;
        if fits {
            self.entries.push(Entry { account, key: key.into(), value });
        }
        fits
    }

    /// Returns the metadata of the transaction and of accounts, and removes it from here. Keeps the memory of the
    /// entries for the next run.
    pub(super) fn take(
        &mut self,
        address_of: impl Fn(AccountId) -> AccountAddress,
    ) -> (Metadata, BTreeMap<AccountAddress, Metadata>) {
        if self.entries.len() > 1 {
            // The sort is stable: later entries come last and replace earlier ones.
            self.entries.sort_by(|a, b| (a.account, &a.key).cmp(&(b.account, &b.key)));
        }
        let (mut own, mut accounts) = (Metadata::EMPTY, BTreeMap::<_, Metadata>::new());
        let mut of_account: Option<(AccountId, Metadata)> = None;
        for Entry { account, key, value } in self.entries.drain(..) {
            let value = MetadataValue::Text(value);
            match (account, &mut of_account) {
                (None, _) => drop(own.insert(key, value)),
                (Some(account), Some((same, metadata))) if account == *same => {
                    metadata.insert(key, value);
                }
                (Some(account), _) => {
                    let mut metadata = Metadata::EMPTY;
                    metadata.insert(key, value);
                    if let Some((before, metadata)) = of_account.replace((account, metadata)) {
                        accounts.insert(address_of(before), metadata);
                    }
                }
            }
        }
        if let Some((last, metadata)) = of_account {
            accounts.insert(address_of(last), metadata);
        }
        (own, accounts)
    }
}
