//! Official clients of the API against the binary.
//!
//! They are programs in other languages: where one is not installed, its walk is skipped, and says so.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::kill::address_of;

/// The binary on an empty directory, until it is dropped.
pub(crate) struct Running {
    child: Child,
    pub(crate) base: String,
    _data: tempfile::TempDir,
}

impl Running {
    pub(crate) fn start() -> Self {
        let data = tempfile::tempdir().expect("a directory");
        let mut child = Command::new(env!("CARGO_BIN_EXE_stack-server"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data.path().join("store"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let base = format!("http://{}", address_of(&mut child));
        Self { child, base, _data: data }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a walk through so many operations against a server of its own.
#[track_caller]
fn walk(mut program: Command, script: &str, operations: usize) {
    let server = Running::start();
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/sdk").join(script);
    let output = program.arg(script).arg(&server.base).output().expect("the walk runs");
    let [out, fault] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    println!("{out}");
    assert!(
        output.status.success() && out.contains(&format!("{operations} operations walked")),
        "{out}{fault}"
    );
}

/// Whether a program has what a walk needs.
pub(crate) fn has(mut program: Command, check: &str) -> bool {
    program.arg(check).output().is_ok_and(|output| output.status.success())
}

#[test]
fn the_python_client_reads_every_answer_of_the_first_generation() {
    let name = std::env::var("SDK_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let python = || Command::new(&name);
    let mut asked = python();
    asked.arg("-c");
    let wanted = "import importlib.metadata as m; assert m.version('formance-sdk-python') == '1.0.20230915'";
    if !has(asked, wanted) {
        println!("skipped: {name} has no formance-sdk-python 1.0.20230915 (tests/sdk/README.md)");
        return;
    }
    walk(python(), "walk_v1.py", 20);
}

#[test]
fn the_python_client_reads_every_answer_of_the_second_generation() {
    let name = std::env::var("SDK_PYTHON_V2").unwrap_or_else(|_| "python3".to_owned());
    let mut asked = Command::new(&name);
    asked.arg("-c");
    let wanted = "import importlib.metadata as m; assert m.version('formance-sdk-python') == '2.4.1'";
    if !has(asked, wanted) {
        println!("skipped: {name} has no formance-sdk-python 2.4.1 (tests/sdk/README.md)");
        return;
    }
    walk(Command::new(&name), "walk_v2.py", 24);
}

/// Node with the modules that it is told of, if the client is among them.
fn node_with_client() -> Option<Command> {
    let modules = std::env::var("SDK_NODE_PATH").unwrap_or_default();
    let node = || {
        let mut node = Command::new("node");
        node.env("NODE_PATH", &modules);
        node
    };
    let mut asked = node();
    asked.arg("-e");
    let wanted =
        "require('node:assert').equal(require('@formance/formance-sdk/package.json').version, '2.7.0')";
    if !has(asked, wanted) {
        println!("skipped: there is no node with @formance/formance-sdk 2.7.0 (tests/sdk/README.md)");
        return None;
    }
    Some(node())
}

#[test]
fn the_typescript_client_reads_every_answer_of_the_first_generation() {
    if let Some(node) = node_with_client() {
        walk(node, "walk_v1.cjs", 20);
    }
}

#[test]
fn the_typescript_client_reads_every_answer_of_the_second_generation() {
    if let Some(node) = node_with_client() {
        walk(node, "walk_v2.mjs", 24);
    }
}
