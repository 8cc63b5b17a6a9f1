//! Exporters and pipelines: valid configurations, and the delivery of every log.

use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use ledger_store::Store;
use serde_json::{Value, json};
use stack_server::{OutboundPolicy, Server, Settings};

use crate::client::TestServer;
use crate::receiver::{Received, Receiver};

pub(crate) fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.experimental_exporters = true;
    settings.pipelines_pull_interval = Duration::from_millis(50);
    settings.pipelines_retry_period = Duration::from_millis(20);
    settings.pipelines_sync_period = Duration::from_mins(10);
    settings
}

pub(crate) fn server_with(settings: Settings) -> TestServer {
    let server = TestServer::with(settings);
    server.post("/v2/main", "").is(204);
    server
}

/// Starts a server on the given store.
fn server_on(store: &Store, settings: Settings) -> TestServer {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let server = Server::start(store, settings, listener).expect("a server");
    TestServer { address: server.address(), server: Some(server) }
}

fn http_exporter(server: &TestServer, receiver: &Receiver, items: u32) -> String {
    let config =
        json!({"url": receiver.url("/logs"), "batching": {"maxItems": items, "flushInterval": "1ms"}});
    let body = json!({"driver": "http", "config": config}).to_string();
    id_of(&server.post("/v2/_/exporters", &body).is(201).json())
}

pub(crate) fn id_of(answer: &Value) -> String {
    answer["data"]["id"].as_str().expect("an id").to_owned()
}

pub(crate) fn pipeline(server: &TestServer, ledger: &str, exporter: &str) -> String {
    let body = json!({"exporterID": exporter}).to_string();
    let created = server.post(&format!("/v2/{ledger}/pipelines"), &body).is(201).json();
    assert_eq!((&created["data"]["ledger"], &created["data"]["enabled"]), (&json!(ledger), &json!(true)));
    id_of(&created)
}

/// Returns the logs of accepted requests, in order.
fn logs(received: &[Received]) -> Vec<Value> {
    let taken = received.iter().filter(|one| one.status < 300);
    taken.flat_map(|one| one.json().as_array().expect("a list of logs").clone()).collect()
}

fn ids(logs: &[Value]) -> Vec<u64> {
    logs.iter().map(|log| log["id"].as_u64().expect("an id")).collect()
}

/// Repeats a request until the response is as expected.
#[track_caller]
fn eventually(server: &TestServer, path: &str, expected: impl Fn(&Value) -> bool) -> Value {
    let late = Instant::now() + Duration::from_secs(30);
    loop {
        let answer = server.get(path).is(200).json();
        if expected(&answer) {
            return answer;
        }
        assert!(Instant::now() < late, "{path}: {answer}");
        std::thread::yield_now();
    }
}

#[test]
fn without_the_flag_there_are_no_such_paths() {
    let server = TestServer::with_main();
    for (method, path) in [
        ("GET", "/v2/_/exporters"),
        ("POST", "/v2/_/exporters"),
        ("GET", "/api/ledger/v2/main/pipelines"),
        ("PATCH", "/v2/main/pipelines"),
        ("POST", "/v2/main/pipelines/x/start"),
    ] {
        let answer = server.send(method, path, &[], "");
        assert_eq!((answer.status, answer.body.trim()), (404, "404 page not found"), "{method} {path}");
    }
}

