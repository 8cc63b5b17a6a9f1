//! Reports of the progress of long work.

use std::path::Path;
use std::sync::{Arc, Mutex};

use ledger_store::{LongWork, Options, Progress, ProgressWatcher, Store};
use ledger_testkit::{Disk, SimDisk};

use super::recovery::{INDEX, path};
use super::running_store::{Running, wait_until_rebuilt, watch};

/// Returns options that record all reports of progress, and the recorded reports.
fn recording_options() -> (Options, Arc<Mutex<Vec<Progress>>>) {
    let reports: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let mut options = Options::default();
    let watched = reports.clone();
    options.progress = ProgressWatcher::new(move |progress| watched.lock().expect("no panic").push(progress));
    (options, reports)
}

/// Returns the reports so far, and forgets them.
fn take(reports: &Mutex<Vec<Progress>>) -> Vec<Progress> {
    std::mem::take(&mut *reports.lock().expect("no panic"))
}

#[test]
fn recoveries_and_verifications_tell_how_far_they_are() {
    let disk = SimDisk::new();
    let (options, reports) = recording_options();
    let open = || {
        let disk: Arc<dyn Disk> = Arc::new(disk.clone());
        Store::open_on_disk(disk, Path::new("data"), &options).expect("the store opens")
    };
    let store = open();
    let ledger = store.ledger("main").expect("a name");
    for amount in 1..=30 {
        ledger.transaction().posting("world", "a", amount, "USD").commit().expect("recorded");
    }
    let entries = store.status().entries;
    store.close().expect("the store closes");
    drop((ledger, store));
    // Without an index, the next opening replays the whole journal.
    disk.remove(path(INDEX)).expect("there is an index");
    take(&reports);
    let store = open();
    let recovery = take(&reports);
    assert!(recovery.iter().all(|one| (one.work, one.total) == (LongWork::Recovery, entries)));
    assert_eq!(recovery.first().map(|one| one.done), Some(0));
    assert_eq!(recovery.last().map(|one| one.done), Some(entries));
    assert!(recovery.is_sorted_by_key(|one| one.done), "{recovery:?}");
    assert!(store.verify().expect("the command runs").violations.is_empty());
    let verification = take(&reports);
    for work in [LongWork::VerifyJournal, LongWork::VerifyReplay] {
        let mut of_work = verification.iter().filter(|one| one.work == work);
        assert!(of_work.clone().all(|one| one.total == entries && one.done <= entries));
        assert_eq!(of_work.next().map(|one| one.done), Some(0), "{work:?}");
    }
}

#[test]
fn a_rebuild_tells_how_far_it_is() {
    let running = Running::new(41, 120);
    let (options, reports) = recording_options();
    let store = running.open_with(options);
    let events = watch(&store);
    take(&reports);
    running.damage();
    assert!(running.oracle.compare(&store).is_err(), "nothing is damaged");
    wait_until_rebuilt(&events);
    let entries = store.status().entries;
    let mut rebuild = take(&reports);
    rebuild.retain(|one| one.work == LongWork::IndexRebuild);
    assert!(rebuild.iter().all(|one| one.total == entries && one.done <= entries), "{rebuild:?}");
    assert_eq!(rebuild.first().map(|one| one.done), Some(0));
}
