//! Ledgers of v2: creation, features, metadata and the list.

use serde_json::json;
use stack_server::Settings;

use crate::client::{TestServer, escape};

#[test]
fn a_ledger_is_created_once_and_shown_whole() {
    let server = TestServer::start();
    server.get("/v2/main").refused(404, "NOT_FOUND");
    server.post("/v2/main", r#" {"bucket":"eu","metadata":{"env":"test"}} "#).is(204);
    let read = server.get("/v2/main/").is(200);
    let added = read.json()["data"]["addedAt"].as_str().expect("a date").to_owned();
    let expected = format!(
        concat!(
            r#"{{"data":{{"bucket":"eu","metadata":{{"env":"test"}},"#,
            r#""features":{{"ACCOUNT_METADATA_HISTORY":"SYNC","HASH_LOGS":"SYNC","MOVES_HISTORY":"ON","#,
            r#""MOVES_HISTORY_POST_COMMIT_EFFECTIVE_VOLUMES":"SYNC","TRANSACTION_METADATA_HISTORY":"SYNC"}},"#,
            r#""id":1,"name":"main","addedAt":"{}"}}}}"#,
            "\n"
        ),
        added
    );
    assert_eq!(read.body, expected);
    server.post("/v2/main", "").refused(400, "LEDGER_ALREADY_EXISTS");
    server.post("/api/ledger/v2/main", "").refused(400, "VALIDATION");
}

#[test]
fn names_buckets_and_features_are_checked() {
    let server = TestServer::start();
    for name in ["a.b", "a%20b", "%C3%BC", "_info", "_healthcheck", "a:b", &"a".repeat(64)] {
        server.post(&format!("/v2/{name}"), "").refused(400, "VALIDATION");
    }
    for body in [
        "{",
        "[]",
        r#"{"bucket":"no bucket"}"#,
        r#"{"bucket":7}"#,
        r#"{"bucket":"_system"}"#,
        r#"{"metadata":{"n":1}}"#,
        r#"{"features":{"foo":"ON"}}"#,
        r#"{"features":{"MOVES_HISTORY":"MAYBE"}}"#,
        r#"{"features":{"HASH_LOGS":"DISABLED"}}"#,
    ] {
        server.post("/v2/main", body).refused(400, "VALIDATION");
    }
    server.post("/v2/main", r#"{"features":{"HASH_LOGS":"SYNC"}}"#).is(204);

    let mut settings = Settings::default();
    settings.experimental_features = true;
    let server = TestServer::with(settings);
    server.post("/v2/main", r#"{"features":{"HASH_LOGS":"DISABLED","MOVES_HISTORY":"OFF"}}"#).is(204);
    let features = server.get("/v2/main").json()["data"]["features"].clone();
    assert_eq!(features["HASH_LOGS"], "DISABLED");
    assert_eq!(features["MOVES_HISTORY"], "OFF");
}

#[test]
fn first_id_depends_on_profile_and_setting() {
    let body = r#"{"postings":[{"source":"world","destination":"a","amount":1,"asset":"USD"}]}"#;
    let first = |server: &TestServer, mount: &str, name: &str| {
        server.post(&format!("{mount}/{name}"), "").is(204);
        let answer = server.post(&format!("{mount}/{name}/transactions"), body).is(200);
        answer.json()["data"]["id"].as_u64()
    };
    let server = TestServer::start();
    assert_eq!(first(&server, "/v2", "one"), Some(1));
    assert_eq!(first(&server, "/api/ledger/v2", "zero"), Some(0));
    let mut settings = Settings::default();
    settings.first_id = Some(ledger_core::FirstId::Zero);
    assert_eq!(first(&TestServer::with(settings), "/v2", "zero"), Some(0));
    let mut settings = Settings::default();
    settings.profile = Some(stack_server::Profile::Stack);
    assert_eq!(first(&TestServer::with(settings), "/v2", "zero"), Some(0));
}

#[test]
fn metadata_are_merged_and_no_log_is_written() {
    let server = TestServer::with_main();
    let put = |body: &str| server.send("PUT", "/v2/main/metadata", &[], body);
    put(r#"{"env":"test","owner":"me"}"#).is(204);
    put(r#"{"env":"prod"}"#).is(204);
    put("{").refused(400, "VALIDATION");
    server.send("DELETE", "/v2/main/metadata/owner", &[], "").is(204);
    server.send("DELETE", "/v2/main/metadata/nosuch", &[], "").is(204);
    assert_eq!(server.get("/v2/main").json()["data"]["metadata"], json!({"env":"prod"}));
    assert_eq!(server.get("/v2/main/logs").json()["cursor"]["data"], json!([]));
}

#[test]
fn the_list_is_ordered_by_creation_and_filtered() {
    let server = TestServer::start();
    for (name, bucket) in [("c", "one"), ("a", "two"), ("b", "one")] {
        server.post(&format!("/v2/{name}"), &format!(r#"{{"bucket":"{bucket}"}}"#)).is(204);
    }
    assert_eq!(server.get("/v2").column("name"), ["c", "a", "b"]);
    assert_eq!(server.get("/api/ledger/v2/?sort=id:desc").column("name"), ["b", "a", "c"]);
    let filter = escape(r#"{"$match":{"bucket":"one"}}"#);
    assert_eq!(server.get(&format!("/v2?query={filter}")).column("name"), ["c", "b"]);
    let filter = escape(r#"{"$match":{"nosuch":"x"}}"#);
    server.get(&format!("/v2?query={filter}")).refused(400, "VALIDATION");
}
