//! Accounts: list, count, read, metadata.

use serde_json::json;

use crate::client::{TestServer, escape};

#[test]
fn an_account_shows_volumes_where_asked_for() {
    let server = TestServer::with_main();
    server.transfer("world", "users:1", 10, "USD/2");
    server.transfer("world", "users:1", 5, "EUR");
    let plain = server.get("/v2/main/accounts/users%3A1").is(200);
    let account = plain.json()["data"].clone();
    let date = |field: &str| account[field].as_str().expect("a date").to_owned();
    let expected = format!(
        "{{\"data\":{{\"address\":\"users:1\",\"metadata\":{{}},\"firstUsage\":\"{}\",\"insertionDate\":\"{}\",\"updatedAt\":\"{}\"}}}}\n",
        date("firstUsage"),
        date("insertionDate"),
        date("updatedAt")
    );
    assert_eq!(plain.body, expected);
    let expanded = server.get("/v2/main/accounts/users:1?expand=volumes").is(200);
    let volumes = r#""volumes":{"EUR":{"input":5,"output":0,"balance":5},"USD/2":{"input":10,"output":0,"balance":10}}}}"#;
    assert!(expanded.body.trim_end().ends_with(volumes), "{expanded:?}");
    let effective = server.get("/v2/main/accounts?expand=effectiveVolumes&pageSize=1").is(200).json();
    assert_eq!(effective["cursor"]["data"][0]["effectiveVolumes"]["EUR"]["input"], 5);
    assert_eq!(effective["cursor"]["data"][0]["volumes"], json!(null));
}

#[test]
fn accounts_come_into_being_by_use_and_by_metadata() {
    let server = TestServer::with_main();
    server.get("/v2/main/accounts/a").refused(404, "NOT_FOUND");
    server.get("/v2/main/accounts/a..b").refused(404, "NOT_FOUND");
    server.post("/v2/main/accounts/idle/metadata", r#"{"tier":"gold","note":null}"#).is(204);
    server.post("/v2/main/accounts/dry/metadata?dryRun=1", r#"{"tier":"gold"}"#).is(204);
    server.transfer("world", "users:1", 1, "USD");
    let list = server.get("/v2/main/accounts").is(200);
    assert_eq!(list.column("address"), ["idle", "users:1", "world"]);
    assert_eq!(list.json()["cursor"]["data"][0]["metadata"], json!({"note":"","tier":"gold"}));
    for (filter, count) in [
        (r#"{"$match":{"metadata[tier]":"gold"}}"#, "1"),
        (r#"{"$not":{"$match":{"metadata[tier]":"gold"}}}"#, "2"),
        (r#"{"$gt":{"balance[USD]":0}}"#, "1"),
        (r#"{"$match":{"address":"users:"}}"#, "1"),
        ("null", "3"),
        ("", "3"),
    ] {
        let by_body = server.send("HEAD", "/v2/main/accounts", &[], filter).is(204);
        assert_eq!(by_body.header("count"), Some(count), "{filter}");
        let by_query = server.send("HEAD", &format!("/v2/main/accounts?query={}", escape(filter)), &[], "");
        assert_eq!(by_query.is(204).header("count"), Some(count), "{filter}");
    }
    server.send("DELETE", "/v2/main/accounts/idle/metadata/nosuch", &[], "").is(204);
    server.send("DELETE", "/v2/main/accounts/idle/metadata/tier", &[], "").is(204);
    let account = server.get("/v2/main/accounts/idle").is(200).json();
    assert_eq!(account["data"]["metadata"], json!({"note":""}));
}

#[test]
fn metadata_writes_check_the_address_and_the_body() {
    let server = TestServer::with_main();
    for address in ["a..b", "a:", ":a", "a%20b", "a%2Fb", "%E2%82%AC"] {
        let path = format!("/v2/main/accounts/{address}/metadata");
        server.post(&path, r#"{"k":"v"}"#).refused(400, "VALIDATION");
    }
    for body in ["", "{", "[]", "7", r#"{"n":1}"#, r#"{"n":{}}"#] {
        server.post("/v2/main/accounts/a/metadata", body).refused(400, "VALIDATION");
    }
    server.post("/v2/main/accounts/a/metadata", "{}").is(204);
    let large = format!(r#"{{"k":"{}"}}"#, "v".repeat(70_000));
    server.post("/v2/main/accounts/a/metadata", &large).refused(400, "VALIDATION");
}

#[test]
fn lists_can_be_turned_around() {
    let server = TestServer::with_main();
    server.transfer("world", "a", 1, "USD");
    assert_eq!(server.get("/v2/main/accounts?sort=address:desc").column("address"), ["world", "a"]);
    server.get("/v2/main/accounts?sort=metadata").refused(400, "VALIDATION");
}
