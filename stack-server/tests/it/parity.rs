//! Does the same over HTTP and with the methods of the library, and compares the results.
//!
//! One store gets its writes over HTTP, the other through `Ledger`. Both read the same clock, so after each write their
//! exports must be the same bytes, with the hashes of all logs. The reads compare the answers of the server with those of
//! the methods.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use ledger_core::{JsonWriter, LedgerOptions, Metadata, Resource, Timestamp};
use ledger_store::json::{LogShape, write_features, write_log, write_transaction};
use ledger_store::{
    Account, Deleted, Direction, Explanation, Ledger, LedgerError, LedgerInfo, LogView, Options, PageRequest,
    Start, Store, TransactionView, VolumesRow,
};
use ledger_testkit::SetClock;
use serde_json::{Value, json};
use stack_server::{Server, Settings};

use crate::client::TestServer;

/// Operations that this test does not run. The tests of streams compare their events with the log.
const ELSEWHERE: [&str; 1] = ["StreamEvents"];

const SCHEMA: &str = r#"{
  "chart": {"world": {}, "users": {"$user": {"main": {}}}},
  "transactions": {"topup": {"description": "Adds money", "script":
    "vars { monetary $amount account $user }\nsend $amount (source = @world destination = $user)"}},
  "queries": {"users": {"resource": "accounts", "body": {"$match": {"address": "users:..."}}}}
}"#;

type Outcome = Result<(), LedgerError>;

/// A store behind a server, and another one, with one clock.
struct Twins {
    clock: Arc<SetClock>,
    server: TestServer,
    served: Store,
    embedded: Store,
    compared: RefCell<BTreeSet<&'static str>>,
    writes: Cell<u32>,
}

/// A write over HTTP: its operation, its idempotency key if it has one, method, path and body.
#[derive(Clone, Copy)]
struct Sent<'a>(&'static str, Option<&'a str>, &'a str, &'a str, &'a str);

impl Twins {
    fn start() -> Self {
        let clock = Arc::<SetClock>::default();
        let store = || Store::in_memory_with(&Options::new().clock(clock.clone()));
        let (served, embedded) = (store(), store());
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let server = Server::start(&served, Settings::default(), listener).expect("a server");
        let server = TestServer { address: server.address(), server: Some(server) };
        Self { clock, server, served, embedded, compared: RefCell::default(), writes: Cell::default() }
    }

    /// Sends a write, executes the same with the library at the same time of the clock, and compares the exports.
    #[track_caller]
    fn write(&self, sent: Sent<'_>, execute: impl FnOnce(&Ledger) -> Outcome) -> Value {
        let Sent(operation, key, method, path, body) = sent;
        self.writes.set(self.writes.get() + 1);
        let day = format!("2024-05-{:02}T12:00:00Z", self.writes.get());
        self.clock.set(Timestamp::parse(&day).expect("a date"));
        let key: Vec<_> = key.iter().map(|key| ("Idempotency-Key", *key)).collect();
        let answer = self.server.send(method, path, &key, body);
        assert!(answer.status < 300, "{operation}: {answer:?}");
        execute(&self.embedded.ledger("main").expect("a name")).expect(operation);
        for name in ["main", "copy"] {
            assert_eq!(export(&self.served, name), export(&self.embedded, name), "{operation}");
        }
        assert_eq!(ledgers(&self.served), ledgers(&self.embedded), "{operation}");
        self.compared.borrow_mut().insert(operation);
        if answer.body.is_empty() { Value::Null } else { answer.json()["data"].clone() }
    }

    /// Sends a read, and compares its rows or its data with the answer of the library.
    #[track_caller]
    fn read(&self, operation: &'static str, path: &str, body: &str, read: impl FnOnce(&Ledger) -> Value) {
        let method = if operation == "RunQuery" { "POST" } else { "GET" };
        let answer = self.server.send(method, path, &[], body).is(200).json();
        let found = if answer["cursor"].is_object() { &answer["cursor"]["data"] } else { &answer["data"] };
        assert_eq!(*found, read(&self.served.ledger("main").expect("a name")), "{operation}");
        self.compared.borrow_mut().insert(operation);
    }

