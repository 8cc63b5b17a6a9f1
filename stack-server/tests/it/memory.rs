//! The memory of the server for bodies, responses and imports is bounded. When it is used up, small requests still
//! work.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use stack_server::Settings;

use crate::client::{Answer, TestServer};

/// Starts a server with a ledger, and with this many bytes of memory for requests and responses.
fn server(http_memory: usize) -> TestServer {
    let mut settings = Settings::default();
    settings.http_memory = http_memory;
    let server = TestServer::with(settings);
    server.post("/v2/main", "").is(204);
    server
}

/// Sends the head of a request, and only a part of its body.
fn begin(server: &TestServer, path: &str, length: usize, body: &str) -> TcpStream {
    let mut stream = server.connect();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("the head is sent");
    stream.write_all(body.as_bytes()).expect("the beginning is sent");
    stream
}

fn answer(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    Answer::parse(&bytes)
}

/// Returns a body of this length that creates a transaction.
fn body(length: usize) -> String {
    let value = r#"{"postings":[{"source":"world","destination":"a","amount":1,"asset":"USD"}]}"#;
    format!("{value}{}", " ".repeat(length - value.len()))
}

/// Returns a transaction with this many postings. With 10,000, its response exceeds the buffers that the operating system
/// has for a client that does not read.
fn large_transaction(postings: usize) -> String {
    let postings: Vec<Value> = (0..postings)
        .map(|at| {
            let destination = format!("users:{at:0200}");
            json!({"source": "world", "destination": destination, "amount": 1, "asset": "USD"})
        })
        .collect();
    json!({ "postings": postings }).to_string()
}

#[test]
fn large_bodies_wait_for_memory() {
    // The memory for bodies is less than two such bodies.
    let server = server(1 << 20);
    let whole = body(300_000);
    let mut first = begin(&server, "/v2/main/transactions", whole.len(), &whole[..20_000]);
    // A body that arrives with its head takes no memory from the budget, so small requests still work.
    server.transfer("world", "a", 1, "USD");
    let second = begin(&server, "/v2/main/transactions", whole.len(), &whole);
    server.transfer("world", "a", 1, "USD");
    first.write_all(&whole.as_bytes()[20_000..]).expect("the rest is sent");
    answer(first).is(200);
    answer(second).is(200);
    assert_eq!(server.get("/v2/main/transactions").is(200).column("id").len(), 4);
}

#[test]
fn refuses_large_bodies_beyond_the_budget() {
    let server = server(1 << 20);
    let whole = body(300_000);
    let first = begin(&server, "/v2/main/transactions", whole.len(), &whole[..20_000]);
    for chunked in [false, true] {
        let refused = if chunked {
            let mut stream = server.connect();
            let head = "POST /v2/main/transactions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
            let length = whole.len();
            write!(stream, "{head}{length:x}\r\n{whole}\r\n0\r\n\r\n").expect("all of it is sent");
            answer(stream)
        } else {
            answer(begin(&server, "/v2/main/transactions", whole.len(), &whole))
        };
        assert_eq!((refused.header("retry-after"), refused.header("connection")), (Some("1"), Some("close")));
        assert_eq!(refused.refused(503, "INTERNAL"), "too many large bodies are arriving");
    }
    server.transfer("world", "a", 1, "USD");
    drop(first);
    answer(begin(&server, "/v2/main/transactions", whole.len(), &whole)).is(200);
}

#[test]
fn refuses_imports_beyond_the_budget() {
    let server = server(1 << 20);
    server.post("/v2/copy", "").is(204);
    let log = format!("{{\"id\":1,\"type\":\"{}", "x".repeat(350_000));
    let first = begin(&server, "/v2/main/logs/import", 1 << 20, &log);
    let refused = answer(begin(&server, "/v2/copy/logs/import", log.len() + 1, &log));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.refused(503, "INTERNAL"), "too many large bodies are arriving");
    server.transfer("world", "a", 1, "USD");
    drop(first);
}

