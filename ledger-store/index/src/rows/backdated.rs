//! Backdated transactions of a holding, by effective date. "Backdated" in the code means backdated or postdated.
//!
//! ```text
//! flags        u8      1 same holding as the row before   2 input moved   4 output moved
//!                      8 local sums are stored (else: those of the row before, plus this move)
//! holding      varint  difference from the row before, if not the same (0 before a block's start)
//! timestamp    varint  increase if the holding is the same, else zigzag difference
//! transaction  varint  zigzag difference from the row before
//! [input] [output]     of this transaction
//! [input, output, count of the source]
//! ```

use ledger_codec::{Corrupt, Output, Reader};

use crate::row::{
    KeyBytes, Row, difference, joined, key_parts, ordered, put_difference, unordered, varint_u32,
};

use super::Quantity;

/// The effect of a backdated transaction on a holding.
///
/// Its sums are *local to the source* (memtable or run) that holds the row, so a backdated row does not change the
/// sums in older sources. The sum over a table is the sum over its sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackdatedRow {
    /// The ledger, shifted left by 32, and the number of the holding in it.
    pub holding: u64,
    /// The effective date, in microseconds since 1970.
    pub timestamp: i64,
    /// The id of the transaction.
    pub transaction: u64,
    /// The input by this transaction.
    pub input: Quantity,
    /// The output by this transaction.
    pub output: Quantity,
    /// The input of the holding's rows in this source, up to and including this one.
    pub run_input: Quantity,
    /// The output of the holding's rows in this source, up to and including this one.
    pub run_output: Quantity,
    /// Number of the holding's rows in this source, up to and including this one.
    pub run_count: u32,
}

const SAME_HOLDING: u8 = 1;
const INPUT: u8 = 2;
const OUTPUT: u8 = 4;
const SUMS_HERE: u8 = 8;

impl BackdatedRow {
    /// Creates a row whose sums cover only itself. Creating a memtable or writing a run adds the rows before it.
    pub fn new(holding: u64, timestamp: i64, transaction: u64, input: Quantity, output: Quantity) -> Self {
        let (run_input, run_output) = (input.clone(), output.clone());
        Self { holding, timestamp, transaction, input, output, run_input, run_output, run_count: 1 }
    }

    /// Returns the local sums that follow from the previous row, if the count does not overflow.
    fn sums_after(&self, previous: Option<&Self>) -> Option<(Quantity, Quantity, u32)> {
        Some(match previous {
            Some(before) if before.holding == self.holding => (
                before.run_input.plus(&self.input),
                before.run_output.plus(&self.output),
                before.run_count.checked_add(1)?,
            ),
            _ => (self.input.clone(), self.output.clone(), 1),
        })
    }
}

impl Row for BackdatedRow {
    type Key = (u64, i64, u64);
    const TABLE: u8 = 1;
    const TABLE_NAME: &'static str = "runs.displaced";
    const LINKED: bool = true;

    fn first_key() -> Self::Key {
        (0, i64::MIN, 0)
    }

    fn last_key() -> Self::Key {
        (u64::MAX, i64::MAX, u64::MAX)
    }

    #[inline]
    fn key(&self) -> Self::Key {
        (self.holding, self.timestamp, self.transaction)
    }

    fn ledger_of(key: &Self::Key) -> u32 {
        (key.0 >> 32) as u32
    }

    fn first_of(ledger: u32) -> Self::Key {
        (u64::from(ledger) << 32, i64::MIN, 0)
    }

    #[inline]
    fn rank(key: &Self::Key) -> u128 {
        joined(key.0, ordered(key.1))
    }

    fn put_key(key: &Self::Key, out: &mut KeyBytes) {
        out.put_parts(&[key.0, ordered(key.1), key.2]);
    }

    fn read_key(bytes: &[u8]) -> Self::Key {
        let [holding, timestamp, transaction] = key_parts(bytes);
        (holding, unordered(timestamp), transaction)
    }

