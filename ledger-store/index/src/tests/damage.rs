//! Reads notice damaged bytes.

use std::ops::Bound;

use crate::error::IndexError;
use crate::file::{Commit, IndexFile};
use crate::order::Direction;
use crate::row::{KeyBytes, Row};
use crate::rows::tests::Rng;
use crate::rows::{HistoryRow, KeyRow, TABLES};
use crate::runs::write_run;
use crate::stored::{checksum, verified};
use crate::table::TableView;
use crate::tables;
use crate::write::IndexWrite;

use super::disk::Disk;
use super::samples::{Sample, State};

fn rows<R: Sample>(count: usize) -> Vec<R> {
    let (mut rng, mut state) = (Rng::new(5), State::default());
    let mut rows: Vec<R> = (0..count).map(|_| R::next(&mut rng, &mut state)).collect();
    rows.sort_by_key(Row::key);
    rows.dedup_by_key(|row| row.key());
    rows
}

#[test]
fn every_flipped_bit_of_a_block_or_its_key_is_noticed() {
    let file = Disk::default().create();
    let write = file.begin_write(Commit::Visible).unwrap();
    write_run::<HistoryRow, _>(&write, rows::<HistoryRow>(3000)).unwrap();
    write.commit().unwrap();
    let name = HistoryRow::TABLE_NAME;
    let snapshot = file.snapshot().unwrap();
    let entry = redb::ReadableTable::first(snapshot.blocks(HistoryRow::TABLE)).unwrap().unwrap();
    let (mut key, mut stored) = (entry.0.value().to_vec(), entry.1.value().to_vec());
    assert!(stored.len() > 8000 && stored.len() <= 8192 - 64);
    verified(name, &key, &stored).unwrap();
    assert!(verified(TABLES[1], &key, &stored).is_err(), "a value of another table");
    for place in 0..key.len() * 8 {
        key[place / 8] ^= 1 << (place % 8);
        assert!(verified(name, &key, &stored).is_err());
        key[place / 8] ^= 1 << (place % 8);
    }
    for place in 0..stored.len() * 8 {
        stored[place / 8] ^= 1 << (place % 8);
        assert!(verified(name, &key, &stored).is_err());
        stored[place / 8] ^= 1 << (place % 8);
    }
    for length in 0..stored.len() {
        assert!(verified(name, &key, &stored[..length]).is_err());
    }
}

#[test]
fn bytes_cannot_move_between_table_key_and_value() {
    assert_ne!(checksum("ab", b"c", b"d"), checksum("a", b"bc", b"d"));
    assert_ne!(checksum("a", b"bc", b"d"), checksum("a", b"c", b"bd"));
    assert_ne!(checksum("a", b"c", b"db"), checksum("a", b"bc", b"d"));
}

#[test]
fn a_block_that_is_missing_is_noticed_wherever_it_was() {
    let all = rows::<HistoryRow>(6_000);
    let stored_keys = |file: &IndexFile| -> Vec<Vec<u8>> {
        let snapshot = file.snapshot().unwrap();
        let entries = redb::ReadableTable::iter(snapshot.blocks(HistoryRow::TABLE)).unwrap();
        entries.map(|entry| entry.unwrap().0.value().to_vec()).collect()
    };
    let mut missing = 0;
    loop {
        let file = Disk::default().create();
        let write = file.begin_write(Commit::Visible).unwrap();
        write_run(&write, all.clone()).unwrap().unwrap();
        write.commit().unwrap();
        let keys = stored_keys(&file);
        assert!(keys.len() > 3);
        let Some(key) = keys.get(missing) else {
            break;
        };
        let write = file.begin_write(Commit::Visible).unwrap();
        write.raw_table(TABLES[0]).unwrap().remove(key.as_slice()).unwrap().unwrap();
        write.commit().unwrap();
        // The positions of the first missing row and of the first remaining one.
        let place = |key: &Vec<u8>| {
            let begins = |row: &HistoryRow| KeyBytes::of::<HistoryRow>(&row.key()).as_slice() == &key[8..];
            all.iter().position(begins).unwrap()
        };
        let (start, end) = (place(key), keys.get(missing + 1).map_or(all.len(), place));
        let view = TableView::<HistoryRow>::new(Vec::new(), file.snapshot().unwrap());
        for direction in [Direction::Ascending, Direction::Descending] {
            let cursor = view.cursor(HistoryRow::first_key(), HistoryRow::last_key(), direction);
            let told: Vec<_> = cursor.collect();
            let before_gap = if direction == Direction::Ascending { start } else { all.len() - end };
            let (error, rows) = told.split_last().unwrap();
            assert!(error.is_err(), "block {missing} {direction:?}: no error");
            assert!(
                rows.len() <= before_gap && rows.iter().all(Result::is_ok),
                "block {missing} {direction:?}"
            );
        }
        for (place, row) in all.iter().enumerate().step_by(17) {
            let is_missing = (start..end).contains(&place);
            assert_eq!(view.get(row.key()).is_err(), is_missing, "block {missing}, row {place}");
            assert_eq!(view.last_at_or_before(row.key()).is_err(), is_missing);
            assert_eq!(view.first_at_or_after(row.key()).is_err(), is_missing);
        }
        missing += 1;
    }
}

#[test]
fn a_table_that_lost_a_row_is_damage() {
    let file = Disk::default().create();
    let write = file.begin_write(Commit::Visible).unwrap();
    for page in 0..3_u8 {
        write.table(tables::ACCOUNTS).unwrap().put(&[page], b"page").unwrap();
    }
    write.commit().unwrap();
    file.snapshot().unwrap();
    // Simulate damage that removes a row without updating the row count.
    let write = file.begin_write(Commit::Visible).unwrap();
    write.raw_table(tables::ACCOUNTS).unwrap().remove([1].as_slice()).unwrap().unwrap();
    write.commit_uncounted().unwrap();
    let found = file.snapshot();
    assert!(matches!(found, Err(IndexError::Damaged { .. })), "{found:?}");
}

