//! The list of runs of a table, the description of one run, and the keys of its blocks.
//!
//! The list of runs of a table is one value, which changes in the same transaction as the runs that it names. Blocks
//! of a run that no list names are invisible.
//!
//! ```text
//! list         count, then for each run, oldest first:
//! run          id, tier (u8), rows, removals, bytes, blocks, filter pages, first key, last key
//! key          length, bytes
//! ```

use ledger_codec::{Corrupt, Reader, put_prefixed, put_varint};
use smallvec::SmallVec;

use super::row::{KeyBytes, SHORT_KEY_BYTES, varint_u32};

/// The description of a run in its table's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunMeta {
    /// The id of the run, unique in the file.
    pub(crate) id: u64,
    /// Number of times that its rows were merged.
    pub(crate) tier: u8,
    /// Number of rows, at least one.
    pub(crate) rows: u64,
    /// Number of rows that are removals.
    pub(crate) removals: u64,
    /// Total size of its blocks in bytes.
    pub(crate) bytes: u64,
    /// Number of blocks.
    pub(crate) blocks: u64,
    /// Number of filter pages; 0 if it has no filter.
    pub(crate) filter_pages: u32,
    /// The key of its first row.
    pub(crate) first: KeyBytes,
    /// The key of its last row.
    pub(crate) last: KeyBytes,
}

/// Encodes a list of runs.
pub(super) fn encode_list(runs: &[RunMeta], out: &mut Vec<u8>) {
    put_varint(out, runs.len() as u64);
    for run in runs {
        put_varint(out, run.id);
        out.push(run.tier);
        for number in [run.rows, run.removals, run.bytes, run.blocks, u64::from(run.filter_pages)] {
            put_varint(out, number);
        }
        for key in [&run.first, &run.last] {
            put_prefixed(out, key.as_slice());
        }
    }
}

/// Decodes a list of runs.
///
/// # Errors
///
/// [`Corrupt`] if the bytes are not a list.
pub(super) fn decode_list(bytes: &[u8]) -> Result<Vec<RunMeta>, Corrupt> {
    let mut reader = Reader::new(bytes);
    let count = reader.varint()?;
    let mut runs = Vec::new();
    for _ in 0..count {
        let id = reader.varint()?;
        let tier = reader.u8()?;
        let (rows, removals) = (reader.varint()?, reader.varint()?);
        let (bytes, blocks) = (reader.varint()?, reader.varint()?);
        let filter_pages = varint_u32(&mut reader)?;
        let mut key = || KeyBytes::from_slice(reader.prefixed()?);
        let (first, last) = (key()?, key()?);
        runs.push(RunMeta { id, tier, rows, removals, bytes, blocks, filter_pages, first, last });
    }
    if reader.is_empty() { Ok(runs) } else { Err(Corrupt { what: "a list of runs goes on after its end" }) }
}

/// The key under which a block is stored: the run, then the key of its first row.
#[derive(Clone)]
pub(super) struct BlockKey(SmallVec<[u8; 8 + SHORT_KEY_BYTES]>);

impl BlockKey {
    pub(super) fn new(run: u64, first: &KeyBytes) -> Self {
        let mut bytes = SmallVec::from_slice(&run.to_be_bytes());
        bytes.extend_from_slice(first.as_slice());
        Self(bytes)
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// Returns the key of the first row within the key of a stored block.
    pub(super) fn first_of(stored: &[u8]) -> &[u8] {
        stored.get(8..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_written_and_any_cut_is_an_error() {
        let key = |byte: u8, length: usize| KeyBytes::from_slice(&vec![byte; length]).unwrap();
        let run = |id: u64| RunMeta {
            id,
            tier: 3,
            rows: 1 << 40,
            removals: 1 << 20,
            bytes: 1 << 30,
            blocks: id * 7,
            filter_pages: 5,
            first: key(0, 12),
            last: key(255, 10 * SHORT_KEY_BYTES),
        };
        let runs = [run(1), run(2), run(u64::MAX / 7)];
        let mut bytes = Vec::new();
        encode_list(&runs, &mut bytes);
        assert_eq!(decode_list(&bytes).unwrap(), runs);
        for length in 0..bytes.len() {
            assert!(decode_list(&bytes[..length]).is_err());
        }
        bytes.push(0);
        assert!(decode_list(&bytes).is_err());
    }
}
