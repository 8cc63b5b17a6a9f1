//! The event stream of a ledger: its events, their content, and resuming.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stack_server::Settings;

use crate::client::TestServer;
use crate::skipping::skipped;
use crate::stream::{Block, EventStream};

fn stream(server: &TestServer, query: &str, last: Option<u64>) -> EventStream {
    EventStream::open(server.address, &format!("/v2/main/_events{query}"), last)
}

/// Sends one write of every kind that creates an event, and others in between that create none.
fn write_all_kinds(server: &TestServer) {
    let pay = r#"{"postings":[{"source":"world","destination":"a","amount":5,"asset":"USD"}],"accountMetadata":{"a":{"t":"g"}}}"#;
    server.send("POST", "/v2/main/transactions", &[("Idempotency-Key", "k")], pay).is(200);
    server.send("POST", "/v2/main/transactions", &[("Idempotency-Key", "k")], pay).is(200);
    server.post("/v2/main/transactions?dryRun=true", pay).is(200);
    let poor = r#"{"postings":[{"source":"b","destination":"a","amount":5,"asset":"USD"}]}"#;
    server.post("/v2/main/transactions", poor).refused(400, "INSUFFICIENT_FUND");
    server.send("PUT", "/v2/main/metadata", &[], r#"{"l":"1"}"#).is(204);
    server.post("/v2/main/accounts/a/metadata", r#"{"x":"<y>"}"#).is(204);
    server.post("/v2/main/transactions/1/metadata", r#"{"x":"y"}"#).is(204);
    server.send("DELETE", "/v2/main/accounts/a/metadata/x", &[], "").is(204);
    server.send("DELETE", "/v2/main/transactions/1/metadata/x", &[], "").is(204);
    let bulk = json!([
        {"action":"CREATE_TRANSACTION","data":{"postings":[{"source":"world","destination":"c","amount":1,"asset":"USD"}]}},
        {"action":"CREATE_TRANSACTION","data":{"postings":[{"source":"nobody","destination":"c","amount":1,"asset":"USD"}]}},
    ]);
    server.post("/v2/main/_bulk?atomic=true", &bulk.to_string()).is(400);
    server.post("/v2/main/transactions/1/revert", "").is(201);
}

#[test]
fn only_committed_writes_make_events() {
    let server = TestServer::with_main();
    let mut live = stream(&server, "", None);
    write_all_kinds(&server);
    let events = live.events(6);
    let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
    let expected = [
        "COMMITTED_TRANSACTIONS",
        "SAVED_METADATA",
        "SAVED_METADATA",
        "DELETED_METADATA",
        "DELETED_METADATA",
        "REVERTED_TRANSACTION",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(events.iter().map(|event| event.id).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    for event in &events {
        let envelope = &event.data;
        let members: Vec<_> = envelope.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(members, ["app", "date", "idempotency_key", "payload", "type", "version"]);
        assert_eq!((&envelope["app"], &envelope["version"]), (&json!("ledger"), &json!("v2")));
        assert_eq!((&envelope["idempotency_key"], &envelope["type"]), (&json!(""), &json!(event.kind)));
        assert_eq!(envelope["payload"]["ledger"], "main");
    }
    let payload = |at: usize| &events[at].data["payload"];
    assert_eq!(payload(0)["accountMetadata"], json!({"a":{"t":"g"}}));
    assert_eq!(payload(0)["transactions"][0]["postCommitVolumes"]["a"]["USD"]["balance"], 5);
    assert_eq!(
        payload(1),
        &json!({"ledger":"main","targetType":"ACCOUNT","targetId":"a","metadata":{"x":"<y>"}})
    );
    assert_eq!(payload(2)["targetId"], "1", "an id of a transaction is text");
    assert_eq!(payload(4), &json!({"ledger":"main","targetType":"TRANSACTION","targetId":"1","key":"x"}));
    assert_eq!(payload(5)["revertedTransaction"]["id"], 1);
    assert_eq!(payload(5)["revertedTransaction"]["reverted"], true);
    assert_eq!(payload(5)["revertTransaction"]["reverted"], false);

    // A client that reconnects resumes, even in the middle of a part, and can also start over.
    let again = |query: &str, last| {
        let events = stream(&server, query, last).events(3);
        events.into_iter().map(|event| event.id).collect::<Vec<_>>()
    };
    assert_eq!(again("", Some(2)), [3, 4, 5]);
    assert_eq!(again("?lastEventId=1", None), [2, 3, 4]);
    assert_eq!(again("?from=first", None), [1, 2, 3]);
    assert_eq!(
        again("?from=first&lastEventId=1", Some(3)),
        [4, 5, 6],
        "the header goes before the parameters"
    );
    assert_eq!(again("?from=first&type=SAVED_METADATA,REVERTED_TRANSACTION", None), [2, 3, 6]);
    assert_eq!(again("?from=first&type=SAVED_METADATA&type=REVERTED_TRANSACTION", None), [2, 3, 6]);
}

#[test]
fn refuses_invalid_stream_parameters() {
    let server = TestServer::with_main();
    server.transfer("world", "a", 1, "USD");
    server.get("/v2/nosuch/_events").refused(404, "LEDGER_NOT_FOUND");
    for query in ["?type=NOSUCH", "?from=yesterday", "?lastEventId=x", "?lastEventId=-1", "?lastEventId=%2B1"]
    {
        server.get(&format!("/v2/main/_events{query}")).refused(400, "VALIDATION");
    }
    let refused = server.send("GET", "/v2/main/_events", &[("Last-Event-ID", "2")], "");
    assert!(refused.refused(400, "VALIDATION").contains("beyond the end"));
    assert_eq!(server.post("/v2/main/_events", "").status, 405);
}

#[test]
fn empty_ledger_streams_writes_of_v1_and_v2() {
    let server = TestServer::start();
    server.post("/api/ledger/v2/main", "").is(204);
    let mut first = stream(&server, "?from=first", None);
    let mut zero = stream(&server, "", Some(0));
    server.transfer("world", "a", 1, "USD");
    let batch = r#"{"transactions":[{"postings":[{"source":"world","destination":"a","amount":1,"asset":"USD"}]},
        {"postings":[{"source":"world","destination":"b","amount":1,"asset":"USD"}]}]}"#;
    server.post("/main/transactions/batch", batch).is(200);
    let ids =
        |events: Vec<crate::stream::StreamEvent>| events.iter().map(|event| event.id).collect::<Vec<_>>();
    assert_eq!(ids(first.events(3)), [0, 1, 2], "this ledger counts from 0");
    assert_eq!(ids(zero.events(2)), [1, 2]);
}

#[test]
fn imported_logs_make_no_events() {
    let server = TestServer::with_main();
    server.transfer("world", "a", 7, "USD");
    let exported = server.send("POST", "/v2/main/logs/export", &[], "").is(200).body;
    server.post("/v2/copy", "").is(204);
    let mut copy = EventStream::open(server.address, "/v2/copy/_events?from=first", None);
    server.post("/v2/copy/logs/import", &exported).is(204);
    server.post("/v2/copy/accounts/a/metadata", r#"{"x":"y"}"#).is(204);
    assert_eq!(copy.event().map(|event| event.id), Some(2));
}

#[test]
fn quiet_stream_sends_heartbeats_with_last_id() {
    let mut settings = Settings::default();
    settings.events_heartbeat = Duration::from_millis(20);
    let server = TestServer::with(settings);
    server.post("/v2/main", "").is(204);
    server.post("/v2/other", "").is(204);
    let mut quiet = stream(&server, "?type=REVERTED_TRANSACTION", None);
    assert_eq!(quiet.block(), Some(Block::Other("retry: 1000\n\n".to_owned())));
    assert_eq!(quiet.block(), Some(Block::Other(":\n\n".to_owned())));
    server.transfer("world", "a", 1, "USD");
    let mut beats = std::iter::from_fn(|| quiet.block());
    assert!(
        beats.any(|beat| beat == Block::Other("id: 1\n\n".to_owned())),
        "a reader need not be given it again"
    );
    assert_eq!(quiet.block(), Some(Block::Other(":\n\n".to_owned())));
}

#[test]
fn streams_end_when_the_server_stops() {
    let mut server = TestServer::with_main();
    let mut open = stream(&server, "", None);
    assert!(open.block().is_some());
    let began = Instant::now();
    server.server.take().expect("a running server").stop();
    assert_eq!(open.block(), None);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn limits_number_of_open_streams() {
    let server = TestServer::with_main();
    let mut open: Vec<EventStream> = (0..512).map(|_| stream(&server, "", None)).collect();
    let refused = server.get("/v2/main/_events");
    refused.refused(503, "INTERNAL");
    server.transfer("world", "a", 1, "USD");
    assert!(open.iter_mut().all(|stream| stream.event().is_some_and(|event| event.id == 1)));
    drop(open);
    // The server notices a disconnected client when it writes to it, or earlier.
    let late = Instant::now() + Duration::from_secs(20);
    while EventStream::try_open(server.address, "/v2/main/_events", None).is_err() {
        assert!(Instant::now() < late, "the places are not free again");
        std::thread::yield_now();
    }
}

/// Compares two values, except for dates, which differ in each run.
fn alike(found: &Value, expected: &Value, path: &str) -> Result<(), Box<dyn Error>> {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            let keys = |object: &serde_json::Map<String, Value>| object.keys().cloned().collect::<Vec<_>>();
            if keys(found) != keys(expected) {
                return Err(format!("{path}: {:?} instead of {:?}", keys(found), keys(expected)).into());
            }
            found.iter().try_for_each(|(key, value)| alike(value, &expected[key], &format!("{path}.{key}")))
        }
        (Value::Array(found), Value::Array(expected)) if found.len() == expected.len() => {
            found.iter().zip(expected).try_for_each(|(found, expected)| alike(found, expected, path))
        }
        (Value::String(found), Value::String(expected)) => {
            let is_date = |text: &str| text.starts_with("20") && text.ends_with('Z') && text.contains('T');
            let is_now = |text: &str| is_date(text) && !text.starts_with("2024-");
            if found == expected || is_now(found) && is_now(expected) {
                Ok(())
            } else {
                Err(format!("{path}: {found:?} instead of {expected:?}").into())
            }
        }
        _ if found == expected => Ok(()),
        _ => Err(format!("{path}: {found} instead of {expected}").into()),
    }
}

#[test]
fn events_are_those_that_other_servers_publish() {
    let beside_the_workspace = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/conformance");
    let root = std::env::var_os("CONFORMANCE_DIR").map_or_else(beside_the_workspace, PathBuf::from);
    let Ok(recorded) = std::fs::read(root.join("events/ledger-2.4.json")) else {
        skipped("no conformance data");
        return;
    };
    let steps: Vec<Value> = serde_json::from_slice(&recorded).expect("JSON");
    let server = TestServer::start();
    let mut events: Option<EventStream> = None;
    // On the recorded server refused writes and dry runs use up transaction ids. Here they do not.
    let renumbered = |value: &Value, ids: &[(u64, u64)]| {
        let mut text = value.to_string();
        for (there, here) in ids {
            text = text.replace(&format!("\"id\":{there},"), &format!("\"id\":{here},"));
        }
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    let mut checked = 0;
    for step in &steps {
        let about = step["about"].as_str().expect("a text");
        let request = &step["request"];
        let headers: Vec<(&str, &str)> = request["headers"]
            .as_object()
            .expect("headers")
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str().expect("a text")))
            .collect();
        let body = if request["json"].is_null() { String::new() } else { request["json"].to_string() };
        let path = format!("/v2{}", request["path"].as_str().expect("a path"));
        let answer = server.send(request["method"].as_str().expect("a method"), &path, &headers, &body);
        assert_eq!(
            u64::from(answer.status),
            step["status"].as_u64().expect("a status"),
            "{about}: {answer:?}"
        );
        let events = events
            .get_or_insert_with(|| EventStream::open(server.address, "/v2/ev/_events?from=first", None));
        if step["source_of_expectation"] == "ours" {
            // An idempotent replay publishes nothing. The events of the next step show that.
            continue;
        }
        for expected in step["events"].as_array().expect("a list") {
            let expected = renumbered(&expected["payload"], &[(3, 2), (4, 3), (5, 4)]);
            let found = events.event().expect("the stream goes on");
            alike(&found.data, &expected, about).unwrap_or_else(|difference| panic!("{difference}"));
            checked += 1;
        }
    }
    assert!(checked >= 9, "{checked} events");
}
