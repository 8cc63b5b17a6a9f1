//! The test kit: a server for each test, and a client that checks the properties of every response.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use ledger_store::{Options, Store};
use serde_json::Value;
use stack_server::{AuthorizationSettings, KeySource, MasterKey, Server, Settings};

use crate::described;

/// The error codes that clients of the stack can decode.
const CODES_STACK: &[&str] = &[
    "VALIDATION",
    "INSUFFICIENT_FUND",
    "CONFLICT",
    "NO_POSTINGS",
    "COMPILATION_FAILED",
    "METADATA_OVERRIDE",
    "ALREADY_REVERT",
    "REVERT_OCCURRING",
    "NOT_FOUND",
    "LEDGER_NOT_FOUND",
    "INTERNAL",
    "NO_SCRIPT",
    // Only a read-only server sends this code. Strict clients cannot decode it from any server.
    "READ_ONLY",
];

/// The error codes of later releases of the ledger.
const CODES_LATER: &[&str] = &[
    "LEDGER_ALREADY_EXISTS",
    "BULK_SIZE_EXCEEDED",
    "INTERPRETER_PARSE",
    "INTERPRETER_RUNTIME",
    "IMPORT",
    "SCHEMA_ALREADY_EXISTS",
    "SCHEMA_NOT_SPECIFIED",
];

/// Returns the settings of a server with an authorization server.
pub(crate) fn authorizing() -> Settings {
    let mut settings = Settings::default();
    let key = KeySource::Given(MasterKey::random().expect("random bytes"));
    settings.authorization = Some(AuthorizationSettings::new(key));
    settings
}

/// A server with an empty store.
pub(crate) struct TestServer {
    pub(crate) server: Option<Server>,
    pub(crate) address: SocketAddr,
}

impl TestServer {
    pub(crate) fn start() -> Self {
        Self::with(Settings::default())
    }

    /// Starts a server with an authorization server, whose routes require no tokens.
    pub(crate) fn with_authorization() -> Self {
        Self::with(authorizing())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let mut options = Options::default();
        options.schema_enforcement = settings.schema_enforcement;
        let store = Store::in_memory_with(&options);
        let server = Server::start(&store, settings, listener).expect("a server");
        Self { address: server.address(), server: Some(server) }
    }

    /// Starts a server and creates the ledger `main` through `/v2`.
    pub(crate) fn with_main() -> Self {
        let server = Self::start();
        server.post("/v2/main", "").is(204);
        server
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the server listens");
        // A request that hangs must fail the test.
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        stream
    }

    #[track_caller]
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.send_bytes(method, path, headers, body.as_bytes())
    }

    #[track_caller]
    pub(crate) fn send_bytes(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut stream = self.connect();
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head.push_str("Host: localhost\r\n");
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        let mut request = format!("{head}\r\n").into_bytes();
        request.extend_from_slice(body);
        stream.write_all(&request).expect("the request is sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("the answer arrives whole");
        let answer = Answer::parse(&bytes);
        answer.check(method, path);
        answer
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "")
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        self.send("POST", path, &[], body)
    }

    /// Records `source -> destination amount asset` and returns the transaction of the response.
    #[track_caller]
    pub(crate) fn transfer(&self, source: &str, destination: &str, amount: u64, asset: &str) -> Value {
        let body = format!(
            r#"{{"postings":[{{"source":"{source}","destination":"{destination}","amount":{amount},"asset":"{asset}"}}]}}"#
        );
        self.post("/v2/main/transactions", &body).is(200).json()["data"].clone()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }
}

/// Decodes a body with the chunked transfer encoding.
#[track_caller]
fn unchunked(mut body: &str) -> String {
    let mut text = String::new();
    loop {
        let (length, rest) = body.split_once("\r\n").expect("a chunk has a length");
        let length = usize::from_str_radix(length, 16).expect("a length is hexadecimal");
        if length == 0 {
            assert_eq!(rest, "\r\n", "the last chunk is the end");
            return text;
        }
        text.push_str(&rest[..length]);
        body = rest[length..].strip_prefix("\r\n").expect("a chunk ends");
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8(bytes.to_vec()).expect("answers are UTF-8");
        let (head, body) = text.split_once("\r\n\r\n").expect("an answer has a head");
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let headers = lines.filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        });
        let headers: Vec<(String, String)> = headers.collect();
        let is_chunked =
            headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let body = if is_chunked { unchunked(body) } else { body.to_owned() };
        Self { status: status.expect("an answer has a status"), headers, body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }

    /// Checks the properties of every response of a handler.
    #[track_caller]
    fn check(&self, method: &str, path: &str) {
        assert!(self.status != 500, "{method} {path}: {self:?}");
        assert!(self.header("x-request-id").is_some(), "{method} {path}: {self:?}");
        described::check(method, path, self);
        // Protocol endpoints of the authorization server have other forms, which the API description also contains.
        let protocol = ["oauth/", "revoke", "userinfo", "authorize", "end_session", "logged-out"];
        if path
            .strip_prefix("/api/auth/")
            .is_some_and(|rest| protocol.iter().any(|one| rest.starts_with(one)))
        {
            return;
        }
        if self.header("content-type") == Some("text/plain; charset=utf-8") {
            assert_eq!(self.status, 404, "{method} {path}: {self:?}");
            return;
        }
        if self.header("content-type") == Some("application/octet-stream") {
            assert!(path.contains("/logs/export") && self.status == 200, "{method} {path}");
            return;
        }
        let is_yaml = self.header("content-type") == Some("application/yaml");
        if (path == "/docs" || is_yaml) && self.status == 200 {
            return;
        }
        assert_eq!(self.header("content-type"), Some("application/json"), "{method} {path}: {self:?}");
        if self.status == 401 && path.starts_with("/api/generic/") {
            assert_eq!(self.json()["Title"], "Unauthorized", "{method} {path}");
            return;
        }
        if matches!(self.status, 202 | 204 | 303 | 401 | 405) || method == "HEAD" || method == "OPTIONS" {
            assert_eq!(self.body, "", "{method} {path}");
            return;
        }
        // Records of providers appear unchanged.
        let is_line = !self.body.trim_end().contains('\n') || self.body.contains("\"raw\":{");
        assert!(self.body.ends_with('\n') && is_line, "{method} {path}: {self:?}");
        if let Some(code) = self.json()["errorCode"].as_str() {
            let later = !path.starts_with("/api/") && CODES_LATER.contains(&code);
            assert!(CODES_STACK.contains(&code) || later, "{method} {path}: {code}");
            // Only v1 responds to a refused script like this.
            assert!(self.status >= 400 || path.contains("/script"), "{method} {path}: {self:?}");
        }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks the status and returns the response.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// Checks the status and the code of an error, and returns its message.
    #[track_caller]
    pub(crate) fn refused(self, status: u16, code: &str) -> String {
        assert_eq!(self.status, status, "{self:?}");
        let json = self.json();
        assert_eq!(json["errorCode"], code, "{self:?}");
        json["errorMessage"].as_str().expect("errors have a message").to_owned()
    }

    /// Returns one field of each row of a list.
    #[track_caller]
    pub(crate) fn column(&self, field: &str) -> Vec<String> {
        let json = self.json();
        let rows = json["cursor"]["data"].as_array().expect("a list").iter();
        rows.map(|row| row[field].to_string().trim_matches('"').to_owned()).collect()
    }
}

/// Escapes a query value.
pub(crate) fn escape(text: &str) -> String {
    let escaped = text.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    escaped.collect()
}
