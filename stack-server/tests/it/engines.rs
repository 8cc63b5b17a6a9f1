//! Tests the drivers of exporters with the engines for which they are: `ClickHouse` (as chdb), and `OpenSearch`, whose
//! bulk interface is that of Elasticsearch.
//!
//! `tests/engines/` holds the programs that run them, and `tests/sdk/README.md` tells how to have them.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::TestServer;
use crate::kill::ask_with;
use crate::pipelines::{id_of, pipeline, server_with, settings};
use crate::sdk::has;
use crate::skipping::skipped;

/// An amount that does not fit into 64 bits.
const LARGE: &str = "1000000000000000000000000000000";

/// Number of accounts. Each has several numbers in the logs, so a field for each number would be too many fields.
const ACCOUNTS: usize = 300;

/// A running engine with an empty folder for its data. Dropping this ends it.
struct Engine {
    child: Child,
    address: String,
    _folder: tempfile::TempDir,
}

impl Engine {
    /// Starts an engine, and waits for the line with its address. The last argument of the command is the folder.
    fn start(mut command: Command) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        command.arg(folder.path()).current_dir(folder.path());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        assert!(line.starts_with("127.0.0.1:"), "the engine does not start: {line:?}");
        Self { child, address: line.trim().to_owned(), _folder: folder }
    }

    fn clickhouse() -> Option<Self> {
        let python = std::env::var("CHDB_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let mut asked = Command::new(&python);
        asked.arg("-c");
        if !has(asked, "import chdb") {
            skipped(format_args!("{python} has no chdb (tests/sdk/README.md)"));
            return None;
        }
        let mut command = Command::new(python);
        command.arg(program("clickhouse.py"));
        Some(Self::start(command))
    }

    fn opensearch() -> Option<Self> {
        let Some(jars) = std::env::var_os("OPENSEARCH_JARS") else {
            skipped("OPENSEARCH_JARS names no folder with OpenSearch (tests/sdk/README.md)");
            return None;
        };
        let mut command = Command::new("java");
        command.arg("-Xmx512m").arg("-cp").arg(Path::new(&jars).join("*")).arg(program("OpenSearch.java"));
        Some(Self::start(command))
    }

    /// Sends a request, and returns the status and the body of the response.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let headers = "Authorization: Basic bWU6c2VjcmV0\r\nContent-Type: application/json\r\n";
        let (status, _, body) = ask_with(&self.address, method, path, headers, body).expect("an answer");
        (status, body)
    }

    fn json(&self, method: &str, path: &str, body: &str) -> Value {
        let (_, answer) = self.ask(method, path, body);
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }

    /// Returns the rows of a query of `ClickHouse`.
    fn rows(&self, query: &str) -> Vec<Value> {
        let (status, answer) = self.ask("POST", "/?database=books", &format!("{query} FORMAT JSONEachRow"));
        assert_eq!(status, 200, "{query}: {answer}");
        answer.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // The engine may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engines").join(name)
}

/// Starts a server whose ledger has a log of each type, special characters, large amounts and many accounts.
fn filled() -> TestServer {
    let server = server_with(settings());
    let account =
        |at: usize| json!({"source": "world", "destination": format!("a:{at}"), "amount": 1, "asset": "USD"});
    let postings: Vec<Value> = (0..ACCOUNTS).map(account).collect();
    server.post("/v2/main/transactions", &json!({ "postings": postings }).to_string()).is(200);
    let large = format!(
        r#"{{"postings":[{{"source":"world","destination":"b","amount":{LARGE},"asset":"USD/2"}}],"metadata":{{"k.a":"1"}}}}"#
    );
    server.post("/v2/main/transactions", &large).is(200);
    let metadata = json!({"k": "\\N \t \"'` <ü😀> \u{2028}\n{}; --", "": "empty"});
    server.post("/v2/main/accounts/b/metadata", &metadata.to_string()).is(204);
    server.send("DELETE", "/v2/main/accounts/b/metadata/k", &[], "").is(204);
    server.post("/v2/main/transactions/1/revert", "").is(201);
    server
}

fn start_exporter(server: &TestServer, driver: &str, config: &Value) -> String {
    let mut config = config.clone();
    config["batching"] = json!({"maxItems": 2, "flushInterval": "1ms"});
    let body = json!({"driver": driver, "config": config}).to_string();
    let exporter = id_of(&server.post("/v2/_/exporters", &body).is(201).json());
    pipeline(server, "main", &exporter)
}

/// Waits until a pipeline has pushed this log.
#[track_caller]
fn wait_for(server: &TestServer, pipeline: &str, log: u64) {
    let late = Instant::now() + Duration::from_mins(1);
    loop {
        let shown = server.get(&format!("/v2/main/pipelines/{pipeline}")).is(200).json()["data"].clone();
        if shown["lastLogID"] == log {
            return;
        }
        assert!(Instant::now() < late, "{shown}");
        std::thread::yield_now();
    }
}

