//! Permanent removal of ledgers: they disappear everywhere, and nothing else changes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ledger_core::schema::Schema;
use ledger_core::{
    BucketName, Command, FilterOf, InsertSchema, LedgerName, LedgerOptions, LogEntry, SchemaVersion,
    Timestamp,
};
use ledger_store::{
    Atomicity, Collection, Deleted, Detail, Direction, DocumentAction, DocumentChange, Expected,
    FeedPosition, LedgerInfo, Mode, Options, PageRequest, ReadError, Reclaimed, Request, Start, Store,
    Submission, WriteError,
};
use ledger_testkit::{Disk, Faults, SetClock, SimDisk, logs};

const INDEX: &str = "data/index/index.redb";
/// Ledgers that the tests remove.
const DOOMED: [&str; 2] = ["doomed", "lost"];

fn name(text: &str) -> LedgerName {
    LedgerName::parse(text).expect("a name")
}

fn bucket(text: &str) -> BucketName {
    BucketName::parse(text).expect("a name")
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

/// A disk and a clock for a store.
#[derive(Clone)]
struct Machine {
    disk: SimDisk,
    clock: Arc<SetClock>,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { disk: SimDisk::new(), clock: Arc::default() };
        machine.clock.set(at(1_000));
        machine
    }

    /// Returns a machine with the same clock and another disk.
    fn on(&self, disk: SimDisk) -> Self {
        Self { disk, clock: self.clock.clone() }
    }

    fn try_open(&self) -> Result<Store, ledger_store::OpenError> {
        let mut options = Options::default();
        options.memory_budget = 2 << 20;
        options.segment_bytes = 32 << 10;
        options.clock = self.clock.clone();
        let disk: Arc<dyn Disk> = Arc::new(self.disk.clone());
        Store::open_on_disk(disk, Path::new("data"), &options)
    }

    #[track_caller]
    fn open(&self) -> Store {
        self.try_open().expect("the store opens")
    }

    /// Returns the size of the first three files of the journal, which existed from the start.
    fn sealed_bytes(&self) -> usize {
        let directory = Path::new("data/journal");
        let mut names = self.disk.list(directory).expect("a directory");
        names.sort();
        names.truncate(3);
        names.iter().map(|name| self.disk.bytes(&directory.join(name)).expect("a file").len()).sum()
    }
}

fn create(store: &Store, ledger: &str, in_bucket: &str) {
    let options = LedgerOptions { bucket: bucket(in_bucket), ..LedgerOptions::default() };
    store.create_ledger(name(ledger), options).expect("a new ledger");
}

/// Writes logs of all kinds. The ledgers take turns, so that most chunks contain several buckets.
fn write(store: &Store, ledgers: &[&str], rounds: u64) {
    for round in 0..rounds {
        for (number, of) in ledgers.iter().enumerate() {
            let ledger = store.ledger(of).expect("a name");
            let user = format!("users:{}", round % 11);
            let last = ledger.view().and_then(|view| view.last_log()).map_or(0, ledger_core::LogId::get);
            let mut payment = ledger
                .transaction()
                .posting("world", &user, 10 + round, "USD/2")
                .metadata("padding", "x".repeat(400).as_str())
                .reference(format!("{of}-{last}"))
                .idempotency_key(format!("key-{last}"));
            if round % 4 == 1 {
                payment = payment.timestamp(at(500 + (round * 7_919 % 50) as i64));
            }
            let paid = payment.commit().expect("the write succeeds");
            if round % 5 == number as u64 {
                let tier = [("tier", "gold")].into_iter().collect();
                ledger.set_account_metadata(&user, tier).expect("the write succeeds");
            }
            if round % 6 == 0 {
                ledger.revert(paid.id).commit().expect("the revert succeeds");
            }
        }
    }
}

