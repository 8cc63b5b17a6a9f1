//! Fixed keys allow access to the generic connector API, and to nothing else.

use serde_json::{Value, json};
use stack_server::{FixedKeys, Settings};

use crate::auth_enforced::guarded_with;
use crate::client::TestServer;
use crate::payments::{install, manual, pay, rows, until};

const KEY: &str = "0123456789abcdef";

fn with_key() -> Settings {
    let mut settings = Settings::default();
    settings.generic_keys = Some(FixedKeys::parse(&format!("another-key-of-many\n{KEY}\n")).expect("keys"));
    settings
}

fn status(server: &TestServer, path: &str, bearer: &str) -> u16 {
    let value = format!("Bearer {bearer}");
    let headers: &[(&str, &str)] = if bearer.is_empty() { &[] } else { &[("Authorization", &value)] };
    let answer = server.send("GET", path, headers, "");
    if answer.status == 401 && path.starts_with("/api/generic") {
        assert_eq!(
            answer.json(),
            json!({"Title": "Unauthorized", "Detail": "no key or token that allows this"})
        );
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    answer.status
}

const PATHS: [&str; 4] = [
    "/api/generic/accounts",
    "/api/generic/beneficiaries",
    "/api/generic/transactions",
    "/api/generic/accounts/x/balances",
];

#[test]
fn server_without_tokens_wants_a_key() {
    let server = TestServer::with(with_key());
    for path in PATHS {
        let good = if path.ends_with("balances") { 404 } else { 200 };
        assert_eq!(status(&server, path, KEY), good, "{path}");
        for wrong in ["", "0123456789abcdeX", "0123456789abcdef0", "0123456789abcde"] {
            assert_eq!(status(&server, path, wrong), 401, "{path} {wrong}");
        }
    }
    // The keys do not restrict access to other routes.
    assert_eq!(status(&server, "/api/payments/payments", ""), 200);
}

#[test]
fn key_opens_nothing_else() {
    let (server, token) = guarded_with(with_key().generic_keys);
    for path in PATHS {
        let good = if path.ends_with("balances") { 404 } else { 200 };
        assert_eq!((status(&server, path, KEY), status(&server, path, &token)), (good, good), "{path}");
        assert_eq!(status(&server, path, ""), 401, "{path}");
    }
    for path in
        ["/api/payments/payments", "/api/payments/accounts", "/v2", "/api/ledger/v2", "/api/auth/clients"]
    {
        assert_eq!((status(&server, path, KEY), status(&server, path, &token)), (401, 200), "{path}");
    }
}

#[test]
fn the_description_offers_keys_where_they_count() {
    let security = |server: &TestServer, path: &str| {
        server.get("/openapi.json").is(200).json()["paths"][path]["get"]["security"].clone()
    };
    let (generic, others) = ("/api/generic/accounts", "/api/payments/payments");
    let open = TestServer::with(with_key());
    assert_eq!((security(&open, generic), security(&open, others)), (json!([{"key": []}]), Value::Null));
    let (guarded, _) = guarded_with(with_key().generic_keys);
    assert_eq!(security(&guarded, generic), json!([{"bearer": []}, {"key": []}]), "one of them is enough");
    assert_eq!(security(&guarded, others), json!([{"bearer": []}]));
    assert_eq!(security(&guarded_with(None).0, generic), json!([{"bearer": []}]));
}

#[test]
fn another_server_reads_with_the_key() {
    let source = TestServer::with(with_key());
    pay(&source, &manual(&source), "p", 7);
    let server = TestServer::start();
    let config = |key: &str| {
        json!({"name": key, "apiKey": key, "endpoint": format!("http://{}/api/generic", source.address),
            "pollingPeriod": "50ms"})
    };
    // This installation fetches nothing, so the payment arrives only once.
    install(&server, "GENERIC", &config("wrong-key-of-a-consumer"));
    install(&server, "GENERIC", &config(KEY));
    until("the payment is there", || rows(&server, "/payments").len() == 1);
    assert_eq!(rows(&server, "/payments")[0]["amount"], 7);
}
