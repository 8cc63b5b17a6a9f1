//! Rows of the index: a sort key, a delta coding, and how rows of different ages relate.

use std::fmt::Debug;
use std::sync::Arc;

use ledger_codec::{Corrupt, Output, Reader};

/// The greatest length in bytes of a key of any table.
pub(crate) const KEY_BYTES_MAX: usize = 32;

/// A row of one table of the index.
///
/// The rows of a source (a piece in memory, or a run on disk) ascend strictly
/// by [`key`](Self::key), and no two sources of a table hold the same key.
pub trait Row: Clone + Debug + Send + Sync + 'static {
    /// The sort key.
    type Key: Ord + Copy + Debug + Send + Sync + 'static;

    /// The table's number: its place in [`TABLES`](super::rows::TABLES).
    const TABLE: u8;
    /// The length of a key in bytes, at most `KEY_BYTES_MAX`.
    const KEY_BYTES: usize;
    /// Whether rows may make others void; see [`supersedes`](Self::supersedes).
    const SUPERSEDES: bool = false;
    /// Whether rows depend on those before them; see [`link`](Self::link).
    const LINKED: bool = false;
    /// No key is less.
    const FIRST: Self::Key;
    /// No key is greater.
    const LAST: Self::Key;

    /// The row's key.
    fn key(&self) -> Self::Key;

    /// The ledger that rows of this key are of.
    fn ledger_of(key: &Self::Key) -> u32;

    /// No key of a ledger is less.
    fn first_of(ledger: u32) -> Self::Key;

    /// A number that ascends with the key, so that most keys are compared at one stroke. Different keys may have one.
    fn rank(key: &Self::Key) -> u128;

    /// Writes `key` to `out`, which is [`KEY_BYTES`](Self::KEY_BYTES) long,
    /// such that bytes compare as keys do.
    fn put_key(key: &Self::Key, out: &mut [u8]);

    /// Reads what [`put_key`](Self::put_key) wrote; of other bytes, some key.
    fn read_key(bytes: &[u8]) -> Self::Key;

    /// Appends the row, as a difference to the row before it in the block, to an output that made room.
    fn encode(&self, previous: Option<&Self>, out: &mut Output);

    /// Reads a row that was encoded with the same `previous`.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if the bytes are not such a row.
    fn decode(previous: Option<&Self>, reader: &mut Reader<'_>) -> Result<Self, Corrupt>;

    /// Computes what depends on the rows before it in the same source.
    ///
    /// Called in order when a piece is sealed or merged and before rows of several sources are written
    /// as one run, if the table is [`LINKED`](Self::LINKED).
    fn link(&mut self, _previous: Option<&Self>) {}

    /// The spread of the rows of the table: a group, and a word that ascends with the key within the group.
    /// None: nothing is known.
    fn spread(_key: &Self::Key) -> Option<(u64, u64)> {
        None
    }

    /// The part of the key that the table's filters know; none: the table has no filters.
    ///
    /// Rows that agree in it stand next to each other, and it ascends with the key.
    fn probe_key(_key: &Self::Key) -> Option<(u64, u64)> {
        None
    }

    /// Whether both keys are of a sequence that only ever grows at its end,
    /// so that a newer source holds only later keys of it than an older one.
    fn same_sequence(_one: &Self::Key, _other: &Self::Key) -> bool {
        false
    }

    /// Whether this row, which follows `older` in key order, makes it void.
    ///
    /// Asked only of tables with [`SUPERSEDES`](Self::SUPERSEDES).
    fn supersedes(&self, _older: &Self) -> bool {
        false
    }

    /// Whether the row only records that what it superseded is gone.
    fn is_removal(&self) -> bool {
        false
    }

    /// Bytes that the row holds on the heap, beyond its own size.
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// A key in its order-preserving bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyBytes {
    bytes: [u8; KEY_BYTES_MAX],
    length: u8,
}

impl KeyBytes {
    /// The bytes of a key of `R`.
    pub(crate) fn of<R: Row>(key: &R::Key) -> Self {
        const { assert!(R::KEY_BYTES <= KEY_BYTES_MAX) };
        let mut bytes = [0; KEY_BYTES_MAX];
        R::put_key(key, &mut bytes[..R::KEY_BYTES]);
        Self { bytes, length: R::KEY_BYTES as u8 }
    }

