//! Unique keys and other exact lookups by fingerprint.
//!
//! ```text
//! space        varint  difference from the row before
//! fingerprint  varint  difference from the row before if the space is the same, else whole
//! value        varint  difference from the row before if the fingerprint is the same too, else whole
//! ```

use ledger_codec::{Corrupt, Output, Reader};

use crate::row::{KeyBytes, Row, increase, joined, key_parts, ledger_of_space};

/// Maps the fingerprint of a text to an item of a ledger.
///
/// Fingerprints collide, so the item is only a candidate, and its text must be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// The ledger, shifted left by 8, and the kind of key.
    pub space: u64,
    /// The keyed hash of the text.
    pub fingerprint: u64,
    /// The number or position of the candidate.
    pub value: u64,
}

impl Row for KeyRow {
    type Key = (u64, u64, u64);
    const TABLE: u8 = 2;
    const TABLE_NAME: &'static str = "runs.keys";

    fn first_key() -> Self::Key {
        (0, 0, 0)
    }

    fn last_key() -> Self::Key {
        (u64::MAX, u64::MAX, u64::MAX)
    }

    #[inline]
    fn key(&self) -> Self::Key {
        (self.space, self.fingerprint, self.value)
    }

    #[inline]
    fn spread(key: &Self::Key) -> Option<(u64, u64)> {
        Some((key.0, key.1))
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
        let [space, fingerprint, value] = key_parts(bytes);
        (space, fingerprint, value)
    }

    fn encode(&self, previous: Option<&Self>, out: &mut Output) {
        let before = previous.map_or((0, 0, 0), Row::key);
        out.put_varint(self.space.wrapping_sub(before.0));
        let fingerprint_before = if self.space == before.0 { before.1 } else { 0 };
        out.put_varint(self.fingerprint.wrapping_sub(fingerprint_before));
        let same = self.space == before.0 && self.fingerprint == before.1;
        out.put_varint(self.value.wrapping_sub(if same { before.2 } else { 0 }));
    }

    fn decode(previous: Option<&Self>, reader: &mut Reader<'_>) -> Result<Self, Corrupt> {
        let before = previous.map_or((0, 0, 0), Row::key);
        let space = increase(reader, before.0)?;
        let fingerprint = increase(reader, if space == before.0 { before.1 } else { 0 })?;
        let same = space == before.0 && fingerprint == before.1;
        let value = increase(reader, if same { before.2 } else { 0 })?;
        Ok(Self { space, fingerprint, value })
    }

    fn probe_key(key: &Self::Key) -> Option<(u64, u64)> {
        Some((key.0, key.1))
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
            let mut rows: Vec<KeyRow> = (0..300)
                .map(|_| KeyRow {
                    space: rng.below(4) << 40,
                    fingerprint: rng.any() << rng.below(64),
                    value: rng.below(8),
                })
                .collect();
            rows.push(KeyRow { space: u64::MAX, fingerprint: u64::MAX, value: u64::MAX });
            rows.sort_by_key(Row::key);
            rows.dedup();
            check_coding(&rows);
        }
    }
}
