//! Requests that the payments API refuses, which change nothing. The last test checks that a balance with a date
//! after the time of the server is shown.

use serde_json::{Value, json};

use crate::client::TestServer;
use crate::payments::{BASE, get, install, manual, pay, post, rows, until};
use crate::provider::Provider;

/// Creates an account manually and returns its id.
fn account(server: &TestServer, connector: &str, reference: &str, kind: &str) -> String {
    let body = json!({"reference": reference, "connectorID": connector, "createdAt": "2024-01-01T00:00:00Z",
        "accountName": reference, "type": kind});
    post(server, "/accounts", &body).is(200).json()["data"]["id"].as_str().expect("an id").to_owned()
}

#[test]
fn null_is_no_metadata() {
    let server = TestServer::start();
    let connector = manual(&server);
    let id = pay(&server, &connector, "p", 5)["id"].as_str().expect("an id").to_owned();
    let path = format!("{BASE}/payments/{id}/metadata");
    server.send("PATCH", &path, &[], r#"{"a":"1"}"#).is(204);
    for body in ["null", " null ", r#"{"a":null}"#, r#"{"b":"2","a":null}"#, "[]", "7"] {
        server.send("PATCH", &path, &[], body).refused(400, "VALIDATION");
    }
    server.send("PATCH", &path, &[], "{}").is(204);
    let found = get(&server, &format!("/payments/{id}")).is(200).json();
    assert_eq!(found["data"]["metadata"], json!({"a": "1"}));

    let body = json!({"name": "a", "country": "FR", "iban": "FR7630001007941234567890185"});
    let made = post(&server, "/bank-accounts", &body).is(200).json();
    let path = format!("{BASE}/bank-accounts/{}/metadata", made["data"]["id"].as_str().expect("an id"));
    for body in ["null", "{}", r#"{"metadata":null}"#, r#"{"metadata":{"a":null}}"#] {
        server.send("PATCH", &path, &[], body).refused(400, "VALIDATION");
    }
    server.send("PATCH", &path, &[], r#"{"metadata":{}}"#).is(204);
}

#[test]
fn balances_of_an_unknown_account_are_not_found() {
    let server = TestServer::start();
    let connector = manual(&server);
    let id = account(&server, &connector, "a", "INTERNAL");
    assert!(rows(&server, &format!("/accounts/{id}/balances")).is_empty());
    server.send("DELETE", &format!("{BASE}/connectors/GENERIC/{connector}"), &[], "").is(204);
    get(&server, &format!("/accounts/{id}/balances")).refused(404, "NOT_FOUND");
}

#[test]
fn initiation_wants_own_accounts_of_its_connector() {
    let server = TestServer::start();
    let own = manual(&server);
    let other = install(&server, "GENERIC", &json!({"name": "other", "apiKey": "", "endpoint": ""}));
    let [till, bank, payee] =
        [(&own, "till", "INTERNAL"), (&own, "bank", "INTERNAL"), (&own, "payee", "EXTERNAL")]
            .map(|(connector, reference, kind)| account(&server, connector, reference, kind));
    let (foreign, foreign_payee) =
        (account(&server, &other, "till", "INTERNAL"), account(&server, &other, "payee", "EXTERNAL"));
    let body = |source: &str, destination: &str, kind: &str| {
        json!({"reference": "t", "sourceAccountID": source, "destinationAccountID": destination,
            "connectorID": own, "type": kind, "amount": 5, "asset": "EUR/2"})
    };
    for (source, destination, kind) in [
        (&foreign, &bank, "TRANSFER"),
        (&till, &foreign, "TRANSFER"),
        (&till, &foreign_payee, "PAYOUT"),
        // The source of a transfer or payout must not be a counterparty.
        (&payee, &till, "TRANSFER"),
        (&payee, &payee, "PAYOUT"),
    ] {
        let body = body(source, destination, kind);
        post(&server, "/transfer-initiations", &body).refused(400, "VALIDATION");
    }
    assert!(rows(&server, "/transfer-initiations").is_empty());
    post(&server, "/transfer-initiations", &body(&till, &bank, "TRANSFER")).is(200);
}

#[test]
fn address_with_a_password_is_refused() {
    let server = TestServer::start();
    let config = |endpoint: &str| json!({"name": "g", "apiKey": "", "endpoint": endpoint});
    for address in ["http://u:canary@127.0.0.1:9", "http://u@127.0.0.1:9/x", "http://:canary@127.0.0.1:9"] {
        let refused = post(&server, "/connectors/GENERIC", &config(address));
        let message = refused.refused(400, "VALIDATION");
        assert!(message.starts_with("endpoint: ") && !message.contains("canary"), "{message}");
        let cloud = json!({"name": "c", "loginID": "l", "apiKey": "k", "endpoint": address});
        post(&server, "/connectors/CURRENCY-CLOUD", &cloud).refused(400, "VALIDATION");
    }
    let connector = install(&server, "GENERIC", &config("http://127.0.0.1:9"));
    let path = format!("/connectors/GENERIC/{connector}/config");
    post(&server, &path, &config("http://u:canary@127.0.0.1:9")).refused(400, "VALIDATION");
    assert_eq!(get(&server, &path).is(200).json()["data"]["endpoint"], "http://127.0.0.1:9");
}

#[test]
fn reset_without_its_directory_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("files");
    let server = TestServer::start();
    let config = json!({"name": "d", "directory": directory, "filePollingPeriod": "20ms",
        "numberOfPaymentsPreGenerated": 3});
    let connector = install(&server, "DUMMY-PAY", &config);
    let payments = rows(&server, "/payments");
    assert_eq!(payments.len(), 3);
    // A file in place of the directory makes the reset fail.
    std::fs::remove_dir_all(&directory).expect("removed");
    std::fs::write(&directory, "").expect("written");
    let path = format!("/connectors/DUMMY-PAY/{connector}/reset");
    post(&server, &path, &json!({})).refused(400, "VALIDATION");
    assert_eq!(get(&server, "/connectors").json()["data"][0]["connectorID"], json!(connector));
    assert_eq!(rows(&server, "/payments"), payments);
    std::fs::remove_file(&directory).expect("removed");
    post(&server, &path, &json!({})).is(204);
    let again = rows(&server, "/payments");
    assert!(again.len() == 3 && again.iter().all(|payment| !payments.contains(payment)), "{again:?}");
}

#[test]
fn provider_clock_ahead_hides_no_balance() {
    let provider = Provider::start();
    let account =
        json!([{"id": "a", "accountName": "a", "createdAt": "2024-01-01T00:00:00Z", "metadata": {}}]);
    let empty: Value = json!([]);
    for path in ["/beneficiaries", "/transactions"] {
        provider.answer(path, &empty);
    }
    provider.handle(move |asked| {
        let rows = if asked.path.contains("page=1") { &account } else { &empty };
        let is_list = asked.path.starts_with("/accounts?");
        is_list.then(|| crate::provider::Reply::Whole(200, rows.to_string()))
    });
    provider.answer(
        "/accounts/a/balances",
        &json!({"id": "b", "accountID": "a", "at": "2999-01-01T00:00:00Z",
            "balances": [{"amount": "120", "currency": "EUR"}]}),
    );
    let server = TestServer::start();
    let config = json!({"name": "g", "apiKey": "k", "endpoint": provider.url(), "pollingPeriod": "50ms"});
    install(&server, "GENERIC", &config);
    until("the account is there", || rows(&server, "/accounts").len() == 1);
    let id = rows(&server, "/accounts")[0]["id"].as_str().expect("an id").to_owned();
    until("the balance is there", || {
        rows(&server, &format!("/accounts/{id}/balances")).iter().any(|row| row["balance"] == 120)
    });
}