    /// A key from stored bytes.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if there are more than [`KEY_BYTES_MAX`].
    pub(crate) fn from_slice(slice: &[u8]) -> Result<Self, Corrupt> {
        let mut bytes = [0; KEY_BYTES_MAX];
        bytes.get_mut(..slice.len()).ok_or(Corrupt { what: "a key is too long" })?.copy_from_slice(slice);
        Ok(Self { bytes, length: slice.len() as u8 })
    }

    /// The bytes.
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl Debug for KeyBytes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_slice().iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// Writes integers big-endian, one after the other, into a key.
pub(crate) fn put_key_parts(out: &mut [u8], parts: &[u64]) {
    for (place, part) in out.chunks_exact_mut(8).zip(parts) {
        place.copy_from_slice(&part.to_be_bytes());
    }
}

/// Reads integers written by [`put_key_parts`]; those that are not there are 0.
pub(crate) fn key_parts<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut parts = [0; N];
    for (part, bytes) in parts.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *part = u64::from_be_bytes(*bytes);
    }
    parts
}

/// Reads a ledger and the integers behind it, as [`key_parts`] does.
pub(crate) fn ledger_key_parts<const N: usize>(bytes: &[u8]) -> (u32, [u64; N]) {
    match bytes.split_first_chunk::<4>() {
        Some((ledger, rest)) => (u32::from_be_bytes(*ledger), key_parts(rest)),
        None => (0, [0; N]),
    }
}

/// One number of two, of which the first weighs more.
#[inline]
pub(crate) fn joined(high: u64, low: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

/// The same where the second is small: the number is then shorter, and above 2^32 the second is as if it were that.
#[inline]
pub(crate) fn joined_short(high: u64, low: u64) -> u128 {
    u128::from(high) << 32 | u128::from(low.min(u32::MAX.into()))
}

/// A signed integer as an unsigned one of the same order.
#[inline]
pub(crate) fn ordered(value: i64) -> u64 {
    value.cast_unsigned() ^ (1 << 63)
}

/// Undoes [`ordered`].
#[inline]
pub(crate) fn unordered(value: u64) -> i64 {
    (value ^ (1 << 63)).cast_signed()
}

/// Appends the difference of two integers, which wraps and may be negative; small ones are short.
#[inline]
pub(crate) fn put_difference(out: &mut Output, value: u64, previous: u64) {
    let difference = value.wrapping_sub(previous).cast_signed();
    out.put_varint(((difference << 1) ^ (difference >> 63)).cast_unsigned());
}

/// Reads an integer written by [`put_difference`] with the same `previous`.
#[inline]
pub(crate) fn difference(reader: &mut Reader<'_>, previous: u64) -> Result<u64, Corrupt> {
    let coded = reader.varint()?;
    let difference = (coded >> 1) ^ (coded & 1).wrapping_neg();
    Ok(previous.wrapping_add(difference))
}

/// Reads an increase written as a plain varint.
#[inline]
pub(crate) fn increase(reader: &mut Reader<'_>, previous: u64) -> Result<u64, Corrupt> {
    previous.checked_add(reader.varint()?).ok_or(Corrupt { what: "a number exceeds 64 bits" })
}

/// Reads a varint that must fit 32 bits.
#[inline]
pub(crate) fn varint_u32(reader: &mut Reader<'_>) -> Result<u32, Corrupt> {
    u32::try_from(reader.varint()?).map_err(|_| Corrupt { what: "a number exceeds 32 bits" })
}

/// Sorted rows in memory, immutable and shared: the vector in which they were gathered, so that they are not
/// copied.
pub type PieceRows<R> = Arc<Vec<R>>;

/// Makes a piece of sorted rows: links them, and fixes them for readers.
///
/// # Panics
///
/// If the rows do not ascend strictly by key: that is a defect of the caller.
pub fn seal_piece<R: Row>(mut rows: Vec<R>) -> PieceRows<R> {
    for index in 1..rows.len() {
        assert!(rows[index - 1].key() < rows[index].key(), "rows of a piece ascend by key");
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

/// Copies of rows that come in order, with [`Row::link`] called on each.
pub fn linked<'a, R: Row>(rows: impl Iterator<Item = &'a R>) -> impl Iterator<Item = R> {
    let mut previous: Option<R> = None;
    rows.map(move |row| {
        let mut row = row.clone();
        row.link(previous.as_ref());
        previous = Some(row.clone());
        row
    })
}

/// Bytes that a piece occupies in memory.
pub fn piece_bytes<R: Row>(piece: &[R]) -> usize {
    size_of_val(piece) + piece.iter().map(Row::heap_bytes).sum::<usize>()
}
