//! Fuzz target: any request to any route causes neither a panic nor a server error, and refused requests
//! change nothing.

use std::cell::RefCell;

use ledger_core::FilterOf;
use ledger_store::{Deleted, Direction, LogHashes, LogQuery, PageRequest, Start, Store};
use stack_server::Settings;
use stack_server::testing::OfflineServer;

/// Number of requests to one store. Several requests share a store, so that some of them find the writes of others. The
/// number bounds the memory of the store.
const REQUESTS: u32 = 2_000;

struct TestServer {
    store: Store,
    server: OfflineServer,
    left: u32,
}

impl TestServer {
    fn new() -> Self {
        let store = Store::in_memory();
        let mut settings = Settings::default();
        settings.experimental_features = true;
        let server = OfflineServer::new(&store, settings);
        for (head, body) in [
            ("POST /v2/main", ""),
            ("POST /api/ledger/v2/stack", ""),
            ("POST /v2/main/transactions", TOPUP),
            ("POST /api/ledger/v2/stack/transactions", TOPUP),
            ("POST /legacy/transactions", TOPUP),
        ] {
            let answer = server.send(&message(head, "", body.as_bytes()));
            assert!(status(&answer).is_some_and(|status| status < 300), "{head}");
        }
        Self { store, server, left: REQUESTS }
    }

    /// Returns the name and the last log id of every ledger.
    fn heads(&self) -> Vec<(String, Option<u64>)> {
        let snapshot = self.store.snapshot();
        let all = PageRequest { size: 1_000, direction: Direction::Ascending, start: Start::First };
        let ledgers = snapshot.ledgers(&all, &FilterOf::all(), Deleted::Shown).expect("the ledgers");
        let head = |name| {
            let page = PageRequest { size: 1, direction: Direction::Descending, start: Start::First };
            let query = LogQuery { filter: FilterOf::all(), hashes: LogHashes::Wire, page };
            let page = snapshot.ledger(name)?.logs(&query).expect("the last log");
            page.items.first().map(|log| log.entry.id.get())
        };
        ledgers.items.iter().map(|ledger| (ledger.name.to_string(), head(&ledger.name))).collect()
    }
}

const TOPUP: &str = r#"{"postings":[{"source":"world","destination":"users:1","amount":100,"asset":"USD/2"}],"reference":"r"}"#;

thread_local! {
    static TEST_SERVER: RefCell<Option<TestServer>> = const { RefCell::new(None) };
}

/// Reads a line with method and target, header lines, an empty line, and a body.
pub fn run(data: &[u8]) {
    answered(data);
}

/// Sends the request and returns its status, or `None` if the bytes are not HTTP.
pub fn answered(data: &[u8]) -> Option<u16> {
    let end = data.windows(2).position(|two| two == b"\n\n").unwrap_or(data.len());
    let head = String::from_utf8_lossy(&data[..end]);
    let body = data.get(end + 2..).unwrap_or_default();
    let (line, headers) = head.split_once('\n').unwrap_or((&head, ""));
    TEST_SERVER.with_borrow_mut(|server| {
        let server = match server {
            Some(server) if server.left > 0 => server,
            used => {
                if let Some(TestServer { store, .. }) = used.take() {
                    let _ = store.close();
                }
                used.insert(TestServer::new())
            }
        };
        server.left -= 1;
        let before = server.heads();
        let answer = server.server.send(&message(line, headers, body));
        // The server may close the connection without an answer if the bytes are not HTTP.
        let status = status(&answer)?;
        assert!(status < 500, "{line:?}: {}", String::from_utf8_lossy(&answer));
        // These routes store the elements before the refused one, as documented.
        let may_go_halfway = line.contains("bulk") || line.contains("import") || line.contains('%');
        let query = line.split_once('?').map_or("", |(_, query)| query);
        let is_dry = query.split('&').find(|pair| pair.starts_with("dryRun")) == Some("dryRun=true");
        if status >= 400 && !may_go_halfway || line.starts_with("GET ") || line.starts_with("HEAD ") {
            assert_eq!(server.heads(), before, "{line:?} answers {status} and wrote");
        }
        if is_dry && !may_go_halfway && line.contains("/v2/") && line.contains("/transactions") {
            assert_eq!(server.heads(), before, "{line:?} wrote");
        }
        Some(status)
    })
}

fn message(line: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut text = format!("{line} HTTP/1.1\r\nHost: fuzz\r\nContent-Length: {}\r\n", body.len());
    for header in headers.lines().filter(|header| !header.is_empty()) {
        text.push_str(header);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    let mut message = text.into_bytes();
    message.extend_from_slice(body);
    message
}

fn status(answer: &[u8]) -> Option<u16> {
    let head = std::str::from_utf8(answer.get(..12)?).ok()?;
    head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()
}
