//! Runs Schemathesis, a tool that sends requests made from the served API description, against the binary.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::client::TestServer;
use crate::sdk::{Running, has};
use crate::skipping::skipped;

#[test]
fn schemathesis_finds_no_undescribed_response() {
    let tester = env::var("SCHEMATHESIS").unwrap_or_else(|_| "schemathesis".to_owned());
    if !has(Command::new(&tester), "--version") {
        skipped("schemathesis is not installed; SCHEMATHESIS names it");
        return;
    }
    // Number of generated requests per operation, besides the fixed ones. The default is small, and the variable
    // sets any other.
    let examples = env::var("SCHEMATHESIS_EXAMPLES").ok();
    let server = Running::start();
    let listening = server.base.strip_prefix("http://").and_then(|address| address.parse().ok());
    let kit = TestServer { server: None, address: listening.expect("an address") };
    // Some data to read, in a v1 and in a v2 ledger.
    kit.post("/v2/main", "").is(204);
    kit.transfer("world", "users:001", 100, "USD/2");
    kit.post("/v2/main/accounts/users:001/metadata", r#"{"k":"v"}"#).is(204);
    let checks = "not_a_server_error,status_code_conformance,content_type_conformance,\
                  response_headers_conformance,response_schema_conformance";
    let phases = if examples.is_some() { "examples,coverage,fuzzing,stateful" } else { "examples,fuzzing" };
    // The tool leaves files in its working directory.
    let place = tempfile::tempdir().expect("a directory");
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis/main.toml");
    let output = Command::new(&tester)
        .current_dir(place.path())
        .arg("--config-file")
        .arg(config)
        .args(["run", "--checks", checks, "--phases", phases, "--no-color", "--continue-on-failure"])
        .arg("--generation-deterministic")
        // An event stream ends only when its reader disconnects. The tool would wait until its timeout.
        .args(["--exclude-path-regex", "/_events$"])
        .args(["-n", examples.as_deref().unwrap_or("3")])
        .arg(format!("{}/openapi.json", server.base))
        .output()
        .expect("the command runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    println!("{}", text.lines().last().unwrap_or(""));
}
