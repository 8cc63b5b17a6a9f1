//! A sound journal with its rows, and functions that plant defects in them.

use std::collections::BTreeSet;
use std::sync::Arc;

use ledger_core::{LedgerName, LedgerOptions, Timestamp, Volumes};
use ledger_index::{Commit, IndexFile, IndexOptions, MemtableRows};
use ledger_journal::entry::{
    AddressRef, Body, ChunkBuilder, DocumentRecord, Event, HoldingRecord, IdempotencyRecord, LedgerBase,
    LogRecord, Move, NameRef, Record, TargetRecord, TransactionRecord, ValueRef,
};
use ledger_journal::{Identity, Journal, JournalReader, MemoryJournal, Position, Secret, SectionId, StoreId};
use smallvec::smallvec;

use crate::documents::{LEDGERS, encode_ledger};
use crate::error::OpenError;
use crate::flush::{self, Watermark};
use crate::options::{Options, Shares};
use crate::progress::ProgressWatcher;
use crate::projection::Memtable;
use crate::query::LedgerInfo;
use crate::recovery;
use crate::store::VerifyReport;
use crate::store::verify::check;
use crate::view::LedgerHead;
use crate::violation::ViolationCode;

pub(super) const DAY: i64 = 86_400_000_000;

pub(super) fn identity() -> Identity {
    Identity { store: StoreId([7; 16]), secret: Secret([9; 32]) }
}

pub(super) fn shares() -> Shares {
    Options::default().shares().divided(100)
}

pub(super) fn index() -> IndexFile {
    let options = IndexOptions { cache_bytes: 1 << 20, filter_bytes: 1 << 20 };
    IndexFile::in_memory(options).unwrap()
}

pub(super) fn volumes(input: u64, output: u64) -> Volumes {
    Volumes { input: input.into(), output: output.into() }
}

pub(super) fn known(account: u32) -> AddressRef<'static> {
    AddressRef { account, new: None }
}

pub(super) fn new(account: u32, address: &'static str) -> AddressRef<'static> {
    AddressRef { account, new: Some(address) }
}

pub(super) const USD: NameRef<'static> = NameRef::Known(0);

pub(super) fn holding(
    holding: u32,
    is_new: bool,
    account: AddressRef<'static>,
    asset: NameRef<'static>,
    after: Volumes,
) -> HoldingRecord<'static> {
    HoldingRecord { holding, is_new, account, asset, after }
}

pub(super) fn log(log: u64, event: Event<'static>) -> LogRecord<'static> {
    let date = Timestamp::from_micros(log as i64 * DAY);
    LogRecord { ledger: 1, log, date, idempotency: None, schema_version: None, imported: false, event }
}

/// Moves an amount from the first holding to the second.
pub(super) fn moves(
    id: u64,
    date: i64,
    holdings: [HoldingRecord<'static>; 2],
    amount: u64,
) -> TransactionRecord<'static> {
    TransactionRecord {
        id,
        timestamp: Timestamp::from_micros(date * DAY),
        reference: None,
        template: None,
        reverts: None,
        holdings: holdings.into_iter().collect(),
        moves: smallvec![Move { source: 0, destination: 1, amount: amount.into() }],
        metadata: smallvec![],
        account_metadata: Vec::new(),
        defaults: 0,
        original_updated_at: None,
        volumes_omitted: false,
        inserted_at: None,
        effective: None,
    }
}

/// Returns a small sound log: a deposit, payments, a revert, metadata, and a backdated transaction.
pub(super) fn sound() -> Vec<LogRecord<'static>> {
    let first = moves(
        1,
        1,
        [
            holding(0, true, new(0, "world"), NameRef::New(0, "USD"), volumes(0, 100)),
            holding(1, true, new(1, "a"), USD, volumes(100, 0)),
        ],
        100,
    );
    let mut second = moves(
        2,
        2,
        [
            holding(1, false, known(1), USD, volumes(100, 40)),
            holding(2, true, new(2, "b"), USD, volumes(40, 0)),
        ],
        40,
    );
    second.reference = Some("first");
    second.metadata = smallvec![(NameRef::New(0, "kind"), ValueRef::Text("payment"))];
    let mut third = moves(
        3,
        3,
        [holding(0, false, known(0), USD, volumes(0, 105)), holding(2, false, known(2), USD, volumes(45, 0))],
        5,
    );
    third.reference = Some("second");
    let mut fourth = moves(
        4,
        4,
        [holding(2, false, known(2), USD, volumes(45, 5)), holding(0, false, known(0), USD, volumes(5, 105))],
        5,
    );
    fourth.reverts = Some(3);
    let fifth = Event::SetMetadata {
        defaults: smallvec::SmallVec::new(),
        target: TargetRecord::Account(known(1)),
        metadata: smallvec![(NameRef::Known(0), ValueRef::Text("customer"))],
    };
    let sixth = moves(
        5,
        1,
        [
            holding(0, false, known(0), USD, volumes(5, 106)),
            holding(1, false, known(1), USD, volumes(101, 40)),
        ],
        1,
    );
    let mut logs = vec![
        log(1, Event::Transaction(first)),
        log(2, Event::Transaction(second)),
        log(3, Event::Transaction(third)),
        log(4, Event::Transaction(fourth)),
        log(5, fifth),
        log(6, Event::Transaction(sixth)),
    ];
    logs[1].idempotency = Some(IdempotencyRecord { key: "one", hash: "x" });
    logs[2].idempotency = Some(IdempotencyRecord { key: "two", hash: "y" });
    logs
}

