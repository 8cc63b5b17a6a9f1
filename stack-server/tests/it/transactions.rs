//! Transactions of v2: create, list, count, read, revert, metadata and idempotency.

use serde_json::json;

use crate::client::{TestServer, escape};

const TOPUP: &str =
    r#"{"postings":[{"source":"world","destination":"users:1","amount":100,"asset":"USD/2"}]}"#;

#[test]
fn create_returns_whole_transaction_byte_for_byte() {
    let server = TestServer::with_main();
    let body = r#"{"postings":[{"source":"world","destination":"a","amount":340282366920938463463374607431768211456,"asset":"USD/2"},
        {"source":"a","destination":"b","amount":7,"asset":"USD/2"}],
        "timestamp":"2024-05-01T12:00:00.1200+02:00","reference":"r<1>","metadata":{"z":"1","a":"x & \"y\"","n":null}}"#;
    let answer = server.post("/v2/main/transactions", body).is(200);
    let at = answer.json()["data"]["insertedAt"].as_str().expect("a date").to_owned();
    let huge = "340282366920938463463374607431768211456";
    let expected = format!(
        concat!(
            r#"{{"data":{{"postings":[{{"source":"world","destination":"a","amount":{huge},"asset":"USD/2"}},"#,
            r#"{{"source":"a","destination":"b","amount":7,"asset":"USD/2"}}],"#,
            r#""metadata":{{"a":"x \u0026 \"y\"","n":"","z":"1"}},"timestamp":"2024-05-01T10:00:00.12Z","#,
            r#""reference":"r\u003c1\u003e","id":1,"insertedAt":"{at}","updatedAt":"{at}","#,
            r#""postCommitVolumes":{after},"postCommitEffectiveVolumes":{after},"reverted":false,"#,
            r#""preCommitVolumes":{before},"preCommitEffectiveVolumes":{before}}}}}"#,
            "\n"
        ),
        huge = huge,
        at = at,
        after = format_args!(
            concat!(
                r#"{{"a":{{"USD/2":{{"input":{0},"output":7,"balance":340282366920938463463374607431768211449}}}},"#,
                r#""b":{{"USD/2":{{"input":7,"output":0,"balance":7}}}},"#,
                r#""world":{{"USD/2":{{"input":0,"output":{0},"balance":-{0}}}}}}}"#
            ),
            huge
        ),
        before = r#"{"a":{"USD/2":{"input":0,"output":0,"balance":0}},"b":{"USD/2":{"input":0,"output":0,"balance":0}},"world":{"USD/2":{"input":0,"output":0,"balance":0}}}"#,
    );
    assert_eq!(answer.body, expected);
}

#[test]
fn volumes_are_shown_on_reads_where_asked_for() {
    let server = TestServer::with_main();
    server.transfer("world", "a", 10, "USD");
    let plain = server.get("/v2/main/transactions/1").is(200).json();
    assert_eq!(plain["data"]["postCommitVolumes"], json!(null));
    let expanded = server.get("/v2/main/transactions/1?expand=volumes").is(200).json();
    assert_eq!(
        expanded["data"]["postCommitVolumes"]["a"]["USD"],
        json!({"input":10,"output":0,"balance":10})
    );
    assert_eq!(expanded["data"]["postCommitEffectiveVolumes"], json!(null));
    for spelling in ["expand=volumes&expand=effectiveVolumes", "expand=volumes,effectiveVolumes,nosuch"] {
        let both = server.get(&format!("/v2/main/transactions?{spelling}")).is(200).json();
        let row = &both["cursor"]["data"][0];
        assert_eq!(row["preCommitEffectiveVolumes"]["a"]["USD"]["input"], 0, "{spelling}");
        assert_eq!(row["preCommitVolumes"]["world"]["USD"]["output"], 0, "{spelling}");
    }
}

#[test]
fn amounts_become_text_for_those_who_ask() {
    let server = TestServer::with_main();
    let header = [("Formance-Bigint-As-String", "yes")];
    let answer = server.send("POST", "/v2/main/transactions", &header, TOPUP).is(200).json();
    assert_eq!(answer["data"]["postings"][0]["amount"], "100");
    assert_eq!(answer["data"]["postCommitVolumes"]["world"]["USD/2"]["balance"], "-100");
    assert_eq!(answer["data"]["id"], 1);
}

