//! Reads that fail in background threads. The flusher and the hasher try again, and the writer goes on as long as
//! memory lasts.

use std::thread;

use ledger_index::{IndexFile, IndexOptions};
use ledger_journal::{JournalReader, Position};

use super::*;
use crate::engine::chains::Chains;
use crate::engine::hashing::{self, hash_range};
use crate::engine::rebuild;
use crate::flush::Watermark;
use crate::hashes::Hashes;

fn pay(engine: &Engine, mode: Mode) -> Result<Vec<Outcome>, WriteError> {
    apply(engine, vec![payment("world", "users:1", "")], Atomicity::Independent, mode)
}

/// Returns the size of the memtables that wait for a flush.
fn waiting_bytes(engine: &Engine) -> usize {
    engine.view().memtables.iter().map(|memtable| memtable.memtable.bytes).sum()
}

#[test]
fn a_flush_that_cannot_read_is_tried_again() {
    let options = Options { memory_budget: 1 << 20, ..Options::default() };
    let (engine, journal) = engine(&options);
    journal.fail_reads(true);
    let (refused, waiting, dry, flushed) = thread::scope(|scope| {
        let flusher = scope.spawn(|| background::flush_loop(&engine));
        let refused = (0..3_000).find_map(|_| pay(&engine, Mode::Commit).err());
        let dry = pay(&engine, Mode::DryRun).is_ok();
        let (waiting, flushed) = (waiting_bytes(&engine), engine.view().flushed);
        journal.fail_reads(false);
        while pay(&engine, Mode::Commit).is_err() {
            thread::yield_now();
        }
        engine.stop_background();
        flusher.join().expect("it ends");
        (refused, waiting, dry, flushed)
    });
    assert!(matches!(refused, Some(WriteError::Storage { .. })), "{refused:?}");
    assert!(waiting < 3 * engine.shares.memtable, "{waiting} bytes");
    assert!(dry, "a dry run needs no memory");
    assert_eq!(flushed, 0);
    assert!(engine.view().flushed > 0);
    assert_eq!(engine.stopped(), None);
}

/// Flushes everything, on this thread.
fn flush(engine: &Engine) {
    flushes::flush_pending(engine);
    engine.flushes.lock().stop = true;
    background::flush_loop(engine);
    engine.flushes.lock().stop = false;
}

#[test]
fn a_new_index_holds_what_is_flushed_meanwhile() {
    let (engine, journal) = engine(&Options::default());
    pay(&engine, Mode::Commit).expect("outcomes");
    flush(&engine);
    let before = engine.view().indexed;
    pay(&engine, Mode::Commit).expect("outcomes");
    let flushing = engine.clone();
    journal.before_scan(move || flush(&flushing));
    let options = IndexOptions { cache_bytes: 1 << 20, filter_bytes: 1 << 20 };
    let index = IndexFile::in_memory(options).expect("an index");
    let (_installing, snapshot) = rebuild::build(&engine, &index).expect("it is built");
    let indexed = engine.view().indexed;
    assert!(before < indexed, "nothing was flushed meanwhile");
    let found = Watermark::read(&snapshot).expect("it is there").expect("it was written");
    assert_eq!((found.next, found.hashed), (indexed, indexed));
}

#[test]
fn failed_hasher_blocks_no_waiter() {
    let (engine, journal) = engine(&Options::default());
    for _ in 0..200 {
        pay(&engine, Mode::Commit).expect("outcomes");
    }
    journal.fail_reads(true);
    thread::scope(|scope| {
        let hasher = scope.spawn(|| hashing::hash_loop(&engine));
        // Returns once the hashing thread has failed.
        engine.hashes.wait(engine.view().next, || engine.stopped().is_some());
        for _ in 0..200 {
            pay(&engine, Mode::Commit).expect("outcomes");
        }
        journal.fail_reads(false);
        while engine.hashes.next() < engine.view().next && engine.stopped().is_none() {
            thread::yield_now();
        }
        engine.stop_background();
        hasher.join().expect("it ends");
    });
    assert_eq!(engine.stopped(), None);
    let (again, mut chains) = (Hashes::new(Position::FIRST, 0), Chains::default());
    while again.next() < engine.view().next {
        let (next, until) = (again.next(), engine.view().next);
        let journal: Arc<dyn JournalReader> = engine.journal.clone();
        hash_range(&journal, &engine.view(), &again, next, until, &mut chains).expect("it can be read");
    }
    assert!(again.pending_count() > 5, "{}", again.pending_count());
    assert_eq!(engine.hashes.pending(), again.pending());
}
