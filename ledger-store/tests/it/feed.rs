//! The feed returns all logs in order, each once, from any position.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

use ledger_core::{FilterOf, LedgerName, LedgerOptions, LogId, Metadata, Timestamp, WireHash};
use ledger_store::{
    Collection, Direction, DocumentAction, DocumentChange, Expected, FedLog, FeedPosition, FeedSize,
    ImportedLog, LogHashes, LogQuery, LogView, Options, PageRequest, Start, Store,
};
use ledger_testkit::{Disk, SimDisk};

fn name(text: &str) -> LedgerName {
    LedgerName::parse(text).expect("a name")
}

fn open(disk: &SimDisk) -> Store {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Store::open_on_disk(disk, Path::new("data"), &Options::default()).expect("the store opens")
}

/// Commits a change that is not a log.
fn change_a_document(store: &Store) {
    let change = DocumentChange {
        collection: Collection::new(16).expect("a collection"),
        key: b"k".to_vec(),
        expected: Expected::Anything,
        action: DocumentAction::Put { value: b"v".to_vec(), keys: Vec::new() },
    };
    store.change_documents(vec![change]).expect("the write succeeds");
}

/// Writes logs of every kind to several ledgers, with ascending and descending dates.
fn write(store: &Store, rounds: u64) {
    for round in 0..rounds {
        let ledger = store.ledger(if round % 3 == 0 { "one" } else { "two" }).expect("a name");
        let user = format!("users:{}", round % 7);
        let mut payment =
            ledger.transaction().posting("world", &user, 10 + round, "USD/2").metadata("k", "<v>");
        if round % 4 == 1 {
            payment =
                payment.timestamp(Timestamp::from_micros(1_700_000_000_000_000 + (round * 7919 % 50) as i64));
        }
        let paid = payment.commit().expect("the write succeeds");
        if round % 5 == 0 {
            ledger
                .set_account_metadata(&user, [("tier", "gold")].into_iter().collect())
                .expect("the write succeeds");
        }
        if round % 6 == 0 {
            ledger.revert(paid.id).commit().expect("the revert succeeds");
        }
        if round % 8 == 0 {
            change_a_document(store);
        }
    }
}

/// Returns the feed from a position to its end, and the position of the end.
fn rest(store: &Store, mut at: FeedPosition) -> (Vec<FedLog>, FeedPosition) {
    let (snapshot, mut logs) = (store.snapshot(), Vec::new());
    loop {
        let part = snapshot.feed(at).expect("the read succeeds");
        assert_eq!(
            part.next == at,
            at == snapshot.feed_end(),
            "a part ends where it begins at the end alone"
        );
        if part.next == at {
            return (logs, at);
        }
        logs.extend(part.logs);
        at = part.next;
    }
}

/// Returns the logs of a ledger as its list shows them.
fn listed(store: &Store, ledger: &str) -> Vec<LogView> {
    let page = PageRequest { size: 1_000_000, direction: Direction::Ascending, start: Start::First };
    let query = LogQuery { filter: FilterOf::all(), hashes: LogHashes::Wire, page };
    store.snapshot().ledger(&name(ledger)).expect("a ledger").logs(&query).expect("a list").items
}

fn without_hashes(logs: Vec<LogView>) -> Vec<LogView> {
    logs.into_iter().map(|log| LogView { hash: None, ..log }).collect()
}

fn of_ledger(logs: &[FedLog], ledger: &str) -> Vec<LogView> {
    logs.iter().filter(|fed| fed.ledger.as_str() == ledger).map(|fed| fed.log.clone()).collect()
}

#[test]
fn feed_has_the_same_logs_as_the_lists() {
    let disk = SimDisk::new();
    let store = open(&disk);
    write(&store, 200);
    let (first, middle) = rest(&store, FeedPosition::FIRST);
    store.flush();
    write(&store, 150);
    store.close().expect("the store closes");
    drop(store);
    let store = open(&disk);
    let middle = FeedPosition::new(middle.get()).expect("a position that was kept");
    let (second, end) = rest(&store, middle);
    assert_eq!(end, store.snapshot().feed_end());
    let all = [first, second].concat();
    for ledger in ["one", "two"] {
        assert_eq!(of_ledger(&all, ledger), without_hashes(listed(&store, ledger)));
    }
    assert_eq!(rest(&store, FeedPosition::FIRST).0, all, "what was passed on can be read again");
    assert!(all.iter().all(|fed| !fed.imported));
    // A position can also be in the middle of a chunk.
    for skipped in [1, 2, 77] {
        let from = FeedPosition::new(end.get() - skipped).expect("a position");
        assert!(all.ends_with(&rest(&store, from).0), "{skipped}");
    }
}