#[test]
fn a_revert_is_the_inverse_and_links_to_the_original() {
    let server = TestServer::with_main();
    server.transfer("world", "a", 10, "USD");
    let dry = server.post("/v2/main/transactions/1/revert?dryRun=true", "").is(201).json();
    assert_eq!(dry["data"]["id"], 2);
    let body = r#"{"metadata":{"why":"typo","com.formance.spec/state/reverts":"9"}}"#;
    let revert = server.post("/v2/main/transactions/1/revert?atEffectiveDate=true", body).is(201).json();
    assert_eq!(
        revert["data"]["postings"],
        json!([{"source":"a","destination":"world","amount":10,"asset":"USD"}])
    );
    assert_eq!(revert["data"]["metadata"], json!({"com.formance.spec/state/reverts":"1","why":"typo"}));
    let original = server.get("/v2/main/transactions/1").is(200).json();
    assert_eq!(original["data"]["reverted"], true);
    assert_eq!(original["data"]["timestamp"], revert["data"]["timestamp"]);
    server.post("/v2/main/transactions/1/revert", "").refused(400, "ALREADY_REVERT");
    server.post("/v2/main/transactions/9/revert", "").refused(404, "NOT_FOUND");
    server.post("/v2/main/transactions/1/revert", "{").refused(400, "VALIDATION");
}

#[test]
fn repeated_key_replays_outcome() {
    let server = TestServer::with_main();
    let key = [("Idempotency-Key", "k \"1\"\\")];
    let first = server.send("POST", "/v2/main/transactions", &key, TOPUP).is(200);
    assert_eq!(first.header("idempotency-hit"), None);
    let spelled_otherwise = TOPUP.replace(',', " , ").replace("source", "SOURCE");
    let again = server.send("POST", "/v2/main/transactions", &key, &spelled_otherwise).is(200);
    assert_eq!(again.header("idempotency-hit"), Some("true"));
    assert_eq!(again.body, first.body);
    let other = TOPUP.replace("100", "101");
    server.send("POST", "/v2/main/transactions", &key, &other).refused(400, "VALIDATION");
    server.send("POST", "/v2/main/accounts/a/metadata", &key, "{}").refused(400, "VALIDATION");
    let long = "k".repeat(256);
    let key = [("Idempotency-Key", long.as_str())];
    server.send("POST", "/v2/main/transactions", &key, TOPUP).refused(400, "VALIDATION");
    let count = server.send("HEAD", "/v2/main/transactions", &[], "").is(204);
    assert_eq!(count.header("count"), Some("1"));
}

#[test]
fn a_dry_run_stores_nothing() {
    let server = TestServer::with_main();
    let dry = server.post("/v2/main/transactions?dryRun=TRUE", TOPUP).is(200).json();
    assert_eq!(dry["data"]["id"], 1);
    assert_eq!(server.get("/v2/main/stats").json()["data"], json!({"transactions":0,"accounts":0}));
    // Only v1 accepts `yes`.
    server.post("/api/ledger/v2/main/transactions?dryRun=yes", TOPUP).is(200);
    assert_eq!(server.get("/v2/main/stats").json()["data"]["transactions"], 0);
    server.post("/v2/main/transactions?dryRun=yes", TOPUP).is(200);
    assert_eq!(server.get("/v2/main/stats").json()["data"]["transactions"], 1);
}

#[test]
fn force_lets_a_source_go_below_zero() {
    let server = TestServer::with_main();
    let body = r#"{"postings":[{"source":"a","destination":"b","amount":5,"asset":"USD"}]}"#;
    let message = server.post("/v2/main/transactions", body).refused(400, "INSUFFICIENT_FUND");
    assert!(message.contains("@a"), "{message}");
    server.post("/v2/main/transactions?force=1", body).is(200);
    server.post("/v2/main/transactions", &body.replace("]}", "],\"force\":true}")).is(200);
}

