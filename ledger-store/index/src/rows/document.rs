//! Documents and the entries of their indexes, by keys of any length.
//!
//! ```text
//! shared       varint  number of bytes at the start of the key that the row before has too
//! rest         varint length, then the other bytes of the key
//! version      varint  zigzag difference from the row before
//! value        varint  0 if the key was removed, else one more than the length; then the bytes
//! ```

use std::ops::Deref;
use std::sync::Arc;

use ledger_codec::{Corrupt, Output, Reader};
use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_64;

use crate::row::{KeyBytes, Row, difference, put_difference};

/// The value of a document's key, or of the key of an index entry, after a change.
///
/// Of the rows with the same key, only the one with the highest version counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRow {
    /// The collection (4 bytes), 0 or the number of an index (8 bytes), and the rest of the key.
    pub key: Arc<[u8]>,
    /// The journal position of the change.
    pub version: u64,
    /// The value, or `None` if the change removed it.
    pub value: Option<SharedBytes>,
}

/// Bytes that copies share. Empty bytes take no memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedBytes(Option<Arc<[u8]>>);

impl From<&[u8]> for SharedBytes {
    fn from(bytes: &[u8]) -> Self {
        Self((!bytes.is_empty()).then(|| bytes.into()))
    }
}

impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        bytes.as_slice().into()
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

/// Returns whether a key is that of a document, and not of an index entry.
fn is_document(key: &[u8]) -> bool {
    key.get(4..12) == Some(&[0; 8])
}

/// Ends the key before the version in [`KeyBytes`]. A zero byte of the key is followed by another byte there.
const END: [u8; 2] = [0, 0];
const ESCAPED_ZERO: [u8; 2] = [0, 0xff];

impl Row for DocumentRow {
    type Key = (Arc<[u8]>, u64);
    const TABLE: u8 = 8;
    const TABLE_NAME: &'static str = "runs.documents";
    const KEY_BYTES: usize = 160;
    const SUPERSEDES: bool = true;
    const PROBE_KEYS_ASCEND: bool = false;

    fn first_key() -> Self::Key {
        (Arc::default(), 0)
    }

    /// No key is greater: the number of an index has eight bytes, and its first one is 0.
    fn last_key() -> Self::Key {
        (Arc::from([0xff_u8; 5]), u64::MAX)
    }

    #[inline]
    fn key(&self) -> Self::Key {
        (self.key.clone(), self.version)
    }

    #[inline]
    fn is_before(&self, other: &Self) -> bool {
        (&self.key, self.version) < (&other.key, other.version)
    }

    fn ledger_of(_: &Self::Key) -> u32 {
        0
    }

    fn first_of(_: u32) -> Self::Key {
        Self::last_key()
    }

    fn rank(key: &Self::Key) -> u128 {
        rank(&key.0)
    }

    #[inline]
    fn key_rank(&self) -> u128 {
        rank(&self.key)
    }

    fn put_key(key: &Self::Key, out: &mut KeyBytes) {
        for part in key.0.split_inclusive(|byte| *byte == 0) {
            match part.split_last() {
                Some((0, rest)) => {
                    out.put(rest);
                    out.put(&ESCAPED_ZERO);
                }
                _ => out.put(part),
            }
        }
        out.put(&END);
        out.put(&key.1.to_be_bytes());
    }

    fn read_key(bytes: &[u8]) -> Self::Key {
        let (mut key, mut rest): (SmallVec<[u8; 128]>, _) = (SmallVec::new(), bytes);
        while let Some((byte, after)) = rest.split_first() {
            rest = after;
            match (byte, rest.split_first()) {
                (0, Some((0, version))) => {
                    let version = version.first_chunk().map_or(0, |version| u64::from_be_bytes(*version));
                    return (key.as_slice().into(), version);
                }
                (0, Some((_, after))) => {
                    key.push(0);
                    rest = after;
                }
                _ => key.push(*byte),
            }
        }
        (key.as_slice().into(), 0)
    }

