//! An index that fails while the store runs is reopened or rebuilt, and the store keeps working.

use std::time::Instant;

use ledger_core::{Command, CreateTransaction, LedgerName, LedgerOptions, Posting, Postings};
use ledger_store::{Atomicity, Detail, IndexEvent, Mode, Request, Store, Submission, WriteError};
use ledger_testkit::{Faults, SimDisk};

use super::recovery::{DAMAGED, INDEX, path};
use super::running_store::{Running, TIMEOUT, settle, wait_for, wait_until_rebuilt, watch};

#[test]
fn damage_that_a_read_meets_rebuilds_the_index() {
    let mut running = Running::new(31, 120);
    let store = running.open();
    let events = watch(&store);
    let length = running.disk.bytes(path(INDEX)).expect("there is an index").len();
    running.damage();
    // The comparison reads everything, so it finds damage. Every answer before that is right.
    assert!(running.oracle.compare(&store).is_err(), "nothing is damaged");
    wait_for(&events, |event| matches!(event, IndexEvent::Rebuilding { .. }));
    wait_until_rebuilt(&events);
    assert_eq!(running.oracle.compare(&store), Ok(()));
    let kept = running.disk.bytes(path(DAMAGED)).expect("the damaged file is kept");
    assert!(kept.len() >= length);
    running.work(&store, 40);
    running.check(store, 1);
}

#[test]
fn writes_go_on_while_the_index_is_rebuilt() {
    for seed in 40..44 {
        let mut running = Running::new(seed, 100);
        let store = running.open();
        let events = watch(&store);
        running.damage();
        let _ = running.oracle.compare(&store);
        // Flush in between, into the old file and into the new one.
        for _ in 0..10 {
            running.work_with_retry(&store, 6);
            store.flush();
        }
        wait_until_rebuilt(&events);
        running.work_with_retry(&store, 20);
        running.check(store, 1);
    }
}

#[test]
fn damage_that_a_flush_meets_rebuilds_the_index() {
    let mut running = Running::new(32, 120);
    running.memory = 256 << 10;
    let store = running.open();
    let events = watch(&store);
    running.work(&store, 60);
    running.damage();
    store.flush();
    wait_until_rebuilt(&events);
    running.work(&store, 40);
    running.check(store, 1);
}

#[test]
fn an_index_that_is_damaged_again_is_rebuilt_again() {
    let mut running = Running::new(33, 60);
    let store = running.open();
    let events = watch(&store);
    for _ in 0..3 {
        running.damage();
        assert!(running.oracle.compare(&store).is_err(), "nothing is damaged");
        wait_until_rebuilt(&events);
        running.work(&store, 20);
        store.flush();
    }
    running.check(store, 3);
}

#[test]
fn a_failed_read_does_not_end_the_writing() {
    let sound = Running::new(34, 100);
    let mut unavailable = 0;
    for nth in 1..60 {
        let mut running = sound.copy();
        let store = running.open();
        let events = watch(&store);
        let until = running.disk.reads() + nth;
        running.disk.set_faults(Faults { fail_reads_from: Some(until), ..Faults::default() });
        // Some writes are refused, because the index and the journal cannot be read.
        let mut is_unknown = false;
        while running.disk.reads() <= until + 4 && !is_unknown {
            let (now, step) = (running.work.tick(), running.work.step());
            let before = running.oracle.clone();
            match running.step(&store, &step, now) {
                None => {}
                Some(WriteError::Read(_) | WriteError::Storage { .. }) => running.oracle = before,
                // The write was recorded, but its answer could not be read.
                Some(WriteError::OutcomeUnknown { .. }) => is_unknown = true,
                Some(error) => panic!("read {nth}: {error}"),
            }
            store.flush();
        }
        assert_eq!(store.status().stopped, None);
        running.disk.set_faults(Faults::default());
        settle(&store);
        assert!(running.disk.bytes(path(DAMAGED)).is_err(), "a failed read replaced the index");
        if is_unknown {
            assert!(store.verify().expect("the verification runs").is_clean());
            continue;
        }
        running.work_with_retry(&store, 10);
        unavailable +=
            usize::from(events.try_iter().any(|event| matches!(event, IndexEvent::Unavailable { .. })));
        running.check(store, 0);
    }
    // How many depends on the turns of the threads.
    assert!(unavailable > 0, "no failed read made the index unavailable");
}

/// Fail one access in this many. Failing all of them takes a minute.
const STEP: usize = 3;

