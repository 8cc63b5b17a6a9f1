//! What every journal promises, and what the one on disk survives.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::segment::path_of;
use super::*;
use crate::disk::{Disk, Faults, RealDisk, SimDisk, temporary_name};

fn dir() -> PathBuf {
    PathBuf::from("journal")
}

fn identity() -> Identity {
    Identity { store: StoreId([3; 16]), secret: Secret([4; 32]) }
}

/// Segments of a few chunks, so that a short script rolls over.
fn small() -> SegmentOptions {
    SegmentOptions { segment_bytes: 6000, cache_bytes: 1 << 16, tail_bytes: 2000, open_sealed: 2 }
}

fn open_with(disk: &SimDisk, options: SegmentOptions) -> Result<SegmentedJournal, JournalError> {
    SegmentedJournal::open(Arc::new(disk.clone()), dir(), identity(), options)
}

fn open(disk: &SimDisk) -> Result<SegmentedJournal, JournalError> {
    open_with(disk, small())
}

fn initialise(disk: &SimDisk) -> Result<(), JournalError> {
    let storage = |cause| JournalError::Storage { path: dir(), action: "create", cause };
    disk.create_dir(&dir()).map_err(storage)?;
    SegmentedJournal::initialise(Arc::new(disk.clone()), dir(), identity())?;
    disk.sync_dir(Path::new(".")).map_err(storage)
}

fn new_disk() -> SimDisk {
    let disk = SimDisk::new();
    initialise(&disk).unwrap();
    disk
}

fn at(number: u64) -> Position {
    Position::new(number).unwrap()
}

/// A chunk whose bytes depend on its place.
fn draft(first: u64, entries: u32, bytes: usize) -> ChunkDraft {
    let fill = |salt: u64| (0..bytes as u64).map(|i| (first * 7 + i * i + salt) as u8).collect();
    ChunkDraft {
        first: at(first),
        entries,
        sections: vec![(SectionId(0), fill(0)), (SectionId(first as u32), fill(1))],
    }
}

/// Append `i` of the script: one to three chunks of a few entries.
fn script_append(i: u64, first: u64) -> Vec<ChunkDraft> {
    let mut next = first;
    (0..=i % 3)
        .map(|k| {
            let entries = 1 + ((i + k) % 4) as u32;
            let draft = draft(next, entries, 200 + (i as usize * 97 + k as usize * 31) % 700);
            next += u64::from(entries);
            draft
        })
        .collect()
}

fn as_draft(chunk: &Chunk) -> ChunkDraft {
    let bytes = |section: &Section| match section {
        Section::Present(bytes) => bytes.to_vec(),
        Section::Removed => panic!("nothing was removed"),
    };
    ChunkDraft {
        first: chunk.first(),
        entries: chunk.entries(),
        sections: chunk.sections().iter().map(|(id, section)| (*id, bytes(section))).collect(),
    }
}

/// All chunks, after checking that they form one chain up to the head.
#[track_caller]
fn contents(journal: &dyn Journal) -> Vec<ChunkDraft> {
    try_contents(journal).unwrap()
}

fn try_contents(journal: &dyn Journal) -> Result<Vec<ChunkDraft>, JournalError> {
    let chunks = journal.scan(Position::FIRST, usize::MAX)?;
    let mut end = Head { next: Position::FIRST, chain: ChainHash::genesis(identity().store) };
    for chunk in &chunks {
        assert_eq!((chunk.first(), chunk.previous()), (end.next, end.chain));
        end = Head { next: chunk.next(), chain: chunk.chain() };
    }
    assert_eq!(end, journal.head());
    Ok(chunks.iter().map(as_draft).collect())
}

fn fill(journal: &dyn Journal, appends: u64) -> Vec<ChunkDraft> {
    let mut all = Vec::new();
    for i in 0..appends {
        let drafts = script_append(i, journal.head().next.get());
        let head = journal.append(drafts[0].first, &drafts).unwrap();
        assert_eq!(head, journal.head());
        all.extend(drafts);
    }
    all
}

