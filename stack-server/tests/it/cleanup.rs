//! The worker permanently removes buckets after their retention period.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use ledger_core::Timestamp;
use ledger_store::{Options, Store, TimeSource};
use serde_json::{Value, json};
use stack_server::{Schedule, Server, Settings};

use crate::client::TestServer;

const DAY: i64 = 86_400_000_000;

/// A clock for the store, which the test sets.
#[derive(Debug, Default)]
struct SetClock(AtomicI64);

impl TimeSource for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::Relaxed))
    }
}

fn open(data: &Path, clock: &Arc<SetClock>) -> Store {
    let mut options = Options::default();
    options.clock = clock.clone();
    options.memory_budget = 16 << 20;
    Store::open_with(data, &options).expect("the store opens")
}

/// Starts a server whose worker runs every second.
fn serve(store: &Store) -> TestServer {
    let mut settings = Settings::default();
    settings.experimental_exporters = true;
    settings.cleanup_schedule = Schedule::parse("* * * * * *").expect("a schedule");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let server = Server::start(store, settings, listener).expect("a server");
    TestServer { address: server.address(), server: Some(server) }
}

fn names(server: &TestServer, query: &str) -> String {
    server.get(&format!("/v2{query}")).is(200).column("name").join(" ")
}

#[track_caller]
fn until(mut is_so: impl FnMut() -> bool) {
    let late = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < late, "it does not come");
        std::thread::yield_now();
    }
}

fn pay(server: &TestServer, ledger: &str, times: usize) {
    let body = json!({"postings": [{"source": "world", "destination": "users:1", "amount": 5, "asset": "USD"}],
        "metadata": {"k": "v"}});
    for number in 0..times {
        let key = format!("key-{number}");
        let path = format!("/v2/{ledger}/transactions");
        server.send("POST", &path, &[("Idempotency-Key", &key)], &body.to_string()).is(200);
    }
}

fn pipeline(server: &TestServer, ledger: &str, exporter: &str) -> Value {
    let body = json!({"exporterID": exporter}).to_string();
    server.post(&format!("/v2/{ledger}/pipelines"), &body).is(201).json()
}

#[test]
fn removes_expired_buckets_with_their_ledgers() {
    let home = tempfile::tempdir().expect("a directory");
    let clock = Arc::new(SetClock::default());
    clock.0.store(20_000 * DAY, Ordering::Relaxed);
    let store = open(home.path(), &clock);
    let server = serve(&store);
    for (ledger, bucket) in [("doomed", "gone"), ("kept", "here")] {
        server.post(&format!("/v2/{ledger}"), &json!({"bucket": bucket}).to_string()).is(204);
        pay(&server, ledger, 30);
    }
    let exporter = server.post("/v2/_/exporters", r#"{"driver":"noop"}"#).is(201).json();
    let exporter = exporter["data"]["id"].as_str().expect("an id");
    let old = pipeline(&server, "doomed", exporter)["data"]["id"].clone();
    pipeline(&server, "kept", exporter);
    let export = server.post("/v2/kept/logs/export", "").is(200).body;

    server.send("DELETE", "/v2/_/buckets/gone", &[], "").is(204);
    clock.0.fetch_add(29 * DAY, Ordering::Relaxed);
    // The bucket can be restored until it is removed.
    server.post("/v2/_/buckets/gone/restore", "").is(204);
    assert_eq!(names(&server, ""), "doomed kept");
    server.send("DELETE", "/v2/_/buckets/gone", &[], "").is(204);
    server.post("/v2/doomed", "").refused(400, "LEDGER_ALREADY_EXISTS");
    clock.0.fetch_add(31 * DAY, Ordering::Relaxed);
    until(|| names(&server, "?includeDeleted=true") == "kept");

    let message = server.post("/v2/_/buckets/gone/restore", "").refused(404, "NOT_FOUND");
    assert!(message.contains("removed"), "{message}");
    server.post("/api/ledger/v2/_/buckets/gone/restore", "").refused(404, "NOT_FOUND");
    server.send("DELETE", "/v2/_/buckets/gone", &[], "").is(204);
    server.get("/v2/doomed/transactions").refused(404, "LEDGER_NOT_FOUND");
    assert_eq!(server.post("/v2/kept/logs/export", "").is(200).body, export);
    // A new ledger with the same name starts empty: no logs, no keys, no pipelines.
    server.post("/v2/doomed", r#"{"bucket":"gone"}"#).is(204);
    assert_eq!(server.get("/v2/doomed/logs").is(200).json()["cursor"]["data"], json!([]));
    let none = server.get("/v2/doomed/pipelines").is(200).json();
    assert_eq!(none["cursor"]["data"], json!([]));
    let old = format!("/v2/doomed/pipelines/{}", old.as_str().expect("an id"));
    server.get(&old).refused(404, "NOT_FOUND");
    pipeline(&server, "doomed", exporter);
    pay(&server, "doomed", 2);
    let first = server.get("/v2/doomed/transactions?pageSize=1").is(200);
    assert_eq!(first.column("id"), ["2"]);
    // The new bucket can be deleted and restored too.
    server.send("DELETE", "/v2/_/buckets/gone", &[], "").is(204);
    server.post("/v2/_/buckets/gone/restore", "").is(204);
    assert_eq!(names(&server, ""), "kept doomed");

    let second = server.post("/v2/doomed/logs/export", "").is(200).body;
    // The worker has reclaimed the space too, so nothing is left to reclaim.
    until(|| store.reclaim(&|| true).expect("the files are readable").is_done);
    drop(server);
    store.close().expect("the store closes");
    drop(store);
    for without_index in [false, true] {
        if without_index {
            std::fs::remove_file(home.path().join("index/index.redb")).expect("the file exists");
        }
        let store = open(home.path(), &clock);
        assert_eq!(store.opening().rebuilt.is_some(), without_index);
        let server = serve(&store);
        assert_eq!(names(&server, "?includeDeleted=true"), "kept doomed");
        assert_eq!(server.post("/v2/kept/logs/export", "").is(200).body, export);
        assert_eq!(server.post("/v2/doomed/logs/export", "").is(200).body, second);
        let report = store.verify().expect("the verification runs");
        assert!(report.is_clean(), "{}", report.to_json_lines());
        drop(server);
        store.close().expect("the store closes");
    }
}
