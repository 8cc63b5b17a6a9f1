//! The rows of the index: their sort keys, their delta encoding, and how newer rows supersede older ones.

use std::fmt::Debug;
use std::sync::Arc;

use ledger_codec::{Corrupt, Output, Reader};
use smallvec::SmallVec;

/// Maximum size of a key that is stored without an allocation, in bytes. Only keys of documents are longer.
pub(crate) const SHORT_KEY_BYTES: usize = 32;
/// Maximum size of a key of any table, in bytes. Its length takes two bytes in a block.
pub(crate) const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// A row of one table of the index.
///
/// The rows of a source (a memtable or a run) ascend strictly by [`key`](Self::key), and no two sources of a table
/// hold the same key.
pub trait Row: Clone + Debug + Send + Sync + 'static {
    /// The sort key.
    type Key: Ord + Clone + Debug + Send + Sync + 'static;

    /// The number of the table: its place in [`for_each_run_table`](crate::for_each_run_table).
    const TABLE: u8;
    /// The name of the table in the file.
    const TABLE_NAME: &'static str;
    /// True if rows of the table may supersede others. [`supersedes`](Self::supersedes) decides which do.
    const SUPERSEDES: bool = false;
    /// Size of most keys in bytes, or more. A block reserves it for its own key and for that of the next block.
    const KEY_BYTES: usize = SHORT_KEY_BYTES;
    /// True if rows of the table depend on those before them; see [`link`](Self::link).
    const LINKED: bool = false;
    /// True if [`probe_key`](Self::probe_key) ascends with the key.
    const PROBE_KEYS_ASCEND: bool = true;

    /// Returns a key at or before all others.
    fn first_key() -> Self::Key;

    /// Returns a key at or after all others.
    fn last_key() -> Self::Key;

    /// Returns the key of the row.
    fn key(&self) -> Self::Key;

    /// Returns whether the row comes before another one. Does not copy the keys, if that costs anything.
    #[inline]
    fn is_before(&self, other: &Self) -> bool {
        self.key() < other.key()
    }

    /// Returns the ledger that rows with this key belong to, or 0 if they belong to none.
    fn ledger_of(key: &Self::Key) -> u32;

    /// Returns the smallest possible key of a ledger, or the last key if no row belongs to a ledger.
    fn first_of(ledger: u32) -> Self::Key;

    /// Returns a number that ascends with the key, so that one comparison decides most pairs of keys. Different keys
    /// may have the same number.
    fn rank(key: &Self::Key) -> u128;

    /// Returns the [`rank`](Self::rank) of the row's key.
    #[inline]
    fn key_rank(&self) -> u128 {
        Self::rank(&self.key())
    }

    /// Writes `key` to `out`, at most `KEY_BYTES_MAX` bytes that compare like keys.
    fn put_key(key: &Self::Key, out: &mut KeyBytes);

    /// Decodes a key that [`put_key`](Self::put_key) wrote. Other bytes yield some key.
    fn read_key(bytes: &[u8]) -> Self::Key;

    /// Appends the row as a difference from the previous row of the block. The caller has reserved space in the
    /// output.
    fn encode(&self, previous: Option<&Self>, out: &mut Output);

    /// Decodes a row that was encoded with the same `previous`.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if the bytes are not such a row.
    fn decode(previous: Option<&Self>, reader: &mut Reader<'_>) -> Result<Self, Corrupt>;

    /// Computes values that depend on the previous row of the same source.
    ///
    /// If the table is [`LINKED`](Self::LINKED), this is called in order when a memtable is created or merged, and
    /// before rows of several sources are written as one run.
    fn link(&mut self, _previous: Option<&Self>) {}

    /// Returns how the rows of the table are distributed: a group, and a number that ascends with the key within the
    /// group. Returns `None` if that is unknown.
    fn spread(_key: &Self::Key) -> Option<(u64, u64)> {
        None
    }

    /// Returns the part of the key that the table's filters contain, or `None` if the table has no filters.
    ///
    /// Rows with equal parts are adjacent. The part ascends with the key, except where
    /// [`PROBE_KEYS_ASCEND`](Self::PROBE_KEYS_ASCEND) is false.
    fn probe_key(_key: &Self::Key) -> Option<(u64, u64)> {
        None
    }

    /// Returns whether both keys belong to one sequence that only grows at its end, so that a newer source holds only
    /// later keys of it than an older one.
    fn same_sequence(_one: &Self::Key, _other: &Self::Key) -> bool {
        false
    }

    /// Returns whether this row, which follows `older` in key order, supersedes it.
    ///
    /// Only called for tables with [`SUPERSEDES`](Self::SUPERSEDES).
    fn supersedes(&self, _older: &Self) -> bool {
        false
    }

    /// Returns whether the row only records that the superseded one was removed.
    fn is_removal(&self) -> bool {
        false
    }

    /// Returns the number of heap bytes that the row owns, in addition to its own size.
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// A key in its order-preserving encoding. Never empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyBytes(SmallVec<[u8; SHORT_KEY_BYTES]>);

impl KeyBytes {
    /// Encodes a key of `R`.
    pub(crate) fn of<R: Row>(key: &R::Key) -> Self {
        let mut bytes = Self(SmallVec::new());
        R::put_key(key, &mut bytes);
        debug_assert!((1..=KEY_BYTES_MAX).contains(&bytes.0.len()), "the length of a key");
        bytes
    }

    /// Creates a key from stored bytes.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if there are none, or more than [`KEY_BYTES_MAX`].
    pub(crate) fn from_slice(slice: &[u8]) -> Result<Self, Corrupt> {
        if slice.is_empty() || slice.len() > KEY_BYTES_MAX {
            return Err(Corrupt { what: "a key has no possible length" });
        }
        Ok(Self(SmallVec::from_slice(slice)))
    }

    /// Appends bytes.
    #[inline]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Appends integers, big-endian and in sequence.
    #[inline]
    pub(crate) fn put_parts(&mut self, parts: &[u64]) {
        for part in parts {
            self.put(&part.to_be_bytes());
        }
    }

    /// Returns the bytes.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl Debug for KeyBytes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_slice().iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// Reads the integers that [`KeyBytes::put_parts`] wrote. Missing ones are 0.
pub(crate) fn key_parts<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut parts = [0; N];
    for (part, bytes) in parts.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *part = u64::from_be_bytes(*bytes);
    }
    parts
}

