//! Stored documents of accounts, transactions and ledgers: their data beside postings.

use std::ops::Bound;

use ledger_codec::{Corrupt, Reader, put_prefixed, put_varint};
use ledger_core::{
    BucketName, Features, FirstId, HashLogs, LedgerName, Metadata, MetadataValue, Switch, Timestamp,
};

use super::keys::{self, Space};
use crate::query::LedgerInfo;

/// Data of an account beside its volumes. Each change writes a new version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccountDocument {
    /// Earliest effective date of the account's transactions, or else the date of its first metadata.
    pub(crate) first_usage: Timestamp,
    /// Date of the entry that named the account first.
    pub(crate) inserted_at: Timestamp,
    /// Date of this version.
    pub(crate) updated_at: Timestamp,
    /// Metadata of the account.
    pub(crate) metadata: Metadata,
}

/// Changes of a transaction after it was recorded. Each change writes a new version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransactionDocument {
    /// Date of this version.
    pub(crate) updated_at: Timestamp,
    /// Id of the transaction that reverts this one, and the date.
    pub(crate) reverted: Option<(u64, Timestamp)>,
    /// Metadata of the transaction.
    pub(crate) metadata: Metadata,
}

fn put_time(out: &mut Vec<u8>, time: Timestamp) {
    out.extend_from_slice(&time.as_micros().to_be_bytes());
}

fn read_time(reader: &mut Reader<'_>) -> Result<Timestamp, Corrupt> {
    reader.array().map(|bytes| Timestamp::from_micros(i64::from_be_bytes(bytes)))
}

fn read_text<'a>(reader: &mut Reader<'a>) -> Result<&'a str, Corrupt> {
    std::str::from_utf8(reader.prefixed()?).map_err(|_| Corrupt { what: "text is not UTF-8" })
}

fn put_metadata(out: &mut Vec<u8>, metadata: &Metadata) {
    put_varint(out, metadata.len() as u64);
    for (key, value) in metadata.iter() {
        put_prefixed(out, key.as_bytes());
        let (text, json) = match value {
            MetadataValue::Text(text) => (text, 0),
            MetadataValue::Json(text) => (text, 1),
        };
        out.push(json);
        put_prefixed(out, text.as_bytes());
    }
}

fn read_metadata(reader: &mut Reader<'_>) -> Result<Metadata, Corrupt> {
    let mut metadata = Metadata::EMPTY;
    for _ in 0..reader.varint()? {
        let key = read_text(reader)?;
        let json = reader.u8()?;
        let text = read_text(reader)?;
        let value =
            if json == 0 { MetadataValue::Text(text.into()) } else { MetadataValue::Json(text.into()) };
        metadata.insert(key, value);
    }
    Ok(metadata)
}

fn finished<T>(reader: &Reader<'_>, value: T) -> Result<T, Corrupt> {
    if reader.is_empty() { Ok(value) } else { Err(Corrupt { what: "document longer than its content" }) }
}

impl AccountDocument {
    /// Layout: first usage, insertion and update as 8-byte integers; metadata as count and pairs of text,
    /// kind of value (0 text, 1 JSON), text.
    pub(crate) fn encode(&self) -> Box<[u8]> {
        let mut out = Vec::with_capacity(25 + self.metadata.text_bytes() + 4 * self.metadata.len());
        put_time(&mut out, self.first_usage);
        put_time(&mut out, self.inserted_at);
        put_time(&mut out, self.updated_at);
        put_metadata(&mut out, &self.metadata);
        out.into()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Corrupt> {
        let mut reader = Reader::new(bytes);
        let document = Self {
            first_usage: read_time(&mut reader)?,
            inserted_at: read_time(&mut reader)?,
            updated_at: read_time(&mut reader)?,
            metadata: read_metadata(&mut reader)?,
        };
        finished(&reader, document)
    }
}

impl TransactionDocument {
    /// Layout: update as an 8-byte integer; 0, or 1 with the reverting transaction and its date; metadata.
    pub(crate) fn encode(&self) -> Box<[u8]> {
        let mut out = Vec::with_capacity(32 + self.metadata.text_bytes() + 4 * self.metadata.len());
        put_time(&mut out, self.updated_at);
        match self.reverted {
            None => out.push(0),
            Some((by, at)) => {
                out.push(1);
                put_varint(&mut out, by);
                put_time(&mut out, at);
            }
        }
        put_metadata(&mut out, &self.metadata);
        out.into()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Corrupt> {
        let mut reader = Reader::new(bytes);
        let updated_at = read_time(&mut reader)?;
        let reverted = match reader.u8()? {
            0 => None,
            _ => Some((reader.varint()?, read_time(&mut reader)?)),
        };
        let metadata = read_metadata(&mut reader)?;
        finished(&reader, Self { updated_at, reverted, metadata })
    }
}

/// Collection of ledgers. The key is the name.
pub(crate) const LEDGERS: u32 = 1;

/// Collection of the mappings of ledgers, as JSON text. The key is the name.
pub(crate) const MAPPINGS: u32 = 2;

/// Collection of schemas, as JSON text. The key is the ledger's number and the version. Schemas have no entries of
/// their own: the projection creates them from the logs that add them.
pub(crate) const SCHEMAS: u32 = 3;

/// Index of schemas by ledger number and by the position of the entry that added them.
pub(crate) const SCHEMAS_BY_POSITION: u32 = 0;

/// Returns the key ranges of a ledger's schemas and of their index entries. Each range includes its first key and
/// excludes its second.
pub(crate) fn schema_ranges(ledger: u32) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    [Space::Documents, Space::Index(SCHEMAS_BY_POSITION)].into_iter().map(move |space| {
        let from = Bound::Included(ledger.to_be_bytes().to_vec());
        let to = Bound::Excluded((ledger + 1).to_be_bytes().to_vec());
        keys::range(SCHEMAS, space, &from, &to)
    })
}

/// Returns the ledger of a schema, by the full key of the schema or of its index entry.
pub(crate) fn ledger_of_schema(full: &[u8]) -> Option<u32> {
    let key = match full.strip_prefix(&keys::prefix(SCHEMAS, Space::Documents)[..]) {
        Some(key) => key,
        None if full.starts_with(&keys::prefix(SCHEMAS, Space::Index(SCHEMAS_BY_POSITION))) => {
            keys::document_of(SCHEMAS, SCHEMAS_BY_POSITION, full).ok()?
        }
        None => return None,
    };
    key.split_first_chunk::<4>().map(|(ledger, _)| u32::from_be_bytes(*ledger))
}

/// Returns the key of a schema.
pub(crate) fn schema_key(ledger: u32, version: &str) -> Vec<u8> {
    let mut key = ledger.to_be_bytes().to_vec();
    key.extend_from_slice(version.as_bytes());
    key
}

/// Returns the secondary key of a schema that the entry at `position` added.
pub(crate) fn schema_position_key(ledger: u32, position: u64) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&ledger.to_be_bytes());
    key[4..].copy_from_slice(&position.to_be_bytes());
    key
}

