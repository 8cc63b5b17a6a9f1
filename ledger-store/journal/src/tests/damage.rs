//! Tests with files that are missing, foreign, truncated or changed.

use super::*;
use crate::chunk::encode;
use crate::frame::FRAMES_START;
use crate::record::{HEAD_FILE, path_of};

/// Creates a disk with a closed journal of several segments. Returns it with the content of the journal.
fn closed_journal() -> (SimDisk, Vec<ChunkDraft>) {
    let disk = new_disk();
    let journal = open(&disk).unwrap();
    let all = fill(&journal, 16);
    journal.close().unwrap();
    drop(journal);
    assert!(sealed_segments(&disk).len() >= 2);
    (disk.synced_copy(), all)
}

/// The same for a journal whose process was killed.
fn killed_journal() -> (SimDisk, Vec<ChunkDraft>) {
    let disk = new_disk();
    let journal = open(&disk).unwrap();
    let all = fill(&journal, 16);
    (disk.synced_copy(), all)
}

#[test]
fn a_missing_segment_is_named() {
    let (disk, _) = closed_journal();
    let (killed, _) = killed_journal();
    for (disk, gone) in segments(&disk).into_iter().flat_map(|path| [(&disk, path.clone()), (&killed, path)])
    {
        let disk = disk.synced_copy();
        disk.remove(&gone).unwrap();
        match open(&disk).unwrap_err() {
            JournalError::Missing { path, first } => {
                assert_eq!((&path, path_of(&dir(), first)), (&gone, gone.clone()));
            }
            other => panic!("{other}"),
        }
    }
    for name in disk.list(&dir()).unwrap() {
        disk.remove(&dir().join(name)).unwrap();
    }
    assert!(matches!(open(&disk).unwrap_err(), JournalError::Missing { .. }));
}

#[test]
fn a_missing_mark_is_named() {
    let (disk, _) = closed_journal();
    disk.remove(&dir().join(HEAD_FILE)).unwrap();
    match open(&disk).unwrap_err() {
        JournalError::Missing { path, .. } => assert_eq!(path, dir().join(HEAD_FILE)),
        other => panic!("{other}"),
    }
}

#[test]
fn a_foreign_file_is_named_and_left() {
    for name in ["notes.txt", "00000000000000000001.redb", "1.log", "HEAD.old"] {
        let (disk, _) = closed_journal();
        let foreign = dir().join(name);
        disk.open(&foreign, crate::disk::OpenMode::CreateNew).unwrap();
        let before = disk.list(&dir()).unwrap();
        match open(&disk).unwrap_err() {
            JournalError::UnknownFile { path } => assert_eq!(path, foreign),
            other => panic!("{other}"),
        }
        assert_eq!(disk.list(&dir()).unwrap(), before);
    }
}

#[test]
fn a_file_without_bytes_is_damage_and_not_new() {
    let (disk, _) = closed_journal();
    for emptied in segments(&disk) {
        let disk = disk.synced_copy();
        disk.set_bytes(&emptied, Vec::new()).unwrap();
        match open(&disk).unwrap_err() {
            JournalError::ZeroLength { path } => assert_eq!(path, emptied),
            other => panic!("{other}"),
        }
        assert!(disk.bytes(&emptied).unwrap().is_empty(), "it is left as it was");
    }
    disk.set_bytes(&dir().join(HEAD_FILE), Vec::new()).unwrap();
    assert!(matches!(open(&disk).unwrap_err(), JournalError::Damaged { .. }));
}

#[test]
fn a_foreign_segment_is_told_from_damage() {
    let (disk, _) = closed_journal();
    let other = Identity { store: StoreId([8; 16]), secret: Secret([9; 32]) };
    let opened = SegmentedJournal::open(Arc::new(disk.clone()), dir(), other, small());
    match opened.unwrap_err() {
        JournalError::ForeignStore { found, .. } => assert_eq!(found, identity().store),
        other => panic!("{other}"),
    }
    let forged = Identity { store: identity().store, secret: Secret([9; 32]) };
    let opened = SegmentedJournal::open(Arc::new(disk), dir(), forged, small());
    assert!(matches!(opened.unwrap_err(), JournalError::Damaged { .. }));
}

#[test]
fn segments_of_two_histories_do_not_join() {
    let (disk, _) = closed_journal();
    let fork = new_disk();
    // Write other bytes at the same positions, so that files of the same names are created.
    let journal = open(&fork).unwrap();
    for i in 0..16 {
        let mut drafts = script_append(i, journal.head().next.get());
        flip(&mut drafts[0], 1);
        journal.make_room().unwrap();
        journal.append(drafts[0].first, &drafts).unwrap();
    }
    drop(journal);
    let swapped = &sealed_segments(&disk)[1];
    disk.set_bytes(swapped, fork.bytes(swapped).unwrap()).unwrap();
    match open(&disk).unwrap_err() {
        JournalError::Gap { path, expected, found } => assert_eq!((path, expected), (swapped.clone(), found)),
        other => panic!("{other}"),
    }
}

