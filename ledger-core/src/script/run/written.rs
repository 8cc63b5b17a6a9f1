//! The metadata that a run sets.

use std::collections::BTreeMap;

use compact_str::CompactString;

use super::Run;
use crate::limits::SCRIPT_TEXT_BYTES_MAX;
use crate::metadata::{Metadata, MetadataValue};
use crate::names::AccountAddress;
use crate::script::program::AccountId;

/// What was set, in order: of what is set twice, the last counts. Looking that up only in the end takes time by how
/// much there is, in whatever order the keys come.
#[derive(Debug, Default)]
pub(super) struct Written {
    entries: Vec<Entry>,
    /// Of all keys and values.
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    /// `None` is the transaction.
    account: Option<AccountId>,
    key: CompactString,
    value: CompactString,
}

impl Written {
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }

    pub(super) fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// Sets a key, of the transaction if there is no account. `false` if that is more than a run may write: a text
    /// can be long, and a script can write it often.
    #[must_use]
    pub(super) fn set(&mut self, account: Option<AccountId>, key: &str, value: CompactString) -> bool {
        self.bytes = self.bytes.saturating_add(key.len()).saturating_add(value.len());
        let fits = self.bytes <= SCRIPT_TEXT_BYTES_MAX;
        if fits {
            self.entries.push(Entry { account, key: key.into(), value });
        }
        fits
    }
}

impl Run<'_> {
    /// The metadata of the transaction and of accounts, by which the run forgets them.
    pub fn take_metadata(&mut self) -> (Metadata, BTreeMap<AccountAddress, Metadata>) {
        let mut entries = std::mem::take(&mut self.scratch.written.entries);
        if entries.len() > 1 {
            // Stable: what was set last comes last, and replaces.
            entries.sort_by(|a, b| (a.account, &a.key).cmp(&(b.account, &b.key)));
        }
        let (mut own, mut accounts) = (Metadata::EMPTY, BTreeMap::<_, Metadata>::new());
        let mut of_account: Option<(AccountId, Metadata)> = None;
        for Entry { account, key, value } in entries.drain(..) {
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
                        accounts.insert(self.account(before).clone(), metadata);
                    }
                }
            }
        }
        if let Some((last, metadata)) = of_account {
            accounts.insert(self.account(last).clone(), metadata);
        }
        self.scratch.written.entries = entries;
        (own, accounts)
    }
}
