//! The journal positions and the effective dates of transactions.
//!
//! ```text
//! step         varint  twice the increase of the id if the ledger is the same; else 1,
//!                      then ledger and id whole
//! position     varint  zigzag difference from the row before
//! log          varint  zigzag difference from the row before
//! timestamp    varint  zigzag difference from the row before
//! date         varint  zigzag difference from the timestamp
//! ```

use ledger_codec::{Corrupt, Output, Reader};

use crate::row::{KeyBytes, Row, difference, joined_short, ledger_key_parts, put_difference};

use super::{put_step, read_step};

/// The position and the dates of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionRow {
    /// The ledger.
    pub ledger: u32,
    /// The transaction's id in the ledger.
    pub transaction: u64,
    /// The position in the journal.
    pub position: u64,
    /// The id of its log.
    pub log: u64,
    /// The effective date, in microseconds since 1970.
    pub timestamp: i64,
    /// The insertion date, in microseconds since 1970. Does not decrease with the id.
    pub date: i64,
}

impl Row for TransactionRow {
    type Key = (u32, u64);
    const TABLE: u8 = 5;
    const TABLE_NAME: &'static str = "runs.transactions";

    fn first_key() -> Self::Key {
        (0, 0)
    }

    fn last_key() -> Self::Key {
        (u32::MAX, u64::MAX)
    }

    #[inline]
    fn key(&self) -> Self::Key {
        (self.ledger, self.transaction)
    }

    fn ledger_of(key: &Self::Key) -> u32 {
        key.0
    }

    fn first_of(ledger: u32) -> Self::Key {
        (ledger, 0)
    }

    #[inline]
    fn rank(key: &Self::Key) -> u128 {
        joined_short(key.0.into(), key.1)
    }

    fn put_key(key: &Self::Key, out: &mut KeyBytes) {
        out.put(&key.0.to_be_bytes());
        out.put(&key.1.to_be_bytes());
    }

    fn read_key(bytes: &[u8]) -> Self::Key {
        let (ledger, [transaction]) = ledger_key_parts(bytes);
        (ledger, transaction)
    }

    fn encode(&self, previous: Option<&Self>, out: &mut Output) {
        put_step(out, self.key(), previous.map(Row::key));
        put_difference(out, self.position, previous.map_or(0, |before| before.position));
        put_difference(out, self.log, previous.map_or(0, |before| before.log));
        let before = previous.map_or(0, |before| before.timestamp.cast_unsigned());
        put_difference(out, self.timestamp.cast_unsigned(), before);
        put_difference(out, self.date.cast_unsigned(), self.timestamp.cast_unsigned());
    }

    fn decode(previous: Option<&Self>, reader: &mut Reader<'_>) -> Result<Self, Corrupt> {
        let (ledger, transaction) = read_step(reader, previous.map(Row::key))?;
        let position = difference(reader, previous.map_or(0, |before| before.position))?;
        let log = difference(reader, previous.map_or(0, |before| before.log))?;
        let timestamp = difference(reader, previous.map_or(0, |before| before.timestamp.cast_unsigned()))?;
        let date = difference(reader, timestamp)?;
        Ok(Self {
            ledger,
            transaction,
            position,
            log,
            timestamp: timestamp.cast_signed(),
            date: date.cast_signed(),
        })
    }

    fn same_sequence(one: &Self::Key, other: &Self::Key) -> bool {
        one.0 == other.0
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
            let mut rows: Vec<TransactionRow> = (0..300)
                .map(|_| TransactionRow {
                    ledger: rng.below(3) as u32,
                    transaction: rng.any() >> rng.below(64),
                    position: rng.below(1 << 40),
                    log: rng.any(),
                    timestamp: rng.any().cast_signed(),
                    date: rng.any().cast_signed(),
                })
                .collect();
            rows.sort_by_key(Row::key);
            rows.dedup_by_key(|row| row.key());
            check_coding(&rows);
        }
    }
}