#[test]
fn passwords_of_exporters_are_used_and_not_shown() {
    let server = server_with(settings());
    let receiver = Receiver::start();
    let url = |password: &str| format!("http://me:{password}@{}/logs", receiver.address);
    let config = |password: &str| {
        let batching = json!({"maxItems": 1, "flushInterval": "1ms"});
        json!({"driver": "http", "config": {"url": url(password), "batching": batching}}).to_string()
    };
    let created = server.post("/v2/_/exporters", &config("canary")).is(201);
    let exporter = id_of(&created.json());
    let path = format!("/v2/_/exporters/{exporter}");
    let (read, list) = (server.get(&path).is(200), server.get("/v2/_/exporters").is(200));
    for answer in [&created, &read, &list] {
        assert!(!answer.body.contains("canary") && answer.body.contains("me:xxxxx@"), "{}", answer.body);
    }
    pipeline(&server, "main", &exporter);
    server.transfer("world", "a", 1, "USD");
    // The hidden configuration, sent back with another change, keeps the password.
    let shown = read.json()["data"].clone();
    let mut given = json!({"driver": shown["driver"], "config": shown["config"]});
    given["config"]["batching"]["maxItems"] = json!(2);
    server.send("PUT", &path, &[], &given.to_string()).is(204);
    server.transfer("world", "a", 1, "USD");
    let taken = receiver.wait("both logs", |all| ids(&logs(all)).contains(&2));
    for request in &taken {
        assert_eq!(request.headers["authorization"], "Basic bWU6Y2FuYXJ5", "me:canary");
    }
    assert_eq!(server.get(&path).is(200).json()["data"]["config"]["batching"]["maxItems"], 2);
    // A new password replaces the old one.
    server.send("PUT", &path, &[], &config("other")).is(204);
    server.transfer("world", "a", 1, "USD");
    let taken = receiver.wait("the third log", |all| ids(&logs(all)).contains(&3));
    assert_eq!(taken.last().map(|last| last.headers["authorization"].as_str()), Some("Basic bWU6b3RoZXI="));
}

