//! Keys of the table of documents: one ordered key space for the documents of all collections and for their indexes.
//!
//! ```text
//! document := collection:u32 0:u64 key                                -> value
//! index    := collection:u32 (index+1):u64 secondary key, escaped; key -> nothing
//! value    := version:u64 count:varint { index:varint unique:u8 key } bytes
//! ```
//!
//! Numbers are big-endian. The escape of a secondary key makes its end sort before any continuation: a zero byte
//! becomes `00 ff`, the end `00 00`.

use std::ops::Bound;

use ledger_codec::{Corrupt, Reader, put_prefixed, put_varint};

use super::{Document, DocumentKey, DocumentVersion};

/// A part of a collection's key space: its documents, or one of its indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Documents,
    Index(u32),
}

/// Ends an escaped key.
const END: [u8; 2] = [0, 0];
/// Sorts after everything that begins with an escaped key and its end, and before any longer key.
const AFTER_END: [u8; 2] = [0, 1];

/// Returns the common prefix of all keys in a part.
pub(crate) fn prefix(collection: u32, space: Space) -> Vec<u8> {
    let mut key = Vec::with_capacity(64);
    put_prefix(&mut key, collection, space);
    key
}

fn put_prefix(out: &mut Vec<u8>, collection: u32, space: Space) {
    let number = match space {
        Space::Documents => 0,
        Space::Index(index) => u64::from(index) + 1,
    };
    out.extend_from_slice(&collection.to_be_bytes());
    out.extend_from_slice(&number.to_be_bytes());
}

/// Returns the first key after a part.
fn after_prefix(collection: u32, space: Space) -> Vec<u8> {
    let mut key = prefix(collection, space);
    // The number is below 2^32 + 1 and has eight bytes, so a carry stays within them.
    for byte in key.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            break;
        }
    }
    key
}

/// The common prefix of all keys in a part.
pub(crate) type Prefix = [u8; 12];

/// Returns the prefix of the part to which a full key belongs.
///
/// # Panics
///
/// Panics if the key is shorter than a prefix, which no full key is.
pub(crate) fn prefix_of(full: &[u8]) -> Prefix {
    *full.first_chunk().expect("a full key begins with the prefix of its part")
}

/// Returns whether a full key is that of a document, and not of an index entry.
pub(crate) fn is_document(full: &[u8]) -> bool {
    full.get(4..12) == Some(&[0; 8])
}

/// Returns the full key of a document.
pub(crate) fn document_key(collection: u32, key: &[u8]) -> Vec<u8> {
    let mut full = prefix(collection, Space::Documents);
    full.extend_from_slice(key);
    full
}

fn escape(out: &mut Vec<u8>, key: &[u8]) {
    for byte in key {
        out.push(*byte);
        if *byte == 0 {
            out.push(0xff);
        }
    }
}

/// Returns the full key of the index entry that leads from a secondary key to a document.
pub(crate) fn index_key(collection: u32, index: u32, secondary: &[u8], key: &[u8]) -> Vec<u8> {
    let mut full = Vec::new();
    put_index_key(&mut full, collection, index, secondary, key);
    full
}

/// Like [`index_key`], but replaces the content of a buffer.
pub(crate) fn put_index_key(out: &mut Vec<u8>, collection: u32, index: u32, secondary: &[u8], key: &[u8]) {
    out.clear();
    put_prefix(out, collection, Space::Index(index));
    escape(out, secondary);
    out.extend_from_slice(&END);
    out.extend_from_slice(key);
}

/// Returns the key of the document to which an index entry leads.
pub(crate) fn document_of(collection: u32, index: u32, full: &[u8]) -> Result<&[u8], Corrupt> {
    let corrupt = Corrupt { what: "entry of an index of documents" };
    let start = prefix(collection, Space::Index(index)).len();
    let mut rest = full.get(start..).ok_or(corrupt)?;
    loop {
        let zero = rest.iter().position(|byte| *byte == 0).ok_or(corrupt)?;
        match rest.get(zero + 1) {
            Some(0) => return Ok(&rest[zero + 2..]),
            Some(_) => rest = &rest[zero + 2..],
            None => return Err(corrupt),
        }
    }
}

/// Returns the first key after a bound. In an index, skips all entries of the secondary key; among documents, just the
/// one key.
fn beyond(space: Space, mut key: Vec<u8>) -> Vec<u8> {
    match space {
        Space::Documents => key.push(0),
        Space::Index(_) => key.extend_from_slice(&AFTER_END),
    }
    key
}

