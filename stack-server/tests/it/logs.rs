//! Logs of v2: the entry of each kind of write, filters and request hashes. Also parameters of lists that a list does
//! not use, and the update date of metadata.

use serde_json::json;

use crate::client::TestServer;

#[test]
fn every_write_is_a_log() {
    let server = TestServer::with_main();
    let body = r#"{"postings":[{"source":"world","destination":"a","amount":1,"asset":"USD"}],
        "accountMetadata":{"a":{"tier":"gold"}}}"#;
    server.send("POST", "/v2/main/transactions", &[("Idempotency-Key", "k")], body).is(200);
    server.post("/v2/main/accounts/a/metadata", r#"{"x":"y"}"#).is(204);
    server.post("/v2/main/transactions/1/metadata", r#"{"x":"y"}"#).is(204);
    server.send("DELETE", "/v2/main/accounts/a/metadata/x", &[], "").is(204);
    server.post("/v2/main/transactions/1/revert", "").is(201);
    let logs = server.get("/v2/main/logs?sort=id:asc").is(200).json()["cursor"]["data"].clone();
    let types: Vec<_> = logs.as_array().expect("logs").iter().map(|log| log["type"].as_str()).collect();
    assert_eq!(
        types,
        ["NEW_TRANSACTION", "SET_METADATA", "SET_METADATA", "DELETE_METADATA", "REVERTED_TRANSACTION"]
            .map(Some)
    );
    assert_eq!(logs[0]["idempotencyKey"], "k");
    assert_eq!(logs[0]["idempotencyHash"].as_str().map(str::len), Some(44));
    assert_eq!(logs[0]["data"]["accountMetadata"], json!({"a":{"tier":"gold"}}));
    assert_eq!(logs[0]["data"]["transaction"]["postCommitVolumes"]["a"]["USD"]["input"], 1);
    assert_eq!(logs[1]["data"], json!({"targetType":"ACCOUNT","targetId":"a","metadata":{"x":"y"}}));
    assert_eq!(logs[1]["idempotencyKey"], "");
    assert_eq!(logs[2]["data"], json!({"targetType":"TRANSACTION","targetId":1,"metadata":{"x":"y"}}));
    assert_eq!(logs[3]["data"], json!({"targetType":"ACCOUNT","targetId":"a","key":"x"}));
    let members = |log: &serde_json::Value| -> Vec<String> {
        log["data"].as_object().expect("data").keys().cloned().collect()
    };
    assert_eq!(members(&logs[4]), ["revertedTransaction", "transaction"]);
    assert_eq!(logs[4]["data"]["revertedTransaction"]["reverted"], true);
    // The stack's form states the id of the reverted transaction.
    let in_stack =
        server.get("/api/ledger/v2/main/logs?pageSize=1").is(200).json()["cursor"]["data"][0].clone();
    assert_eq!(members(&in_stack), ["revertedTransactionID", "transaction"]);
    assert_eq!(in_stack["data"]["revertedTransactionID"], 1);
}

#[test]
fn logs_are_filtered_by_date_id_and_type() {
    let server = TestServer::with_main();
    server.transfer("world", "a", 1, "USD");
    server.post("/v2/main/accounts/a/metadata", "{}").is(204);
    let ids = |filter: &str| server.send("GET", "/v2/main/logs", &[], filter).is(200).column("id").join(" ");
    assert_eq!(ids(""), "2 1");
    assert_eq!(ids(r#"{"$gt":{"date":"2020-01-01T00:00:00Z"}}"#), "2 1");
    assert_eq!(ids(r#"{"$lt":{"id":2}}"#), "1");
    assert_eq!(ids(r#"{"$match":{"type":"SET_METADATA"}}"#), "2");
    let early = server.get("/v2/main/logs?pit=2020-01-01T00:00:00Z").is(200);
    assert_eq!(early.column("id"), ["2", "1"], "a list of logs ignores the point in time");
}

/// Returns the request hashes in the logs of a ledger, oldest first.
fn request_hashes(server: &TestServer, ledger: &str) -> Vec<String> {
    server.get(&format!("/v2/{ledger}/logs?sort=id:asc")).is(200).column("idempotencyHash")
}

#[test]
fn logs_without_a_key_show_a_request_hash() {
    let server = TestServer::with_main();
    let pay =
        r#"{"postings":[{"source":"world","destination":"a","amount":1,"asset":"USD"}],"reference":"R"}"#;
    server.post("/v2/main/transactions", &pay.replace('R', "r1")).is(200);
    server.post("/v2/main/transactions", &pay.replace('R', "r2")).is(200);
    server.post("/v2/main/accounts/a/metadata", r#"{"x":"y"}"#).is(204);
    server.send("POST", "/v2/main/accounts/a/metadata", &[("Idempotency-Key", "k")], r#"{"x":"y"}"#).is(204);
    server.send("DELETE", "/v2/main/accounts/a/metadata/x", &[], "").is(204);
    server.post("/v2/main/transactions/1/revert", "").is(201);
    server.post("/v2/main/schemas/v1", r#"{"chart":{}}"#).is(204);
    let hashes = request_hashes(&server, "main");
    assert!(hashes.iter().all(|hash| hash.len() == 44), "{hashes:?}");
    assert_eq!(hashes[2], hashes[3], "the hash does not include the key");
    let mut distinct = hashes.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), hashes.len() - 1);
    assert_eq!(request_hashes(&server, "main"), hashes, "it is the same each time");
}

#[test]
fn import_keeps_request_hashes_as_they_come() {
    let server = TestServer::with_main();
    server.transfer("world", "a", 1, "USD");
    server.post("/v2/main/accounts/a/metadata", r#"{"x":"y"}"#).is(204);
    let exported = server.post("/v2/main/logs/export", "").is(200).body;
    let mut logs: Vec<serde_json::Value> =
        exported.lines().map(|line| serde_json::from_str(line).expect("a log")).collect();
    logs[0]["idempotencyHash"] = json!("another server's");
    logs[1]["idempotencyHash"] = json!("");
    let lines: Vec<String> = logs.iter().map(ToString::to_string).collect();
    server.post("/v2/copy", "").is(204);
    server.post("/v2/copy/logs/import", &lines.join("\n")).is(204);
    assert_eq!(request_hashes(&server, "copy"), ["another server's", ""]);
    // A log without an idempotency key is never the answer to a later request, whatever its hash.
    server.post("/v2/copy/transactions/1/revert", "").is(201);
    assert_eq!(request_hashes(&server, "copy").len(), 3);
}

#[test]
fn lists_refuse_bad_dates_they_do_not_use() {
    let server = TestServer::with_main();
    server.transfer("world", "a", 1, "USD");
    server.post("/v2/main/schemas/v1", r#"{"chart":{}}"#).is(204);
    for list in ["main/accounts", "main/transactions", "main/logs", "main/volumes", "main/schemas", ""] {
        for name in ["pit", "oot"] {
            server.get(&format!("/v2/{list}?{name}=nodate")).refused(400, "VALIDATION");
            server.get(&format!("/v2/{list}?{name}=")).is(200);
        }
    }
    for bound in ["endTime", "startTime"] {
        let path = format!("/v2/main/volumes?{bound}=2024-01-01T00:00:00Z");
        server.get(&format!("{path}&pit=nodate")).refused(400, "VALIDATION");
        server.get(&format!("{path}&oot=nodate")).refused(400, "VALIDATION");
    }
    for counted in ["accounts", "transactions"] {
        for name in ["pit", "oot"] {
            server.send("HEAD", &format!("/v2/main/{counted}?{name}=nodate"), &[], "").is(400);
        }
    }
    server.get("/v2/main/aggregate/balances?oot=nodate").refused(400, "VALIDATION");
    server.get("/v2/main/accounts/a?pit=nodate").refused(400, "VALIDATION");
}

#[test]
fn only_volumes_read_group_by() {
    let server = TestServer::with_main();
    server.transfer("world", "a", 1, "USD");
    for list in ["accounts", "transactions", "logs"] {
        server.get(&format!("/v2/main/{list}?groupBy=x")).is(200);
    }
    server.get("/v2/main/volumes?groupBy=x").refused(400, "VALIDATION");
}

#[test]
fn unchanged_metadata_leaves_the_update_date() {
    let server = TestServer::with_main();
    server.transfer("world", "a", 1, "USD");
    for path in ["accounts/a", "transactions/1"] {
        let path = format!("/v2/main/{path}");
        let updated = || {
            let read = server.get(&path).is(200).json();
            read["data"]["updatedAt"].as_str().expect("a date").to_owned()
        };
        server.post(&format!("{path}/metadata"), r#"{"x":"y","z":""}"#).is(204);
        let first = updated();
        server.post(&format!("{path}/metadata"), r#"{"x":"y"}"#).is(204);
        server.post(&format!("{path}/metadata"), "{}").is(204);
        if path.contains("accounts") {
            server.send("DELETE", &format!("{path}/metadata/absent"), &[], "").is(204);
        }
        assert_eq!(updated(), first, "{path}");
        server.post(&format!("{path}/metadata"), r#"{"x":"w"}"#).is(204);
        let second = updated();
        assert!(second > first, "{path}");
        server.send("DELETE", &format!("{path}/metadata/x"), &[], "").is(204);
        assert!(updated() > second, "{path}");
    }
    let with_metadata = r#"{"postings":[{"source":"world","destination":"a","amount":1,"asset":"USD"}],
        "accountMetadata":{"a":{"z":""}}}"#;
    let account = server.get("/v2/main/accounts/a").json();
    server.post("/v2/main/transactions", with_metadata).is(200);
    assert_eq!(server.get("/v2/main/accounts/a").json(), account);
}
