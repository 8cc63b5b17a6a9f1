//! Compares documents with a map, through flushes, openings and rebuilt indexes.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use ledger_store::{
    Collection, DOCUMENT_BYTES_MAX, Direction, Document, DocumentAction, DocumentChange, DocumentKey,
    DocumentRange, DocumentRejection, DocumentVersion, Expected, Options, Store, WriteError,
};
use ledger_testkit::{Disk, Rng, SimDisk};

const NAMES: u32 = 0;
const TIMES: u32 = 1;

fn collection() -> Collection {
    Collection::new(20).expect("a valid collection")
}

fn open(disk: &SimDisk) -> Store {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Store::open_on_disk(disk, Path::new("data"), &Options::default()).expect("the store opens")
}

fn put(key: &[u8], expected: Expected, value: &[u8], keys: Vec<DocumentKey>) -> DocumentChange {
    let action = DocumentAction::Put { value: value.to_vec(), keys };
    DocumentChange { collection: collection(), key: key.to_vec(), expected, action }
}

fn delete(key: &[u8], expected: Expected) -> DocumentChange {
    let action = DocumentAction::Delete;
    DocumentChange { collection: collection(), key: key.to_vec(), expected, action }
}

fn name(key: &[u8]) -> DocumentKey {
    DocumentKey { index: NAMES, key: key.to_vec(), unique: true }
}

fn refused(store: &Store, changes: Vec<DocumentChange>) -> DocumentRejection {
    match store.change_documents(changes) {
        Err(WriteError::Document(rejection)) => rejection,
        other => panic!("{other:?}"),
    }
}

#[test]
fn refuses_change_of_an_outdated_version() {
    let store = Store::in_memory();
    let first = store.change_documents(vec![put(b"a", Expected::Absent, b"1", vec![])]).expect("a change");
    let found = |change, expected, found| DocumentRejection::Changed { change, expected, found };
    let again = vec![put(b"a", Expected::Absent, b"2", vec![])];
    let refusal = refused(&store, again);
    assert_eq!(refusal, found(0, Expected::Absent, Some(first[0])));
    assert_eq!(refusal.to_string(), "change 0: the document exists already");
    let second = store
        .change_documents(vec![put(b"a", Expected::Version(first[0]), b"2", vec![])])
        .expect("the current version");
    assert!(second[0] > first[0]);
    // All or none: the second change is refused, so the first does not happen.
    let both =
        vec![put(b"b", Expected::Absent, b"1", vec![]), put(b"a", Expected::Version(first[0]), b"3", vec![])];
    let old = Expected::Version(first[0]);
    assert_eq!(refused(&store, both), found(1, old, Some(second[0])));
    assert_eq!(refused(&store, vec![delete(b"b", old)]), found(0, old, None));
    let snapshot = store.snapshot();
    assert_eq!(snapshot.document(collection(), b"b"), Ok(None));
    let expected = Document { key: b"a".to_vec(), value: b"2".to_vec(), keys: vec![], version: second[0] };
    assert_eq!(snapshot.document(collection(), b"a"), Ok(Some(expected)));
    store.change_documents(vec![delete(b"a", Expected::Version(second[0]))]).expect("a change");
    assert_eq!(store.snapshot().document(collection(), b"a"), Ok(None));
    assert!(snapshot.document(collection(), b"a").expect("the read succeeds").is_some(), "a snapshot stays");
}

