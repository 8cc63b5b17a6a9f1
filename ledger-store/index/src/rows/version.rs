//! All versions of small documents, such as metadata.
//!
//! ```text
//! flags        u8      1 same space as the row before   2 same id too
//! [space       varint  difference from the row before]
//! [id          varint  increase if the space is the same, else whole]
//! position     varint  increase if the id is the same, else zigzag difference
//! length       varint, then the bytes
//! ```

use ledger_codec::{Corrupt, Output, Reader};

use crate::row::{KeyBytes, Row, difference, increase, joined, key_parts, ledger_of_space, put_difference};

/// The state of a document from a journal position on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRow {
    /// The ledger, shifted left by 8, and the kind of document.
    pub space: u64,
    /// The id of the document.
    pub id: u64,
    /// The journal position that created this version.
    pub position: u64,
    /// The version's bytes.
    pub bytes: Box<[u8]>,
}

const SAME_SPACE: u8 = 1;
const SAME_ID: u8 = 2;

impl Row for VersionRow {
    type Key = (u64, u64, u64);
    const TABLE: u8 = 6;
    const TABLE_NAME: &'static str = "runs.versions";

    fn first_key() -> Self::Key {
        (0, 0, 0)
    }

    fn last_key() -> Self::Key {
        (u64::MAX, u64::MAX, u64::MAX)
    }

    #[inline]
    fn key(&self) -> Self::Key {
        (self.space, self.id, self.position)
    }

    fn ledger_of(key: &Self::Key) -> u32 {
        ledger_of_space(key.0)
    }

    fn first_of(ledger: u32) -> Self::Key {
        (u64::from(ledger) << 8, 0, 0)
    }

    #[inline]
    fn rank(key: &Self::Key) -> u128 {
        joined(key.0, key.1)
    }

    fn put_key(key: &Self::Key, out: &mut KeyBytes) {
        out.put_parts(&[key.0, key.1, key.2]);
    }

    fn read_key(bytes: &[u8]) -> Self::Key {
        let [space, id, position] = key_parts(bytes);
        (space, id, position)
    }

    fn encode(&self, previous: Option<&Self>, out: &mut Output) {
        let before = previous.map_or((0, 0, 0), Row::key);
        if previous.is_some() && self.space == before.0 && self.id == before.1 {
            out.put_byte(SAME_SPACE | SAME_ID);
            out.put_varint(self.position.wrapping_sub(before.2));
        } else if previous.is_some() && self.space == before.0 {
            out.put_byte(SAME_SPACE);
            out.put_varint(self.id.wrapping_sub(before.1));
            put_difference(out, self.position, before.2);
        } else {
            out.put_byte(0);
            out.put_varint(self.space.wrapping_sub(before.0));
            out.put_varint(self.id);
            put_difference(out, self.position, before.2);
        }
        out.put_varint(self.bytes.len() as u64);
        out.put_bytes(&self.bytes);
    }

    fn decode(previous: Option<&Self>, reader: &mut Reader<'_>) -> Result<Self, Corrupt> {
        let flags = reader.u8()?;
        let before = match previous {
            Some(previous) => previous.key(),
            None if flags == 0 => (0, 0, 0),
            None => return Err(Corrupt { what: "the first version of a block follows another" }),
        };
        let (space, id, position) = match flags {
            0 => (increase(reader, before.0)?, reader.varint()?, difference(reader, before.2)?),
            SAME_SPACE => (before.0, increase(reader, before.1)?, difference(reader, before.2)?),
            3 => (before.0, before.1, increase(reader, before.2)?),
            _ => return Err(Corrupt { what: "a version has unknown flags" }),
        };
        let length = reader.varint()?;
        let length = usize::try_from(length).map_err(|_| Corrupt { what: "a version is too long" })?;
        Ok(Self { space, id, position, bytes: reader.bytes(length)?.into() })
    }

    fn probe_key(key: &Self::Key) -> Option<(u64, u64)> {
        Some((key.0, key.1))
    }

    fn same_sequence(one: &Self::Key, other: &Self::Key) -> bool {
        (one.0, one.1) == (other.0, other.1)
    }

    fn heap_bytes(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::tests::{Rng, check_coding};

    #[test]
    fn rows_are_read_as_written() {
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            let mut rows: Vec<VersionRow> = (0..200)
                .map(|_| VersionRow {
                    space: rng.below(3),
                    id: rng.below(40),
                    position: rng.below(1 << 40),
                    bytes: (0..rng.below(200)).map(|_| rng.any() as u8).collect(),
                })
                .collect();
            rows.sort_by_key(Row::key);
            rows.dedup_by_key(|row| row.key());
            check_coding(&rows);
        }
    }
}
