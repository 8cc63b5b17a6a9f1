//! The rights of web pages. On a server without tokens, a page has no rights unless the operator allows its origin. On
//! a server with tokens, it has the rights of its token.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::json;
use stack_server::{HostName, Origin, Settings};

use crate::auth_enforced::guarded;
use crate::client::{Answer, TestServer};
use crate::sdk::{Running, browser, node_with, run};

const TRANSFER: &str = r#"{"postings":[{"source":"world","destination":"a","amount":1,"asset":"USD"}]}"#;

/// The headers that reveal a request of a page from another site.
const FOREIGN: &[&[(&str, &str)]] = &[
    &[("Host", "rebind.evil.example")],
    &[("Host", "rebind.evil.example"), ("Origin", "http://rebind.evil.example")],
    &[("Origin", "http://evil.example")],
    &[("Origin", "http://evil.example"), ("Content-Type", "text/plain")],
    &[("Origin", "null")],
    &[("Origin", "http://localhost:1")],
    &[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")],
];

fn transactions(server: &TestServer) -> u64 {
    server.get("/v2/main/stats").is(200).json()["data"]["transactions"].as_u64().expect("a number")
}

#[test]
fn refuses_foreign_pages_in_the_form_of_each_mount() {
    let server = TestServer::with_authorization();
    server.post("/v2/main", "").is(204);
    for headers in FOREIGN {
        for (method, path) in [
            ("POST", "/v2/main/transactions"),
            ("POST", "/api/ledger/v2/main/transactions"),
            ("POST", "/main/transactions"),
            ("POST", "/api/ledger/main/transactions"),
            ("GET", "/v2/main/transactions"),
            ("GET", "/_info"),
            ("GET", "/api/payments/payments"),
            ("POST", "/api/auth/clients"),
            ("POST", "/v2/nosuch/transactions"),
        ] {
            let answer = server.send(method, path, headers, TRANSFER);
            assert_eq!(answer.header("access-control-allow-origin"), None, "{path}");
            let reason = answer.refused(403, "VALIDATION");
            assert!(
                reason.contains("--allowed-host") || reason.contains("--cors-origin"),
                "{path}: {reason}"
            );
        }
        let generic = server.send("GET", "/api/generic/accounts", headers, "").is(403).json();
        assert_eq!(generic["Title"], "Forbidden");
        // The response also does not reveal which paths and methods exist.
        server.send("GET", "/v2/main/nosuch", headers, "").is(403);
        server.send("DELETE", "/v2/main/stats", headers, "").is(403);
    }
    assert_eq!(transactions(&server), 0);
}

#[test]
fn refuses_preflights_of_foreign_pages() {
    let server = TestServer::with_main();
    let asked = [("Origin", "http://evil.example"), ("Access-Control-Request-Method", "POST")];
    let answer = preflight(&server, &asked);
    assert_eq!(answer.status, 403, "{answer:?}");
    assert_eq!(answer.header("access-control-allow-methods"), None);
    assert_eq!(answer.header("access-control-allow-origin"), None);
}

/// Sends a preflight request. Only refusals have a body among the responses to `OPTIONS`.
fn preflight(server: &TestServer, headers: &[(&str, &str)]) -> Answer {
    let mut head =
        "OPTIONS /v2/main/transactions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n".to_owned();
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = server.connect();
    stream.write_all(format!("{head}\r\n").as_bytes()).expect("sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    Answer::parse(&bytes)
}

#[test]
fn answers_its_own_pages_and_clients_that_are_none() {
    let server = TestServer::with_main();
    let own = format!("http://{}", server.address);
    let port = server.address.port();
    let (host, name) = (server.address.to_string(), format!("localhost:{port}"));
    for headers in [
        vec![],
        vec![("Host", host.as_str()), ("Origin", own.as_str()), ("Sec-Fetch-Site", "same-origin")],
        vec![("Host", name.as_str())],
        vec![("Host", "[::1]")],
        vec![("Sec-Fetch-Site", "none")],
    ] {
        server.send("POST", "/v2/main/transactions", &headers, TRANSFER).is(200);
    }
    // Other sites may link to the page that describes the API.
    let link =
        [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")];
    server.send("GET", "/docs", &link, "").is(200);
}

#[test]
fn answers_listed_origins_and_hosts() {
    let mut settings = Settings::default();
    settings.cors_origins = Origin::parse_list("https://app.example").expect("an origin");
    settings.allowed_hosts = HostName::parse_list("ledger.example").expect("a name");
    settings.public_url = "https://stack.example/x".to_owned();
    let server = TestServer::with(settings);
    for host in ["ledger.example", "stack.example:443"] {
        server.send("GET", "/v2", &[("Host", host)], "").is(200);
    }
    let page = [("Origin", "https://app.example"), ("Content-Type", "application/json")];
    let made = server.send("POST", "/v2/main", &page, "").is(204);
    assert_eq!(made.header("access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(made.header("vary"), Some("Origin"));
    let asked = [page[0], ("Access-Control-Request-Method", "POST")];
    let preflight = server.send("OPTIONS", "/v2/main/transactions", &asked, "").is(204);
    assert_eq!(preflight.header("access-control-allow-origin"), Some("https://app.example"));
    server.send("POST", "/v2/main", &[("Origin", "https://other.example")], "").is(403);
}

#[test]
fn with_tokens_browsers_of_any_origin_may_ask() {
    let (server, root) = guarded(false);
    let asked = [
        ("Origin", "https://app.example"),
        ("Access-Control-Request-Method", "DELETE"),
        ("Access-Control-Request-Headers", "idempotency-key, x-anything"),
    ];
    let preflight = server.send("OPTIONS", "/v2/main/transactions", &asked, "").is(204);
    assert_eq!(preflight.header("access-control-allow-origin"), Some("*"));
    assert_eq!(preflight.header("access-control-allow-headers"), Some("idempotency-key, x-anything"));
    assert_eq!(preflight.header("access-control-allow-methods"), Some("GET, HEAD, POST, PUT, PATCH, DELETE"));
    let token = format!("Bearer {}", root.token(&server, "ledger:write"));
    let page = [asked[0], ("Host", "any.example"), ("Authorization", token.as_str())];
    for (path, status) in [("/v2", 200), ("/v2/nosuch/stats", 404)] {
        let answer = server.send("GET", path, &page, "").is(status);
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        assert_eq!(
            answer.header("access-control-expose-headers"),
            Some("Count, Idempotency-Hit, X-Request-Id")
        );
    }
    let refused = server.send("GET", "/v2", &asked[..1], "").is(401);
    assert_eq!(refused.header("access-control-allow-origin"), Some("*"));
    let client = server.send("GET", "/v2", &page[2..], "").is(200);
    assert_eq!(client.header("access-control-allow-origin"), None);
    // Without the header of a preflight request, `OPTIONS` is a method like any other.
    assert_eq!(server.send("OPTIONS", "/v2", &[], "").is(405).header("allow"), Some("GET"));
    assert_eq!(server.get("/versions").is(200).json()["region"], json!("local"));
}

/// Serves an empty page under all host names and paths. Returns the port.
fn serve_page() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            // Browsers send a head in one piece. Its content does not matter.
            let _ = stream.read(&mut [0; 4_096]);
            let page = "<!doctype html><title>page</title>";
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n";
            // Ignore the error of a browser that has disconnected.
            let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{page}", page.len());
        }
    });
    port
}

#[test]
fn a_browser_keeps_hostile_pages_out() {
    let Some(node) = node_with(&["playwright-core"]) else { return };
    let Some(browser) = browser() else { return };
    let port = serve_page();
    let flags = ["--cors-origin", &format!("http://app.example:{port}")];
    let server = Running::start_with(tempfile::tempdir().expect("a directory"), &flags);
    run(node(), &server, "hostile.mjs", &[&browser, &port.to_string()], 7);
}