fn check_journal(journal: &dyn Journal) {
    assert_eq!(journal.head().next, Position::FIRST);
    assert!(journal.read(Position::FIRST).unwrap().is_none());
    assert!(journal.scan(Position::FIRST, 100).unwrap().is_empty());
    let all = fill(journal, 24);
    assert_eq!(contents(journal), all);

    let head = journal.head();
    for draft in &all {
        for position in draft.first.get()..draft.first.after(draft.entries).unwrap().get() {
            assert_eq!(as_draft(&journal.read(at(position)).unwrap().unwrap()), *draft);
        }
    }
    assert!(journal.read(head.next).unwrap().is_none());
    assert!(journal.scan(head.next, 1).unwrap().is_empty());

    // Pages of every size join into the same list.
    for max_bytes in [0, 1, 1000, 5000, 1 << 20] {
        let mut next = Position::FIRST;
        let mut joined = Vec::new();
        loop {
            let page = journal.scan(next, max_bytes).unwrap();
            let Some(last) = page.last() else { break };
            let without_last: usize = page[..page.len() - 1].iter().map(Chunk::payload_bytes).sum();
            assert!(page.len() == 1 || without_last < max_bytes);
            next = last.next();
            joined.extend(page.iter().map(as_draft));
        }
        assert_eq!(joined, all, "pages of {max_bytes} bytes");
    }
    // A scan from inside a chunk begins with that chunk.
    let inside = all.iter().find(|draft| draft.entries > 1).unwrap();
    assert_eq!(as_draft(&journal.scan(inside.first.next(), 1).unwrap()[0]), *inside);

    // An append that expects another head changes nothing.
    for expected in [1, head.next.get() - 1, head.next.get() + 1] {
        let refused = journal.append(at(expected), &[draft(expected, 1, 10)]).unwrap_err();
        assert!(matches!(refused, JournalError::Fenced { next, .. } if next == head.next), "{refused}");
    }
    let next = head.next.get();
    for bad in [
        vec![draft(next + 1, 1, 10)],
        vec![draft(next, 0, 10)],
        vec![draft(next, 2, 10), draft(next + 1, 1, 10)],
        vec![draft(next, 1, 10), draft(next + 1, 1, MAX_CHUNK_PAYLOAD_BYTES)],
    ] {
        let refused = journal.append(head.next, &bad).unwrap_err();
        assert!(matches!(refused, JournalError::BadDraft { .. }), "{refused}");
    }
    assert_eq!(journal.append(head.next, &[]).unwrap(), head);
    assert_eq!(journal.head(), head);
    assert_eq!(contents(journal), all);

    // The largest chunk there is.
    let half = MAX_CHUNK_PAYLOAD_BYTES / 2;
    let large = draft(next, 1, half);
    journal.append(head.next, std::slice::from_ref(&large)).unwrap();
    assert_eq!(as_draft(&journal.read(head.next).unwrap().unwrap()), large);

    // Following waits for what is beyond, and no longer than it must.
    let end = journal.head();
    assert_eq!(journal.follow(head.next, Duration::from_mins(1)), end);
    assert_eq!(journal.follow(end.next, Duration::ZERO), end);
    std::thread::scope(|scope| {
        let follower = scope.spawn(|| journal.follow(end.next, Duration::from_mins(1)));
        let appended = journal.append(end.next, &[draft(end.next.get(), 1, 10)]).unwrap();
        assert_eq!(follower.join().unwrap(), appended);
    });
}

#[test]
fn a_journal_in_memory_keeps_the_promises() {
    check_journal(&MemoryJournal::new(identity()));
}

#[test]
fn a_journal_in_segments_keeps_the_promises() {
    let disk = new_disk();
    check_journal(&open(&disk).unwrap());
    let segments = disk.list(&dir()).unwrap().len();
    assert!(segments > 3, "the script rolls over, and {segments} segments are there");
}

