//! The history of a holding in insertion order.
//!
//! ```text
//! flags        u8      1 same holding as the row before   2 source   4 destination
//!                      8 is backdated   16|32 backdated sums (below)
//!                      64 input is stored   128 output is stored
//! same:        transaction - before, [input - before], [output - before]
//! else:        holding - before (0 at a block's start), transaction, ordinal, [input], [output]
//! backdated    0 none   1 as before   2 as before plus this move   3 input, output, count are stored
//! ```

use ledger_codec::{Corrupt, Output, Reader};

use crate::row::{KeyBytes, Row, increase, joined_short, key_parts, varint_u32};

use super::Quantity;

/// The effect of a transaction on a holding, as sums over the whole history of the holding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRow {
    /// The ledger, shifted left by 32, and the number of the holding in it.
    pub holding: u64,
    /// The id of the transaction.
    pub transaction: u64,
    /// Total input, up to and including this transaction.
    pub input: Quantity,
    /// Total output, up to and including this transaction.
    pub output: Quantity,
    /// Sums over the backdated rows of the holding so far, if there are any.
    pub backdated: Option<Box<BackdatedSums>>,
    /// Number of rows of the holding, including this one.
    pub ordinal: u32,
    /// True if the effective date differs from the insertion date.
    pub is_backdated: bool,
    /// True if the account is a source in the transaction.
    pub is_source: bool,
    /// True if the account is a destination in the transaction.
    pub is_destination: bool,
}

impl HistoryRow {
    /// A row without content.
    #[cfg(test)]
    const EMPTY: Self = Self {
        holding: 0,
        transaction: 0,
        input: Quantity::ZERO,
        output: Quantity::ZERO,
        backdated: None,
        ordinal: 0,
        is_backdated: false,
        is_source: false,
        is_destination: false,
    };
}

/// Sums over the backdated rows of a holding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackdatedSums {
    /// The input of backdated transactions.
    pub input: Quantity,
    /// The output of backdated transactions.
    pub output: Quantity,
    /// Number of backdated rows.
    pub count: u32,
}

const FOLLOWS: u8 = 1;
const SOURCE: u8 = 2;
const DESTINATION: u8 = 4;
const BACKDATED: u8 = 8;
const SUMS_SHIFT: u32 = 4;
const INPUT: u8 = 64;
const OUTPUT: u8 = 128;

const SUMS_NONE: u8 = 0;
const SUMS_SAME: u8 = 1;
const SUMS_PLUS_MOVE: u8 = 2;
const SUMS_HERE: u8 = 3;

/// Returns the sums after one more backdated row, or `None` if the count overflows.
fn after_move(before: Option<&BackdatedSums>, input: &Quantity, output: &Quantity) -> Option<BackdatedSums> {
    Some(match before {
        None => BackdatedSums { input: input.clone(), output: output.clone(), count: 1 },
        Some(sums) => BackdatedSums {
            input: sums.input.plus(input),
            output: sums.output.plus(output),
            count: sums.count.checked_add(1)?,
        },
    })
}

impl HistoryRow {
    fn side_flags(&self) -> u8 {
        (u8::from(self.is_source) * SOURCE)
            | (u8::from(self.is_destination) * DESTINATION)
            | (u8::from(self.is_backdated) * BACKDATED)
    }

    /// Appends the row in the common case: the next row of the same holding, with sums of up to 64 bits and no
    /// backdated rows. Returns `false` without effect in all other cases.
    #[inline]
    fn encode_plain(&self, before: &Self, out: &mut Output) -> bool {
        let sums = (self.input.as_u64(), before.input.as_u64(), self.output.as_u64(), before.output.as_u64());
        let (Some(input), Some(input_before), Some(output), Some(output_before)) = sums else {
            return false;
        };
        let follows = before.holding == self.holding
            && before.transaction <= self.transaction
            && before.ordinal.checked_add(1) == Some(self.ordinal)
            && input_before <= input
            && output_before <= output
            && self.backdated.is_none();
        if !follows {
            return false;
        }
        let (input, output) = (input - input_before, output - output_before);
        let moves = (u8::from(input != 0) * INPUT) | (u8::from(output != 0) * OUTPUT);
        out.put_byte(FOLLOWS | self.side_flags() | moves | SUMS_NONE << SUMS_SHIFT);
        out.put_varint(self.transaction - before.transaction);
        // Nearly always one of the two is zero, but which one is unpredictable, so avoid a branch.
        if input == 0 || output == 0 {
            let moved = input | output;
            if moved != 0 {
                Quantity::put_u64(out, moved);
            }
        } else {
            Quantity::put_u64(out, input);
            Quantity::put_u64(out, output);
        }
        true
    }

