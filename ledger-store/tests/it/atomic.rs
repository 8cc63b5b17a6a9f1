//! Atomic writes record documents and transactions together or not at all.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use ledger_core::{
    AccountAddress, Amount, Asset, Command, CreateTransaction, FilterOf, Idempotency, IdempotencyKey,
    LedgerName, LedgerOptions, Posting, Reference, Rejection, Script, TransactionId,
};
use ledger_store::{
    AtomicWrite, Atomicity, Collection, Detail, Direction, DocumentAction, DocumentChange, DocumentRange,
    DocumentRejection, Expected, LedgerCommand, Mode, Options, Outcome, PageRequest, Start, Store,
    Submission, TransactionOrder, TransactionQuery, WriteError,
};
use ledger_testkit::{Disk, Faults, Rng, SetClock, SimDisk, fail_decision_read, logs};

const DOCUMENTS: Collection = Collection::new(40).expect("a valid collection");

/// Returns options with a clock that does not advance.
fn options() -> Options {
    let mut options = Options::default();
    options.segment_bytes = 128 << 10;
    options.clock = Arc::new(SetClock::default());
    options
}

fn open(disk: &SimDisk) -> Option<Store> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Store::open_on_disk(disk, Path::new("data"), &options()).ok()
}

fn ledger(name: &str) -> LedgerName {
    LedgerName::parse(name).expect("a name")
}

fn account(text: &str) -> AccountAddress {
    AccountAddress::parse(text).expect("an address")
}

/// Returns a transaction of one dollar with a reference.
fn pay(to: &str, source: &str, reference: &str) -> LedgerCommand {
    let posting = Posting {
        source: account(source),
        destination: account("users:1"),
        amount: Amount::from(1_u64),
        asset: Asset::parse("USD").expect("an asset"),
    };
    let mut create = CreateTransaction::of(vec![posting].into());
    create.reference = Some(Reference::parse(reference).expect("a reference"));
    LedgerCommand { ledger: ledger(to), request: Command::CreateTransaction(create).into() }
}

/// Returns a change that stores a document of `bytes` bytes.
fn document(key: &str, bytes: usize) -> DocumentChange {
    let value = (0..bytes).map(|at| (at * 7 + key.len()) as u8 | 1).collect();
    DocumentChange {
        collection: DOCUMENTS,
        key: key.as_bytes().to_vec(),
        expected: Expected::Absent,
        action: DocumentAction::Put { value, keys: vec![] },
    }
}

fn write(documents: Vec<DocumentChange>, commands: Vec<LedgerCommand>) -> AtomicWrite {
    AtomicWrite { documents, commands }
}

fn keys(store: &Store) -> BTreeSet<String> {
    let found = store.snapshot().documents(DOCUMENTS, &DocumentRange::default()).expect("documents");
    found.into_iter().map(|found| String::from_utf8(found.key).expect("a text")).collect()
}

/// Returns the references of a ledger's transactions.
fn references(store: &Store, name: &str) -> BTreeSet<String> {
    let Some(view) = store.snapshot().ledger(&ledger(name)) else { return BTreeSet::new() };
    let query = TransactionQuery {
        filter: FilterOf::all(),
        at: None,
        effective_volumes: false,
        order: TransactionOrder::Id,
        page: PageRequest { size: 1_000, direction: Direction::Ascending, start: Start::First },
    };
    let page = view.transactions(&query).expect("a page");
    let reference = |reference: Option<Reference>| reference.expect("each has one").as_str().to_owned();
    page.items.into_iter().map(|found| reference(found.transaction.reference)).collect()
}

fn with_ledgers(store: &Store, names: &[&str]) {
    for name in names {
        store.create_ledger(ledger(name), LedgerOptions::default()).expect("a ledger");
    }
}

fn set<const N: usize>(texts: [&str; N]) -> BTreeSet<String> {
    texts.map(str::to_owned).into()
}