#[test]
fn marks_imported_logs() {
    let source = Store::in_memory();
    write(&source, 30);
    let logs: Vec<ImportedLog> = listed(&source, "two")
        .into_iter()
        .map(|log| ImportedLog {
            hash: log.hash.map(WireHash::from_bytes),
            entry: log.entry,
            original_updated_at: None,
            tells_volumes: true,
        })
        .collect();
    let store = Store::in_memory();
    store.create_ledger(name("two"), LedgerOptions::default()).expect("a new ledger");
    store.import(&name("two"), &logs).expect("the import succeeds");
    let ledger = store.ledger("two").expect("a name");
    ledger.set_account_metadata("a", Metadata::EMPTY).expect("the write succeeds");
    let (fed, _) = rest(&store, FeedPosition::FIRST);
    let marks: Vec<bool> = fed.iter().map(|fed| fed.imported).collect();
    assert_eq!(marks.len(), logs.len() + 1);
    assert_eq!(marks.iter().position(|imported| !imported), Some(logs.len()));
}

#[test]
fn returns_logs_of_a_ledger_in_parts_of_any_size() {
    let store = Store::in_memory();
    write(&store, 90);
    let view = store.snapshot().ledger(&name("two")).expect("a ledger");
    let expected = listed(&store, "two");
    assert_eq!(view.last_log(), expected.last().map(|log| log.entry.id));
    for (logs, bytes) in
        [(1, usize::MAX), (7, usize::MAX), (usize::MAX, 1), (usize::MAX, 5_000), (1_000, 1 << 20)]
    {
        let (mut got, mut after) = (Vec::new(), None);
        loop {
            let part = view.logs_after(after, FeedSize { logs, bytes }, true).expect("a part");
            assert!(part.logs.len() <= logs && !part.logs.is_empty());
            after = part.logs.last().map(|fed| fed.log.entry.id);
            got.extend(part.logs.into_iter().map(|fed| fed.log));
            if !part.has_more {
                break;
            }
        }
        assert!(got == expected, "{logs} logs, {bytes} bytes");
        let beyond = view.logs_after(after, FeedSize { logs, bytes }, false).expect("a part");
        assert!(beyond.logs.is_empty() && !beyond.has_more);
    }
    let last = view.logs_after(Some(LogId::new(u64::MAX)), FeedSize { logs: 1, bytes: 1 }, false);
    assert!(last.expect("nothing").logs.is_empty());
    let empty = Store::in_memory();
    empty.create_ledger(name("two"), LedgerOptions::default()).expect("a new ledger");
    assert_eq!(empty.snapshot().ledger(&name("two")).expect("a ledger").last_log(), None);
}

#[test]
fn consumer_gets_each_log_once_beside_writers() {
    const WRITERS: u64 = 4;
    const LOGS: u64 = 250;
    let store = Store::in_memory();
    store.create_ledger(name("one"), LedgerOptions::default()).expect("a new ledger");
    let (wake, woken) = mpsc::sync_channel(1);
    let watch = store.watch_commits(move || {
        let _ = wake.try_send(());
    });
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let ledger = store.ledger("one").expect("a name");
            scope.spawn(move || {
                for amount in 1..=LOGS {
                    let user = format!("users:{writer}");
                    ledger.transaction().posting("world", &user, amount, "USD").commit().expect("recorded");
                }
            });
        }
        let (mut at, mut ids) = (FeedPosition::FIRST, Vec::new());
        while (ids.len() as u64) < WRITERS * LOGS {
            let part = store.snapshot().feed(at).expect("a part");
            if part.next == at {
                woken.recv().expect("more is committed");
            }
            ids.extend(part.logs.iter().map(|fed| fed.log.entry.id.get()));
            at = part.next;
        }
        assert_eq!(ids, (1..=WRITERS * LOGS).collect::<Vec<_>>());
    });
    drop(watch);
}

#[test]
fn dropped_watcher_gets_no_more_calls() {
    let store = Store::in_memory();
    let (calls, seen) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (count, flag) = (calls.clone(), seen.clone());
    let first = store.watch_commits(move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let second = store.watch_commits(move || flag.store(true, Ordering::SeqCst));
    change_a_document(&store);
    assert_eq!((calls.load(Ordering::SeqCst), seen.load(Ordering::SeqCst)), (1, true));
    drop(first);
    seen.store(false, Ordering::SeqCst);
    change_a_document(&store);
    assert_eq!((calls.load(Ordering::SeqCst), seen.load(Ordering::SeqCst)), (1, true));
    drop(second);
}
