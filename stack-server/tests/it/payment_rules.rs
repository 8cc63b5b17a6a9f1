//! Rules of the payments API and of the generic connector API that lists and writes do not show.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};
use stack_server::{MountPath, Settings};

use ledger_core::schema::Enforcement;

use crate::client::{Answer, TestServer};
use crate::payment_postings::put;
use crate::payments::{get, install, manual, pay, post, rows, until};
use crate::provider::Provider;

/// Sends a GET request without checking the response against the API description, because a setting has moved the path.
fn get_undescribed(server: &TestServer, path: &str) -> Answer {
    let mut stream = server.connect();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("the request is sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("the answer arrives whole");
    Answer::parse(&bytes)
}

#[test]
fn the_generic_api_answers_where_it_is_mounted() {
    let mut settings = Settings::default();
    settings.generic_mount = MountPath::parse("/api/export/v0").expect("a path");
    let server = TestServer::with(settings);
    pay(&server, &manual(&server), "p", 7);
    let found = get_undescribed(&server, "/api/export/v0/transactions").is(200).json();
    assert_eq!(found[0]["amount"], "7");
    for path in ["/api/generic/transactions", "/api/generic", "/api/export/transactions", "/api/export/v0"] {
        get_undescribed(&server, path).is(404);
    }
    let refused = get_undescribed(&server, "/api/export/v0/transactions?page=0").is(400);
    assert!(refused.json()["Title"].is_string());
    let described = server.get("/openapi.json").is(200).json();
    let paths: Vec<_> = described["paths"].as_object().expect("paths").keys().collect();
    assert!(paths.iter().any(|path| *path == "/api/export/v0/transactions"), "{paths:?}");
    assert!(!paths.iter().any(|path| path.starts_with("/api/generic")), "{paths:?}");
}

#[test]
fn tasks_have_times_in_whole_seconds() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = TestServer::start();
    install(&server, "DUMMY-PAY", &json!({"directory": folder.path(), "filePollingPeriod": "1h"}));
    for task in rows(&server, "/connectors/DUMMY-PAY/tasks") {
        for name in ["createdAt", "updatedAt"] {
            assert!(!task[name].as_str().expect("a time").contains('.'), "{task}");
        }
    }
}

#[test]
fn dummy_pay_goes_on_generating_if_told_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = TestServer::start();
    let config =
        json!({"directory": folder.path(), "filePollingPeriod": "10ms", "fileGenerationPeriod": "30ms"});
    install(&server, "DUMMY-PAY", &config);
    until("several payments", || rows(&server, "/payments").len() >= 3);
    let files = std::fs::read_dir(folder.path()).expect("a folder").flatten();
    let names: Vec<_> = files.map(|file| file.file_name().into_string().expect("text")).collect();
    assert!(names.len() >= 3, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("dummypay-generated-file-payment-")), "{names:?}");
}

#[test]
fn generic_rows_without_a_name_are_passed_over() {
    let provider = Provider::start();
    provider.handle(|asked| {
        let body = match asked.path.split('?').next() {
            Some("/accounts") if asked.path.contains("page=1") => json!([
                {"id": "unnamed", "createdAt": "2024-01-01T00:00:00Z"},
                {"id": "empty", "accountName": "", "createdAt": "2024-01-02T00:00:00Z"},
            ]),
            Some("/beneficiaries") if asked.path.contains("page=1") => {
                json!([{"id": "nobody", "createdAt": "2024-01-01T00:00:00Z"},
                    {"id": "ann", "ownerName": "Ann", "createdAt": "2024-01-02T00:00:00Z"}])
            }
            _ => json!([]),
        };
        Some(crate::provider::Reply::Whole(200, body.to_string()))
    });
    let server = TestServer::start();
    install(&server, "GENERIC", &json!({"name": "g", "endpoint": provider.url(), "pollingPeriod": "1h"}));
    let mut references: Vec<Value> = Vec::new();
    until("both named accounts", || {
        let accounts = rows(&server, "/accounts?sort=reference:asc");
        references = accounts.into_iter().map(|mut account| account["reference"].take()).collect();
        references.len() == 2
    });
    assert_eq!(references, ["ann", "empty"]);
}

const SCRIPT: &str = "vars {\n  monetary $amount\n  account $source\n  account $destination\n}\n\
    send $amount (\n  source = $source allowing unbounded overdraft\n  destination = $destination\n)\n";

#[test]
fn a_rule_names_the_schema_of_a_strict_ledger() {
    let mut settings = Settings::default();
    settings.schema_enforcement = Enforcement::Strict;
    let server = TestServer::with(settings);
    server.post("/v2/main", "").is(204);
    server.post("/v2/main/schemas/v1", r#"{"chart":{"world":{".self":{}},"shop":{".self":{}}}}"#).is(204);
    let connector = manual(&server);
    let rule = |version: &str| {
        let script = SCRIPT.replace("destination = $destination", "destination = @shop");
        let script = script.replace("  account $destination\n", "");
        json!({"ledger": "main", "script": script, "schemaVersion": version})
    };
    put(&server, &connector, &rule("")).is(200);
    let unversioned = pay(&server, &connector, "p1", 7);
    let explained = |payment: &Value| {
        let id = payment["id"].as_str().expect("an id");
        get(&server, &format!("/payments/{id}/_explain")).is(200).json()["data"].clone()
    };
    assert_eq!(explained(&unversioned)["posted"], false);
    assert_eq!(put(&server, &connector, &rule("v1")).is(200).json()["data"]["schemaVersion"], "v1");
    let versioned = pay(&server, &connector, "p2", 7);
    assert_eq!(explained(&versioned)["posted"], true, "{}", explained(&versioned));
    put(&server, &connector, &rule(&"x".repeat(256))).is(400);
    // The new rule posts the payments that the old rule could not post.
    let ran =
        post(&server, &format!("/connectors/GENERIC/{connector}/postings/run"), &json!({})).is(200).json();
    assert_eq!(ran["data"]["posted"], 2);
}
