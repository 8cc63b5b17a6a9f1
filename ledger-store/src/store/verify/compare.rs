//! Compares two indexes of one journal by content.

use std::fmt::Debug;
use std::ops::Bound;

use ledger_codec::Corrupt;
use ledger_index::{
    BackdatedRow, DocumentRow, DroppedLedgers, EffectiveRow, HistoryRow, IndexError, IndexSnapshot, KeyRow,
    LogRow, Row, TableView, TermRow, TransactionRow, VersionRow, Way, for_each_run_table, tables,
};

use super::findings::{Findings, Stop};
use crate::flush::{Watermark, ledger_count};
use crate::projection::{AccountPage, HoldingPage, UsagePage};
use crate::tombstones::{Tombstone, ledger_of};
use crate::violation::ViolationCode;

/// Two indexes of one journal.
#[derive(Clone, Copy)]
pub(super) struct Indexes<'a> {
    /// The index that the verification has built.
    pub(super) fresh: &'a IndexSnapshot,
    /// The index of the store.
    pub(super) live: &'a IndexSnapshot,
    /// Ledgers whose rows do not count, because a purge deletes them at any time.
    pub(super) dropped: &'a DroppedLedgers,
}

/// Reports the differences of the live index from the fresh one.
pub(super) fn compare(indexes: Indexes<'_>, findings: &mut Findings) -> Result<(), Stop> {
    macro_rules! compare_rows {
        ($($(#[$doc:meta])* $table:ident: $row:ty;)*) => {
            $(rows::<$row>(indexes, findings)?;)*
        };
    }
    for_each_run_table!(compare_rows);
    plain(tables::ACCOUNTS, ViolationCode::AccountMismatch, account_page, indexes, findings)?;
    plain(tables::USAGES, ViolationCode::AccountMismatch, usage_page, indexes, findings)?;
    plain(tables::HOLDINGS, ViolationCode::VolumeMismatch, holding_page, indexes, findings)?;
    plain(tables::ADDRESSES, ViolationCode::AccountMismatch, whole, indexes, findings)?;
    plain(tables::NAMES, ViolationCode::MetadataMismatch, whole, indexes, findings)?;
    plain(tables::DOCUMENTS, ViolationCode::MetadataMismatch, whole, indexes, findings)?;
    plain(tables::HEADS, ViolationCode::HeadMismatch, whole, indexes, findings)?;
    plain(tables::REMOVED, ViolationCode::HeadMismatch, tombstone, indexes, findings)?;
    compare_statements(indexes.fresh, indexes.live, findings)
}

/// A difference between two sorted sequences.
enum Difference<K, T> {
    /// An expected item was not found.
    Missing(K, T),
    /// A found item was not expected.
    Extra(K, T),
    /// The expected item and the found item differ.
    Other(K, T, T),
}

/// Calls `each` for every difference. An error in `expected` counts like an error in `found`.
fn differences<K: Ord, T>(
    mut expected: impl Iterator<Item = Result<(K, T), IndexError>>,
    mut found: impl Iterator<Item = Result<(K, T), IndexError>>,
    same: impl Fn(&T, &T) -> bool,
    mut each: impl FnMut(Difference<K, T>) -> Result<(), Stop>,
) -> Result<Result<(), IndexError>, Stop> {
    let mut left = None;
    let mut right = None;
    loop {
        if left.is_none() {
            match expected.next().transpose() {
                Ok(next) => left = next,
                Err(error) => return Ok(Err(error)),
            }
        }
        if right.is_none() {
            match found.next().transpose() {
                Ok(next) => right = next,
                Err(error) => return Ok(Err(error)),
            }
        }
        match (left.take(), right.take()) {
            (None, None) => return Ok(Ok(())),
            (Some((key, value)), None) => each(Difference::Missing(key, value))?,
            (None, Some((key, value))) => each(Difference::Extra(key, value))?,
            (Some(one), Some(other)) => match one.0.cmp(&other.0) {
                std::cmp::Ordering::Less => {
                    right = Some(other);
                    each(Difference::Missing(one.0, one.1))?;
                }
                std::cmp::Ordering::Greater => {
                    left = Some(one);
                    each(Difference::Extra(other.0, other.1))?;
                }
                std::cmp::Ordering::Equal => {
                    if !same(&one.1, &other.1) {
                        each(Difference::Other(one.0, one.1, other.1))?;
                    }
                }
            },
        }
    }
}

/// A row whose content can be compared.
trait Compared: Row + PartialEq {
    /// Violation to report if two rows with the same key differ.
    const CODE: ViolationCode;
    /// Name of the row in reports.
    const NAME: &'static str;

    /// Returns the position of the entry that created the row, if the row contains it.
    fn position(&self) -> Option<u64>;

    /// Returns the row without values that depend on its run.
    fn contents(self) -> Self {
        self
    }
}

macro_rules! compared {
    ($row:ty, $name:literal, $code:ident, $position:expr) => {
        impl Compared for $row {
            const CODE: ViolationCode = ViolationCode::$code;
            const NAME: &'static str = $name;

            fn position(&self) -> Option<u64> {
                let position: fn(&Self) -> Option<u64> = $position;
                position(self)
            }
        }
    };
}

compared!(HistoryRow, "history", VolumeMismatch, |_| None);
compared!(KeyRow, "keys", MetadataMismatch, |_| None);
compared!(TermRow, "terms", MetadataMismatch, |row| Some(row.position));
compared!(LogRow, "logs", TransactionMismatch, |row| Some(row.position));
compared!(TransactionRow, "transactions", TransactionMismatch, |row| Some(row.position));
compared!(VersionRow, "versions", MetadataMismatch, |row| Some(row.position));
compared!(EffectiveRow, "effective", EffectiveVolumeMismatch, |_| None);
compared!(DocumentRow, "documents", MetadataMismatch, |row| Some(row.version));

impl Compared for BackdatedRow {
    const CODE: ViolationCode = ViolationCode::EffectiveVolumeMismatch;
    const NAME: &'static str = "backdated";

    fn position(&self) -> Option<u64> {
        None
    }

    fn contents(self) -> Self {
        Self::new(self.holding, self.timestamp, self.transaction, self.input, self.output)
    }
}

/// Compares one table of rows.
fn rows<R: Compared>(indexes: Indexes<'_>, findings: &mut Findings) -> Result<(), Stop> {
    let Indexes { fresh, live, dropped } = indexes;
    let all = |snapshot: &IndexSnapshot| {
        let view = TableView::<R>::new(Vec::new(), snapshot.clone());
        let rows = view.cursor(R::first_key(), R::last_key(), Way::Ascending).current();
        let kept = rows.filter(|row| {
            row.as_ref()
                .map_or(true, |row| dropped.is_empty() || !dropped.contains(&R::ledger_of(&row.key())))
        });
        kept.map(|row| row.map(|row| (row.key(), row.contents())))
    };
    let read = differences(
        all(fresh),
        all(live),
        |one, other| one == other,
        |difference| {
            let (code, row, detail) = match difference {
                Difference::Missing(_, row) => {
                    let detail = format!("{}: {row:?} is missing", R::NAME);
                    (ViolationCode::IndexMissing, row, detail)
                }
                Difference::Extra(_, row) => {
                    let detail = format!("{}: {row:?} is not of the journal", R::NAME);
                    (ViolationCode::IndexExtra, row, detail)
                }
                Difference::Other(_, expected, found) => {
                    let detail = format!("{}: {found:?}, expected {expected:?}", R::NAME);
                    (R::CODE, expected, detail)
                }
            };
            let ledger = Some(R::ledger_of(&row.key())).filter(|ledger| *ledger != 0);
            findings.add(code, ledger, row.position(), detail)
        },
    )?;
    let checked = read.and_then(|()| TableView::<R>::new(Vec::new(), live.clone()).check_filters());
    match checked {
        Ok(()) => Ok(()),
        Err(error) => findings.index_error(&error),
    }
}

/// A key of a plain table and its value.
type Entry = (Vec<u8>, Vec<u8>);

/// The value of one key of a plain table, as parts to compare one by one.
type Parts = Vec<(u32, String)>;

/// Compares one plain table. `parts` splits a value into parts.
fn plain(
    table: &'static str,
    code: ViolationCode,
    parts: impl Fn(&[u8]) -> Result<Parts, Corrupt>,
    indexes: Indexes<'_>,
    findings: &mut Findings,
) -> Result<(), Stop> {
    fn all<'a>(
        snapshot: &'a IndexSnapshot,
        table: &'static str,
        dropped: &'a DroppedLedgers,
    ) -> Result<impl Iterator<Item = Result<Entry, IndexError>> + use<'a>, IndexError> {
        let all = snapshot.range(table, Bound::Unbounded, Bound::Unbounded)?;
        let is_gone = move |key: &[u8]| {
            table != tables::REMOVED && ledger_of(table, key).is_some_and(|ledger| dropped.contains(&ledger))
        };
        Ok(all.filter(move |entry| entry.as_ref().map_or(true, |(key, _)| !is_gone(key))))
    }
    let Indexes { fresh, live, dropped } = indexes;
    let (expected, found) = match (all(fresh, table, dropped), all(live, table, dropped)) {
        (Ok(expected), Ok(found)) => (expected, found),
        (Err(error), _) | (_, Err(error)) => return findings.index_error(&error),
    };
    let read = differences(
        expected,
        found,
        |one, other| one == other,
        |difference| {
            let nothing = Vec::new();
            let (key, expected, found) = match difference {
                Difference::Missing(key, value) => (key, parts(&value), Ok(nothing)),
                Difference::Extra(key, value) => (key, Ok(nothing), parts(&value)),
                Difference::Other(key, expected, found) => (key, parts(&expected), parts(&found)),
            };
            let (expected, found) = match (expected, found) {
                (Ok(expected), Ok(found)) => (expected, found),
                (Err(corrupt), _) | (_, Err(corrupt)) => {
                    return findings.index_error(&IndexError::corrupt(table, corrupt));
                }
            };
            let ledger = ledger_of(table, &key);
            let place = |part: u32| format!("{table} {}/{part}", hex(&key));
            let each = |difference: Difference<u32, String>| match difference {
                Difference::Missing(part, value) => findings.add(
                    ViolationCode::IndexMissing,
                    ledger,
                    None,
                    format!("{}: {value} is missing", place(part)),
                ),
                Difference::Extra(part, value) => {
                    let detail = format!("{}: {value} is not of the journal", place(part));
                    findings.add(ViolationCode::IndexExtra, ledger, None, detail)
                }
                Difference::Other(part, expected, found) => {
                    findings.add(code, ledger, None, format!("{}: {found}, expected {expected}", place(part)))
                }
            };
            let (expected, found) = (expected.into_iter().map(Ok), found.into_iter().map(Ok));
            differences(expected, found, |one, other| one == other, each).map(drop)
        },
    )?;
    match read {
        Ok(()) => Ok(()),
        Err(error) => findings.index_error(&error),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        text.push_str(&format!("{byte:02x}"));
        text
    })
}