/// Converts the bounds of a range into full keys: the first key in it, and the first key after it.
pub(crate) fn range(
    collection: u32,
    space: Space,
    from: &Bound<Vec<u8>>,
    to: &Bound<Vec<u8>>,
) -> (Vec<u8>, Vec<u8>) {
    let at = |key: &[u8]| {
        let mut full = prefix(collection, space);
        match space {
            Space::Documents => full.extend_from_slice(key),
            Space::Index(_) => escape(&mut full, key),
        }
        full
    };
    let begins = |mut key: Vec<u8>| {
        if let Space::Index(_) = space {
            key.extend_from_slice(&END);
        }
        key
    };
    let start = match from {
        Bound::Unbounded => prefix(collection, space),
        Bound::Included(key) => begins(at(key)),
        Bound::Excluded(key) => beyond(space, at(key)),
    };
    let end = match to {
        Bound::Unbounded => after_prefix(collection, space),
        Bound::Included(key) => beyond(space, at(key)),
        Bound::Excluded(key) => begins(at(key)),
    };
    (start, end)
}

/// The stored form of a document, without its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredValue<'a> {
    pub(crate) version: u64,
    /// Secondary keys: number of the index, whether the key is unique in it, and the key.
    pub(crate) keys: Vec<(u32, bool, &'a [u8])>,
    pub(crate) bytes: &'a [u8],
}

impl StoredValue<'_> {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16 + self.bytes.len());
        out.extend_from_slice(&self.version.to_be_bytes());
        put_varint(&mut out, self.keys.len() as u64);
        for (index, unique, key) in &self.keys {
            put_varint(&mut out, u64::from(*index));
            out.push(u8::from(*unique));
            put_prefixed(&mut out, key);
        }
        out.extend_from_slice(self.bytes);
        out
    }

    /// Returns the document with its key.
    pub(crate) fn document(&self, key: &[u8]) -> Document {
        Document {
            key: key.to_vec(),
            value: self.bytes.to_vec(),
            keys: self
                .keys
                .iter()
                .map(|(index, unique, key)| DocumentKey { index: *index, unique: *unique, key: key.to_vec() })
                .collect(),
            version: DocumentVersion(self.version),
        }
    }
}

/// Decodes the bytes that [`StoredValue::encode`] wrote.
pub(crate) fn decode_value(stored: &[u8]) -> Result<StoredValue<'_>, Corrupt> {
    let mut reader = Reader::new(stored);
    let version = u64::from_be_bytes(reader.array()?);
    let mut keys = Vec::new();
    for _ in 0..reader.varint()? {
        keys.push((reader.varint_u32()?, reader.u8()? != 0, reader.prefixed()?));
    }
    let rest = reader.remaining();
    Ok(StoredValue { version, keys, bytes: &stored[stored.len() - rest..] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_entries_sort_by_key_and_lead_back() {
        let keys: [&[u8]; 9] = [b"", b"\0", b"\0\0", b"\0\x01", b"\0\xff", b"a", b"a\0", b"a\0b", b"a\x01"];
        for secondary in keys {
            for key in keys {
                let full = index_key(20, 3, secondary, key);
                assert_eq!(document_of(20, 3, &full), Ok(key));
                assert!(!is_document(&full) && is_document(&document_key(20, key)));
            }
        }
        let mut sorted: Vec<(Vec<u8>, &[u8], &[u8])> = Vec::new();
        for secondary in keys {
            for key in keys {
                sorted.push((index_key(20, 3, secondary, key), secondary, key));
            }
        }
        sorted.sort();
        assert!(sorted.is_sorted_by_key(|(_, secondary, key)| (*secondary, *key)));
        for other in keys {
            let (from, _) = range(20, Space::Index(3), &Bound::Excluded(other.to_vec()), &Bound::Unbounded);
            let (_, to) = range(20, Space::Index(3), &Bound::Unbounded, &Bound::Included(other.to_vec()));
            for (full, secondary, _) in &sorted {
                assert_eq!(*full >= from, *secondary > other, "{secondary:?} after {other:?}");
                assert_eq!(*full < to, *secondary <= other, "{secondary:?} up to {other:?}");
            }
        }
    }

    #[test]
    fn parts_do_not_overlap() {
        let all = |space| range(20, space, &Bound::Unbounded, &Bound::Unbounded);
        let parts = [all(Space::Documents), all(Space::Index(0)), all(Space::Index(u32::MAX))];
        assert!(parts.windows(2).all(|two| two[0].1 <= two[1].0));
        assert!(parts[2].1 <= prefix(21, Space::Documents));
    }
}
