use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use ledger_core::{BucketName, LedgerName, LedgerOptions, Metadata, Timestamp};
use ledger_journal::disk::{Disk, Faults, SimDisk};

use super::*;
use crate::documents::{Collection, DocumentAction, DocumentChange, Expected};
use crate::options::{Options, TimeSource};
use crate::progress::Progress;
use crate::store::VerifyReport;

const BACKUP: &str = "backup";
const DATA: &str = "data";

/// A clock that advances by a second at each call.
#[derive(Debug, Default)]
struct Ticking(std::sync::atomic::AtomicI64);

impl TimeSource for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_000 + self.0.fetch_add(1_000_000, Ordering::Relaxed))
    }
}

/// Creates a store in memory whose commits have different dates.
fn store() -> Store {
    Store::in_memory_with(&Options { clock: Arc::new(Ticking::default()), ..Options::default() })
}

fn pay(store: &Store, user: u64, amount: u64) {
    let ledger = store.ledger("main").expect("a name");
    let paid = ledger.transaction().posting("world", format!("users:{user}"), amount, "USD/2");
    paid.metadata("note", "x".repeat(200)).commit().expect("recorded");
}

/// Records some hundred kilobytes of payments in one atomic bulk.
fn pay_atomically(store: &Store, count: u64) {
    let ledger = store.ledger("main").expect("a name");
    let mut batch = ledger.batch().atomic();
    for user in 0..count {
        let paid = ledger.transaction().posting("world", format!("users:{user}"), 1, "USD/2");
        batch = batch.push(paid.metadata("note", "x".repeat(200)));
    }
    batch.commit().expect("recorded");
}

fn put_document(store: &Store, key: u8) {
    const THINGS: Collection = Collection::new(100).expect("a collection of applications");
    let action = DocumentAction::Put { value: vec![key; 3_000], keys: vec![] };
    let change = DocumentChange { collection: THINGS, key: vec![key], expected: Expected::Anything, action };
    store.change_documents(vec![change]).expect("recorded");
}

fn sim() -> (SimDisk, Arc<dyn Disk>) {
    let disk = SimDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    (disk, shared)
}

fn backup(store: &Store, disk: &Arc<dyn Disk>) -> Result<BackupReport, BackupError> {
    store.backup_on(disk, Path::new(BACKUP))
}

fn restore(disk: &Arc<dyn Disk>, point: RestorePoint) -> Result<BackupReport, BackupError> {
    restore_on(disk, Path::new(BACKUP), Path::new(DATA), point, &ProgressWatcher::default())
}

/// Opens the restored store and verifies it.
fn opened(disk: &Arc<dyn Disk>) -> Store {
    let store = Store::open_on(disk, Path::new(DATA), &Options::default()).expect("it opens");
    let report: VerifyReport = store.verify().expect("room");
    assert!(report.is_clean(), "{}", report.to_json_lines());
    store
}

#[test]
fn restored_store_equals_its_source() {
    let store = store();
    for user in 0..200 {
        pay(&store, user % 7, user + 1);
        put_document(&store, (user % 5) as u8);
    }
    let (_, disk) = sim();
    let report = backup(&store, &disk).expect("a backup");
    let status = store.status();
    assert_eq!(
        (report.entries, report.copied, &report.chain),
        (status.entries, status.entries, &status.chain)
    );
    let report = restore(&disk, RestorePoint::End).expect("restored");
    assert_eq!((report.entries, &report.chain), (status.entries, &status.chain));
    let restored = opened(&disk);
    assert_eq!(restored.status().chain, status.chain);
    let (one, two) = (restored.ledger("main").expect("a name"), store.ledger("main").expect("a name"));
    assert_eq!(one.balances().now(), two.balances().now());
    assert_eq!(one.transactions().count(), two.transactions().count());
    // The copy is a store of its own and accepts writes.
    pay(&restored, 1, 1);
}

/// Checks that reports of one operation after the other begin at `first`, grow, and count all entries.
fn check_progress(reports: &[Progress], first: u64, total: u64, operations: &[LongWork]) {
    let mut seen: Vec<LongWork> = reports.iter().map(|progress| progress.work).collect();
    seen.dedup();
    assert_eq!(seen, operations);
    for operation in operations {
        let mut of_it = reports.iter().filter(|progress| progress.work == *operation);
        let done: Vec<u64> = of_it.clone().map(|progress| progress.done).collect();
        assert!(done.len() > 2 && done[0] == first && done.is_sorted_by(|a, b| a < b), "{done:?}");
        assert!(of_it.all(|progress| progress.total == total), "{reports:?}");
    }
}

