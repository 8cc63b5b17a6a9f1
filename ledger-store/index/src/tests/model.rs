//! Compares every table with a map in memory, while memtables, runs and merges change.

use std::collections::BTreeMap;

use crate::file::{Commit, IndexFile};
use crate::for_each_run_table;
use crate::merge::{Merge, MergeLimits, sweep_step};
use crate::merged::merge_memtables;
use crate::order::Direction;
use crate::row::{MemtableRows, Row, freeze_memtable};
use crate::rows::tests::Rng;
use crate::rows::{BackdatedRow, DocumentRow, HistoryRow, KeyRow, LogRow, Quantity, SharedBytes, TermRow};
use crate::runs::write_run;
use crate::table::TableView;

use super::disk::Disk;
use super::samples::{Sample, State};

/// A table, and the map with its expected content.
struct Bench<R: Sample> {
    disk: Disk,
    file: Option<IndexFile>,
    memtables: Vec<MemtableRows<R>>,
    model: BTreeMap<R::Key, R>,
    state: State,
    rng: Rng,
}

/// Limits with which merges write many small slices.
const LIMITS: MergeLimits = MergeLimits { run_bytes_max: 400_000, slice_bytes: 15_000 };

impl<R: Sample> Bench<R> {
    fn new(seed: u64) -> Self {
        let disk = Disk::default();
        let file = Some(disk.create());
        let (memtables, model) = (Vec::new(), BTreeMap::new());
        Self { disk, file, memtables, model, state: State::default(), rng: Rng::new(seed) }
    }

    fn file(&self) -> &IndexFile {
        self.file.as_ref().unwrap()
    }

    fn view(&self) -> TableView<R> {
        TableView::new(self.memtables.clone(), self.file().snapshot().unwrap())
    }

    fn add_memtable(&mut self, rows: u64) {
        let mut batch: Vec<R> = (0..rows).map(|_| R::next(&mut self.rng, &mut self.state)).collect();
        batch.sort_by_key(Row::key);
        batch.dedup_by_key(|row| row.key());
        for row in &batch {
            let previous = self.model.range(..row.key()).next_back();
            if let Some(key) = previous.filter(|(_, older)| row.supersedes(older)).map(|(key, _)| key.clone())
            {
                self.model.remove(&key);
            }
            self.model.insert(row.key(), row.clone().alone());
        }
        self.memtables.push(freeze_memtable(batch));
    }

    fn merge_in_memory(&mut self) {
        if self.memtables.len() > 1 {
            let start = self.rng.below(self.memtables.len() as u64 - 1) as usize;
            let count = 2 + self.rng.below((self.memtables.len() - start - 1) as u64) as usize;
            let merged = merge_memtables(&self.memtables[start..start + count]);
            self.memtables.splice(start..start + count, [merged]);
        }
    }

    fn flush(&mut self) {
        let count = self.rng.below(self.memtables.len() as u64 + 1) as usize;
        let frozen: Vec<_> = self.memtables.drain(..count).collect();
        let commit = if self.rng.below(3) == 0 { Commit::Durable } else { Commit::Visible };
        let write = self.file().begin_write(commit).unwrap();
        let rows = merge_memtables(&frozen);
        let run = write_run::<R, _>(&write, rows.iter()).unwrap();
        assert!(run.is_some() || rows.iter().all(Row::is_removal));
        write.commit().unwrap();
    }

    fn merge_on_disk(&mut self) {
        let give_up = self.rng.below(4) == 0;
        let Some(mut merge) = Merge::<R>::begin(self.file.as_ref().unwrap(), LIMITS).unwrap() else {
            return;
        };
        while !merge.step().unwrap() {
            if give_up && self.rng.below(2) == 0 {
                break;
            }
        }
    }

    fn reopen(&mut self) {
        self.file = None;
        self.file = Some(self.disk.open().unwrap());
    }

    fn run(&mut self, steps: usize, rows: u64) {
        for step in 0..steps {
            match self.rng.below(12) {
                0..=4 => {
                    let rows = self.rng.below(rows);
                    self.add_memtable(rows);
                }
                5 => self.merge_in_memory(),
                6..=8 => self.flush(),
                9 => self.merge_on_disk(),
                10 => while sweep_step(self.file()).unwrap() {},
                _ => self.reopen(),
            }
            if step % 8 == 7 {
                self.check();
            }
        }
        self.check();
    }

