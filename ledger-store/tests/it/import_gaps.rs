//! Imports logs whose ids have gaps, whose dates run backward, or whose ids are at their limit.

use std::sync::Arc;

use ledger_core::{
    AccountAddress, Amount, Command, LedgerOptions, LogEntry, LogId, LogPayload, Metadata, Movement,
    Timestamp, Transaction, TransactionId,
};
use ledger_store::{Expand, ImportError, ImportRefusal, ImportedLog, LogView, Outcome, Store};
use ledger_testkit::{SetClock, SimDisk};

use crate::import::{logs, name, open, pay, run};

/// Returns a date, given by the number of seconds after the start of the log with gaps and backward dates.
fn at(second: i64) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000 + second * 1_000_000)
}

/// Returns the next log of `chain`: `world` pays a power of two to `users:1`.
fn imported_payment(
    chain: &mut ledger_core::HashChain,
    id: u64,
    transaction: u64,
    date: Timestamp,
) -> ImportedLog {
    let Command::CreateTransaction(create) = pay("world", "users:1", 1 << id, None, None) else {
        unreachable!("a payment is a creation")
    };
    let Movement::Postings(postings) = create.movement else { unreachable!("of postings") };
    let transaction = Box::new(Transaction {
        id: TransactionId::new(transaction),
        postings,
        metadata: Metadata::EMPTY,
        timestamp: date,
        reference: None,
        template: None,
        inserted_at: date,
        updated_at: date,
        reverted_at: None,
        post_commit_volumes: Vec::new(),
    });
    let entry = LogEntry {
        request_hash: None,
        defaults: Vec::new(),
        id: LogId::new(id),
        date,
        idempotency: None,
        schema_version: None,
        payload: LogPayload::NewTransaction {
            transaction,
            account_metadata: Vec::new(),
            effective_volumes: None,
        },
    };
    ImportedLog { hash: Some(chain.append(&entry)), entry, original_updated_at: None, tells_volumes: true }
}

/// Imports three of four logs, fails with a fourth whose transaction comes late, and imports the right one.
fn import_with_gaps(store: &Store) {
    let mut chain = ledger_core::HashChain::default();
    let entries = [(0, 0, 100), (1, 3, 50), (7, 4, 200), (8, 5, 150)]
        .map(|(id, transaction, second)| imported_payment(&mut chain, id, transaction, at(second)));
    store.import(&name(), &entries[..3]).expect("the import succeeds");
    let mut late = entries[3].clone();
    let LogPayload::NewTransaction { transaction, .. } = &mut late.entry.payload else {
        unreachable!("it is one")
    };
    transaction.id = TransactionId::new(2);
    late.hash = Some(ledger_core::HashChain::after(entries[2].hash).append(&late.entry));
    match store.import(&name(), &[late]) {
        Err(ImportError::Refused { refusal: ImportRefusal::Inconsistent { reason }, .. }) => {
            assert_eq!(reason, "transaction 2 comes when 5 is due");
        }
        other => panic!("{other:?}"),
    }
    store.import(&name(), &entries[3..]).expect("the import succeeds");
}

/// Returns the sum that `users:1` received up to each log, by effective dates.
fn effective_inputs(logs: &[LogView]) -> Vec<Amount> {
    let input = |log: &LogView| {
        let LogPayload::NewTransaction { transaction, effective_volumes, .. } = &log.entry.payload else {
            panic!("{log:?}")
        };
        let volumes = effective_volumes.as_ref().unwrap_or(&transaction.post_commit_volumes);
        let held =
            volumes.iter().find(|held| held.account.as_str() == "users:1").expect("volumes of the account");
        held.volumes.input.clone()
    };
    logs.iter().map(input).collect()
}

#[track_caller]
fn check_gaps(store: &Store) {
    let all = logs(store);
    let ids: Vec<u64> = all.iter().map(|log| log.entry.id.get()).collect();
    assert_eq!(ids, [0, 1, 7, 8]);
    // The sums exclude transactions that were recorded earlier but have a later date.
    assert_eq!(effective_inputs(&all), [1_u64, 2, 131, 259].map(Amount::from));
    let view = store.snapshot().ledger(&name()).expect("the ledger exists");
    let address = AccountAddress::parse("users:1").expect("an address");
    let expand = Expand { volumes: false, effective_volumes: true };
    for (second, held) in [(50, 2), (120, 3), (170, 259), (200, 387)] {
        let account = view.account(&address, Some(at(second)), expand).expect("the read succeeds");
        let volumes = account.expect("the account exists").effective_volumes.expect("volumes were requested");
        assert_eq!(volumes[0].1.input, Amount::from(held as u64), "{second}");
    }
    let report = store.verify().expect("the verification runs");
    assert!(report.is_clean(), "{}", report.to_json_lines());
}

#[test]
fn refuses_ids_that_leave_no_room_for_later_entries() {
    let largest = i64::MAX as u64;
    for (id, transaction, reason) in [
        (u64::MAX - 1, 0, "the id of a log is at most 9223372036854775807"),
        (u64::MAX, 0, "the id of a log is at most 9223372036854775807"),
        (0, u64::MAX - 1, "the id of a transaction is at most 9223372036854775807"),
    ] {
        let store = Store::in_memory();
        store.create_ledger(name(), LedgerOptions::default()).expect("the ledger is created");
        let mut log = imported_payment(&mut ledger_core::HashChain::default(), 0, transaction, at(1));
        log.entry.id = LogId::new(id);
        log.hash = Some(ledger_core::HashChain::default().append(&log.entry));
        match store.import(&name(), &[log]) {
            Err(ImportError::Refused { refusal: ImportRefusal::Inconsistent { reason: found }, .. }) => {
                assert_eq!(found, reason);
            }
            other => panic!("{other:?}"),
        }
    }
    let store = Store::in_memory();
    store.create_ledger(name(), LedgerOptions::default()).expect("the ledger is created");
    let mut log = imported_payment(&mut ledger_core::HashChain::default(), 0, largest, at(1));
    log.entry.id = LogId::new(largest);
    log.hash = Some(ledger_core::HashChain::default().append(&log.entry));
    store.import(&name(), &[log]).expect("the largest ids are imported");
    let ledger = store.ledger(name()).expect("the ledger exists");
    let next = ledger.transaction().posting("world", "a", 1, "USD").commit().expect("writing goes on");
    assert_eq!(next.id.get(), largest + 1);
}

#[test]
fn gaps_and_backward_dates_are_imported() {
    let clock = Arc::<SetClock>::default();
    let disk = SimDisk::new();
    let store = open(&disk, &clock);
    store.create_ledger(name(), LedgerOptions::default()).expect("a ledger");
    import_with_gaps(&store);
    check_gaps(&store);
    drop(store);
    let store = open(&disk, &clock);
    check_gaps(&store);
    clock.set(at(60));
    let Outcome::Done(receipt) = run(&store, pay("world", "users:1", 1, None, None)) else {
        panic!("it is accepted")
    };
    assert_eq!((receipt.log, receipt.transaction), (LogId::new(9), Some(TransactionId::new(6))));
    assert_eq!(receipt.date, at(200), "dates of the ledger itself do not run backwards");
    assert!(store.verify().expect("the verification runs").is_clean());
}
