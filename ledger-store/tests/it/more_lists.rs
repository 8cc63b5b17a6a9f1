//! Lists of volumes and of schema versions, and the writes of a ledger as futures.

use std::sync::Arc;
use std::time::Duration;

use ledger_core::{Command, Target};
use ledger_store::{LedgerError, Outcome, prelude::*};
use ledger_testkit::SetClock;

use crate::commit_future::block_on;

fn paid() -> Ledger {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    for (to, asset) in [("users:1:main", "USD/2"), ("users:1:save", "USD/2"), ("users:2:main", "EUR")] {
        ledger.transaction().posting("world", to, 5, asset).commit().expect("the write succeeds");
    }
    ledger
}

#[test]
fn volumes_page_by_cursor() {
    let ledger = paid();
    let list = || ledger.volumes().matching("users:...");
    let all: Vec<_> = list().into_iter().collect::<Result<_, _>>().expect("the read succeeds");
    assert_eq!((all.len(), list().count().expect("the count succeeds")), (3, 3));
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let part = match &cursor {
            Some(cursor) => list().from_cursor(cursor),
            None => list(),
        };
        let page = part.page(1).expect("the read succeeds");
        found.extend(page.items);
        cursor = page.next;
        let Some(text) = &cursor else { break };
        assert!(text.chars().all(|c| c.is_ascii_alphanumeric() || "-_:".contains(c)), "{text}");
    }
    assert_eq!(found, all);
    let grouped = list().group_by(2).page(10).expect("the read succeeds").items;
    let shown: Vec<_> = grouped.iter().map(|row| (row.account.as_str(), row.volumes.balance())).collect();
    assert_eq!(shown, [("users:1", Balance::from(10)), ("users:2", Balance::from(5))]);
}

#[test]
fn volumes_end_before_their_bound() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let noon: Timestamp = "2024-05-01T12:00:00Z".parse().expect("a date");
    ledger
        .transaction()
        .posting("world", "a", 5, "USD")
        .timestamp(noon)
        .commit()
        .expect("the write succeeds");
    let count = |list: ledger_store::VolumeList| list.matching("a").count().expect("the count succeeds");
    let micro = Duration::from_micros(1);
    assert_eq!(count(ledger.volumes().before(noon)), 0);
    assert_eq!(count(ledger.volumes().before(noon + micro)), 1);
    assert_eq!(count(ledger.volumes().since(noon)), 1);
    assert_eq!(count(ledger.volumes().since(noon + micro)), 0);
    assert_eq!(count(ledger.volumes().before(noon + micro).by_insertion_date()), 0);
}

#[test]
fn reads_answer_as_of_a_date() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let noon: Timestamp = "2024-05-01T12:00:00Z".parse().expect("a date");
    let early = noon - Duration::from_hours(1);
    ledger.transaction().posting("world", "a:1", 5, "USD").timestamp(noon).commit().expect("it is accepted");
    ledger.transaction().posting("world", "a:1", 7, "EUR").commit().expect("it is accepted");
    let then = ledger.account_at("a:1", noon).expect("it reads").expect("it exists");
    let volumes = then.effective_volumes.expect("they are included");
    assert_eq!(volumes.len(), 1);
    assert_eq!((volumes[0].0.as_str(), volumes[0].1.balance()), ("USD", Balance::from(5)));
    assert!(ledger.account_at("a:1", early).expect("it reads").is_none());
    assert!(ledger.transaction_at(1, noon).expect("it reads").is_some());
    assert!(ledger.transaction_at(1, early).expect("it reads").is_none());
    assert!(ledger.transaction_at(2, noon).expect("it reads").is_none());
    let of_one =
        |address: &str| ledger.balances().matching(address).at(noon, TimeAxis::Effective).expect("it reads");
    assert_eq!(of_one("a:1").len(), 1);
    assert_eq!(of_one("a:*"), of_one("a:1"));
    assert!(of_one("a:2").is_empty());
}

