//! The attacks: the bytes that each connection sends, and the data that must exist before.
//!
//! During each attack, an honest client sends requests to the ledger `main`.

use std::fmt::Write as _;

use crate::Failure;
use crate::http_client::Connection;

/// Maximum length of a body that is no stream. The server refuses longer ones.
const BODY_BYTES_MAX: usize = 4 << 20;

/// An attack.
pub struct Case {
    /// The name of the attack.
    pub name: &'static str,
    /// Number of connections of the attack at full scale. A run may use a part of them.
    pub(super) connections: u64,
    /// True if the attack writes to the store. Then the store may fill its share of the memory budget too, so the server
    /// may use the whole budget.
    pub(super) writes: bool,
    /// Creates the ledgers and transactions that the attack needs, given the server's address and the number of
    /// connections.
    pub(super) prepare: fn(&str, u64) -> Result<(), Failure>,
    /// Returns the bytes that a connection sends, given the number of the connection.
    pub(super) request: fn(u64) -> Request,
}

/// The bytes that a connection sends.
pub(super) struct Request {
    pub(super) head: String,
    /// Number of meaningless bytes to send after the head.
    pub(super) filling: usize,
    /// The attacker's action after it has sent these bytes.
    pub(super) next: NextAction,
}

/// An attacker's action after it has sent its request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NextAction {
    /// It waits, and does not read more of an answer than the status.
    Waits,
    /// It sends one more byte at intervals, so that no idle timeout closes the connection.
    Trickles,
    /// It reads the whole answer and sends the request again.
    Repeats,
    /// It closes the connection and sends the request again on another.
    Leaves,
}

impl Request {
    fn of(head: String) -> Self {
        Self { head, filling: 0, next: NextAction::Waits }
    }
}

/// All attacks.
pub const CASES: &[Case] = &[
    Case {
        // Bodies that lack their last byte.
        name: "bodies",
        connections: 1_000,
        writes: false,
        prepare: |address, _| create_ledgers(address, 0),
        request: |_| Request {
            head: post("/v2/main/transactions", BODY_BYTES_MAX),
            filling: BODY_BYTES_MAX - 1,
            next: NextAction::Waits,
        },
    },
    Case {
        // Imports whose first log never ends.
        name: "imports",
        connections: 100,
        writes: false,
        prepare: create_ledgers,
        request: |number| Request {
            head: post(&format!("/v2/import-{number}/logs/import"), 1 << 30) + r#"{"id":1,"type":""#,
            filling: 31 << 20,
            next: NextAction::Trickles,
        },
    },
    Case {
        // Pages of large transactions. The attacker does not read them.
        name: "pages",
        connections: 12,
        writes: false,
        prepare: |address, _| create_large_transactions(address, 12),
        request: |_| Request::of(get("/v2/main/transactions?pageSize=100&expand=volumes,effectiveVolumes")),
    },
    Case {
        // Request heads that never end.
        name: "heads",
        connections: 3_000,
        writes: false,
        prepare: |address, _| create_ledgers(address, 0),
        request: |_| Request {
            head: "GET /v2/main HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Filling: ".to_owned(),
            filling: 150_000,
            next: NextAction::Waits,
        },
    },
    Case {
        // Clients of event streams that read no events.
        name: "events",
        connections: 600,
        writes: false,
        prepare: |address, _| create_large_transactions(address, 4),
        request: |_| Request::of(get("/v2/main/_events?from=first")),
    },
    Case {
        // Bulk streams of 30,000 transactions.
        name: "streams",
        connections: 4,
        writes: true,
        prepare: |address, _| create_ledgers(address, 0),
        request: |_| Request { next: NextAction::Repeats, ..Request::of(long_bulk_stream()) },
    },
    Case {
        // Bulk streams of 30,000 transactions whose clients close the connection without reading the answer.
        name: "abandoned",
        connections: 4,
        writes: true,
        prepare: |address, _| create_ledgers(address, 0),
        request: |_| Request { next: NextAction::Leaves, ..Request::of(long_bulk_stream()) },
    },
    Case {
        // The longest batches of API v1.
        name: "batches",
        connections: 4,
        writes: true,
        prepare: |address, _| create_ledgers(address, 0),
        request: |_| Request { next: NextAction::Repeats, ..Request::of(long_batch()) },
    },
];

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
}

fn post(path: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n")
}

/// Number of elements in a long bulk stream: roughly as many as fit into one request body.
const BULK_STREAM_ELEMENTS: usize = 30_000;

/// Maximum number of transactions in a batch of API v1.
const BATCH_TRANSACTIONS: usize = 10_000;

/// A transaction of the long bulk streams and batches.
const TRANSACTION: &str =
    r#"{"postings":[{"source":"world","destination":"users:1","amount":1,"asset":"USD"}]}"#;

fn long_bulk_stream() -> String {
    let element = format!(r#"{{"action":"CREATE_TRANSACTION","data":{TRANSACTION}}}"#);
    let body = element.repeat(BULK_STREAM_ELEMENTS);
    let form = "application/vnd.formance.ledger.api.v2.bulk+json-stream";
    let length = body.len();
    format!(
        "POST /v2/main/_bulk HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {form}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

fn long_batch() -> String {
    let transactions = vec![TRANSACTION; BATCH_TRANSACTIONS].join(",");
    let body = format!(r#"{{"transactions":[{transactions}]}}"#);
    post("/api/ledger/main/transactions/batch", body.len()) + &body
}

/// Creates the ledger of the honest client, and `import_ledgers` ledgers to import into.
fn create_ledgers(address: &str, import_ledgers: u64) -> Result<(), Failure> {
    let ledgers = (0..import_ledgers).map(|number| post(&format!("/v2/import-{number}"), 0));
    send_all(address, [post("/v2/main", 0)].into_iter().chain(ledgers))
}

/// Creates the ledger of the honest client and fills it with `count` transactions of three megabytes each.
fn create_large_transactions(address: &str, count: u64) -> Result<(), Failure> {
    create_ledgers(address, 0)?;
    let mut body = String::from("{\"postings\":[");
    for at in 0..10_000 {
        let comma = if at == 0 { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = write!(
            body,
            r#"{comma}{{"source":"world","destination":"users:{at:0200}","amount":1,"asset":"USD"}}"#
        );
    }
    body.push_str("]}");
    send_all(address, (0..count).map(|_| post("/v2/main/transactions", body.len()) + &body))
}

/// Sends requests one after the other. All must succeed.
fn send_all(address: &str, requests: impl Iterator<Item = String>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut connection = Connection::connect(address).await?;
        for request in requests {
            let answer = connection.exchange(request.as_bytes()).await?;
            if !matches!(answer.status, 200 | 204) {
                let reason = String::from_utf8_lossy(answer.body).into_owned();
                return Err(format!("preparing the attack failed: {} {reason}", answer.status).into());
            }
        }
        Ok(())
    })
}
