//! Rules that post payments as transactions of a ledger.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::client::{Answer, TestServer};
use crate::payments::{BASE, get, install, post, rows, until};

const RECEIVE: &str = "vars {\n  monetary $amount\n  string $type\n  account $source\n  account $destination\n}\n\
     send $amount (\n  source = $source allowing unbounded overdraft\n  destination = $destination\n)\n\
     set_tx_meta(\"type\", $type)";

/// Starts a server with a ledger and an installation that fetches nothing. Returns it with the id of the installation.
fn server() -> (TestServer, String) {
    let server = TestServer::start();
    server.post("/v2/main", "{}").is(204);
    let config = json!({"name": "my bank", "apiKey": "", "endpoint": ""});
    let connector = install(&server, "GENERIC", &config);
    (server, connector)
}

pub(crate) fn put(server: &TestServer, connector: &str, body: &Value) -> Answer {
    let path = format!("{BASE}/connectors/GENERIC/{connector}/postings");
    server.send("PUT", &path, &[], &body.to_string())
}

fn set_rule(server: &TestServer, connector: &str, script: &str) {
    put(server, connector, &json!({"ledger": "main", "script": script})).is(200);
}

fn account(server: &TestServer, connector: &str, reference: &str) -> String {
    let body = json!({"reference": reference, "connectorID": connector, "createdAt": "2024-01-01T00:00:00Z",
        "accountName": reference, "type": "INTERNAL"});
    post(server, "/accounts", &body).is(200).json()["data"]["id"].as_str().expect("an id").to_owned()
}

/// Creates or updates a payment manually and returns its id.
fn pay(server: &TestServer, connector: &str, reference: &str, amount: i64, status: &str, to: &str) -> String {
    let body = json!({"reference": reference, "connectorID": connector, "createdAt": "2024-05-01T00:00:00Z",
        "amount": amount, "type": "PAY-IN", "status": status, "scheme": "visa", "asset": "EUR/2",
        "destinationAccountID": to});
    let answer = post(server, "/payments", &body).is(200).json();
    answer["data"]["id"].as_str().expect("an id").to_owned()
}

fn explain(server: &TestServer, payment: &str) -> Value {
    get(server, &format!("/payments/{payment}/_explain")).is(200).json()["data"].clone()
}

#[track_caller]
fn assert_reason(server: &TestServer, payment: &str, code: &str) {
    let explained = explain(server, payment);
    assert_eq!(explained["reason"]["code"], code, "{explained}");
}

/// Returns the balances of a ledger's accounts in an asset.
fn balances(server: &TestServer, asset: &str) -> BTreeMap<String, i64> {
    let list = server.get("/v2/main/volumes?pageSize=1000").is(200).json();
    let rows = list["cursor"]["data"].as_array().expect("a list").clone();
    rows.iter()
        .filter(|row| row["asset"] == asset && row["balance"] != 0)
        .map(|row| (row["account"].as_str().expect("text").to_owned(), row["balance"].as_i64().expect("i64")))
        .collect()
}

fn balance(server: &TestServer, account: &str) -> i64 {
    balances(server, "EUR/2").get(account).copied().unwrap_or(0)
}

const TILL: &str = "payments:my__20bank:till_1";

#[test]
fn payment_makes_one_transaction() {
    let (server, connector) = server();
    let till = account(&server, &connector, "till_1");
    let early = pay(&server, &connector, "early", 5, "SUCCEEDED", &till);
    assert_reason(&server, &early, "OFF");
    set_rule(&server, &connector, RECEIVE);
    assert_reason(&server, &early, "NOT_CHANGED");
    let payment = pay(&server, &connector, "p", 1_200, "SUCCEEDED", &till);
    assert_eq!(pay(&server, &connector, "p", 1_200, "SUCCEEDED", &till), payment);
    assert_eq!(balances(&server, "EUR/2"), [(TILL.to_owned(), 1_200), ("world".to_owned(), -1_200)].into());
    let explained = explain(&server, &payment);
    assert_eq!((&explained["posted"], explained.get("reason")), (&json!(true), None), "{explained}");
    let made = &explained["transactions"][0];
    assert_eq!((&made["ledger"], &made["reference"]), (&json!("main"), &json!(payment)), "{explained}");
    let path = format!("/v2/main/transactions/{}", made["id"]);
    let transaction = server.get(&path).is(200).json()["data"].clone();
    assert_eq!(transaction["metadata"], json!({"payment_id": payment, "type": "PAY-IN"}));
    assert_eq!(transaction["timestamp"], "2024-05-01T00:00:00Z");
    assert_eq!(transaction["reference"], json!(payment));
}

