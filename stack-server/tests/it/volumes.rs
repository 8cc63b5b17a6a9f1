//! Volumes and aggregated balances of v2.

use serde_json::json;

use crate::client::{TestServer, escape};

fn server() -> TestServer {
    let server = TestServer::with_main();
    server.transfer("world", "users:1:main", 100, "USD");
    server.transfer("users:1:main", "users:2:main", 30, "USD");
    server.transfer("world", "users:2:main", 5, "EUR");
    server
}

#[test]
fn rows_are_ordered_by_account_and_asset() {
    let server = server();
    let list = server.get("/v2/main/volumes").is(200);
    assert_eq!(
        list.json()["cursor"]["data"],
        json!([
            {"account":"users:1:main","asset":"USD","input":100,"output":30,"balance":70},
            {"account":"users:2:main","asset":"EUR","input":5,"output":0,"balance":5},
            {"account":"users:2:main","asset":"USD","input":30,"output":0,"balance":30},
            {"account":"world","asset":"EUR","input":0,"output":5,"balance":-5},
            {"account":"world","asset":"USD","input":0,"output":100,"balance":-100},
        ])
    );
    let grouped = server.get("/v2/main/volumes?groupBy=1&pageSize=2").is(200).json();
    assert_eq!(
        grouped["cursor"]["data"],
        json!([
            {"account":"users","asset":"EUR","input":5,"output":0,"balance":5},
            {"account":"users","asset":"USD","input":130,"output":30,"balance":100},
        ])
    );
    assert_eq!(server.get("/v2/main/volumes?groupBy=-3").column("account").len(), 5);
    assert_eq!(server.get("/v2/main/volumes?groupBy=9999999999999").column("account").len(), 5);
    server.get("/v2/main/volumes?groupBy=x").refused(400, "VALIDATION");
}

#[test]
fn an_interval_has_its_own_flows_under_either_name() {
    let server = TestServer::with_main();
    for (amount, at) in [(1, "2024-01-01"), (10, "2024-02-01"), (100, "2024-03-01")] {
        let body = format!(
            r#"{{"postings":[{{"source":"world","destination":"a","amount":{amount},"asset":"USD"}}],"timestamp":"{at}T00:00:00Z"}}"#
        );
        server.post("/v2/main/transactions", &body).is(200);
    }
    for (query, input) in [
        ("", 111),
        ("startTime=2024-02-01T00:00:00Z", 110),
        ("oot=2024-02-01T00:00:00Z", 110),
        ("endTime=2024-02-01T00:00:00Z", 11),
        ("pit=2024-02-01T00:00:00Z", 11),
        ("startTime=2024-01-02T00:00:00Z&endTime=2024-02-02T00:00:00Z", 10),
    ] {
        let filter = escape(r#"{"$match":{"account":"a"}}"#);
        let rows = server.get(&format!("/v2/main/volumes?query={filter}&{query}")).is(200).json();
        assert_eq!(rows["cursor"]["data"][0]["input"], input, "{query}");
    }
    let recorded_since = "startTime=2024-01-02T00:00:00Z&insertionDate=true";
    let rows = server.get(&format!("/v2/main/volumes?{recorded_since}")).is(200).json();
    assert_eq!(rows["cursor"]["data"][0]["input"], 111);
    server.get("/v2/main/volumes?startTime=x").refused(400, "VALIDATION");
}

#[test]
fn balances_are_summed_per_asset() {
    let server = server();
    assert_eq!(server.get("/v2/main/aggregate/balances").body, "{\"data\":{\"EUR\":0,\"USD\":0}}\n");
    let sum = |filter: &str| {
        let answer = server.send("GET", "/v2/main/aggregate/balances", &[], filter);
        answer.is(200).json()["data"].clone()
    };
    assert_eq!(sum(r#"{"$match":{"address":"users:..."}}"#), json!({"EUR":5,"USD":100}));
    assert_eq!(sum(r#"{"$match":{"address":"nobody"}}"#), json!({}));
    let early = "/v2/main/aggregate/balances?pit=2020-01-01T00:00:00Z";
    for query in ["", "&useInsertionDate=true", "&use_insertion_date=1"] {
        assert_eq!(server.get(&format!("{early}{query}")).is(200).json()["data"], json!({}));
    }
}