/// Changes the first byte of a chunk draft.
fn flip(draft: &mut ChunkDraft, bits: u8) {
    let bytes = &mut draft.sections[0].1;
    let mut changed = bytes.to_vec();
    changed[0] ^= bits;
    *bytes = changed.into();
}

#[test]
fn a_chunk_of_another_history_is_noticed() {
    // Histories that differ in one byte have their chunks at the same offsets.
    let written = |salt: u8, appends| {
        let disk = new_disk();
        let journal = open(&disk).unwrap();
        for i in 0..appends {
            let mut drafts = script_append(i, journal.head().next.get());
            flip(&mut drafts[0], salt);
            journal.make_room().unwrap();
            journal.append(drafts[0].first, &drafts).unwrap();
        }
        disk.synced_copy()
    };
    let path = path_of(&dir(), Position::FIRST);
    let other = written(1, 1).bytes(&path).unwrap();
    let first_write = FRAMES_START as usize..other.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let with_other = |appends| {
        let disk = written(0, appends);
        let mut bytes = disk.bytes(&path).unwrap();
        bytes[first_write.clone()].copy_from_slice(&other[first_write.clone()]);
        disk.set_bytes(&path, bytes).unwrap();
        disk
    };
    // Test the last segment, which an opening reads completely, and a sealed one, of which it reads the end.
    let opened = open(&with_other(3)).map(drop);
    assert!(matches!(opened, Err(JournalError::Damaged { .. })), "{opened:?}");
    let scanned = open(&with_other(16)).unwrap().scan(Position::FIRST, usize::MAX).map(drop);
    assert!(matches!(scanned, Err(JournalError::Damaged { .. })), "{scanned:?}");
}

/// Opens the journal and reads everything. Succeeds only if that returns what was written.
fn open_and_compare(disk: &SimDisk, all: &[ChunkDraft]) -> Result<(), JournalError> {
    let journal = open(disk)?;
    let read = try_contents(&journal)?;
    assert!(read == all, "damaged bytes were served");
    Ok(())
}

/// Returns the files with entries, and `HEAD`.
fn files(disk: &SimDisk) -> Vec<PathBuf> {
    disk.list(&dir()).unwrap().into_iter().map(|name| dir().join(name)).collect()
}

#[test]
fn damaged_bytes_are_never_served() {
    for (disk, all) in [closed_journal(), killed_journal()] {
        let (mut tried, mut noticed) = (0_u32, 0);
        for (i, path) in files(&disk).iter().enumerate() {
            let bytes = disk.bytes(path).unwrap();
            let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
            for step in 0..400 {
                let offset = (step * 1237 + i * 331) % used;
                let disk = disk.synced_copy();
                let mut changed = bytes.clone();
                changed[offset] ^= 1 << (step % 8);
                disk.set_bytes(path, changed).unwrap();
                tried += 1;
                noticed += u32::from(open_and_compare(&disk, &all).is_err());
            }
        }
        assert!(noticed > tried / 2, "{noticed} of {tried}");
    }
}

#[test]
fn damage_of_one_record_of_the_mark_is_harmless() {
    for (disk, all) in [closed_journal(), killed_journal()] {
        let path = dir().join(HEAD_FILE);
        let bytes = disk.bytes(&path).unwrap();
        for offset in (0..106).chain(4096..4096 + 106) {
            let disk = disk.synced_copy();
            let mut changed = bytes.clone();
            changed[offset] ^= 4;
            disk.set_bytes(&path, changed).unwrap();
            open_and_compare(&disk, &all).unwrap();
        }
        let mut changed = bytes.clone();
        (changed[50], changed[4096 + 50]) = (changed[50] ^ 1, changed[4096 + 50] ^ 1);
        disk.set_bytes(&path, changed).unwrap();
        assert!(matches!(open(&disk).unwrap_err(), JournalError::Damaged { .. }));
    }
}

#[test]
fn every_flipped_bit_of_a_stored_chunk_is_noticed() {
    let disk = new_disk();
    let journal = open_with(&disk, SegmentOptions { tail_bytes: 1 << 20, ..small() }).unwrap();
    let written = draft(1, 2, 150);
    journal.append(Position::FIRST, std::slice::from_ref(&written)).unwrap();
    drop(journal);
    let disk = disk.synced_copy();
    let path = path_of(&dir(), Position::FIRST);
    let mut stored = Vec::new();
    let genesis = ChainHash::genesis(identity().store);
    encode(&written, genesis, &identity().secret, &mut stored);
    let bytes = disk.bytes(&path).unwrap();
    let start = bytes.windows(stored.len()).position(|window| window == stored).unwrap();
    for bit in (0..stored.len() * 8).step_by(5) {
        let disk = disk.synced_copy();
        let mut changed = bytes.clone();
        changed[start + bit / 8] ^= 1 << (bit % 8);
        disk.set_bytes(&path, changed).unwrap();
        match open(&disk).unwrap_err() {
            JournalError::Damaged { path: named, .. } | JournalError::NewerFormat { path: named, .. } => {
                assert_eq!(named, path);
            }
            other => panic!("bit {bit}: {other}"),
        }
    }
}