#[test]
fn refuses_large_answers_beyond_the_budget() {
    let server = server(16 << 20);
    let large = large_transaction(10_000);
    server.post("/v2/main/transactions", &large).is(200);
    let unread = || {
        let mut stream = server.connect();
        let get = "GET /v2/main/transactions?expand=volumes,effectiveVolumes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(get.as_bytes()).expect("the request is sent");
        // The first byte shows that the server has created the response.
        assert_eq!(stream.peek(&mut [0]).expect("an answer"), 1);
        stream
    };
    let first = unread();
    let refused = server.get("/v2/main/transactions?expand=volumes");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.refused(503, "INTERNAL"), "too many large answers wait for their clients");
    // A large write would need memory for its response, so the server refuses it before it does anything.
    let refused = server.post("/v2/main/transactions", &large).refused(503, "INTERNAL");
    assert_eq!(refused, "too many large answers wait for their clients");
    server.transfer("world", "a", 1, "EUR");
    server.get("/v2/main/accounts/a").is(200);
    answer(first).is(200);
    let after = server.get("/v2/main/transactions").is(200);
    assert_eq!(after.column("id"), ["2", "1"]);
}

#[cfg(target_os = "linux")]
#[test]
fn kernel_takes_only_the_beginning_of_an_answer() {
    // The memory for responses is less than two of these.
    let server = server(12 << 20);
    server.post("/v2/main/transactions", &large_transaction(5_000)).is(200);
    let get = "GET /v2/main/transactions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut unread = server.connect();
    unread.write_all(get.as_bytes()).expect("the request is sent");
    assert_eq!(unread.peek(&mut [0]).expect("an answer"), 1);
    // As long as the client does not read, the response counts.
    let refused = server.get("/v2/main/transactions").refused(503, "INTERNAL");
    assert_eq!(refused, "too many large answers wait for their clients");
    let read = answer(unread).is(200);
    assert!((1_200_000..1_800_000).contains(&read.body.len()), "{}", read.body.len());
    server.get("/v2/main/transactions").is(200);
}

#[test]
fn pages_of_large_items_end_early() {
    let server = TestServer::with_main();
    let note = "x".repeat(60_000);
    for at in 0..50 {
        let body = json!({
            "postings": [{"source": "world", "destination": format!("users:{at:02}"), "amount": 1, "asset": "USD"}],
            "metadata": {"note": note},
        });
        server.post("/v2/main/transactions", &body.to_string()).is(200);
    }
    for (path, field, size, cursors) in [
        ("/v2/main/transactions", "id", "pageSize=100", ["next", "previous"]),
        ("/v2/main/logs", "id", "pageSize=100", ["next", "previous"]),
        ("/main/transactions", "txid", "pageSize=1000", ["next", "previous"]),
        ("/main/logs", "id", "pageSize=1000", ["next", "previous"]),
    ] {
        let first = server.get(&format!("{path}?{size}")).is(200);
        let rows = first.column(field);
        assert!((20..50).contains(&rows.len()), "{path}: {}", rows.len());
        assert_eq!(first.json()["cursor"]["hasMore"], true, "{path}");
        let next = first.json()["cursor"][cursors[0]].as_str().expect("a cursor").to_owned();
        let second = server.get(&format!("{path}?cursor={next}")).is(200);
        assert_eq!(second.json()["cursor"]["hasMore"], false, "{path}");
        let all: Vec<u64> = [rows.clone(), second.column(field)]
            .concat()
            .iter()
            .map(|id| id.parse().expect("an id"))
            .collect();
        assert_eq!(all.len(), 50, "{path}");
        assert!(all.windows(2).all(|pair| pair[0] == pair[1] + 1), "{path}: {all:?}");
        let previous = second.json()["cursor"][cursors[1]].as_str().expect("a cursor").to_owned();
        let back = server.get(&format!("{path}?cursor={previous}")).is(200);
        let last = &rows[rows.len() - back.column(field).len()..];
        assert_eq!(back.column(field), last, "{path}");
    }
}
