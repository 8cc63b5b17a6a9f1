//! Tests of the guarantees of every journal. `damage` and `faults` test the journal on disk.

mod damage;
mod faults;
mod torn;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::disk::{Disk, RealDisk, SimDisk};

fn dir() -> PathBuf {
    PathBuf::from("journal")
}

fn identity() -> Identity {
    Identity { store: StoreId([3; 16]), secret: Secret([4; 32]) }
}

/// Options for segments of a few chunks, so that a short script starts several segments.
fn small() -> SegmentOptions {
    SegmentOptions {
        segment_bytes: 6000,
        cache_bytes: 3000,
        tail_bytes: 2000,
        open_sealed: 2,
        space_bytes: 16 << 10,
    }
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

/// Creates a chunk whose bytes depend on its position.
fn draft(first: u64, entries: u32, bytes: usize) -> ChunkDraft {
    let fill = |salt: u64| (0..bytes as u64).map(|i| (first * 7 + i * i + salt) as u8).collect::<Vec<_>>();
    ChunkDraft {
        first: at(first),
        entries,
        sections: vec![(SectionId(0), fill(0).into()), (SectionId(first as u32), fill(1).into())],
    }
}

/// Creates append `i` of the script: one to three chunks of a few entries.
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
        Section::Present(bytes) => bytes.to_vec().into(),
        Section::Removed => panic!("nothing was removed"),
    };
    ChunkDraft {
        first: chunk.first(),
        entries: chunk.entries(),
        sections: chunk.sections().iter().map(|(id, section)| (*id, bytes(section))).collect(),
    }
}

/// Returns all chunks, after checking that they form one chain up to the head.
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
        journal.make_room().unwrap();
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

    // Scans with any page size return the same list.
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
    // A scan from inside a chunk starts with that chunk.
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

    // The largest possible chunk.
    let half = MAX_CHUNK_PAYLOAD_BYTES / 2;
    let large = draft(next, 1, half);
    journal.append(head.next, std::slice::from_ref(&large)).unwrap();
    assert_eq!(as_draft(&journal.read(head.next).unwrap().unwrap()), large);
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
    for round in 0..6 {
        let journal = open();
        assert_eq!(journal.dropped(), None);
        assert_eq!(contents(&journal), all);
        all.extend(fill(&journal, 4));
        journal.prepare_space().unwrap();
        assert_eq!(contents(&journal), all);
        if round % 2 == 0 {
            journal.close().unwrap();
        }
    }
    assert!(RealDisk.list(home.path()).unwrap().len() > 3);
}

