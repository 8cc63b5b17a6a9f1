//! The writer's state of a ledger, with the names that its entries use.

use ledger_codec::Corrupt;
use ledger_core::Metadata;
use ledger_journal::entry::{MetadataRecord, NameRef};
use smallvec::SmallVec;
use smol_str::SmolStr;

use crate::error::ReadError;
use crate::fingerprint::{Fingerprints, MetadataKeyPrint, Subject, subject_space};
use crate::lookup::missing;
use crate::projection::value_of;
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
    print: MetadataKeyPrint,
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
    pub(crate) fn last_print(&self, at: usize, id: u32) -> Option<MetadataKeyPrint> {
        self.last_keys.get(at).filter(|last| last.id == id).map(|last| last.print)
    }

    /// Clears the cached names, because their numbers may be taken back.
    pub(crate) fn forget_names(&mut self) {
        self.last_asset = None;
        self.last_keys.clear();
    }
    /// Returns the number of the asset that an entry names. The first entry that uses an asset also numbers it.
    pub(super) fn take_asset(&mut self, asset: &NameRef<'_>) -> Result<u32, Corrupt> {
        match asset {
            NameRef::Known(id) => Ok(*id),
            NameRef::New(id, text) => {
                if self.head.assets.len() == *id as usize {
                    self.head.assets.add(text);
                    self.head.counters.assets = id + 1;
                }
                Ok(*id)
            }
            NameRef::Inline(_) => Err(Corrupt { what: "asset without a number" }),
        }
    }

    /// Calls `then` with the text of the metadata key that an entry names. The first entry that uses a key also numbers
    /// it.
    pub(super) fn with_key<T>(
        &mut self,
        key: &NameRef<'_>,
        then: impl FnOnce(&str) -> T,
    ) -> Result<T, Corrupt> {
        match key {
            NameRef::New(id, text) => {
                if self.head.keys.len() == *id as usize {
                    self.head.keys.add(text);
                    self.head.counters.keys = id + 1;
                }
                Ok(then(text))
            }
            NameRef::Inline(text) => Ok(then(text)),
            NameRef::Known(id) => {
                let text = self.head.keys.text(*id).ok_or(Corrupt { what: "number of a key" })?;
                Ok(then(&text))
            }
        }
    }

    /// Returns the text of the metadata key that an entry names.
    pub(super) fn take_key(&mut self, key: &NameRef<'_>) -> Result<SmolStr, Corrupt> {
        self.with_key(key, |text| text.into())
    }

    /// Returns the metadata that an entry gives, with text keys.
    pub(super) fn take_metadata(&mut self, record: &MetadataRecord<'_>) -> Result<Metadata, Corrupt> {
        let mut metadata = Metadata::with_capacity(record.len());
        for (key, value) in record {
            let key = self.take_key(key)?;
            metadata.insert(key, value_of(*value));
        }
        Ok(metadata)
    }

    /// Returns the metadata that an earlier entry gave, with text keys. Numbers no key.
    pub(crate) fn metadata_of(&self, record: &MetadataRecord<'_>) -> Result<Metadata, ReadError> {
        let mut metadata = Metadata::with_capacity(record.len());
        for (key, value) in record {
            let text = match key {
                NameRef::Known(id) => self.head.keys.text(*id).ok_or_else(|| missing("a metadata key"))?,
                NameRef::New(_, text) | NameRef::Inline(text) => (*text).into(),
            };
            metadata.insert(text, value_of(*value));
        }
        Ok(metadata)
    }
}
