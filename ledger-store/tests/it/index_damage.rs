//! A damaged index: every answer is right or an error, and no wrong data reaches the journal.

use std::ops::{Bound, Range};

use ledger_core::{
    AccountAddress, Asset, Condition, Field, FilterNode, FilterOf, FilterValue, LedgerName, Operator,
    Resource, Volumes,
};
use ledger_store::{
    Collection, Direction, DocumentAction, DocumentChange, DocumentRange, Expand, Expected, OpenError, Store,
    WriteError,
};
use ledger_testkit::{DamagedAnswers, Disk, Failure, Faults, Oracle, Rng};

use super::recovery::{DAMAGED, INDEX, StoreFixture, flip_a_bit, path};

/// Every table of the index.
const TABLES: [&str; 13] = [
    "accounts",
    "usages",
    "holdings",
    "addresses",
    "names",
    "documents",
    "heads",
    "hashes",
    "removed",
    "about",
    "runs.list",
    "runs.filters",
    "runs.documents",
];

const PAGE: usize = 4096;
const LEAF: u8 = 1;
const BRANCH: u8 = 2;

/// Returns the byte ranges in pages of a kind where damage changes lookups: counts, offsets and keys.
fn structure(bytes: &[u8], kind: u8) -> impl Iterator<Item = Range<usize>> {
    (PAGE..=bytes.len() - PAGE)
        .step_by(PAGE)
        .filter(move |at| bytes[*at] == kind && [0, 255].contains(&bytes[*at + 1]))
        .map(move |at| {
            let word = |place: usize| u32::from_le_bytes(bytes[place..][..4].try_into().expect("four bytes"));
            let count = usize::from(u16::from_le_bytes([bytes[at + 2], bytes[at + 3]]));
            let end = match kind {
                LEAF if count > 0 && 4 * count < PAGE => word(at + 4 * count) as usize,
                _ => 8 + count * 64,
            };
            at..at + end.clamp(4, PAGE)
        })
}

/// Flips a bit, mostly where it can hide data: in keys, in the table of tables, in the header of the file.
fn flip_where_it_hurts(bytes: &mut [u8], rng: &mut Rng<'_>) -> usize {
    let at = match rng.below(10) {
        0..4 => within(bytes, LEAF, rng),
        4..6 => within(bytes, BRANCH, rng),
        6 => {
            let name = rng.pick(&TABLES).as_bytes();
            let places: Vec<usize> = bytes
                .windows(name.len())
                .enumerate()
                .filter(|(_, found)| *found == name)
                .map(|(at, _)| at)
                .collect();
            rng.pick(&places) + rng.below(name.len() as u64) as usize
        }
        7 => rng.below(320) as usize,
        _ => return flip_a_bit(bytes, rng),
    };
    bytes[at] ^= 1 << rng.below(8);
    at
}

fn within(bytes: &[u8], kind: u8, rng: &mut Rng<'_>) -> usize {
    let parts: Vec<_> = structure(bytes, kind).collect();
    if parts.is_empty() {
        return rng.below(bytes.len() as u64) as usize;
    }
    let part = rng.pick(&parts);
    part.start + rng.below(part.len() as u64) as usize
}

/// Creates a store with several runs of each table, and more than one page of most.
fn store_with_runs(seed: u64) -> StoreFixture {
    (0..4).fold(StoreFixture::new(seed), |fixture, _| fixture.with(60))
}

/// Opens a store, asks it questions, lets it continue and rebuilds its index. Returns the difference if an answer is
/// wrong, or if the journal differs from the acknowledged writes.
fn check(fixture: &mut StoreFixture, rng: &mut Rng<'_>) -> Result<DamagedAnswers, Failure> {
    let store = fixture.open().map_err(|error| Failure::from(error).during("when it was opened"))?;
    let mut answers = DamagedAnswers::default();
    answers.note(fixture.oracle.compare(&store))?;
    let now = fixture.work.tick();
    let asked = fixture.oracle.ask_damaged(&store.snapshot(), rng, now)?;
    answers.right += asked.right;
    answers.errors += asked.errors;
    let possible = continue_work(fixture, &store, &mut answers)?;
    drop(store);
    fixture.disk.remove(path(INDEX))?;
    let store = fixture
        .open()
        .map_err(|error| Failure::from(error).during("when it was opened without its index"))?;
    let certain = fixture.oracle.compare(&store);
    match possible.map(|possible| possible.compare(&store)) {
        Some(Ok(())) => {}
        _ => certain?,
    }
    Ok(answers)
}

