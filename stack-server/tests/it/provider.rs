//! A fake payment provider. It responds by path, and records the requests.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) path: String,
    pub(crate) body: String,
    headers: BTreeMap<String, String>,
}

impl ReceivedRequest {
    /// Returns a header, or an empty text if the request does not have it.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// The response to a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Whole(u16, String),
    /// A response whose connection ends in the middle of the body.
    Truncated(String),
    /// No response. The connection remains open until the client closes it.
    Hanging,
}

type Handler = dyn Fn(&ReceivedRequest) -> Option<Reply> + Send + Sync;

#[derive(Default)]
struct State {
    answers: BTreeMap<String, (u16, String)>,
    asked: Vec<ReceivedRequest>,
    handler: Option<Arc<Handler>>,
}

/// A provider whose responses the test sets. The response to all other paths is an empty list.
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
        // The thread ends with the process of the test.
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

    /// Sets the successful response to a path, with any query.
    pub(crate) fn answer(&self, path: &str, body: &Value) {
        self.refuse(path, 200, body);
    }

    /// Sets the response to a path, with any query.
    pub(crate) fn refuse(&self, path: &str, status: u16, body: &Value) {
        let mut state = self.state.lock().expect("no panic");
        state.answers.insert(path.to_owned(), (status, body.to_string()));
    }

    /// Sets a function that may return the response to a request. It precedes the responses by path.
    pub(crate) fn handle(&self, handler: impl Fn(&ReceivedRequest) -> Option<Reply> + Send + Sync + 'static) {
        self.state.lock().expect("no panic").handler = Some(Arc::new(handler));
    }

    /// Returns all requests so far.
    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.state.lock().expect("no panic").asked.clone()
    }

    fn reply(&self, asked: &ReceivedRequest) -> Reply {
        let (handler, found) = {
            let mut state = self.state.lock().expect("no panic");
            state.asked.push(asked.clone());
            let path = asked.path.split('?').next().unwrap_or_default();
            (state.handler.clone(), state.answers.get(path).cloned())
        };
        if let Some(reply) = handler.and_then(|handler| handler(asked)) {
            return reply;
        }
        let (status, body) = found.unwrap_or_else(|| (200, "{\"data\":[],\"has_more\":false}".to_owned()));
        Reply::Whole(status, body)
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
            let body = String::from_utf8_lossy(&body).into_owned();
            let asked = ReceivedRequest { path, body, headers };
            let (status, answer, length) = match self.reply(&asked) {
                Reply::Whole(status, answer) => {
                    let length = answer.len();
                    (status, answer, length)
                }
                Reply::Truncated(mut answer) => {
                    let length = answer.len();
                    answer.truncate(length / 2);
                    (200, answer, length)
                }
                Reply::Hanging => {
                    // Returns when the client closes the connection.
                    let _ = reader.read_to_end(&mut Vec::new());
                    return None;
                }
            };
            let retry = if status == 429 { "Retry-After: 0\r\n" } else { "" };
            let head = format!(
                "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{retry}Content-Length: {length}\r\n\r\n"
            );
            let mut stream = stream;
            stream.write_all((head + &answer).as_bytes()).ok()?;
            if answer.len() < length {
                // Close both directions, even if the stream has other handles.
                let _ = stream.shutdown(std::net::Shutdown::Both);
                return None;
            }
        }
    }
}