#[test]
fn backups_and_restores_report_their_progress() {
    let reports: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let seen = reports.clone();
    let watcher = ProgressWatcher::new(move |progress| seen.lock().expect("no panic").push(progress));
    let store = Store::in_memory_with(&Options { progress: watcher.clone(), ..Options::default() });
    let take = || std::mem::take(&mut *reports.lock().expect("no panic"));
    let (_, disk) = sim();
    pay_atomically(&store, 300);
    let first = backup(&store, &disk).expect("a backup").entries;
    check_progress(&take(), 0, first, &[LongWork::CopyJournal, LongWork::VerifyCopy]);
    pay_atomically(&store, 300);
    let entries = backup(&store, &disk).expect("a backup").entries;
    check_progress(&take(), first, entries, &[LongWork::CopyJournal, LongWork::VerifyCopy]);
    restore_on(&disk, Path::new(BACKUP), Path::new(DATA), RestorePoint::End, &watcher).expect("restored");
    let operations = [LongWork::ReadBackup, LongWork::CopyJournal, LongWork::VerifyCopy];
    check_progress(&take(), 0, entries, &operations);
}

#[test]
fn later_backup_copies_new_entries_only() {
    let store = store();
    let (_, disk) = sim();
    let empty = backup(&store, &disk).expect("a backup");
    assert_eq!((empty.entries, empty.copied), (0, 0));
    for round in 1..=4 {
        for user in 0..20 {
            pay(&store, user, round);
        }
        let report = backup(&store, &disk).expect("a backup");
        let created = u64::from(round == 1);
        assert_eq!((report.copied, report.entries), (20 + created, 20 * round + 1));
    }
    let again = backup(&store, &disk).expect("a backup");
    assert_eq!((again.copied, again.chain), (0, store.status().chain));
}

#[test]
fn backs_up_while_others_write() {
    let home = tempfile::tempdir().expect("a directory");
    let store = Store::open(home.path().join("data")).expect("it opens");
    let (copy, done) = (home.path().join("backup"), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (store, done) = (&store, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    pay(store, writer, 1);
                    pay_atomically(store, 100);
                }
            });
        }
        for _ in 0..5 {
            let acknowledged = store.status().entries;
            let report = store.backup(&copy).expect("a backup");
            assert!(report.entries >= acknowledged);
            assert_eq!(store.chain_at(report.entries), Ok(Some(report.chain)));
        }
        done.store(true, Ordering::Relaxed);
    });
    let last = store.backup(&copy).expect("a backup");
    let status = store.status();
    assert_eq!((last.entries, &last.chain), (status.entries, &status.chain));
    let checked = Store::verify_backup(&copy).expect("it is sound");
    assert_eq!((checked.entries, checked.chain), (last.entries, last.chain));
    Store::restore(&copy, home.path().join("restored"), RestorePoint::End).expect("restored");
    let restored = Store::open(home.path().join("restored")).expect("it opens");
    assert!(restored.verify().expect("room").is_clean());
    assert_eq!(restored.status().chain, status.chain);
}

#[test]
fn repeats_a_backup_after_power_cut() {
    let store = store();
    pay_atomically(&store, 300);
    let (whole, disk) = sim();
    backup(&store, &disk).expect("a backup");
    let syncs = whole.syncs();
    assert!(syncs > 10, "{syncs}");
    for cut in 1..=syncs {
        let broken = SimDisk::with_faults(Faults { cut_at_sync: Some(cut), ..Faults::default() });
        let shared: Arc<dyn Disk> = Arc::new(broken.clone());
        backup(&store, &shared).expect_err("the power fails");
        for seed in 0..4 {
            let disk: Arc<dyn Disk> = Arc::new(broken.after_power_cut(seed));
            let report =
                backup(&store, &disk).unwrap_or_else(|error| panic!("cut {cut}, seed {seed}: {error}"));
            assert_eq!(report.chain, store.status().chain);
        }
    }
}

#[test]
fn damaged_backup_is_refused() {
    let store = store();
    for user in 0..100 {
        pay(&store, user, 5);
    }
    let (sim, disk) = sim();
    backup(&store, &disk).expect("a backup");
    let journal = Path::new(BACKUP).join("journal/00000000000000000001.log");
    let bytes = sim.bytes(&journal).expect("it is there");
    for at in [4_096 + 30, bytes.len() / 2, bytes.len() - 5_000] {
        let damaged = sim.synced_copy();
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        damaged.set_bytes(&journal, changed).expect("it is there");
        let disk: Arc<dyn Disk> = Arc::new(damaged.clone());
        let refused = restore(&disk, RestorePoint::Entries(1)).expect_err("it is damaged");
        assert!(matches!(&refused, BackupError::Source(OpenError::Damaged { .. })), "{at}: {refused}");
        assert!(!disk.exists(Path::new(DATA)).expect("the disk works"), "nothing was begun");
    }
    let absent = restore_on(
        &disk,
        Path::new("absent"),
        Path::new(DATA),
        RestorePoint::End,
        &ProgressWatcher::default(),
    );
    assert!(matches!(absent, Err(BackupError::Source(OpenError::Damaged { .. }))), "{absent:?}");
    assert!(!disk.exists(Path::new("absent")).expect("the disk works"));
}