    fn check(&mut self) {
        let view = self.view();
        let living = |from: &R::Key, to: &R::Key| -> Vec<R> {
            let rows = self.model.range(from.clone()..=to.clone()).map(|(_, row)| row);
            rows.filter(|row| !row.is_removal()).cloned().collect()
        };
        let mut ranges = vec![(R::first_key(), R::last_key())];
        for _ in 0..10 {
            let (one, other) =
                (R::any_key(&mut self.rng, &self.state), R::any_key(&mut self.rng, &self.state));
            let (first, last) = R::group(one.clone());
            ranges.push((first.clone(), last.clone()));
            // The bounds must not separate a row from the ones that it supersedes.
            if !R::SUPERSEDES {
                ranges.push((one.clone().min(other.clone()), one.clone().max(other)));
                ranges.push((first, one.clone()));
                ranges.push((one, last));
            }
        }
        for (from, to) in ranges {
            let mut expected = living(&from, &to);
            let read = |direction| -> Vec<R> {
                let rows = view.cursor(from.clone(), to.clone(), direction).current();
                rows.map(|row| row.unwrap().alone()).collect()
            };
            assert!(read(Direction::Ascending) == expected, "{from:?} to {to:?} ascending");
            expected.reverse();
            assert!(read(Direction::Descending) == expected, "{from:?} to {to:?} descending");
            // The versions of one key are a sequence, of which the last counts.
            if !R::SUPERSEDES || R::same_sequence(&from, &to) {
                let last = view.last_in(from.clone(), to.clone()).unwrap();
                let last = last.filter(|last| !last.is_removal()).map(R::alone);
                assert_eq!(last.as_ref(), expected.first(), "{from:?} to {to:?}, last");
            }
            if !R::SUPERSEDES {
                let first = view.first_in(from.clone(), to.clone()).unwrap().map(R::alone);
                assert_eq!(first.as_ref(), expected.last(), "{from:?} to {to:?}, first");
                assert_eq!(view.get(from.clone()).unwrap().map(R::alone).as_ref(), self.model.get(&from));
            }
        }
        view.check_filters().unwrap();
        if !R::SUPERSEDES {
            assert_eq!(view.row_count(), self.model.len() as u64);
            for _ in 0..20 {
                let key = R::any_key(&mut self.rng, &self.state);
                let before = self.model.range(..=key.clone()).next_back().map(|(_, row)| row);
                assert_eq!(view.last_at_or_before(key.clone()).unwrap().map(R::alone).as_ref(), before);
                let after = self.model.range(key.clone()..).next().map(|(_, row)| row);
                assert_eq!(view.first_at_or_after(key).unwrap().map(R::alone).as_ref(), after);
            }
        }
    }
}

fn check<R: Sample>() {
    for seed in 0..4 {
        Bench::<R>::new(seed).run(100, if seed % 2 == 0 { 40 } else { 600 });
    }
}