#[test]
fn records_documents_with_several_ledgers() {
    let store = Store::in_memory();
    with_ledgers(&store, &["a", "b"]);
    let commits = store.status().commits;
    let commands = vec![pay("a", "world", "1"), pay("b", "world", "1"), pay("a", "users:1", "2")];
    let outcomes = store.write_atomically(write(vec![document("d", 9)], commands)).expect("outcomes");
    let ids: Vec<_> = outcomes
        .iter()
        .map(|outcome| match outcome {
            Outcome::Done(receipt) => receipt.transaction.map(TransactionId::get),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids, [Some(1), Some(1), Some(2)]);
    assert_eq!(store.status().commits, commits + 1);
    assert_eq!((keys(&store), references(&store, "a")), (set(["d"]), set(["1", "2"])));
    assert_eq!(references(&store, "b"), set(["1"]));
}

#[test]
fn refused_command_records_nothing() {
    let disk = SimDisk::new();
    let store = open(&disk).expect("the store opens");
    with_ledgers(&store, &["a", "b"]);
    let both = |commands| store.write_atomically(write(vec![document("d", 9)], commands));
    let script = Script::new("send [USD 1] (source = @poor destination = @rich)".to_owned(), [].into());
    let mut poor = pay("b", "world", "3");
    if let Command::CreateTransaction(create) = &mut poor.request.command {
        create.movement = ledger_core::Movement::Script(script);
    }
    let refused = vec![
        pay("a", "world", "1"),
        pay("a", "nobody", "2"),
        pay("b", "world", "1"),
        poor,
        pay("a", "world", "1"),
    ];
    let outcomes = both(refused).expect("outcomes");
    let is_refused: Vec<_> = outcomes.iter().map(|outcome| matches!(outcome, Outcome::Refused(_))).collect();
    assert_eq!(is_refused, [false, true, false, true, true], "{outcomes:?}");
    assert_eq!(outcomes[0], Outcome::Cancelled);
    assert!(matches!(outcomes[4], Outcome::Refused(Rejection::ReferenceTaken { .. })));
    let entries = store.status().entries;
    assert!(keys(&store).is_empty() && references(&store, "a").is_empty());
    // The undone write has no effect: its references and ids are free.
    let outcomes = both(vec![pay("a", "world", "1"), pay("b", "world", "1")]).expect("outcomes");
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Done(_))), "{outcomes:?}");
    assert_eq!(store.status().entries, entries + 3);
    drop(store);
    let store = open(&disk).expect("the store opens");
    assert_eq!((keys(&store), references(&store, "a")), (set(["d"]), set(["1"])));
    let report = store.verify().expect("the verification runs");
    assert!(report.violations.is_empty(), "{report:?}");
}

#[test]
fn refused_document_records_no_command() {
    let store = Store::in_memory();
    with_ledgers(&store, &["a"]);
    let once = || store.write_atomically(write(vec![document("d", 9)], vec![pay("a", "world", "1")]));
    once().expect("a new ledger");
    let mut again = write(vec![document("e", 9), document("d", 9)], vec![pay("a", "world", "2")]);
    let refused = store.write_atomically(again.clone());
    let is_changed =
        matches!(&refused, Err(WriteError::Document(DocumentRejection::Changed { change: 1, .. })));
    assert!(is_changed, "{refused:?}");
    again.documents.pop();
    again.commands[0].ledger = ledger("missing");
    let refused = store.write_atomically(again);
    assert!(matches!(refused, Err(WriteError::LedgerNotFound { .. })), "{refused:?}");
    assert_eq!((keys(&store), references(&store, "a")), (set(["d"]), set(["1"])));
}

#[test]
fn keyed_commands_of_atomic_writes_are_compared() {
    let store = Store::in_memory();
    with_ledgers(&store, &["a"]);
    let keyed = |reference| {
        let mut command = pay("a", "world", reference);
        let key = IdempotencyKey::parse("k").expect("a key");
        command.request.idempotency = Some(Box::new(Idempotency { key, hash: "".into() }));
        store.write_atomically(write(vec![], vec![command])).expect("an answer").remove(0)
    };
    let replayed = |outcome: &Outcome| matches!(outcome, Outcome::Done(receipt) if receipt.replayed);
    assert!(!replayed(&keyed("1")) && replayed(&keyed("1")));
    let other = keyed("2");
    assert!(matches!(other, Outcome::Refused(Rejection::IdempotencyMismatch { .. })), "{other:?}");
    assert_eq!(references(&store, "a"), set(["1"]));
}

#[test]
fn failed_read_records_nothing() {
    let disk = SimDisk::new();
    let store = open(&disk).expect("the store opens");
    with_ledgers(&store, &["a", "b"]);
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        let first = write(vec![document(name, 9)], vec![pay(name, "world", &at.to_string())]);
        store.write_atomically(first).expect("a new ledger");
    }
    drop(store);
    let store = open(&disk).expect("the store opens");
    let mut failed = 0;
    for nth in 1.. {
        let (key, reference) = (format!("d{nth}"), format!("r{nth}"));
        fail_decision_read(&store, nth);
        let commands = vec![pay("a", "world", &reference), pay("b", "users:1", &reference)];
        let answer = store.write_atomically(write(vec![document(&key, 9)], commands));
        let is_over = fail_decision_read(&store, 0);
        if is_over {
            answer.expect("no read failed");
            break;
        }
        assert!(matches!(answer, Err(WriteError::Read(_))), "{answer:?}");
        assert_eq!((keys(&store).len(), references(&store, "a").len()), (2, 1));
        failed += 1;
    }
    assert!(failed > 0);
    assert_eq!(references(&store, "b").len(), 2);
}

