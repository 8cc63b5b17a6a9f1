//! Resolves the names in entries. The first entry that uses a name also numbers it.

use ledger_codec::Corrupt;
use ledger_core::Metadata;
use ledger_journal::entry::{MetadataRecord, NameRef};
use smol_str::SmolStr;

use super::state::State;
use crate::error::ReadError;
use crate::projection::value_of;

impl State {
    pub(super) fn take_asset(&mut self, ledger: u32, asset: &NameRef<'_>) -> Result<u32, ReadError> {
        match asset {
            NameRef::Known(id) => Ok(*id),
            NameRef::New(id, text) => {
                let ledger = self.ledger(ledger);
                if ledger.head.assets.len() == *id as usize {
                    ledger.head.assets.add(text);
                    ledger.counters().assets = id + 1;
                }
                Ok(*id)
            }
            NameRef::Inline(_) => Err(Corrupt { what: "asset without a number" }.into()),
        }
    }

    pub(super) fn with_key<T>(
        &mut self,
        ledger: u32,
        key: &NameRef<'_>,
        then: impl FnOnce(&Self, &str) -> T,
    ) -> Result<T, ReadError> {
        match key {
            NameRef::New(id, text) => {
                let ledger = self.ledger(ledger);
                if ledger.head.keys.len() == *id as usize {
                    ledger.head.keys.add(text);
                    ledger.counters().keys = id + 1;
                }
                Ok(then(self, text))
            }
            NameRef::Inline(text) => Ok(then(self, text)),
            NameRef::Known(id) => {
                let text =
                    self.ledger(ledger).head.keys.text(*id).ok_or(Corrupt { what: "number of a key" })?;
                Ok(then(self, &text))
            }
        }
    }

    pub(super) fn take_key(&mut self, ledger: u32, key: &NameRef<'_>) -> Result<SmolStr, ReadError> {
        self.with_key(ledger, key, |_, text| text.into())
    }

    pub(super) fn take_metadata(
        &mut self,
        ledger: u32,
        record: &MetadataRecord<'_>,
    ) -> Result<Metadata, ReadError> {
        let mut metadata = Metadata::with_capacity(record.len());
        for (key, value) in record {
            let key = self.take_key(ledger, key)?;
            metadata.insert(key, value_of(*value));
        }
        Ok(metadata)
    }
}