#[test]
fn lists_are_filtered_and_ordered() {
    let server = TestServer::with_main();
    for (destination, at) in [("a", "2024-02-01"), ("b", "2024-03-01"), ("c", "2024-01-01")] {
        let body = format!(
            r#"{{"postings":[{{"source":"world","destination":"{destination}","amount":1,"asset":"USD"}}],"timestamp":"{at}T00:00:00Z"}}"#
        );
        server.post("/v2/main/transactions", &body).is(200);
    }
    for (query, ids) in [
        ("", "3 2 1"),
        ("reverse=true", "1 2 3"),
        ("order=effective", "2 1 3"),
        ("order=effective&reverse=true", "3 1 2"),
        // Other values of `order` are ignored, as other servers ignore them.
        ("order=nosuch", "3 2 1"),
        ("order=Effective&reverse=true", "1 2 3"),
        ("order=", "3 2 1"),
        ("sort=timestamp:asc", "3 1 2"),
        ("sort=insertedAt:asc", "1 2 3"),
        ("sort=inserted_at", "3 2 1"),
        ("pit=2024-02-01T00:00:00Z", "3 1"),
        ("pit=2024-02-01T01:00:00+01:00", "3 1"),
        (&format!("query={}", escape(r#"{"$match":{"destination":"b"}}"#)), "2"),
        (&format!("query={}", escape(r#"{"$gte":{"timestamp":"2024-02-01T00:00:00Z"}}"#)), "2 1"),
    ] {
        let list = server.get(&format!("/v2/main/transactions?{query}")).is(200);
        assert_eq!(list.column("id").join(" "), ids, "{query}");
    }
    let by_body = server.send("GET", "/v2/main/transactions", &[], r#"{"$match":{"account":"c"}}"#).is(200);
    assert_eq!(by_body.column("id"), ["3"]);
    let count = server.send("HEAD", "/v2/main/transactions", &[], r#"{"$match":{"account":"c"}}"#).is(204);
    assert_eq!(count.header("count"), Some("1"));
    for query in ["sort=id:up", "sort=reference", "sort=nosuch:asc", "pit=yesterday", "oot=x"] {
        server.get(&format!("/v2/main/transactions?{query}")).refused(400, "VALIDATION");
    }
}

#[test]
fn metadata_are_merged_and_deleted_by_key() {
    let server = TestServer::with_main();
    server.transfer("world", "a", 1, "USD");
    server.post("/v2/main/transactions/1/metadata", r#"{"a":"1","b/c d":"2"}"#).is(204);
    server.post("/v2/main/transactions/1/metadata", r#"{"a":"3"}"#).is(204);
    let read = || server.get("/v2/main/transactions/1").is(200).json()["data"]["metadata"].clone();
    assert_eq!(read(), json!({"a":"3","b/c d":"2"}));
    let path = "/v2/main/transactions/1/metadata/b%2Fc%20d";
    server.send("DELETE", path, &[], "").is(204);
    assert_eq!(read(), json!({"a":"3"}));
    server.send("DELETE", path, &[], "").refused(404, "NOT_FOUND");
    server.send("DELETE", "/v2/main/transactions/9/metadata/a", &[], "").refused(404, "NOT_FOUND");
    server.post("/v2/main/transactions/9/metadata", "{}").refused(404, "NOT_FOUND");
}

#[test]
fn compares_references_as_text_in_first_release() {
    let server = TestServer::with_main();
    let references = [Some("b"), None, Some("a"), Some("ba"), Some("B"), Some("é"), None, Some("c")];
    for reference in references {
        let mut body = serde_json::json!({"postings":
            [{"source": "world", "destination": "x", "amount": 1, "asset": "USD"}]});
        if let Some(reference) = reference {
            body["reference"] = reference.into();
        }
        server.post("/v2/main/transactions", &body.to_string()).is(200);
    }
    let selected = |filter: &str| {
        let path = "/api/ledger/v2/main/transactions?pageSize=50&reverse=true";
        server.send("GET", path, &[], filter).is(200).column("id").join(" ")
    };
    let expected = |test: &dyn Fn(&str) -> bool| {
        let ids = (1..).zip(references).filter(|(_, reference)| reference.is_some_and(test));
        ids.map(|(id, _): (usize, _)| id.to_string()).collect::<Vec<_>>().join(" ")
    };
    for value in ["", "B", "a", "b", "bb", "z", "é", "ü"] {
        for (operator, test) in [
            ("$lt", &(|have: &str| have < value) as &dyn Fn(&str) -> bool),
            ("$lte", &|have| have <= value),
            ("$gt", &|have| have > value),
            ("$gte", &|have| have >= value),
            ("$match", &|have| have == value),
        ] {
            let filter = format!(r#"{{"{operator}":{{"reference":"{value}"}}}}"#);
            assert_eq!(selected(&filter), expected(test), "{filter}");
            // Without a value, neither the condition nor its negation holds.
            let not = format!(r#"{{"$not":{filter}}}"#);
            assert_eq!(selected(&not), expected(&|have| !test(have)), "{not}");
            if operator != "$match" {
                server.send("GET", "/v2/main/transactions", &[], &filter).refused(400, "VALIDATION");
                let head = server.send("HEAD", "/api/ledger/v2/main/transactions", &[], &filter).is(204);
                assert_eq!(
                    head.header("count"),
                    Some(expected(test).split_whitespace().count().to_string().as_str())
                );
            }
        }
    }
}