#[test]
fn a_changed_key_hides_no_value() {
    let file = Disk::default().create();
    let write = file.begin_write(Commit::Visible).unwrap();
    for page in [1_u8, 5, 9] {
        write.table(tables::ACCOUNTS).unwrap().put(&[page], b"page").unwrap();
    }
    write.commit().unwrap();
    // A flipped bit stores the value under another key.
    let write = file.begin_write(Commit::Visible).unwrap();
    let mut raw = write.raw_table(tables::ACCOUNTS).unwrap();
    let stored = raw.remove([5].as_slice()).unwrap().unwrap().value().to_vec();
    raw.insert([7].as_slice(), stored.as_slice()).unwrap();
    drop(raw);
    write.commit_uncounted().unwrap();
    let snapshot = file.snapshot().unwrap();
    let found = snapshot.get(tables::ACCOUNTS, &[5]);
    assert!(matches!(found, Err(IndexError::Damaged { .. })), "{found:?}");
    assert_eq!(snapshot.get(tables::ACCOUNTS, &[1]).unwrap().as_deref(), Some(b"page".as_slice()));
}

/// Reads everything in the index in every way.
fn read_all(file: &IndexFile) -> Result<(Vec<HistoryRow>, Vec<u64>, usize), IndexError> {
    let snapshot = file.snapshot()?;
    let history = TableView::<HistoryRow>::new(Vec::new(), snapshot.clone());
    let cursor = |direction| history.cursor(HistoryRow::first_key(), HistoryRow::last_key(), direction);
    let all: Vec<_> = cursor(Direction::Ascending).collect::<Result<_, _>>()?;
    let mut reverse: Vec<_> = cursor(Direction::Descending).collect::<Result<_, _>>()?;
    reverse.reverse();
    assert!(all == reverse, "both directions tell the same");
    for row in all.iter().step_by(50) {
        let found = history.last_in((row.holding, 0), row.key())?;
        assert_eq!(found.as_ref(), Some(row));
    }
    let keys = TableView::<KeyRow>::new(Vec::new(), snapshot.clone());
    let mut values = Vec::new();
    for number in (0..5000_u64).step_by(10) {
        values.extend(keys.probe(1, number.wrapping_mul(0x9e37_79b9_7f4a_7c15))?);
    }
    let pages = snapshot.range(tables::ACCOUNTS, Bound::Unbounded, Bound::Unbounded)?;
    Ok((all, values, pages.collect::<Result<Vec<_>, _>>()?.len()))
}

#[test]
fn a_flipped_bit_never_changes_an_answer() {
    let disk = Disk::default();
    let file = disk.create();
    let write = file.begin_write(Commit::Durable).unwrap();
    write_run::<HistoryRow, _>(&write, rows::<HistoryRow>(20_000)).unwrap();
    write_run::<KeyRow, _>(&write, rows::<KeyRow>(9_000)).unwrap();
    write.table(tables::ABOUT).unwrap().put(b"position", b"1").unwrap();
    for page in 0..100_u8 {
        write.table(tables::ACCOUNTS).unwrap().put(&[page], &[page; 500]).unwrap();
    }
    write.commit().unwrap();
    let expected = read_all(&file).unwrap();
    drop(file);
    let mut rng = Rng::new(11);
    let (mut noticed, mut harmless, mut rolled_back) = (0, 0, 0);
    for round in 0..400 {
        let copy = disk.copy();
        // A quarter of the flips hit the first pages, which hold the state of redb.
        let limit = if round % 4 == 0 { 20_000 } else { copy.length() };
        copy.flip(rng.below(limit as u64) as usize, rng.below(8) as u32);
        let Ok(damaged) = copy.open() else {
            noticed += 1;
            continue;
        };
        damaged.abandon();
        // The store compares the watermark with the journal, so an older state is not mistaken for the current one.
        match damaged.snapshot().and_then(|snapshot| snapshot.get(tables::ABOUT, b"position")) {
            Ok(Some(_)) => {}
            Ok(None) => {
                rolled_back += 1;
                continue;
            }
            Err(_) => {
                noticed += 1;
                continue;
            }
        }
        match read_all(&damaged) {
            Ok(found) => {
                assert!(found == expected, "round {round}: a silent change");
                harmless += 1;
            }
            Err(_) => noticed += 1,
        }
    }
    assert!(noticed > 50, "{noticed} noticed, {harmless} harmless, {rolled_back} rolled back");
}

#[test]
fn a_retired_file_reaches_its_disk_no_more() {
    let disk = Disk::default();
    let old = disk.create();
    let write = old.begin_write(Commit::Durable).unwrap();
    write.table(tables::ABOUT).unwrap().put(b"key", b"old").unwrap();
    // This transaction is not committed yet.
    old.retire();
    let new = disk.open().unwrap();
    let before = disk.copy();
    assert!(write.commit().is_err());
    assert!(old.begin_write(Commit::Durable).and_then(IndexWrite::commit).is_err());
    drop(old);
    assert!(disk.is_same(&before), "the retired file was written");
    let write = new.begin_write(Commit::Durable).unwrap();
    write.table(tables::ABOUT).unwrap().put(b"key", b"new").unwrap();
    write.commit().unwrap();
    assert_eq!(new.snapshot().unwrap().get(tables::ABOUT, b"key").unwrap().as_deref(), Some(&b"new"[..]));
}
