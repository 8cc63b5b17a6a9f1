//! Backdated transactions of a ledger, by effective date.
//!
//! ```text
//! step         varint  in the same ledger: twice the increase of the date; in another ledger, or
//!                      if the increase takes 64 bits: 1, then the whole ledger and the whole date
//!                      (in its order-preserving form)
//! transaction  varint  zigzag difference from the row before
//! ```

use ledger_codec::{Corrupt, Output, Reader};

use crate::row::{KeyBytes, Row, difference, joined, ledger_key_parts, ordered, put_difference, unordered};

use super::{put_step, read_step};

/// A transaction whose effective date differs from its insertion date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveRow {
    /// The ledger.
    pub ledger: u32,
    /// The effective date, in microseconds since 1970.
    pub timestamp: i64,
    /// The id of the transaction.
    pub transaction: u64,
}

impl EffectiveRow {
    fn step(&self) -> (u32, u64) {
        (self.ledger, ordered(self.timestamp))
    }
}

impl Row for EffectiveRow {
    type Key = (u32, i64, u64);
    const TABLE: u8 = 7;
    const TABLE_NAME: &'static str = "runs.effective";

    fn first_key() -> Self::Key {
        (0, i64::MIN, 0)
    }

    fn last_key() -> Self::Key {
        (u32::MAX, i64::MAX, u64::MAX)
    }

    #[inline]
    fn key(&self) -> Self::Key {
        (self.ledger, self.timestamp, self.transaction)
    }

    fn ledger_of(key: &Self::Key) -> u32 {
        key.0
    }

    fn first_of(ledger: u32) -> Self::Key {
        (ledger, i64::MIN, 0)
    }

    #[inline]
    fn rank(key: &Self::Key) -> u128 {
        joined(key.0.into(), ordered(key.1))
    }

    fn put_key(key: &Self::Key, out: &mut KeyBytes) {
        out.put(&key.0.to_be_bytes());
        out.put(&ordered(key.1).to_be_bytes());
        out.put(&key.2.to_be_bytes());
    }

    fn read_key(bytes: &[u8]) -> Self::Key {
        let (ledger, [timestamp, transaction]) = ledger_key_parts(bytes);
        (ledger, unordered(timestamp), transaction)
    }

    fn encode(&self, previous: Option<&Self>, out: &mut Output) {
        put_step(out, self.step(), previous.map(Self::step));
        put_difference(out, self.transaction, previous.map_or(0, |before| before.transaction));
    }

    fn decode(previous: Option<&Self>, reader: &mut Reader<'_>) -> Result<Self, Corrupt> {
        let (ledger, timestamp) = read_step(reader, previous.map(Self::step))?;
        let transaction = difference(reader, previous.map_or(0, |before| before.transaction))?;
        Ok(Self { ledger, timestamp: unordered(timestamp), transaction })
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
            let mut rows: Vec<EffectiveRow> = (0..300)
                .map(|_| EffectiveRow {
                    ledger: rng.below(3) as u32,
                    timestamp: rng.any().cast_signed() >> rng.below(64),
                    transaction: rng.below(1 << 33),
                })
                .collect();
            for timestamp in [i64::MIN, 0, i64::MAX] {
                rows.push(EffectiveRow { ledger: 5, timestamp, transaction: u64::MAX });
            }
            rows.sort_by_key(Row::key);
            rows.dedup_by_key(|row| row.key());
            check_coding(&rows);
        }
    }
}