macro_rules! model_tests {
    ($($(#[$doc:meta])* $table:ident: $row:ty;)*) => {
        /// One test for each table.
        mod agrees_with_the_model {
            $(
                #[test]
                fn $table() {
                    super::check::<$row>();
                }
            )*
        }
    };
}

for_each_run_table!(model_tests);

/// Flushes a number of runs of equal size.
fn with_runs<R: Sample>(runs: usize, rows: u64) -> Bench<R> {
    let mut bench = Bench::<R>::new(99);
    for _ in 0..runs {
        bench.add_memtable(rows);
        let write = bench.file().begin_write(Commit::Durable).unwrap();
        write_run::<R, _>(&write, bench.memtables.remove(0).iter()).unwrap().unwrap();
        write.commit().unwrap();
    }
    bench
}

#[test]
fn sums_of_sources_add_up_to_the_sum_at_a_date() {
    let mut bench = with_runs::<BackdatedRow>(11, 300);
    bench.add_memtable(200);
    bench.add_memtable(200);
    for round in 0..2 {
        let view = bench.view();
        for holding in 0..20 {
            for date in [-600, -100, 0, 77, 600] {
                let rows = view.last_of_each((holding, i64::MIN, 0), (holding, date, u64::MAX)).unwrap();
                let input = rows.iter().fold(Quantity::ZERO, |sum, row| sum.plus(&row.run_input));
                let count: u32 = rows.iter().map(|row| row.run_count).sum();
                let range = (holding, i64::MIN, 0)..=(holding, date, u64::MAX);
                let expected: Vec<_> = bench.model.range(range).map(|(_, row)| row).collect();
                assert_eq!(count as usize, expected.len());
                let sum = expected.iter().fold(Quantity::ZERO, |sum, row| sum.plus(&row.input));
                assert_eq!(input, sum, "holding {holding} at {date}, round {round}");
            }
        }
        let merged = merge_all::<BackdatedRow>(bench.file());
        assert_eq!(merged, usize::from(round == 0));
    }
}

fn merge_all<R: Row>(file: &IndexFile) -> usize {
    let mut count = 0;
    while let Some(mut merge) = Merge::<R>::begin(file, MergeLimits::default()).unwrap() {
        while !merge.step().unwrap() {}
        count += 1;
    }
    count
}

#[test]
fn eight_runs_of_a_tier_become_one_of_the_next() {
    let bench = with_runs::<LogRow>(64 + 3, 20);
    assert_eq!(merge_all::<LogRow>(bench.file()), 9);
    let tiers: Vec<u8> = bench.view().runs().iter().map(|run| run.tier).collect();
    assert_eq!(tiers, [2, 0, 0, 0]);
}

#[test]
fn no_merge_exceeds_the_greatest_size_of_a_run() {
    let mut bench = with_runs::<KeyRow>(40, 1000);
    let limits = MergeLimits { run_bytes_max: 30_000, slice_bytes: 10_000 };
    while let Some(mut merge) = Merge::<KeyRow>::begin(bench.file(), limits).unwrap() {
        while !merge.step().unwrap() {}
    }
    let view = bench.view();
    assert!(view.runs().iter().all(|run| run.bytes <= 32_000), "{:?}", view.runs());
    assert!(view.runs().len() < 40);
    bench.check();
}

#[test]
fn removals_vanish_when_nothing_older_is_left() {
    let file = Disk::default().create();
    for position in 0..8 {
        let rows = (0..500).map(|id| TermRow::new(1, 2, id, position * 1000 + id, position != 7 || id == 3));
        let write = file.begin_write(Commit::Visible).unwrap();
        write_run(&write, rows).unwrap();
        write.commit().unwrap();
    }
    assert_eq!(merge_all::<TermRow>(&file), 1);
    let view = TableView::<TermRow>::new(Vec::new(), file.snapshot().unwrap());
    assert_eq!(view.row_count(), 1);
    assert_eq!(view.runs()[0].tier, 1);
}

#[test]
fn many_removals_cause_a_merge_of_all_runs() {
    let file = Disk::default().create();
    let write_all = |count: u64, version: u64, value: Option<SharedBytes>| {
        let rows = (0..count).map(|number| {
            let key = [&[0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 1][..], &number.to_be_bytes()].concat();
            DocumentRow { key: key.into(), version, value: value.clone() }
        });
        let write = file.begin_write(Commit::Visible).unwrap();
        write_run(&write, rows).unwrap();
        write.commit().unwrap();
        merge_all::<DocumentRow>(&file)
    };
    assert_eq!(write_all(40_000, 1, Some(SharedBytes::default())), 0);
    assert_eq!(write_all(4_000, 2, None), 0, "too few");
    assert_eq!(write_all(5_000, 3, None), 1);
    let snapshot = file.snapshot().unwrap();
    let [run] = &snapshot.runs(DocumentRow::TABLE)[..] else { panic!("there are several runs") };
    assert_eq!((run.rows, run.removals), (35_000, 0));
}

#[test]
fn a_merge_that_removes_every_row_leaves_no_run() {
    let file = Disk::default().create();
    for position in 0..8 {
        let row = TermRow::new(1, 2, 3, position, position < 7);
        let write = file.begin_write(Commit::Visible).unwrap();
        write_run(&write, [row]).unwrap();
        write.commit().unwrap();
    }
    assert_eq!(merge_all::<TermRow>(&file), 1);
    assert!(file.snapshot().unwrap().runs(TermRow::TABLE).is_empty());
}

#[test]
fn probing_finds_every_value_of_a_fingerprint() {
    let mut bench = with_runs::<KeyRow>(10, 2000);
    bench.add_memtable(1000);
    let view = bench.view();
    for number in 0..5500_u64 {
        let fingerprint = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let expected = bench.model.range((1, fingerprint, 0)..=(1, fingerprint, u64::MAX));
        let expected: Vec<u64> = expected.map(|(key, _)| key.2).collect();
        assert_eq!(view.probe(1, fingerprint).unwrap(), expected);
    }
}

#[test]
fn a_snapshot_still_reads_merged_runs() {
    let mut bench = with_runs::<HistoryRow>(8, 500);
    let old = bench.view();
    assert_eq!(merge_all::<HistoryRow>(bench.file()), 1);
    while sweep_step(bench.file()).unwrap() {}
    let rows = |view: &TableView<HistoryRow>| -> Vec<HistoryRow> {
        let cursor = view.cursor(HistoryRow::first_key(), HistoryRow::last_key(), Direction::Ascending);
        cursor.collect::<Result<_, _>>().unwrap()
    };
    assert_eq!((old.runs().len(), bench.view().runs().len()), (8, 1));
    assert!(rows(&old) == rows(&bench.view()));
    bench.check();
}

#[test]
fn a_run_that_is_flushed_during_a_merge_stays() {
    let mut bench = with_runs::<HistoryRow>(8, 3000);
    let file = bench.file().clone();
    let limits = MergeLimits { slice_bytes: 10_000, ..MergeLimits::default() };
    let mut merge = Merge::<HistoryRow>::begin(&file, limits).unwrap().unwrap();
    let mut flushed = 0;
    while !merge.step().unwrap() {
        if flushed < 3 {
            bench.add_memtable(100);
            bench.rng = Rng::new(flushed);
            let write = file.begin_write(Commit::Visible).unwrap();
            write_run::<HistoryRow, _>(&write, bench.memtables.remove(0).iter()).unwrap();
            write.commit().unwrap();
            flushed += 1;
        }
    }
    assert_eq!(flushed, 3);
    assert!(Merge::<HistoryRow>::begin(&file, limits).unwrap().is_none(), "a merge is at work");
    drop(merge);
    let tiers: Vec<u8> = bench.view().runs().iter().map(|run| run.tier).collect();
    assert_eq!(tiers, [1, 0, 0, 0]);
    bench.check();
}

#[test]
fn an_interrupted_merge_changes_nothing() {
    let mut bench = with_runs::<HistoryRow>(8, 3000);
    let limits = MergeLimits { slice_bytes: 10_000, ..MergeLimits::default() };
    let file = bench.file().clone();
    for slices in [1, 3, 7] {
        let mut merge = Merge::<HistoryRow>::begin(&file, limits).unwrap().unwrap();
        for _ in 0..slices {
            assert!(!merge.step().unwrap());
        }
        // A later durable commit makes the slices durable as well.
        file.begin_write(Commit::Durable).unwrap().commit().unwrap();
        let crashed = bench.disk.copy().open().unwrap();
        let (listed, stored) = stored_runs(&crashed);
        assert_eq!((listed.len(), stored.len()), (8, 9));
        while sweep_step(&crashed).unwrap() {}
        assert_eq!(stored_runs(&crashed), (listed.clone(), listed));
        let alive = bench.file.replace(crashed);
        bench.check();
        bench.file = alive;
        drop(merge);
        bench.check();
        while sweep_step(&file).unwrap() {}
        assert_eq!(stored_runs(&file).1.len(), 8);
    }
    assert_eq!(merge_all::<HistoryRow>(&file), 1);
    bench.check();
}

/// Returns the history runs that the list names, and those that have blocks or filter pages.
fn stored_runs(file: &IndexFile) -> (Vec<u64>, Vec<u64>) {
    let snapshot = file.snapshot().unwrap();
    let mut listed: Vec<u64> = snapshot.runs(HistoryRow::TABLE).iter().map(|run| run.id).collect();
    let mut stored = Vec::new();
    for table in [snapshot.blocks(HistoryRow::TABLE), snapshot.filter_pages()] {
        for entry in redb::ReadableTable::iter(table).unwrap() {
            stored.push(u64::from_be_bytes(*entry.unwrap().0.value().first_chunk().unwrap()));
        }
    }
    stored.sort_unstable();
    stored.dedup();
    listed.sort_unstable();
    (listed, stored)
}