    fn encode(&self, previous: Option<&Self>, out: &mut Output) {
        let before: &[u8] = previous.map_or(&[], |previous| &previous.key);
        let shared = self.key.iter().zip(before).take_while(|(one, other)| one == other).count();
        out.put_varint(shared as u64);
        out.put_prefixed(&self.key[shared..]);
        put_difference(out, self.version, previous.map_or(0, |previous| previous.version));
        match &self.value {
            None => out.put_varint(0),
            Some(value) => {
                out.put_varint(value.len() as u64 + 1);
                out.put_bytes(value);
            }
        }
    }

    fn decode(previous: Option<&Self>, reader: &mut Reader<'_>) -> Result<Self, Corrupt> {
        const LENGTH: Corrupt = Corrupt { what: "a document has no possible length" };
        let before: &[u8] = previous.map_or(&[], |previous| &previous.key);
        let shared = usize::try_from(reader.varint()?).map_err(|_| LENGTH)?;
        let mut key: SmallVec<[u8; 128]> = SmallVec::from_slice(before.get(..shared).ok_or(LENGTH)?);
        key.extend_from_slice(reader.prefixed()?);
        let version = difference(reader, previous.map_or(0, |previous| previous.version))?;
        let value = match reader.varint()?.checked_sub(1) {
            None => None,
            Some(length) => Some(reader.bytes(usize::try_from(length).map_err(|_| LENGTH)?)?.into()),
        };
        Ok(Self { key: key.as_slice().into(), version, value })
    }

    /// Only documents are looked up one by one. Entries of indexes are read in order.
    #[inline]
    fn probe_key(key: &Self::Key) -> Option<(u64, u64)> {
        is_document(&key.0).then(|| (xxh3_64(&key.0), 0))
    }

    /// Of the versions of a key, a newer source has a later one.
    #[inline]
    fn same_sequence(one: &Self::Key, other: &Self::Key) -> bool {
        one.0 == other.0
    }

    #[inline]
    fn supersedes(&self, older: &Self) -> bool {
        self.key == older.key
    }

    #[inline]
    fn is_removal(&self) -> bool {
        self.value.is_none()
    }

    fn heap_bytes(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, |value| value.len())
    }
}

/// Returns the collection, the number of the index up to 16 bits, and the first bytes after them.
#[inline]
fn rank(key: &[u8]) -> u128 {
    let Some((collection, rest)) = key.split_first_chunk::<4>() else { return 0 };
    let Some((number, rest)) = rest.split_first_chunk::<8>() else { return u128::MAX };
    let mut first = [0; 16];
    let taken = rest.len().min(10);
    first[..4].copy_from_slice(collection);
    first[4..6].copy_from_slice(&(u64::from_be_bytes(*number).min(0xffff) as u16).to_be_bytes());
    first[6..6 + taken].copy_from_slice(&rest[..taken]);
    u128::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::tests::{Rng, check_coding};

    #[test]
    fn rows_are_read_as_written() {
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            let mut rows: Vec<DocumentRow> = (0..300)
                .map(|_| {
                    let mut key =
                        vec![0, 0, 0, 16 + rng.below(2) as u8, 0, 0, 0, 0, 0, 0, 0, rng.below(3) as u8];
                    key.extend((0..rng.below(20)).map(|_| [0, 0, 1, 7, 0xff][rng.below(5) as usize]));
                    let value: Vec<u8> = (0..rng.below(40)).map(|_| rng.any() as u8).collect();
                    let value = if rng.below(4) == 0 { None } else { Some(value.into()) };
                    DocumentRow { key: key.into(), version: rng.below(9), value }
                })
                .collect();
            rows.sort_by_key(Row::key);
            rows.dedup_by_key(|row| row.key());
            check_coding(&rows);
            assert!(rows.windows(2).all(|pair| pair[0].is_before(&pair[1])));
            assert!(rows.is_sorted_by_key(Row::key_rank));
        }
    }
}
