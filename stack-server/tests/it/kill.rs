//! Kills the server under load. After a restart, the store contains every acknowledged write and no refused one.
//!
//! The ordinary run has three rounds. `KILL_ROUNDS=50 cargo test -p stack-server kill` runs more.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

const CLIENTS: usize = 8;

pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended already. A failed test must leave nothing behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(data: &Path) -> Running {
    start_with(data, &[])
}

/// Starts the server with additional flags.
pub(crate) fn start_with(data: &Path, flags: &[String]) -> Running {
    start_with_log(data, flags, Stdio::null())
}

/// Starts the server with additional flags, and writes its log to `log`.
pub(crate) fn start_with_log(data: &Path, flags: &[String], log: impl Into<Stdio>) -> Running {
    let mut child = Command::new(env!("CARGO_BIN_EXE_stack-server"))
        .args(["serve", "--listen", "127.0.0.1:0", "--max-page-size", "1000", "--data"])
        .arg(data)
        .args(flags)
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .expect("the server starts");
    let address = address_of(&mut child);
    Running { child, address }
}

/// Reads the address of a newly started server from its output.
pub(crate) fn address_of(server: &mut Child) -> String {
    let stdout = server.stdout.take().expect("piped");
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    // If the server is a test process, its output begins with lines of the test harness.
    let line = lines.find(|line| line.starts_with("listening on ")).unwrap_or_default();
    let address = line.split_once("://");
    address.unwrap_or_else(|| panic!("the server did not come up: {line:?}")).1.to_owned()
}

/// Sends a request on a new connection. Returns `None` without a complete response.
pub(crate) fn ask(address: &str, method: &str, path: &str, body: &str) -> Option<(u16, Value)> {
    let (status, _, body) = ask_with(address, method, path, "", body)?;
    Some((status, if body.is_empty() { Value::Null } else { serde_json::from_str(&body).ok()? }))
}

/// Sends a request with additional header lines. Returns status, head and body of a complete response.
pub(crate) fn ask_with(
    address: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Option<(u16, String, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let expected = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:").map(str::to_owned));
    let is_whole = match expected {
        Some(length) => length.trim().parse() == Ok(body.len()),
        // A stream ends with an empty chunk.
        None => body.is_empty() || body.ends_with("\r\n0\r\n\r\n"),
    };
    if !is_whole {
        return None;
    }
    Some((status, head.to_owned(), body.to_owned()))
}

/// References of transactions, grouped by outcome.
#[derive(Default)]
struct Outcomes {
    done: BTreeSet<String>,
    refused: BTreeSet<String>,
    unknown: BTreeSet<String>,
}

fn round(data: &Path, number: usize, outcomes: &Mutex<Outcomes>) {
    let mut running = start(data);
    let address = running.address.clone();
    ask(&address, "POST", "/v2/main", "");
    let acknowledged = AtomicUsize::new(0);
    let enough = 40 + number * 17 % 60;
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (address, acknowledged) = (&address, &acknowledged);
            scope.spawn(move || {
                for attempt in 0.. {
                    let reference = format!("r-{number}-{client}-{attempt}");
                    // Every fifth write needs funds that the source does not have.
                    let source = if attempt % 5 == 4 { "nobody" } else { "world" };
                    let body = format!(
                        r#"{{"postings":[{{"source":"{source}","destination":"users:{client}","amount":7,"asset":"USD/2"}}],"reference":"{reference}"}}"#
                    );
                    let answer = ask(address, "POST", "/v2/main/transactions", &body);
                    let mut outcomes = outcomes.lock().expect("no client panics");
                    match answer {
                        Some((200, _)) => {
                            outcomes.done.insert(reference);
                            acknowledged.fetch_add(1, Ordering::Relaxed);
                        }
                        Some((400, _)) => {
                            outcomes.refused.insert(reference);
                        }
                        _ => {
                            outcomes.unknown.insert(reference);
                            return;
                        }
                    }
                }
            });
        }
        while acknowledged.load(Ordering::Relaxed) < enough {
            std::thread::yield_now();
        }
        running.child.kill().expect("the process can be killed");
        running.child.wait().expect("the process ends");
    });
}

fn recorded(address: &str) -> (BTreeSet<String>, Vec<u64>) {
    let mut references = BTreeSet::new();
    let mut ids = Vec::new();
    let mut path = "/v2/main/transactions?pageSize=1000".to_owned();
    loop {
        let (status, answer) = ask(address, "GET", &path, "").expect("an answer");
        assert_eq!(status, 200, "{answer}");
        let cursor = &answer["cursor"];
        for transaction in cursor["data"].as_array().expect("a list") {
            let reference = transaction["reference"].as_str().expect("a reference").to_owned();
            assert!(references.insert(reference), "recorded twice: {transaction}");
            ids.push(transaction["id"].as_u64().expect("an id"));
        }
        match cursor["next"].as_str() {
            Some(next) => path = format!("/v2/main/transactions?cursor={next}"),
            None => return (references, ids),
        }
    }
}

#[test]
fn acknowledged_writes_survive_sigkill() {
    let rounds = std::env::var("KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(3);
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let outcomes = Mutex::new(Outcomes::default());
    for number in 0..rounds {
        round(&data, number, &outcomes);
        let mut running = start(&data);
        let (references, ids) = recorded(&running.address);
        {
            let outcomes = outcomes.lock().expect("no client panics");
            let lost: Vec<_> = outcomes.done.difference(&references).collect();
            assert!(lost.is_empty(), "acknowledged and lost in round {number}: {lost:?}");
            let unwanted: Vec<_> = outcomes.refused.intersection(&references).collect();
            assert!(unwanted.is_empty(), "refused and recorded in round {number}: {unwanted:?}");
            let invented: Vec<_> = references
                .iter()
                .filter(|r| !outcomes.done.contains(*r) && !outcomes.unknown.contains(*r))
                .collect();
            assert!(invented.is_empty(), "recorded and never sent in round {number}: {invented:?}");
        }
        let expected: Vec<u64> = (1..=ids.len() as u64).rev().collect();
        assert_eq!(ids, expected, "ids have no gap");
        let (_, stats) = ask(&running.address, "GET", "/v2/main/stats", "").expect("an answer");
        assert_eq!(stats["data"]["transactions"].as_u64(), Some(ids.len() as u64));
        let (_, sums) = ask(&running.address, "GET", "/v2/main/aggregate/balances", "").expect("an answer");
        assert_eq!(sums["data"]["USD/2"].as_i64(), Some(0), "money is conserved");
        running.child.kill().expect("the process can be killed");
        running.child.wait().expect("the process ends");
    }
    let verified = Command::new(env!("CARGO_BIN_EXE_stack-server")).arg("verify").arg(&data).output();
    let verified = verified.expect("the command runs");
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}
