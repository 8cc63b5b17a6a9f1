//! Refusals of v1: their status, code and text. A refusal changes nothing.

use serde_json::{Value, json};

use crate::client::{Answer, TestServer};

const BASE: &str = "/api/ledger/old";

fn posting(source: &str, destination: &str, amount: &str, asset: &str) -> String {
    format!(r#"{{"source":"{source}","destination":"{destination}","amount":{amount},"asset":"{asset}"}}"#)
}

/// Starts a server with two transactions. Transaction 0 has the reference `taken`, and cannot be reverted because
/// transaction 1 spent its money. Transaction 1 can be reverted.
fn server() -> TestServer {
    let server = TestServer::start();
    let first = posting("world", "till", "9", "CHF/2");
    let body = format!(r#"{{"postings":[{first}],"reference":"taken"}}"#);
    server.post(&format!("{BASE}/transactions"), &body).is(200);
    let spent = format!(r#"{{"postings":[{}]}}"#, posting("till", "safe", "9", "CHF/2"));
    server.post(&format!("{BASE}/transactions"), &spent).is(200);
    server
}

/// Checks a refusal and returns its message. The older members `error_code` and `error_message` must repeat the newer
/// `errorCode` and `errorMessage`.
#[track_caller]
fn refused(answer: Answer, status: u16, code: &str) -> String {
    let json = answer.json();
    assert_eq!(json["error_code"], json["errorCode"], "{answer:?}");
    assert_eq!(json["error_message"], json["errorMessage"], "{answer:?}");
    answer.refused(status, code)
}

/// Returns all state that a refusal could have changed.
fn state(server: &TestServer) -> Value {
    let read = |path: &str| server.get(&format!("{BASE}/{path}")).is(200).json();
    let ledgers = server.get("/_info").is(200).json()["data"]["config"].clone();
    json!([read("logs"), read("balances"), read("accounts"), read("stats"), read("mapping"), ledgers])
}

/// A refused write: method, path, body, status, code and the beginning of the message.
type RefusedWrite = (&'static str, &'static str, String, u16, &'static str, &'static str);

fn one(posting: &str) -> String {
    format!(r#"{{"postings":[{posting}]}}"#)
}

fn batch(bodies: &[String]) -> String {
    format!(r#"{{"transactions":[{}]}}"#, bodies.join(","))
}

fn good() -> String {
    posting("world", "a", "1", "CHF")
}

fn refused_transactions() -> Vec<RefusedWrite> {
    vec![
        ("POST", "transactions", "[]".to_owned(), 400, "VALIDATION", "invalid transaction format"),
        (
            "POST",
            "transactions",
            one(&posting("a", "b", "\"1\"", "CHF")),
            400,
            "VALIDATION",
            "invalid transaction format",
        ),
        (
            "POST",
            "transactions",
            "{}".to_owned(),
            400,
            "VALIDATION",
            "invalid payload: should contain either postings or script",
        ),
        (
            "POST",
            "transactions",
            format!(r#"{{"postings":[{}],"script":{{"plain":"x"}}}}"#, good()),
            400,
            "VALIDATION",
            "invalid payload: should contain either postings or script",
        ),
    ]
}

fn refused_postings() -> Vec<RefusedWrite> {
    let named = format!(r#"{{"postings":[{}],"reference":"taken"}}"#, posting("poor", "a", "1", "CHF"));
    vec![
        (
            "POST",
            "transactions",
            one(&posting("a", "b", "-1", "chf")),
            400,
            "VALIDATION",
            "invalid posting 0: negative amount",
        ),
        (
            "POST",
            "transactions",
            one(&posting("a", "b", "null", "CHF")),
            400,
            "VALIDATION",
            "invalid posting 0: no amount defined",
        ),
        (
            "POST",
            "transactions",
            one(&format!("{},{}", good(), posting("a.b", "c.d", "1", "chf"))),
            400,
            "VALIDATION",
            "invalid posting 1: invalid source address",
        ),
        (
            "POST",
            "transactions",
            one(&posting("a", "c.d", "1", "chf")),
            400,
            "VALIDATION",
            "invalid posting 0: invalid destination address",
        ),
        (
            "POST",
            "transactions",
            one(&posting("a", "c", "1", "chf")),
            400,
            "VALIDATION",
            "invalid posting 0: invalid asset",
        ),
        (
            "POST",
            "transactions",
            one(&posting("poor", "a", "1", "CHF")),
            400,
            "INSUFFICIENT_FUND",
            "balance.insufficient.CHF",
        ),
        // The reference is checked before the funds.
        ("POST", "transactions", named, 409, "CONFLICT", "conflict error on reference"),
    ]
}

fn refused_batches() -> Vec<RefusedWrite> {
    vec![
        ("POST", "transactions/batch", "{}".to_owned(), 400, "VALIDATION", "invalid transactions format"),
        (
            "POST",
            "transactions/batch",
            r#"{"transactions":null}"#.to_owned(),
            400,
            "VALIDATION",
            "invalid transactions format",
        ),
        ("POST", "transactions/batch", batch(&[]), 400, "VALIDATION", "no transaction to insert"),
        (
            "POST",
            "transactions/batch",
            batch(&[one(&good()), "{}".to_owned()]),
            400,
            "VALIDATION",
            "invalid transaction 1: no postings",
        ),
        (
            "POST",
            "transactions/batch",
            batch(&[one(&good()), one(&posting("a", "b", "-7", "CHF"))]),
            400,
            "VALIDATION",
            "invalid transaction 1: posting 0: negative amount",
        ),
        (
            "POST",
            "transactions/batch",
            batch(&[one(&good()), one(&posting("a", "b", "2", "CHF"))]),
            400,
            "INSUFFICIENT_FUND",
            "balance.insufficient.CHF",
        ),
    ]
}

fn other_refused_writes() -> Vec<RefusedWrite> {
    vec![
        ("POST", "transactions/x/revert", String::new(), 400, "VALIDATION", "invalid transaction ID"),
        ("POST", "transactions/+1/revert", String::new(), 400, "VALIDATION", "invalid transaction ID"),
        ("POST", "transactions/7/revert", String::new(), 404, "NOT_FOUND", "transaction 7 not found"),
        (
            "POST",
            "transactions/0/revert",
            String::new(),
            400,
            "INSUFFICIENT_FUND",
            "executing revert script for transaction 0: balance.insufficient.CHF/2",
        ),
        ("POST", "transactions/x/metadata", "[]".to_owned(), 400, "VALIDATION", "invalid metadata format"),
        ("POST", "transactions/x/metadata", "{}".to_owned(), 400, "VALIDATION", "invalid transaction ID"),
        ("POST", "transactions/7/metadata", "{}".to_owned(), 404, "NOT_FOUND", "transaction not found"),
        ("DELETE", "transactions/7/metadata/k", String::new(), 404, "NOT_FOUND", "transaction not found"),
        (
            "POST",
            "accounts/a..b/metadata",
            "[]".to_owned(),
            400,
            "VALIDATION",
            "invalid account address format",
        ),
        ("POST", "accounts/a/metadata", "null".to_owned(), 400, "VALIDATION", "invalid metadata format"),
        ("PUT", "mapping", "[".to_owned(), 400, "VALIDATION", "invalid mapping format: "),
        (
            "PUT",
            "mapping",
            r#"{"contracts":[{"account":"a"}]}"#.to_owned(),
            400,
            "VALIDATION",
            "contracts[0].expr: malformed expression",
        ),
        (
            "PUT",
            "mapping",
            r#"{"contracts":[{"account":"(","expr":{}}]}"#.to_owned(),
            400,
            "VALIDATION",
            "contracts[0].account: invalid account pattern: ",
        ),
        ("POST", "script", "[".to_owned(), 400, "VALIDATION", "invalid transaction format"),
    ]
}

#[test]
fn refused_write_names_reason_and_changes_nothing() {
    let server = server();
    let before = state(&server);
    let writes =
        [refused_transactions(), refused_postings(), refused_batches(), other_refused_writes()].concat();
    for (method, path, body, status, code, message) in writes {
        let answer = server.send(method, &format!("{BASE}/{path}"), &[], &body);
        let text = refused(answer, status, code);
        assert!(text.starts_with(message), "{method} {path} {body}: {text}");
    }
    let script = server.post(&format!("{BASE}/script"), r#"{"plain":""}"#).is(200).json();
    assert_eq!(script["errorCode"], "NO_SCRIPT");
    assert_eq!(script["transaction"]["postings"], json!([]));
    assert_eq!(state(&server), before);
}

#[test]
fn a_refused_read_says_why() {
    let server = server();
    for (path, status, code, message) in [
        ("accounts/a..b", 400, "VALIDATION", "invalid account address format"),
        ("accounts?balance=x", 400, "VALIDATION", "invalid parameter 'balance', should be a number"),
        ("accounts?balance=9223372036854775808", 400, "VALIDATION", "invalid parameter 'balance'"),
        (
            "accounts?balance_operator=is",
            400,
            "VALIDATION",
            "invalid parameter 'balance_operator', should be one of",
        ),
        ("accounts?balance=x&pageSize=x", 400, "VALIDATION", "invalid parameter 'balance'"),
        ("accounts?address=(", 400, "VALIDATION", "invalid address pattern: "),
        ("balances?address=%5B", 400, "VALIDATION", "invalid address pattern: "),
        ("aggregate/balances?address=a**", 200, "", ""),
        ("aggregate/balances?address=%2B", 400, "VALIDATION", "invalid address pattern: "),
        ("transactions/x", 400, "VALIDATION", "invalid transaction ID"),
        ("transactions/9", 404, "NOT_FOUND", "transaction not found"),
        ("transactions?after=-1", 400, "VALIDATION", "invalid 'after' query param"),
        ("transactions?after=18446744073709551616", 400, "VALIDATION", "invalid 'after' query param"),
        ("transactions?start_time=x", 400, "VALIDATION", "invalid 'start_time' query param"),
        (
            "transactions?startTime=2020-01-01T00:00:00Z&start_time=x",
            400,
            "VALIDATION",
            "invalid 'start_time' query param",
        ),
        ("logs?endTime=x", 400, "VALIDATION", "invalid 'endTime' query param"),
        ("logs?page_size=x", 400, "VALIDATION", "invalid 'page_size' query param"),
        ("logs?pageSize=4294967296", 400, "VALIDATION", "invalid 'pageSize' query param"),
        ("logs?cursor=x", 400, "VALIDATION", "invalid 'cursor' query param"),
        ("logs?pagination_token=x", 400, "VALIDATION", "invalid 'pagination_token' query param"),
        (
            "logs?pagination_token=x&after=1",
            400,
            "VALIDATION",
            "no other query params can be set with 'pagination_token'",
        ),
    ] {
        let answer = server.get(&format!("{BASE}/{path}"));
        if status == 200 {
            answer.is(200);
            continue;
        }
        let text = refused(answer, status, code);
        assert!(text.starts_with(message), "{path}: {text}");
    }
    server.send("HEAD", &format!("{BASE}/transactions?endTime=x"), &[], "").is(400);
    server.send("HEAD", &format!("{BASE}/accounts?address=("), &[], "").is(400);
    let text = refused(server.get("/a.b/stats"), 400, "VALIDATION");
    assert!(text.starts_with("invalid ledger name 'a.b': name must match format"), "{text}");
}

#[test]
fn a_body_too_large_is_refused_in_the_same_form() {
    let server = server();
    let body = " ".repeat(4 * 1_024 * 1_024 + 1);
    refused(server.post(&format!("{BASE}/transactions"), &body), 413, "VALIDATION");
}

#[test]
fn patterns_are_bounded_in_length_and_size() {
    let server = server();
    let long = "a".repeat(600) + ".";
    for pattern in ["(a%7B1000%7D)%7B1000%7D", long.as_str(), "%5CpL%7B500%7D"] {
        for path in ["accounts?address", "transactions?account", "balances?address"] {
            refused(server.get(&format!("{BASE}/{path}={pattern}")), 400, "VALIDATION");
        }
    }
}

#[test]
fn refuses_backdated_write_and_names_both_dates() {
    let mut settings = stack_server::Settings::default();
    settings.past_dates = ledger_core::PastDates::Refuse;
    let server = TestServer::with(settings);
    let dated = |at: &str| {
        let posting = posting("world", "a", "1", "CHF");
        server.post(
            &format!("{BASE}/transactions"),
            &format!(r#"{{"postings":[{posting}],"timestamp":"{at}"}}"#),
        )
    };
    dated("2031-05-01T12:00:00Z").is(200);
    dated("2031-05-01T12:00:00Z").is(200);
    let text = refused(dated("2031-05-01T10:59:30Z"), 400, "VALIDATION");
    let expected = "cannot pass a timestamp prior to the last transaction: 2031-05-01T10:59:30Z (passed) is 1h0m30s \
                    before 2031-05-01T12:00:00Z (last)";
    assert_eq!(text, expected);
    // A revert has the current date.
    refused(server.post(&format!("{BASE}/transactions/0/revert"), ""), 400, "VALIDATION");
}

#[test]
fn taken_references_conflict_for_every_kind_of_write() {
    let server = server();
    let named = |reference: &str| {
        format!(r#"{{"postings":[{}],"reference":"{reference}"}}"#, posting("world", "a", "1", "CHF"))
    };
    server.post(&format!("{BASE}/transactions"), &named("revert_mine")).is(200);
    server.post(&format!("{BASE}/transactions"), &named("mine")).is(200);
    let before = state(&server);
    let twice = format!(r#"{{"transactions":[{0},{0}]}}"#, named("fresh"));
    let late = format!(r#"{{"transactions":[{},{}]}}"#, named("fresh"), named("taken"));
    for (path, body) in [
        // Transaction 3 has the reference `mine`, so its revert would get the reference `revert_mine`.
        ("transactions/3/revert", ""),
        ("transactions/3/revert?disableChecks=true", ""),
        ("transactions/batch", twice.as_str()),
        ("transactions/batch", late.as_str()),
        ("transactions?preview=true", named("mine").as_str()),
    ] {
        let text = refused(server.post(&format!("{BASE}/{path}"), body), 409, "CONFLICT");
        assert_eq!(text, "conflict error on reference", "{path}");
    }
    assert_eq!(state(&server), before);
    // A refused batch has not used its reference.
    server.post(&format!("{BASE}/transactions"), &named("fresh")).is(200);
}

#[test]
fn refuses_second_revert() {
    let server = server();
    let path = format!("{BASE}/transactions/1/revert");
    server.post(&path, "").is(201);
    let before = state(&server);
    for query in ["", "?disableChecks=true"] {
        let text = refused(server.post(&format!("{path}{query}"), ""), 400, "VALIDATION");
        assert_eq!(text, "transaction 1 already reverted");
    }
    assert_eq!(state(&server), before);
    // The revert is an ordinary transaction.
    server.post(&format!("{BASE}/transactions/2/revert"), "").is(201);
}

#[test]
fn refuses_unknown_paths_and_methods() {
    let server = server();
    for path in ["/old", "/old/nothing", "/api/ledger/old", "/old/accounts/a/b/c", "/old/script/x"] {
        server.get(path).is(404);
    }
    for (method, path) in
        [("DELETE", "transactions/1"), ("PUT", "script"), ("POST", "logs"), ("PUT", "stats")]
    {
        server.send(method, &format!("{BASE}/{path}"), &[], "").is(405);
    }
}
