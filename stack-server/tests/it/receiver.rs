//! A test HTTP server that receives events and logs.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
    /// The status of the response.
    pub(crate) status: u16,
}

impl Received {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

#[derive(Default)]
struct State {
    received: Vec<Received>,
    /// Sets the statuses of the next responses.
    answers: Vec<u16>,
    /// The status of all responses, which overrides `answers`.
    always: Option<u16>,
    /// The body of successes.
    says: String,
}

/// A server that responds to every request and records it.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    shared: Arc<(Mutex<State>, Condvar)>,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let receiver = Self { address, shared };
        let served = receiver.clone();
        // The thread ends with the process of the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = served.clone();
                std::thread::spawn(move || served.serve(&stream));
            }
        });
        receiver
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sets the statuses of the next responses.
    pub(crate) fn answer_next(&self, statuses: &[u16]) {
        self.shared.0.lock().expect("no panic").answers = statuses.iter().rev().copied().collect();
    }

    /// Sets one status for all responses. `None` means success.
    pub(crate) fn answer_always(&self, status: Option<u16>) {
        self.shared.0.lock().expect("no panic").always = status;
    }

    /// Sets the body of successes.
    pub(crate) fn say(&self, body: &str) {
        body.clone_into(&mut self.shared.0.lock().expect("no panic").says);
    }

    fn serve(&self, stream: &TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
            let path = line.split(' ').nth(1)?.to_owned();
            let mut headers = BTreeMap::new();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).ok()?;
                let Some((name, value)) = line.trim_end().split_once(": ") else { break };
                headers.insert(name.to_ascii_lowercase(), value.to_owned());
            }
            let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
            reader.read_exact(&mut body).ok()?;
            let body = String::from_utf8(body).ok()?;
            let (state, changed) = &*self.shared;
            let (status, said) = {
                let mut state = state.lock().expect("no panic");
                let status = state.always.or_else(|| state.answers.pop()).unwrap_or(200);
                state.received.push(Received { path, headers, body, status });
                let says = if state.says.is_empty() { "ok".to_owned() } else { state.says.clone() };
                (status, says)
            };
            changed.notify_all();
            // Write the whole response in one call. `write!` would send it in pieces.
            (&mut (&*stream))
                .write_all(
                    format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{said}", said.len()).as_bytes(),
                )
                .ok()?;
        }
    }

    /// Waits until `enough` accepts the received requests, and returns them.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, enough: impl Fn(&[Received]) -> bool) -> Vec<Received> {
        let (state, changed) = &*self.shared;
        let mut state = state.lock().expect("no panic");
        let late = Instant::now() + Duration::from_mins(1);
        while !enough(&state.received) {
            let left = late.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what}: not within a minute, {} received", state.received.len());
            state = changed.wait_timeout(state, left).expect("no panic").0;
        }
        state.received.clone()
    }

    /// Waits for `count` requests that were answered with success.
    #[track_caller]
    pub(crate) fn taken(&self, count: usize) -> Vec<Received> {
        let taken = |received: &[Received]| received.iter().filter(|one| one.status < 300).count();
        let mut all = self.wait("deliveries", |received| taken(received) >= count);
        all.retain(|one| one.status < 300);
        all
    }
}
