//! The timeline of a ledger: for each log its position in the journal, and a date that never decreases from log to log.
//!
//! ```text
//! step         varint  twice the increase of the log id if the row before is of the same ledger and
//!                      the increase fits 63 bits; else 1, then the ledger and the log id as varints
//! position     varint  zigzag difference from the row before
//! date         varint  zigzag difference from the row before
//! ```

use ledger_codec::{Corrupt, Output, Reader};

use crate::row::{KeyBytes, Row, difference, joined_short, ledger_key_parts, put_difference};

use super::{put_step, read_step};

/// The position of a log, and the date that the ledger had reached with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRow {
    /// The ledger.
    pub ledger: u32,
    /// The log's id in the ledger.
    pub log: u64,
    /// The log's position in the journal.
    pub position: u64,
    /// The latest date of the ledger's logs up to this one, in microseconds since 1970.
    pub date: i64,
}

impl Row for LogRow {
    type Key = (u32, u64);
    const TABLE: u8 = 4;
    const TABLE_NAME: &'static str = "runs.logs";

    fn first_key() -> Self::Key {
        (0, 0)
    }

    fn last_key() -> Self::Key {
        (u32::MAX, u64::MAX)
    }

    #[inline]
    fn key(&self) -> Self::Key {
        (self.ledger, self.log)
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
        let (ledger, [log]) = ledger_key_parts(bytes);
        (ledger, log)
    }

    fn encode(&self, previous: Option<&Self>, out: &mut Output) {
        put_step(out, self.key(), previous.map(Row::key));
        put_difference(out, self.position, previous.map_or(0, |before| before.position));
        put_difference(
            out,
            self.date.cast_unsigned(),
            previous.map_or(0, |before| before.date.cast_unsigned()),
        );
    }

    fn decode(previous: Option<&Self>, reader: &mut Reader<'_>) -> Result<Self, Corrupt> {
        let (ledger, log) = read_step(reader, previous.map(Row::key))?;
        let position = difference(reader, previous.map_or(0, |before| before.position))?;
        let date = difference(reader, previous.map_or(0, |before| before.date.cast_unsigned()))?;
        Ok(Self { ledger, log, position, date: date.cast_signed() })
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
            let mut rows: Vec<LogRow> = (0..300)
                .map(|_| LogRow {
                    ledger: rng.below(3) as u32,
                    log: rng.any() >> rng.below(64),
                    position: rng.below(1 << 40),
                    date: rng.any().cast_signed(),
                })
                .collect();
            rows.push(LogRow { ledger: 3, log: 0, position: 0, date: 0 });
            rows.push(LogRow { ledger: 3, log: u64::MAX, position: 0, date: 0 });
            rows.sort_by_key(Row::key);
            rows.dedup_by_key(|row| row.key());
            check_coding(&rows);
        }
    }

    #[test]
    fn usual_rows_are_short() {
        let rows: Vec<LogRow> = (0..1000)
            .map(|number| LogRow {
                ledger: 1,
                log: number,
                position: 10 + 2 * number,
                date: 1_700_000_000_000_000 + number as i64 * 50,
            })
            .collect();
        assert!(check_coding(&rows) < 3100);
    }
}
