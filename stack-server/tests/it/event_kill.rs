//! Kills the server and the broker under load. The event of every log arrives through every kind of consumer, in order
//! per ledger. Refused writes and dry runs create no event.
//!
//! The ordinary run has three rounds. `EVENT_KILL_ROUNDS=50 cargo test -p stack-server event_kill` runs more.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::kill::{Running, ask, start_with};
use crate::publisher::Broker;
use crate::receiver::Receiver;
use crate::stream::EventStream;

const LEDGERS: [&str; 2] = ["one", "two"];
const CLIENTS: usize = 6;

/// Sends writes that create logs, and writes that create none, until the server is killed.
fn load(address: &str, client: usize, round: usize, acknowledged: &AtomicUsize) {
    for attempt in 0.. {
        let ledger = LEDGERS[(client + attempt) % 2];
        let posting = |source: &str, amount: usize| {
            format!(
                r#"{{"postings":[{{"source":"{source}","destination":"u:{client}","amount":{amount},"asset":"USD"}}]}}"#
            )
        };
        let path = format!("/v2/{ledger}/transactions");
        let answer = match attempt % 5 {
            0 | 1 => ask(address, "POST", &path, &posting("world", 1 + round * 1_000 + attempt)),
            // This amount must not appear in any log.
            2 => ask(address, "POST", &path, &posting("nobody", 999_999)),
            3 => ask(address, "POST", &format!("{path}?dryRun=true"), &posting("world", 999_999)),
            _ => {
                let metadata = format!(r#"{{"r":"{round}-{client}-{attempt}"}}"#);
                ask(address, "POST", &format!("/v2/{ledger}/accounts/u:{client}/metadata"), &metadata)
            }
        };
        match answer {
            Some((200 | 204, _)) => {
                acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            Some((400, _)) => {}
            _ => return,
        }
    }
}

/// Returns the text that identifies a log and its event within a ledger.
fn mark(log: &Value) -> String {
    let data = &log["data"];
    if data["transaction"].is_null() {
        data["metadata"].to_string()
    } else {
        data["transaction"]["id"].to_string()
    }
}

fn mark_of_event(event: &Value) -> String {
    let payload = &event["payload"];
    match event["type"].as_str() {
        Some("COMMITTED_TRANSACTIONS") => payload["transactions"][0]["id"].to_string(),
        _ => payload["metadata"].to_string(),
    }
}

/// Returns all logs of a ledger, oldest first.
fn logs(address: &str, ledger: &str) -> Vec<Value> {
    let mut all = Vec::new();
    let mut path = format!("/v2/{ledger}/logs?sort=id:asc&pageSize=1000");
    loop {
        let (status, answer) = ask(address, "GET", &path, "").expect("an answer");
        assert_eq!(status, 200, "{answer}");
        all.extend(answer["cursor"]["data"].as_array().expect("a list").iter().cloned());
        match answer["cursor"]["next"].as_str() {
            Some(next) => path = format!("/v2/{ledger}/logs?cursor={next}"),
            None => return all,
        }
    }
}

/// Returns the values of the pairs in order, and keeps only the first pair of each key.
fn first_of_each(all: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    all.into_iter().filter(|(id, _)| seen.insert(id.clone())).map(|(_, mark)| mark).collect()
}

/// Reads the stream of a ledger until `done` is set. Reconnects from the last id after each interruption.
fn follow(address: &Mutex<SocketAddr>, ledger: &str, ids: &Mutex<Vec<u64>>, done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        let last = ids.lock().expect("no panic").last().copied();
        let server = *address.lock().expect("no panic");
        let path = format!("/v2/{ledger}/_events?from=first");
        let Ok(mut stream) = EventStream::try_open(server, &path, last) else {
            std::thread::yield_now();
            continue;
        };
        while let Some(event) = stream.event() {
            ids.lock().expect("no panic").push(event.id);
        }
    }
}

fn written_lines(folder: &Path, ledger: &str) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let texts: String = files.iter().map(|file| std::fs::read_to_string(file).expect("text")).collect();
    let logs = texts.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    logs.filter(|log| log["ledger"] == ledger).map(|log| (log["id"].to_string(), mark(&log))).collect()
}

