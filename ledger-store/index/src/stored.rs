//! Stored values: the checksum at the end of each value, and the proof that a value is absent.

use std::cmp::Ordering;
use std::ops::Bound;

use redb::{AccessGuard, ReadOnlyTable, ReadableTable, ReadableTableMetadata, TableDefinition};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::error::{IndexError, catch_redb_panic, storage};
use super::order::Direction;

/// Size of the checksum at the end of every stored value, in bytes.
pub(crate) const CHECKSUM_BYTES: usize = 8;

pub(super) type Bytes = &'static [u8];
pub(super) type RawTable = ReadOnlyTable<Bytes, Bytes>;
pub(super) type RawTableMut<'txn> = redb::Table<'txn, Bytes, Bytes>;
pub(super) type RawRange<'a> = redb::Range<'a, Bytes, Bytes>;
/// A key and the stored bytes of its value.
pub(super) type RawEntry<'a> = (AccessGuard<'a, Bytes>, AccessGuard<'a, Bytes>);

pub(super) fn definition(name: &str) -> TableDefinition<'_, Bytes, Bytes> {
    TableDefinition::new(name)
}

/// Returns the checksum with which a value is stored.
pub(super) fn checksum(table: &str, key: &[u8], value: &[u8]) -> [u8; CHECKSUM_BYTES] {
    // Table and key seed the hash of the value, so that a value under a wrong key is noticed as well.
    let place = xxh3_64_with_seed(key, xxh3_64_with_seed(table.as_bytes(), 0));
    xxh3_64_with_seed(value, place).to_le_bytes()
}

/// Returns the value within stored bytes, after verifying its checksum.
pub(super) fn verified<'a>(table: &str, key: &[u8], stored: &'a [u8]) -> Result<&'a [u8], IndexError> {
    let Some((value, sum)) = stored.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(IndexError::damaged(table, "a value is too short for its checksum"));
    };
    if checksum(table, key, value) != *sum {
        return Err(IndexError::damaged(table, "the checksum of a value is wrong"));
    }
    Ok(value)
}

/// Writes a value and its checksum into a buffer, replacing its content.
pub(super) fn sealed(table: &str, key: &[u8], value: &[u8], buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.extend_from_slice(value);
    buffer.extend_from_slice(&checksum(table, key, value));
}

/// A stored value whose checksum was verified.
struct Verified<'a>(AccessGuard<'a, Bytes>);

impl Verified<'_> {
    fn value(&self) -> &[u8] {
        let stored = self.0.value();
        &stored[..stored.len() - CHECKSUM_BYTES]
    }
}

/// Passes the verified value of `key` to `use_value`. If there is none, the neighbouring entries prove it.
pub(super) fn read<T>(
    table: &RawTable,
    name: &str,
    key: &[u8],
    use_value: impl FnOnce(&[u8]) -> Result<T, IndexError>,
) -> Result<Option<T>, IndexError> {
    let Some(found) = find(table, name, key)? else { return Ok(None) };
    catch_redb_panic("reading a value", || use_value(found.value()).map(Some))
}

// The functions below are not generic, so that each crate that reads rows of some type does not compile the trees of
// redb again.

fn find(table: &RawTable, name: &str, key: &[u8]) -> Result<Option<Verified<'static>>, IndexError> {
    catch_redb_panic("reading a value", || match table.get(key).map_err(storage)? {
        Some(stored) => {
            verified(name, key, stored.value())?;
            Ok(Some(Verified(stored)))
        }
        None => check_gap(table, name, table.lower_bound(Bound::Included(key)), |stored| stored.cmp(key))
            .map(|_| None),
    })
}

/// Returns the last entry at or before `key`, if its key begins with `prefix`.
pub(super) fn entry_at_or_before<'a>(
    table: &'a RawTable,
    key: &[u8],
    prefix: &[u8],
) -> Result<Option<RawEntry<'a>>, IndexError> {
    catch_redb_panic("reading a block", || {
        let mut cursor = table.upper_bound(Bound::Included(key)).map_err(storage)?;
        let entry = cursor.prev().map_err(storage)?;
        Ok(entry.filter(|(found, _)| found.value().starts_with(prefix)))
    })
}

/// Returns the entries from one key to another, both inclusive.
pub(super) fn entries(table: &RawTable, from: &[u8], to: &[u8]) -> Result<RawRange<'static>, IndexError> {
    catch_redb_panic("reading blocks", || table.range::<&[u8]>(from..=to).map_err(storage))
}

/// Takes the first remaining entry of a range, or the last one if the direction is descending.
pub(super) fn take_entry<'a>(
    range: &mut RawRange<'a>,
    direction: Direction,
) -> Result<Option<RawEntry<'a>>, IndexError> {
    catch_redb_panic("reading a block", || {
        let entry = match direction {
            Direction::Ascending => range.next(),
            Direction::Descending => range.next_back(),
        };
        entry.transpose().map_err(storage)
    })
}

/// The keys before and after a gap.
pub(super) type GapNeighbours = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Proves that no entry is missing at the gap of a cursor: the entries on both sides are intact, and their keys are on
/// the correct sides. `side` returns on which side a key belongs, and never `Equal`. Returns the two keys.
///
/// A binary search that meets one changed key ends next to that key, in a leaf as in a branch. So a changed key cannot
/// hide an entry without being examined here.
pub(super) fn check_gap(
    table: &RawTable,
    name: &str,
    cursor: Result<redb::Cursor<'_, Bytes, Bytes>, redb::StorageError>,
    side: impl Fn(&[u8]) -> Ordering,
) -> Result<GapNeighbours, IndexError> {
    let mut cursor = cursor.map_err(storage)?;
    let before = cursor.peek_prev().map_err(storage)?;
    let after = cursor.peek_next().map_err(storage)?;
    if before.is_none() && after.is_none() && table.len().map_err(storage)? > 0 {
        return Err(IndexError::damaged(name, "the rows are missing"));
    }
    let check = |entry: Option<(redb::AccessGuard<'_, Bytes>, redb::AccessGuard<'_, Bytes>)>, expected| {
        let Some((key, stored)) = entry else { return Ok(None) };
        let key = key.value();
        verified(name, key, stored.value())?;
        if side(key) != expected {
            return Err(IndexError::damaged(name, "keys do not ascend"));
        }
        Ok(Some(key.to_vec()))
    };
    Ok((check(before, Ordering::Less)?, check(after, Ordering::Greater)?))
}

/// Returns a table if it has as many rows as were counted at its commit.
pub(super) fn counted(table: RawTable, name: &str, counted: Option<u64>) -> Result<RawTable, IndexError> {
    let rows = catch_redb_panic("counting rows", || table.len().map_err(storage))?;
    if counted == Some(rows) {
        Ok(table)
    } else {
        Err(IndexError::damaged(name, "it has lost rows, or has others"))
    }
}