/// Fails accesses of one kind in turn during a flush, until a flush has fewer of them. Returns their number.
fn fail_each_access(seed: u64, count: fn(&SimDisk) -> u64, fault: fn(u64) -> Faults) -> u64 {
    let mut sound = Running::new(seed, 15);
    sound.memory = 256 << 10;
    for nth in (1..).step_by(STEP) {
        let mut running = sound.copy();
        let store = running.open();
        running.work(&store, 12);
        let at = count(&running.disk) + nth;
        running.disk.set_faults(fault(at));
        store.flush();
        let is_met = count(&running.disk) >= at;
        running.disk.set_faults(Faults::default());
        settle(&store);
        running.check(store, 0);
        if !is_met {
            return nth - 1;
        }
    }
    unreachable!("a flush ends")
}

#[test]
fn a_flush_that_failed_anywhere_is_done_once() {
    let from = |read| Faults { fail_reads_from: Some(read), ..Faults::default() };
    let reads = fail_each_access(45, SimDisk::reads, from);
    let writes = fail_each_access(46, SimDisk::writes, |write| Faults {
        fail_write: Some(write),
        ..Faults::default()
    });
    assert!(reads > 5 && writes > 20, "{reads} reads, {writes} writes");
}

/// Pays 1 USD to a separate account.
fn pay(store: &Store, number: u32) -> Result<(), WriteError> {
    let posting = Posting {
        source: "world".parse().expect("an address"),
        destination: format!("users:{number}").parse().expect("an address"),
        amount: 1_u64.into(),
        asset: "USD".parse().expect("an asset"),
    };
    let create = CreateTransaction::of(Postings::from(vec![posting]));
    store
        .apply(Submission {
            ledger: LedgerName::parse("payments").expect("a name"),
            requests: vec![Request::from(Command::CreateTransaction(create))],
            atomicity: Atomicity::Independent,
            mode: Mode::Commit,
            detail: Detail::Ids,
        })
        .map(drop)
}

#[test]
fn a_full_index_refuses_writes_until_there_is_room() {
    let mut running = Running::new(35, 1);
    running.memory = 1 << 20;
    let store = running.open();
    let events = watch(&store);
    store
        .create_ledger(LedgerName::parse("payments").expect("a name"), LedgerOptions::default())
        .expect("a new ledger");
    running.disk.set_full(Some(path(INDEX))).expect("there is an index");
    let mut paid = 0;
    let refused = loop {
        match pay(&store, paid) {
            Ok(()) => paid += 1,
            // The flush has just failed, and the file was not reopened yet.
            Err(WriteError::Read(_)) => {}
            Err(error) => break error,
        }
        assert!(paid < 100_000, "the memory that waits for the index is not bounded");
    };
    assert_eq!(refused, WriteError::DiskNearlyFull);
    wait_for(&events, |event| matches!(event, IndexEvent::Unavailable { .. }));
    assert!(paid > 100, "{paid}");
    running.disk.set_full(None).expect("no file is named");
    let until = Instant::now() + TIMEOUT;
    while let Err(error) = pay(&store, paid) {
        assert!(matches!(error, WriteError::DiskNearlyFull | WriteError::Read(_)), "{error}");
        assert!(Instant::now() < until, "it goes on refusing");
        std::thread::yield_now();
    }
    settle(&store);
    let ledger = store.ledger("payments").expect("a name");
    assert_eq!(ledger.balance("world", "USD").expect("read"), -i64::from(paid) - 1);
    assert_eq!((store.status().stopped, store.status().index.rebuilt), (None, Vec::new()));
    assert!(store.verify().expect("the verification runs").is_clean());
}

#[test]
fn a_rebuild_that_fails_is_tried_again() {
    let mut running = Running::new(37, 80);
    let store = running.open();
    let events = watch(&store);
    running.damage();
    running.disk.set_faults(Faults { is_full: true, ..Faults::default() });
    assert!(running.oracle.compare(&store).is_err(), "nothing is damaged");
    wait_for(&events, |event| matches!(event, IndexEvent::RebuildFailed { .. }));
    assert!(running.disk.bytes(path(INDEX)).is_ok(), "the old index is still in its place");
    running.disk.set_faults(Faults::default());
    wait_until_rebuilt(&events);
    running.work_with_retry(&store, 20);
    running.check(store, 1);
}

#[test]
fn a_store_closes_while_its_index_is_rebuilt() {
    let running = Running::new(39, 150);
    let mut interrupted = 0;
    for _ in 0..10 {
        let copy = running.copy();
        let store = copy.open();
        let events = watch(&store);
        copy.damage();
        let _ = copy.oracle.compare(&store);
        wait_for(&events, |event| matches!(event, IndexEvent::Rebuilding { .. }));
        store.close().expect("nothing has failed");
        interrupted += usize::from(store.status().index.rebuilt.is_empty());
        drop(store);
        let store = copy.open();
        let events = watch(&store);
        if copy.oracle.compare(&store).is_err() {
            wait_until_rebuilt(&events);
            assert_eq!(copy.oracle.compare(&store), Ok(()));
        }
    }
    println!("{interrupted} of 10 rebuilds were interrupted");
}