/// The flags of a server that sends events to `events` and pushes logs into files in `exports`.
fn flags(exports: &Path, events: &Receiver) -> Vec<String> {
    [
        "--experimental-exporters",
        "--worker-pipelines-push-retry-period=20ms",
        "--worker-pipelines-pull-interval=50ms",
        "--publisher-http-enabled",
        "--exporters-directory",
        &exports.display().to_string(),
        // Both publishers share one mapping. A subject may look like an address.
        &format!("--publisher-topic-mapping=*:{}", events.url("/in")),
    ]
    .map(str::to_owned)
    .into()
}

/// Creates the ledgers, and for each of them a pipeline into files and one to `pushed`.
fn set_up(address: &str, pushed: &Receiver) {
    for ledger in LEDGERS {
        assert_eq!(ask(address, "POST", &format!("/v2/{ledger}"), "").map(|(status, _)| status), Some(204));
    }
    let batching = json!({"maxItems": 50, "flushInterval": "1ms"});
    for config in [
        json!({"driver": "file", "config": {"name": "all", "maxBytes": 65_536, "batching": batching}}),
        json!({"driver": "http", "config": {"url": pushed.url("/logs"), "batching": batching}}),
    ] {
        let (_, made) = ask(address, "POST", "/v2/_/exporters", &config.to_string()).expect("an answer");
        for ledger in LEDGERS {
            let body = json!({"exporterID": made["data"]["id"]}).to_string();
            let made = ask(address, "POST", &format!("/v2/{ledger}/pipelines"), &body);
            assert_eq!(made.map(|(status, _)| status), Some(201));
        }
    }
}

/// Kills the server under load, and in some rounds also the broker. Restarts the broker at the end of the round.
fn kill_under_load(running: &mut Running, broker: &mut Option<Broker>, round: usize) {
    let acknowledged = AtomicUsize::new(0);
    // Kill at a different time in each round.
    let enough = 30 + round * 37 % 90;
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (address, acknowledged) = (running.address.clone(), &acknowledged);
            scope.spawn(move || load(&address, client, round, acknowledged));
        }
        let until = |count: usize| {
            while acknowledged.load(Ordering::Relaxed) < count {
                std::thread::yield_now();
            }
        };
        if let Some(broker) = broker.as_mut().filter(|_| round.is_multiple_of(2)) {
            until(enough / 2);
            broker.kill();
            if round.is_multiple_of(4) {
                until(enough * 3 / 4);
                assert!(broker.run());
            }
        }
        until(enough);
        stop(running);
    });
    if let Some(broker) = broker.as_mut().filter(|_| round % 4 == 2) {
        assert!(broker.run());
    }
}

/// Waits until every stream has delivered as many events as its ledger has logs.
fn wait_for_streams(expected: &[Vec<Value>; 2], followed: &[Mutex<Vec<u64>>; 2]) {
    let late = Instant::now() + Duration::from_mins(2);
    for (expected, ids) in expected.iter().zip(followed) {
        while ids.lock().expect("no panic").len() < expected.len() {
            assert!(Instant::now() < late, "the streams do not come to their ends");
            std::thread::yield_now();
        }
    }
}

#[test]
fn every_event_arrives_in_order_after_kills() {
    let rounds = std::env::var("EVENT_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(3);
    let directory = tempfile::tempdir().expect("a directory");
    let (data, exports) = (directory.path().join("data"), directory.path().join("exports"));
    let (events, pushed) = (Receiver::start(), Receiver::start());
    let mut broker = Broker::start();
    let mut flags = flags(&exports, &events);
    let mut running = start_with(&data, &flags);
    set_up(&running.address, &pushed);
    stop(&mut running);
    if let Some(broker) = &broker {
        flags.push("--publisher-nats-enabled".to_owned());
        flags.push(format!("--publisher-nats-url={}", broker.url()));
        flags.push("--publisher-nats-reconnect-wait=20ms".to_owned());
    }
    let running = start_with(&data, &flags);
    let address = Mutex::new(running.address.parse().expect("an address"));
    let (done, followed) = (AtomicBool::new(false), LEDGERS.map(|_| Mutex::new(Vec::new())));
    std::thread::scope(|scope| {
        // These are dropped in reverse order, even after a failure: the server ends first, and then its readers.
        let _ended = Ended(&done);
        let mut running = running;
        for (ledger, ids) in LEDGERS.iter().zip(&followed) {
            let (address, done) = (&address, &done);
            scope.spawn(move || follow(address, ledger, ids, done));
        }
        for round in 0..rounds {
            // The receiver refuses some events.
            events.answer_next(&vec![503; round % 4]);
            kill_under_load(&mut running, &mut broker, round);
            running = start_with(&data, &flags);
            *address.lock().expect("no panic") = running.address.parse().expect("an address");
        }
        let expected = LEDGERS.map(|ledger| logs(&running.address, ledger));
        wait_for_streams(&expected, &followed);
        check(&running.address, &expected, &followed, [&events, &pushed], &exports, broker.as_ref());
    });
}

/// Stops the stream readers when it is dropped.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn stop(running: &mut Running) {
    running.child.kill().expect("the process can be killed");
    running.child.wait().expect("the process ends");
}

