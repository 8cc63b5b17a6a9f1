//! Queries that a schema stores, and explanations of lists.

use ledger_core::Resource;
use ledger_store::{AccountOrder, QueryParams, TransactionOrder, prelude::*};

const QUERIES: &str = r#"{
    "chart": {"users": {"$user": {}}, "shops": {"$shop": {}}},
    "queries": {
        "rich": {
            "resource": "accounts",
            "vars": {"least": {"type": "int", "default": 6}, "who": "string"},
            "params": {"pageSize": 2, "expand": ["volumes"], "sort": "address:desc"},
            "body": {"$and": [{"$match": {"address": "${who}"}}, {"$gte": {"balance[USD]": "${least}"}}]}
        },
        "since": {
            "resource": "transactions",
            "vars": {"from": "date"},
            "body": {"$gte": {"timestamp": "${from}"}}
        },
        "reverted": {"resource": "transactions", "vars": {"yes": "boolean"}, "body": {"$match": {"reverted": "${yes}"}}},
        "sums": {"resource": "volumes", "params": {"groupBy": 1, "endTime": "2024-05-01T12:00:00Z"}},
        "kinds": {"resource": "logs", "vars": {"kind": "string"}, "body": {"$match": {"type": "${kind}"}}}
    }
}"#;

fn date(text: &str) -> Timestamp {
    text.parse().expect("a date")
}

/// A ledger with three payments and a schema of stored queries.
fn with_queries() -> Ledger {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    for (to, amount, day) in
        [("users:1", 5_u64, "2024-05-01"), ("users:2", 6, "2024-05-02"), ("users:3", 7, "2024-05-03")]
    {
        let at = date(&format!("{day}T00:00:00Z"));
        ledger
            .transaction()
            .posting("world", to, amount, "USD")
            .timestamp(at)
            .commit()
            .expect("it is accepted");
    }
    ledger.insert_schema("v1", QUERIES).expect("it is accepted");
    ledger
}

fn all<K: ledger_store::ListKind>(
    list: ledger_store::List<K>,
) -> Vec<<ledger_store::ListIter<K> as Iterator>::Item> {
    list.into_iter().collect()
}

#[test]
fn stored_query_fills_variables() {
    let ledger = with_queries();
    let rich = ledger.query("v1", "rich").expect("it exists").var("who", "users:...");
    assert_eq!((rich.resource(), rich.page_size()), (Resource::Accounts, Some(2)));
    let addresses = |query: &ledger_store::StoredList| -> Vec<String> {
        let found = all(query.accounts().expect("a list"));
        found.into_iter().map(|account| account.expect("it reads").address.to_string()).collect()
    };
    assert_eq!(addresses(&rich), ["users:3", "users:2"]);
    assert_eq!(addresses(&rich.clone().var("least", 5)), ["users:3", "users:2", "users:1"]);
    assert_eq!(addresses(&rich.clone().var("least", 5).var("least", 7)), ["users:3"]);
    let ascending = QueryParams { sort: Some("address:asc".to_owned()), ..QueryParams::default() };
    assert_eq!(addresses(&rich.clone().params(ascending)), ["users:2", "users:3"]);
    let page = rich.accounts().expect("a list").page(1).expect("it reads");
    assert!(page.items[0].volumes.is_some());
    let rest = rich.accounts().expect("a list").from_cursor(&page.next.expect("there is one more"));
    assert_eq!(rest.page(1).expect("it reads").items[0].address.as_str(), "users:2");
}

#[test]
fn stored_query_lists_every_resource() {
    let ledger = with_queries();
    let query = |name: &str| ledger.query("v1", name).expect("it exists");
    let since = query("since").var("from", date("2024-05-02T00:00:00Z")).transactions().expect("a list");
    let ids: Vec<u64> = all(since).into_iter().map(|found| found.expect("it reads").id.get()).collect();
    assert_eq!(ids, [3, 2], "the newest comes first, as over HTTP");
    ledger.revert(1).commit().expect("it is accepted");
    let reverted = query("reverted").var("yes", true).transactions().expect("a list");
    assert_eq!(reverted.count().expect("it counts"), 1);
    let sums = query("sums").volumes().expect("a list").matching("users:...").page(9).expect("it reads");
    assert_eq!(sums.items.len(), 1);
    assert_eq!(
        (sums.items[0].account.as_str(), sums.items[0].volumes.balance()),
        ("users", Balance::from(5))
    );
    let kinds = query("kinds").var("kind", "INSERTED_SCHEMA").logs().expect("a list");
    assert_eq!(kinds.count().expect("it counts"), 1);
}