pub(super) fn transaction<'a>(log: &'a mut LogRecord<'static>) -> &'a mut TransactionRecord<'static> {
    match &mut log.event {
        Event::Transaction(transaction) => transaction,
        other => panic!("{other:?}"),
    }
}

/// Appends an entry in a chunk of its own, with `base` as the base of its section.
pub(super) fn append(journal: &MemoryJournal, body: Body<'_>, base: LedgerBase) {
    let position = journal.head().next;
    let mut builder = ChunkBuilder::default();
    builder.push(&Record { position, body }, SectionId(1), base);
    journal.append(position, &builder.finish()).unwrap();
}

pub(super) fn journal_of(logs: &[LogRecord<'static>]) -> Arc<dyn JournalReader> {
    let journal = MemoryJournal::new(identity());
    let options = LedgerOptions::default();
    let info = LedgerInfo {
        deleted_at: None,
        id: 1,
        name: LedgerName::parse("main").unwrap(),
        bucket: options.bucket,
        added_at: Timestamp::from_micros(0),
        metadata: options.metadata,
        features: options.features,
        first_id: options.first_id,
    };
    let value = encode_ledger(&info, 1);
    let document =
        DocumentRecord { collection: LEDGERS, key: b"main", value: Some(&value), secondary: Vec::new() };
    append(&journal, Body::Document(document), LedgerBase { ledger: 0, log: 0, transaction: 0, date: 0 });
    for log in logs {
        let transaction = match &log.event {
            Event::Transaction(transaction) => transaction.id,
            _ => 0,
        };
        let base = LedgerBase { ledger: log.ledger, log: log.log, transaction, date: log.date.as_micros() };
        append(&journal, Body::Log(log.clone()), base);
    }
    Arc::new(journal)
}

/// Returns the rows that a flush of a journal would write, even if its entries have defects.
pub(super) fn projected(journal: &Arc<dyn JournalReader>) -> (Memtable, Vec<(u32, LedgerHead)>, Watermark) {
    let replayed =
        recovery::replay(journal, &index(), &identity(), shares(), Position::FIRST, &mut |_| Ok(())).unwrap();
    let memtables: Vec<_> =
        replayed.view.memtables.iter().map(|memtable| memtable.memtable.clone()).collect();
    let heads = replayed.view.heads.iter().map(|head| (head.info.id, head.clone())).collect();
    let head = journal.head();
    let watermark =
        Watermark { store: identity().store, next: head.next, chain: head.chain, hashed: Position::FIRST };
    (Memtable::merge(&memtables), heads, watermark)
}

pub(super) fn verify(journal: &Arc<dyn JournalReader>, live: &IndexFile) -> VerifyReport {
    check(journal, &live.snapshot().unwrap(), &identity(), shares(), &index(), &ProgressWatcher::default())
}

#[track_caller]
pub(super) fn expect(report: &VerifyReport, code: ViolationCode) {
    let codes: BTreeSet<_> = report.violations.iter().map(|violation| violation.code).collect();
    assert_eq!(codes, BTreeSet::from([code]), "{:#?}", report.violations);
}

/// Plants a defect in the log.
#[track_caller]
pub(super) fn planted_in_journal(code: ViolationCode, plant: impl FnOnce(&mut Vec<LogRecord<'static>>)) {
    let mut logs = sound();
    plant(&mut logs);
    let journal = journal_of(&logs);
    let live = index();
    let is_unreadable = [ViolationCode::FileFormat, ViolationCode::SequenceGap].contains(&code);
    if is_unreadable {
        // The journal cannot be replayed into an index.
        let head = journal.head();
        let watermark = Watermark {
            store: identity().store,
            next: head.next,
            chain: head.chain,
            hashed: Position::FIRST,
        };
        flush::write(&live, &[], &[], &[], watermark).unwrap();
    } else {
        let (memtable, heads, watermark) = projected(&journal);
        flush::write(&live, &[Arc::new(memtable)], &heads, &[], watermark).unwrap();
    }
    expect(&verify(&journal, &live), code);
    // An opening that replays the journal refuses it.
    if ![ViolationCode::Unbalanced, ViolationCode::DateOrder].contains(&code) {
        let opened = recovery::recover(&journal, &index(), &identity(), shares(), Position::FIRST);
        let refused = matches!(opened, Err(OpenError::Damaged { .. }));
        // Only a verification finds defects that concern two distant entries.
        let is_distant = [
            ViolationCode::ReferenceDuplicate,
            ViolationCode::IdempotencyDuplicate,
            ViolationCode::AccountMismatch,
        ]
        .contains(&code);
        assert_eq!(refused, !is_distant);
    }
}

/// Plants a defect in the rows of the index.
#[track_caller]
pub(super) fn planted_in_rows(code: ViolationCode, plant: impl FnOnce(&mut Memtable)) {
    let journal = journal_of(&sound());
    let (mut memtable, heads, watermark) = projected(&journal);
    plant(&mut memtable);
    let live = index();
    flush::write(&live, &[Arc::new(memtable)], &heads, &[], watermark).unwrap();
    expect(&verify(&journal, &live), code);
}

/// Plants a value in a plain table of the index, computed from the current one.
#[track_caller]
pub(super) fn planted_in_table(
    code: ViolationCode,
    table: &'static str,
    key: &[u8],
    value: impl FnOnce(Option<Vec<u8>>) -> Option<Vec<u8>>,
) {
    let journal = journal_of(&sound());
    let (memtable, heads, watermark) = projected(&journal);
    let live = index();
    flush::write(&live, &[Arc::new(memtable)], &heads, &[], watermark).unwrap();
    let write = live.begin_write(Commit::Durable).unwrap();
    let mut plain = write.table(table).unwrap();
    match value(plain.get(key).unwrap()) {
        Some(value) => plain.put(key, &value).unwrap(),
        None => assert!(plain.delete(key).unwrap()),
    }
    drop(plain);
    write.commit().unwrap();
    expect(&verify(&journal, &live), code);
}

/// Changes one row and keeps the others.
pub(super) fn edit<R: Clone>(rows: &mut MemtableRows<R>, at: usize, change: impl FnOnce(&mut R)) {
    let mut all = rows.to_vec();
    change(&mut all[at]);
    *rows = all.into();
}

pub(super) fn remove<R: Clone>(rows: &mut MemtableRows<R>, at: usize) {
    let mut all = rows.to_vec();
    all.remove(at);
    *rows = all.into();
}