    /// Sends a count, and compares it with that of the library.
    #[track_caller]
    fn count(&self, operation: &'static str, path: &str, expected: Result<u64, LedgerError>) {
        let answer = self.server.send("HEAD", path, &[], "").is(204);
        assert_eq!(answer.header("count"), Some(expected.expect(operation).to_string().as_str()));
        self.compared.borrow_mut().insert(operation);
    }
}

/// Returns the export of a ledger, or nothing if it does not exist.
fn export(store: &Store, name: &str) -> String {
    let mut text = Vec::new();
    let ledger = store.ledger(name).expect("a name");
    ledger.export(&mut text).map_or_else(|_| String::new(), |_| String::from_utf8(text).expect("a text"))
}

/// Returns all ledgers, with those that are deleted.
fn ledgers(store: &Store) -> Vec<LedgerInfo> {
    let page = PageRequest { size: 100, direction: Direction::Ascending, start: Start::First };
    store.snapshot().ledgers(&page, &ledger_core::FilterOf::all(), Deleted::Shown).expect("a page").items
}

/// Returns the value of a text of JSON.
fn written(write: impl FnOnce(&mut JsonWriter)) -> Value {
    let mut json = JsonWriter::with_capacity(100);
    write(&mut json);
    serde_json::from_slice(json.as_bytes()).expect("JSON")
}

fn metadata(metadata: &Metadata) -> Value {
    written(|json| {
        json.metadata(metadata);
    })
}

fn account(account: &Account) -> Value {
    json!({
        "address": account.address.as_str(),
        "metadata": metadata(&account.metadata),
        "firstUsage": account.first_usage.to_string(),
        "insertionDate": account.insertion_date.to_string(),
        "updatedAt": account.updated_at.to_string(),
    })
}

fn transaction(view: &TransactionView) -> Value {
    written(|json| write_transaction(json, &view.transaction, None, None))
}

fn log(view: &LogView) -> Value {
    written(|json| write_log(json, view, LogShape { whole_reverts: true, effective_volumes: true }))
}

fn ledger(info: &LedgerInfo) -> Value {
    json!({
        "id": info.id,
        "name": info.name.as_str(),
        "bucket": info.bucket.as_str(),
        "addedAt": info.added_at.to_string(),
        "metadata": metadata(&info.metadata),
        "features": written(|json| write_features(json, &info.features)),
    })
}

fn volumes(row: &VolumesRow) -> Value {
    let mut value = written(|json| ledger_store::json::write_volumes(json, &row.volumes));
    value["account"] = json!(row.account);
    value["asset"] = json!(row.asset.as_str());
    value
}

fn explanation(explained: Result<Explanation, LedgerError>) -> Value {
    let found = explained.expect("an explanation");
    json!({
        "index": found.index,
        "exact": found.is_exact,
        "sorted": found.is_sorted,
        "rowsPlanning": found.rows_planning,
        "rowsScanned": found.rows_scanned,
        "rowsReturned": found.rows_returned,
    })
}

/// Collects a list of the library as JSON.
fn rows<T>(list: impl IntoIterator<Item = Result<T, LedgerError>>, row: impl Fn(&T) -> Value) -> Value {
    list.into_iter().map(|item| row(&item.expect("a row"))).collect()
}

