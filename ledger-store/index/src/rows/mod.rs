//! The kinds of rows, one file for each, with their encodings.

use ledger_codec::{Corrupt, Output, Reader};

use crate::row::{Row, varint_u32};

pub(crate) mod backdated;
pub(crate) mod document;
pub(crate) mod effective;
pub(crate) mod history;
pub(crate) mod key;
pub(crate) mod log;
pub(crate) mod quantity;
pub(crate) mod term;
pub(crate) mod transaction;
pub(crate) mod version;

pub use backdated::BackdatedRow;
pub use document::{DocumentRow, SharedBytes};
pub use effective::EffectiveRow;
pub use history::{BackdatedSums, HistoryRow};
pub use key::KeyRow;
pub use log::LogRow;
pub use quantity::Quantity;
pub use term::TermRow;
pub use transaction::TransactionRow;
pub use version::VersionRow;

/// Calls a macro with the list of all tables of runs: for each, the field that holds its rows, and the type of its rows.
///
/// No other code lists the tables. To add one, add its row and a line here. The number of a table is its place in the
/// list.
#[macro_export]
macro_rules! for_each_run_table {
    ($macro:ident) => {
        $macro! {
            /// Effects on holdings in insertion order.
            history: $crate::HistoryRow;
            /// Effects of backdated transactions on holdings, by effective date.
            backdated: $crate::BackdatedRow;
            /// References, idempotency keys and addresses.
            keys: $crate::KeyRow;
            /// Current metadata terms.
            terms: $crate::TermRow;
            /// Logs.
            logs: $crate::LogRow;
            /// Transactions.
            transactions: $crate::TransactionRow;
            /// Versions of the documents of accounts and transactions.
            versions: $crate::VersionRow;
            /// Backdated transactions by effective date.
            effective: $crate::EffectiveRow;
            /// Documents of callers, and the entries of their indexes.
            documents: $crate::DocumentRow;
        }
    };
}

macro_rules! list_names {
    ($($(#[$doc:meta])* $table:ident: $row:ty;)*) => {
        /// The names of the tables of runs in the file. The index is the number of the table.
        pub(crate) const TABLES: &[&str] = &[$(<$row>::TABLE_NAME),*];

        const _: () = {
            let numbers = [$(<$row>::TABLE),*];
            let mut place = 0;
            while place < numbers.len() {
                assert!(numbers[place] as usize == place, "the number of a table is its place in the list");
                place += 1;
            }
        };
    };
}

for_each_run_table!(list_names);

/// Returns the number and the name of each table of runs.
pub(crate) fn numbered_tables() -> impl Iterator<Item = (u8, &'static str)> {
    (0..).zip(TABLES.iter().copied())
}

/// Appends the step from one (ledger, number) to the next.
///
/// In the same ledger it is twice the increase. Otherwise, and if the increase takes 64 bits, it is 1, followed by
/// both numbers.
#[inline]
fn put_step(out: &mut Output, value: (u32, u64), previous: Option<(u32, u64)>) {
    match previous {
        Some(before) if before.0 == value.0 && value.1.wrapping_sub(before.1) < 1 << 63 => {
            out.put_varint(value.1.wrapping_sub(before.1) << 1);
        }
        _ => {
            out.put_varint(1);
            out.put_varint(u64::from(value.0));
            out.put_varint(value.1);
        }
    }
}

/// Reads a step that [`put_step`] wrote with the same `previous`.
#[inline]
fn read_step(reader: &mut Reader<'_>, previous: Option<(u32, u64)>) -> Result<(u32, u64), Corrupt> {
    match (reader.varint()?, previous) {
        (1, _) => Ok((varint_u32(reader)?, reader.varint()?)),
        (step, Some(before)) if step & 1 == 0 => {
            let next = before.1.checked_add(step >> 1).ok_or(Corrupt { what: "a number exceeds 64 bits" })?;
            Ok((before.0, next))
        }
        _ => Err(Corrupt { what: "a step to the next row makes no sense" }),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fmt::Debug;

    use dashu_int::UBig;

    use super::*;
    use crate::row::{KeyBytes, Row};

    /// Reproducible random numbers (splitmix64).
    pub(crate) struct Rng(u64);

    impl Rng {
        pub(crate) fn new(seed: u64) -> Self {
            Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x9e37_79b9)
        }

        pub(crate) fn any(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        }

        pub(crate) fn below(&mut self, limit: u64) -> u64 {
            self.any() % limit
        }
    }

    /// Returns a number that is mostly small and sometimes exceeds 64 bits.
    pub(crate) fn random_large(rng: &mut Rng) -> Quantity {
        match rng.below(8) {
            0 => Quantity::from(UBig::from(rng.any()) * UBig::from(rng.any())),
            1 => Quantity::from(rng.any()),
            _ => Quantity::from(rng.below(100_000)),
        }
    }

    /// Encodes and decodes the rows, and checks keys and their bytes. Returns the encoded size.
    #[track_caller]
    pub(crate) fn check_coding<R: Row + PartialEq + Debug>(rows: &[R]) -> usize {
        let mut out = Output::default();
        let mut previous = None;
        for row in rows {
            out.make_room();
            row.encode(previous, &mut out);
            previous = Some(row);
        }
        let bytes = out.as_slice().to_vec();
        let mut reader = Reader::new(&bytes);
        let mut decoded: Vec<R> = Vec::new();
        while !reader.is_empty() {
            decoded.push(R::decode(decoded.last(), &mut reader).unwrap());
        }
        assert!(decoded == rows);
        for pair in rows.windows(2) {
            assert!(KeyBytes::of::<R>(&pair[0].key()) < KeyBytes::of::<R>(&pair[1].key()));
            let probe_keys = (R::probe_key(&pair[0].key()), R::probe_key(&pair[1].key()));
            assert!(!R::PROBE_KEYS_ASCEND || probe_keys.0 <= probe_keys.1);
        }
        for row in rows {
            assert_eq!(R::read_key(KeyBytes::of::<R>(&row.key()).as_slice()), row.key());
        }
        // Decoding damaged bytes must not panic.
        let mut damaged = bytes.clone();
        for place in (0..bytes.len()).step_by(bytes.len() / 100 + 1) {
            damaged[place] ^= 1 << (place % 8);
            let mut reader = Reader::new(&damaged);
            let mut previous = None;
            while !reader.is_empty() {
                match R::decode(previous.as_ref(), &mut reader) {
                    Ok(row) => previous = Some(row),
                    Err(_) => break,
                }
            }
            damaged[place] = bytes[place];
        }
        bytes.len()
    }
}
