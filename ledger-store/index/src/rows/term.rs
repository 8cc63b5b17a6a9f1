//! Terms: the current metadata pairs of accounts and transactions.
//!
//! ```text
//! flags        u8      1 same space as the row before   2 present   4 same space and term
//! [space       varint  difference from the row before, if not the same
//!  term        varint  increase if the space is the same, else whole]
//! id           varint  increase if the term is the same, else whole
//! position     varint  zigzag difference of (position - id) from that of the row before
//! ```

use ledger_codec::{Corrupt, Output, Reader};

use crate::row::{KeyBytes, Row, difference, increase, joined, key_parts, ledger_of_space, put_difference};

/// Records that an account or transaction has a term (a metadata key and value), or no longer has it.
///
/// Of the rows with the same (space, term, id), only the one with the highest position counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermRow {
    /// The fingerprint of the term.
    pub(crate) term: u64,
    /// The account number or transaction id.
    pub id: u64,
    /// The journal position of the change.
    pub position: u64,
    /// The upper bits of the space: the ledger.
    ledger: u32,
    /// The lower bits of the space: the kind of subject.
    kind: u8,
    /// True if the term was set. Otherwise it was removed.
    pub(crate) present: bool,
}

/// Hundreds of thousands of rows may wait for a flush.
const _: () = assert!(size_of::<TermRow>() <= 32);

/// Number of bits in a space.
const SPACE_BITS: u32 = 40;

const SAME_SPACE: u8 = 1;
const PRESENT: u8 = 2;
const SAME_TERM: u8 = 4;

impl TermRow {
    /// Records that a subject in a space has a term from this position on, or no longer has it.
    pub const fn new(space: u64, term: u64, id: u64, position: u64, present: bool) -> Self {
        Self { term, id, position, ledger: ledger_of_space(space), kind: space.to_le_bytes()[0], present }
    }

    /// Returns the space: the ledger, shifted left by 8, and the kind of subject.
    #[inline]
    pub(crate) fn space(&self) -> u64 {
        u64::from(self.ledger) << 8 | u64::from(self.kind)
    }

    /// Returns position minus id, which mostly equals that of the previous row, whatever its term is.
    fn ahead(&self) -> u64 {
        self.position.wrapping_sub(self.id)
    }
}

impl Row for TermRow {
    type Key = (u64, u64, u64, u64);
    const TABLE: u8 = 3;
    const TABLE_NAME: &'static str = "runs.terms";
    const SUPERSEDES: bool = true;

    fn first_key() -> Self::Key {
        (0, 0, 0, 0)
    }

    fn last_key() -> Self::Key {
        (u64::MAX, u64::MAX, u64::MAX, u64::MAX)
    }

    #[inline]
    fn key(&self) -> Self::Key {
        (self.space(), self.term, self.id, self.position)
    }

    #[inline]
    fn spread(key: &Self::Key) -> Option<(u64, u64)> {
        Some((key.0, key.1))
    }

    fn ledger_of(key: &Self::Key) -> u32 {
        ledger_of_space(key.0)
    }

    fn first_of(ledger: u32) -> Self::Key {
        (u64::from(ledger) << 8, 0, 0, 0)
    }

    #[inline]
    fn rank(key: &Self::Key) -> u128 {
        joined(key.0, key.1)
    }

    fn put_key(key: &Self::Key, out: &mut KeyBytes) {
        out.put_parts(&[key.0, key.1, key.2, key.3]);
    }

    fn read_key(bytes: &[u8]) -> Self::Key {
        let [space, term, id, position] = key_parts(bytes);
        (space, term, id, position)
    }

    fn encode(&self, previous: Option<&Self>, out: &mut Output) {
        let present = u8::from(self.present) * PRESENT;
        let space = self.space();
        match previous {
            Some(before) if before.space() == space && before.term == self.term => {
                out.put_byte(present | SAME_TERM);
                out.put_varint(self.id.wrapping_sub(before.id));
            }
            Some(before) if before.space() == space => {
                out.put_byte(present | SAME_SPACE);
                out.put_varint(self.term.wrapping_sub(before.term));
                out.put_varint(self.id);
            }
            _ => {
                out.put_byte(present);
                out.put_varint(space.wrapping_sub(previous.map_or(0, Self::space)));
                out.put_varint(self.term);
                out.put_varint(self.id);
            }
        }
        put_difference(out, self.ahead(), previous.map_or(0, Self::ahead));
    }

    fn decode(previous: Option<&Self>, reader: &mut Reader<'_>) -> Result<Self, Corrupt> {
        const FOLLOWS: Corrupt = Corrupt { what: "the first term row of a block follows another" };
        let flags = reader.u8()?;
        let (space, term, id) = match flags & !PRESENT {
            0 => (increase(reader, previous.map_or(0, Self::space))?, reader.varint()?, reader.varint()?),
            SAME_SPACE => {
                let before = previous.ok_or(FOLLOWS)?;
                (before.space(), increase(reader, before.term)?, reader.varint()?)
            }
            SAME_TERM => {
                let before = previous.ok_or(FOLLOWS)?;
                (before.space(), before.term, increase(reader, before.id)?)
            }
            _ => return Err(Corrupt { what: "a term row has unknown flags" }),
        };
        let position = difference(reader, previous.map_or(0, Self::ahead))?.wrapping_add(id);
        if space >> SPACE_BITS != 0 {
            return Err(Corrupt { what: "a term row is of no ledger" });
        }
        Ok(Self::new(space, term, id, position, flags & PRESENT != 0))
    }

    fn probe_key(key: &Self::Key) -> Option<(u64, u64)> {
        Some((key.0, key.1))
    }

    fn same_sequence(one: &Self::Key, other: &Self::Key) -> bool {
        (one.0, one.1, one.2) == (other.0, other.1, other.2)
    }

    fn supersedes(&self, older: &Self) -> bool {
        Self::same_sequence(&self.key(), &older.key())
    }

    fn is_removal(&self) -> bool {
        !self.present
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::tests::{Rng, check_coding};

    #[test]
    fn a_space_of_no_ledger_is_damage() {
        let decode = |space: u64| {
            let mut out = Output::default();
            out.make_room();
            out.put_byte(PRESENT);
            for number in [space, 7, 8, 0] {
                out.put_varint(number);
            }
            TermRow::decode(None, &mut Reader::new(out.as_slice())).map(|row| row.space())
        };
        let last = (1 << SPACE_BITS) - 1;
        assert_eq!(decode(last).expect("a row"), last);
        assert!(decode(last + 1).is_err());
    }

    #[test]
    fn rows_are_read_as_written() {
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            let mut rows: Vec<TermRow> = (0..300)
                .map(|_| {
                    let space = [1, 2, 257, (1 << SPACE_BITS) - 1][rng.below(4) as usize];
                    let term = rng.below(4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    TermRow::new(space, term, rng.below(1000), rng.below(1 << 40), rng.below(2) == 0)
                })
                .collect();
            rows.sort_by_key(Row::key);
            rows.dedup_by_key(|row| row.key());
            check_coding(&rows);
        }
    }
}