/// Returns the logs of the ledger, oldest first.
fn logs(server: &TestServer) -> Vec<Value> {
    let listed = server.get("/v2/main/logs?sort=id:asc").is(200).json()["cursor"]["data"].clone();
    listed.as_array().expect("logs").clone()
}

#[test]
fn clickhouse_makes_table_and_keeps_each_log_once() {
    let Some(engine) = Engine::clickhouse() else { return };
    let server = filled();
    let dsn = format!("clickhouse://me:secret@{}/books", engine.address);
    let pipeline = start_exporter(&server, "clickhouse", &json!({ "dsn": dsn }));
    wait_for(&server, &pipeline, 5);
    let columns = "SELECT ledger, id, type, formatDateTime(date, '%Y-%m-%dT%H:%i:%S.%fZ') AS date, data";
    let query = format!("{columns} FROM logs FINAL ORDER BY id");
    let rows = engine.rows(&query);
    let logs = logs(&server);
    assert_eq!((rows.len(), logs.len()), (5, 5));
    for (row, log) in rows.iter().zip(&logs) {
        assert_eq!((&row["ledger"], &row["type"]), (&json!("main"), &log["type"]));
        // By default ClickHouse writes integers of 64 bits as texts.
        assert_eq!(row["id"].to_string().trim_matches('"'), log["id"].to_string());
        let fraction =
            |date: &Value| date.as_str().expect("a date").trim_end_matches(['0', 'Z', '.']).to_owned();
        assert_eq!(fraction(&row["date"]), fraction(&log["date"]));
        let data: Value = serde_json::from_str(row["data"].as_str().expect("a text")).expect("JSON");
        assert_eq!(data, log["data"]);
    }
    assert!(rows[1]["data"].as_str().expect("a text").contains(LARGE));
    // Logs that are pushed again replace their rows.
    server.post(&format!("/v2/main/pipelines/{pipeline}/reset"), "").is(202);
    let late = Instant::now() + Duration::from_mins(1);
    let inserted = "SELECT value >= 10 AS is_repeated FROM system.events WHERE event = 'InsertedRows'";
    while engine.rows(inserted)[0]["is_repeated"] != 1 {
        assert!(Instant::now() < late, "nothing is pushed again");
    }
    wait_for(&server, &pipeline, 5);
    assert_eq!(engine.rows(&query), rows);
}

#[test]
fn bulk_engine_keeps_each_log_once() {
    let Some(engine) = Engine::opensearch() else { return };
    let server = filled();
    let config = json!({"endpoint": format!("http://{}", engine.address), "index": "books",
        "authentication": {"username": "me", "password": "secret"}});
    let pipeline = start_exporter(&server, "elasticsearch", &config);
    wait_for(&server, &pipeline, 5);
    for log in logs(&server) {
        let path = format!("/books/_doc/main-{}", log["id"]);
        let document = engine.json("GET", &path, "")["_source"].clone();
        assert_eq!(
            (&document["ID"], &document["module"]),
            (&json!(format!("main-{}", log["id"])), &json!("ledger"))
        );
        for member in ["id", "type", "date", "data", "hash"] {
            assert_eq!(document["payload"][member], log[member], "{member}");
        }
    }
    assert!(engine.ask("GET", "/books/_doc/main-2", "").1.contains(LARGE));
    engine.json("POST", "/books/_refresh", "");
    let found = |query: &str| engine.json("GET", &format!("/books/_count?q={query}"), "")["count"].clone();
    assert_eq!((found("payload.ledger:main"), found("payload.type:NEW_TRANSACTION")), (json!(5), json!(2)));
    assert_eq!(found("payload.date:%3E2020"), 5);
    // An engine that refuses documents answers 200. Nothing is lost until it takes them again.
    engine.json("PUT", "/books/_settings", r#"{"index.blocks.write": true}"#);
    server.transfer("world", "c", 1, "USD");
    let path = format!("/v2/main/pipelines/{pipeline}");
    let late = Instant::now() + Duration::from_mins(1);
    while !server.get(&path).is(200).body.contains("documents were refused") {
        assert!(Instant::now() < late, "{:?}", server.get(&path));
        std::thread::yield_now();
    }
    engine.json("PUT", "/books/_settings", r#"{"index.blocks.write": false}"#);
    wait_for(&server, &pipeline, 6);
    // Logs that are pushed again replace their documents.
    server.post(&format!("{path}/reset"), "").is(202);
    let late = Instant::now() + Duration::from_mins(1);
    while engine.json("GET", "/books/_doc/main-6", "")["_version"].as_u64() < Some(2) {
        assert!(Instant::now() < late, "nothing is pushed again");
    }
    engine.json("POST", "/books/_refresh", "");
    assert_eq!(found("*"), 6);
}