#[test]
fn unique_key_moves_between_documents_in_one_commit() {
    let store = Store::in_memory();
    let changes = vec![
        put(b"a", Expected::Absent, b"", vec![name(b"x")]),
        put(b"b", Expected::Absent, b"", vec![name(b"y")]),
    ];
    store.change_documents(changes).expect("a change");
    let taken = |change| DocumentRejection::KeyTaken { change, index: NAMES };
    let third = vec![put(b"c", Expected::Anything, b"", vec![name(b"x")])];
    assert_eq!(refused(&store, third), taken(0));
    let twice = vec![
        put(b"c", Expected::Anything, b"", vec![name(b"z")]),
        put(b"d", Expected::Anything, b"", vec![name(b"z")]),
    ];
    assert_eq!(refused(&store, twice), taken(1));
    let exchanged = vec![
        put(b"a", Expected::Anything, b"", vec![name(b"y")]),
        put(b"b", Expected::Anything, b"", vec![name(b"x")]),
    ];
    store.change_documents(exchanged).expect("both change");
    let by_name = |key: &[u8]| {
        let range = DocumentRange {
            from: Bound::Included(key.to_vec()),
            to: Bound::Included(key.to_vec()),
            ..DocumentRange::default()
        };
        let found = store.snapshot().documents_by(collection(), NAMES, &range).expect("the read succeeds");
        found.into_iter().map(|document| document.key).collect::<Vec<_>>()
    };
    assert_eq!(by_name(b"x"), [b"b"]);
    assert_eq!(by_name(b"y"), [b"a"]);
    store.change_documents(vec![delete(b"a", Expected::Anything)]).expect("a change");
    assert!(by_name(b"y").is_empty(), "a removed document leaves no key behind");
    store
        .change_documents(vec![put(b"c", Expected::Absent, b"", vec![name(b"y")])])
        .expect("the key is free");
}

#[test]
fn refuses_too_large_and_repeated_changes() {
    let store = Store::in_memory();
    let long = vec![0; DOCUMENT_BYTES_MAX + 1];
    let changes =
        vec![put(b"a", Expected::Anything, b"", vec![]), put(b"b", Expected::Anything, &long, vec![])];
    assert_eq!(refused(&store, changes), DocumentRejection::TooLarge { change: 1 });
    let twice = vec![put(b"a", Expected::Anything, b"", vec![]), delete(b"a", Expected::Anything)];
    assert_eq!(refused(&store, twice), DocumentRejection::Repeated { change: 1 });
    let most = vec![put(b"a", Expected::Anything, &long[1..], vec![])];
    store.change_documents(most).expect("the limit itself is within it");
    assert_eq!(Collection::new(1), None, "the directory of ledgers is not to be changed");
}

#[test]
fn flush_keeps_newest_change_of_each_document() {
    let store = Store::in_memory();
    let change = |changes| {
        store.change_documents(changes).expect("a change");
    };
    let set = |key: &[u8], value: &[u8]| {
        let time = DocumentKey { index: TIMES, key: value.to_vec(), unique: false };
        change(vec![put(key, Expected::Anything, value, vec![time])]);
    };
    set(b"changed", b"1");
    set(b"removed", b"1");
    store.flush();
    // Each commit is a memtable of its own, and one flush writes all of them.
    set(b"changed", b"3");
    set(b"changed", b"2");
    change(vec![delete(b"removed", Expected::Anything)]);
    set(b"new and removed", b"1");
    change(vec![delete(b"new and removed", Expected::Anything)]);
    store.flush();
    let snapshot = store.snapshot();
    let by_time = snapshot.documents_by(collection(), TIMES, &DocumentRange::default()).expect("it reads");
    let all = snapshot.documents(collection(), &DocumentRange::default()).expect("it reads");
    assert_eq!((&*all[0].key, &*all[0].value), (&b"changed"[..], &b"2"[..]));
    assert_eq!((all.len(), &by_time), (1, &all));
    assert!(store.verify().expect("there is room").is_clean());
}

type Model = BTreeMap<Vec<u8>, (Vec<u8>, Vec<DocumentKey>, DocumentVersion)>;

