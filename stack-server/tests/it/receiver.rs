//! A test HTTP server that receives events and logs.

use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::http_server::{ReceivedRequest, listen};

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
        let shared: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let served = shared.clone();
        Self { address: listen(move |stream| serve(&served, stream)), shared }
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

fn serve((state, changed): &(Mutex<State>, Condvar), stream: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let ReceivedRequest { path, body, headers } = ReceivedRequest::read(&mut reader)?;
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
