//! Files that are missing, foreign, cut or changed.

use redb::TableDefinition;

use super::*;
use crate::disk::engine::EngineFile;
use crate::journal::chunk::encode;
use crate::journal::record::{SEAL, path_of};

/// A disk with a closed journal of several segments, and what is in it.
fn closed_journal() -> (SimDisk, Vec<ChunkDraft>) {
    let disk = new_disk();
    let all = fill(&open(&disk).unwrap(), 16);
    assert!(sealed_segments(&disk).len() >= 2);
    (disk.copy(), all)
}

#[test]
fn a_missing_segment_is_named() {
    let (disk, _) = closed_journal();
    let mut segments = sealed_segments(&disk);
    let last = disk.list(&dir()).unwrap().into_iter().map(|name| dir().join(name)).max().unwrap();
    segments.push(last);
    for gone in segments {
        let disk = disk.copy();
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
fn a_file_without_bytes_is_damage_and_not_new() {
    let (disk, _) = closed_journal();
    for name in disk.list(&dir()).unwrap() {
        let disk = disk.copy();
        let emptied = dir().join(name);
        disk.set_bytes(&emptied, Vec::new()).unwrap();
        match open(&disk).unwrap_err() {
            JournalError::ZeroLength { path } => assert_eq!(path, emptied),
            other => panic!("{other}"),
        }
        assert!(disk.bytes(&emptied).unwrap().is_empty(), "it is left as it was");
    }
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
    // Other bytes at the same positions, so that the same files come to be.
    let journal = open(&fork).unwrap();
    for i in 0..16 {
        let mut drafts = script_append(i, journal.head().next.get());
        drafts[0].sections[0].1[0] ^= 1;
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

/// Opens and reads all; `Ok` only if that gives what was written.
fn open_and_compare(disk: &SimDisk, all: &[ChunkDraft]) -> Result<(), JournalError> {
    let journal = open(disk)?;
    let read = try_contents(&journal)?;
    assert!(read == all, "damaged bytes were served");
    Ok(())
}

#[test]
fn damaged_bytes_are_never_served() {
    let (disk, all) = closed_journal();
    let files: Vec<_> = disk.list(&dir()).unwrap().into_iter().map(|name| dir().join(name)).collect();
    let mut noticed = 0;
    let mut tried = 0;
    for (i, path) in files.iter().enumerate() {
        let bytes = disk.bytes(path).unwrap();
        for step in 0..120 {
            // A bit of every 4 KiB page that holds something, at places that wander.
            let offset = (step * 4096 + (step * 1237 + i * 331) % 4096) % bytes.len();
            let disk = disk.copy();
            let mut changed = bytes.clone();
            changed[offset] ^= 1 << (step % 8);
            disk.set_bytes(path, changed).unwrap();
            tried += 1;
            noticed += u32::from(open_and_compare(&disk, &all).is_err());
        }
    }
    assert!(noticed > tried / 20, "{noticed} of {tried}: most of a small file is not in use");
}

#[test]
fn every_flipped_bit_of_a_stored_chunk_is_noticed() {
    let disk = new_disk();
    let journal = open_with(&disk, SegmentOptions { tail_bytes: 1 << 20, ..small() }).unwrap();
    let written = draft(1, 2, 150);
    journal.append(Position::FIRST, std::slice::from_ref(&written)).unwrap();
    drop(journal);
    let path = path_of(&dir(), Position::FIRST);
    let mut stored = Vec::new();
    let genesis = ChainHash::genesis(identity().store);
    encode(&written, genesis, &identity().secret, &mut stored);
    let bytes = disk.bytes(&path).unwrap();
    let start = bytes.windows(stored.len()).position(|window| window == stored).unwrap();
    for bit in (0..stored.len() * 8).step_by(5) {
        let disk = disk.copy();
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
    let (disk, all) = closed_journal();
    for name in disk.list(&dir()).unwrap() {
        let path = dir().join(name);
        let bytes = disk.bytes(&path).unwrap();
        for percent in 0..100 {
            let disk = disk.copy();
            disk.set_bytes(&path, bytes[..bytes.len() * percent / 100].to_vec()).unwrap();
            open_and_compare(&disk, &all).unwrap_err();
        }
    }
}

/// Changes the rows of a segment with the engine's own means, so that its
/// pages agree with each other.
fn with_rows(disk: &SimDisk, path: &Path, work: impl FnOnce(&mut redb::Table<'_, u64, &'static [u8]>)) {
    let file = EngineFile::open(disk, path, 1 << 16).unwrap();
    let write_txn = file.begin_write().unwrap();
    work(&mut write_txn.open_table(TableDefinition::new("chunks")).unwrap());
    write_txn.commit().unwrap();
    file.close().unwrap();
}

#[test]
fn a_chunk_that_was_taken_out_is_noticed() {
    let (disk, all) = closed_journal();
    let first_segment = path_of(&dir(), Position::FIRST);
    let in_first = all.iter().take_while(|draft| draft.first.get() < 10);
    for gone in in_first {
        let disk = disk.copy();
        with_rows(&disk, &first_segment, |table| drop(table.remove(gone.first.get()).unwrap()));
        let journal = open(&disk).unwrap();
        assert!(matches!(journal.read(gone.first), Err(JournalError::Damaged { .. })));
        assert!(matches!(journal.scan(Position::FIRST, usize::MAX), Err(JournalError::Damaged { .. })));
        assert!(matches!(journal.scan(gone.first, 1), Err(JournalError::Damaged { .. })));
    }
}

#[test]
fn a_chunk_of_another_history_is_noticed() {
    let (disk, all) = closed_journal();
    // Written by this very store, but after other chunks.
    let mut forged = Vec::new();
    encode(&all[2], ChainHash([1; 32]), &identity().secret, &mut forged);
    let first = all[2].first;
    let first_segment = path_of(&dir(), Position::FIRST);
    with_rows(&disk, &first_segment, |table| drop(table.insert(first.get(), &forged[..]).unwrap()));
    let journal = open(&disk).unwrap();
    match journal.scan(Position::FIRST, usize::MAX).unwrap_err() {
        JournalError::Damaged { position, .. } => assert_eq!(position, Some(first)),
        other => panic!("{other}"),
    }
    // And one that is whole, but stands under another's key.
    let mut moved = Vec::new();
    encode(&all[3], ChainHash([1; 32]), &identity().secret, &mut moved);
    with_rows(&disk, &first_segment, |table| drop(table.insert(first.get(), &moved[..]).unwrap()));
    assert!(open(&disk).unwrap().read(first).is_err());
}

#[test]
fn a_tail_that_does_not_join_is_noticed_when_it_is_opened() {
    let disk = new_disk();
    let all = fill(&open(&disk).unwrap(), 2);
    let path = path_of(&dir(), Position::FIRST);
    let gone = all[1].first.get();
    with_rows(&disk, &path, |table| drop(table.remove(gone).unwrap()));
    let whole_tail = SegmentOptions { tail_bytes: 1 << 20, ..small() };
    assert!(matches!(open_with(&disk, whole_tail).unwrap_err(), JournalError::Damaged { .. }));
    // The very first chunk too: the segment must begin where it says.
    let disk = new_disk();
    fill(&open(&disk).unwrap(), 2);
    with_rows(&disk, &path, |table| drop(table.remove(1).unwrap()));
    assert!(matches!(open_with(&disk, whole_tail).unwrap_err(), JournalError::Damaged { .. }));
}

#[test]
fn a_seal_that_was_taken_out_is_noticed() {
    let (disk, _) = closed_journal();
    for path in sealed_segments(&disk) {
        let disk = disk.copy();
        let file = EngineFile::open(&disk, &path, 1 << 16).unwrap();
        let write_txn = file.begin_write().unwrap();
        let meta = TableDefinition::<u8, &[u8]>::new("meta");
        write_txn.open_table(meta).unwrap().remove(SEAL).unwrap().unwrap();
        write_txn.commit().unwrap();
        file.close().unwrap();
        match open(&disk).unwrap_err() {
            JournalError::Damaged { path: named, .. } => assert_eq!(named, path),
            other => panic!("{other}"),
        }
    }
}
