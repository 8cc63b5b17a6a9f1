//! Shutdown of a server: it finishes running requests and starts no new ones.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::client::{Answer, TestServer};

#[test]
fn shutdown_finishes_requests_and_closes_idle_ones() {
    let mut test = TestServer::with_main();
    let mut idle = test.connect();
    idle.write_all(b"GET /v2/main/stats HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    let mut buffer = [0; 4_096];
    assert!(idle.read(&mut buffer).expect("an answer") > 0);

    let mut in_flight = test.connect();
    let body = r#"{"postings":[{"source":"world","destination":"a","amount":1,"asset":"USD"}]}"#;
    let head = format!(
        "POST /v2/main/transactions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    in_flight.write_all(head.as_bytes()).expect("sent");
    // The server has asked for the body, so it has started this request.
    let read = in_flight.read(&mut buffer).expect("an interim response");
    assert!(buffer[..read].starts_with(b"HTTP/1.1 100"));

    let server = test.server.take().expect("a running server");
    let stopping = std::thread::spawn(move || server.stop());
    // The idle connection ends, so the server is stopping.
    assert_eq!(idle.read(&mut buffer).expect("an end"), 0);
    in_flight.write_all(body.as_bytes()).expect("sent");
    let mut bytes = Vec::new();
    in_flight.read_to_end(&mut bytes).expect("an answer, then an end");
    assert_eq!(Answer::parse(&bytes).status, 200);
    stopping.join().expect("the server stops");
    wait_until_refused(test.address);
}

/// Waits until no process listens. A child process that another test has started shares the listener until its program
/// begins.
#[track_caller]
fn wait_until_refused(address: SocketAddr) {
    let late = Instant::now() + Duration::from_secs(30);
    let refused = loop {
        match TcpStream::connect(address) {
            Err(refused) => break refused,
            Ok(_) => assert!(Instant::now() < late, "somebody still listens"),
        }
        std::thread::yield_now();
    };
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_server_with_several_threads_stops_too() {
    let mut settings = stack_server::Settings::default();
    settings.http_threads = 3;
    let mut test = TestServer::with(settings);
    for _ in 0..9 {
        test.get("/v2/_healthcheck").is(200);
    }
    test.server.take().expect("a running server").stop();
    wait_until_refused(test.address);
}

/// Reads one response, and leaves the connection open.
fn next_answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a head");
        bytes.extend(byte);
    }
    let length =
        Answer::parse(&bytes).header("content-length").map_or(0, |text| text.parse().expect("a number"));
    let head = bytes.len();
    bytes.resize(head + length, 0);
    stream.read_exact(&mut bytes[head..]).expect("a body");
    Answer::parse(&bytes)
}

/// Sends a bulk that sets metadata of this length, or an empty one for none. Returns the response.
fn send_bulk(stream: &mut TcpStream, key: usize, length: usize) -> Answer {
    let value = "x".repeat(length);
    let element = format!(
        r#"{{"action":"ADD_METADATA","data":{{"targetType":"ACCOUNT","targetId":"a","metadata":{{"{key}":"{value}"}}}}}}"#
    );
    let body = if length == 0 { "[]".to_owned() } else { format!("[{element}]") };
    let length = body.len();
    let head = format!("POST /v2/main/_bulk HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(&[head, body].concat().into_bytes()).expect("sent");
    next_answer(stream)
}

#[test]
fn connection_of_large_and_small_requests_ends_too() {
    let mut test = TestServer::with_main();
    let mut stream = test.connect();
    for key in 0..5 {
        send_bulk(&mut stream, key, 9_000).is(200);
        send_bulk(&mut stream, key, 0).is(200);
        stream.write_all(b"GET /v2/main/accounts/a HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
        let account = next_answer(&mut stream).is(200).json();
        assert_eq!(account["data"]["metadata"].as_object().expect("metadata").len(), key + 1);
    }
    // After a large request, the connection waits on the thread for large requests.
    send_bulk(&mut stream, 5, 9_000).is(200);
    test.server.take().expect("a running server").stop();
    assert_eq!(stream.read(&mut [0]).expect("an end"), 0);
    wait_until_refused(test.address);
}
