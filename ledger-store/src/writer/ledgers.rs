//! The writer's state of a ledger.

use smallvec::SmallVec;
use smol_str::SmolStr;

use crate::fingerprint::{Fingerprints, KeyPrint, Subject, subject_space};
use crate::view::{Counters, LedgerHead};

/// The writer's state of a ledger.
pub(crate) struct LedgerState {
    pub(crate) head: LedgerHead,
    /// The most recently used asset with its number. Most ledgers have few assets.
    last_asset: Option<(SmolStr, u32)>,
    /// The most recently used metadata keys, by index within the transaction. The transactions of a ledger mostly use
    /// the same keys.
    last_keys: SmallVec<[LastKey; LAST_KEYS]>,
}

/// Number of recently used metadata keys that are cached.
const LAST_KEYS: usize = 4;

/// A recently used metadata key.
struct LastKey {
    text: SmolStr,
    id: u32,
    /// The key's fingerprint, from which those of its values in transactions are computed.
    print: KeyPrint,
}

impl LedgerState {
    pub(crate) fn new(head: LedgerHead) -> Self {
        Self { head, last_asset: None, last_keys: SmallVec::new() }
    }

    pub(crate) fn counters(&mut self) -> &mut Counters {
        &mut self.head.counters
    }

    /// Returns the number of an asset, if it has one.
    pub(crate) fn asset(&mut self, asset: &str) -> Option<u32> {
        if let Some((text, id)) = &self.last_asset
            && text == asset
        {
            return Some(*id);
        }
        let id = self.head.assets.id(asset)?;
        self.last_asset = Some((asset.into(), id));
        Some(id)
    }

    /// Returns the number of the metadata key at index `at`, if it has one.
    pub(crate) fn key(&mut self, at: usize, key: &str, fingerprints: &Fingerprints) -> Option<u32> {
        if let Some(last) = self.last_keys.get(at)
            && last.text == key
        {
            return Some(last.id);
        }
        let id = self.head.keys.id(key)?;
        let print = fingerprints.key(subject_space(self.head.info.id, Subject::Transaction), key);
        let now = LastKey { text: key.into(), id, print };
        if let Some(last) = self.last_keys.get_mut(at) {
            *last = now;
        } else if at == self.last_keys.len() && at < LAST_KEYS {
            self.last_keys.push(now);
        }
        Some(id)
    }

    /// Returns the fingerprint of a transaction's metadata key, if it was the last one at this index.
    pub(crate) fn last_print(&self, at: usize, id: u32) -> Option<KeyPrint> {
        self.last_keys.get(at).filter(|last| last.id == id).map(|last| last.print)
    }

    /// Clears the cached names, because their numbers may be taken back.
    pub(crate) fn forget_names(&mut self) {
        self.last_asset = None;
        self.last_keys.clear();
    }
}