#[test]
fn lists_answer_as_of_a_date() {
    let clock = Arc::new(SetClock::default());
    let ledger = Store::in_memory_with(&Options::new().clock(clock.clone())).ledger("main").expect("a name");
    let noon: Timestamp = "2024-05-01T12:00:00Z".parse().expect("a date");
    let (before, after) = (noon - Duration::from_micros(1), noon + Duration::from_hours(1));
    let pay = |now, to: &str, amount: u64, at| {
        clock.set(now);
        ledger
            .transaction()
            .posting("world", to, amount, "USD")
            .timestamp(at)
            .commit()
            .expect("it is accepted");
    };
    pay(noon, "users:1", 5, noon);
    pay(after, "users:1", 7, after);
    pay(after, "users:2", 11, noon); // backdated
    let balances = |at| -> Vec<(String, Balance, Balance)> {
        let list = ledger.accounts().matching("users:*").with_volumes().with_effective_volumes().at(at);
        let page = list.page(50).expect("the read succeeds");
        assert_eq!((page.next, page.previous), (None, None));
        let balance = |volumes: Option<Vec<(Asset, Volumes)>>| {
            volumes.expect("they are included").into_iter().map(|(_, held)| held.balance()).sum()
        };
        let found = page.items.into_iter();
        found
            .map(|one| (one.address.to_string(), balance(one.volumes), balance(one.effective_volumes)))
            .collect()
    };
    let row = |user: &str, recorded: i64, effective: i64| {
        (format!("users:{user}"), Balance::from(recorded), Balance::from(effective))
    };
    assert!(balances(before).is_empty());
    assert_eq!(balances(noon), [row("1", 5, 5), row("2", 0, 11)]);
    assert_eq!(balances(after), [row("1", 12, 12), row("2", 11, 11)]);
    let ids = |at| -> Vec<u64> {
        let page = ledger.transactions().at(at).page(50).expect("the read succeeds");
        page.items.iter().map(|found| found.id.get()).collect()
    };
    assert_eq!((ids(before), ids(noon), ids(after)), (vec![], vec![1, 3], vec![1, 2, 3]));
    let counts = [before, noon, after].map(|at| {
        let transactions = ledger.transactions().at(at).count().expect("the count succeeds");
        (ledger.accounts().at(at).count().expect("the count succeeds"), transactions)
    });
    assert_eq!(counts, [(0, 0), (3, 2), (3, 3)]);
}

#[test]
fn schemas_page_by_cursor() {
    let ledger = paid();
    let schema = r#"{"chart": {"users": {}}}"#;
    for version in ["1.0", "Ü/2 ", "3"] {
        ledger.insert_schema(version, schema).expect("the write succeeds");
    }
    let first = ledger.schemas().newest_first().page(2).expect("the read succeeds");
    let versions: Vec<_> = first.items.iter().map(|found| found.version.as_str()).collect();
    assert_eq!(versions, ["3", "Ü/2 "]);
    let rest = ledger.schemas().newest_first().from_cursor(&first.next.expect("a next page"));
    assert_eq!(rest.page(2).expect("the read succeeds").items[0].version.as_str(), "1.0");
    assert!(
        ledger.schema("1.0").expect("the read succeeds").is_some()
            && ledger.schema("2").expect("the read succeeds").is_none()
    );
    let fault = ledger.insert_schema("4", r#"{"chart": []}"#).unwrap_err();
    assert!(matches!(fault, LedgerError::Schema(_)), "{fault:?}");
    assert!(matches!(ledger.insert_schema("3", schema), Err(LedgerError::Refused(_))));
}

#[test]
fn writes_as_futures_do_as_those_that_block() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let gold = || Metadata::from([("tier", "gold")]);
    let shown = |metadata: &Metadata| metadata.get("tier").map(ToString::to_string);
    block_on(ledger.set_account_metadata_async("users:1", gold())).expect("the write succeeds");
    let metadata = |ledger: &Ledger| ledger.get_account("users:1").expect("the account exists").metadata;
    assert_eq!(shown(&metadata(&ledger)).as_deref(), Some("gold"));
    block_on(ledger.delete_account_metadata_async("users:1", "tier")).expect("the write succeeds");
    assert_eq!(shown(&metadata(&ledger)), None);
    let pay = || ledger.transaction().posting("world", "users:1", 5, "USD");
    let dry = block_on(pay().dry_run_async()).expect("the dry run succeeds");
    let id = block_on(pay().commit_async()).expect("the write succeeds").id;
    assert_eq!((dry.postings.len(), id.get()), (1, 1));
    block_on(ledger.set_transaction_metadata_async(id, gold())).expect("the write succeeds");
    let transaction = ledger.get_transaction(id).expect("the transaction exists");
    assert_eq!(shown(&transaction.metadata).as_deref(), Some("gold"));
    block_on(ledger.delete_transaction_metadata_async(id, "tier")).expect("the write succeeds");
    let target = Target::Transaction(9.into());
    let outcomes = block_on(ledger.apply_async(vec![Command::DeleteMetadata { target, key: "tier".into() }]));
    assert!(matches!(outcomes.expect("the outcomes")[..], [Outcome::Refused(_)]));
    let missing = block_on(ledger.set_transaction_metadata_async(9, gold())).unwrap_err();
    assert!(matches!(missing, LedgerError::TransactionNotFound { .. }), "{missing:?}");
    let malformed = block_on(ledger.set_account_metadata_async("users:", gold())).unwrap_err();
    assert!(matches!(malformed, LedgerError::Name(_)), "{malformed:?}");
}
