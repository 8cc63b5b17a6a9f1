//! Somebody else's HTTP server, to whom events and logs are delivered.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A request that was received.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
    /// What it was answered with.
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
    /// Statuses of the next answers; then all is well.
    answers: Vec<u16>,
    /// The status of all answers, whatever stands above.
    always: Option<u16>,
}

/// Answers every request, and keeps them.
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
        // It ends with the test's process.
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

    /// The statuses of the next answers.
    pub(crate) fn answer_next(&self, statuses: &[u16]) {
        self.shared.0.lock().expect("no panic").answers = statuses.iter().rev().copied().collect();
    }

    /// One status for all answers; `None` is success.
    pub(crate) fn answer_always(&self, status: Option<u16>) {
        self.shared.0.lock().expect("no panic").always = status;
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
            let status = {
                let mut state = state.lock().expect("no panic");
                let status = state.always.or_else(|| state.answers.pop()).unwrap_or(200);
                state.received.push(Received { path, headers, body, status });
                status
            };
            changed.notify_all();
            // A writer that ignores partial heads: the answer goes out whole.
            (&mut (&*stream))
                .write_all(format!("HTTP/1.1 {status} X\r\nContent-Length: 2\r\n\r\nok").as_bytes())
                .ok()?;
        }
    }

    /// Waits until `enough` says so of everything that was received, and returns it.
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

    /// Waits for so many that were answered with success.
    #[track_caller]
    pub(crate) fn taken(&self, count: usize) -> Vec<Received> {
        let taken = |received: &[Received]| received.iter().filter(|one| one.status < 300).count();
        let mut all = self.wait("deliveries", |received| taken(received) >= count);
        all.retain(|one| one.status < 300);
        all
    }
}