/// Compares every possible answer with the model.
#[track_caller]
fn compare(store: &Store, model: &Model, rng: &mut Rng<'_>) {
    let snapshot = store.snapshot();
    let expected: Vec<Document> = model
        .iter()
        .map(|(key, (value, keys, version))| Document {
            key: key.clone(),
            value: value.clone(),
            keys: keys.clone(),
            version: *version,
        })
        .collect();
    for document in &expected {
        assert_eq!(snapshot.document(collection(), &document.key).as_ref(), Ok(&Some(document.clone())));
    }
    for direction in [Direction::Ascending, Direction::Descending] {
        let mut in_order = expected.clone();
        if direction == Direction::Descending {
            in_order.reverse();
        }
        let limit = rng.below(5) as usize + 1;
        let mut pages = Vec::new();
        let mut range = DocumentRange { direction, limit, ..DocumentRange::default() };
        loop {
            let page = snapshot.documents(collection(), &range).expect("the read succeeds");
            let Some(last) = page.last() else { break };
            range.beyond = Some((Vec::new(), last.key.clone()));
            pages.extend(page);
        }
        assert_eq!(pages, in_order);
        let mut by_time: Vec<(Vec<u8>, Document)> = expected
            .iter()
            .flat_map(|document| {
                let times = document.keys.iter().filter(|key| key.index == TIMES);
                times.map(|key| (key.key.clone(), document.clone()))
            })
            .collect();
        by_time.sort_by(|a, b| (&a.0, &a.1.key).cmp(&(&b.0, &b.1.key)));
        let from = vec![rng.below(4) as u8];
        by_time.retain(|(time, _)| *time > from);
        if direction == Direction::Descending {
            by_time.reverse();
        }
        let mut range = DocumentRange { direction, limit, ..DocumentRange::default() };
        range.from = Bound::Excluded(from);
        let mut pages = Vec::new();
        loop {
            let page = snapshot.documents_by(collection(), TIMES, &range).expect("the read succeeds");
            let Some(last) = page.last() else { break };
            let time = last.keys.iter().find(|key| key.index == TIMES).expect("a key of the index");
            range.beyond = Some((time.key.clone(), last.key.clone()));
            pages.extend(page);
        }
        assert_eq!(pages, by_time.into_iter().map(|(_, document)| document).collect::<Vec<_>>());
    }
}

#[test]
fn documents_match_a_map_through_openings() {
    for seed in 0..6 {
        let mut rng = Rng::from_seed(seed);
        let disk = SimDisk::new();
        let mut store = open(&disk);
        let mut model = Model::new();
        for step in 0..200 {
            let key = vec![rng.below(3) as u8; rng.below(4) as usize];
            if rng.below(4) == 0 {
                store.change_documents(vec![delete(&key, Expected::Anything)]).expect("a change");
                model.remove(&key);
            } else {
                let times = (rng.below(3) > 0).then(|| DocumentKey {
                    index: TIMES,
                    key: vec![rng.below(4) as u8; rng.below(3) as usize],
                    unique: false,
                });
                let keys: Vec<DocumentKey> = times.into_iter().collect();
                let value = vec![step as u8; rng.below(40) as usize];
                let expected = match model.get(&key) {
                    Some((_, _, version)) => Expected::Version(*version),
                    None => Expected::Absent,
                };
                let versions = store.change_documents(vec![put(&key, expected, &value, keys.clone())]);
                model.insert(key, (value, keys, versions.expect("a change")[0]));
            }
            match rng.below(40) {
                // Often enough for merges of runs.
                3..8 => store.flush(),
                1 => {
                    store.close().expect("the store closes");
                    drop(store);
                    store = open(&disk);
                }
                2 => {
                    drop(store);
                    disk.remove(Path::new("data/index/index.redb")).expect("the file exists");
                    store = open(&disk);
                }
                _ => {}
            }
            if rng.below(20) == 0 {
                compare(&store, &model, &mut rng);
            }
        }
        compare(&store, &model, &mut rng);
        let report = store.verify().expect("the verification runs");
        assert!(report.is_clean(), "{}", report.to_json_lines());
    }
}
