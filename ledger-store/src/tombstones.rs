//! The records of removed ledgers in the index.

use std::ops::Bound;
use std::sync::Arc;

use ledger_codec::{Corrupt, Reader, put_prefixed};
use ledger_core::Metadata;
use ledger_index::{IndexSnapshot, KeyRange, tables};

use crate::documents::{decode_ledger, encode_ledger, ledger_of_schema, schema_ranges};
use crate::error::ReadError;
use crate::hashes::ChainId;
use crate::query::LedgerInfo;

/// The record of a ledger that was removed for good.
pub(crate) struct Tombstone {
    /// The description of the ledger when it was removed, without its metadata.
    pub(crate) info: Arc<LedgerInfo>,
    /// The journal section of its entries.
    pub(crate) section: u32,
    /// True if the index and the journal contain no data of the ledger any more.
    pub(crate) is_reclaimed: bool,
}

impl Tombstone {
    /// Layout: `is_reclaimed` (1 byte), name, then the same as the document of a ledger.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let info = LedgerInfo { metadata: Metadata::EMPTY, ..LedgerInfo::clone(&self.info) };
        let mut out = vec![u8::from(self.is_reclaimed)];
        put_prefixed(&mut out, info.name.as_str().as_bytes());
        out.extend_from_slice(&encode_ledger(&info, self.section));
        out
    }

    /// Decodes the bytes that [`Tombstone::encode`] wrote.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Corrupt> {
        let mut reader = Reader::new(bytes);
        let is_reclaimed = reader.u8()? != 0;
        let name = reader.prefixed()?;
        let rest = reader.remaining();
        let (info, section) = decode_ledger(name, &bytes[bytes.len() - rest..])?;
        Ok(Self { info: Arc::new(info), section, is_reclaimed })
    }
}

/// Returns the removed ledgers that an index records, in order of their numbers.
pub(crate) fn read(index: &IndexSnapshot) -> Result<Vec<Tombstone>, ReadError> {
    let mut all = Vec::new();
    for found in index.range(tables::REMOVED, Bound::Unbounded, Bound::Unbounded)? {
        let (key, value) = found?;
        let tombstone = Tombstone::decode(&value)?;
        if key != tombstone.info.id.to_be_bytes() {
            return Err(Corrupt { what: "removed ledger" }.into());
        }
        all.push(tombstone);
    }
    Ok(all)
}

/// Returns the key ranges of plain tables in which an index stores data of a ledger.
pub(crate) fn key_ranges(ledger: u32) -> impl Iterator<Item = KeyRange> {
    let of = |table: &'static str, number: u32| {
        (table, number.to_be_bytes().to_vec(), (number + 1).to_be_bytes().to_vec())
    };
    [
        of(tables::ACCOUNTS, ledger),
        of(tables::USAGES, ledger),
        of(tables::HOLDINGS, ledger),
        of(tables::ADDRESSES, ledger),
        of(tables::NAMES, ledger),
        of(tables::HEADS, ledger),
        of(tables::HASHES, ChainId::wire(ledger).number()),
        of(tables::HASHES, ChainId::legacy(ledger).number()),
    ]
    .into_iter()
    .chain(schema_ranges(ledger).map(|(from, to)| (tables::DOCUMENTS, from, to)))
}

/// Returns the ledger that a key of a plain table belongs to, if it belongs to one.
pub(crate) fn ledger_of(table: &str, key: &[u8]) -> Option<u32> {
    if table == tables::DOCUMENTS {
        return ledger_of_schema(key);
    }
    let (number, _) = key.split_first_chunk::<4>()?;
    let number = u32::from_be_bytes(*number);
    Some(if table == tables::HASHES { ChainId::of_number(number).ledger() } else { number })
}

#[cfg(test)]
mod tests {
    use ledger_core::{BucketName, Features, FirstId, LedgerName, Timestamp};

    use super::*;

    #[test]
    fn tombstones_read_back_without_metadata() {
        let info = LedgerInfo {
            id: 3,
            name: LedgerName::parse("main").expect("a name"),
            bucket: BucketName::parse("b").expect("a name"),
            added_at: Timestamp::from_micros(5),
            metadata: [("k", "v")].into_iter().collect(),
            features: Features::default(),
            first_id: FirstId::One,
            deleted_at: None,
        };
        let tombstone = Tombstone { info: Arc::new(info.clone()), section: 300, is_reclaimed: true };
        let bytes = tombstone.encode();
        let read = Tombstone::decode(&bytes).expect("as written");
        assert_eq!((read.section, read.is_reclaimed), (300, true));
        assert_eq!(*read.info, LedgerInfo { metadata: Metadata::EMPTY, ..info });
        for length in 0..bytes.len() {
            assert!(Tombstone::decode(&bytes[..length]).is_err(), "cut to {length}");
        }
    }
}
