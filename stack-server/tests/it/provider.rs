//! A fake payment provider. It responds by path, and records the requests.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

pub(crate) use crate::http_server::ReceivedRequest;
use crate::http_server::listen;

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
        let state: Arc<Mutex<State>> = Arc::default();
        let served = state.clone();
        Self { address: listen(move |stream| serve(&served, stream)), state }
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
}

fn reply(state: &Mutex<State>, asked: &ReceivedRequest) -> Reply {
    let (handler, found) = {
        let mut state = state.lock().expect("no panic");
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

fn serve(state: &Mutex<State>, stream: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let asked = ReceivedRequest::read(&mut reader)?;
        let (status, answer, length) = match reply(state, &asked) {
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
