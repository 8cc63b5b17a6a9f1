//! An honest client that continues during an attack. It sends a small request every 20 ms, three reads for each write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::histogram::Histogram;
use crate::http_client::Connection;

/// Time from the start of a request to the start of the next one, unless the answer takes longer.
const INTERVAL: Duration = Duration::from_millis(20);

/// Maximum time for an answer. A later one is a failure.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The client, which runs on its own thread.
pub(super) struct Bystander {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(Histogram, u64)>,
}

impl Bystander {
    /// Starts the client. It uses the ledger `main`.
    pub(super) fn start(address: &str) -> Result<Self, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, address) = (Arc::clone(&stop), address.to_owned());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::spawn(move || runtime.block_on(send_requests(&address, &stopped)));
        Ok(Self { stop, thread })
    }

    /// Stops the client. Returns its latencies and the number of its failed requests.
    pub(super) fn stop(self) -> (Histogram, u64) {
        self.stop.store(true, Ordering::Relaxed);
        // If the thread panicked, its latencies are lost. Count that as one failed request.
        self.thread.join().unwrap_or_else(|_| (Histogram::default(), 1))
    }
}

async fn send_requests(address: &str, stopped: &AtomicBool) -> (Histogram, u64) {
    let (mut latency, mut failures) = (Histogram::default(), 0);
    let body = r#"{"postings":[{"source":"world","destination":"honest","amount":1,"asset":"USD"}]}"#;
    let read = "GET /v2/main/accounts/world HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".to_owned();
    let write = format!(
        "POST /v2/main/transactions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut connection = None;
    let mut number = 0_u64;
    while !stopped.load(Ordering::Relaxed) {
        let request = if number.is_multiple_of(4) { &write } else { &read };
        number += 1;
        let began = Instant::now();
        let answered = tokio::time::timeout(TIMEOUT, ask(address, &mut connection, request)).await;
        if matches!(answered, Ok(Ok(200))) {
            latency.record(began.elapsed());
        } else {
            failures += 1;
            connection = None;
        }
        tokio::time::sleep(INTERVAL.saturating_sub(began.elapsed())).await;
    }
    (latency, failures)
}

async fn ask(address: &str, connection: &mut Option<Connection>, request: &str) -> Result<u16, Failure> {
    let open = match connection.take() {
        Some(open) => open,
        None => Connection::connect(address).await?,
    };
    Ok(connection.insert(open).exchange(request.as_bytes()).await?.status)
}