/// Compares the events at each consumer with the logs.
fn check(
    address: &str,
    expected: &[Vec<Value>; 2],
    followed: &[Mutex<Vec<u64>>; 2],
    [events, pushed]: [&Receiver; 2],
    exports: &Path,
    broker: Option<&Broker>,
) {
    for (at, ledger) in LEDGERS.iter().enumerate() {
        let marks: Vec<String> = expected[at].iter().map(mark).collect();
        let ids: Vec<u64> = expected[at].iter().filter_map(|log| log["id"].as_u64()).collect();
        assert!(
            !expected[at].iter().any(|log| log.to_string().contains("999999")),
            "a log of a refused write"
        );
        assert_eq!(*followed[at].lock().expect("no panic"), ids, "the stream of {ledger}");

        let posted = |received: &[crate::receiver::Received]| {
            let taken = received.iter().filter(|one| one.status < 300);
            let taken = taken.map(|one| (one.headers["message-uuid"].clone(), one.json()));
            let taken = taken.filter(|(_, event)| event["payload"]["ledger"] == *ledger);
            first_of_each(taken.map(|(id, event)| (id, mark_of_event(&event))))
        };
        let received = events.wait("events", |received| posted(received).len() >= marks.len());
        assert_eq!(posted(&received), marks, "events of {ledger} over HTTP");

        let exported = |received: &[crate::receiver::Received]| {
            let logs = received.iter().flat_map(|one| one.json().as_array().expect("a list").clone());
            let logs = logs.filter(|log| log["ledger"] == *ledger);
            first_of_each(logs.map(|log| (log["id"].to_string(), mark(&log))))
        };
        let received = pushed.wait("logs", |received| exported(received).len() >= marks.len());
        assert_eq!(exported(&received), marks, "logs of {ledger} over HTTP");

        let (_, pipelines) = ask(address, "GET", &format!("/v2/{ledger}/pipelines"), "").expect("an answer");
        let count = pipelines["cursor"]["data"].as_array().map(Vec::len);
        assert_eq!(count, Some(2));
        let late = Instant::now() + Duration::from_mins(1);
        while first_of_each(written_lines(exports, ledger)).len() < marks.len() {
            assert!(Instant::now() < late, "lines of {ledger} do not come");
            std::thread::yield_now();
        }
        assert_eq!(first_of_each(written_lines(exports, ledger)), marks, "lines of {ledger}");
    }
    if let Some(broker) = broker {
        check_broker(broker, expected, events);
    }
}

fn check_broker(broker: &Broker, expected: &[Vec<Value>; 2], events: &Receiver) {
    let total: usize = expected.iter().map(Vec::len).sum();
    // The broker drops repetitions within its window, so its count is at least the number of events.
    let stream = events.url("/in").replace(['.', '*', '>', '/', '\\'], "_");
    let messages = broker.messages(&stream, total);
    for (logs, ledger) in expected.iter().zip(LEDGERS) {
        let of_ledger = messages.iter().filter(|(_, event)| event["payload"]["ledger"] == ledger);
        let first = first_of_each(of_ledger.map(|(id, event)| (id.clone(), mark_of_event(event))));
        assert_eq!(first, logs.iter().map(mark).collect::<Vec<_>>(), "messages of {ledger}");
    }
}
