use ledger_journal::disk::{Faults, OpenMode, RealDisk, SimDisk};
use ledger_journal::{ChunkDraft, Journal, JournalReader, Position, SectionId, StoreId};

use super::*;

fn path() -> PathBuf {
    PathBuf::from("data")
}

fn open(disk: &SimDisk) -> Result<DataDirectory, DirectoryError> {
    DataDirectory::open(Arc::new(disk.clone()), &path())
}

fn append_one(directory: &DataDirectory) -> Result<(), JournalError> {
    let journal = directory.open_journal(SegmentOptions::default())?;
    let first = journal.head().next;
    let draft = ChunkDraft { first, entries: 1, sections: vec![(SectionId(1), b"entry".to_vec().into())] };
    journal.append(first, &[draft]).map(|_| ())
}

/// Creates a store with one entry, and closes it.
fn store() -> (SimDisk, StoreId) {
    let disk = SimDisk::new();
    let directory = open(&disk).unwrap();
    append_one(&directory).unwrap();
    (disk, directory.identity().store)
}

#[test]
fn a_store_is_the_same_when_it_is_opened_again() {
    let disk = SimDisk::new();
    let first = open(&disk).unwrap().identity().clone();
    let again = open(&disk).unwrap().identity().clone();
    assert_eq!((first.store, first.secret), (again.store, again.secret));
    let (_, other) = store();
    assert_ne!(first.store, other);
}

#[test]
fn a_second_opening_is_told_who_has_the_store() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("data");
    let directory = DataDirectory::open(Arc::new(RealDisk), &path).unwrap();
    match DataDirectory::open(Arc::new(RealDisk), &path).unwrap_err() {
        DirectoryError::InUse { holder, .. } => {
            assert_eq!(holder, format!("process {}", std::process::id()));
        }
        other => panic!("{other}"),
    }
    append_one(&directory).unwrap();
    // Deleting the file `LOCK` does not release the lock, which is on the directory.
    std::fs::remove_file(path.join(LOCK)).unwrap();
    let again = DataDirectory::open(Arc::new(RealDisk), &path).map(drop);
    assert_eq!(matches!(again, Err(DirectoryError::InUse { .. })), cfg!(unix));
    drop(directory);
    let directory = DataDirectory::open(Arc::new(RealDisk), &path).unwrap();
    let journal = directory.open_journal(SegmentOptions::default()).unwrap();
    assert_eq!(journal.head().next.get(), 2);
}

#[test]
fn a_directory_with_other_files_is_left_alone() {
    for name in ["notes.txt", "journal/00000000000000000001.log", "index/1.redb", "state.redb"] {
        let disk = SimDisk::new();
        let file = path().join(name);
        disk.create_dir(&path()).unwrap();
        if parent(&file) != path() {
            disk.create_dir(parent(&file)).unwrap();
        }
        disk.open(&file, OpenMode::CreateNew).unwrap();
        let before = disk.list(&path()).unwrap();
        match open(&disk).unwrap_err() {
            DirectoryError::NotAStore { found, .. } => assert_eq!(found, name),
            other => panic!("{other}"),
        }
        assert_eq!(disk.list(&path()).unwrap(), before);
    }
}

#[test]
fn with_a_manifest_nothing_is_created() {
    let (disk, _) = store();
    for name in ["SECRET", "journal/00000000000000000001.log"] {
        let disk = disk.synced_copy();
        disk.remove(&path().join(name)).unwrap();
        let outcome = open(&disk).map(|directory| append_one(&directory));
        match outcome {
            Err(DirectoryError::Missing { path: missing })
            | Ok(Err(JournalError::Missing { path: missing, .. })) => {
                assert_eq!(missing, path().join(name));
            }
            other => panic!("{other:?}"),
        }
        assert!(!disk.exists(&path().join(name)).unwrap());
    }
}

#[test]
fn the_directory_of_projections_is_made_again() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("data");
    let open = || DataDirectory::open(Arc::new(RealDisk), &path).unwrap();
    append_one(&open()).unwrap();
    std::fs::remove_dir_all(path.join(INDEX)).unwrap();
    for _ in 0..2 {
        let directory = open();
        directory.make_index_dir().unwrap();
        assert!(directory.index_dir().is_dir());
    }
}

#[test]
fn a_damaged_manifest_or_secret_is_noticed() {
    let (disk, _) = store();
    for name in [MANIFEST, SECRET] {
        let file = path().join(name);
        let bytes = disk.bytes(&file).unwrap();
        let check = |changed: Vec<u8>| {
            disk.set_bytes(&file, changed).unwrap();
            match open(&disk).unwrap_err() {
                DirectoryError::Damaged { path, .. } | DirectoryError::NewerFormat { path, .. } => {
                    assert_eq!(path, file);
                }
                other => panic!("{other}"),
            }
        };
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            check(changed);
        }
        for len in 0..bytes.len() {
            check(bytes[..len].to_vec());
        }
        check([&bytes[..], b"\n"].concat());
        disk.set_bytes(&file, bytes).unwrap();
    }
    open(&disk).unwrap();
}

#[test]
fn a_newer_store_is_refused_by_its_version() {
    let (disk, _) = store();
    let file = path().join(MANIFEST);
    disk.set_bytes(&file, b"ledger store\nformat 2\nwhatever comes\n".to_vec()).unwrap();
    assert!(matches!(open(&disk).unwrap_err(), DirectoryError::NewerFormat { found: 2, .. }));
}

#[test]
fn a_power_cut_at_any_sync_leaves_a_store_or_none() {
    let mut cuts = 0;
    for cut in 1.. {
        let disk = SimDisk::with_faults(Faults { cut_at_sync: Some(cut), ..Faults::default() });
        let opened = open(&disk);
        let store = opened.as_ref().ok().map(|directory| directory.identity().store);
        let appended = opened.is_ok_and(|directory| append_one(&directory).is_ok());
        let finished = !disk.power_is_off();
        for seed in 0..8 {
            let found = disk.after_power_cut(seed);
            let directory = open(&found).unwrap();
            if let Some(store) = store {
                assert_eq!(directory.identity().store, store, "cut {cut}, seed {seed}");
            }
            let journal = directory.open_journal(SegmentOptions::default()).unwrap();
            let next = journal.head().next;
            assert!(next.get() == 2 || (next == Position::FIRST && !appended));
            cuts += 1;
        }
        if finished {
            break;
        }
    }
    assert!(cuts > 100, "{cuts}");
}