    /// Decodes the row after its flags in the common case, as [`encode_plain`](Self::encode_plain) wrote it with one
    /// move. Returns `None` without effect in all other cases.
    #[inline]
    fn decode_plain(before: &Self, flags: u8, reader: &mut Reader<'_>) -> Option<Self> {
        let (moves, sums) = (flags & (INPUT | OUTPUT), flags >> SUMS_SHIFT & 3);
        if flags & FOLLOWS == 0 || sums != SUMS_NONE || (moves != INPUT && moves != OUTPUT) {
            return None;
        }
        let (input, output) = (before.input.as_u64()?, before.output.as_u64()?);
        let mut ahead = reader.clone();
        let transaction = increase(&mut ahead, before.transaction).ok()?;
        let moved = ahead.varint().ok().filter(|head| head & 1 == 0)? >> 1;
        let (moved_input, moved_output) = if moves == INPUT { (moved, 0) } else { (0, moved) };
        let row = Self {
            holding: before.holding,
            transaction,
            input: input.checked_add(moved_input)?.into(),
            output: output.checked_add(moved_output)?.into(),
            backdated: None,
            ordinal: before.ordinal.checked_add(1)?,
            is_backdated: flags & BACKDATED != 0,
            is_source: flags & SOURCE != 0,
            is_destination: flags & DESTINATION != 0,
        };
        *reader = ahead;
        Some(row)
    }

    /// Returns the move since `before`, if this row can be written as a difference from it.
    fn moved_since(&self, before: &Self) -> Option<(Quantity, Quantity)> {
        let follows = before.holding == self.holding
            && before.transaction <= self.transaction
            && before.ordinal.checked_add(1) == Some(self.ordinal);
        if !follows {
            return None;
        }
        Some((self.input.minus(&before.input)?, self.output.minus(&before.output)?))
    }
}

impl Row for HistoryRow {
    type Key = (u64, u64);
    const TABLE: u8 = 0;
    const TABLE_NAME: &'static str = "runs.history";

    fn first_key() -> Self::Key {
        (0, 0)
    }

    fn last_key() -> Self::Key {
        (u64::MAX, u64::MAX)
    }

    #[inline]
    fn key(&self) -> Self::Key {
        (self.holding, self.transaction)
    }

    #[inline]
    fn spread(key: &Self::Key) -> Option<(u64, u64)> {
        Some((0, key.0))
    }

    fn ledger_of(key: &Self::Key) -> u32 {
        (key.0 >> 32) as u32
    }

    fn first_of(ledger: u32) -> Self::Key {
        (u64::from(ledger) << 32, 0)
    }

    #[inline]
    fn rank(key: &Self::Key) -> u128 {
        joined_short(key.0, key.1)
    }

    fn put_key(key: &Self::Key, out: &mut KeyBytes) {
        out.put_parts(&[key.0, key.1]);
    }

    fn read_key(bytes: &[u8]) -> Self::Key {
        let [holding, transaction] = key_parts(bytes);
        (holding, transaction)
    }

    #[inline]
    fn encode(&self, previous: Option<&Self>, out: &mut Output) {
        if let Some(before) = previous
            && self.encode_plain(before, out)
        {
            return;
        }
        let place = out.len();
        out.put_byte(0);
        let mut flags = self.side_flags();
        let difference = previous.and_then(|before| self.moved_since(before).map(|moved| (before, moved)));
        let sums = if let Some((before, (input, output))) = difference {
            flags |= FOLLOWS;
            out.put_varint(self.transaction - before.transaction);
            if !input.is_zero() {
                flags |= INPUT;
                input.put(out);
            }
            if !output.is_zero() {
                flags |= OUTPUT;
                output.put(out);
            }
            match (&self.backdated, &before.backdated) {
                (None, _) => SUMS_NONE,
                (Some(sums), Some(sums_before)) if sums == sums_before => SUMS_SAME,
                (Some(sums), sums_before)
                    if after_move(sums_before.as_deref(), &input, &output).as_ref() == Some(sums) =>
                {
                    SUMS_PLUS_MOVE
                }
                (Some(_), _) => SUMS_HERE,
            }
        } else {
            out.put_varint(self.holding.wrapping_sub(previous.map_or(0, |before| before.holding)));
            out.put_varint(self.transaction);
            out.put_varint(u64::from(self.ordinal));
            if !self.input.is_zero() {
                flags |= INPUT;
                self.input.put(out);
            }
            if !self.output.is_zero() {
                flags |= OUTPUT;
                self.output.put(out);
            }
            if self.backdated.is_some() { SUMS_HERE } else { SUMS_NONE }
        };
        if sums == SUMS_HERE
            && let Some(backdated) = &self.backdated
        {
            backdated.input.put(out);
            backdated.output.put(out);
            out.put_varint(u64::from(backdated.count));
        }
        out.set_byte(place, flags | sums << SUMS_SHIFT);
    }