#[test]
fn transaction_follows_its_payment() {
    let (server, connector) = server();
    set_rule(&server, &connector, RECEIVE);
    let till = account(&server, &connector, "till_1");
    let payment = pay(&server, &connector, "p", 1_000, "PENDING", &till);
    assert_reason(&server, &payment, "STATUS");
    for (amount, status, expected) in [
        (1_000, "SUCCEEDED", 1_000),
        (700, "SUCCEEDED", 700),
        (700, "DISPUTE", 0),
        (700, "SUCCEEDED", 700),
        (0, "SUCCEEDED", 0),
        (300, "SUCCEEDED", 300),
    ] {
        for _ in 0..2 {
            pay(&server, &connector, "p", amount, status, &till);
            assert_eq!(balance(&server, TILL), expected, "{amount} {status}");
        }
    }
    let explained = explain(&server, &payment);
    let references: Vec<_> =
        explained["transactions"].as_array().expect("a list").iter().map(|made| &made["reference"]).collect();
    let expected = ["#4", "#3", "#2", ""].map(|more| json!(format!("{payment}{more}")));
    assert_eq!(references, expected.iter().collect::<Vec<_>>());
    assert_eq!(explained["transactions"][1]["reverted"], true);
    // A change of the accounts creates another transaction. A change of metadata does not.
    let other = account(&server, &connector, "till_2");
    pay(&server, &connector, "p", 300, "SUCCEEDED", &other);
    assert_eq!((balance(&server, TILL), balance(&server, "payments:my__20bank:till_2")), (0, 300));
    let path = format!("{BASE}/payments/{payment}/metadata");
    server.send("PATCH", &path, &[], r#"{"a":"b"}"#).is(204);
    assert_eq!(explain(&server, &payment)["transactions"].as_array().map(Vec::len), Some(5));
    // The provider moves money back even if the account has spent it.
    let spend = json!({"postings": [{"source": "payments:my__20bank:till_2", "destination": "shop",
        "amount": 300, "asset": "EUR/2"}]});
    server.post("/v2/main/transactions", &spend.to_string()).is(200);
    pay(&server, &connector, "p", 300, "FAILED", &other);
    assert_eq!(balance(&server, "payments:my__20bank:till_2"), -300);
}

#[test]
fn refused_script_is_explained_and_run_again() {
    let (server, connector) = server();
    let spend =
        "vars {\n  monetary $amount\n}\nsend $amount (\n  source = @float\n  destination = @payouts\n)";
    set_rule(&server, &connector, spend);
    let payment = pay(&server, &connector, "p", 50, "SUCCEEDED", "");
    let odd = pay(&server, &connector, "odd", -1, "SUCCEEDED", "");
    assert_reason(&server, &payment, "INSUFFICIENT_FUND");
    assert_reason(&server, &odd, "AMOUNT");
    assert_eq!(rows(&server, "/payments").len(), 2);
    let fund =
        json!({"postings": [{"source": "world", "destination": "float", "amount": 70, "asset": "EUR/2"}]});
    server.post("/v2/main/transactions", &fund.to_string()).is(200);
    let run = format!("/connectors/GENERIC/{connector}/postings/run");
    let ran = post(&server, &run, &json!({})).is(200).json()["data"].clone();
    assert_eq!(ran, json!({"examined": 2, "posted": 1, "refused": 0, "hasMore": false}));
    assert_eq!((balance(&server, "float"), balance(&server, "payouts")), (20, 50));
    let ran = post(&server, &format!("{run}?after={payment}"), &json!({})).is(200).json();
    assert_eq!((&ran["data"]["examined"], balance(&server, "payouts")), (&json!(0), 50));
    // Another transaction already has the reference.
    let third = pay(&server, &connector, "third", 1, "FAILED", "");
    let taken = json!({"reference": third, "postings": [{"source": "world", "destination": "x", "amount": 1,
        "asset": "EUR/2"}]});
    server.post("/v2/main/transactions", &taken.to_string()).is(200);
    pay(&server, &connector, "third", 1, "SUCCEEDED", "");
    assert_reason(&server, &third, "CONFLICT");
}

#[test]
fn missing_ledger_stops_no_payment() {
    let (server, connector) = server();
    set_rule(&server, &connector, RECEIVE);
    let first = pay(&server, &connector, "first", 1, "SUCCEEDED", "");
    server.send("DELETE", "/v2/_/buckets/_default", &[], "").is(204);
    let second = pay(&server, &connector, "second", 1, "SUCCEEDED", "");
    assert_reason(&server, &second, "LEDGER_NOT_FOUND");
    assert_reason(&server, &first, "LEDGER_NOT_FOUND");
    server.post("/v2/_/buckets/_default/restore", "").is(204);
    post(&server, &format!("/connectors/GENERIC/{connector}/postings/run"), &json!({})).is(200);
    assert_eq!(explain(&server, &second)["posted"], true);
    assert_eq!(explain(&server, &first)["transactions"].as_array().map(Vec::len), Some(1));
}

#[test]
fn rule_is_checked_read_and_deleted() {
    let (server, connector) = server();
    let path = format!("/connectors/GENERIC/{connector}/postings");
    get(&server, &path).refused(404, "NOT_FOUND");
    post(&server, &format!("{path}/run"), &json!({})).refused(404, "NOT_FOUND");
    for body in [
        json!({}),
        json!({"ledger": "main"}),
        json!({"ledger": "missing", "script": RECEIVE}),
        json!({"ledger": "main", "script": "send"}),
        json!({"ledger": "main", "script": "vars {\n string $nothing\n}\nprint $nothing"}),
        json!({"ledger": "main", "script": "vars {\n number $amount\n}\nprint $amount"}),
        json!({"ledger": "main", "script": RECEIVE, "accountPrefix": "a b"}),
        json!({"ledger": "main", "script": 7}),
    ] {
        put(&server, &connector, &body).refused(400, "VALIDATION");
    }
    get(&server, &path).refused(404, "NOT_FOUND");
    let body = json!({"ledger": "main", "script": RECEIVE, "accountPrefix": "banks:core"});
    let set = put(&server, &connector, &body).is(200).json()["data"].clone();
    assert_eq!(get(&server, &path).is(200).json()["data"], set);
    assert_eq!((&set["accountPrefix"], &set["script"]), (&json!("banks:core"), &json!(RECEIVE)));
    let till = account(&server, &connector, "till");
    let payment = pay(&server, &connector, "p", 3, "SUCCEEDED", &till);
    post(&server, &format!("{path}/run?after={connector}"), &json!({})).refused(400, "VALIDATION");
    server.send("DELETE", &format!("{BASE}{path}"), &[], "").is(204);
    server.send("DELETE", &format!("{BASE}{path}"), &[], "").refused(404, "NOT_FOUND");
    pay(&server, &connector, "p", 4, "SUCCEEDED", &till);
    assert_eq!(balance(&server, "banks:core:till"), 3);
    assert_eq!(explain(&server, &payment)["posted"], true);
    assert_reason(&server, &payment, "OFF");
    // After a reset, an installation ingests its payments again with other ids. They must not be posted twice.
    put(&server, &connector, &body).is(200);
    post(&server, &format!("/connectors/GENERIC/{connector}/reset"), &json!({})).is(204);
    let again =
        get(&server, "/connectors").json()["data"][0]["connectorID"].as_str().expect("an id").to_owned();
    get(&server, &format!("/connectors/GENERIC/{again}/postings")).refused(404, "NOT_FOUND");
    get(&server, &format!("/payments/{payment}/_explain")).refused(404, "NOT_FOUND");
}

#[test]
fn dummy_pay_balances_equal_its_payments() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = TestServer::start();
    server.post("/v2/main", "{}").is(204);
    let config = json!({"name": "d", "directory": folder.path(), "filePollingPeriod": "20ms",
        "numberOfAccountsPreGenerated": 3, "numberOfPaymentsPreGenerated": 450});
    let connector = install(&server, "DUMMY-PAY", &config);
    let path = format!("/connectors/DUMMY-PAY/{connector}/postings");
    let rule = json!({"ledger": "main", "script": RECEIVE}).to_string();
    server.send("PUT", &format!("{BASE}{path}"), &[], &rule).is(200);
    let ran = post(&server, &format!("{path}/run"), &json!({})).is(200).json()["data"].clone();
    assert_eq!(ran["examined"], 450);
    for number in 0..3 {
        let file = json!({"kind": "payment", "payment": {"reference": format!("f{number}"),
            "createdAt": "2024-01-01T00:00:00Z", "amount": 1_000 + number, "asset": "DUMMYCOIN",
            "type": "PAY-IN", "status": "SUCCEEDED", "scheme": "visa"}});
        std::fs::write(folder.path().join(format!("{number}.json")), file.to_string()).expect("written");
    }
    until("the files are read", || rows(&server, "/payments?pageSize=1000").len() == 453);
    let mut expected: BTreeMap<String, i64> = BTreeMap::new();
    let accounts = rows(&server, "/accounts");
    let address = |id: &Value| {
        let found = accounts.iter().find(|account| account["id"] == *id);
        found.map_or("world".to_owned(), |found| {
            format!("payments:d:{}", found["reference"].as_str().expect("a reference"))
        })
    };
    let mut posted = 0;
    for payment in rows(&server, "/payments?pageSize=1000") {
        let amount = payment["amount"].as_i64().expect("an amount");
        let is_due = payment["status"] == "SUCCEEDED" && amount > 0;
        let explained = explain(&server, payment["id"].as_str().expect("an id"));
        assert_eq!(explained["posted"], is_due, "{payment} {explained}");
        if is_due {
            posted += 1;
            *expected.entry(address(&payment["sourceAccountID"])).or_default() -= amount;
            *expected.entry(address(&payment["destinationAccountID"])).or_default() += amount;
        }
    }
    expected.retain(|_, balance| *balance != 0);
    assert!(posted > 150, "{posted}");
    assert_eq!(balances(&server, "DUMMYCOIN"), expected);
    // A second run changes nothing.
    let entries = server.get("/v2/main/stats").is(200).json()["data"]["transactions"].clone();
    post(&server, &format!("{path}/run"), &json!({})).is(200);
    assert_eq!(server.get("/v2/main/stats").json()["data"]["transactions"], entries);
    assert_eq!(entries, json!(posted));
}
