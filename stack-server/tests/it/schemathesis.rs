//! A tester that reads the served description and sends whatever it allows, against the binary.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::client::TestServer;
use crate::sdk::{Running, has};

#[test]
fn schemathesis_finds_nothing_that_is_not_described() {
    let tester = env::var("SCHEMATHESIS").unwrap_or_else(|_| "schemathesis".to_owned());
    if !has(Command::new(&tester), "--version") {
        println!("skipped: schemathesis is not installed; SCHEMATHESIS names it");
        return;
    }
    // So many requests of each operation beside those of its own; a short pass here, any number on request.
    let examples = env::var("SCHEMATHESIS_EXAMPLES").ok();
    let server = Running::start();
    let listening = server.base.strip_prefix("http://").and_then(|address| address.parse().ok());
    let kit = TestServer { server: None, address: listening.expect("an address") };
    // Something to be read, in a ledger of either generation.
    kit.post("/v2/main", "").is(204);
    kit.transfer("world", "users:001", 100, "USD/2");
    kit.post("/v2/main/accounts/users:001/metadata", r#"{"k":"v"}"#).is(204);
    let checks = "not_a_server_error,status_code_conformance,content_type_conformance,\
                  response_headers_conformance,response_schema_conformance";
    let phases = if examples.is_some() { "examples,coverage,fuzzing,stateful" } else { "examples,fuzzing" };
    // It leaves files where it runs.
    let place = tempfile::tempdir().expect("a directory");
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis/main.toml");
    let output = Command::new(&tester)
        .current_dir(place.path())
        .arg("--config-file")
        .arg(config)
        .args(["run", "--checks", checks, "--phases", phases, "--no-color", "--continue-on-failure"])
        .arg("--generation-deterministic")
        // A stream of events ends when its reader goes: the tester would wait for the end until it gives up.
        .args(["--exclude-path-regex", "/_events$"])
        .args(["-n", examples.as_deref().unwrap_or("3")])
        .arg(format!("{}/openapi.json", server.base))
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    println!("{}", text.lines().last().unwrap_or(""));
}