/// Works until the store accepts no more writes. The oracle then knows the acknowledged state. Returns an oracle of the
/// other possible state.
fn continue_work(
    fixture: &mut StoreFixture,
    store: &Store,
    answers: &mut DamagedAnswers,
) -> Result<Option<Oracle>, Failure> {
    for _ in 0..12 {
        let now = fixture.work.tick();
        fixture.clock.set(now);
        let step = fixture.work.step();
        let before = fixture.oracle.clone();
        let judged = fixture.oracle.step(store, &step, now);
        let (Err(_) | Ok(Some(_))) = &judged else { continue };
        let after = std::mem::replace(&mut fixture.oracle, before);
        return match judged {
            Ok(Some(WriteError::OutcomeUnknown { .. })) => Ok(Some(after)),
            Ok(_) => Ok(None),
            // An entry that cannot be read back is reported with an error.
            Err(failure) => answers.note::<()>(Err(failure)).map(|()| Some(after)),
        };
    }
    Ok(None)
}

/// Flips one bit after the other. `FLIPS` says how many.
#[test]
fn flipped_bit_in_index_causes_no_wrong_answer() {
    let flips = std::env::var("FLIPS").ok().and_then(|flips| flips.parse().ok()).unwrap_or(40);
    let first = std::env::var("FIRST").ok().and_then(|first| first.parse().ok()).unwrap_or(0);
    let (mut mended, mut told, mut unseen) = (0, 0, 0);
    let mut wrong = Vec::new();
    let mut sound = store_with_runs(4);
    for flip in first..first + flips {
        if flip > first && flip % 500 == 0 {
            sound = store_with_runs(flip);
        }
        let mut flipped = sound.copy();
        let mut bytes = flipped.disk.bytes(path(INDEX)).expect("there is an index");
        let mut rng = Rng::from_seed(flip);
        let at = flip_where_it_hurts(&mut bytes, &mut rng);
        flipped.disk.set_bytes(path(INDEX), bytes).expect("there is an index");
        match check(&mut flipped, &mut rng) {
            Err(differs) => wrong.push(format!(
                "flip {flip}, byte {at} ({:#x} of page {}): {differs}",
                at % PAGE,
                at / PAGE
            )),
            Ok(_) if flipped.disk.bytes(path(DAMAGED)).is_ok() => mended += 1,
            Ok(answers) if answers.errors > 0 => told += 1,
            Ok(_) => unseen += 1,
        }
    }
    println!("{flips} flips: {mended} mended, {told} told, {unseen} without effect, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{} wrong answers:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_renamed_table_is_damage() {
    let sound = store_with_runs(22);
    let bytes = sound.disk.bytes(path(INDEX)).expect("there is an index");
    for name in TABLES {
        let name = name.as_bytes();
        let places: Vec<usize> =
            (0..bytes.len() - name.len()).filter(|at| &bytes[*at..][..name.len()] == name).collect();
        assert!(!places.is_empty());
        let mut renamed = sound.copy();
        let mut bytes = bytes.clone();
        for at in places {
            bytes[at + name.len() - 1] ^= 1;
        }
        renamed.disk.set_bytes(path(INDEX), bytes).expect("there is an index");
        renamed.check_mended();
    }
}

/// Flips a bit in every copy of a key in the index, and asks for the key.
#[test]
fn changed_key_hides_no_account() {
    let sound = StoreFixture::new(23);
    let store = sound.open().expect("the store opens");
    let ledger = store.ledger("main").expect("a name");
    for number in 0..40 {
        let user = format!("users:{number:03}");
        ledger.transaction().posting("world", &user, 10, "USD").commit().expect("recorded");
    }
    drop((ledger, store));
    let key = b"\0\0\0\x01users:016";
    let mut bytes = sound.disk.bytes(path(INDEX)).expect("there is an index");
    let places: Vec<usize> =
        (0..bytes.len() - key.len()).filter(|at| bytes[*at..].starts_with(key)).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at + 10] ^= 1 << 5;
    }
    sound.disk.set_bytes(path(INDEX), bytes).expect("there is an index");
    let store = sound.open().expect("the store opens");
    let ledger = store.ledger("main").expect("a name");
    assert!(ledger.balance("users:016", "USD").is_err(), "it has a balance");
    assert_eq!(ledger.balance("users:030", "USD").expect("another leaf entry"), 10);
    drop((ledger, store));
    sound.disk.remove(path(INDEX)).expect("there is an index");
    let store = sound.open().expect("the store opens");
    assert_eq!(store.ledger("main").expect("a name").balance("users:016", "USD").expect("read"), 10);
}