#[test]
fn prepares_space_only_after_the_entries() {
    let home = tempfile::tempdir().unwrap();
    let options = SegmentOptions { segment_bytes: 1 << 20, ..small() };
    let open =
        || SegmentedJournal::open(Arc::new(RealDisk), home.path().to_owned(), identity(), options).unwrap();
    SegmentedJournal::initialise(Arc::new(RealDisk), home.path().to_owned(), identity()).unwrap();
    let journal = open();
    // The append is larger than the prepared space, so the write itself extends the file.
    let large = draft(1, 1, 40 << 10);
    journal.append(Position::FIRST, std::slice::from_ref(&large)).unwrap();
    journal.prepare_space().unwrap();
    let small = draft(2, 1, 100);
    journal.append(at(2), std::slice::from_ref(&small)).unwrap();
    drop(journal);
    assert_eq!(contents(&open()), [large, small]);
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

/// Returns the files of all segments, in order.
fn segments(disk: &SimDisk) -> Vec<PathBuf> {
    let names = disk.list(&dir()).unwrap().into_iter().map(|name| dir().join(name));
    let mut names: Vec<_> = names.filter(|path| path.extension().is_some()).collect();
    names.sort();
    names
}

/// Returns the files of all segments except the last.
fn sealed_segments(disk: &SimDisk) -> Vec<PathBuf> {
    let mut names = segments(disk);
    names.pop();
    names
}

#[test]
fn readers_see_whole_chains_at_any_time() {
    let disk = new_disk();
    // Only one sealed segment stays open, so readers close and reopen the others.
    let journal = open_with(&disk, SegmentOptions { open_sealed: 1, ..small() }).unwrap();
    std::thread::scope(|scope| {
        for reader in 0..3_u64 {
            let journal = &journal;
            scope.spawn(move || {
                let mut round = reader;
                let mut head = journal.head();
                while head.next.get() < 300 {
                    head = journal.head();
                    if head.next == Position::FIRST {
                        std::thread::yield_now();
                        continue;
                    }
                    let chunks = journal.scan(Position::FIRST, usize::MAX).unwrap();
                    for pair in chunks.windows(2) {
                        assert_eq!((pair[0].next(), pair[0].chain()), (pair[1].first(), pair[1].previous()));
                    }
                    assert!(chunks.last().unwrap().next() >= head.next);
                    round += 7919;
                    let any = at(1 + round % (head.next.get() - 1));
                    let chunk = journal.read(any).unwrap().unwrap();
                    assert!(chunk.first() <= any && any < chunk.next());
                }
            });
        }
        while journal.head().next.get() < 300 {
            let head = journal.head();
            journal.make_room().unwrap();
            journal.append(head.next, &script_append(head.next.get(), head.next.get())).unwrap();
        }
    });
    assert!(disk.list(&dir()).unwrap().len() > 5);
}

/// Returns the number of chunks with removed sections, after checking that all chunks form one chain up to the head.
fn holes(journal: &dyn Journal) -> usize {
    let chunks = journal.scan(Position::FIRST, usize::MAX).unwrap();
    let mut end = Head { next: Position::FIRST, chain: ChainHash::genesis(identity().store) };
    for chunk in &chunks {
        assert_eq!((chunk.first(), chunk.previous()), (end.next, end.chain));
        end = Head { next: chunk.next(), chain: chunk.chain() };
    }
    assert_eq!(end, journal.head());
    chunks.iter().filter(|chunk| chunk.has_holes()).count()
}

fn check_removal(journal: &dyn Journal) {
    fill(journal, 24);
    let before = journal.scan(Position::FIRST, usize::MAX).unwrap();
    let head = journal.head();
    let none = BTreeSet::new();
    let nothing = Freed { bytes: 0, is_done: true };
    assert_eq!(journal.remove_sections(&none, &|| false).unwrap(), nothing);
    // Each chunk has section 0, and a section whose number is the first position of the chunk. Remove a section that
    // does not exist, then those of the first and the last chunk.
    let some = BTreeSet::from([SectionId(1), SectionId(before[before.len() - 1].first().get() as u32)]);
    let nowhere = BTreeSet::from([SectionId(99_999)]);
    assert_eq!(journal.remove_sections(&nowhere, &|| false).unwrap(), nothing);
    assert!(journal.remove_sections(&some, &|| false).unwrap().is_done);
    assert_eq!((holes(journal), journal.head()), (2, head));
    assert_eq!(journal.remove_sections(&some, &|| false).unwrap(), nothing);
    for (chunk, before) in journal.scan(Position::FIRST, usize::MAX).unwrap().iter().zip(&before) {
        for ((id, section), (_, had)) in chunk.sections().iter().zip(before.sections()) {
            match (section, had) {
                (Section::Present(bytes), Section::Present(had)) => assert_eq!(bytes[..], had[..]),
                (Section::Removed, _) => assert!(some.contains(id)),
                (Section::Present(_), Section::Removed) => panic!("nothing comes back"),
            }
        }
    }
    // A scan also counts chunks whose sections are all removed, so that their number in a page is bounded.
    let all: BTreeSet<SectionId> =
        before.iter().flat_map(|chunk| chunk.sections().iter().map(|(id, _)| *id)).collect();
    assert!(journal.remove_sections(&all, &|| false).unwrap().is_done);
    assert_eq!((holes(journal), journal.head()), (before.len(), head));
    assert!(journal.scan(Position::FIRST, 2_000).unwrap().len() < before.len() / 2);
    // The journal accepts more appends.
    fill(journal, 3);
    assert_eq!(holes(journal), before.len());
}

#[test]
fn removed_sections_leave_the_rest() {
    check_removal(&MemoryJournal::new(identity()));
    let disk = new_disk();
    let journal = open(&disk).unwrap();
    check_removal(&journal);
    let removed = holes(&journal);
    drop(journal);
    let journal = open(&disk).unwrap();
    assert_eq!(holes(&journal), removed);
    fill(&journal, 3);
    assert_eq!(holes(&journal), removed);
}

#[test]
fn removed_bytes_are_not_read_from_memory() {
    let disk = new_disk();
    let journal = open(&disk).unwrap();
    // The newest chunk is kept in memory.
    let last = fill(&journal, 24).pop().unwrap().first;
    assert!(!journal.read(last).unwrap().unwrap().has_holes());
    let sections = BTreeSet::from([SectionId(last.get() as u32)]);
    assert!(journal.remove_sections(&sections, &|| false).unwrap().is_done);
    assert!(journal.read(last).unwrap().unwrap().has_holes());
}

#[test]
fn a_removal_that_is_stopped_leaves_nothing_behind() {
    let disk = new_disk();
    let journal = open(&disk).unwrap();
    let all = fill(&journal, 24);
    let files = disk.list(&dir()).unwrap().len();
    let sections: BTreeSet<SectionId> =
        all.iter().flat_map(|draft| draft.sections.iter().map(|(id, _)| *id)).collect();
    for steps in 0.. {
        let asked = std::cell::Cell::new(0);
        let stop = || {
            asked.set(asked.get() + 1);
            asked.get() > steps
        };
        let freed = journal.remove_sections(&sections, &stop).unwrap();
        assert!(disk.list(&dir()).unwrap().len() <= files + 1, "a copy was left");
        holes(&journal);
        if freed.is_done {
            assert!(steps > 3);
            break;
        }
    }
    assert_eq!(holes(&journal), all.len());
}