/// Reads a ledger and the integers after it, like [`key_parts`].
pub(crate) fn ledger_key_parts<const N: usize>(bytes: &[u8]) -> (u32, [u64; N]) {
    match bytes.split_first_chunk::<4>() {
        Some((ledger, rest)) => (u32::from_be_bytes(*ledger), key_parts(rest)),
        None => (0, [0; N]),
    }
}

/// Combines two numbers into one, of which the first is the more significant.
#[inline]
pub(crate) fn joined(high: u64, low: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

/// The same for a small second number: the result is shorter, and a second number above 2^32 counts as 2^32.
#[inline]
pub(crate) fn joined_short(high: u64, low: u64) -> u128 {
    u128::from(high) << 32 | u128::from(low.min(u32::MAX.into()))
}

/// Returns the ledger of a space, which is in all bits but the lowest eight.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a space has 40 bits")]
pub(crate) const fn ledger_of_space(space: u64) -> u32 {
    (space >> 8) as u32
}

/// Maps a signed integer to an unsigned one with the same order.
#[inline]
pub(crate) fn ordered(value: i64) -> u64 {
    value.cast_unsigned() ^ (1 << 63)
}

/// Reverses [`ordered`].
#[inline]
pub(crate) fn unordered(value: u64) -> i64 {
    (value ^ (1 << 63)).cast_signed()
}

/// Appends the wrapping difference of two integers, which may be negative. Small differences are short.
#[inline]
pub(crate) fn put_difference(out: &mut Output, value: u64, previous: u64) {
    let difference = value.wrapping_sub(previous).cast_signed();
    out.put_varint(((difference << 1) ^ (difference >> 63)).cast_unsigned());
}

/// Reads an integer that [`put_difference`] wrote with the same `previous`.
#[inline]
pub(crate) fn difference(reader: &mut Reader<'_>, previous: u64) -> Result<u64, Corrupt> {
    let coded = reader.varint()?;
    let difference = (coded >> 1) ^ (coded & 1).wrapping_neg();
    Ok(previous.wrapping_add(difference))
}

/// Reads an increase that was written as a plain varint.
#[inline]
pub(crate) fn increase(reader: &mut Reader<'_>, previous: u64) -> Result<u64, Corrupt> {
    previous.checked_add(reader.varint()?).ok_or(Corrupt { what: "a number exceeds 64 bits" })
}

/// Reads a varint that must fit 32 bits.
#[inline]
pub(crate) fn varint_u32(reader: &mut Reader<'_>) -> Result<u32, Corrupt> {
    u32::try_from(reader.varint()?).map_err(|_| Corrupt { what: "a number exceeds 32 bits" })
}

/// The sorted rows of one table in a memtable, immutable and shared. It is the vector in which they were collected, so
/// they are never copied.
pub type MemtableRows<R> = Arc<Vec<R>>;

/// Turns sorted rows into immutable rows of a memtable, after linking them.
///
/// # Panics
///
/// Panics if the rows do not ascend strictly by key, which is a bug of the caller.
pub fn freeze_memtable<R: Row>(mut rows: Vec<R>) -> MemtableRows<R> {
    for index in 1..rows.len() {
        assert!(rows[index - 1].is_before(&rows[index]), "rows of a memtable ascend by key");
    }
    link_all(&mut rows);
    if rows.capacity() > rows.len() + rows.len() / 4 {
        rows.shrink_to_fit();
    }
    Arc::new(rows)
}

/// Calls [`Row::link`] on each row, in order.
pub(crate) fn link_all<R: Row>(rows: &mut [R]) {
    if !R::LINKED {
        return;
    }
    for index in 0..rows.len() {
        let (before, rest) = rows.split_at_mut(index);
        if let Some(row) = rest.first_mut() {
            row.link(before.last());
        }
    }
}

/// Returns copies of rows that come in order, with [`Row::link`] called on each.
pub fn linked<'a, R: Row>(rows: impl Iterator<Item = &'a R>) -> impl Iterator<Item = R> {
    let mut previous: Option<R> = None;
    rows.map(move |row| {
        let mut row = row.clone();
        row.link(previous.as_ref());
        previous = Some(row.clone());
        row
    })
}

/// Returns the memory of a memtable's rows, in bytes.
pub fn memtable_bytes<R: Row>(memtable: &[R]) -> usize {
    size_of_val(memtable) + memtable.iter().map(Row::heap_bytes).sum::<usize>()
}
