//! Secrets of connectors and bank accounts: rotation of the key that encrypts them, and masks in responses of the API.
//! Also the related accounts of a bank account after their connector was uninstalled.

use ledger_store::Store;
use serde_json::json;
use stack_server::{EncryptionKey, Settings};

use crate::client::TestServer;
use crate::payments::{get, install, post, rows, server_on};

fn with_keys(keys: &[&str]) -> Settings {
    let keys: Vec<String> = keys.iter().map(|letter| letter.repeat(32)).collect();
    let mut settings = Settings::default();
    settings.encryption_key = Some(EncryptionKey::parse(&keys.join("\n")).expect("keys"));
    settings
}

#[test]
fn earlier_key_is_needed_only_for_one_start() {
    let store = Store::in_memory();
    let server = server_on(&store, with_keys(&["a"])).expect("a server");
    install(&server, "GENERIC", &json!({"name": "g", "apiKey": "canary-key", "endpoint": ""}));
    let account = json!({"name": "n", "country": "FR", "accountNumber": "12345678901"});
    let id = post(&server, "/bank-accounts", &account).is(200).json()["data"]["id"].clone();
    drop(server);
    drop(server_on(&store, with_keys(&["b", "a"])).expect("both keys open it"));
    let server = server_on(&store, with_keys(&["b"])).expect("the new key opens it");
    let config = get(&server, "/connectors/GENERIC/config").is(200).json();
    assert_eq!(config["data"]["apiKey"], "canary-key");
    let path = format!("/bank-accounts/{}", id.as_str().expect("an id"));
    assert_eq!(get(&server, &path).is(200).json()["data"]["accountNumber"], "12******901");
    drop(server);
    assert!(server_on(&store, with_keys(&["a"])).is_err());
}

#[test]
fn a_redacted_configuration_shows_no_secret() {
    let mut settings = Settings::default();
    settings.redact_config = true;
    let server = TestServer::with(settings);
    let config = json!({"name": "c", "loginID": "me", "apiKey": "canary-key", "pollingPeriod": "1h",
        "endpoint": "http://127.0.0.1:9"});
    let id = install(&server, "CURRENCY-CLOUD", &config);
    let shown = get(&server, "/connectors/CURRENCY-CLOUD/config").is(200).json();
    assert_eq!(shown["data"]["apiKey"], "********");
    assert_eq!(shown["data"]["loginID"], "me");
    let path = format!("/connectors/CURRENCY-CLOUD/{id}/config");
    post(&server, &path, &shown["data"]).refused(400, "VALIDATION");
}

#[test]
fn uninstall_removes_account_from_bank_account() {
    let server = TestServer::start();
    let certificate = rcgen::generate_simple_self_signed(["client".to_owned()]).expect("a certificate");
    let config = json!({"name": "b", "username": "u", "password": "p", "pollingPeriod": "1h",
        "endpoint": "http://127.0.0.1:9", "authorizationEndpoint": "http://127.0.0.1:9",
        "userCertificate": certificate.cert.pem(), "userCertificateKey": certificate.signing_key.serialize_pem()});
    let connector = install(&server, "BANKING-CIRCLE", &config);
    let account = json!({"name": "n", "country": "FR", "iban": "FR7630001007941234567890185",
        "connectorID": connector});
    let created = post(&server, "/bank-accounts", &account).is(200).json();
    assert_eq!(created["data"]["connectorID"], json!(connector));
    server.send("DELETE", "/api/payments/connectors/BANKING-CIRCLE", &[], "").is(204);
    let left = rows(&server, "/bank-accounts").remove(0);
    assert_eq!((&left["relatedAccounts"], &left["connectorID"]), (&json!([]), &json!("")));
}
