//! Export and import of whole logs.

use std::io::{ErrorKind, Read as _, Write as _};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stack_server::Settings;

use crate::client::{Answer, TestServer};

/// Starts a server with a ledger. The ledger has entries of all kinds, too many for one part of an export or an import.
fn filled() -> TestServer {
    let server = TestServer::with_main();
    for batch in 0..9 {
        let elements: Vec<Value> = (0..90)
            .map(|at| {
                json!({"action":"CREATE_TRANSACTION","ik":format!("key-{batch}-{at}"),"data":{
                    "postings":[{"source":"world","destination":format!("users:{at}"),"amount":batch + 1,"asset":"USD/2"}],
                    "reference":format!("<{batch}>{at}"),"metadata":{"note":"x".repeat(300)}}})
            })
            .collect();
        server.post("/v2/main/_bulk", &json!(elements).to_string()).is(200);
    }
    server.post("/v2/main/transactions/5/revert", "").is(201);
    server.post("/v2/main/transactions/7/metadata", r#"{"k":"v"}"#).is(204);
    server.send("DELETE", "/v2/main/transactions/7/metadata/k", &[], "").is(204);
    server.post("/v2/main/accounts/users:1/metadata", r#"{"k":"v"}"#).is(204);
    server
}

fn export(server: &TestServer, ledger: &str) -> String {
    let answer = server.post(&format!("/v2/{ledger}/logs/export"), "").is(200);
    assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
    answer.body
}

#[test]
fn import_of_export_makes_equal_ledger() {
    let server = filled();
    let logs = export(&server, "main");
    assert_eq!(logs.lines().count(), 814);
    server.post("/v2/copy", "{}").is(204);
    assert_eq!(export(&server, "copy"), "");
    server.post("/v2/copy/logs/import", &logs).is(204);
    assert_eq!(export(&server, "copy"), logs);
    for question in ["stats", "aggregate/balances", "transactions/5", "accounts/users:1?expand=volumes"] {
        let of = |ledger: &str| server.get(&format!("/v2/{ledger}/{question}")).is(200).json();
        assert_eq!(of("copy"), of("main"), "{question}");
    }
    // The key of an imported log counts as used: a repeated request gets the recorded outcome.
    let again = server.post(
        "/v2/copy/transactions",
        r#"{"postings":[{"source":"world","destination":"a","amount":1,"asset":"USD"}]}"#,
    );
    assert_eq!(again.is(200).json()["data"]["id"], 812);
    let refused = server.post("/v2/copy/logs/import", &logs).is(400).json();
    assert_eq!(refused["errorCode"], "IMPORT");
    assert_eq!(refused["errorMessage"], "importing logs: ledger is not in initializing state");
}

/// A request with an idempotency key: method, path below the ledger, and body.
type Keyed = (&'static str, &'static str, &'static str);

#[test]
fn imported_keys_replay_outcome_whatever_their_hash() {
    let server = TestServer::with_main();
    let requests: [Keyed; 5] = [
        (
            "POST",
            "transactions",
            r#"{"postings":[{"source":"world","destination":"a","amount":1,"asset":"USD"}]}"#,
        ),
        ("POST", "transactions/1/revert", ""),
        ("POST", "transactions/1/metadata", r#"{"k":"v"}"#),
        ("POST", "accounts/a/metadata", r#"{"k":"v"}"#),
        ("DELETE", "accounts/a/metadata/k", ""),
    ];
    let send = |ledger: &str, key: usize, (method, path, body): Keyed| {
        let keyed = [("Idempotency-Key", &*format!("key-{key}"))];
        server.send(method, &format!("/v2/{ledger}/{path}"), &keyed, body)
    };
    let first = requests.iter().enumerate().map(|(key, request)| send("main", key, *request));
    let first: Vec<_> = first.collect();
    let logs = export(&server, "main");
    // Use the hash of another server, and the empty hash of an old server that did not store any.
    for (ledger, hash) in [("foreign", r#""idempotencyHash":"c2hhMjU2""#), ("old", r#""idempotencyHash":"""#)]
    {
        let told = logs.lines().map(|log| {
            let at = log.find(r#""idempotencyHash":""#).expect("a hash");
            let end = at + log[at..].find("\",\"id\"").expect("its end");
            format!("{}{hash}{}", &log[..at], &log[end + 1..])
        });
        let told: Vec<String> = told.collect();
        server.post(&format!("/v2/{ledger}"), "{}").is(204);
        server.post(&format!("/v2/{ledger}/logs/import"), &told.join("\n")).is(204);
        for key in 0..requests.len() {
            for (at, request) in requests.iter().enumerate() {
                let answer = send(ledger, key, *request);
                if at == key {
                    assert_eq!((&answer.body, answer.status), (&first[at].body, first[at].status));
                    assert_eq!(answer.header("idempotency-hit"), Some("true"));
                } else {
                    answer.refused(400, "VALIDATION");
                }
            }
        }
        send(ledger, 1, ("POST", "transactions/7/revert", "")).refused(400, "VALIDATION");
        let v1_headers = [("Idempotency-Key", "key-3")];
        let body = requests[0].2;
        server.send("POST", &format!("/{ledger}/transactions"), &v1_headers, body).refused(400, "VALIDATION");
        assert_eq!(export(&server, ledger).lines().count(), requests.len());
    }
}

#[test]
fn import_stops_at_first_fault_and_can_resume() {
    let server = filled();
    let logs = export(&server, "main");
    let lines: Vec<&str> = logs.lines().collect();
    server.post("/v2/copy", "{}").is(204);
    let import = |text: &str| server.post("/v2/copy/logs/import", text);
    let code_and_text = |text: &str| {
        let refused = import(text).is(400).json();
        assert_eq!(refused["errorCode"], "IMPORT", "{refused}");
        refused["errorMessage"].as_str().expect("a text").to_owned()
    };
    let changed = lines[740].replace("\"amount\":9", "\"amount\":8");
    let text = code_and_text(&logs.replace(lines[740], &changed));
    assert!(text.contains("invalid hash") && text.ends_with("for log 741"), "{text}");
    assert_eq!(export(&server, "copy").lines().count(), 740, "those before it stay");
    assert_eq!(code_and_text(lines[3]), "importing logs: log 4 already exists");
    assert!(code_and_text(&lines[740][..50]).starts_with("importing logs: EOF"));
    code_and_text("{nonsense");
    code_and_text("[]");
    code_and_text(r#"{"type":"OTHER","id":900,"date":"2024-05-01T00:00:00Z","data":{}}"#);
    code_and_text(&lines[740].replace("741", "-1"));
    assert_eq!(export(&server, "copy").lines().count(), 740, "what is refused changes nothing");
    import("").is(204);
    import(&lines[740..].join(" ")).is(204);
    assert_eq!(export(&server, "copy"), logs);
    server.post("/v2/nosuch/logs/import", &logs).is(404);
    server.post("/v2/nosuch/logs/export", "").is(404);
}

#[test]
fn imports_log_in_many_parts_and_refuses_endless_one() {
    let server = TestServer::with_main();
    let postings: Vec<Value> = (0..5_000)
        .map(|at| json!({"source":"world","destination":format!("users:{at}"),"amount":1,"asset":"USD"}))
        .collect();
    server.post("/v2/main/transactions", &json!({ "postings": postings }).to_string()).is(200);
    let logs = export(&server, "main");
    assert!(logs.len() > 1 << 20, "{}", logs.len());
    server.post("/v2/copy", "{}").is(204);
    server.post("/v2/copy/logs/import", &logs).is(204);
    assert_eq!(export(&server, "copy"), logs);
    let endless = format!("{{\"type\":\"{}", "x".repeat(33 << 20));
    server.post("/v2/other", "{}").is(204);
    let refused = server.post("/v2/other/logs/import", &endless).is(400).json();
    assert_eq!(refused["errorCode"], "IMPORT");
}

#[test]
fn client_that_reads_late_gets_import_refusal() {
    let server = filled();
    let logs = export(&server, "main");
    let long = logs.repeat((48 << 20) / logs.len());
    server.post("/v2/main/logs/import", &long).refused(400, "IMPORT");
}

/// Begins an import into the ledger `copy`, and returns the response. If `rest` is not empty, the client sends it again
/// and again until then, or else it sends nothing more.
fn begin_import(server: &TestServer, begin: &str, rest: &str) -> Answer {
    let mut stream = server.connect();
    let head = "POST /v2/copy/logs/import HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n";
    stream.write_all(format!("{head}{begin}").as_bytes()).expect("sent");
    stream.set_read_timeout(Some(Duration::from_millis(10))).expect("a timeout");
    let late = Instant::now() + Duration::from_secs(20);
    let (mut bytes, mut part) = (Vec::new(), [0; 4_096]);
    loop {
        match stream.read(&mut part) {
            Ok(len) if len > 0 => bytes.extend_from_slice(&part[..len]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                assert!(Instant::now() < late, "the import does not end");
                // The server may close the connection at any time.
                let _ = stream.write_all(rest.as_bytes());
            }
            // The server closes the connection, whatever it has not read.
            Ok(_) | Err(_) => return Answer::parse(&bytes),
        }
    }
}

#[test]
fn slow_import_ends_and_says_what_it_imported() {
    let logs = export(&filled(), "main");
    let mut settings = Settings::default();
    settings.import_timeout = Duration::from_millis(300);
    let server = TestServer::with(settings);
    server.post("/v2/copy", "{}").is(204);
    let first = logs.split_inclusive('\n').next().expect("a log");
    for rest in ["", " "] {
        // The import ends although it has received a complete log, and although bytes still arrive.
        let refused = begin_import(&server, first, rest).refused(408, "VALIDATION");
        assert_eq!(refused, "the body did not arrive in time: no log was imported");
        assert_eq!(export(&server, "copy"), "");
    }
    // Parts that arrived in time stay.
    let refused = begin_import(&server, &logs[..logs.len() / 2], "").refused(408, "VALIDATION");
    let imported = export(&server, "copy").lines().count();
    let logs =
        if imported == 0 { "no log was".to_owned() } else { format!("the first {imported} logs were") };
    assert_eq!(refused, format!("the body did not arrive in time: {logs} imported"));
}

#[test]
fn shows_content_of_imported_logs_unchanged() {
    let mut settings = Settings::default();
    settings.experimental_features = true;
    let server = TestServer::with(settings);
    server.post("/v2/main", r#"{"features":{"HASH_LOGS":"DISABLED"}}"#).is(204);
    let transaction = |id: u64, from: &str, to: &str, day: u8| {
        json!({"postings": [{"source": from, "destination": to, "amount": 3, "asset": "USD"}], "metadata": {},
            "timestamp": format!("2024-01-0{day}T00:00:00Z"), "id": id, "reverted": false,
            "insertedAt": format!("2024-01-0{day}T00:00:00Z"), "updatedAt": format!("2024-01-0{day}T00:00:00Z")})
    };
    let mut original = transaction(0, "world", "a", 1);
    original["updatedAt"] = json!("2024-01-02T00:00:00Z");
    original["revertedAt"] = json!("2024-01-04T00:00:00Z");
    original["reverted"] = json!(true);
    let log = |id: u64, kind: &str, day: u8, data: Value| {
        json!({"type": kind, "data": data, "date": format!("2024-01-0{day}T00:00:00Z"), "idempotencyKey": "",
            "id": id, "hash": null})
    };
    let volumes = json!({"a": {"USD": {"input": 3, "output": 0, "balance": 3}}});
    let mut told = transaction(2, "world", "b", 5);
    told["postCommitVolumes"] = volumes;
    let logs = [
        log(
            1,
            "NEW_TRANSACTION",
            1,
            json!({"transaction": transaction(0, "world", "a", 1), "accountMetadata": {}}),
        ),
        log(
            2,
            "REVERTED_TRANSACTION",
            4,
            json!({"revertedTransaction": original, "transaction": transaction(1, "a", "world", 4)}),
        ),
        log(3, "NEW_TRANSACTION", 5, json!({"transaction": told, "accountMetadata": {}})),
    ];
    let text = logs.map(|log| log.to_string()).join("\n");
    server.post("/v2/main/logs/import", &text).is(204);
    let shown = server.get("/v2/main/logs?sort=id:asc").is(200).json();
    let shown = |at: usize, field: &str| shown["cursor"]["data"][at]["data"][field].clone();
    assert_eq!(shown(0, "transaction"), transaction(0, "world", "a", 1));
    assert_eq!(shown(1, "transaction"), transaction(1, "a", "world", 4));
    let reverted = shown(1, "revertedTransaction");
    for field in ["updatedAt", "revertedAt", "insertedAt", "reverted", "postings"] {
        assert_eq!(reverted[field], original[field], "{field}");
    }
    // The volumes in a response are computed, not copied from the imported log.
    assert_eq!(shown(2, "transaction")["postCommitVolumes"]["b"]["USD"]["balance"], 3);
    assert_eq!(server.get("/v2/main/transactions/0").json()["data"]["updatedAt"], "2024-01-04T00:00:00Z");
    let exported = server.post("/v2/main/logs/export", "").is(200).body;
    server.post("/v2/copy", r#"{"features":{"HASH_LOGS":"DISABLED"}}"#).is(204);
    server.post("/v2/copy/logs/import", &exported).is(204);
    assert_eq!(server.post("/v2/copy/logs/export", "").is(200).body, exported);
}