fn write_transactions(twins: &Twins) {
    let payment = r#"{"postings": [{"source": "world", "destination": "users:1:main", "amount": 100, "asset": "USD/2"}],
        "reference": "order-1", "metadata": {"kind": "topup"}, "timestamp": "2024-04-01T00:00:00Z"}"#;
    let created = twins.write(
        Sent("CreateTransaction", Some("payment-1"), "POST", "/v2/main/transactions", payment),
        |ledger| {
            let payment = ledger.transaction().posting("world", "users:1:main", 100, "USD/2");
            let payment = payment.reference("order-1").metadata("kind", "topup");
            let date = Timestamp::parse("2024-04-01T00:00:00Z").expect("a date");
            let committed = payment.timestamp(date).idempotency_key("payment-1").commit()?;
            assert_eq!(committed.id.get(), 1);
            Ok(())
        },
    );
    assert_eq!(created["id"], 1);
    let bulk = r#"[
        {"action": "CREATE_TRANSACTION", "ik": "bulk-1", "data": {"script": {
            "plain": "send [USD/2 30] (source = @users:1:main destination = @users:2:main)"}}},
        {"action": "ADD_METADATA", "data": {"targetType": "ACCOUNT", "targetId": "users:2:main", "metadata": {"tier": "gold"}}},
        {"action": "ADD_METADATA", "data": {"targetType": "TRANSACTION", "targetId": 2, "metadata": {"seen": "yes"}}}
    ]"#;
    let answers = twins.write(Sent("Bulk", None, "POST", "/v2/main/_bulk", bulk), |ledger| {
        let script = "send [USD/2 30] (source = @users:1:main destination = @users:2:main)";
        let batch = ledger.batch().push(ledger.script(script).idempotency_key("bulk-1"));
        let batch = batch.push(ledger.update_account("users:2:main").metadata("tier", "gold"));
        let receipts = batch.push(ledger.update_transaction(2).metadata("seen", "yes")).commit()?;
        receipts.into_iter().try_for_each(|receipt| receipt.map(|_| ()))
    });
    assert_eq!(answers.as_array().map(Vec::len), Some(3));
    let reverted = twins.write(
        Sent(
            "RevertTransaction",
            Some("RevertTransaction"),
            "POST",
            "/v2/main/transactions/2/revert?atEffectiveDate=true",
            r#"{"metadata": {"why": "mistake"}}"#,
        ),
        |ledger| {
            let revert = ledger.revert(2).at_effective_date().metadata("why", "mistake");
            assert_eq!(revert.idempotency_key("RevertTransaction").commit()?.id.get(), 3);
            Ok(())
        },
    );
    assert_eq!(reverted["id"], 3);
}

fn write_metadata(twins: &Twins) {
    let body = r#"{"note": "first"}"#;
    let first = || Metadata::from([("note", "first")]);
    twins.write(Sent("SetLedgerMetadata", None, "PUT", "/v2/main/metadata", body), |ledger| {
        ledger.set_metadata(first())
    });
    twins.write(Sent("DeleteLedgerMetadata", None, "DELETE", "/v2/main/metadata/note", ""), |ledger| {
        ledger.delete_metadata("note")
    });
    let of_account = "/v2/main/accounts/users:1:main/metadata";
    twins.write(Sent("SetAccountMetadata", Some("SetAccountMetadata"), "POST", of_account, body), |ledger| {
        let update = ledger.update_account("users:1:main").metadata("note", "first");
        update.idempotency_key("SetAccountMetadata").commit().map(|_| ())
    });
    let of_transaction = "/v2/main/transactions/1/metadata";
    twins.write(
        Sent("SetTransactionMetadata", Some("SetTransactionMetadata"), "POST", of_transaction, body),
        |ledger| {
            let update = ledger.update_transaction(1).metadata("note", "first");
            update.idempotency_key("SetTransactionMetadata").commit().map(|_| ())
        },
    );
    let once = |key: &str, command| {
        let key = ledger_core::IdempotencyKey::parse(key).expect("a key");
        ledger_store::Request::once(key, command)
    };
    let deletion = |target| ledger_core::Command::DeleteMetadata { target, key: "note".into() };
    twins.write(
        Sent(
            "DeleteAccountMetadata",
            Some("DeleteAccountMetadata"),
            "DELETE",
            &format!("{of_account}/note"),
            "",
        ),
        |ledger| {
            let address = ledger_core::AccountAddress::parse("users:1:main").expect("an address");
            let command = deletion(ledger_core::Target::Account(address));
            ledger.batch().push(once("DeleteAccountMetadata", command)).atomic().commit().map(|_| ())
        },
    );
    twins.write(
        Sent(
            "DeleteTransactionMetadata",
            Some("DeleteTransactionMetadata"),
            "DELETE",
            &format!("{of_transaction}/note"),
            "",
        ),
        |ledger| {
            let command = deletion(ledger_core::Target::Transaction(ledger_core::TransactionId::new(1)));
            ledger.batch().push(once("DeleteTransactionMetadata", command)).atomic().commit().map(|_| ())
        },
    );
}

