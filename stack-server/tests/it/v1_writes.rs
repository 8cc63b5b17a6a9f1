//! Writes of v1, and their effects in v1 and v2.

use serde_json::{Value, json};
use stack_server::{Compat, Settings};

use crate::client::TestServer;

fn one(source: &str, destination: &str, amount: u64) -> String {
    format!(
        r#"{{"postings":[{{"source":"{source}","destination":"{destination}","amount":{amount},"asset":"CHF"}}]}}"#
    )
}

fn with_compat(compat: Compat) -> TestServer {
    let mut settings = Settings::default();
    settings.compat = compat;
    TestServer::with(settings)
}

#[test]
fn first_write_creates_ledger() {
    let server = TestServer::start();
    for path in
        ["stats", "accounts", "transactions", "logs", "balances", "aggregate/balances", "mapping", "_info"]
    {
        server.get(&format!("/old/{path}")).is(200);
    }
    server.post("/old/transactions/0/metadata", "{}").refused(404, "NOT_FOUND");
    assert_eq!(server.get("/_info").json()["data"]["config"]["storage"]["ledgers"], json!([]));
    server.post("/old/transactions", &one("world", "a", 1)).is(200);
    assert_eq!(server.get("/_info").json()["data"]["config"]["storage"]["ledgers"], json!(["old"]));
    let ledger = server.get("/v2/old").is(200).json();
    assert_eq!(ledger["data"]["bucket"], "old");
    let transaction = server.get("/v2/old/transactions/0").is(200).json();
    assert_eq!(transaction["data"]["id"], 0);
}

