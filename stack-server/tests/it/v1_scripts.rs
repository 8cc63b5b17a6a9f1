//! Scripts of v1: in a create, and at `/script`.

use serde_json::{Value, json};
use stack_server::Settings;

use crate::client::TestServer;

/// Builds the body of a create with a script.
fn create(plain: &str, variables: &Value, others: &Value) -> String {
    let mut body = json!({"script": {"plain": plain, "vars": variables}});
    for (name, value) in others.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    body.to_string()
}

/// Builds the body of `/script`.
fn run(plain: &str, variables: &Value, others: &Value) -> String {
    let mut body = json!({"plain": plain, "vars": variables});
    for (name, value) in others.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    body.to_string()
}

const PAY: &str = "vars { account $to monetary $sum } send $sum (source = @world destination = $to)";

fn log_head(server: &TestServer) -> Value {
    json!([
        server.get("/old/logs?pageSize=1").is(200).json(),
        server.get("/old/balances").is(200).json(),
        server.get("/old/stats").is(200).json(),
    ])
}

#[test]
fn both_routes_record_the_same_transaction() {
    let server = TestServer::start();
    let variables = json!({"to": "users:7", "sum": {"asset": "GEM/3", "amount": 41}});
    let others =
        json!({"reference": "gift", "metadata": {"n": {"deep": [1]}}, "timestamp": "2021-02-03T04:05:06Z"});
    let made = server.post("/old/transactions", &create(PAY, &variables, &others)).is(200).json();
    let run = server.post("/other/script", &run(PAY, &variables, &others)).is(200).json();
    assert_eq!(run, json!({"transaction": made["data"][0]}));
    assert_eq!(run["transaction"]["metadata"], others["metadata"]);
    assert_eq!(run["transaction"]["timestamp"], others["timestamp"]);
    assert_eq!(run["transaction"]["postCommitVolumes"]["users:7"]["GEM/3"]["balance"], 41);
    for ledger in ["old", "other"] {
        let read = server.get(&format!("/{ledger}/transactions/0")).is(200).json();
        assert_eq!(read["data"], run["transaction"]);
    }
}

#[test]
fn a_script_obeys_its_own_clauses_and_no_contract() {
    let server = TestServer::start();
    let mapping = r#"{"contracts":[{"account":"credit:*","expr":{"$gte":["$balance",-9]}},
        {"account":"frozen","expr":{"$gte":["$balance",1000]}}]}"#;
    server.send("PUT", "/old/mapping", &[], mapping).is(200);
    let send = |from: &str| {
        let plain = format!("send [GEM 5] (source = @{from} destination = @shop)");
        server.post("/old/transactions", &create(&plain, &json!({}), &json!({})))
    };
    send("credit:1").refused(400, "INSUFFICIENT_FUND");
    send("credit:1 allowing unbounded overdraft").is(200);
    send("credit:1 allowing unbounded overdraft").is(200);
    server.post("/old/script", &run(PAY, &json!({"to": "frozen", "sum": "GEM 5"}), &json!({}))).is(200);
    send("frozen").is(200);
    assert_eq!(server.get("/old/accounts/credit:1").json()["data"]["balances"]["GEM"], -10);
}

#[test]
fn script_metadata_is_plain_text() {
    let server = TestServer::start();
    let plain = r#"
        vars { monetary $sum portion $cut }
        send $sum (source = @world destination = @till)
        set_tx_meta("text", "a") set_tx_meta("sum", $sum) set_tx_meta("cut", $cut) set_tx_meta("count", 3)
        set_account_meta(@till, "owner", @users:1)
    "#;
    let variables = json!({"sum": {"asset": "GEM", "amount": "12"}, "cut": "25%"});
    let made =
        server.post("/old/transactions", &create(plain, &variables, &json!({"metadata": {"own": true}})));
    let expected = json!({"text": "a", "sum": "GEM 12", "cut": "1/4", "count": "3", "own": true});
    assert_eq!(made.is(200).json()["data"][0]["metadata"], expected);
    assert_eq!(server.get("/old/accounts/till").json()["data"]["metadata"], json!({"owner": "users:1"}));
    let logs = server.get("/old/logs").is(200).json();
    assert_eq!(logs["cursor"]["data"].as_array().map(Vec::len), Some(1), "{logs}");
}

