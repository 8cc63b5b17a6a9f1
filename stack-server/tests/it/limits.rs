//! Limits: the server refuses a request that is too large with a readable body, and the next request still works.

use std::io::{Read, Write};

use crate::client::{Answer, TestServer};

const BODY_MAX: usize = 4 * 1_024 * 1_024;

#[test]
fn a_body_is_taken_up_to_its_limit() {
    let server = TestServer::with_main();
    let body = |size: usize| {
        let value = r#"{"postings":[{"source":"world","destination":"a","amount":1,"asset":"USD"}]}"#;
        format!("{value}{}", " ".repeat(size - value.len()))
    };
    server.post("/v2/main/transactions", &body(BODY_MAX)).is(200);
    let refused = server.post("/v2/main/transactions", &body(BODY_MAX + 1));
    assert_eq!(refused.header("connection"), Some("close"));
    refused.refused(413, "VALIDATION");
    let filter = " ".repeat(64 * 1_024 + 1);
    server.send("GET", "/v2/main/accounts", &[], &filter).refused(413, "VALIDATION");
}

#[test]
fn a_body_of_unknown_length_has_the_same_limit() {
    let server = TestServer::with_main();
    let mut stream = server.connect();
    let head = "POST /v2/main/transactions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("the head is sent");
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x1_0000));
    for _ in 0..=BODY_MAX / 0x1_0000 {
        stream.write_all(chunk.as_bytes()).expect("a chunk is sent");
    }
    stream.write_all(b"0\r\n\r\n").expect("the end is sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    Answer::parse(&bytes).refused(413, "VALIDATION");
}

#[test]
fn refuses_large_body_before_client_sends_it() {
    let server = TestServer::with_main();
    let mut stream = server.connect();
    let head = "POST /v2/main/transactions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("the head is sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    Answer::parse(&bytes).refused(413, "VALIDATION");
}

#[test]
fn reads_an_unwanted_body_and_goes_on() {
    let server = TestServer::with_main();
    for (target, status) in [("POST /nowhere", "404"), ("PUT /v2/main/stats", "405")] {
        let mut stream = server.connect();
        let head = format!("{target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n");
        let next = "GET /v2/main/stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        for part in [head.as_str(), &" ".repeat(2_000_000), next] {
            stream.write_all(part.as_bytes()).expect("all of it is taken");
        }
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("two answers");
        let statuses: Vec<_> = text.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
        assert_eq!(statuses, [status, "200"], "{text}");
    }
}

#[test]
fn a_target_is_taken_up_to_its_limit() {
    let server = TestServer::with_main();
    let path = |size: usize| {
        let path = "/v2/main/stats?x=";
        format!("{path}{}", "y".repeat(size - path.len()))
    };
    server.get(&path(16 * 1_024)).is(200);
    server.get(&path(16 * 1_024 + 1)).refused(414, "VALIDATION");
    server.get(&path(60 * 1_024)).refused(414, "VALIDATION");
}

#[test]
fn headers_are_taken_up_to_their_limits() {
    let server = TestServer::with_main();
    let large = "y".repeat(32 * 1_024);
    server.send("GET", "/v2/main/stats", &[("X-A", &large)], "").is(200);
    let two = [("X-A", large.as_str()), ("X-B", &large)];
    server.send("GET", "/v2/main/stats", &two, "").refused(431, "VALIDATION");
    let mut lines = String::new();
    for at in 0..101 {
        lines.push_str(&format!("X-{at}: 1\r\n"));
    }
    let mut stream = server.connect();
    let request = format!("GET /v2/main/stats HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    assert_eq!(Answer::parse(&bytes).status, 431);
}

#[test]
fn refuses_malformed_request_and_closes_connection() {
    let server = TestServer::with_main();
    for head in [
        "POST /v2/main/transactions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "POST /v2/main/transactions HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n{}",
        "GET /v2/main/stats HTTP/1.1\r\nHost : t\r\n\r\n",
        "nonsense\r\n\r\n",
        "GET /v2/main/stats HTTP/1.1\r\nConnection: close\r\n\r\n",
        "GET http://localhost/v2/main/stats HTTP/1.1\r\nConnection: close\r\n\r\n",
        "GET /v2/main/stats HTTP/1.1\r\nHost: localhost\r\nhost: localhost\r\nConnection: close\r\n\r\n",
        "\nGET /v2/main/stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET /v2/main/stats HTTP/1.1\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET /v2/main/stats HTTP/1.1\r\nHost: localhost\nConnection: close\r\n\r\n",
        "GET /v2/main/stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\n",
        "GET /v2/main/stats HTTP/1.1\nHost: localhost\nConnection: close\n\n",
    ] {
        let mut stream = server.connect();
        stream.write_all(head.as_bytes()).expect("sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer");
        assert_eq!(Answer::parse(&bytes).status, 400, "{head:?}");
    }
}

#[test]
fn packed_bodies_are_not_unpacked() {
    let server = TestServer::with_main();
    let gzip = [("Content-Encoding", "gzip")];
    server.send("POST", "/v2/main/transactions", &gzip, "x").refused(415, "VALIDATION");
}

#[test]
fn deep_and_wide_json_is_refused_quickly() {
    let server = TestServer::with_main();
    let deep = "[".repeat(100_000);
    server.post("/v2/main/transactions", &deep).refused(400, "VALIDATION");
    server.post("/v2/main/_bulk", &deep).refused(400, "VALIDATION");
    let filter = format!("{}{{}}", "{\"$not\":".repeat(1_000));
    server.send("GET", "/v2/main/accounts", &[], &filter).refused(400, "VALIDATION");
    let amount = "9".repeat(1_001);
    let body =
        format!(r#"{{"postings":[{{"source":"world","destination":"a","amount":{amount},"asset":"USD"}}]}}"#);
    server.post("/v2/main/transactions", &body).refused(400, "VALIDATION");
}

#[test]
fn a_bare_line_feed_is_found_behind_bodies() {
    let server = TestServer::with_main();
    let next = "GET /v2/main/stats HTTP/1.1\r\nHost: localhost\nConnection: close\r\n\r\n";
    for (first, status) in [
        ("GET /v2/main/stats HTTP/1.1\r\nHost: localhost\r\n\r\n", "200"),
        ("GET /v2/main/accounts HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n{\n\n}", "200"),
        (
            "GET /v2/main/accounts HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\n{\n\r\n2\r\n\n}\r\n0\r\nt: v\r\n\r\n",
            "200",
        ),
        ("PUT /v2/main/stats HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n\n\n", "405"),
    ] {
        let mut stream = server.connect();
        stream.write_all(format!("{first}{next}").as_bytes()).expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("two answers");
        let statuses: Vec<_> = text.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
        assert_eq!(statuses, [status, "400"], "{first:?}: {text}");
    }
}

#[test]
fn says_which_host_is_missing_in_form_of_mount() {
    let server = TestServer::with_main();
    let ask = |line: &str| {
        let mut stream = server.connect();
        stream.write_all(format!("{line}\r\nConnection: close\r\n\r\n").as_bytes()).expect("sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer");
        Answer::parse(&bytes)
    };
    for path in ["/v2/main", "/main/stats", "/api/payments/payments"] {
        let reason = ask(&format!("GET {path} HTTP/1.1")).refused(400, "VALIDATION");
        assert_eq!(reason, "the request has no header Host", "{path}");
    }
    assert_eq!(ask("GET /api/generic/accounts HTTP/1.1").is(400).json()["Title"], "Bad Request");
    // HTTP/1.0 has no such rule.
    ask("GET /v2/main HTTP/1.0").is(200);
}
