//! Tests of the end of a journal that was not closed: a torn end is dropped and reported, a damaged one is refused.

use super::*;
use crate::disk::Faults;
use crate::frame::{FRAMES_START, HEADER_BYTES, SECTOR_BYTES, header_place};
use crate::head_file::HeadFile;
use crate::record::path_of;
use crate::segment::JournalLocation;

fn path() -> PathBuf {
    path_of(&dir(), Position::FIRST)
}

/// Options for a single segment.
fn large() -> SegmentOptions {
    SegmentOptions { segment_bytes: 1 << 20, ..small() }
}

/// Returns the offset after the last acknowledged frame, according to `HEAD` on this disk.
fn acknowledged_end(disk: &SimDisk) -> u64 {
    let location = JournalLocation { disk: Arc::new(disk.clone()), dir: dir(), identity: identity() };
    HeadFile::open(&location).unwrap().1.end
}

/// A disk whose last operation was an append of several chunks, and the offsets where its bytes begin and end. The
/// record in `HEAD` has it only if `is_marked`.
struct LastWrite {
    disk: SimDisk,
    before: Vec<ChunkDraft>,
    all: Vec<ChunkDraft>,
    start: usize,
    end: usize,
}

fn last_write(is_marked: bool) -> LastWrite {
    let disk = new_disk();
    let journal = open_with(&disk, large()).unwrap();
    let before = fill(&journal, 3);
    let head = journal.head();
    let start = header_place(acknowledged_end(&disk)) as usize;
    let mark = disk.bytes(&dir().join("HEAD")).unwrap();
    let drafts = [draft(head.next.get(), 2, 900), draft(head.next.get() + 2, 1, 700)];
    journal.append(head.next, &drafts).unwrap();
    let end = acknowledged_end(&disk) as usize;
    drop(journal);
    if !is_marked {
        disk.set_bytes(&dir().join("HEAD"), mark).unwrap();
    }
    LastWrite { disk, all: [&before[..], &drafts].concat(), before, start, end }
}

/// Returns the disk with changed bytes in its segment.
fn changed(disk: &SimDisk, change: impl FnOnce(&mut Vec<u8>)) -> SimDisk {
    let mut bytes = disk.bytes(&path()).unwrap();
    change(&mut bytes);
    disk.set_bytes(&path(), bytes).unwrap();
    disk.clone()
}

fn open_large(disk: &SimDisk) -> Result<SegmentedJournal, JournalError> {
    open_with(disk, large())
}

#[test]
fn a_sector_that_is_missing_was_torn_by_the_cut() {
    let write = last_write(false);
    let sector = SECTOR_BYTES as usize;
    let sectors = (write.start / sector)..=((write.end - 1) / sector);
    for missing in sectors.clone() {
        let disk = changed(&write.disk.after_power_cut(4), |bytes| {
            let from = (missing * sector).max(write.start);
            bytes[from..((missing + 1) * sector).min(write.end)].fill(0);
        });
        let journal = open_large(&disk).unwrap();
        assert_eq!(contents(&journal), write.before, "sector {missing}");
        let dropped = journal.dropped().expect("it is told");
        assert!(dropped.may_have_been_acknowledged);
        assert_eq!(dropped.position, journal.head().next.get());
        assert!(dropped.bytes > 0 && dropped.bytes <= (write.end - write.start) as u64 + SECTOR_BYTES);
        // The torn write is gone for good, and the journal accepts appends.
        let more = fill(&journal, 2);
        drop(journal);
        let journal = open_large(&disk).unwrap();
        assert_eq!(journal.dropped(), None);
        assert_eq!(contents(&journal), [&write.before[..], &more].concat());
    }
    assert!(sectors.count() > 5);
}

#[test]
fn an_old_block_at_the_end_was_torn_by_the_cut() {
    let write = last_write(false);
    let whole = write.disk.bytes(&path()).unwrap();
    let block = crate::disk::BLOCK_BYTES;
    // Restores the block that the last write shares with earlier ones to its previous content.
    let start = write.start / block * block;
    let disk = changed(&write.disk.after_power_cut(4), |bytes| {
        let end = (start + block).min(bytes.len());
        bytes[write.start..end].fill(0);
    });
    assert!(whole[write.start..start + block].iter().any(|byte| *byte != 0));
    let journal = open_large(&disk).unwrap();
    assert_eq!(contents(&journal), write.before);
}