#[test]
fn scripts_read_typed_metadata_of_v1() {
    let server = TestServer::start();
    let typed = json!({
        "to": {"type": "account", "value": "sink"},
        "fee": {"type": "portion", "value": {"remaining": false, "specific": "1/4"}},
        "sum": {"type": "monetary", "value": {"asset": "GEM", "amount": 8}},
    });
    server.post("/old/accounts/rules/metadata", &typed.to_string()).is(204);
    let plain = r#"vars { account $to = meta(@rules, "to") portion $fee = meta(@rules, "fee")
        monetary $sum = meta(@rules, "sum") }
        send $sum (source = @world destination = { $fee to $to remaining to @rest })"#;
    let made = server.post("/old/script", &run(plain, &json!({}), &json!({}))).is(200).json();
    let amounts: Vec<&Value> = made["transaction"]["postings"]
        .as_array()
        .expect("postings")
        .iter()
        .map(|posting| &posting["amount"])
        .collect();
    assert_eq!(amounts, [2, 6], "{made}");
}

/// A refused script: its text, its variables, other members of the request, code, the beginning of the message, and
/// whether the answer of the route `transactions` has a link to a description.
type RefusedScript = (&'static str, Value, Value, &'static str, &'static str, bool);

const NO_SEND: &str = "send [GEM 0] (source = @world destination = @b)";
const EMPTY_SEND: &str = "send [GEM *] (source = @poor destination = @b)";

fn refused_scripts() -> Vec<RefusedScript> {
    let taken = || json!({"reference": "taken"});
    let poor = "send [GEM 2] (source = @a destination = @b)";
    let keyed = "send [GEM 1] (source = @a destination = @b) set_tx_meta(\"k\", 1)";
    let none = || json!({});
    vec![
        ("send [GEM 1", none(), none(), "COMPILATION_FAILED", "1:", true),
        (poor, none(), none(), "INSUFFICIENT_FUND", "account had insufficient funds", true),
        (
            keyed,
            none(),
            json!({"metadata": {"k": 0}}),
            "METADATA_OVERRIDE",
            "cannot override metadata from script",
            true,
        ),
        (
            PAY,
            json!({"to": "a"}),
            none(),
            "COMPILATION_FAILED",
            "could not set variables: missing variable $sum",
            true,
        ),
        (
            PAY,
            json!({"to": "a", "sum": "GEM 1", "x": "1"}),
            none(),
            "COMPILATION_FAILED",
            "could not set variables: extraneous variable $x",
            true,
        ),
        (
            PAY,
            json!({"to": "a", "sum": [1]}),
            none(),
            "COMPILATION_FAILED",
            "could not set variables: invalid value of variable $sum",
            true,
        ),
        (
            PAY,
            json!({"to": 7, "sum": "GEM 1"}),
            none(),
            "COMPILATION_FAILED",
            "could not set variables: invalid value of variable $to",
            true,
        ),
        (
            "vars { account $x = meta(@a, \"k\") } send [GEM 1] (source = @world destination = $x)",
            none(),
            none(),
            "COMPILATION_FAILED",
            "could not resolve program resources: ",
            true,
        ),
        ("fail", none(), none(), "COMPILATION_FAILED", "1:1 ", true),
        ("set_tx_meta(\"k\", 1)", none(), none(), "VALIDATION", "transaction has no postings", false),
        (NO_SEND, none(), none(), "VALIDATION", "transaction has no postings", false),
        (EMPTY_SEND, none(), none(), "VALIDATION", "transaction has no postings", false),
        // The reference is checked before the script, its variables and its funds.
        (poor, none(), taken(), "CONFLICT", "conflict error on reference", false),
        ("nonsense", none(), taken(), "CONFLICT", "conflict error on reference", false),
        (PAY, json!({"to": true}), taken(), "CONFLICT", "conflict error on reference", false),
    ]
}

#[test]
fn refused_script_has_form_of_route_changes_nothing() {
    let server = TestServer::start();
    let first = json!({"reference": "taken"});
    server.post("/old/script", &run(PAY, &json!({"to": "a", "sum": "GEM 1"}), &first)).is(200);
    let before = log_head(&server);
    for (plain, variables, others, code, text, has_link) in refused_scripts() {
        let status = if code == "CONFLICT" { 409 } else { 400 };
        let answer = server.post("/old/transactions", &create(plain, &variables, &others));
        let details = answer.json().get("details").is_some();
        let message = answer.refused(status, code);
        let prefix = if has_link { format!("[{code}] {text}") } else { text.to_owned() };
        assert!(message.starts_with(&prefix), "{plain}: {message}");
        assert_eq!(details, has_link, "{plain}");

        let answer = server.post("/old/script", &run(plain, &variables, &others)).is(200).json();
        assert_eq!([&answer["errorCode"], &answer["error_code"]], [code, code], "{plain}");
        let message = answer["errorMessage"].as_str().expect("a text");
        assert!(message.starts_with(text), "{plain}: {message}");
        assert_eq!(answer["error_message"], message);
        // At this route a conflict has a link too.
        assert_eq!(answer.get("details").is_some(), code != "VALIDATION", "{plain}");
        let zero = json!({"postings": [], "reference": "", "metadata": {}, "txid": 0,
            "timestamp": "0001-01-01T00:00:00Z"});
        assert_eq!(answer["transaction"], zero);
    }
    let empty = server.post("/old/script", &run("", &json!({}), &json!({}))).is(200).json();
    assert_eq!([&empty["errorCode"], &empty["errorMessage"]], ["NO_SCRIPT", "no script to execute"]);
    assert!(empty["details"].is_string());
    for body in ["[", "[]", "", r#"{"plain":1}"#, r#"{"plain":"fail","vars":[]}"#, r#"{"timestamp":"x"}"#] {
        server.post("/old/script", body).refused(400, "VALIDATION");
    }
    for script in [r#""fail""#, "[]", r#"{"plain":"fail","vars":1}"#] {
        let message = server.post("/old/transactions", &format!(r#"{{"script":{script}}}"#));
        let message = message.refused(400, "VALIDATION");
        assert!(message.starts_with("invalid transaction format: script"), "{message}");
    }
    assert_eq!(log_head(&server), before);
}

#[test]
fn refuses_invalid_date_before_running_script() {
    let mut settings = Settings::default();
    settings.past_dates = ledger_core::PastDates::Refuse;
    let server = TestServer::with(settings);
    let variables = json!({"to": "a", "sum": "GEM 1"});
    let at = |date: &str| json!({"timestamp": date, "reference": "r"});
    server.post("/old/script", &run(PAY, &variables, &at("2031-01-01T00:00:00Z"))).is(200);
    let late = server.post("/old/script", &run("nonsense", &json!({}), &at("2030-01-01T00:00:00Z")));
    let late = late.is(200).json();
    assert_eq!(late["errorCode"], "VALIDATION");
    let text = late["errorMessage"].as_str().expect("a text");
    assert!(text.starts_with("cannot pass a timestamp prior to the last transaction"), "{text}");
    let text = server
        .post("/old/transactions", &create("nonsense", &json!({}), &json!({})))
        .refused(400, "VALIDATION");
    assert!(text.starts_with("cannot pass a timestamp"), "{text}");
}

#[test]
fn keys_and_previews_work_as_with_postings() {
    let server = TestServer::start();
    let body = run(PAY, &json!({"to": "a", "sum": "GEM 1"}), &json!({}));
    let preview = server.post("/old/script?preview=yes", &body).is(200).json();
    assert_eq!(preview["transaction"]["txid"], 0);
    assert_eq!(server.get("/old/stats").json()["data"]["transactions"], 0);
    let key = [("Idempotency-Key", "k")];
    let first = server.send("POST", "/old/script", &key, &body).is(200);
    let again = server.send("POST", "/old/script", &key, &body).is(200);
    assert_eq!(again.json(), first.json());
    assert_eq!([first.header("idempotency-hit"), again.header("idempotency-hit")], [None, Some("true")]);
    server.send("POST", "/old/script", &key, &body.replace("GEM 1", "GEM 2")).refused(400, "VALIDATION");
    // A refusal does not use its key: the same request runs again.
    let poor = run("send [GEM 1] (source = @b destination = @c)", &json!({}), &json!({}));
    let other = [("Idempotency-Key", "other")];
    let refused = server.send("POST", "/old/script", &other, &poor).is(200).json();
    assert_eq!(refused["errorCode"], "INSUFFICIENT_FUND");
    server.post("/old/script", &body.replace("\"a\"", "\"b\"")).is(200);
    let done = server.send("POST", "/old/script", &other, &poor).is(200);
    assert_eq!(done.header("idempotency-hit"), None);
    assert_eq!(done.json()["transaction"]["txid"], 2);
}

#[test]
fn a_batch_has_no_scripts() {
    let server = TestServer::start();
    let script = r#"{"plain":"send [GEM 1] (source = @world destination = @a)"}"#;
    let text =
        server.post("/old/transactions/batch", &format!(r#"{{"transactions":[{{"script":{script}}}]}}"#));
    assert_eq!(text.refused(400, "VALIDATION"), "invalid transaction 0: no postings");
    // A batch ignores fields that it does not read.
    let posting = r#"{"source":"world","destination":"a","amount":1,"asset":"GEM"}"#;
    let batch = format!(r#"{{"transactions":[{{"postings":[{posting}],"script":[7]}}]}}"#);
    server.post("/old/transactions/batch", &batch).is(200);
}