#[test]
fn failed_reads_keep_the_index() {
    let mut sound = store_with_runs(24);
    let before = sound.disk.bytes(path(INDEX)).expect("there is an index");
    let reads = {
        let copy = sound.copy();
        let store = copy.open().expect("the store opens");
        drop(store);
        copy.disk.reads()
    };
    let mut refused = 0;
    for read in 1..=reads {
        let failing = sound.copy();
        failing.disk.set_faults(Faults { fail_reads_from: Some(read), ..Faults::default() });
        match failing.open() {
            Err(OpenError::Io { .. }) => refused += 1,
            Err(other) => panic!("read {read}: {other}"),
            // The store also reads after the opening, in the background.
            Ok(store) => assert_eq!(store.opening().rebuilt, None, "read {read}"),
        }
        assert!(failing.disk.bytes(path(DAMAGED)).is_err(), "read {read}");
    }
    assert!(refused > 10, "{refused} of {reads}");
    // The last reads of an opening read the index.
    let read = sound.disk.reads() + reads / 2;
    sound.disk.set_faults(Faults { fail_reads_from: Some(read), ..Faults::default() });
    assert!(matches!(sound.check_refused(), OpenError::Io { .. }));
    assert_eq!(sound.disk.bytes(path(INDEX)).expect("there is an index"), before);
    sound.disk.set_faults(Faults::default());
    sound.check();
}

#[test]
fn an_index_that_cannot_be_read_is_kept() {
    let mut sound = store_with_runs(27);
    let before = sound.disk.bytes(path(INDEX)).expect("there is an index");
    // The journal is readable, so the store could build a new index.
    sound.disk.set_unreadable(Some(path(INDEX))).expect("there is an index");
    let refused = sound.check_refused();
    assert!(matches!(refused, OpenError::Io { .. }), "{refused}");
    assert_eq!(sound.disk.bytes(path(INDEX)).expect("there is an index"), before);
    sound.disk.set_unreadable(None).expect("no file is named");
    assert_eq!(sound.check().opening().rebuilt, None);
}

#[test]
fn damaged_journal_keeps_the_damaged_index() {
    let sound = store_with_runs(25);
    let damaged = sound.copy();
    let mut index = damaged.disk.bytes(path(INDEX)).expect("there is an index");
    // Pages that the index no longer uses may have the name of the table, too.
    let name = b"documents";
    let places: Vec<usize> =
        (0..index.len() - name.len()).filter(|at| index[*at..].starts_with(name)).collect();
    assert!(!places.is_empty(), "the index has no table of documents");
    for at in places {
        index[at] ^= 1;
    }
    damaged.disk.set_bytes(path(INDEX), index.clone()).expect("there is an index");
    damage_the_journal(&damaged);
    assert!(matches!(damaged.check_refused(), OpenError::Damaged { .. }));
    assert_eq!(damaged.disk.bytes(path(INDEX)).expect("the damaged file is kept").len(), index.len());
    assert!(!damaged.disk.exists(path(DAMAGED)).expect("the disk answers"));
}

/// Changes an entry that only a replay from the beginning reads.
fn damage_the_journal(fixture: &StoreFixture) {
    let journal = path(super::recovery::JOURNAL);
    let mut bytes = fixture.disk.bytes(journal).expect("there is a journal");
    let text = b"world";
    let at = bytes.windows(text.len()).position(|found| found == text).expect("an address");
    bytes[at] ^= 1;
    fixture.disk.set_bytes(journal, bytes).expect("there is a journal");
}

/// Number of accounts and of documents in the large store: enough for several pages of each table.
const MANY: u64 = 2_000;

fn user(number: u64) -> String {
    format!("users:{:03}:{number:05}", number % 7)
}

/// Creates a store with many accounts, holdings and documents, and with a newly built index.
fn large() -> StoreFixture {
    let fixture = StoreFixture::new(26);
    let store = fixture.open().expect("the store opens");
    let ledger = store.ledger("main").expect("a name");
    for number in 0..MANY {
        ledger.transaction().posting("world", &user(number), number + 1, "USD").commit().expect("recorded");
    }
    let document = |number: u64| DocumentChange {
        collection: Collection::new(20).expect("a number"),
        key: user(number).into_bytes(),
        expected: Expected::Absent,
        action: DocumentAction::Put { value: vec![number as u8; 40], keys: Vec::new() },
    };
    for first in (0..MANY).step_by(500) {
        store.change_documents((first..first + 500).map(document).collect()).expect("recorded");
    }
    drop((ledger, store));
    fixture.disk.remove(path(INDEX)).expect("there is an index");
    drop(fixture.open().expect("the store opens"));
    fixture
}