#[test]
fn keeps_typed_metadata_and_v2_reads_it_as_text() {
    let server = TestServer::start();
    let metadata = r#"{"n":12345678901234567890123.50,"o":{"b":[null,"<"],"a":true},"s":"x","z":null}"#;
    server.post("/old/accounts/a/metadata", metadata).is(204);
    let shown = server.get("/old/accounts/a").is(200).body;
    assert!(shown.contains(r#""n":12345678901234567890123.50"#), "{shown}");
    assert!(shown.contains(r#""o":{"a":true,"b":[null,"\u003c"]}"#), "{shown}");
    let later = server.get("/v2/old/accounts/a").is(200).json();
    assert_eq!(later["data"]["metadata"]["n"], "12345678901234567890123.50");
    assert_eq!(later["data"]["metadata"]["z"], "null");
    server.send("DELETE", "/old/accounts/a/metadata/o", &[], "").is(204);
    server.send("DELETE", "/old/accounts/a/metadata/nosuch", &[], "").is(204);
    assert_eq!(
        server.get("/old/accounts/a").json()["data"]["metadata"].as_object().map(serde_json::Map::len),
        Some(3)
    );
    let logs = server.get("/old/logs?pageSize=2").is(200).json();
    assert_eq!(logs["cursor"]["data"][1]["type"], "SET_METADATA");
    assert_eq!(logs["cursor"]["data"][1]["data"]["metadata"], json!({"o": null}));
}

#[test]
fn only_balances_at_the_end_of_a_transaction_count() {
    let server = TestServer::start();
    let body = r#"{"postings":[{"source":"a","destination":"b","amount":5,"asset":"CHF"},
        {"source":"world","destination":"a","amount":5,"asset":"CHF"}]}"#;
    server.post("/v2/old", "").is(204);
    server.post("/v2/old/transactions", body).refused(400, "INSUFFICIENT_FUND");
    server.post("/old/transactions", body).is(200);
}

#[test]
fn a_contract_decides_how_low_a_balance_may_fall() {
    let server = TestServer::start();
    let mapping = r#"{"contracts":[{"account":"ignored:*","expr":{}},
        {"account":"cards:*","expr":{"$or":[{"$gte":["$balance",{"$meta":"limit"}]},{"$eq":[{"$meta":"kind"},"gold"]}]}}]}"#;
    let echo = server.send("PUT", "/old/mapping", &[], mapping).is(200).json();
    assert_eq!(echo["data"]["contracts"][0], json!({"name": "", "account": "ignored:*", "expr": {}}));
    assert_eq!(server.get("/old/mapping").json(), echo);
    server.post("/old/transactions", &one("cards:1", "shop", 1)).refused(400, "INSUFFICIENT_FUND");
    server.post("/old/accounts/cards:1/metadata", r#"{"limit":-30}"#).is(204);
    server.post("/old/transactions", &one("cards:1", "shop", 30)).is(200);
    server.post("/old/transactions", &one("cards:1", "shop", 1)).refused(400, "INSUFFICIENT_FUND");
    server.post("/old/accounts/cards:1/metadata", r#"{"kind":"gold"}"#).is(204);
    server.post("/old/transactions", &one("cards:1", "shop", 1_000)).is(200);
    server.post("/old/transactions", &one("ignored:1", "shop", 1)).refused(400, "INSUFFICIENT_FUND");
    // v2 does not apply contracts.
    server.post("/v2/old/transactions", &one("cards:1", "shop", 1)).refused(400, "INSUFFICIENT_FUND");
    server.send("PUT", "/old/mapping", &[], "{}").is(200);
    assert_eq!(server.get("/old/mapping").json(), json!({"data": {"contracts": []}}));
}

#[test]
fn batch_is_atomic_under_one_key() {
    let server = TestServer::start();
    let batch = format!(r#"{{"transactions":[{},{}]}}"#, one("world", "a", 7), one("a", "b", 3));
    let key = [("Idempotency-Key", "monday")];
    let first = server.send("POST", "/old/transactions/batch", &key, &batch).is(200);
    assert_eq!(first.header("idempotency-hit"), None);
    assert_eq!(first.json()["data"][1]["preCommitVolumes"]["a"]["CHF"]["balance"], 7);
    server.post("/old/transactions", &one("world", "c", 1)).is(200);
    let again = server.send("POST", "/old/transactions/batch", &key, &batch).is(200);
    assert_eq!(again.header("idempotency-hit"), Some("true"));
    assert_eq!(again.json(), first.json());
    for (path, body) in [("/old/transactions/batch?x=1", batch.as_str()), ("/old/accounts/a/metadata", "{}")]
    {
        server.send("POST", path, &key, body).refused(400, "VALIDATION");
    }
    assert_eq!(server.get("/old/stats").json()["data"]["transactions"], 3);
}

#[test]
fn preview_stores_nothing_and_ignores_unknown_words() {
    let server = TestServer::start();
    for word in ["1", "true", "YES"] {
        let answer = server.post(&format!("/old/transactions?preview={word}"), &one("world", "a", 1)).is(200);
        assert_eq!(answer.json()["data"][0]["txid"], 0, "{word}");
    }
    assert_eq!(server.get("/old/stats").json()["data"], json!({"transactions": 0, "accounts": 0}));
    server.post("/old/transactions?preview=on", &one("world", "a", 1)).is(200);
    assert_eq!(server.get("/old/stats").json()["data"]["transactions"], 1);
}

#[test]
fn previews_of_new_ledgers_number_by_client() {
    let server = TestServer::start();
    let of_2_4 =
        [("User-Agent", "speakeasy-sdk/go 0.10.20 2.384.1 v2 github.com/formancehq/ledger/pkg/client")];
    for (headers, id) in [(&[][..], 0), (&of_2_4[..], 1), (&[][..], 0)] {
        let path = "/new/transactions?preview=true";
        let answer = server.send("POST", path, headers, &one("world", "a", 1)).is(200).json();
        assert_eq!(answer["data"][0]["txid"], id, "{headers:?}");
    }
}

#[test]
fn every_write_of_one_thing_has_a_preview() {
    let server = TestServer::start();
    server.post("/old/transactions", &one("world", "a", 5)).is(200);
    server.post("/old/accounts/a/metadata", r#"{"kept":1}"#).is(204);
    server.post("/old/transactions/0/metadata", r#"{"kept":1}"#).is(204);
    let before = server.get("/old/logs").is(200).body;
    let key = [("Idempotency-Key", "k")];
    for (method, path, body, status) in [
        ("POST", "transactions/0/revert", "", 201),
        ("POST", "accounts/a/metadata", r#"{"kept":2}"#, 204),
        ("POST", "transactions/0/metadata", r#"{"kept":2}"#, 204),
        ("DELETE", "accounts/a/metadata/kept", "", 204),
        ("DELETE", "transactions/0/metadata/kept", "", 204),
        ("POST", "transactions/7/revert", "", 404),
        ("POST", "transactions/7/metadata", "{}", 404),
    ] {
        let answer = server.send(method, &format!("/old/{path}?preview=true"), &key, body).is(status);
        if path == "transactions/0/revert" {
            assert_eq!(answer.json()["data"]["txid"], 1);
        }
        assert_eq!(server.get("/old/logs").is(200).body, before, "{method} {path}");
    }
    server.post("/nosuch/accounts/a/metadata?preview=1", "{}").is(204);
    server.get("/v2/nosuch").refused(404, "NOT_FOUND");
    server.post("/old/transactions/0/revert?preview=on", "").is(201);
    assert_eq!(server.get("/old/stats").json()["data"]["transactions"], 2);
}

#[test]
fn zero_date_counts_as_no_date() {
    let server = TestServer::start();
    let dated = |date: &str| one("world", "a", 1).replacen('{', &format!("{{\"timestamp\":\"{date}\","), 1);
    let script =
        r#"{"timestamp":"0001-01-01T00:00:00Z","plain":"send [CHF 1] (source = @world destination = @a)"}"#;
    let date = |answer: Value| answer.as_str().expect("a date").to_owned();
    for zero in ["0001-01-01T00:00:00Z", "0001-01-01T01:30:00+01:30"] {
        let made = server.post("/old/transactions", &dated(zero)).is(200).json();
        assert!(date(made["data"][0]["timestamp"].clone()).as_str() > "2020", "{made}");
        let made = server.post("/v2/old/transactions", &dated(zero)).is(200).json();
        assert_eq!(made["data"]["timestamp"], made["data"]["insertedAt"]);
    }
    let ran = server.post("/old/script", script).is(200).json();
    assert!(date(ran["transaction"]["timestamp"].clone()).as_str() > "2020", "{ran}");
    let early = server.post("/v2/old/transactions", &dated("0001-01-01T00:00:00.000001Z")).is(200).json();
    assert_eq!(early["data"]["timestamp"], "0001-01-01T00:00:00.000001Z");
}

#[test]
fn a_revert_is_shown_as_its_client_can_read_it() {
    const OLD: (&str, &str) = ("User-Agent", "speakeasy-sdk/python 1.0.20230915 2.91.2");
    const NEW: (&str, &str) = ("User-Agent", "speakeasy-sdk/go 2.2.0 2.300.0 v2.0.0 x");
    for (compat, agent, status) in [
        (Compat::V2_0, None, 201),
        (Compat::V1_10, None, 200),
        (Compat::V2_0, Some(OLD), 200),
        (Compat::V1_10, Some(NEW), 201),
    ] {
        let server = with_compat(compat);
        let headers: Vec<(&str, &str)> = agent.into_iter().collect();
        let named = one("world", "a", 4).replace("{\"postings\"", "{\"reference\":\"x\",\"postings\"");
        server.post("/old/transactions", &named).is(200);
        let reverted = server.send("POST", "/old/transactions/0/revert", &headers, "").is(status).json();
        assert_eq!(reverted["data"]["reference"], "revert_x");
        assert_eq!(reverted["data"]["metadata"]["com.formance.spec/state/reverts"], "0");
        let original = server.send("GET", "/old/transactions/0", &headers, "").is(200).json();
        let mark = &original["data"]["metadata"]["com.numary.spec/state/reverted"];
        let expected = if status == 200 { json!({"by": "1"}) } else { Value::Null };
        assert_eq!(mark, &expected, "{compat:?} {agent:?}");
        let link = &reverted["data"]["metadata"]["com.numary.spec/state/reverts"];
        assert_eq!(link, &(if status == 200 { json!("0") } else { Value::Null }));
        server.send("POST", "/old/transactions/0/revert", &headers, "").refused(400, "VALIDATION");
        assert_eq!(server.get("/v2/old/transactions/0").json()["data"]["reverted"], true);
        let logs = server.get("/old/logs").is(200).json();
        let types: Vec<&Value> =
            logs["cursor"]["data"].as_array().expect("a list").iter().map(|log| &log["type"]).collect();
        assert_eq!(types, ["NEW_TRANSACTION", "NEW_TRANSACTION"]);
    }
}

#[test]
fn funds_are_not_asked_for_with_checks_disabled() {
    let server = TestServer::start();
    server.post("/old/transactions", &one("world", "a", 4)).is(200);
    server.post("/old/transactions", &one("a", "b", 4)).is(200);
    for word in ["", "yes", "True"] {
        let path = format!("/old/transactions/0/revert?disableChecks={word}");
        server.post(&path, "").refused(400, "INSUFFICIENT_FUND");
    }
    server.post("/old/transactions/0/revert?disableChecks=1", "").is(201);
}

#[test]
fn the_server_names_itself_as_its_clients_expect() {
    for (compat, name) in [(Compat::V2_0, "ledger"), (Compat::V1_10, "numary-ledger")] {
        let server = with_compat(compat);
        assert_eq!(server.get("/api/ledger/_info").json()["data"]["server"], name);
        server.get("/_health").is(200);
        server.get("/api/ledger/_live").is(200);
    }
}

#[test]
fn hash_format_follows_creating_api_version() {
    let server = TestServer::start();
    server.post("/v2/later", "").is(204);
    for ledger in ["early", "later"] {
        server.post(&format!("/{ledger}/transactions"), &one("world", "a", 1)).is(200);
        let shown = server.get(&format!("/{ledger}/logs")).is(200).json();
        let shown = shown["cursor"]["data"][0]["hash"].as_str().expect("a hash").to_owned();
        let wire = server.get(&format!("/v2/{ledger}/logs")).is(200).json();
        let wire = wire["cursor"]["data"][0]["hash"].as_str().expect("a hash").to_owned();
        let wire = ledger_core::WireHash::from_base64(&wire).expect("base64 of a hash").to_hex();
        assert_eq!(shown.len(), 64);
        assert_eq!(shown == wire, ledger == "later", "{ledger}");
    }
}

#[test]
fn first_write_without_effect_creates_no_ledger() {
    let server = TestServer::start();
    let script = |amount: &str| {
        format!(
            r#"{{"plain":"vars {{ monetary $m }} send $m (source = @a destination = @b)","vars":{{"m":"{amount}"}}}}"#
        )
    };
    let twice = format!(
        r#"{{"transactions":[{0},{0}]}}"#,
        one("world", "a", 1).replace("{\"postings\"", "{\"reference\":\"r\",\"postings\"")
    );
    for (path, body, status) in [
        ("transactions?preview=true", one("world", "a", 1), 200),
        ("transactions", one("a", "b", 1), 400),
        ("transactions/batch", twice, 409),
        ("script", script("CHF 1"), 200),
        ("script", script("CHF"), 200),
        ("transactions/0/revert", String::new(), 404),
        ("transactions/0/metadata", "{}".to_owned(), 404),
        ("accounts/a..b/metadata", "{}".to_owned(), 400),
        ("mapping", "[".to_owned(), 400),
    ] {
        let method = if path == "mapping" { "PUT" } else { "POST" };
        server.send(method, &format!("/old/{path}"), &[], &body).is(status);
        server.get("/v2/old").refused(404, "NOT_FOUND");
    }
    let preview = server.post("/old/transactions?preview=1", &one("world", "a", 7)).is(200).json();
    let made = server.post("/old/transactions", &one("world", "a", 7)).is(200).json();
    for field in ["txid", "postings", "preCommitVolumes", "postCommitVolumes", "metadata"] {
        assert_eq!(preview["data"][0][field], made["data"][0][field]);
    }
    server.get("/v2/old").is(200);
}