#[test]
fn exporters_are_made_read_changed_and_removed() {
    let server = server_with(settings());
    let config = r#"{"url":"http://sink.example/x","batching":{"maxItems":7,"flushInterval":"1s"},"more":[1,{"a":null}]}"#;
    let created =
        server.post("/v2/_/exporters", &format!(r#"{{"driver":"http","config":{config}}}"#)).is(201).json();
    let exporter = &created["data"];
    let members: Vec<_> = exporter.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(members, ["config", "createdAt", "driver", "id"]);
    assert_eq!(exporter["config"], serde_json::from_str::<Value>(config).expect("JSON"), "as it was given");
    let path = format!("/v2/_/exporters/{}", id_of(&created));
    assert_eq!(server.get(&path).is(200).json(), created);
    assert_eq!(
        server.get(&path.to_uppercase().replace("/V2/_/EXPORTERS", "/v2/_/exporters")).is(200).json(),
        created
    );
    let second = server.post("/v2/_/exporters", r#"{"driver":"noop"}"#).is(201).json();
    assert_eq!(second["data"]["config"], json!({}));
    let list = server.get("/v2/_/exporters").is(200).json();
    assert_eq!(list, json!({"cursor":{"hasMore":false,"data":[created["data"], second["data"]]}}));
    server.send("PUT", &path, &[], r#"{"driver":"stdout","config":null}"#).is(204);
    let changed = server.get(&path).is(200).json();
    assert_eq!(
        (&changed["data"]["driver"], &changed["data"]["createdAt"]),
        (&json!("stdout"), &exporter["createdAt"])
    );
    server.send("PUT", &path, &[], r#"{"driver":"nosuch"}"#).refused(400, "VALIDATION");

    let used = pipeline(&server, "main", &id_of(&created));
    let other = pipeline(&server, "main", &id_of(&second));
    server.send("DELETE", &path, &[], "").is(204);
    server.get(&format!("/v2/main/pipelines/{used}")).refused(404, "NOT_FOUND");
    server.get(&format!("/v2/main/pipelines/{other}")).is(200);
    for method in ["GET", "DELETE"] {
        server.send(method, &path, &[], "").refused(404, "NOT_FOUND");
        server.send(method, "/v2/_/exporters/x", &[], "").refused(400, "VALIDATION");
    }
    for body in [r#"{"driver":"noop"}"#, r#"{"driver":"nosuch"}"#, "{", ""] {
        server.send("PUT", &path, &[], body).refused(404, "NOT_FOUND");
    }
}

#[test]
fn refuses_invalid_exporter_without_changes() {
    let mut public = settings();
    public.outbound = Some(OutboundPolicy::Public);
    for (server, bodies) in [
        (
            server_with(settings()),
            vec![
                "",
                "[]",
                "{",
                "{}",
                r#"{"driver":1}"#,
                r#"{"driver":"nosuch","config":{}}"#,
                r#"{"driver":"clickhouse","config":{"dsn":"x"}}"#,
                r#"{"driver":"elasticsearch","config":{}}"#,
                r#"{"driver":"http","config":{}}"#,
                r#"{"driver":"http","config":"x"}"#,
                r#"{"driver":"http","config":{"url":"x"}}"#,
                r#"{"driver":"http","config":{"url":"http://x","batching":7}}"#,
                r#"{"driver":"file","config":{"name":"x"}}"#,
            ],
        ),
        (
            server_with(public),
            vec![
                r#"{"driver":"http","config":{"url":"http://1.1.1.1"}}"#,
                r#"{"driver":"http","config":{"url":"https://127.0.0.1"}}"#,
                r#"{"driver":"http","config":{"url":"https://[::ffff:169.254.169.254]/x"}}"#,
                r#"{"driver":"http","config":{"url":"https://sink.example:9200"}}"#,
            ],
        ),
    ] {
        for body in bodies {
            server.post("/v2/_/exporters", body).refused(400, "VALIDATION");
        }
        let deep = format!(r#"{{"driver":"noop","config":{{"x":{}{}}}}}"#, "[".repeat(500), "]".repeat(500));
        server.post("/v2/_/exporters", &deep).refused(400, "VALIDATION");
        assert_eq!(server.get("/v2/_/exporters").is(200).json()["cursor"]["data"], json!([]));
    }
}

#[test]
fn refuses_host_name_of_private_address() {
    let mut public = settings();
    public.outbound = Some(OutboundPolicy::Public);
    let server = server_with(public);
    let body =
        r#"{"driver":"http","config":{"url":"https://localhost/","batching":{"flushInterval":"1ms"}}}"#;
    let exporter = id_of(&server.post("/v2/_/exporters", body).is(201).json());
    server.transfer("world", "a", 1, "USD");
    let path = format!("/v2/main/pipelines/{}", pipeline(&server, "main", &exporter));
    let shown = eventually(&server, &path, |answer| answer["data"]["error"].is_string());
    assert!(shown["data"]["error"].as_str().expect("a text").contains("no public address"), "{shown}");
}

#[test]
fn refuses_invalid_pipeline() {
    let server = server_with(settings());
    let exporter = id_of(&server.post("/v2/_/exporters", r#"{"driver":"noop"}"#).is(201).json());
    let nobody = "9a1b5e2c-0000-4000-8000-000000000001";
    let of = |id: &str| format!(r#"{{"exporterID":"{id}"}}"#);
    server.post("/v2/nosuch/pipelines", &of(&exporter)).refused(404, "LEDGER_NOT_FOUND");
    server.get("/v2/nosuch/pipelines").refused(404, "LEDGER_NOT_FOUND");
    for body in ["", "{}", "[]", &of("x"), &of(nobody)] {
        server.post("/v2/main/pipelines", body).refused(400, "VALIDATION");
    }
    let id = pipeline(&server, "main", &exporter);
    assert!(server.post("/v2/main/pipelines", &of(&exporter)).refused(400, "VALIDATION").contains("already"));
    server.post("/v2/other", "").is(204);
    pipeline(&server, "other", &exporter);
    for verb in ["", "/start", "/stop", "/reset"] {
        let method = if verb.is_empty() { "GET" } else { "POST" };
        server.send(method, &format!("/v2/main/pipelines/{nobody}{verb}"), &[], "").refused(404, "NOT_FOUND");
        server.send(method, &format!("/v2/other/pipelines/{id}{verb}"), &[], "").refused(404, "NOT_FOUND");
        server.send(method, &format!("/v2/main/pipelines/x{verb}"), &[], "").refused(400, "VALIDATION");
        server
            .send(method, &format!("/v2/nosuch/pipelines/{id}{verb}"), &[], "")
            .refused(404, "LEDGER_NOT_FOUND");
    }
    server.send("DELETE", &format!("/v2/main/pipelines/{nobody}"), &[], "").refused(404, "NOT_FOUND");
    let path = format!("/v2/main/pipelines/{id}");
    server.post(&format!("{path}/start"), "").refused(400, "VALIDATION");
    server.post(&format!("{path}/stop"), "").is(202);
    server.post(&format!("{path}/stop"), "").is(202);
    assert_eq!(server.get(&path).is(200).json()["data"]["enabled"], false);
    server.post(&format!("{path}/start"), "").is(202);
    let listed = server.get("/v2/main/pipelines").is(200).json();
    assert_eq!(listed["cursor"]["data"].as_array().map(Vec::len), Some(1), "those of this ledger");
    assert_eq!(listed["cursor"]["data"][0]["id"], json!(id));
    assert_eq!(listed["cursor"]["hasMore"], false);
}

#[test]
fn every_log_is_pushed_as_it_is_listed() {
    let (server, receiver) = (server_with(settings()), Receiver::start());
    for amount in 1..=25 {
        server.transfer("world", "a", amount, "USD");
    }
    let exporter = http_exporter(&server, &receiver, 10);
    let id = pipeline(&server, "main", &exporter);
    server.post("/v2/main/accounts/a/metadata", r#"{"x":"<y>"}"#).is(204);
    server.post("/v2/main/transactions/1/revert", "").is(201);
    let received = receiver.wait("27 logs", |received| logs(received).len() >= 27);
    let pushed = logs(&received);
    assert_eq!(ids(&pushed), (1..=27).collect::<Vec<_>>());
    assert!(
        received.iter().all(|one| one.path == "/logs" && one.json().as_array().expect("a list").len() <= 10)
    );
    let listed = server.get("/v2/main/logs?sort=id:asc&pageSize=100").is(200).json();
    for (pushed, listed) in pushed.iter().zip(listed["cursor"]["data"].as_array().expect("a list")) {
        let mut expected = listed.clone();
        expected["ledger"] = json!("main");
        assert_eq!(*pushed, expected);
    }
    let path = format!("/v2/main/pipelines/{id}");
    let shown = eventually(&server, &path, |answer| answer["data"]["lastLogID"] == 27);
    assert!(shown["data"].get("error").is_none());
    // The commit wakes the pipeline.
    server.transfer("world", "a", 1, "USD");
    receiver.wait("one more", |received| logs(received).len() >= 28);
}

#[test]
fn retries_failed_push_and_shows_reason() {
    let (server, receiver) = (server_with(settings()), Receiver::start());
    receiver.answer_always(Some(500));
    server.transfer("world", "a", 1, "USD");
    let path =
        format!("/v2/main/pipelines/{}", pipeline(&server, "main", &http_exporter(&server, &receiver, 100)));
    let shown = eventually(&server, &path, |answer| answer["data"]["error"].is_string());
    assert!(shown["data"]["error"].as_str().expect("a text").contains("500"), "{shown}");
    assert!(shown["data"].get("lastLogID").is_none());
    receiver.wait("some attempts", |received| received.len() >= 3);
    receiver.answer_always(None);
    let shown = eventually(&server, &path, |answer| answer["data"]["lastLogID"] == 1);
    assert!(shown["data"].get("error").is_none());
}

#[test]
fn pipeline_stops_starts_resets_and_changes_exporter() {
    let (server, receiver) = (server_with(settings()), Receiver::start());
    let exporter = http_exporter(&server, &receiver, 1);
    let path = format!("/v2/main/pipelines/{}", pipeline(&server, "main", &exporter));
    server.transfer("world", "a", 1, "USD");
    receiver.wait("the first", |received| logs(received).len() == 1);
    eventually(&server, &path, |answer| answer["data"]["lastLogID"] == 1);
    server.post(&format!("{path}/stop"), "").is(202);
    // A later run must stop the earlier one.
    let other = Receiver::start();
    pipeline(&server, "main", &http_exporter(&server, &other, 1));
    other.wait("the first", |received| logs(received).len() == 1);
    server.transfer("world", "a", 2, "USD");
    other.wait("both", |received| logs(received).len() == 2);
    assert_eq!(ids(&logs(&receiver.wait("it is stopped", |_| true))), [1]);
    let stopped = server.get(&path).is(200).json();
    assert_eq!((&stopped["data"]["enabled"], &stopped["data"]["lastLogID"]), (&json!(false), &json!(1)));
    server.post(&format!("{path}/start"), "").is(202);
    receiver.wait("it goes on", |received| ids(&logs(received)) == [1, 2]);
    eventually(&server, &path, |answer| answer["data"]["lastLogID"] == 2);
    server.post(&format!("{path}/reset"), "").is(202);
    receiver.wait("it begins anew", |received| ids(&logs(received)) == [1, 2, 1, 2]);
    eventually(&server, &path, |answer| answer["data"]["lastLogID"] == 2);
    let elsewhere = Receiver::start();
    let config = json!({"url": elsewhere.url("/other"), "batching": {"flushInterval": "1ms"}});
    let body = json!({"driver": "http", "config": config}).to_string();
    server.send("PUT", &format!("/v2/_/exporters/{exporter}"), &[], &body).is(204);
    server.transfer("world", "a", 3, "USD");
    elsewhere.wait("the third", |received| ids(&logs(received)) == [3]);
    assert_eq!(logs(&receiver.wait("no more there", |_| true)).len(), 4);
    server.send("DELETE", &path, &[], "").is(204);
    server.get(&path).refused(404, "NOT_FOUND");
}

#[test]
fn pipelines_resume_after_restart() {
    let (store, receiver) = (Store::in_memory(), Receiver::start());
    let server = server_on(&store, settings());
    server.post("/v2/main", "").is(204);
    let path =
        format!("/v2/main/pipelines/{}", pipeline(&server, "main", &http_exporter(&server, &receiver, 4)));
    let mut expected = 0;
    let mut server = Some(server);
    for round in 0..3 {
        // A server that runs no pipelines still accepts writes.
        let mut idle = settings();
        idle.worker = false;
        drop(server.take());
        let without = server_on(&store, idle);
        for amount in 1..=10 {
            without.transfer("world", "a", amount, "USD");
        }
        let before = without.get(&path).is(200).json();
        assert_eq!(before["data"].get("lastLogID").and_then(Value::as_u64), (round > 0).then_some(expected));
        drop(without);
        expected += 10;
        let with = server_on(&store, settings());
        receiver.wait("all", |received| logs(received).len() as u64 >= expected);
        eventually(&with, &path, |answer| answer["data"]["lastLogID"] == expected);
        server = Some(with);
    }
    let all = ids(&logs(&receiver.wait("all", |_| true)));
    assert_eq!(all, (1..=30).collect::<Vec<_>>(), "each once: nothing crashed");
}

fn lines(folder: &Path) -> Vec<Value> {
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let texts = files.iter().map(|file| std::fs::read_to_string(file).expect("text"));
    let texts: String = texts.collect();
    texts.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn logs_of_several_ledgers_go_into_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path().join("exports");
    let mut settings = settings();
    settings.exporters_directory = Some(folder.clone());
    let server = server_with(settings);
    server.post("/v2/other", "").is(204);
    let config = json!({"name": "all", "maxBytes": 4096, "batching": {"flushInterval": "1ms"}});
    let body = json!({"driver": "file", "config": config}).to_string();
    let exporter = id_of(&server.post("/v2/_/exporters", &body).is(201).json());
    assert!(server.post("/v2/_/exporters", &body).refused(400, "VALIDATION").contains("another exporter"));
    let paths = ["main", "other"].map(|ledger| {
        let id = pipeline(&server, ledger, &exporter);
        format!("/v2/{ledger}/pipelines/{id}")
    });
    for amount in 1..=20 {
        server.transfer("world", "a", amount, "USD");
        let body = r#"{"postings":[{"source":"world","destination":"b","amount":1,"asset":"EUR"}]}"#;
        server.post("/v2/other/transactions", body).is(200);
    }
    for path in &paths {
        eventually(&server, path, |answer| answer["data"]["lastLogID"] == 20);
    }
    let written = lines(&folder);
    for ledger in ["main", "other"] {
        let of: Vec<Value> = written.iter().filter(|log| log["ledger"] == ledger).cloned().collect();
        assert_eq!(ids(&of), (1..=20).collect::<Vec<_>>(), "{ledger}");
    }
    assert!(std::fs::read_dir(&folder).expect("a folder").count() > 5, "full files are followed by the next");
    // The path is gone after its exporter was deleted.
    for path in &paths {
        server.send("DELETE", path, &[], "").is(204);
    }
    server.send("DELETE", &format!("/v2/_/exporters/{exporter}"), &[], "").is(204);
    server.post("/v2/_/exporters", &body).is(201);
}