#[test]
fn both_journals_have_the_same_chain() {
    let (memory, disk) = (MemoryJournal::new(identity()), new_disk());
    let segments = open(&disk).unwrap();
    fill(&memory, 10);
    fill(&segments, 10);
    assert_eq!(memory.head(), segments.head());
}

#[test]
fn a_journal_on_a_real_disk_reopens() {
    let home = tempfile::tempdir().unwrap();
    let open =
        || SegmentedJournal::open(Arc::new(RealDisk), home.path().to_owned(), identity(), small()).unwrap();
    SegmentedJournal::initialise(Arc::new(RealDisk), home.path().to_owned(), identity()).unwrap();
    let mut all = Vec::new();
    for _ in 0..5 {
        let journal = open();
        assert_eq!(contents(&journal), all);
        all.extend(fill(&journal, 4));
        assert_eq!(contents(&journal), all);
    }
    assert!(RealDisk.list(home.path()).unwrap().len() > 3);
}

#[test]
fn a_sealed_segment_is_never_changed() {
    let disk = new_disk();
    let journal = open(&disk).unwrap();
    let all = fill(&journal, 12);
    let sealed = sealed_segments(&disk);
    let before: Vec<_> = sealed.iter().map(|path| disk.bytes(path).unwrap()).collect();
    assert_eq!(contents(&journal), all);
    fill(&journal, 6);
    drop(journal);
    contents(&open(&disk).unwrap());
    let after: Vec<_> = sealed.iter().map(|path| disk.bytes(path).unwrap()).collect();
    assert!(before == after);
}

/// All segments but the last.
fn sealed_segments(disk: &SimDisk) -> Vec<PathBuf> {
    let mut names: Vec<_> = disk.list(&dir()).unwrap().into_iter().map(|name| dir().join(name)).collect();
    names.sort();
    names.pop();
    names
}

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
    chunk::encode(&written, genesis, &identity().secret, &mut stored);
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

#[test]
fn after_a_failed_commit_the_outcome_is_unknown_and_nothing_is_appended() {
    let (mut unknown, mut refused) = (0, 0);
    for nth in 1..40 {
        let disk = new_disk();
        let journal = open(&disk).unwrap();
        let mut acknowledged = fill(&journal, 2);
        disk.set_faults(Faults { fail_sync: Some(disk.syncs() + nth), ..Faults::default() });
        let mut failed = Vec::new();
        let mut stopped = false;
        for i in 2..12 {
            let head = journal.head();
            let drafts = script_append(i, head.next.get());
            match journal.append(head.next, &drafts) {
                Ok(_) => {
                    assert!(!stopped, "an append after a failed one");
                    acknowledged.extend(drafts);
                }
                Err(JournalError::Poisoned) => stopped = true,
                Err(JournalError::OutcomeUnknown { position, .. }) => {
                    assert!(!stopped && position == head.next);
                    unknown += 1;
                    stopped = true;
                    failed = drafts;
                }
                // Beginning a new segment failed: certainly not appended. It
                // may be tried again as long as nothing had its name.
                Err(JournalError::Storage { .. }) => {
                    assert!(!stopped);
                    refused += 1;
                }
                Err(other) => panic!("{other}"),
            }
            if stopped {
                assert_eq!(journal.head(), head, "the head shows what is certain");
            }
        }
        drop(journal);
        for seed in 0..4 {
            let found = contents(&open(&disk.after_power_cut(seed)).unwrap());
            let with_failed = [&acknowledged[..], &failed[..]].concat();
            assert!(found == acknowledged || found == with_failed, "sync {nth}, seed {seed}");
        }
    }
    assert!(unknown > 5 && refused > 5, "{unknown} unknown, {refused} refused");
}

#[test]
fn a_failed_write_loses_nothing_that_was_acknowledged() {
    for nth in (1..120).step_by(3) {
        let disk = new_disk();
        let journal = open(&disk).unwrap();
        disk.set_faults(Faults { fail_write: Some(disk.writes() + nth), ..Faults::default() });
        let (acknowledged, pending) = run_script(&journal, 12);
        drop(journal);
        check_survivor(&disk.after_power_cut(nth), &acknowledged, &pending, "failed write").unwrap();
    }
}

