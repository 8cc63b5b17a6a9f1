//! Programs of others against the real binary: official clients, and a tester that reads the served description.
//! Where a program is not installed its test says so and passes.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::client::TestServer;

/// The binary with an empty data directory; killed when it goes out of scope.
struct Binary {
    child: Child,
    address: String,
    _data: tempfile::TempDir,
}

impl Binary {
    fn start() -> Self {
        let data = tempfile::tempdir().expect("a directory");
        let mut child = Command::new(env!("CARGO_BIN_EXE_stack-server"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on ").expect("where it listens").to_owned();
        Self { child, address, _data: data }
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        // It may have ended itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Whether a command runs and succeeds.
fn works(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[track_caller]
fn succeeds(command: &mut Command) {
    let output = command.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    println!("{}", text.lines().last().unwrap_or(""));
}

#[test]
fn the_python_sdk_walks_through_the_second_generation() {
    let python = env::var("SDK_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let version = "import importlib.metadata as m; assert m.version('formance-sdk-python') == '2.4.1'";
    if !works(Command::new(&python).args(["-c", version])) {
        println!("skipped: {python} has no formance-sdk-python 2.4.1; SDK_PYTHON names another");
        return;
    }
    let server = Binary::start();
    succeeds(Command::new(&python).arg(tests().join("sdk/walk_v2.py")).arg(&server.address));
}

#[test]
fn the_typescript_sdk_walks_through_the_second_generation() {
    let modules = env::var("SDK_NODE_MODULES").unwrap_or_default();
    let package = Path::new(&modules).join("node_modules/@formance/formance-sdk/package.json");
    let is_there = std::fs::read_to_string(package).is_ok_and(|text| text.contains("\"version\": \"2.7.0\""));
    if !is_there || !works(Command::new("node").arg("--version")) {
        println!(
            "skipped: needs node, and @formance/formance-sdk 2.7.0 below the folder that SDK_NODE_MODULES names"
        );
        return;
    }
    let server = Binary::start();
    succeeds(Command::new("node").arg(tests().join("sdk/walk_v2.mjs")).arg(&server.address).arg(&modules));
}

#[test]
fn schemathesis_finds_nothing_that_is_not_described() {
    let tester = env::var("SCHEMATHESIS").unwrap_or_else(|_| "schemathesis".to_owned());
    if !works(Command::new(&tester).arg("--version")) {
        println!("skipped: schemathesis is not installed; SCHEMATHESIS names it");
        return;
    }
    // So many requests of each operation beside those of its own; a short pass here, any number on request.
    let examples = env::var("SCHEMATHESIS_EXAMPLES").ok();
    let server = Binary::start();
    let listening = server.address.strip_prefix("http://").and_then(|address| address.parse().ok());
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
    succeeds(
        Command::new(&tester)
            .current_dir(place.path())
            .arg("--config-file")
            .arg(tests().join("schemathesis/main.toml"))
            .args(["run", "--checks", checks, "--phases", phases, "--no-color", "--continue-on-failure"])
            .arg("--generation-deterministic")
            .args(["-n", examples.as_deref().unwrap_or("3")])
            .arg(format!("{}/openapi.json", server.address)),
    );
}