/// Asks a large store in every way in which it finds data. Each answer must be right or an error. Returns the number of
/// errors.
fn ask_large(store: &Store, rng: &mut Rng<'_>) -> Result<u32, Failure> {
    let mut errors = 0;
    let mut same = |what: String, is_right: Option<bool>| match is_right {
        Some(true) => Ok(()),
        Some(false) => Err(Failure::Difference(what)),
        None => {
            errors += 1;
            Ok(())
        }
    };
    let snapshot = store.snapshot();
    let collection = Collection::new(20).expect("a number");
    let name = LedgerName::parse("main").expect("a name");
    let view = snapshot.ledger(&name).ok_or("the ledger is not found")?;
    let usd = Asset::parse("USD").expect("an asset");
    for _ in 0..60 {
        // A quarter of these accounts does not exist.
        let number = rng.below(MANY * 4 / 3);
        let exists = number < MANY;
        let address = AccountAddress::parse(&user(number)).expect("an address");
        let balance = if exists { number + 1 } else { 0 };
        let found = view.balance(&address, &usd).ok();
        same(
            format!("balance of {address}: {found:?}"),
            found.as_ref().map(|found| *found == balance as i64),
        )?;
        let expand = Expand { volumes: true, effective_volumes: true };
        let found = view.account(&address, None, expand).ok();
        let is_right = found.as_ref().map(|found| {
            found.is_some() == exists
                && found.as_ref().is_none_or(|found| {
                    let inputs = |volumes: &Option<Vec<(Asset, Volumes)>>| {
                        volumes.iter().flatten().map(|(_, volumes)| volumes.input.clone()).collect::<Vec<_>>()
                    };
                    inputs(&found.volumes) == [balance.into()]
                        && inputs(&found.effective_volumes) == [balance.into()]
                })
        });
        same(format!("account {address}: {found:?}"), is_right)?;
        let found = snapshot.document(collection, user(number).as_bytes()).ok();
        same(
            format!("document {address}: {found:?}"),
            found.as_ref().map(|found| found.is_some() == exists),
        )?;
    }
    for direction in [Direction::Ascending, Direction::Descending] {
        let from = rng.below(7);
        let range = DocumentRange {
            from: Bound::Included(format!("users:{from:03}:").into_bytes()),
            to: Bound::Excluded(format!("users:{from:03};").into_bytes()),
            direction,
            ..DocumentRange::default()
        };
        let found = snapshot.documents(collection, &range).ok().map(|found| found.len() as u64);
        let expected = (0..MANY).filter(|number| number % 7 == from).count() as u64;
        same(format!("documents from {from}: {found:?}"), found.map(|found| found == expected))?;
        let field = Field::parse(Resource::Accounts, "address").expect("a field");
        let pattern = FilterValue::Text(format!("users:{from:03}:").into());
        let condition = Condition::new(&field, Operator::Match, pattern).expect("a condition");
        let filter = FilterOf::new(FilterNode::Is(condition)).expect("a small filter");
        let found = view.count_accounts(&filter, None).ok();
        same(format!("accounts from {from}: {found:?}"), found.map(|found| found == expected))?;
    }
    Ok(errors)
}

/// Flips bits in the trees of a large index.
#[test]
fn flipped_bit_in_large_index_hides_no_data() {
    let flips = std::env::var("FLIPS").ok().and_then(|flips| flips.parse().ok()).unwrap_or(40);
    let first = std::env::var("FIRST").ok().and_then(|first| first.parse().ok()).unwrap_or(0);
    let sound = large();
    let bytes = sound.disk.bytes(path(INDEX)).expect("there is an index");
    assert!(structure(&bytes, BRANCH).count() > 3, "trees of several pages");
    assert_eq!(ask_large(&sound.copy().open().expect("the store opens"), &mut Rng::from_seed(1)), Ok(0));
    let (mut mended, mut told, mut unseen) = (0, 0, 0);
    let mut wrong = Vec::new();
    for flip in first..first + flips {
        let flipped = sound.copy();
        let mut bytes = bytes.clone();
        let mut rng = Rng::from_seed(flip);
        let kind = rng.pick(&[LEAF, BRANCH]);
        let at = within(&bytes, kind, &mut rng);
        bytes[at] ^= 1 << rng.below(8);
        flipped.disk.set_bytes(path(INDEX), bytes).expect("there is an index");
        let store = flipped.open().expect("the journal is sound");
        match ask_large(&store, &mut rng) {
            Err(differs) => {
                wrong.push(format!(
                    "flip {flip}, byte {} of page {}, kind {kind}: {differs}",
                    at % PAGE,
                    at / PAGE
                ));
            }
            Ok(_) if store.opening().was_damaged => mended += 1,
            Ok(0) => unseen += 1,
            Ok(_) => told += 1,
        }
    }
    println!("{flips} flips: {mended} mended, {told} told, {unseen} without effect, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{} wrong answers:\n{}", wrong.len(), wrong.join("\n"));
}
