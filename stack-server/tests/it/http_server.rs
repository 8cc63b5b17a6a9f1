//! A plain HTTP server for tests, which reads requests for fake servers.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) path: String,
    pub(crate) body: String,
    /// By names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
}

impl ReceivedRequest {
    /// Reads the next request of a connection. Returns `None` at its end.
    pub(crate) fn read(reader: &mut BufReader<&TcpStream>) -> Option<Self> {
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
        Some(Self { path, body, headers })
    }

    /// Returns a header, or an empty text if the request does not have it.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// Opens a free port, and calls `serve` with every connection, on a thread of its own. The threads end with the process
/// of the test.
pub(crate) fn listen(serve: impl Fn(&TcpStream) -> Option<()> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(&stream));
        }
    });
    address
}
