//! The payments API: installations, lists, transfers, and records from providers.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use ledger_store::Store;
use serde_json::{Value, json};
use stack_server::{EncryptionKey, Server, Settings};

use crate::client::{Answer, TestServer, escape};
use crate::provider::Provider;

pub(crate) const BASE: &str = "/api/payments";

pub(crate) fn post(server: &TestServer, path: &str, body: &Value) -> Answer {
    server.post(&format!("{BASE}{path}"), &body.to_string())
}

pub(crate) fn get(server: &TestServer, path: &str) -> Answer {
    server.get(&format!("{BASE}{path}"))
}

pub(crate) fn install(server: &TestServer, connector: &str, config: &Value) -> String {
    let answer = post(server, &format!("/connectors/{connector}"), config).is(201).json();
    answer["data"]["connectorID"].as_str().expect("an id").to_owned()
}

/// Repeats an attempt until it succeeds. `what` describes it in the error.
#[track_caller]
pub(crate) fn until(what: &str, mut attempt: impl FnMut() -> bool) {
    let began = Instant::now();
    while !attempt() {
        assert!(began.elapsed() < Duration::from_secs(25), "{what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

pub(crate) fn rows(server: &TestServer, path: &str) -> Vec<Value> {
    get(server, path).is(200).json()["cursor"]["data"].as_array().expect("a list").clone()
}

pub(crate) fn manual(server: &TestServer) -> String {
    install(server, "GENERIC", &json!({"name": "manual", "apiKey": "", "endpoint": ""}))
}

pub(crate) fn pay(server: &TestServer, connector: &str, reference: &str, amount: i64) -> Value {
    let body = json!({"reference": reference, "connectorID": connector, "createdAt": "2024-05-01T00:00:00Z",
        "amount": amount, "type": "PAY-IN", "status": "SUCCEEDED", "scheme": "visa", "asset": "EUR/2"});
    post(server, "/payments", &body).is(200).json()["data"].clone()
}

#[test]
fn an_id_of_another_connector_is_refused() {
    let server = TestServer::start();
    let connector = manual(&server);
    for path in ["config", "tasks"] {
        get(&server, &format!("/connectors/DUMMY-PAY/{connector}/{path}")).refused(400, "VALIDATION");
    }
    post(&server, &format!("/connectors/STRIPE/{connector}/reset"), &json!({})).refused(400, "VALIDATION");
    get(&server, "/connectors/NOSUCH/config").refused(404, "NOT_FOUND");
    post(&server, "/connectors/NOSUCH", &json!({})).refused(404, "NOT_FOUND");
    assert_eq!(get(&server, "/connectors").json()["data"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_configuration_that_is_refused_installs_nothing() {
    let server = TestServer::start();
    for (connector, config) in [
        ("STRIPE", json!({})),
        ("STRIPE", json!({"apiKey": ""})),
        ("STRIPE", json!({"apiKey": "k", "pollingPeriod": "soon"})),
        ("STRIPE", json!({"apiKey": "k", "pageSize": -1})),
        ("DUMMY-PAY", json!({"filePollingPeriod": "1s"})),
        ("DUMMY-PAY", json!({"directory": "/proc/nosuch", "filePollingPeriod": "1s"})),
        ("DUMMY-PAY", json!({"directory": "/", "filePollingPeriod": "1s"})),
        ("DUMMY-PAY", json!({"directory": "relative", "filePollingPeriod": "1s"})),
        ("DUMMY-PAY", json!({"directory": "/tmp/../etc", "filePollingPeriod": "1s"})),
        ("GENERIC", json!({"endpoint": "ftp://x"})),
        ("WISE", json!({"name": "w"})),
        ("MODULR", json!({"apiKey": "k"})),
        ("CURRENCY-CLOUD", json!({"apiKey": "k"})),
        ("BANKING-CIRCLE", json!({"username": "u"})),
    ] {
        let message = post(&server, &format!("/connectors/{connector}"), &config).refused(400, "VALIDATION");
        assert!(!message.is_empty(), "{connector}");
    }
    assert_eq!(get(&server, "/connectors").is(200).json()["data"], json!([]));
}

#[test]
fn a_client_of_1_10_reads_its_own_words() {
    let server = TestServer::start();
    let agent = [("User-Agent", "speakeasy-sdk/go v1.0.20230718 2.31.0")];
    let config = r#"{"name":"old","apiKey":"","endpoint":""}"#;
    server.send("POST", "/api/payments/connectors/GENERIC", &agent, config).is(204);
    let connector = get(&server, "/connectors").json()["data"][0]["connectorID"].clone();
    let account = json!({"reference": "a", "connectorID": connector, "createdAt": "2024-01-01T00:00:00Z",
        "accountName": "a", "type": "INTERNAL"});
    post(&server, "/accounts", &account).is(200);
    let payment = json!({"reference": "p", "connectorID": connector, "createdAt": "2024-05-01T00:00:00Z",
        "amount": 5, "type": "PAY-IN", "status": "EXPIRED", "scheme": "visa", "asset": "EUR/2"});
    post(&server, "/payments", &payment).is(200);
    let read = |path: &str| server.send("GET", &format!("{BASE}{path}"), &agent, "").is(200);
    assert_eq!(read("/accounts").column("type"), ["SOURCE"]);
    assert_eq!(read("/payments").column("status"), ["FAILED"]);
    assert_eq!(get(&server, "/payments").column("status"), ["EXPIRED"]);
}

#[test]
fn a_payment_by_hand_is_updated_by_its_id() {
    let server = TestServer::start();
    let connector = manual(&server);
    let first = pay(&server, &connector, "p", 10);
    let again = pay(&server, &connector, "p", 7);
    assert_eq!(
        (&again["id"], &again["initialAmount"], &again["amount"]),
        (&first["id"], &json!(10), &json!(7))
    );
    assert_eq!(rows(&server, "/payments").len(), 1);
    let path = format!("/payments/{}", first["id"].as_str().expect("an id"));
    assert_eq!(get(&server, &format!("{path}=")).is(200).json()["data"]["amount"], 7);
}

#[test]
fn cursors_keep_filters_and_sorting() {
    let server = TestServer::start();
    let connector = manual(&server);
    for number in 0..9 {
        pay(&server, &connector, &format!("p{number}"), number % 3);
    }
    let query = escape(r#"{"$gte":{"amount":1}}"#);
    let path = format!("/payments?pageSize=4&sort=amount:desc&sort=reference:asc&query={query}");
    let first = get(&server, &path).is(200);
    assert_eq!(first.column("reference"), ["p2", "p5", "p8", "p1"]);
    let next = first.json()["cursor"]["next"].as_str().expect("a cursor").to_owned();
    let second = get(&server, &format!("/payments?cursor={next}")).is(200);
    assert_eq!(second.column("reference"), ["p4", "p7"]);
    assert_eq!(second.json()["cursor"]["hasMore"], false);
    // A cursor is valid only for its list.
    get(&server, &format!("/accounts?cursor={next}")).refused(400, "VALIDATION");
    let reference = escape(r#"{"$match":{"reference":"p5"}}"#);
    assert_eq!(get(&server, &format!("/payments?query={reference}")).column("reference"), ["p5"]);
}

#[test]
fn filters_take_ids_with_and_without_padding() {
    let server = TestServer::start();
    let connector = manual(&server);
    pay(&server, &connector, "p", 1);
    for (id, found) in [(connector.clone(), 1), (format!("{connector}="), 1), ("abc".to_owned(), 0)] {
        let filter = json!({"$match": {"connectorID": id}}).to_string();
        assert_eq!(rows(&server, &format!("/payments?query={}", escape(&filter))).len(), found, "{id}");
    }
}

#[test]
fn pools_are_stored_whole_or_not_at_all() {
    let server = TestServer::start();
    let connector = manual(&server);
    let account = json!({"reference": "a", "connectorID": connector, "createdAt": "2024-01-01T00:00:00Z",
        "accountName": "a", "type": "INTERNAL"});
    let id = post(&server, "/accounts", &account).is(200).json()["data"]["id"].clone();
    let unknown = "eyJDb25uZWN0b3JJRCI6eyJQcm92aWRlciI6IkRVTU1ZLVBBWSIsIlJlZmVyZW5jZSI6IjdhMWUyYzNkLTRiNWYtNGE2Yi04YzdkLTllMGYxYTJiM2M0ZCJ9LCJSZWZlcmVuY2UiOiJhY2MtMSJ9";
    for accounts in [json!([]), json!(["abc"]), json!([unknown]), json!([id, unknown]), json!([id, id])] {
        let body = json!({"name": "p", "accountIDs": accounts});
        post(&server, "/pools", &body).refused(400, "VALIDATION");
    }
    assert!(rows(&server, "/pools").is_empty());
    let body = json!({"name": "p", "accountIDs": [id]});
    let pool =
        post(&server, "/pools", &body).is(200).json()["data"]["id"].as_str().expect("an id").to_owned();
    post(&server, "/pools", &body).refused(400, "VALIDATION");
    let member = json!({"accountID": id});
    post(&server, &format!("/pools/{pool}/accounts"), &member).refused(400, "VALIDATION");
    get(&server, &format!("/pools/{pool}/balances")).refused(400, "VALIDATION");
    get(&server, &format!("/pools/{pool}/balances?at=x")).refused(400, "VALIDATION");
    let balances = get(&server, &format!("/pools/{pool}/balances?at=2024-05-01T00:00:00Z")).is(200);
    assert_eq!(balances.json()["data"]["balances"], json!([]));
    // Removed accounts are in no pool.
    server.send("DELETE", &format!("{BASE}/connectors/GENERIC/{connector}"), &[], "").is(204);
    assert_eq!(get(&server, &format!("/pools/{pool}")).is(200).json()["data"]["accounts"], json!([]));
}

#[test]
fn dummy_pay_reads_each_file_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = TestServer::start();
    let config = json!({"name": "d", "directory": folder.path(), "filePollingPeriod": "20ms",
        "numberOfAccountsPreGenerated": 1, "numberOfPaymentsPreGenerated": 3});
    let connector = install(&server, "DUMMY-PAY", &config);
    // The payments exist before the response to the installation.
    assert_eq!(rows(&server, "/payments").len(), 3);
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 4);
    let file = json!({"kind": "payment", "payment": {"reference": "mine", "createdAt": "2024-01-01T00:00:00Z",
        "amount": 1500, "asset": "EUR/2", "type": "PAY-IN", "status": "SUCCEEDED", "scheme": "visa",
        "destinationAccountId": "acc", "metadata": {"k": "v"}}});
    std::fs::write(folder.path().join("x.json"), file.to_string()).expect("written");
    std::fs::create_dir(folder.path().join("sub")).expect("made");
    let query = escape(r#"{"$match":{"reference":"mine"}}"#);
    let path = format!("/payments?query={query}");
    until("the file is read", || rows(&server, &path).len() == 1);
    let payment = rows(&server, &path).remove(0);
    assert_eq!((&payment["amount"], &payment["metadata"]["k"]), (&json!(1500), &json!("v")));
    std::fs::write(folder.path().join("bad.json"), "{").expect("written");
    until("the bad file has failed", || {
        let tasks = get(&server, &format!("/connectors/DUMMY-PAY/{connector}/tasks")).is(200);
        tasks.column("status").contains(&"FAILED".to_owned())
    });
    server.send("DELETE", &format!("{BASE}/connectors/DUMMY-PAY"), &[], "").is(204);
    let mut left: Vec<_> = std::fs::read_dir(folder.path())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    left.sort();
    assert_eq!(left, ["bad.json", "sub", "x.json"]);
    assert!(rows(&server, "/accounts").is_empty());
}

#[test]
fn dummy_pay_stays_below_its_directory() {
    let (folder, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let mut settings = Settings::default();
    settings.connectors_directory = Some(folder.path().to_owned());
    let server = TestServer::with(settings);
    let config = |directory: &std::path::Path| json!({"name": "d", "directory": directory, "numberOfPaymentsPreGenerated": 1});
    std::os::unix::fs::symlink(other.path(), folder.path().join("link")).expect("a link");
    for outside in [other.path(), &folder.path().join("link"), &folder.path().join("link/new")] {
        post(&server, "/connectors/DUMMY-PAY", &config(outside)).refused(400, "VALIDATION");
    }
    assert_eq!(std::fs::read_dir(other.path()).expect("the folder").count(), 0);
    install(&server, "DUMMY-PAY", &config(&folder.path().join("new/one")));
    assert_eq!(rows(&server, "/payments").len(), 1);
}

pub(crate) fn server_on(store: &Store, settings: Settings) -> std::io::Result<TestServer> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let server = Server::start(store, settings, listener)?;
    Ok(TestServer { address: server.address(), server: Some(server) })
}

#[test]
fn secrets_are_encrypted_and_another_key_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let with_key = |letter: &str| {
        let mut settings = Settings::default();
        settings.encryption_key = Some(EncryptionKey::parse(&letter.repeat(32)).expect("a key"));
        settings
    };
    let store = Store::open(folder.path()).expect("a store");
    let server = server_on(&store, with_key("a")).expect("a server");
    install(&server, "GENERIC", &json!({"name": "g", "apiKey": "canary-key", "endpoint": ""}));
    let account = json!({"name": "n", "country": "FR", "iban": "FR7630001007941234567890185"});
    post(&server, "/bank-accounts", &account).is(200);
    let config = get(&server, "/connectors/GENERIC/config").is(200).json();
    assert_eq!(config["data"]["apiKey"], "canary-key");
    drop(server);
    assert!(server_on(&store, with_key("b")).is_err_and(|error| error.to_string().contains("another key")));
    assert!(server_on(&store, with_key("a")).is_ok());
    store.close().expect("closed");
    let mut folders = vec![folder.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let bytes = std::fs::read(entry.path()).expect("a file");
            for secret in [&b"canary-key"[..], b"FR7630001007941234567890185"] {
                assert!(!bytes.windows(secret.len()).any(|part| part == secret), "{:?}", entry.path());
            }
        }
    }
}

/// Returns the comparable part of a list: the given members of its rows, without ids.
fn comparable(server: &TestServer, path: &str, members: &[&str]) -> Vec<String> {
    let rows = rows(server, path);
    let mut all: Vec<_> =
        rows.iter().map(|row| members.iter().map(|name| row[name].to_string()).collect::<String>()).collect();
    all.sort();
    all
}

#[test]
fn one_server_imports_the_export_of_another() {
    let exporting = TestServer::start();
    let connector = manual(&exporting);
    for (reference, kind) in [("own", "INTERNAL"), ("theirs", "EXTERNAL")] {
        let account = json!({"reference": reference, "connectorID": connector, "createdAt": "2024-01-01T00:00:00Z",
            "accountName": reference, "type": kind, "metadata": {"k": reference}});
        post(&exporting, "/accounts", &account).is(200);
    }
    for number in 0..205 {
        pay(&exporting, &connector, &format!("p{number}"), number);
    }
    let importing = TestServer::start();
    let endpoint = format!("http://{}/api/generic", exporting.address);
    let config = json!({"name": "copy", "apiKey": "", "endpoint": endpoint, "pollingPeriod": "50ms"});
    install(&importing, "GENERIC", &config);
    until("all payments are there", || rows(&importing, "/payments?pageSize=1000").len() == 205);
    let payment = ["amount", "asset", "status", "type", "createdAt", "metadata"];
    let path = "/payments?pageSize=1000";
    assert_eq!(comparable(&importing, path, &payment), comparable(&exporting, path, &payment));
    let account = ["accountName", "type", "createdAt", "metadata"];
    until("all accounts are there", || rows(&importing, "/accounts").len() == 2);
    assert_eq!(comparable(&importing, "/accounts", &account), comparable(&exporting, "/accounts", &account));
    // A change at the exporting server arrives at the importing one.
    pay(&exporting, &connector, "p7", 1_000_000);
    let query = escape(r#"{"$match":{"amount":1000000}}"#);
    until("the change is there", || rows(&importing, &format!("/payments?query={query}")).len() == 1);
    assert_eq!(rows(&importing, path).len(), 205);
}

#[test]
fn the_served_generic_api_keeps_its_contract() {
    let server = TestServer::start();
    let connector = manual(&server);
    for number in 0..3 {
        pay(&server, &connector, &format!("p{number}"), number);
    }
    let list = |query: &str| server.get(&format!("/api/generic/transactions{query}")).is(200).json();
    let amounts = |query: &str| {
        let rows = list(query);
        let rows = rows.as_array().expect("a list").iter();
        rows.map(|row| row["amount"].as_str().expect("a text").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(amounts(""), ["0", "1", "2"]);
    assert_eq!(amounts("?pageSize=2&page=2"), ["2"]);
    assert_eq!(amounts("?page=9"), Vec::<String>::new());
    assert_eq!(amounts("?sort=amount:desc"), ["2", "1", "0"]);
    let last = list("")[2]["updatedAt"].as_str().expect("a date").to_owned();
    assert_eq!(amounts(&format!("?updatedAtFrom={last}")), ["2"]);
    assert_eq!(amounts("?updatedAtFrom=2999-01-01T00:00:00Z"), Vec::<String>::new());
    for query in ["?page=0", "?pageSize=x", "?sort=color:asc", "?sort=amount", "?updatedAtFrom=x"] {
        let refused = server.get(&format!("/api/generic/transactions{query}")).is(400).json();
        assert!(refused["Title"].is_string() && refused["Detail"].is_string(), "{query}");
    }
    assert!(server.get("/api/generic/accounts/abc/balances").is(404).json()["Title"].is_string());
}

fn stripe(provider: &Provider) -> TestServer {
    let mut settings = Settings::default();
    settings.provider_addresses.insert("STRIPE".to_owned(), provider.url());
    TestServer::with(settings)
}

#[test]
fn stripe_brings_in_accounts_balances_and_payments() {
    let provider = Provider::start();
    provider.answer(
        "/v1/accounts",
        &json!({"data": [{"id": "acct_1", "created": 5, "default_currency": "eur"}],
        "has_more": false}),
    );
    provider.answer("/v1/balance", &json!({"available": [{"amount": 120, "currency": "usd"}]}));
    provider.answer(
        "/v1/accounts/acct_1/external_accounts",
        &json!({"data": [{"id": "ba_1", "currency": "eur"}]}),
    );
    let charge = |amount: i64| {
        json!({"object": "charge", "amount": amount, "amount_refunded": 0, "currency": "usd", "created": 7,
            "balance_transaction": "txn_1", "payment_method_details": {"card": {"brand": "visa"}}})
    };
    let row = |id: &str, source: &Value| json!({"id": id, "type": "charge", "created": 7, "amount": 1, "source": source});
    provider.answer(
        "/v1/balance_transactions",
        &json!({"data": [row("txn_1", &charge(500))], "has_more": false}),
    );
    let server = stripe(&provider);
    install(
        &server,
        "STRIPE",
        &json!({"name": "s", "apiKey": "sk_canary", "pollingPeriod": "1h", "pageSize": 3}),
    );
    until("all is there", || rows(&server, "/payments").len() == 1 && rows(&server, "/accounts").len() == 3);
    let payment = rows(&server, "/payments").remove(0);
    assert_eq!(
        (&payment["amount"], &payment["asset"], &payment["scheme"]),
        (&json!(500), &json!("USD/2"), &json!("visa"))
    );
    let query = escape(r#"{"$match":{"reference":"root"}}"#);
    let root =
        rows(&server, &format!("/accounts?query={query}"))[0]["id"].as_str().expect("an id").to_owned();
    until("the balance is there", || rows(&server, &format!("/accounts/{root}/balances")).len() == 1);
    assert_eq!(rows(&server, &format!("/accounts/{root}/balances"))[0]["balance"], 120);
    let asked = provider.requests();
    let first = asked.iter().find(|asked| asked.path.starts_with("/v1/balance_transactions")).expect("asked");
    assert!(first.path.contains("limit=3") && first.path.matches("expand[]=").count() == 3, "{first:?}");
    assert!(first.header("authorization").starts_with("Basic "));
    assert!(asked.iter().any(|asked| asked.header("stripe-account") == "acct_1"));
}

/// Starts a server with an installation of STRIPE. Returns it with the ids of the installation and of two accounts.
fn stripe_with_accounts(provider: &Provider) -> (TestServer, String, String, String) {
    let server = stripe(provider);
    let config = json!({"name": "s", "apiKey": "sk", "pollingPeriod": "20ms"});
    let connector = install(&server, "STRIPE", &config);
    let account = |reference: &str, kind: &str| {
        let body = json!({"reference": reference, "connectorID": connector, "createdAt": "2024-01-01T00:00:00Z",
            "accountName": reference, "type": kind});
        post(&server, "/accounts", &body).is(200).json()["data"]["id"].as_str().expect("an id").to_owned()
    };
    let (internal, external) = (account("acct_1", "INTERNAL"), account("ba_1", "EXTERNAL"));
    (server, connector, internal, external)
}

pub(crate) fn status(server: &TestServer, id: &str) -> String {
    let found = get(server, &format!("/transfer-initiations/{id}")).is(200).json();
    found["data"]["status"].as_str().expect("a status").to_owned()
}

#[test]
fn a_transfer_is_sent_once_and_reversed_in_part() {
    let provider = Provider::start();
    provider.answer("/v1/transfers", &json!({"id": "tr_1", "balance_transaction": "txn_9"}));
    provider.answer("/v1/transfers/tr_1/reversals", &json!({"id": "trr_1"}));
    let (server, connector, internal, external) = stripe_with_accounts(&provider);
    let body = json!({"reference": "t", "scheduledAt": "0001-01-01T00:00:00Z", "description": "rent",
        "destinationAccountID": internal, "connectorID": connector, "type": "TRANSFER", "amount": 500,
        "asset": "EUR/2", "validated": false});
    let created = post(&server, "/transfer-initiations", &body).is(200).json();
    let id = created["data"]["id"].as_str().expect("an id").to_owned();
    let reverse = json!({"reference": "r", "amount": 200, "asset": "EUR/2"});
    post(&server, &format!("/transfer-initiations/{id}/reverse"), &reverse).refused(400, "VALIDATION");
    post(&server, &format!("/transfer-initiations/{id}/status"), &json!({"status": "VALIDATED"})).is(204);
    until("it is processed", || status(&server, &id) == "PROCESSED");
    let found = get(&server, &format!("/transfer-initiations/{id}")).json();
    assert_eq!(found["data"]["relatedPayments"].as_array().map(Vec::len), Some(1));
    let sent: Vec<_> =
        provider.requests().into_iter().filter(|asked| asked.path == "/v1/transfers").collect();
    assert_eq!(
        (sent.len(), &*sent[0].body),
        (1, "amount=500&currency=eur&destination=acct_1&description=rent")
    );
    assert!(sent[0].header("idempotency-key").starts_with("t_"));
    let too_much = json!({"reference": "r", "amount": 501, "asset": "EUR/2"});
    post(&server, &format!("/transfer-initiations/{id}/reverse"), &too_much).refused(400, "VALIDATION");
    post(&server, &format!("/transfer-initiations/{id}/reverse"), &reverse).is(204);
    until("it is reversed", || status(&server, &id) == "PARTIALLY_REVERSED");
    let found = get(&server, &format!("/transfer-initiations/{id}")).json();
    assert_eq!((&found["data"]["amount"], &found["data"]["initialAmount"]), (&json!(300), &json!(500)));
    let wrong = json!({"reference": "u", "destinationAccountID": external, "connectorID": connector,
        "type": "TRANSFER", "amount": 1, "asset": "EUR/2"});
    post(&server, "/transfer-initiations", &wrong).refused(400, "VALIDATION");
}

#[test]
fn a_payout_that_fails_can_be_tried_again() {
    let provider = Provider::start();
    provider.refuse("/v1/payouts", 402, &json!({"error": {"message": "no funds for sk"}}));
    let (server, connector, _, external) = stripe_with_accounts(&provider);
    let body = json!({"reference": "p", "destinationAccountID": external, "connectorID": connector,
        "type": "PAYOUT", "amount": 500, "asset": "EUR/2", "validated": true});
    let created = post(&server, "/transfer-initiations", &body).is(200).json();
    let id = created["data"]["id"].as_str().expect("an id").to_owned();
    until("it has failed", || status(&server, &id) == "FAILED");
    let found = get(&server, &format!("/transfer-initiations/{id}")).json();
    let error = found["data"]["error"].as_str().expect("a reason");
    assert!(error.contains("402") && error.contains("no funds for ***"), "{error}");
    provider.answer("/v1/payouts", &json!({"id": "po_1", "status": "pending"}));
    provider
        .answer("/v1/payouts/po_1", &json!({"id": "po_1", "status": "paid", "balance_transaction": "txn_4"}));
    post(&server, &format!("/transfer-initiations/{id}/retry"), &json!({})).is(204);
    until("it is processed", || status(&server, &id) == "PROCESSED");
    let keys: Vec<_> = provider
        .requests()
        .iter()
        .filter(|asked| asked.path == "/v1/payouts")
        .map(|asked| asked.header("idempotency-key").to_owned())
        .collect();
    assert_eq!(keys.len(), 2);
    assert_ne!(keys[0], keys[1], "a retry has a key of its own");
}