#[test]
fn restores_to_entry_and_date() {
    let store = store();
    // After each commit: number of entries, date of the newest log, chain hash.
    let mut commits: Vec<(u64, Timestamp, String)> = Vec::new();
    for round in 0..12 {
        if round % 4 == 3 {
            pay_atomically(&store, 200);
        } else {
            pay(&store, round, 5);
        }
        let status = store.status();
        let newest = store.ledger("main").expect("a name").logs().newest_first().page(1).expect("it reads");
        commits.push((status.entries, newest.items[0].entry.date, status.chain));
    }
    let (sim, disk) = sim();
    backup(&store, &disk).expect("a backup");
    let restored = |point| {
        let disk: Arc<dyn Disk> = Arc::new(sim.synced_copy());
        let report = restore(&disk, point).expect("restored");
        assert_eq!(opened(&disk).status().entries, report.entries);
        report
    };
    for (at, (entries, date, chain)) in commits.iter().enumerate() {
        for point in [RestorePoint::Entries(*entries), RestorePoint::Date(*date)] {
            let report = restored(point);
            assert_eq!((report.entries, &report.chain), (*entries, chain), "{point:?}");
        }
        // A date within the next commit, and one right before it.
        let Some((_, next_date, _)) = commits.get(at + 1) else { continue };
        let before = Timestamp::from_micros(next_date.as_micros() - 1);
        assert_eq!(restored(RestorePoint::Date(before)).entries, *entries);
        assert_eq!(restored(RestorePoint::Entries(commits[at + 1].0 - 1)).entries, *entries);
    }
    let all = store.status().entries;
    assert_eq!(restored(RestorePoint::Entries(all + 7)).entries, all);
    assert_eq!(restored(RestorePoint::Date(Timestamp::MAX)).entries, all);
    assert_eq!(restored(RestorePoint::Date(Timestamp::from_micros(0))).entries, 0);
}

#[test]
fn refuses_destinations_of_another_history() {
    let (one, two) = (store(), store());
    pay(&one, 1, 1);
    pay(&two, 1, 1);
    let (_, disk) = sim();
    backup(&one, &disk).expect("a backup");
    assert!(matches!(backup(&two, &disk), Err(BackupError::OtherStore)));
    restore(&disk, RestorePoint::End).expect("restored");
    let restored = opened(&disk);
    pay(&restored, 1, 7);
    pay(&one, 1, 8);
    let refused = restored.backup_on(&disk, Path::new(BACKUP)).expect("it continues the backup");
    assert_eq!(refused.copied, 1);
    assert!(matches!(backup(&one, &disk), Err(BackupError::OtherHistory { entries: 3 })));
    // A restore never overwrites a directory with a store.
    let taken = restore(&disk, RestorePoint::End).expect_err("it is in use");
    assert!(matches!(taken, BackupError::Destination(OpenError::Locked { .. })), "{taken}");
    drop(restored);
    let taken = restore(&disk, RestorePoint::End).expect_err("there is a store");
    assert!(matches!(taken, BackupError::Destination(OpenError::Exists { .. })), "{taken}");
}

#[test]
fn copies_chunks_whose_sections_were_removed() {
    let home = tempfile::tempdir().expect("a directory");
    let store = Store::open(home.path().join("data")).expect("it opens");
    let other = BucketName::parse("other").expect("a name");
    let options = LedgerOptions { bucket: other.clone(), ..LedgerOptions::default() };
    store.create_ledger(LedgerName::parse("gone").expect("a name"), options).expect("created");
    for user in 0..50 {
        pay(&store, user, 1);
        let gone = store.ledger("gone").expect("a name");
        gone.set_account_metadata("a", Metadata::from_iter([("k", "v")])).expect("recorded");
    }
    store.delete_bucket(&other).expect("deleted");
    store.remove_deleted(std::time::Duration::ZERO).expect("removed");
    assert!(store.reclaim(&|| false).expect("room").is_done);
    let (copy, restored) = (home.path().join("backup"), home.path().join("restored"));
    store.backup(&copy).expect("a backup");
    Store::restore(&copy, &restored, RestorePoint::End).expect("restored");
    let restored = Store::open(&restored).expect("it opens");
    assert!(restored.verify().expect("room").is_clean());
    assert_eq!(restored.status().chain, store.status().chain);
}

#[test]
fn restore_points_have_texts() {
    assert_eq!("42".parse(), Ok(RestorePoint::Entries(42)));
    let date = Timestamp::parse("2024-05-01T10:00:00Z").expect("a date");
    assert_eq!("2024-05-01T10:00:00Z".parse(), Ok(RestorePoint::Date(date)));
    for text in ["", "-1", "yesterday"] {
        assert!(text.parse::<RestorePoint>().is_err(), "{text}");
    }
}