/// Returns a random write. About half of these are refused.
fn random_write(rng: &mut Rng<'_>) -> AtomicWrite {
    let mut write = AtomicWrite::default();
    for number in 0..rng.below(3) {
        let mut change = document(&format!("{number}{}", rng.below(5)), 1 + rng.below(90) as usize);
        change.expected = if rng.one_in(20) { Expected::Absent } else { Expected::Anything };
        write.documents.push(change);
    }
    for _ in 0..rng.below(5) {
        let reference = format!("r{}", rng.below(300));
        let source = rng.pick(&["world", "world", "world", "users:1", "users:2"]);
        write.commands.push(pay(rng.pick(&["a", "b", "c"]), source, &reference));
    }
    write
}

/// Applies a write in parts, each of which must be accepted.
fn apply_in_parts(store: &Store, write: AtomicWrite) {
    store.change_documents(write.documents).expect("the whole write was accepted");
    for LedgerCommand { ledger, request } in write.commands {
        let (atomicity, mode, detail) = (Atomicity::Independent, Mode::Commit, Detail::Ids);
        let submission = Submission { ledger, requests: vec![request], atomicity, mode, detail };
        let outcomes = store.apply(submission).expect("an outcome");
        assert!(matches!(outcomes[..], [Outcome::Done(_)]), "{outcomes:?}");
    }
}

fn documents(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    let found = store.snapshot().documents(DOCUMENTS, &DocumentRange::default()).expect("documents");
    found.into_iter().map(|found| (found.key, found.value)).collect()
}

#[test]
fn random_writes_equal_their_accepted_parts() {
    for seed in 0..4 {
        let mut rng = Rng::from_seed(seed);
        let (disk, parts) = (SimDisk::new(), Store::in_memory_with(&options()));
        let mut store = open(&disk).expect("the store opens");
        with_ledgers(&store, &["a", "b", "c"]);
        with_ledgers(&parts, &["a", "b", "c"]);
        let (mut recorded, mut refused) = (0, 0);
        for step in 0..250 {
            let write = random_write(&mut rng);
            let is_recorded = match store.write_atomically(write.clone()) {
                Ok(outcomes) => outcomes.iter().all(|outcome| matches!(outcome, Outcome::Done(_))),
                Err(WriteError::Document(_)) => false,
                Err(error) => panic!("{error}"),
            };
            if is_recorded {
                recorded += 1;
                apply_in_parts(&parts, write);
            } else {
                refused += 1;
            }
            if step % 60 == 59 {
                store.flush();
            }
            if step % 100 == 99 {
                drop(store);
                store = open(&disk).expect("the store opens");
            }
        }
        assert!(recorded > 40 && refused > 40, "{recorded} of {}", recorded + refused);
        assert_eq!(logs(&store), logs(&parts), "seed {seed}");
        assert_eq!(documents(&store), documents(&parts), "seed {seed}");
        let report = store.verify().expect("the verification runs");
        assert!(report.violations.is_empty(), "{report:?}");
    }
}

/// Writes documents with transactions until the power fails. Returns the number of acknowledged writes.
fn write_until_cut(disk: &SimDisk, cut: u64) -> usize {
    let store = open(disk).expect("the store opens");
    with_ledgers(&store, &["a"]);
    disk.set_faults(Faults { cut_at_sync: Some(disk.syncs() + cut), ..Faults::default() });
    for number in 0..12 {
        let reference = number.to_string();
        // Each write takes several chunks, so the document and the transaction are in different ones.
        let documents = vec![document(&reference, 20_000), document(&format!("{reference}+"), 20_000)];
        if store.write_atomically(write(documents, vec![pay("a", "world", &reference)])).is_err() {
            return number;
        }
        if number % 4 == 3 {
            store.flush();
        }
    }
    12
}

#[test]
fn power_cut_never_parts_document_and_payment() {
    let (mut cuts, mut kept) = (0, BTreeSet::new());
    for cut in 1..60 {
        let disk = SimDisk::new();
        let acknowledged = write_until_cut(&disk, cut);
        cuts += usize::from(disk.power_is_off());
        for seed in 0..5 {
            let disk = disk.after_power_cut(seed);
            let store = open(&disk).expect("the store opens");
            let (keys, references) = (keys(&store), references(&store, "a"));
            let of_documents: BTreeSet<_> =
                keys.iter().map(|key| key.trim_end_matches('+').to_owned()).collect();
            assert_eq!(of_documents, references, "cut {cut}, seed {seed}");
            assert_eq!(keys.len(), 2 * references.len(), "cut {cut}, seed {seed}");
            assert!(references.len() >= acknowledged, "cut {cut}, seed {seed}");
            kept.insert(references.len());
        }
    }
    assert!(cuts > 20 && kept.len() > 10, "{cuts} cuts, {kept:?}");
}