/// Returns a value as one part.
#[expect(clippy::unnecessary_wraps, reason = "one of several readers of parts, and the others can fail")]
fn whole(value: &[u8]) -> Result<Parts, Corrupt> {
    Ok(vec![(0, hex(value))])
}

/// Returns the data about a removed ledger, without the flag that its space was reclaimed.
fn tombstone(value: &[u8]) -> Result<Parts, Corrupt> {
    let tombstone = Tombstone { is_reclaimed: false, ..Tombstone::decode(value)? };
    whole(&tombstone.encode())
}

fn describe(place: u32, item: &impl Debug) -> (u32, String) {
    (place, format!("{item:?}"))
}

fn account_page(value: &[u8]) -> Result<Parts, Corrupt> {
    Ok(AccountPage::decode(value)?.iter().map(|(place, account)| describe(place, account)).collect())
}

fn usage_page(value: &[u8]) -> Result<Parts, Corrupt> {
    Ok(UsagePage::decode(value)?.iter().map(|(place, usage)| describe(place, &usage)).collect())
}

fn holding_page(value: &[u8]) -> Result<Parts, Corrupt> {
    Ok(HoldingPage::all(value)?.iter().map(|(place, holding)| describe(*place, holding)).collect())
}

/// Compares watermark and number of ledgers of the two indexes. Ignores the progress of their wire hashes.
fn compare_statements(
    fresh: &IndexSnapshot,
    live: &IndexSnapshot,
    findings: &mut Findings,
) -> Result<(), Stop> {
    let read = |index| Ok((Watermark::read(index)?, ledger_count(index)?));
    match (read(fresh), read(live)) {
        (Ok(expected), Ok(found)) => {
            let part = |(mark, ledgers): (Option<Watermark>, u32)| {
                (mark.map(|mark| (mark.store, mark.next, mark.chain)), ledgers)
            };
            if part(expected) == part(found) {
                return Ok(());
            }
            let detail = format!("the index is about {found:?}, expected {expected:?}");
            findings.add(ViolationCode::HeadMismatch, None, None, detail)
        }
        (Err(error), _) | (_, Err(error)) => findings.index_error(&error),
    }
}
