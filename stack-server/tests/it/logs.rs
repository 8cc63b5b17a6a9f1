//! Logs: what each write leaves, in the form of each generation.

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
    let stack = server.get("/api/ledger/v2/main/logs?pageSize=1").is(200).json()["cursor"]["data"][0].clone();
    assert_eq!(members(&stack), ["revertedTransactionID", "transaction"]);
    assert_eq!(stack["data"]["revertedTransactionID"], 1);
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
    // A point in time means nothing here, not even a bad one.
    server.get("/v2/main/logs?pit=x").is(200);
}