    #[inline]
    fn decode(previous: Option<&Self>, reader: &mut Reader<'_>) -> Result<Self, Corrupt> {
        let flags = reader.u8()?;
        if let Some(before) = previous
            && let Some(row) = Self::decode_plain(before, flags, reader)
        {
            return Ok(row);
        }
        let before = match previous {
            Some(before) if flags & FOLLOWS != 0 => Some(before),
            None if flags & FOLLOWS != 0 => {
                return Err(Corrupt { what: "the first history row of a block follows another" });
            }
            _ => None,
        };
        let (holding, transaction, ordinal) = if let Some(before) = before {
            let transaction = increase(reader, before.transaction)?;
            let ordinal =
                before.ordinal.checked_add(1).ok_or(Corrupt { what: "the ordinal exceeds 32 bits" })?;
            (before.holding, transaction, ordinal)
        } else {
            let holding = reader.varint()?.wrapping_add(previous.map_or(0, |before| before.holding));
            (holding, reader.varint()?, varint_u32(reader)?)
        };
        let one = if flags & (INPUT | OUTPUT) == 0 { Quantity::ZERO } else { Quantity::read(reader)? };
        let (moved_input, moved_output) = match flags & (INPUT | OUTPUT) {
            OUTPUT => (Quantity::ZERO, one),
            INPUT => (one, Quantity::ZERO),
            0 => (Quantity::ZERO, Quantity::ZERO),
            _ => (one, Quantity::read(reader)?),
        };
        let backdated = match flags >> SUMS_SHIFT & 3 {
            SUMS_NONE => None,
            SUMS_SAME => {
                let before = before.and_then(|before| before.backdated.clone());
                Some(before.ok_or(Corrupt { what: "there are no backdated sums to repeat" })?)
            }
            SUMS_PLUS_MOVE => {
                let before = before.and_then(|before| before.backdated.as_deref());
                let sums = after_move(before, &moved_input, &moved_output);
                Some(Box::new(sums.ok_or(Corrupt { what: "too many backdated rows" })?))
            }
            _ => Some(Box::new(BackdatedSums {
                input: Quantity::read(reader)?,
                output: Quantity::read(reader)?,
                count: varint_u32(reader)?,
            })),
        };
        let (input, output) = match before {
            Some(before) => (before.input.plus(&moved_input), before.output.plus(&moved_output)),
            None => (moved_input, moved_output),
        };
        Ok(Self {
            holding,
            transaction,
            input,
            output,
            backdated,
            ordinal,
            is_backdated: flags & BACKDATED != 0,
            is_source: flags & SOURCE != 0,
            is_destination: flags & DESTINATION != 0,
        })
    }

    fn probe_key(key: &Self::Key) -> Option<(u64, u64)> {
        Some((key.0, 0))
    }

    fn same_sequence(one: &Self::Key, other: &Self::Key) -> bool {
        // Transaction ids grow, so each flush holds later rows of a holding than all flushes before it.
        one.0 == other.0
    }

    fn heap_bytes(&self) -> usize {
        let backdated = self.backdated.as_ref().map_or(0, |sums| {
            size_of::<BackdatedSums>() + sums.input.heap_bytes() + sums.output.heap_bytes()
        });
        self.input.heap_bytes() + self.output.heap_bytes() + backdated
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::tests::{Rng, check_coding, random_large};

    #[test]
    fn a_row_takes_one_cache_line() {
        assert_eq!(size_of::<HistoryRow>(), 64);
    }

    #[test]
    fn rows_are_read_as_written() {
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            let mut rows: Vec<HistoryRow> = Vec::new();
            let mut row = HistoryRow { holding: rng.below(1 << 40), ..HistoryRow::EMPTY };
            for _ in 0..200 {
                if rng.below(3) == 0 {
                    row.holding += 1 + rng.below(1 << 34);
                    row.transaction = 0;
                    row.ordinal = rng.below(1 << 32) as u32 / 2;
                    row.backdated = None;
                    // Sums may also be smaller than those of the previous holding.
                    row.input = random_large(&mut rng);
                    row.output = Quantity::from(rng.below(100));
                }
                let input = if rng.below(2) == 0 { Quantity::ZERO } else { random_large(&mut rng) };
                let output = Quantity::from(rng.below(3) * 1000);
                row.transaction += 1 + rng.below(1 << 20);
                row.ordinal += 1;
                row.input = row.input.plus(&input);
                row.output = row.output.plus(&output);
                row.is_source = rng.below(2) == 0;
                row.is_destination = rng.below(2) == 0;
                row.is_backdated = rng.below(3) == 0;
                if row.is_backdated {
                    row.backdated = after_move(row.backdated.as_deref(), &input, &output).map(Box::new);
                }
                if rng.below(20) == 0 {
                    // The encoding must also keep rows that the projection would never create.
                    row.backdated = Some(Box::new(BackdatedSums { input, output, count: 7 }));
                }
                rows.push(row.clone());
            }
            check_coding(&rows);
        }
    }

    #[test]
    fn usual_rows_are_short() {
        let rows: Vec<HistoryRow> = (0..1000)
            .map(|number| HistoryRow {
                holding: 7,
                transaction: 5_000_000 + number * 100,
                input: Quantity::from(1_000_000 + number * 60),
                output: Quantity::ZERO,
                backdated: None,
                ordinal: 1 + number as u32,
                is_backdated: false,
                is_source: false,
                is_destination: true,
            })
            .collect();
        assert!(check_coding(&rows) < 3200);
    }
}
