//! Merges that copy whole stored blocks.

use crate::file::{Commit, IndexFile};
use crate::merge::{Merge, MergeLimits, sweep_step};
use crate::order::Direction;
use crate::row::Row;
use crate::rows::LogRow;
use crate::runs::write_run;
use crate::table::TableView;

use super::disk::Disk;

fn row(ledger: u32, log: u64) -> LogRow {
    LogRow { ledger, log, position: 7 * log, date: log.cast_signed() * log.cast_signed() % 1_000_003 }
}

fn write(file: &IndexFile, rows: &[LogRow]) {
    let write = file.begin_write(Commit::Visible).unwrap();
    write_run::<LogRow, _>(&write, rows).unwrap();
    write.commit().unwrap();
}

/// Merges until no merge is due. Returns the number of merges.
fn merge_all(file: &IndexFile, slice_bytes: usize) -> usize {
    let limits = MergeLimits { slice_bytes, ..MergeLimits::default() };
    let mut count = 0;
    while let Some(mut merge) = Merge::<LogRow>::begin(file, limits).unwrap() {
        while !merge.step().unwrap() {}
        count += 1;
    }
    while sweep_step(file).unwrap() {}
    count
}

/// Compares the table with the expected rows, in both directions and one by one.
#[track_caller]
fn check(file: &IndexFile, rows: &[LogRow]) {
    let view = TableView::<LogRow>::new(Vec::new(), file.snapshot().unwrap());
    let all = |direction| -> Vec<LogRow> {
        view.cursor(LogRow::first_key(), LogRow::last_key(), direction).map(|row| row.unwrap()).collect()
    };
    assert!(all(Direction::Ascending) == rows);
    let mut descending = all(Direction::Descending);
    descending.reverse();
    assert!(descending == rows);
    for row in rows.iter().step_by(97) {
        assert_eq!(view.get(row.key()).unwrap().as_ref(), Some(row));
    }
    assert_eq!(view.row_count(), rows.len() as u64);
    let run = &view.runs()[0];
    let (first, last) = (rows[0].key(), rows[rows.len() - 1].key());
    assert_eq!(
        (LogRow::read_key(run.first.as_slice()), LogRow::read_key(run.last.as_slice())),
        (first, last)
    );
}

#[test]
fn runs_in_sequence_become_one_over_two_tiers() {
    for slice_bytes in [10_000, 1 << 20] {
        let file = Disk::default().create();
        let rows: Vec<LogRow> = (0..400_000).map(|log| row(1, log)).collect();
        // Write runs of several blocks, of one block that is more than half full, and of very few rows.
        let mut rest = rows.as_slice();
        let mut merges = 0;
        for size in [9_000, 2_000, 3, 12_345].into_iter().cycle().take(64) {
            let (run, after) = rest.split_at(size);
            write(&file, run);
            merges += merge_all(&file, slice_bytes);
            rest = after;
        }
        assert_eq!(merges, 9);
        check(&file, &rows[..rows.len() - rest.len()]);
        let view = TableView::<LogRow>::new(Vec::new(), file.snapshot().unwrap());
        let [run] = view.runs() else { panic!("there are several runs") };
        assert_eq!(run.tier, 2);
        assert!(run.bytes / run.blocks > 5_000, "{} blocks of {} bytes", run.blocks, run.bytes);
    }
}

#[test]
fn blocks_of_ledgers_interleave() {
    let file = Disk::default().create();
    let mut rows = Vec::new();
    for part in 0..8 {
        let mut run = Vec::new();
        for ledger in [1, 2, 5] {
            let logs = part * 10_000..part * 10_000 + [3_000, 50, 9_999][ledger as usize % 3];
            run.extend(logs.map(|log| row(ledger, log)));
        }
        write(&file, &run);
        rows.extend(run);
    }
    rows.sort_by_key(Row::key);
    assert_eq!(merge_all(&file, 1 << 20), 1);
    check(&file, &rows);
}

#[test]
fn small_runs_fill_their_blocks() {
    let file = Disk::default().create();
    let rows: Vec<LogRow> = (0..8 * 20).map(|log| row(1, log)).collect();
    for run in rows.chunks(20) {
        write(&file, run);
    }
    assert_eq!(merge_all(&file, 1 << 20), 1);
    check(&file, &rows);
    let view = TableView::<LogRow>::new(Vec::new(), file.snapshot().unwrap());
    assert_eq!(view.runs()[0].blocks, 1);
}