/// Copies the ledger over HTTP and with the library, and deletes and restores the bucket of the copy.
fn write_copies(twins: &Twins) {
    let logs = twins.server.post("/v2/main/logs/export", "").is(200).body;
    let mut own = Vec::new();
    twins.embedded.ledger("main").expect("a name").export_logs(&mut own).expect("an export");
    assert_eq!(logs.as_bytes(), own, "ExportLogs");
    twins.compared.borrow_mut().insert("ExportLogs");
    let copy = || twins.embedded.ledger("copy").expect("a name");
    twins.server.post("/v2/copy", r#"{"bucket": "copies"}"#).is(204);
    let bucket = ledger_core::BucketName::parse("copies").expect("a name");
    copy().create(LedgerOptions { bucket: bucket.clone(), ..LedgerOptions::default() }).expect("a ledger");
    twins.write(Sent("ImportLogs", None, "POST", "/v2/copy/logs/import", &logs), |_| {
        copy().import(own.as_slice()).expect("an import");
        Ok(())
    });
    twins.write(Sent("DeleteBucket", None, "DELETE", "/v2/_/buckets/copies", ""), |_| {
        twins.embedded.delete_bucket(&bucket).map_err(LedgerError::from)
    });
    twins.write(Sent("RestoreBucket", None, "POST", "/v2/_/buckets/copies/restore", ""), |_| {
        twins.embedded.restore_bucket(&bucket).map_err(LedgerError::from)
    });
}

/// A filter that selects transactions and one that selects accounts.
const TOPUPS: &str = r#"{"$match": {"metadata[kind]": "topup"}}"#;
const USERS: &str = r#"{"$match": {"address": "users:..."}}"#;

fn compare_lists(twins: &Twins) {
    twins.read("ListLedgers", "/v2", "", |_| {
        twins.served.ledgers().expect("ledgers").iter().map(ledger).collect()
    });
    twins.read("ListAccounts", "/v2/main/accounts", USERS, |ledger| {
        rows(ledger.accounts().filter_json(USERS).expect("a filter"), account)
    });
    twins.read("ListTransactions", "/v2/main/transactions", TOPUPS, |ledger| {
        rows(ledger.transactions().newest_first().filter_json(TOPUPS).expect("a filter"), transaction)
    });
    twins.read("ListVolumes", "/v2/main/volumes?groupBy=1", USERS, |ledger| {
        rows(ledger.volumes().group_by(1).filter_json(USERS).expect("a filter"), volumes)
    });
    twins.read("ListLogs", "/v2/main/logs", "", |ledger| rows(ledger.logs().newest_first(), log));
    twins.read("ListSchemas", "/v2/main/schemas", "", |ledger| {
        rows(ledger.schemas().newest_first(), |view| serde_json::from_str(&view.text).expect("JSON"))
    });
    twins.read("AggregatedBalances", "/v2/main/aggregate/balances", USERS, |ledger| {
        let sums = ledger.balances().under("users").now().expect("sums");
        sums.iter().map(|(asset, sum)| (asset.to_string(), json!(sum.to_u64()))).collect()
    });
    let query = "/v2/main/queries/users/run?schemaVersion=v1";
    twins.read("RunQuery", query, "{}", |ledger| {
        let query = ledger.query("v1", "users").expect("a query");
        assert_eq!(query.resource(), Resource::Accounts);
        rows(query.accounts().expect("accounts"), account)
    });
    let main = twins.served.ledger("main").expect("a name");
    twins.count("CountAccounts", "/v2/main/accounts", main.accounts().count());
    twins.count("CountTransactions", "/v2/main/transactions", main.transactions().count());
}

fn compare_reads(twins: &Twins) {
    twins.read("ReadLedger", "/v2/main", "", |main| ledger(&main.info().expect("a ledger")));
    twins.read(
        "LedgerInfo",
        "/v2/main/_info",
        "",
        |main| json!({"name": main.info().expect("a ledger").name.as_str(), "storage": {"migrations": []}}),
    );
    twins.read("LedgerStats", "/v2/main/stats", "", |ledger| {
        let stats = ledger.stats().expect("numbers");
        json!({"transactions": stats.transactions, "accounts": stats.accounts})
    });
    let early = "2024-04-02T00:00:00Z";
    twins.read("ReadAccount", &format!("/v2/main/accounts/users:1:main?pit={early}"), "", |ledger| {
        let at = Timestamp::parse(early).expect("a date");
        account(&ledger.account_at("users:1:main", at).expect("a read").expect("an account"))
    });
    twins.read("ReadTransaction", "/v2/main/transactions/2", "", |ledger| {
        transaction(&ledger.get_transaction(2).expect("a transaction"))
    });
    twins.read("ReadSchema", "/v2/main/schemas/v1", "", |ledger| {
        let schema = ledger.schema("v1").expect("a read").expect("a version");
        serde_json::from_str(&schema.text).expect("JSON")
    });
    twins.read("ExplainAccounts", "/v2/main/_explain/accounts?pageSize=15", USERS, |ledger| {
        explanation(ledger.accounts().filter_json(USERS).expect("a filter").explain(15))
    });
    twins.read("ExplainTransactions", "/v2/main/_explain/transactions?pageSize=15", TOPUPS, |ledger| {
        let list = ledger.transactions().newest_first().filter_json(TOPUPS).expect("a filter");
        explanation(list.explain(15))
    });
    twins.read("ExplainVolumes", "/v2/main/_explain/volumes?pageSize=15", USERS, |ledger| {
        explanation(ledger.volumes().filter_json(USERS).expect("a filter").explain(15))
    });
    twins.read("ExplainLogs", "/v2/main/_explain/logs?pageSize=15", "", |ledger| {
        explanation(ledger.logs().newest_first().explain(15))
    });
    twins.read("ExplainBalances", "/v2/main/_explain/aggregate/balances", USERS, |ledger| {
        explanation(ledger.balances().filter_json(USERS).expect("a filter").explain())
    });
}

#[test]
fn library_and_http_give_the_same_results() {
    let twins = Twins::start();
    twins.write(
        Sent("CreateLedger", None, "POST", "/v2/main", r#"{"metadata": {"team": "payments"}}"#),
        |ledger| {
            let metadata = Metadata::from([("team", "payments")]);
            ledger.create(LedgerOptions { metadata, ..LedgerOptions::default() }).map(|_| ())
        },
    );
    write_transactions(&twins);
    write_metadata(&twins);
    twins.write(Sent("InsertSchema", None, "POST", "/v2/main/schemas/v1", SCHEMA), |ledger| {
        ledger.insert_schema("v1", SCHEMA)
    });
    let topup = r#"{"script": {"template": "topup", "vars": {"amount": "USD/2 5", "user": "users:1:main"}}}"#;
    twins.write(
        Sent("CreateTransaction", Some("template"), "POST", "/v2/main/transactions?schemaVersion=v1", topup),
        |ledger| {
            let topup = ledger.template("topup").var("amount", "USD/2 5").var("user", "users:1:main");
            topup.schema_version("v1").idempotency_key("template").commit().map(|_| ())
        },
    );
    compare_lists(&twins);
    compare_reads(&twins);
    write_copies(&twins);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/library-and-http.md");
    let page = std::fs::read_to_string(page).expect("the table of operations");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let listed: BTreeSet<&str> = rows.map(|(name, _)| name).collect();
    let mut compared = twins.compared.take();
    compared.extend(ELSEWHERE);
    let different: Vec<_> = compared.symmetric_difference(&listed).collect();
    assert!(different.is_empty(), "only compared here or only in docs/library-and-http.md: {different:?}");
}
