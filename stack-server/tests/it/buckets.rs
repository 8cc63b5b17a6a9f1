//! Buckets: deletion and restoration.

use serde_json::json;
use stack_server::Settings;

use crate::client::TestServer;

fn names(server: &TestServer, query: &str) -> String {
    server.get(&format!("/v2{query}")).is(200).column("name").join(" ")
}

#[test]
fn a_deleted_bucket_hides_its_ledgers() {
    let server = TestServer::start();
    for (name, bucket) in [("a1", "a"), ("b1", "b"), ("a2", "a")] {
        server.post(&format!("/v2/{name}"), &json!({"bucket": bucket}).to_string()).is(204);
    }
    let pay = r#"{"postings":[{"source":"world","destination":"x","amount":1,"asset":"USD"}]}"#;
    server.post("/v2/a1/transactions", pay).is(200);
    for bucket in ["a", "a", "nosuch", "no%20name"] {
        server.send("DELETE", &format!("/v2/_/buckets/{bucket}"), &[], "").is(204);
    }
    server.get("/v2/a1").refused(404, "NOT_FOUND");
    for (method, path, body) in [
        ("GET", "stats", ""),
        ("GET", "_info", ""),
        ("GET", "accounts", ""),
        ("GET", "accounts/x", ""),
        ("GET", "transactions", ""),
        ("GET", "transactions/1", ""),
        ("GET", "volumes", ""),
        ("GET", "aggregate/balances", ""),
        ("GET", "logs", ""),
        ("GET", "schemas", ""),
        ("POST", "transactions", pay),
        ("POST", "transactions/1/revert", ""),
        ("POST", "accounts/x/metadata", "{}"),
        ("PUT", "metadata", "{}"),
        ("DELETE", "metadata/k", ""),
        ("POST", "_bulk", "[]"),
        ("POST", "schemas/v1", r#"{"chart":{}}"#),
        ("POST", "logs/export", ""),
        ("POST", "logs/import", ""),
    ] {
        server.send(method, &format!("/v2/a1/{path}"), &[], body).refused(404, "LEDGER_NOT_FOUND");
    }
    // The first v1 write creates a ledger, but not a deleted one.
    server.post("/a1/transactions", pay).refused(400, "VALIDATION");
    server.post("/v2/a1", "").refused(400, "LEDGER_ALREADY_EXISTS");
    assert_eq!(names(&server, ""), "b1");
    assert_eq!(names(&server, "?includeDeleted=true"), "a1 b1 a2");
    let all = server.get("/v2?includeDeleted=true&pageSize=1").is(200).json();
    assert!(all["cursor"]["data"][0]["deletedAt"].is_string());
    let next = all["cursor"]["next"].as_str().expect("a next page").to_owned();
    let second = server.get(&format!("/v2?cursor={next}")).is(200).json();
    assert_eq!(second["cursor"]["data"][0]["name"], "b1");
    assert!(second["cursor"]["data"][0]["deletedAt"].is_null());
    let of_bucket = server.send("GET", "/v2?includeDeleted=1", &[], r#"{"$match":{"bucket":"a"}}"#).is(200);
    assert_eq!(of_bucket.column("name"), ["a1", "a2"]);
    assert_eq!(server.get("/_info").is(200).json()["data"]["config"]["storage"]["ledgers"], json!(["b1"]));
    // A new ledger of that bucket is not deleted with the others.
    server.post("/v2/a3", r#"{"bucket":"a"}"#).is(204);
    server.get("/v2/a3").is(200);

    for bucket in ["a", "a", "nosuch", "no%20name"] {
        server.post(&format!("/v2/_/buckets/{bucket}/restore"), "").is(204);
    }
    assert_eq!(names(&server, ""), "a1 b1 a2 a3");
    assert_eq!(server.get("/v2/a1/stats").is(200).json()["data"], json!({"transactions": 1, "accounts": 2}));
    server.post("/v2/a1/transactions", pay).is(200);
    assert!(server.get("/v2/a1").is(200).json()["data"]["deletedAt"].is_null());
}

#[test]
fn omits_volumes_of_disabled_features() {
    let mut settings = Settings::default();
    settings.experimental_features = true;
    let server = TestServer::with(settings);
    let body = r#"{"postings":[{"source":"world","destination":"x","amount":1,"asset":"USD"}],
        "timestamp":"2024-01-01T00:00:00Z"}"#;
    for (name, features, shown) in [
        ("all", json!({}), true),
        ("no-effective", json!({"MOVES_HISTORY_POST_COMMIT_EFFECTIVE_VOLUMES": "DISABLED"}), false),
        ("no-moves", json!({"MOVES_HISTORY": "OFF"}), false),
    ] {
        server.post(&format!("/v2/{name}"), &json!({"features": features}).to_string()).is(204);
        let created = server.post(&format!("/v2/{name}/transactions"), body).is(200).json();
        let bulk = format!(r#"[{{"action":"CREATE_TRANSACTION","data":{body}}}]"#);
        let bulk = server.post(&format!("/v2/{name}/_bulk"), &bulk).is(200).json();
        let reverted = server.post(&format!("/v2/{name}/transactions/1/revert"), "").is(201).json();
        let logs = server.get(&format!("/v2/{name}/logs")).is(200).json();
        let exported = server.post(&format!("/v2/{name}/logs/export"), "").is(200).body;
        let exported: serde_json::Value =
            serde_json::from_str(exported.lines().next().expect("a log")).expect("JSON");
        for transaction in [
            &created["data"],
            &bulk["data"][0]["data"],
            &reverted["data"],
            &logs["cursor"]["data"][0]["data"]["transaction"],
            &exported["data"]["transaction"],
        ] {
            assert!(transaction["postCommitVolumes"].is_object(), "{name}");
            assert_eq!(transaction["postCommitEffectiveVolumes"].is_object(), shown, "{name}");
            assert_eq!(transaction["preCommitEffectiveVolumes"].is_object(), shown, "{name}");
        }
        for path in ["transactions", "transactions/1"] {
            let answer = server.get(&format!("/v2/{name}/{path}?expand=effectiveVolumes"));
            if name == "no-moves" {
                answer.refused(400, "VALIDATION");
                continue;
            }
            let has_volumes = answer.is(200).body.contains("postCommitEffectiveVolumes");
            assert_eq!(has_volumes, shown, "{name} {path}");
        }
        for path in ["accounts", "accounts/x"] {
            let answer = server.get(&format!("/v2/{name}/{path}?expand=effectiveVolumes&expand=volumes"));
            if name == "no-moves" {
                answer.refused(400, "VALIDATION");
                continue;
            }
            let body = answer.is(200).body;
            assert_eq!(body.contains("\"effectiveVolumes\""), shown, "{name} {path}");
            assert!(body.contains("\"volumes\""), "{name} {path}");
        }
        let query = json!({"resource": "accounts", "params": {"expand": ["effectiveVolumes"]}});
        let schema = json!({"chart": {}, "queries": {"q": query}}).to_string();
        server.post(&format!("/v2/{name}/schemas/v1"), &schema).is(204);
        let run = server.post(&format!("/v2/{name}/queries/q/run?schemaVersion=v1"), "{}");
        assert_eq!(run.status, if name == "no-moves" { 400 } else { 200 }, "{name}");
    }
}

#[test]
fn lists_are_sorted_by_every_date() {
    let server = TestServer::with_main();
    for (account, day) in [("c", 3), ("a", 5), ("b", 1)] {
        let body = json!({"timestamp": format!("2024-01-0{day}T00:00:00Z"), "postings": [
            {"source": "world", "destination": account, "amount": 1, "asset": "USD"}]});
        server.post("/v2/main/transactions", &body.to_string()).is(200);
    }
    server.post("/v2/main/transactions/2/metadata", r#"{"k":"v"}"#).is(204);
    server.post("/v2/main/transactions/1/revert", "").is(201);
    server.post("/v2/main/accounts/c/metadata", r#"{"k":"v"}"#).is(204);
    for (list, field, sort, order) in [
        ("accounts", "address", "firstUsage:asc", "b world c a"),
        ("accounts", "address", "first_usage:desc", "a c world b"),
        ("accounts", "address", "insertionDate:asc", "c world a b"),
        ("accounts", "address", "updatedAt:desc", "c world b a"),
        ("accounts", "address", "address:desc", "world c b a"),
        ("transactions", "id", "updatedAt:desc", "4 1 2 3"),
        ("transactions", "id", "updated_at:asc", "3 2 1 4"),
        ("transactions", "id", "revertedAt:asc", "1 2 3 4"),
        ("transactions", "id", "revertedAt:desc", "4 3 2 1"),
        ("transactions", "id", "timestamp:asc", "3 1 2 4"),
    ] {
        for size in [1, 2, 9] {
            let mut seen = Vec::new();
            let mut page = server.get(&format!("/v2/main/{list}?sort={sort}&pageSize={size}")).is(200);
            let mut before: Option<Vec<String>> = None;
            loop {
                let items = page.column(field);
                if let Some(previous) = page.json()["cursor"]["previous"].as_str() {
                    let back = server.get(&format!("/v2/main/{list}?cursor={previous}")).is(200);
                    assert_eq!(Some(back.column(field)), before, "{sort}");
                }
                seen.extend(items.clone());
                before = Some(items);
                let Some(next) = page.json()["cursor"]["next"].as_str().map(str::to_owned) else { break };
                page = server.get(&format!("/v2/main/{list}?cursor={next}")).is(200);
            }
            assert_eq!(seen.join(" "), order, "{list} {sort} {size}");
        }
    }
    let selected =
        server.send("GET", "/v2/main/transactions?sort=updatedAt:asc", &[], r#"{"$match":{"account":"c"}}"#);
    assert_eq!(selected.is(200).column("id"), ["1", "4"]);
    for query in ["accounts?sort=metadata", "transactions?sort=reference", "volumes?sort=asset"] {
        server.get(&format!("/v2/main/{query}")).refused(400, "VALIDATION");
    }
}