#[test]
fn refuses_any_flipped_bit_of_the_last_write() {
    let write = last_write(false);
    for bit in (write.start * 8..write.end * 8).step_by(3) {
        let disk = changed(&write.disk.after_power_cut(4), |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        match open_large(&disk) {
            Err(
                JournalError::Damaged { path: named, .. } | JournalError::NewerFormat { path: named, .. },
            ) => {
                assert_eq!(named, path());
            }
            Err(other) => panic!("bit {bit}: {other}"),
            // The bytes between frames have no meaning.
            Ok(journal) => assert_eq!(contents(&journal), write.all, "bit {bit}"),
        }
    }
}

#[test]
fn never_drops_acknowledged_bytes() {
    let write = last_write(true);
    for disk in [write.disk.synced_copy(), write.disk.after_power_cut(4)] {
        let is_same_boot = disk.boot_id() == write.disk.boot_id();
        // A power cut may remove the newest `HEAD`, which was not synced.
        if !is_same_boot && acknowledged_end(&disk) < write.end as u64 {
            continue;
        }
        let whole = disk.synced_copy();
        assert_eq!(contents(&open_large(&whole).unwrap()), write.all);
        for from in [write.start, write.start + HEADER_BYTES, write.end - 300] {
            let disk = changed(&disk.synced_copy(), |bytes| bytes[from..write.end].fill(0));
            assert!(matches!(open_large(&disk).unwrap_err(), JournalError::Damaged { .. }));
        }
    }
}

#[test]
fn a_write_cut_off_by_a_kill_was_never_acknowledged() {
    let write = last_write(false);
    for until in write.start..write.end {
        let disk = changed(&write.disk.synced_copy(), |bytes| bytes[until..write.end].fill(0));
        let journal = open_large(&disk).unwrap();
        assert_eq!(contents(&journal), write.before, "cut at {until}");
        if let Some(dropped) = journal.dropped() {
            assert!(!dropped.may_have_been_acknowledged);
        }
    }
    // A complete write counts: its outcome was unknown.
    assert_eq!(contents(&open_large(&write.disk.synced_copy()).unwrap()), write.all);
}

#[test]
fn a_bad_record_before_a_good_one_is_damage() {
    let disk = new_disk();
    let journal = open_with(&disk, large()).unwrap();
    let mark = disk.bytes(&dir().join("HEAD")).unwrap();
    fill(&journal, 6);
    drop(journal);
    let end = acknowledged_end(&disk) as usize;
    // `HEAD` shows nothing, and still only the last write may be dropped.
    disk.set_bytes(&dir().join("HEAD"), mark).unwrap();
    let last_start = 3 * SECTOR_BYTES as usize;
    for sector in 1..(end - last_start) / SECTOR_BYTES as usize {
        let disk = changed(&disk.after_power_cut(4), |bytes| {
            let from = sector * SECTOR_BYTES as usize;
            bytes[from..from + SECTOR_BYTES as usize].fill(0);
        });
        match open_large(&disk) {
            Err(JournalError::Damaged { what, .. }) => assert!(what.contains("a later write"), "{what}"),
            Ok(journal) => {
                let dropped = journal.dropped().expect("something was taken out");
                let bytes = end as u64 - FRAMES_START;
                assert!(dropped.bytes < bytes / 2, "{dropped:?} of {bytes}");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn forgets_a_write_whose_sync_failed() {
    let disk = new_disk();
    let journal = open_with(&disk, large()).unwrap();
    let before = fill(&journal, 3);
    disk.set_faults(Faults { fail_sync: Some(disk.syncs() + 1), ..Faults::default() });
    let head = journal.head();
    let failed = journal.append(head.next, &script_append(3, head.next.get())).unwrap_err();
    assert!(matches!(failed, JournalError::OutcomeUnknown { .. }), "{failed}");
    drop(journal);
    disk.set_faults(Faults::default());
    // The machine keeps running: its page cache may show bytes that are not on disk.
    let journal = open_with(&disk, large()).unwrap();
    assert_eq!(contents(&journal), before);
    let more = fill(&journal, 4);
    for seed in 0..8 {
        let found = contents(&open_with(&disk.after_power_cut(seed), large()).unwrap());
        assert_eq!(found, [&before[..], &more].concat());
    }
}

#[test]
fn a_power_cut_after_closing_takes_nothing() {
    let disk = new_disk();
    let journal = open(&disk).unwrap();
    let all = fill(&journal, 5);
    journal.close().unwrap();
    drop(journal);
    for seed in 0..16 {
        let journal = open(&disk.after_power_cut(seed)).unwrap();
        assert_eq!(contents(&journal), all, "seed {seed}");
        assert_eq!(journal.dropped(), None);
    }
}

#[test]
fn a_full_disk_refuses_and_recovers() {
    let disk = new_disk();
    let journal = open(&disk).unwrap();
    let mut all = fill(&journal, 4);
    disk.set_faults(Faults { is_full: true, ..Faults::default() });
    let mut refused = 0;
    for i in 4..40 {
        let head = journal.head();
        match journal.make_room() {
            Ok(()) => {
                let drafts = script_append(i, head.next.get());
                journal.append(head.next, &drafts).unwrap();
                all.extend(drafts);
            }
            Err(JournalError::Storage { cause, .. }) => {
                assert_eq!(cause.kind(), std::io::ErrorKind::StorageFull);
                refused += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 5);
    assert_eq!(contents(&journal), all);
    disk.set_faults(Faults::default());
    all.extend(fill(&journal, 4));
    assert_eq!(contents(&journal), all);
}

#[test]
fn small_appends_share_a_block() {
    let disk = new_disk();
    let journal = open_with(&disk, SegmentOptions { segment_bytes: 1 << 20, ..small() }).unwrap();
    for i in 1..=1000 {
        let draft =
            ChunkDraft { first: at(i), entries: 1, sections: vec![(SectionId(1), vec![7; 40].into())] };
        journal.append(at(i), &[draft]).unwrap();
    }
    journal.close().unwrap();
    let bytes = disk.bytes(&path()).unwrap().len();
    assert!(bytes < 1000 * 180, "{bytes}");
}