#[test]
fn stored_query_refuses_wrong_uses() {
    let ledger = with_queries();
    let error = |result: Result<(), LedgerError>| result.expect_err("it is refused").to_string();
    let rich = || ledger.query("v1", "rich").expect("it exists");
    assert_eq!(error(ledger.query("v2", "rich").map(drop)), "schema version 'v2' not found");
    assert_eq!(error(ledger.query("v1", "poor").map(drop)), "schema version 'v1' has no such query");
    assert_eq!(error(rich().accounts().map(drop)), "'vars': 'who' has no value");
    assert_eq!(
        error(rich().var("who", 1).accounts().map(drop)),
        "'vars': the value of 'who' must be of the type string"
    );
    assert_eq!(error(rich().var("what", "a").accounts().map(drop)), "'vars': unknown variable 'what'");
    assert_eq!(error(rich().var("who", "a").logs().map(drop)), "the query lists accounts");
    let missing = Store::in_memory().ledger("main").expect("a name").query("v1", "rich");
    assert!(matches!(missing, Err(LedgerError::LedgerNotFound { .. })), "{missing:?}");
}

#[test]
fn schema_with_query_that_cannot_run_is_refused() {
    let ledger = with_queries();
    for (query, reason) in [
        (r#"{"resource": "accounts", "body": {"$match": {"nosuch": "x"}}}"#, "queries 'q': "),
        (r#"{"resource": "logs", "params": {"sort": "nosuch"}}"#, "'sort': field nosuch is not paginated"),
        (r#"{"resource": "volumes", "params": {"pageSize": -1}}"#, "invalid 'pageSize'"),
    ] {
        let schema = format!(r#"{{"chart": {{}}, "queries": {{"q": {query}}}}}"#);
        let refused = ledger.insert_schema("v2", &schema).expect_err(query);
        assert!(
            matches!(&refused, LedgerError::Schema(error) if error.to_string().contains(reason)),
            "{refused:?}"
        );
    }
    assert_eq!(ledger.schemas().count().expect("it counts"), 1);
}

#[test]
fn lists_explain_how_they_are_read() {
    let ledger = with_queries();
    let found = ledger.transactions().destination("users:2").explain(5).expect("it reads");
    assert_eq!((found.rows_returned, found.is_exact, found.is_sorted), (1, true, true), "{found:?}");
    assert!(found.index.starts_with("histories of 1 holdings"), "{found:?}");
    let scan = ledger.accounts().order_by(AccountOrder::UpdatedAt).explain(5).expect("it reads");
    assert_eq!((scan.rows_returned, scan.is_sorted), (4, false), "{scan:?}");
    assert_eq!(ledger.volumes().explain(9).expect("it reads").rows_returned, 4);
    assert_eq!(ledger.logs().newest_first().explain(2).expect("it reads").rows_returned, 2);
    assert_eq!(ledger.balances().under("users:").explain().expect("it reads").rows_returned, 1);
    let none = Store::in_memory().ledger("main").expect("a name").accounts().explain(5).expect("it reads");
    assert_eq!(none.rows_returned, 0);
    let malformed = ledger.accounts().from_cursor("x").explain(5);
    assert!(matches!(malformed, Err(LedgerError::Cursor { .. })), "{malformed:?}");
}

#[test]
fn lists_page_in_every_order() {
    let ledger = with_queries();
    ledger.revert(2).commit().expect("it is accepted");
    ledger.set_account_metadata("users:1", Metadata::from([("tier", "gold")])).expect("it is accepted");
    let orders = [
        AccountOrder::Address,
        AccountOrder::FirstUsage,
        AccountOrder::InsertionDate,
        AccountOrder::UpdatedAt,
    ];
    for order in orders {
        let list = || ledger.accounts().order_by(order).descending();
        let whole: Vec<_> = list().into_iter().collect::<Result<_, _>>().expect("it reads");
        let first = list().page(2).expect("it reads");
        let rest = list().from_cursor(&first.next.expect("there are more")).page(9).expect("it reads");
        assert_eq!([first.items, rest.items].concat(), whole, "{order:?}");
    }
    assert_eq!(
        ledger.accounts().order_by(AccountOrder::UpdatedAt).descending().page(1).expect("it reads").items[0]
            .address
            .as_str(),
        "users:1"
    );
    let reverted = ledger.transactions().order_by(TransactionOrder::RevertedAt).page(1).expect("it reads");
    assert_eq!(reverted.items[0].id.get(), 2);
}
