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
