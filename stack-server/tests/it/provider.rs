//! Somebody else's API of payments: answers by path, and what was asked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// A request that was received.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) body: String,
    headers: BTreeMap<String, String>,
}

impl Asked {
    /// A header; empty if it was not sent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

#[derive(Default)]
struct State {
    answers: BTreeMap<String, (u16, String)>,
    asked: Vec<Asked>,
}

/// A provider that answers as it is told. A path without an answer has an empty list.
#[derive(Clone)]
pub(crate) struct Provider {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Provider {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let provider = Self { address, state: Arc::default() };
        let served = provider.clone();
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = served.clone();
                std::thread::spawn(move || served.serve(&stream));
            }
        });
        provider
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers a path, without its query, with this from now on.
    pub(crate) fn answer(&self, path: &str, body: &Value) {
        self.refuse(path, 200, body);
    }

    /// The same with another status.
    pub(crate) fn refuse(&self, path: &str, status: u16, body: &Value) {
        let mut state = self.state.lock().expect("no panic");
        state.answers.insert(path.to_owned(), (status, body.to_string()));
    }

    /// Every request so far.
    pub(crate) fn requests(&self) -> Vec<Asked> {
        self.state.lock().expect("no panic").asked.clone()
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
            let length = headers.get("content-length").map_or(0, |text| text.parse().unwrap_or(0));
            let mut body = vec![0; length];
            reader.read_exact(&mut body).ok()?;
            let (status, answer) = {
                let mut state = self.state.lock().expect("no panic");
                let body = String::from_utf8_lossy(&body).into_owned();
                state.asked.push(Asked { path: path.clone(), body, headers });
                let found = state.answers.get(path.split('?').next()?).cloned();
                found.unwrap_or_else(|| (200, "{\"data\":[],\"has_more\":false}".to_owned()))
            };
            let head = format!(
                "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                answer.len()
            );
            let mut stream = stream;
            stream.write_all((head + &answer).as_bytes()).ok()?;
        }
    }
}