/// Layout: id, section of the journal, first id, features as one byte each (the byte of the wire hash is 4 greater if
/// the ledger keeps v1 hashes), creation as an 8-byte integer, bucket, metadata; for a deleted ledger, the deletion as
/// an 8-byte integer.
pub(crate) fn encode_ledger(info: &LedgerInfo, section: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    put_varint(&mut out, u64::from(info.id));
    put_varint(&mut out, u64::from(section));
    let switch = |switch: Switch| u8::from(switch == Switch::On);
    let features = &info.features;
    out.extend_from_slice(&[
        u8::from(info.first_id == FirstId::One),
        u8::from(features.legacy_hashes == Switch::On) << 2
            | match features.hash_logs {
                HashLogs::Sync => 0,
                HashLogs::Async => 1,
                HashLogs::Disabled => 2,
            },
        switch(features.moves_history),
        switch(features.effective_volumes),
        switch(features.account_metadata_history),
        switch(features.transaction_metadata_history),
    ]);
    put_time(&mut out, info.added_at);
    put_prefixed(&mut out, info.bucket.as_str().as_bytes());
    put_metadata(&mut out, &info.metadata);
    if let Some(deleted_at) = info.deleted_at {
        put_time(&mut out, deleted_at);
    }
    out
}

/// Decodes the bytes that [`encode_ledger`] wrote. Returns the ledger and its section of the journal.
pub(crate) fn decode_ledger(name: &[u8], bytes: &[u8]) -> Result<(LedgerInfo, u32), Corrupt> {
    let name = read_ledger_name(name)?;
    let mut reader = Reader::new(bytes);
    let id = reader.varint_u32()?;
    let section = reader.varint_u32()?;
    let [first_id, hash_logs, moves, effective, account_metadata, transaction_metadata] = reader.array()?;
    let switch = |byte: u8| if byte == 0 { Switch::Off } else { Switch::On };
    let added_at = read_time(&mut reader)?;
    let bucket = BucketName::parse(read_text(&mut reader)?).map_err(|_| Corrupt { what: "bucket name" })?;
    let info = LedgerInfo {
        id,
        name,
        bucket,
        added_at,
        metadata: read_metadata(&mut reader)?,
        features: Features {
            legacy_hashes: switch(hash_logs & 4),
            hash_logs: match hash_logs & !4 {
                0 => HashLogs::Sync,
                1 => HashLogs::Async,
                2 => HashLogs::Disabled,
                _ => return Err(Corrupt { what: "feature of a ledger" }),
            },
            moves_history: switch(moves),
            effective_volumes: switch(effective),
            account_metadata_history: switch(account_metadata),
            transaction_metadata_history: switch(transaction_metadata),
        },
        first_id: if first_id == 0 { FirstId::Zero } else { FirstId::One },
        deleted_at: if reader.is_empty() { None } else { Some(read_time(&mut reader)?) },
    };
    finished(&reader, (info, section))
}

/// Reads the key of a ledger's document.
pub(crate) fn read_ledger_name(key: &[u8]) -> Result<LedgerName, Corrupt> {
    let name = std::str::from_utf8(key).ok().and_then(|name| LedgerName::parse(name).ok());
    name.ok_or(Corrupt { what: "ledger name" })
}
