//! The log of the binary: its formats, its lines about requests, and its counts.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::kill::{address_of, ask_with};

const SERVER: &str = env!("CARGO_BIN_EXE_stack-server");

/// A server with a captured log and a temporary data directory.
struct Logged {
    server: Child,
    address: String,
    _data: tempfile::TempDir,
}

impl Logged {
    fn start(flags: &[&str]) -> Self {
        let data = tempfile::tempdir().expect("a directory");
        let mut server = Command::new(SERVER)
            .args(["--listen", "127.0.0.1:0", "--data"])
            .arg(data.path().join("store"))
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let address = address_of(&mut server);
        Self { server, address, _data: data }
    }

    /// Sends a request with additional header lines. Returns the status of the response, and its request id.
    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let (status, head, _) = ask_with(&self.address, method, path, headers, body).expect("an answer");
        let id = head.lines().find_map(|line| line.strip_prefix("x-request-id: "));
        (status, id.expect("every answer has an id").to_owned())
    }

    /// Stops the server and returns the lines of its log.
    fn stop(mut self) -> Vec<String> {
        let killed = Command::new("kill").arg(self.server.id().to_string()).status();
        assert!(killed.expect("a signal is sent").success());
        let mut log = String::new();
        self.server.stderr.take().expect("piped").read_to_string(&mut log).expect("text");
        assert!(self.server.wait().expect("the process ends").success(), "{log}");
        log.lines().map(str::to_owned).collect()
    }
}

#[test]
fn json_lines_name_requests_and_count_refusals() {
    let logged = Logged::start(&["--log-format", "json", "--log-level", "debug"]);
    let (_, own) = logged.send("POST", "/v2/main", "", "");
    let named = logged.send("GET", "/v2/nowhere/stats", "X-Request-Id: proxy-7\r\n", "");
    assert_eq!(named, (404, "proxy-7".to_owned()));
    logged.send("GET", "/v2/nowhere/stats", "", "");
    logged.send("GET", "/v2/main/nothing", "", "");
    let lines: Vec<Value> = logged
        .stop()
        .iter()
        .map(|line| serde_json::from_str(line).expect("one JSON object a line"))
        .collect();
    let requests: Vec<_> = lines.iter().filter(|line| line["event"] == "request").collect();
    assert_eq!(requests.len(), 4);
    assert_eq!((&requests[0]["request_id"], &requests[0]["code"]), (&Value::from(own), &Value::from("")));
    assert_eq!(requests[1]["request_id"], "proxy-7");
    assert_eq!(requests[1]["code"], "LEDGER_NOT_FOUND");
    assert_eq!(requests[1]["level"], "debug");
    let refusals: Vec<_> = lines.iter().filter(|line| line["event"] == "refusals").collect();
    assert_eq!(refusals.len(), 1);
    assert_eq!((&refusals[0]["LEDGER_NOT_FOUND"], &refusals[0]["404"]), (&"2".into(), &"1".into()));
}

#[test]
fn a_level_leaves_out_what_is_below() {
    let logged = Logged::start(&["--log-level", "warning"]);
    logged.send("GET", "/v2/nowhere/stats", "", "");
    assert_eq!(logged.stop(), Vec::<String>::new());
}

#[test]
fn a_schema_is_warned_about_once_a_minute() {
    let logged = Logged::start(&[]);
    for ledger in ["a", "b"] {
        logged.send("POST", &format!("/v2/{ledger}"), "", "");
        let schema = r#"{"chart":{"bank":{}}}"#;
        assert_eq!(logged.send("POST", &format!("/v2/{ledger}/schemas/v1"), "", schema).0, 204);
        for _ in 0..3 {
            let outside = r#"{"postings":[{"source":"world","destination":"x","amount":1,"asset":"USD"}]}"#;
            let path = format!("/v2/{ledger}/transactions?schemaVersion=v1");
            assert_eq!(logged.send("POST", &path, "", outside).0, 200);
        }
    }
    let log = logged.stop();
    let warnings: Vec<_> = log.iter().filter(|line| line.contains("event=schema-violation")).collect();
    assert_eq!(warnings.len(), 2, "{log:?}");
    assert!(warnings[0].contains("level=warning") && warnings[0].contains("ledger=\"a\""), "{warnings:?}");
    assert!(warnings.iter().all(|line| line.contains(" request_id=\"")), "{warnings:?}");
}
