//! Stored values: the checksum at the end of each, and the proof that there is none.

use std::cmp::Ordering;
use std::ops::Bound;

use redb::{ReadOnlyTable, ReadableTable, ReadableTableMetadata, TableDefinition};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::error::{IndexError, shield, storage};

/// Bytes of the checksum at the end of every stored value.
pub(crate) const CHECKSUM_BYTES: usize = 8;

pub(super) type Bytes = &'static [u8];
pub(super) type RawTable = ReadOnlyTable<Bytes, Bytes>;
pub(super) type RawTableMut<'txn> = redb::Table<'txn, Bytes, Bytes>;
pub(super) type RawRange<'a> = redb::Range<'a, Bytes, Bytes>;

pub(super) fn definition(name: &str) -> TableDefinition<'_, Bytes, Bytes> {
    TableDefinition::new(name)
}

/// The checksum that a value is stored with.
pub(super) fn checksum(table: &str, key: &[u8], value: &[u8]) -> [u8; CHECKSUM_BYTES] {
    // Where the value stands seeds the hash of the value, so that a value in a wrong place is found too.
    let place = xxh3_64_with_seed(key, xxh3_64_with_seed(table.as_bytes(), 0));
    xxh3_64_with_seed(value, place).to_le_bytes()
}

/// The value within stored bytes, once its checksum is verified.
pub(super) fn verified<'a>(table: &str, key: &[u8], stored: &'a [u8]) -> Result<&'a [u8], IndexError> {
    let Some((value, sum)) = stored.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(IndexError::damaged(table, "a value is too short for its checksum"));
    };
    if checksum(table, key, value) != *sum {
        return Err(IndexError::damaged(table, "the checksum of a value is wrong"));
    }
    Ok(value)
}

/// Puts a value and its checksum into a buffer, in the place of what it holds.
pub(super) fn sealed(table: &str, key: &[u8], value: &[u8], buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.extend_from_slice(value);
    buffer.extend_from_slice(&checksum(table, key, value));
}

/// Lends the checked value of `key` to `use_value`. None is proved by the entries beside its place.
pub(super) fn read<T>(
    table: &RawTable,
    name: &str,
    key: &[u8],
    use_value: impl FnOnce(&[u8]) -> Result<T, IndexError>,
) -> Result<Option<T>, IndexError> {
    shield("reading a value", || match table.get(key).map_err(storage)? {
        Some(stored) => Ok(Some(use_value(verified(name, key, stored.value())?)?)),
        None => check_gap(table, name, table.lower_bound(Bound::Included(key)), |stored| stored.cmp(key))
            .map(|_| None),
    })
}

/// The keys before and after a gap.
pub(super) type Beside = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Proves that no entry is missing at a cursor's gap: the entries on both sides are those that were written, and their
/// keys are on their sides of it. `side` says where a key belongs; none is equal. Returns the two keys.
///
/// A search by halves that meets one changed key ends beside that key, in a leaf as in a branch. So a changed key
/// cannot hide an entry without being looked at here.
pub(super) fn check_gap(
    table: &RawTable,
    name: &str,
    cursor: Result<redb::Cursor<'_, Bytes, Bytes>, redb::StorageError>,
    side: impl Fn(&[u8]) -> Ordering,
) -> Result<Beside, IndexError> {
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

/// A table, if it has as many rows as were counted when it was committed.
pub(super) fn counted(table: RawTable, name: &str, counted: Option<u64>) -> Result<RawTable, IndexError> {
    let rows = shield("counting rows", || table.len().map_err(storage))?;
    if counted == Some(rows) {
        Ok(table)
    } else {
        Err(IndexError::damaged(name, "it has lost rows, or has others"))
    }
}
