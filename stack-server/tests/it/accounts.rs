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

#[test]
fn balance_filter_counts_moves_by_effective_date() {
    let server = TestServer::with_main();
    let dated = |destination: &str, amount: u64, date: &str| {
        let body = json!({
            "timestamp": date,
            "postings": [{"source":"world","destination":destination,"amount":amount,"asset":"USD"}],
        });
        server.post("/v2/main/transactions", &body.to_string()).is(200);
    };
    dated("early", 40, "2024-01-01T00:00:00Z");
    dated("early", 60, "2024-03-01T00:00:00Z");
    dated("late", 100, "2024-03-01T00:00:00Z");
    let schema = json!({
        "chart": {},
        "queries": {"holders": {
            "resource": "accounts",
            "params": {"endTime": "2024-02-01T00:00:00Z"},
            "body": {"$gt": {"balance[USD]": 0}},
        }},
    });
    server.post("/v2/main/schemas/v1", &schema.to_string()).is(204);
    let stored = server.post("/v2/main/queries/holders/run?schemaVersion=v1", "{}").is(200);
    assert_eq!(stored.column("address"), ["early"]);
    for (pit, filter, holders) in [
        ("2024-02-01", r#"{"$gt":{"balance[USD]":0}}"#, &["early"][..]),
        ("2024-02-01", r#"{"$match":{"balance[USD]":40}}"#, &["early"]),
        ("2024-02-01", r#"{"$lt":{"balance":0}}"#, &["world"]),
        ("2024-02-01", r#"{"$not":{"$gte":{"balance[USD]":40}}}"#, &["world"]),
        ("2024-04-01", r#"{"$match":{"balance[USD]":100}}"#, &["early", "late"]),
        ("2023-12-31", r#"{"$lte":{"balance[USD]":0}}"#, &[]),
    ] {
        let path = format!("/v2/main/accounts?pit={pit}T00:00:00Z&query={}", escape(filter));
        assert_eq!(server.get(&path).is(200).column("address"), holders, "{pit} {filter}");
        let sorted = server.get(&format!("{path}&sort=firstUsage")).is(200);
        assert_eq!(sorted.column("address").len(), holders.len(), "{pit} {filter}");
        let count = server.send("HEAD", &path, &[], "").is(204);
        assert_eq!(count.header("count"), Some(holders.len().to_string().as_str()), "{pit} {filter}");
        let explained = server.get(&path.replace("/accounts", "/_explain/accounts")).is(200).json();
        assert_eq!(explained["data"]["rowsReturned"], holders.len(), "{pit} {filter}");
    }
}

#[test]
fn typed_metadata_of_v1_is_text_in_v2() {
    let server = TestServer::with_main();
    server.transfer("world", "a", 1, "USD");
    let metadata = json!({
        "account": {"type": "account", "value": "users:1"},
        "money": {"type": "monetary", "value": {"asset": "USD/2", "amount": 100}},
        "part": {"type": "portion", "value": {"remaining": false, "specific": "1/3"}},
        "count": {"type": "number", "value": 7},
        "other": {"type": "nothing", "value": 7},
        "flag": true,
    });
    let body = metadata.to_string();
    for path in ["accounts/a", "transactions/1"] {
        server.post(&format!("/main/{path}/metadata"), &body).is(204);
        let v1 = server.get(&format!("/main/{path}")).is(200).json();
        assert_eq!(v1["data"]["metadata"]["money"], metadata["money"], "v1 shows what it stored");
        let v2 = server.get(&format!("/v2/main/{path}")).is(200).json();
        let shown = json!({"account": "users:1", "money": "USD/2 100", "part": "1/3", "count": "7",
            "other": r#"{"type":"nothing","value":7}"#, "flag": "true"});
        assert_eq!(v2["data"]["metadata"], shown, "{path}");
    }
    let pay = json!({"postings": [{"source": "world", "destination": "b", "amount": 1, "asset": "USD"}],
        "metadata": metadata});
    server.post("/main/transactions", &pay.to_string()).is(200);
    for (list, found) in [("accounts", "1"), ("transactions", "2")] {
        for (key, value, is_there) in [
            ("money", "USD/2 100", true),
            ("part", "1/3", true),
            ("account", "users:1", true),
            ("money", r#"{"type":"monetary","value":{"amount":100,"asset":"USD/2"}}"#, false),
        ] {
            let filter = json!({"$match": {(format!("metadata[{key}]")): value}}).to_string();
            let count = server.send("HEAD", &format!("/v2/main/{list}"), &[], &filter).is(204);
            let expected = if is_there { found } else { "0" };
            assert_eq!(count.header("count"), Some(expected), "{list} {key} {value}");
        }
    }
    let exported = server.post("/v2/main/logs/export", "").is(200).body;
    server.post("/v2/copy", "").is(204);
    server.post("/v2/copy/logs/import", &exported).is(204);
    assert_eq!(server.post("/v2/copy/logs/export", "").is(200).body, exported, "hashes are of what is shown");
}