/// Appends until the script ends or an append fails. Says what was
/// acknowledged, and what was on its way then.
fn run_script(journal: &dyn Journal, appends: u64) -> (Vec<ChunkDraft>, Vec<ChunkDraft>) {
    let mut acknowledged = Vec::new();
    for i in 0..appends {
        let head = journal.head();
        let drafts = script_append(i, head.next.get());
        match journal.append(head.next, &drafts) {
            Ok(_) => acknowledged.extend(drafts),
            Err(_) => return (acknowledged, drafts),
        }
    }
    (acknowledged, Vec::new())
}

/// Whether a disk found after a power cut holds what it must.
fn check_survivor(
    disk: &SimDisk,
    acknowledged: &[ChunkDraft],
    pending: &[ChunkDraft],
    context: &str,
) -> Result<(), String> {
    let journal = open(disk).map_err(|error| format!("{context}: {error}"))?;
    let found = try_contents(&journal).map_err(|error| format!("{context}: {error}"))?;
    if found != acknowledged && found != [acknowledged, pending].concat() {
        return Err(format!(
            "{context}: {} chunks acknowledged, {} pending, {} found",
            acknowledged.len(),
            pending.len(),
            found.len()
        ));
    }
    // And it goes on from there.
    let head = journal.head();
    let drafts = script_append(50, head.next.get());
    journal.append(head.next, &drafts).map_err(|error| format!("{context}: {error}"))?;
    Ok(())
}

/// Cuts the power at every sync of a script, looks at what several seeds
/// leave of it, and cuts the power a second time while that is opened.
/// Says how many cuts there were.
fn power_cuts(lying_syncs: bool, appends: u64, seeds: u64) -> Result<u64, String> {
    let mut cuts = 0;
    for cut in 1.. {
        let disk = new_disk();
        let at_sync = disk.syncs() + cut;
        disk.set_faults(Faults { cut_at_sync: Some(at_sync), lying_syncs, ..Faults::default() });
        let (acknowledged, pending) = match open(&disk) {
            Ok(journal) => run_script(&journal, appends),
            Err(_) => (Vec::new(), Vec::new()),
        };
        let finished = !disk.power_is_off();
        for seed in 0..seeds {
            let found = disk.after_power_cut(cut * 1000 + seed);
            let context = format!("sync {cut}, seed {seed}");
            let second = found.copy();
            check_survivor(&found, &acknowledged, &pending, &context)?;
            cuts += 1;
            // The second cut comes while the first one is being repaired.
            second.set_faults(Faults { cut_at_sync: Some(1 + seed % 8), lying_syncs, ..Faults::default() });
            drop(open(&second));
            let found = second.after_power_cut(seed);
            check_survivor(&found, &acknowledged, &pending, &format!("{context}, cut again"))?;
            cuts += 1;
        }
        if finished {
            return Ok(cuts);
        }
    }
    unreachable!("the script ends")
}

#[test]
fn power_cuts_lose_nothing_that_was_acknowledged() {
    let cuts = power_cuts(false, 12, 3).unwrap();
    assert!(cuts > 200, "{cuts}");
}

#[test]
fn the_power_cut_test_notices_a_disk_that_does_not_sync() {
    power_cuts(true, 12, 3).unwrap_err();
}

#[test]
fn power_cuts_while_a_store_is_initialised_leave_no_named_segment() {
    for cut in 1.. {
        let disk = SimDisk::with_faults(Faults { cut_at_sync: Some(cut), ..Faults::default() });
        let done = initialise(&disk).is_ok();
        for seed in 0..8 {
            let found = disk.after_power_cut(seed);
            if done {
                assert_eq!(contents(&open(&found).unwrap()), []);
                continue;
            }
            let names = found.list(&dir()).unwrap_or_default();
            let temporary = temporary_name(&path_of(&dir(), Position::FIRST));
            assert!(names.iter().all(|name| dir().join(name) == temporary), "{names:?}");
        }
        if done {
            break;
        }
    }
}
