//! The status and code of error responses, for both profiles.

use stack_server::{Mount, Settings, routes};

use crate::client::TestServer;

/// Fills a template with valid variables.
fn path_of(mount: &str, template: &str) -> String {
    let below = template.replace("{ledger}", "nosuch").replace("{address}", "a").replace("{id}", "1");
    let below = below.replace("{pipelineID}", "9a1b5e2c-0000-4000-8000-000000000002");
    format!("{mount}{}", below.replace("{key}", "k"))
}

#[test]
fn every_route_into_an_unknown_ledger_says_so() {
    let mut settings = Settings::default();
    settings.experimental_exporters = true;
    let server = TestServer::with(settings);
    let bodies = ["", "{", "{}", "[]", "{\"k\":\"v\"}"];
    let mut seen = 0;
    for route in routes().iter().filter(|route| route.mount == Mount::LedgerV2) {
        if !route.template.starts_with("/{ledger}/") {
            continue;
        }
        seen += 1;
        for mount in ["/v2", "/api/ledger/v2"] {
            let path = path_of(mount, route.template);
            for body in bodies {
                let answer = server.send(route.method, &path, &[], body);
                assert_eq!(answer.status, 404, "{} {path} {body}: {answer:?}", route.method);
                if route.method != "HEAD" {
                    answer.refused(404, "LEDGER_NOT_FOUND");
                }
            }
        }
    }
    assert!(seen > 15, "the table lost its routes");
    server.get("/v2/nosuch").refused(404, "NOT_FOUND");
}

#[test]
fn reports_unknown_ledger_before_other_faults() {
    let server = TestServer::start();
    for (method, path) in [
        ("GET", "/v2/nosuch/transactions/abc"),
        ("POST", "/v2/nosuch/transactions/abc/revert"),
        ("POST", "/v2/nosuch/transactions/abc/metadata"),
        ("DELETE", "/v2/nosuch/transactions/abc/metadata/k"),
        ("POST", "/v2/nosuch/accounts/a..b/metadata"),
        ("GET", "/v2/nosuch/accounts?pageSize=x"),
        ("GET", "/v2/nosuch/accounts?cursor=x"),
        ("POST", "/v2/nosuch/_bulk?atomic=1&parallel=1"),
        ("GET", "/v2/a.b/accounts"),
    ] {
        server.send(method, path, &[], "").refused(404, "LEDGER_NOT_FOUND");
    }
}

#[test]
fn refusals_have_the_status_and_code_of_their_profile() {
    let server = TestServer::with_main();
    let reference =
        r#"{"postings":[{"source":"world","destination":"a","amount":1,"asset":"USD"}],"reference":"r"}"#;
    server.post("/v2/main/transactions", reference).is(200);
    let script = r#"{"script":{"plain":"send [USD 1] (source=@world destination=)"}}"#;
    let both = reference.replace("{\"postings\"", "{\"script\":{\"plain\":\"x\"},\"postings\"");
    let many = format!(
        "{{\"postings\":[{}]}}",
        vec![r#"{"source":"world","destination":"a","amount":1,"asset":"USD"}"#; 10_001].join(",")
    );
    for (path, body, stack, ledger) in [
        ("/transactions", reference, (400, "CONFLICT"), (409, "CONFLICT")),
        ("/transactions", "{}", (400, "NO_POSTINGS"), (400, "NO_POSTINGS")),
        ("/transactions", "{\"postings\":[]}", (400, "NO_POSTINGS"), (400, "NO_POSTINGS")),
        ("/transactions", script, (400, "COMPILATION_FAILED"), (400, "COMPILATION_FAILED")),
        ("/transactions", &both, (400, "VALIDATION"), (400, "VALIDATION")),
        ("/transactions", &many, (400, "VALIDATION"), (400, "VALIDATION")),
        ("/transactions/1.5/revert", "", (400, "VALIDATION"), (400, "VALIDATION")),
        ("/transactions/-1/revert", "", (400, "VALIDATION"), (400, "VALIDATION")),
        ("/transactions/+1/revert", "", (400, "VALIDATION"), (400, "VALIDATION")),
        ("/transactions/99999999999999999999/revert", "", (400, "VALIDATION"), (400, "VALIDATION")),
        ("", "", (400, "VALIDATION"), (400, "LEDGER_ALREADY_EXISTS")),
    ] {
        for (mount, (status, code)) in [("/api/ledger/v2", stack), ("/v2", ledger)] {
            server.post(&format!("{mount}/main{path}"), body).refused(status, code);
        }
    }
    for (id, status, code) in [
        ("9", 404, "NOT_FOUND"),
        ("-1", 404, "NOT_FOUND"),
        ("abc", 400, "VALIDATION"),
        ("18446744073709551615", 404, "NOT_FOUND"),
        ("18446744073709551616", 400, "VALIDATION"),
    ] {
        server.get(&format!("/v2/main/transactions/{id}")).refused(status, code);
    }
}

#[test]
fn filters_are_refused_with_the_reason() {
    let server = TestServer::with_main();
    for (path, filter, message) in [
        ("accounts", "{", "invalid filter"),
        ("accounts", "[]", "invalid filter"),
        ("accounts", r#"{"$foo":{"a":"b"}}"#, "unexpected operator $foo"),
        ("accounts", r#"{"$match":{}}"#, "expected single key, found none"),
        ("accounts", r#"{"$match":{"metadata[k":"v"}}"#, "unknown key 'metadata[k' when building query"),
        ("transactions", r#"{"$match":{"nosuch":"a"}}"#, "unknown key 'nosuch' when building query"),
        ("volumes", r#"{"$gt":{"balance":1}}"#, "operator '$gt' is not allowed for property 'balance'"),
        ("aggregate/balances", r#"{"$gt":{"balance[USD]":1}}"#, "unknown key"),
        ("logs", r#"{"$match":{"address":"a"}}"#, "unknown key"),
    ] {
        let answer = server.send("GET", &format!("/v2/main/{path}"), &[], filter);
        let text = answer.refused(400, "VALIDATION");
        assert!(text.starts_with(message), "{path} {filter}: {text}");
    }
    server.send("HEAD", "/v2/main/accounts", &[], "{").is(400);
}

#[test]
fn unknown_route_answers_with_plain_text() {
    let server = TestServer::with_main();
    for (path, body) in [
        ("/nosuch", "404 page not found"),
        ("/v2/main/nosuch", "404 page not found"),
        ("/api/ledger/v2/main/accounts/a/nosuch", "404 page not found"),
        ("/api/nosuch/x", "Not Found"),
    ] {
        assert_eq!(server.get(path).is(404).body, body, "{path}");
    }
    let wrong = server.send("PATCH", "/v2/main/transactions", &[], "").is(405);
    assert_eq!(wrong.header("allow"), Some("GET, HEAD, POST"));
    server.get("/v2/%zz/accounts").refused(400, "VALIDATION");
}
