//! Schemas over HTTP: versions, templates, stored queries, enforcement.

use ledger_core::schema::Enforcement;
use serde_json::{Value, json};
use stack_server::Settings;

use crate::client::{Answer, TestServer, escape};

fn chart() -> Value {
    json!({"bank": {}, "hotels": {"$hotel": {".pattern": "^h[0-9]+$", ".self": {},
        ".metadata": {"stars": {"default": "3"}}, "bar": {}}}})
}

fn insert(server: &TestServer, version: &str, body: &Value) {
    server.post(&format!("/v2/main/schemas/{version}"), &body.to_string()).is(204);
}

fn strict() -> TestServer {
    let mut settings = Settings::default();
    settings.schema_enforcement = Enforcement::Strict;
    let server = TestServer::with(settings);
    server.post("/v2/main", "").is(204);
    server
}

const PAY_BANK: &str = r#"{"postings":[{"source":"world","destination":"bank","amount":1,"asset":"USD"}]}"#;
const PAY_OUTSIDE: &str =
    r#"{"postings":[{"source":"world","destination":"outside","amount":1,"asset":"USD"}]}"#;

#[test]
fn a_version_is_added_once_and_normalized() {
    let server = TestServer::with_main();
    let body = r#" {"Chart":{"b":{},"a":{"$x":{}}},"queries":{},"ignored":7} trailing"#;
    server.post("/v2/main/schemas/v1?dryRun=true", body).is(204);
    server.get("/v2/main/schemas/v1").refused(404, "NOT_FOUND");
    let key: &[(&str, &str)] = &[("Idempotency-Key", "k")];
    let first = server.send("POST", "/v2/main/schemas/v1", key, body).is(204);
    assert_eq!(first.header("idempotency-hit"), None);
    let again = server.send("POST", "/v2/main/schemas/v1", key, body).is(204);
    assert_eq!(again.header("idempotency-hit"), Some("true"));
    server.send("POST", "/v2/main/schemas/v2", key, body).refused(400, "VALIDATION");
    server.post("/v2/main/schemas/v1", body).refused(409, "SCHEMA_ALREADY_EXISTS");
    server.post("/api/ledger/v2/main/schemas/v1", body).refused(409, "VALIDATION");
    let shown = server.get("/v2/main/schemas/v1").is(200);
    assert!(
        shown.body.starts_with(r#"{"data":{"chart":{"a":{"$x":{}},"b":{}},"version":"v1","createdAt":""#)
    );
    // Any text can be the name of a version.
    let odd = "a b/ü\n<1>";
    insert(&server, &escape(odd), &json!({"chart": {}}));
    let shown = server.get(&format!("/v2/main/schemas/{}", escape(odd))).is(200).json();
    assert_eq!(shown["data"]["version"], odd);
    server.post(&format!("/v2/main/schemas/{}", "x".repeat(256)), body).refused(400, "VALIDATION");
    server.get(&format!("/v2/main/schemas/{}", "x".repeat(256))).refused(404, "NOT_FOUND");
    assert_eq!(server.get("/v2/main/logs").json()["cursor"]["data"].as_array().map(Vec::len), Some(2));
}

#[test]
fn refuses_invalid_schemas_without_a_change() {
    let server = TestServer::with_main();
    for (body, says) in [
        ("", ""),
        ("null", ""),
        ("[]", ""),
        ("{", ""),
        ("{}", "'chart' is missing"),
        (r#"{"chart":7}"#, "'chart' must be an object"),
        (r#"{"chart":{"$a":{}}}"#, "'$a'"),
        (r#"{"chart":{"a":{"$x":{},"$y":{}}}}"#, "'a': "),
        (r#"{"chart":{"a":{"$x":{".pattern":"[a"}}}}"#, "'a:$x': invalid '.pattern'"),
        (r#"{"chart":{"a":{".metadata":{"k":1}}}}"#, "'.metadata' 'k'"),
        (r#"{"chart":{},"transactions":{"t":{"script":"no script"}}}"#, "transactions 't': invalid 'script'"),
        (
            r#"{"chart":{},"transactions":{"t":{"script":"","runtime":"x"}}}"#,
            "transactions 't': unknown 'runtime'",
        ),
        (r#"{"chart":{},"queries":{"q":{"resource":"ledgers"}}}"#, "queries 'q': unknown 'resource'"),
        (
            r#"{"chart":{},"queries":{"q":{"resource":"accounts","body":{"$match":{"nosuch":"x"}}}}}"#,
            "queries 'q': 'body': ",
        ),
        (
            r#"{"chart":{},"queries":{"q":{"resource":"accounts","body":{"$match":{"address":"$who"}}}}}"#,
            "'who'",
        ),
        (
            r#"{"chart":{},"queries":{"q":{"resource":"accounts","vars":{"a":"number"}}}}"#,
            "'vars' 'a': unknown 'type'",
        ),
        (r#"{"chart":{},"queries":{"q":{"resource":"accounts","params":{"pageSize":-1}}}}"#, "'pageSize'"),
        (r#"{"chart":{},"queries":{"q":{"resource":"accounts","params":{"sort":"nosuch"}}}}"#, "'sort'"),
        (r#"{"chart":{},"queries":{"q":{"resource":"volumes","params":{"endTime":"soon"}}}}"#, "'endTime'"),
        (r#"{"chart":{},"queries":{"q":{"resource":"volumes","params":{"expand":"volumes"}}}}"#, "'expand'"),
    ] {
        let answer = server.post("/v2/main/schemas/v1", body);
        let message = answer.refused(400, "VALIDATION");
        // A member has the name that it has in the body.
        assert!(message.starts_with("invalid schema: ") && message.contains(says), "{body}: {message}");
    }
    let deep = format!(r#"{{"chart":{}{{}}{}}}"#, r#"{"a":"#.repeat(3_000), "}".repeat(3_000));
    server.post("/v2/main/schemas/v1", &deep).refused(400, "VALIDATION");
    server.post("/v2/nosuch/schemas/v1", "{").refused(404, "LEDGER_NOT_FOUND");
    server.get("/v2/nosuch/schemas/v1").refused(404, "LEDGER_NOT_FOUND");
    server.get("/v2/nosuch/schemas").refused(404, "LEDGER_NOT_FOUND");
    server.post("/v2/nosuch/queries/q/run", "{").refused(404, "LEDGER_NOT_FOUND");
    assert_eq!(server.get("/v2/main/schemas").json()["cursor"]["data"], json!([]));
    assert_eq!(server.get("/v2/main/logs").json()["cursor"]["data"], json!([]));
}

#[test]
fn versions_are_listed_sorted_and_filtered() {
    let server = TestServer::with_main();
    for version in ["b", "c", "a"] {
        insert(&server, version, &json!({"chart": {}}));
    }
    let listed = |query: &str, body: &str| {
        let answer = server.send("GET", &format!("/v2/main/schemas{query}"), &[], body).is(200);
        answer.column("version").join(" ")
    };
    for (query, body, versions) in [
        ("", "", "a c b"),
        ("?sort=createdAt:asc", "", "b c a"),
        ("?sort=created_at", "", "a c b"),
        ("?sort=version:asc", "", "a b c"),
        ("?sort=version", "", "c b a"),
        ("?order=asc", "", "b c a"),
        ("?order=desc", "", "a c b"),
        ("", r#"{"$match":{"version":"b"}}"#, "b"),
        ("", r#"{"$in":{"version":["a","b"]}}"#, "a b"),
        ("", r#"{"$lt":{"created_at":"2000-01-01T00:00:00Z"}}"#, ""),
        ("", r#"{"$gt":{"created_at":"2000-01-01T00:00:00Z"}}"#, "a c b"),
    ] {
        assert_eq!(listed(query, body), versions, "{query} {body}");
    }
    for query in ["?sort=chart", "?sort=version:up", "?order=up", "?cursor=x", "?pageSize=-1"] {
        server.get(&format!("/v2/main/schemas{query}")).refused(400, "VALIDATION");
    }
    for query in ["?pageSize=1&sort=version:asc", "?pageSize=1&order=asc", "?pageSize=1"] {
        let mut seen = Vec::new();
        let mut page = server.get(&format!("/v2/main/schemas{query}")).is(200);
        loop {
            seen.extend(page.column("version"));
            let Some(next) = page.json()["cursor"]["next"].as_str().map(str::to_owned) else { break };
            page = server.get(&format!("/v2/main/schemas?cursor={next}")).is(200);
        }
        assert_eq!(seen.join(" "), listed(&query.replace("pageSize=1", "pageSize=9"), ""));
        let back = page.json()["cursor"]["previous"].as_str().expect("a page before").to_owned();
        let before = server.get(&format!("/v2/main/schemas?cursor={back}")).is(200);
        assert_eq!(before.column("version"), seen[1..2]);
    }
}

#[test]
fn strict_mode_refuses_and_audit_mode_reports() {
    let server = strict();
    server.post("/v2/main/transactions", PAY_OUTSIDE).is(200);
    insert(&server, "v1", &json!({"chart": chart()}));
    let bulk = format!(r#"[{{"action":"CREATE_TRANSACTION","data":{PAY_BANK}}}]"#);
    for (method, path, body) in [
        ("POST", "transactions", PAY_BANK),
        ("POST", "transactions/1/revert", ""),
        ("POST", "transactions/1/metadata", r#"{"a":"b"}"#),
        ("POST", "accounts/bank/metadata", r#"{"a":"b"}"#),
        ("DELETE", "accounts/bank/metadata/a", ""),
    ] {
        let path = |mount: &str, query: &str| format!("{mount}/main/{path}{query}");
        let send = |mount: &str, query: &str| server.send(method, &path(mount, query), &[], body);
        send("/v2", "").refused(400, "SCHEMA_NOT_SPECIFIED");
        send("/api/ledger/v2", "").refused(400, "VALIDATION");
        send("/v2", "?schemaVersion=v9").refused(404, "NOT_FOUND");
        send("/v2", &format!("?schemaVersion={}", "x".repeat(300))).refused(404, "NOT_FOUND");
        let status = send("/v2", "?schemaVersion=v1&dryRun=true").status;
        assert!(status < 300, "{method} {}: {status}", path("", ""));
    }
    let answer = server.post("/v2/main/_bulk", &bulk).is(400).json();
    assert_eq!(answer["data"][0]["errorCode"], "SCHEMA_NOT_SPECIFIED");
    server.post("/v2/main/_bulk?schemaVersion=v1", &bulk).is(200);
    server.post("/v2/main/transactions?schemaVersion=v1", PAY_OUTSIDE).refused(400, "VALIDATION");
    server.post("/v2/main/accounts/hotels:x1/metadata?schemaVersion=v1", "{}").refused(400, "VALIDATION");
    let script = r#"{"script":{"plain":"send [USD 1] (\n source = @world\n destination = @hotels\n)"}}"#;
    server.post("/v2/main/transactions?schemaVersion=v1", script).refused(400, "VALIDATION");
    // v1 does not support schema versions.
    server.post("/main/transactions", PAY_BANK).is(400);
    insert(&server, "v2", &json!({"chart": {}}));
    let logs = server.get("/v2/main/logs").is(200).json();
    assert_eq!(logs["cursor"]["data"].as_array().map(Vec::len), Some(4));
    assert_eq!(logs["cursor"]["data"][1]["schemaVersion"], "v1");
}

#[test]
fn a_template_is_run_by_its_own_runtime() {
    let server = TestServer::with_main();
    let script =
        "vars {\n account $to\n monetary $sum\n}\nsend $sum (\n source = @bank\n destination = $to\n)";
    insert(
        &server,
        "v1",
        &json!({"chart": chart(), "transactions": {
            "pay": {"script": script}, "payAs": {"script": script, "runtime": "experimental-interpreter"}}}),
    );
    server.post("/v2/main/transactions", &PAY_BANK.replace(":1,", ":100,")).is(200);
    let run = |template: &str, vars: Value, more: Value| {
        let mut body = json!({"script": {"template": template, "vars": vars}, "reference": template});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        server.post("/v2/main/transactions?schemaVersion=v1", &body.to_string())
    };
    let sum = |sum: &str| json!({"to": "hotels:h1", "sum": sum});
    let made = run("pay", sum("USD 3"), json!({"metadata": {"k": "v"}})).is(200).json();
    assert_eq!(made["data"]["template"], "pay");
    assert_eq!(made["data"]["metadata"], json!({"k": "v"}));
    run("pay", sum("USD 3"), json!({})).refused(409, "CONFLICT");
    let account = server.get("/v2/main/accounts/hotels:h1").is(200).json();
    assert_eq!(account["data"]["metadata"], json!({"stars": "3"}));
    run("payAs", sum("USD 1000"), json!({})).refused(400, "INSUFFICIENT_FUND");
    run("payAs", json!({"to": "hotels:h1"}), json!({})).refused(400, "INTERPRETER_RUNTIME");
    run("pay", json!({"to": "hotels:h1"}), json!({})).refused(400, "COMPILATION_FAILED");
    let other = json!({"runtime": "experimental-interpreter"});
    run("pay", json!({"to": "hotels:h1"}), other).refused(400, "INTERPRETER_RUNTIME");
    run("pay", sum("USD 1"), json!({"runtime": "other"})).refused(400, "VALIDATION");
    let both = json!({"postings": [{"source": "world", "destination": "bank", "amount": 1, "asset": "USD"}]});
    run("pay", sum("USD 1"), both).refused(400, "VALIDATION");
    let read = server.get("/v2/main/transactions/2").is(200).json();
    assert_eq!(read["data"]["template"], "pay");
}

/// A server with accounts and a schema of stored queries.
fn with_queries() -> TestServer {
    let server = TestServer::with_main();
    for (account, amount) in [("hotels:h1", 5), ("hotels:h2", 50), ("hotels:h2:bar", 7), ("bank", 9)] {
        server.transfer("world", account, amount, "USD");
    }
    insert(
        &server,
        "v1",
        &json!({"chart": chart(), "queries": {
            "rich": {"resource": "accounts", "vars": {"least": {"type": "int", "default": 6}, "who": "string"},
                "params": {"expand": ["volumes"], "pageSize": 1, "sort": "address:desc"},
                "body": {"$and": [{"$gte": {"balance[USD]": "${least}"}}, {"$match": {"address": "hotels:${who}"}}]}},
            "since": {"resource": "transactions", "vars": {"from": "date"}, "body": {"$gte": {"timestamp": "${from}"}}},
            "sums": {"resource": "volumes", "params": {"groupBy": 1, "insertionDate": true}},
            "kinds": {"resource": "logs", "vars": {"kind": "string"}, "body": {"$match": {"type": "${kind}"}}}}}),
    );
    server
}

fn run_query(server: &TestServer, query: &str, body: &Value) -> Answer {
    server.post(&format!("/v2/main/queries/{query}/run?schemaVersion=v1"), &body.to_string())
}

#[test]
fn a_stored_query_lists_what_its_variables_say() {
    let server = with_queries();
    let run = |query: &str, body: Value| run_query(&server, query, &body);
    let all = json!({"vars": {"who": "..."}});
    let first = run("rich", all).is(200);
    assert_eq!(first.json()["resource"], "accounts");
    assert_eq!(first.column("address"), ["hotels:h2:bar"]);
    assert_eq!(first.json()["cursor"]["data"][0]["volumes"]["USD"]["balance"], 7);
    let next = first.json()["cursor"]["next"].clone();
    let second = run("rich", json!({"cursor": next, "vars": {"nonsense": 1}})).is(200);
    assert_eq!(second.column("address"), ["hotels:h2"]);
    assert_eq!(second.json()["cursor"]["pageSize"], 1);
    assert_eq!(
        run("rich", json!({"cursor": next, "params": {"pageSize": 9}})).json()["cursor"]["pageSize"],
        9
    );
    let whole = run("rich", json!({"vars": {"who": "...", "least": 1}, "params": {"pageSize": 9}})).is(200);
    assert_eq!(whole.column("address"), ["hotels:h2:bar", "hotels:h2", "hotels:h1"]);
    let wanted =
        json!({"vars": {"from": "2000-01-01T00:00:00Z"}, "params": {"sort": "id:asc", "pageSize": 2}});
    assert_eq!(run("since", wanted).is(200).column("id"), ["1", "2"]);
    let early =
        json!({"vars": {"from": "2000-01-01T00:00:00Z"}, "params": {"endTime": "2001-01-01T00:00:00Z"}});
    assert_eq!(run("since", early).is(200).json()["cursor"]["data"], json!([]));
    assert_eq!(run("sums", json!({})).is(200).column("account"), ["bank", "hotels", "world"]);
    assert_eq!(run("sums", Value::Null).is(200).json()["resource"], "volumes");
    let logs = run("kinds", json!({"vars": {"kind": "INSERTED_SCHEMA"}})).is(200);
    assert_eq!(logs.column("type"), ["INSERTED_SCHEMA"]);
    let big = server.send(
        "POST",
        "/v2/main/queries/sums/run?schemaVersion=v1",
        &[("Formance-Bigint-As-String", "true")],
        "{}",
    );
    assert_eq!(big.is(200).json()["cursor"]["data"][0]["balance"], "9");
}

#[test]
fn refuses_a_stored_query_that_does_not_fit() {
    let server = with_queries();
    let run = |query: &str, body: Value| run_query(&server, query, &body);
    let next = run("rich", json!({"vars": {"who": "..."}})).is(200).json()["cursor"]["next"].clone();
    // Cursors belong to their query.
    run("since", json!({"cursor": next})).refused(400, "VALIDATION");
    server
        .get(&format!("/v2/main/accounts?cursor={}", next.as_str().expect("a cursor")))
        .refused(400, "VALIDATION");
    for (query, body) in [
        ("rich", json!({})),
        ("rich", json!({"vars": {"who": 1}})),
        ("rich", json!({"vars": {"who": "a", "least": 1.5}})),
        ("rich", json!({"vars": {"who": "a", "other": 1}})),
        ("rich", json!({"vars": []})),
        ("rich", json!({"vars": {"who": "a"}, "params": {"pageSize": "1"}})),
        ("rich", json!({"vars": {"who": "a"}, "params": {"sort": "nosuch"}})),
        ("rich", json!([])),
        ("rich", json!({"cursor": 1})),
        ("since", json!({"vars": {"from": "yesterday"}})),
        ("nosuch", json!({})),
    ] {
        run(query, body).refused(400, "VALIDATION");
    }
    for version in ["", "?schemaVersion=", "?schemaVersion=v2"] {
        let path = format!("/v2/main/queries/sums/run{version}");
        server.post(&path, "{}").refused(400, "VALIDATION");
    }
}

#[test]
fn schemas_and_what_they_gave_go_along_with_an_export() {
    let server = TestServer::with_main();
    let script = "send [USD 1] (\n source = @world\n destination = @hotels:h7\n)";
    insert(
        &server,
        "v%3C1%3E",
        &json!({"chart": chart(), "transactions": {"one": {"script": script, "description": "a & b"}},
            "queries": {"q": {"resource": "logs", "body": {"$gte": {"id": 1}}, "vars": {}}}}),
    );
    let body = r#"{"script":{"template":"one"}}"#;
    server.post("/v2/main/transactions?schemaVersion=v%3C1%3E", body).is(200);
    let log = server.post("/v2/main/logs/export", "").is(200).body;
    server.post("/v2/copy", "").is(204);
    server.post("/v2/copy/logs/import", &log).is(204);
    assert_eq!(server.post("/v2/copy/logs/export", "").is(200).body, log);
    for question in ["schemas/v%3C1%3E", "schemas", "transactions/1", "accounts/hotels:h7"] {
        let of = |ledger: &str| server.get(&format!("/v2/{ledger}/{question}")).is(200).json();
        let copy = of("copy");
        if question.starts_with("schemas/") || question.starts_with("trans") {
            assert_eq!(copy, of("main"), "{question}");
        }
        if question.starts_with("accounts") {
            assert_eq!(copy["data"]["metadata"], json!({"stars": "3"}));
        }
    }
    server.post("/v2/copy/transactions?schemaVersion=v%3C1%3E", body).is(200);
    // White space is not part of a schema.
    server.post("/v2/spaced", "").is(204);
    let spaced = log.replacen("{\"chart\":{", "{ \"chart\" : {\n", 1);
    server.post("/v2/spaced/logs/import", &spaced).is(204);
    let broken = log.replacen("\"$hotel\"", "\"$hot el\"", 1);
    server.post("/v2/broken", "").is(204);
    server.post("/v2/broken/logs/import", &broken).refused(400, "IMPORT");
}

#[test]
fn strict_mode_wants_a_version_before_a_template() {
    let template = r#"{"script":{"template":"nosuch","vars":{}}}"#;
    let server = strict();
    server.post("/v2/main/transactions", template).refused(400, "VALIDATION");
    insert(&server, "v1", &json!({"chart": chart()}));
    server.post("/v2/main/transactions", template).refused(400, "SCHEMA_NOT_SPECIFIED");
    server.post("/v2/main/transactions?schemaVersion=v1", template).refused(400, "VALIDATION");
    let audit = TestServer::with_main();
    insert(&audit, "v1", &json!({"chart": chart()}));
    audit.post("/v2/main/transactions", template).refused(400, "VALIDATION");
}

#[test]
fn stored_queries_take_variables() {
    let server = TestServer::with_main();
    for account in ["hotels:1", "hotels:2:bar", "shops:1"] {
        server.transfer("world", account, 5, "USD");
    }
    let query = json!({"resource": "accounts", "vars": {"category": "string", "least": "int"},
        "body": {"$and": [{"$match": {"address": "$category:"}}, {"$gte": {"balance[USD]": "$least"}}]}});
    insert(&server, "v1", &json!({"chart": {}, "queries": {"of": query}}));
    let run = |vars: Value| {
        let body = json!({"vars": vars}).to_string();
        server.post("/v2/main/queries/of/run?schemaVersion=v1", &body)
    };
    let found = |category: &str, least: u64| {
        run(json!({"category": category, "least": least})).is(200).column("address").join(" ")
    };
    assert_eq!(found("hotels", 5), "hotels:1");
    assert_eq!(found("shops", 5), "shops:1");
    assert_eq!(found("shops", 6), "");
    run(json!({"category": "shops"})).refused(400, "VALIDATION");
    let query = json!({"resource": "accounts", "vars": {"asset": "string"},
        "body": {"$gte": {"balance[$asset]": 5}}});
    insert(&server, "v3", &json!({"chart": {}, "queries": {"of": query}}));
    for (asset, accounts) in [("USD", 3), ("EUR", 0)] {
        let body = json!({"vars": {"asset": asset}}).to_string();
        let found = server.post("/v2/main/queries/of/run?schemaVersion=v3", &body).is(200);
        assert_eq!(found.column("address").len(), accounts, "{asset}");
    }
    for body in [r#"{"$match":{"address":"$Category:"}}"#, r#"{"$match":{"address":"$other:"}}"#] {
        let schema = format!(
            r#"{{"chart":{{}},"queries":{{"q":{{"resource":"accounts","vars":{{"category":"string"}},"body":{body}}}}}}}"#
        );
        server.post("/v2/main/schemas/v2", &schema).refused(400, "VALIDATION");
    }
}