    fn encode(&self, previous: Option<&Self>, out: &mut Output) {
        let place = out.len();
        out.put_byte(0);
        let mut flags = 0;
        let timestamp = self.timestamp.cast_unsigned();
        let before = previous.map_or(0, |before| before.timestamp.cast_unsigned());
        match previous {
            Some(previous) if previous.holding == self.holding && previous.timestamp <= self.timestamp => {
                flags |= SAME_HOLDING;
                out.put_varint(timestamp.wrapping_sub(before));
            }
            _ => {
                out.put_varint(self.holding.wrapping_sub(previous.map_or(0, |before| before.holding)));
                put_difference(out, timestamp, before);
            }
        }
        put_difference(out, self.transaction, previous.map_or(0, |before| before.transaction));
        if !self.input.is_zero() {
            flags |= INPUT;
            self.input.put(out);
        }
        if !self.output.is_zero() {
            flags |= OUTPUT;
            self.output.put(out);
        }
        let follows = self.sums_after(previous).is_some_and(|(input, output, count)| {
            input == self.run_input && output == self.run_output && count == self.run_count
        });
        if !follows {
            flags |= SUMS_HERE;
            self.run_input.put(out);
            self.run_output.put(out);
            out.put_varint(u64::from(self.run_count));
        }
        out.set_byte(place, flags);
    }

    fn decode(previous: Option<&Self>, reader: &mut Reader<'_>) -> Result<Self, Corrupt> {
        let flags = reader.u8()?;
        if flags & !(SAME_HOLDING | INPUT | OUTPUT | SUMS_HERE) != 0 {
            return Err(Corrupt { what: "a backdated row has unknown flags" });
        }
        let before = previous.map_or(0, |before| before.timestamp.cast_unsigned());
        let (holding, timestamp) = if flags & SAME_HOLDING == 0 {
            let holding = reader.varint()?.wrapping_add(previous.map_or(0, |before| before.holding));
            (holding, difference(reader, before)?)
        } else {
            let previous =
                previous.ok_or(Corrupt { what: "the first backdated row of a block follows another" })?;
            (previous.holding, before.wrapping_add(reader.varint()?))
        };
        let transaction = difference(reader, previous.map_or(0, |before| before.transaction))?;
        let input = if flags & INPUT == 0 { Quantity::ZERO } else { Quantity::read(reader)? };
        let output = if flags & OUTPUT == 0 { Quantity::ZERO } else { Quantity::read(reader)? };
        let mut row = Self::new(holding, timestamp.cast_signed(), transaction, input, output);
        (row.run_input, row.run_output, row.run_count) = if flags & SUMS_HERE == 0 {
            row.sums_after(previous).ok_or(Corrupt { what: "too many backdated rows" })?
        } else {
            (Quantity::read(reader)?, Quantity::read(reader)?, varint_u32(reader)?)
        };
        Ok(row)
    }

    fn link(&mut self, previous: Option<&Self>) {
        (self.run_input, self.run_output, self.run_count) =
            self.sums_after(previous).expect("a source holds fewer than 2^32 rows of a holding");
    }

    fn probe_key(key: &Self::Key) -> Option<(u64, u64)> {
        Some((key.0, 0))
    }

    fn heap_bytes(&self) -> usize {
        [&self.input, &self.output, &self.run_input, &self.run_output].map(Quantity::heap_bytes).iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::link_all;
    use crate::rows::tests::{Rng, check_coding, random_large};

    fn rows(seed: u64) -> Vec<BackdatedRow> {
        let mut rng = Rng::new(seed);
        let mut rows: Vec<BackdatedRow> = (0..200)
            .map(|_| {
                let timestamp = (rng.below(2000) as i64 - 1000) * 1_000_000_007;
                let (input, output) = (random_large(&mut rng), Quantity::from(rng.below(2)));
                BackdatedRow::new(rng.below(5), timestamp, rng.below(1 << 30), input, output)
            })
            .collect();
        rows.push(BackdatedRow::new(9, i64::MIN, 1, Quantity::ZERO, Quantity::ZERO));
        rows.push(BackdatedRow::new(9, i64::MAX, 0, Quantity::ZERO, Quantity::ZERO));
        rows.sort_by_key(Row::key);
        rows.dedup_by_key(|row| row.key());
        rows
    }

    #[test]
    fn rows_are_read_as_written_linked_or_not() {
        for seed in 0..40 {
            let mut rows = rows(seed);
            check_coding(&rows);
            link_all(&mut rows);
            check_coding(&rows);
            // A block may begin in the middle of a holding.
            check_coding(&rows[rows.len() / 2..]);
        }
    }

    #[test]
    fn linking_sums_each_holding_by_itself() {
        let mut rows = rows(3);
        link_all(&mut rows);
        for holding in 0..5 {
            let mut sum = Quantity::ZERO;
            for (count, row) in (1..).zip(rows.iter().filter(|row| row.holding == holding)) {
                sum = sum.plus(&row.input);
                assert_eq!((&row.run_input, row.run_count), (&sum, count));
            }
        }
    }
}
