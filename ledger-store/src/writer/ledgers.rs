//! A ledger as the writer knows it.

use compact_str::CompactString;
use smallvec::SmallVec;

use crate::fingerprint::{Fingerprints, KeyPrint, Subject, subject_space};
use crate::view::{Counters, LedgerHead};

/// A ledger as the writer knows it.
pub(crate) struct LedgerState {
    pub(crate) head: LedgerHead,
    /// The asset that was used last, with its number: most ledgers have few.
    last_asset: Option<(CompactString, u32)>,
    /// The metadata keys that were used last, each by its place among those of its transaction: most of these are
    /// alike.
    last_keys: SmallVec<[LastKey; LAST_KEYS]>,
}

/// Number of the metadata keys used last that are remembered.
const LAST_KEYS: usize = 4;

/// A metadata key that was used last.
struct LastKey {
    text: CompactString,
    id: u32,
    /// Of what fingerprints of a transaction's metadata are made.
    print: KeyPrint,
}

impl LedgerState {
    pub(crate) fn new(head: LedgerHead) -> Self {
        Self { head, last_asset: None, last_keys: SmallVec::new() }
    }

    pub(crate) fn counters(&mut self) -> &mut Counters {
        &mut self.head.counters
    }

    /// The number of an asset, if it has one.
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

    /// The number of a metadata key that stands at this place among others, if it has one.
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

    /// The fingerprint of a metadata key of a transaction, if it was used last at this place.
    pub(crate) fn last_print(&self, at: usize, id: u32) -> Option<KeyPrint> {
        self.last_keys.get(at).filter(|last| last.id == id).map(|last| last.print)
    }

    /// Forgets the names that were used last, since their numbers may be taken back.
    pub(crate) fn forget_names(&mut self) {
        self.last_asset = None;
        self.last_keys.clear();
    }
}
