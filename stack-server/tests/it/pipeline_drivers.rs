//! Tests the drivers of exporters with a server for each protocol.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::TestServer;
use crate::kill::{Running, ask};
use crate::pipelines::{id_of, pipeline, server_with, settings};
use crate::receiver::Receiver;

/// Creates an exporter with this driver, and a pipeline to it.
fn exporter_to(server: &TestServer, driver: &str, config: &Value) -> String {
    let mut config = config.clone();
    config["batching"] = json!({"maxItems": 2, "flushInterval": "1ms"});
    let body = json!({"driver": driver, "config": config}).to_string();
    let created = server.post("/v2/_/exporters", &body).is(201);
    assert!(!created.body.contains("secret"), "{}", created.body);
    let id = id_of(&created.json());
    pipeline(server, "main", &id);
    id
}

#[test]
fn clickhouse_gets_rows_in_a_table_it_makes() {
    let server = server_with(settings());
    let receiver = Receiver::start();
    server.transfer("world", "a", 1, "USD");
    server.post("/v2/main/accounts/a/metadata", r#"{"quote":"\"<1>"}"#).is(204);
    // The table does not exist yet, so the receiver refuses the first insertion.
    receiver.answer_next(&[404]);
    let dsn = format!("clickhouse://me:secret@{}/books", receiver.address);
    exporter_to(&server, "clickhouse", &json!({"dsn": dsn}));
    let received = receiver.wait("both rows", |all| {
        all.iter()
            .filter(|one| one.status < 300 && one.path.contains("INSERT"))
            .map(|one| one.body.lines().count())
            .sum::<usize>()
            >= 2
    });
    assert!(received[0].path.contains("INSERT") && received[0].status == 404, "{received:?}");
    let (made, inserted): (Vec<_>, Vec<_>) = received
        .iter()
        .filter(|one| one.status < 300)
        .partition(|one| one.body.starts_with("CREATE TABLE IF NOT EXISTS logs"));
    assert_eq!(made.len(), 1, "{received:?}");
    for request in &received {
        assert!(request.path.starts_with("/?database=books"), "{}", request.path);
        assert_eq!(request.headers["authorization"], "Basic bWU6c2VjcmV0", "me:secret");
    }
    let rows: Vec<Value> = inserted
        .iter()
        .flat_map(|one| one.body.lines())
        .map(|line| serde_json::from_str(line).expect("a row"))
        .collect();
    let logs = server.get("/v2/main/logs?sort=id:asc").is(200).json()["cursor"]["data"].clone();
    for (row, log) in rows.iter().zip(logs.as_array().expect("logs")) {
        assert_eq!(
            (&row["ledger"], &row["id"], &row["type"], &row["date"]),
            (&json!("main"), &log["id"], &log["type"], &log["date"])
        );
        let data: Value = serde_json::from_str(row["data"].as_str().expect("a text")).expect("JSON");
        assert_eq!(data, log["data"]);
    }
    assert_eq!(rows.len(), 2);
}

#[test]
fn elasticsearch_refusals_are_tried_again() {
    let server = server_with(settings());
    let receiver = Receiver::start();
    receiver.say(r#"{"errors":true}"#);
    server.transfer("world", "a", 1, "USD");
    let config = json!({"endpoint": receiver.url("/es/"), "index": "books",
        "authentication": {"username": "me", "password": "secret"}});
    exporter_to(&server, "elasticsearch", &config);
    receiver.wait("a refusal", |all| all.len() >= 3);
    receiver.say(r#"{"errors":false}"#);
    let before = receiver.wait("all so far", |_| true).len();
    server.transfer("world", "b", 1, "USD");
    let received = receiver
        .wait("both documents", |all| all[before..].iter().any(|one| one.body.contains("\"main-2\"")));
    let mut documents = std::collections::BTreeMap::new();
    assert_eq!(received[0].path, "/es/books", "the index is created first");
    assert_eq!(received[0].json()["mappings"]["properties"]["payload"]["dynamic"], false);
    assert_eq!(received[0].headers["authorization"], "Basic bWU6c2VjcmV0", "me:secret");
    for request in &received[1..] {
        assert_eq!(request.path, "/es/_bulk?filter_path=errors");
        assert_eq!(request.headers["authorization"], "Basic bWU6c2VjcmV0", "me:secret");
        assert!(request.body.ends_with('\n'));
        let lines: Vec<Value> =
            request.body.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        for pair in lines.chunks(2) {
            assert_eq!(pair[0]["index"]["_index"], "books");
            assert_eq!(pair[0]["index"]["_id"], pair[1]["ID"]);
            assert_eq!(pair[1]["module"], "ledger");
            documents.insert(pair[1]["ID"].as_str().expect("an id").to_owned(), pair[1]["payload"].clone());
        }
    }
    assert_eq!(documents.keys().collect::<Vec<_>>(), ["main-1", "main-2"]);
    let log = server.get("/v2/main/logs?sort=id:asc").is(200).json()["cursor"]["data"][0].clone();
    assert_eq!((&documents["main-1"]["data"], &documents["main-1"]["hash"]), (&log["data"], &log["hash"]));
}

#[test]
fn updates_with_placeholders_keep_secrets() {
    let server = server_with(settings());
    let receiver = Receiver::start();
    receiver.say(r#"{"errors":false}"#);
    let config = json!({"endpoint": receiver.url("/T0K3N-secret/"), "index": "books",
        "authentication": {"username": "me", "password": "secret"}});
    let path = format!("/v2/_/exporters/{}", exporter_to(&server, "elasticsearch", &config));
    let shown = server.get(&path).is(200).json()["data"]["config"].clone();
    assert_eq!(shown["endpoint"], receiver.url("/xxxxx/"));
    assert_eq!(shown["authentication"]["password"], "xxxxx");
    let change = |config: &Value| {
        server.send("PUT", &path, &[], &json!({"driver": "elasticsearch", "config": config}).to_string())
    };
    // Clients that may update exporters must not be able to redirect their passwords to another address.
    for (pointer, value) in [("/endpoint", "http://127.0.0.1:9/"), ("/authentication/username", "you")] {
        let mut elsewhere = shown.clone();
        *elsewhere.pointer_mut(pointer).expect("a member") = json!(value);
        let refused = change(&elsewhere).refused(400, "VALIDATION");
        assert!(refused.starts_with("authentication.password: xxxxx"), "{refused}");
    }
    let mut changed = shown.clone();
    changed["index"] = json!("other");
    change(&changed).is(204);
    server.transfer("world", "a", 1, "USD");
    let received = receiver.wait("a document", |all| all.len() >= 2);
    assert_eq!(received[0].path, "/T0K3N-secret/other");
    assert_eq!(received[1].path, "/T0K3N-secret/_bulk?filter_path=errors");
    for request in &received {
        assert_eq!(request.headers["authorization"], "Basic bWU6c2VjcmV0", "me:secret");
    }
    assert!(received[1].body.contains("\"_index\":\"other\""), "{}", received[1].body);
}

#[test]
fn stdout_gets_a_line_for_each_log() {
    let data = tempfile::tempdir().expect("a directory");
    let mut server = Command::new(env!("CARGO_BIN_EXE_stack-server"))
        .args(["serve", "--listen", "127.0.0.1:0", "--experimental-exporters", "--data"])
        .arg(data.path().join("store"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    let mut lines = BufReader::new(server.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let address = lines.find_map(|line| line.strip_prefix("listening on http://").map(str::to_owned));
    let running = Running { child: server, address: address.expect("the server listens") };
    let post = |path: &str, body: &Value, expected: u16| {
        let (status, answer) = ask(&running.address, "POST", path, &body.to_string()).expect("an answer");
        assert_eq!(status, expected, "{path}: {answer}");
        answer["data"]["id"].as_str().unwrap_or_default().to_owned()
    };
    post("/v2/main", &json!({}), 204);
    let config = json!({"batching": {"flushInterval": "1ms"}});
    let exporter = |driver: &str| post("/v2/_/exporters", &json!({"driver": driver, "config": config}), 201);
    let pipeline = |driver: &str| post("/v2/main/pipelines", &json!({"exporterID": exporter(driver)}), 201);
    let (_, nothing) = (pipeline("stdout"), pipeline("noop"));
    let postings = json!([{"source": "world", "destination": "a", "amount": 1, "asset": "USD"}]);
    post("/v2/main/transactions", &json!({"postings": postings}), 200);
    let line = lines.find(|line| !line.is_empty()).expect("a line");
    let line: Value = serde_json::from_str(&line).expect("JSON");
    let get = |path: &str| ask(&running.address, "GET", path, "").expect("an answer").1;
    let logs = get("/v2/main/logs");
    let log = &logs["cursor"]["data"][0];
    assert_eq!((&line["ledger"], &line["hash"]), (&json!("main"), &log["hash"]), "{line}");
    // The driver that does nothing takes the log too.
    let until = Instant::now() + Duration::from_secs(20);
    while get(&format!("/v2/main/pipelines/{nothing}"))["data"]["lastLogID"] != 1 {
        assert!(Instant::now() < until, "the log is not taken");
        std::thread::yield_now();
    }
}