fn insert_schema(store: &Store, ledger: &str) {
    let schema = Box::new(Schema::parse(r#"{"chart":{"users":{"$user":{}}}}"#).expect("a schema"));
    let version = SchemaVersion::parse("v1").expect("a version");
    let request: Request = Command::InsertSchema(InsertSchema { version, schema }).into();
    let submission = Submission {
        ledger: name(ledger),
        requests: vec![request],
        atomicity: Atomicity::Independent,
        mode: Mode::Commit,
        detail: Detail::Ids,
    };
    store.apply(submission).expect("the write succeeds");
}

/// Creates a store with two ledgers that are kept, and two in a bucket that was deleted at second 2,000.
fn with_doomed(machine: &Machine) -> Store {
    let store = machine.open();
    for (ledger, of) in [("one", "kept"), ("doomed", "gone"), ("two", "other"), ("lost", "gone")] {
        create(&store, ledger, of);
        insert_schema(&store, ledger);
    }
    store.set_mapping(&name("doomed"), "[]".to_owned()).expect("the write succeeds");
    write(&store, &["one", "doomed", "two", "lost"], 20);
    store.flush();
    write(&store, &["one", "doomed", "lost"], 10);
    machine.clock.set(at(2_000));
    store.delete_bucket(&bucket("gone")).expect("the deletion succeeds");
    write(&store, &["one", "two"], 5);
    store
}

/// Removes everything that was deleted by `until`.
fn remove(machine: &Machine, store: &Store, until: i64) -> Result<Vec<LedgerInfo>, WriteError> {
    machine.clock.set(at(until + 1_000));
    store.remove_deleted(Duration::from_secs(1_000))
}

/// Returns the logs of the kept ledgers.
fn kept(store: &Store) -> BTreeMap<LedgerName, Vec<LogEntry>> {
    let mut all = logs(store).expect("the logs are readable");
    all.retain(|ledger, _| !DOOMED.contains(&ledger.as_str()));
    all
}

fn listed(store: &Store, deleted: Deleted) -> String {
    let page = PageRequest { size: 100, direction: Direction::Ascending, start: Start::First };
    let all = FilterOf::all();
    let page = store.snapshot().ledgers(&page, &all, deleted).expect("a list");
    page.items.iter().map(|ledger| ledger.name.as_str()).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check_sound(store: &Store) {
    let report = store.verify().expect("the verification runs");
    assert!(report.is_clean(), "{}", report.to_json_lines());
}

/// Checks that the other ledgers are as before, and that nothing of the removed ones is left.
#[track_caller]
fn check_removed(store: &Store, expected: &BTreeMap<LedgerName, Vec<LogEntry>>) {
    assert_eq!(logs(store).expect("the logs are readable"), *expected);
    assert_eq!(listed(store, Deleted::Shown), "one two");
    for doomed in DOOMED {
        assert!(store.snapshot().ledger(&name(doomed)).is_none());
    }
    let mut fed: BTreeMap<LedgerName, Vec<LogEntry>> = BTreeMap::new();
    let (snapshot, mut from) = (store.snapshot(), FeedPosition::FIRST);
    while from < snapshot.feed_end() {
        let part = snapshot.feed(from).expect("a part of the feed");
        for log in part.logs {
            fed.entry(log.ledger).or_default().push(log.log.entry);
        }
        from = part.next;
    }
    assert_eq!(fed.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (ledger, logs) in &fed {
        assert_eq!(logs.len(), expected[ledger].len(), "{ledger}");
    }
    assert_eq!(store.restore_bucket(&bucket("gone")), Err(WriteError::BucketRemoved));
    check_sound(store);
}

#[test]
fn removes_deleted_ledgers_and_nothing_else() {
    let machine = Machine::new();
    let store = with_doomed(&machine);
    let expected = kept(&store);
    assert_eq!(remove(&machine, &store, 1_999).expect("the removal succeeds"), []);
    assert_eq!(listed(&store, Deleted::Shown), "one doomed two lost");
    store.restore_bucket(&bucket("gone")).expect("the bucket can still be restored");
    assert_eq!(remove(&machine, &store, 9_000).expect("the removal succeeds"), [], "it is not deleted");
    machine.clock.set(at(2_000));
    store.delete_bucket(&bucket("gone")).expect("the deletion succeeds");
    let removed = remove(&machine, &store, 2_000).expect("the removal succeeds");
    assert_eq!(removed.iter().map(|info| info.name.as_str()).collect::<Vec<_>>(), DOOMED);
    check_removed(&store, &expected);
    assert_eq!(remove(&machine, &store, 2_000).expect("the removal succeeds"), []);

    // The decision is an entry: every opening and every rebuild gets the same result, before and after the space is
    // freed.
    store.close().expect("the store closes");
    drop(store);
    check_openings(&machine, &expected);
    let before = machine.sealed_bytes();
    let store = machine.open();
    let reclaimed = store.reclaim(&|| false).expect("the reclaim succeeds");
    assert_eq!((reclaimed.ledgers, reclaimed.is_done), (2, true));
    let after = machine.sealed_bytes();
    // Reclaiming keeps the heads of chunks, which are a large part of these small chunks.
    assert!(reclaimed.journal_bytes > 0 && after < before * 3 / 4, "{before} bytes became {after}");
    check_removed(&store, &expected);
    let nothing = Reclaimed { is_done: true, ..Reclaimed::default() };
    assert_eq!(store.reclaim(&|| false).expect("the reclaim succeeds"), nothing);
    store.close().expect("the store closes");
    drop(store);
    check_openings(&machine, &expected);
    let store = machine.open();
    write(&store, &["one"], 3);
    check_sound(&store);
}

/// Checks copies of the store, opened as it is and without its index.
#[track_caller]
fn check_openings(machine: &Machine, expected: &BTreeMap<LedgerName, Vec<LogEntry>>) {
    let reopened = machine.on(machine.disk.synced_copy()).open();
    assert_eq!(reopened.opening().rebuilt, None);
    check_removed(&reopened, expected);
    drop(reopened);
    let rebuilt = machine.on(machine.disk.synced_copy());
    rebuilt.disk.remove(Path::new(INDEX)).expect("the file exists");
    let rebuilt = rebuilt.open();
    assert!(rebuilt.opening().rebuilt.is_some());
    check_removed(&rebuilt, expected);
}

#[test]
fn reclaimed_store_survives_openings_and_rebuilds() {
    let machine = Machine::new();
    let store = with_doomed(&machine);
    remove(&machine, &store, 2_000).expect("the removal succeeds");
    store.reclaim(&|| false).expect("the reclaim succeeds");
    // The names are free, and no data remains under them.
    for doomed in DOOMED {
        create(&store, doomed, "gone");
        let ledger = store.ledger(doomed).expect("a name");
        assert_eq!(ledger.balance("users:1", "USD/2").expect("a balance").to_string(), "0");
        let view = store.snapshot().ledger(&name(doomed)).expect("the ledger exists");
        assert_eq!(view.mapping(), None);
        assert_eq!(view.schema(&SchemaVersion::parse("v1").expect("a version")).expect("an answer"), None);
    }
    write(&store, &["doomed", "one", "lost"], 12);
    let expected = logs(&store).expect("the logs are readable");
    assert_eq!(expected[&name("doomed")][0].id.get(), 1);
    check_sound(&store);
    // Ledgers can be deleted, restored and removed again. The earlier ones with their names have no effect.
    machine.clock.set(at(3_000));
    store.delete_bucket(&bucket("gone")).expect("the deletion succeeds");
    store.restore_bucket(&bucket("gone")).expect("the restoration succeeds");
    assert_eq!(logs(&store).expect("the logs are readable"), expected);
    store.close().expect("the store closes");
    drop(store);
    let store = machine.open();
    assert_eq!(store.opening().rebuilt, None);
    assert_eq!(logs(&store).expect("the logs are readable"), expected);
    check_sound(&store);
    drop(store);
    machine.disk.remove(Path::new(INDEX)).expect("the file exists");
    let store = machine.open();
    assert_eq!(logs(&store).expect("the logs are readable"), expected);
    check_sound(&store);
    // The index was rebuilt from a journal with holes. Reclaiming finds out that nothing more can be freed.
    let again = store.reclaim(&|| false).expect("the reclaim succeeds");
    assert_eq!((again.ledgers, again.journal_bytes), (2, 0));
    machine.clock.set(at(3_000));
    store.delete_bucket(&bucket("gone")).expect("the deletion succeeds");
    assert_eq!(remove(&machine, &store, 3_000).expect("the removal succeeds").len(), 2);
    store.reclaim(&|| false).expect("the reclaim succeeds");
    check_removed(&store, &kept(&store));
}

#[test]
fn a_ledger_that_is_made_beside_deleted_ones_stays() {
    let machine = Machine::new();
    let store = with_doomed(&machine);
    create(&store, "late", "gone");
    write(&store, &["late", "one"], 15);
    remove(&machine, &store, 2_000).expect("the removal succeeds");
    let expected = logs(&store).expect("the logs are readable");
    assert_eq!(listed(&store, Deleted::Shown), "one two late");
    // The bucket still has a ledger that is not removed.
    store.restore_bucket(&bucket("gone")).expect("nothing to restore");
    let reclaimed = store.reclaim(&|| false).expect("the reclaim succeeds");
    assert_eq!(reclaimed.ledgers, 2);
    assert!(reclaimed.journal_bytes > 0);
    assert_eq!(logs(&store).expect("the logs are readable"), expected);
    check_sound(&store);
    // The second deletion is later, so the removal is due later.
    machine.clock.set(at(5_000));
    store.delete_bucket(&bucket("gone")).expect("the deletion succeeds");
    assert_eq!(remove(&machine, &store, 4_999).expect("the removal succeeds"), []);
    assert_eq!(remove(&machine, &store, 5_000).expect("the removal succeeds").len(), 1);
    store.reclaim(&|| false).expect("the reclaim succeeds");
    check_removed(&store, &kept_of(&expected));
}

fn kept_of(all: &BTreeMap<LedgerName, Vec<LogEntry>>) -> BTreeMap<LedgerName, Vec<LogEntry>> {
    all.iter()
        .filter(|(ledger, _)| ["one", "two"].contains(&ledger.as_str()))
        .map(|(ledger, logs)| (ledger.clone(), logs.clone()))
        .collect()
}

#[test]
fn power_cut_during_removal_loses_nothing() {
    let machine = Machine::new();
    let store = with_doomed(&machine);
    let expected = kept(&store);
    store.close().expect("the store closes");
    drop(store);
    let mut cuts = 0;
    for cut in 1.. {
        let mut machine = machine.on(machine.disk.synced_copy());
        machine
            .disk
            .set_faults(Faults { cut_at_sync: Some(machine.disk.syncs() + cut), ..Faults::default() });
        if let Ok(store) = machine.try_open() {
            // The results do not matter: the power may be off.
            let _ = remove(&machine, &store, 2_000);
            let _ = store.reclaim(&|| false);
        }
        if !machine.disk.power_is_off() {
            break;
        }
        cuts += 1;
        machine = machine.on(machine.disk.after_power_cut(cut));
        if cut % 3 == 0 {
            // Without an index, the journal alone must suffice.
            let _ = machine.disk.remove(Path::new(INDEX));
        }
        let store = machine.open();
        assert_eq!(kept(&store), expected, "cut at {cut}");
        check_sound(&store);
        remove(&machine, &store, 2_000).expect("the removal succeeds");
        assert!(store.reclaim(&|| false).expect("the reclaim succeeds").is_done);
        check_removed(&store, &expected);
    }
    assert!(cuts > 10, "{cuts} syncs");
}

#[test]
fn disk_failure_during_reclaim_loses_nothing() {
    let machine = Machine::new();
    let store = with_doomed(&machine);
    remove(&machine, &store, 2_000).expect("the removal succeeds");
    let expected = kept(&store);
    store.close().expect("the store closes");
    drop(store);
    let mut failures = 0;
    for fail in (1..).step_by(5) {
        let machine = machine.on(machine.disk.synced_copy());
        let store = machine.open();
        let write = machine.disk.writes() + fail;
        machine.disk.set_faults(Faults { fail_write: Some(write), ..Faults::default() });
        let is_done = matches!(store.reclaim(&|| false), Ok(Reclaimed { is_done: true, .. }));
        let failed = machine.disk.writes() >= write;
        failures += u32::from(!is_done);
        drop(store);
        machine.disk.set_faults(Faults::default());
        let store = machine.open();
        assert_eq!(kept(&store), expected, "write {fail} failed");
        assert!(store.reclaim(&|| false).expect("the reclaim succeeds").is_done);
        check_removed(&store, &expected);
        if !failed {
            break;
        }
    }
    assert!(failures > 2, "{failures} writes");
}

#[test]
fn earlier_snapshot_reports_a_reclaimed_ledger() {
    let machine = Machine::new();
    let store = with_doomed(&machine);
    store.restore_bucket(&bucket("gone")).expect("the restoration succeeds");
    let before = store.snapshot().ledger(&name("doomed")).expect("the ledger exists");
    let others = store.snapshot();
    store.delete_bucket(&bucket("gone")).expect("the deletion succeeds");
    remove(&machine, &store, 2_000).expect("the removal succeeds");
    store.reclaim(&|| false).expect("the reclaim succeeds");
    let all = ledger_store::FeedSize { logs: 10, bytes: 1 << 20 };
    assert_eq!(before.logs_after(None, all, false).err(), Some(ReadError::LedgerRemoved));
    let one = others.ledger(&name("one")).expect("the ledger exists");
    assert_eq!(one.logs_after(None, all, false).expect("logs").logs.len(), 10);
    check_sound(&store);
}

#[test]
fn removal_before_hashing_does_not_stop_the_hasher() {
    let machine = Machine::new();
    // The order of two threads cannot be forced, so the test repeats.
    for round in 0..40 {
        let ledger = format!("short-{round}");
        let store = machine.open();
        create(&store, &ledger, "gone");
        write(&store, &[&ledger], 3);
        store.close().expect("the store closes");
        drop(store);
        // The hash of the next log follows from those before it, which are in the journal.
        let store = machine.open();
        write(&store, &[&ledger], 1);
        store.delete_bucket(&bucket("gone")).expect("the deletion succeeds");
        assert_eq!(store.remove_deleted(Duration::ZERO).expect("the removal succeeds").len(), 1);
        store.flush();
        assert_eq!(store.status().stopped, None);
        store.close().expect("the store closes");
    }
}

#[test]
fn keeps_documents_of_other_collections() {
    let machine = Machine::new();
    let store = with_doomed(&machine);
    let change = DocumentChange {
        collection: Collection::new(20).expect("a collection"),
        key: b"doomed".to_vec(),
        expected: Expected::Anything,
        action: DocumentAction::Put { value: b"v".to_vec(), keys: Vec::new() },
    };
    store.change_documents(vec![change]).expect("the write succeeds");
    remove(&machine, &store, 2_000).expect("the removal succeeds");
    store.reclaim(&|| false).expect("the reclaim succeeds");
    let kept = store.snapshot().document(Collection::new(20).expect("a collection"), b"doomed");
    assert_eq!(kept.expect("a part of the feed").map(|document| document.value), Some(b"v".to_vec()));
}