#[test]
fn truncation_is_noticed() {
    for (disk, all) in [closed_journal(), killed_journal()] {
        for path in files(&disk) {
            let bytes = disk.bytes(&path).unwrap();
            let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
            for percent in 0..100 {
                let disk = disk.synced_copy();
                disk.set_bytes(&path, bytes[..used * percent / 100].to_vec()).unwrap();
                open_and_compare(&disk, &all).unwrap_err();
            }
        }
    }
}

#[test]
fn bytes_behind_a_closed_journal_are_noticed() {
    let (disk, all) = closed_journal();
    let last = segments(&disk).pop().unwrap();
    let bytes = disk.bytes(&last).unwrap();
    for longer in [vec![0; 1], vec![0; 4096], vec![7; 100]] {
        let disk = disk.synced_copy();
        disk.set_bytes(&last, [&bytes[..], &longer].concat()).unwrap();
        open_and_compare(&disk, &all).unwrap_err();
    }
    let mut changed = bytes.clone();
    *changed.last_mut().unwrap() = 1;
    disk.set_bytes(&last, changed).unwrap();
    open_and_compare(&disk, &all).unwrap_err();
}

#[test]
fn an_older_journal_is_not_taken_for_the_whole() {
    let disk = new_disk();
    let journal = open(&disk).unwrap();
    fill(&journal, 3);
    let before = disk.synced_copy();
    let all = fill(&journal, 1);
    assert!(!all.is_empty());
    drop(journal);
    // Combine an older version of the segment with the current `HEAD`, on the same boot and after a power cut.
    let path = segments(&disk).pop().unwrap();
    for disk in [disk.synced_copy(), disk.after_power_cut(0)] {
        disk.set_bytes(&path, before.bytes(&path).unwrap()).unwrap();
        match open(&disk).map(|_| ()) {
            Err(JournalError::Damaged { path: named, .. }) => assert_eq!(named, path),
            // The power cut removed the newest mark as well, so nothing shows the loss.
            Ok(()) if disk.boot_id() != before.boot_id() => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_seal_that_does_not_verify_is_noticed() {
    let (disk, all) = closed_journal();
    for path in sealed_segments(&disk) {
        let bytes = disk.bytes(&path).unwrap();
        for from_end in 1..=96 {
            let disk = disk.synced_copy();
            let mut changed = bytes.clone();
            changed[bytes.len() - from_end] ^= 1;
            disk.set_bytes(&path, changed).unwrap();
            open_and_compare(&disk, &all).unwrap_err();
        }
    }
}

#[test]
fn doubled_and_swapped_segments_are_refused() {
    let (disk, _) = closed_journal();
    let all = segments(&disk);
    let before: Vec<_> = all.iter().map(|path| disk.bytes(path).unwrap()).collect();
    // Store the segment under the name of another one.
    for (path, of) in [(&all[1], &before[0]), (&all[0], &before[1]), (all.last().unwrap(), &before[1])] {
        let disk = disk.synced_copy();
        disk.set_bytes(path, of.clone()).unwrap();
        match open(&disk).unwrap_err() {
            JournalError::Damaged { path: named, .. } => assert_eq!(named, *path),
            other => panic!("{other}"),
        }
    }
    // Store the segment a second time, under a name between two others.
    let doubled = path_of(&dir(), at(2));
    disk.open(&doubled, crate::disk::OpenMode::CreateNew).unwrap();
    disk.set_bytes(&doubled, before[0].clone()).unwrap();
    assert!(matches!(open(&disk).unwrap_err(), JournalError::Damaged { path, .. } if path == doubled));
    for (path, bytes) in all.iter().zip(&before) {
        assert!(disk.bytes(path).unwrap() == *bytes, "a refused journal is left as it was");
    }
}

#[test]
fn refuses_a_segment_of_a_newer_format() {
    let (disk, _) = closed_journal();
    for path in segments(&disk) {
        let disk = disk.synced_copy();
        let mut bytes = disk.bytes(&path).unwrap();
        bytes[16] = 2;
        disk.set_bytes(&path, bytes.clone()).unwrap();
        match open(&disk).unwrap_err() {
            JournalError::NewerFormat { path: named, found: 2, .. } => assert_eq!(named, path),
            other => panic!("{other}"),
        }
        assert!(disk.bytes(&path).unwrap() == bytes);
    }
}
