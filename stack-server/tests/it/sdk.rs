//! Runs official clients of the API against the binary.
//!
//! The clients are written in other languages. If one is not installed, its test is skipped with a message.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::json;

use crate::kill::address_of;
use crate::provider::Provider as PaymentProvider;
use crate::skipping::skipped;

/// The OAuth client of a server that requires tokens.
const ID: &str = "walker";
const SECRET: &str = "secret of the walker";

/// A client of the same server with the scopes of every service and the same secret.
const SCOPED: &str = "scoped";

/// Scopes that read from every service, and scopes that also write.
const READING: &str = "auth:read ledger:read payments:read";
const WRITING: &str = "auth:write ledger:write payments:write";

/// A running server with an empty directory. Dropping this ends it.
pub(crate) struct Running {
    child: Child,
    pub(crate) base: String,
    _data: tempfile::TempDir,
}

impl Running {
    pub(crate) fn start() -> Self {
        Self::start_with(tempfile::tempdir().expect("a directory"), &[])
    }

    /// Starts a server that requires its own tokens, with a client.
    fn guarded() -> Self {
        Self::guarded_with(&[])
    }

    fn guarded_with(flags: &[&str]) -> Self {
        let data = tempfile::tempdir().expect("a directory");
        let clients = data.path().join("clients.yaml");
        let text = format!(
            "clients: [{{id: {ID}, trusted: true, secrets: [{SECRET}], scopes: [openid, 'ledger:read'], \
             redirectUris: ['http://127.0.0.1:9/cb']}}, {{id: {SCOPED}, secrets: [{SECRET}], scopes: \
             ['{}']}}]\n",
            format!("{READING} {WRITING}").replace(' ', "', '")
        );
        std::fs::write(&clients, text).expect("the file is written");
        let clients = clients.to_str().expect("text").to_owned();
        Self::start_with(data, &[&["--auth-enabled", "--auth-client", &clients], flags].concat())
    }

    /// Starts a server that also checks the scopes of every service. It uses a fake payment provider.
    fn checked(provider: &PaymentProvider) -> Self {
        let addresses = format!("STRIPE={}", provider.url());
        Self::guarded_with(&[
            "--auth-check-scopes",
            "--auth-check-management-scopes",
            "--provider-addresses",
            &addresses,
        ])
    }

    pub(crate) fn start_with(data: tempfile::TempDir, flags: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_stack-server"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data.path().join("store"))
            .args(flags)
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

/// Requests a token of a server that requires tokens.
fn token(server: &Running) -> String {
    token_of(server, ID, "")
}

fn token_of(server: &Running, client: &str, scopes: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_stack-server"))
        .args(["auth", "token", "--server", &server.base, "--client-id", client, "--client-secret", SECRET])
        .args(["--scope", scopes])
        .output()
        .expect("the command runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// Returns whether a script is in Python. Clients in Python are given a token, and clients in TypeScript request one.
fn is_python(script: &str) -> bool {
    Path::new(script).extension().is_some_and(|kind| kind == "py")
}

/// Returns the path that issues tokens with these scopes, for a client that requests no scopes itself.
fn token_url(scopes: &str) -> String {
    format!("/api/auth/oauth/token?scope={}", scopes.replace(' ', "+"))
}

/// Runs a script with this number of operations against a new server, against a server that requires tokens, and
/// against a server that checks their scopes.
#[track_caller]
fn walk(program: impl Fn() -> Command, script: &str, operations: usize) {
    run(program(), &Running::start(), script, &[], operations);
    let server = Running::guarded();
    if is_python(script) {
        run(program(), &server, script, &[&token(&server)], operations);
    } else {
        run(program(), &server, script, &[ID, SECRET], operations);
    }
    walk_checked(program(), script, operations);
}

/// Runs a script against a server that checks scopes.
#[track_caller]
fn walk_checked(program: Command, script: &str, operations: usize) {
    let provider = accepting_provider();
    let server = Running::checked(&provider);
    if is_python(script) {
        run(program, &server, script, &[&token_of(&server, SCOPED, WRITING)], operations);
    } else {
        run(program, &server, script, &[SCOPED, SECRET, &token_url(WRITING)], operations);
    }
}

/// Runs a script with a token that only allows reads. The server refuses all writes.
#[track_caller]
fn walk_scopes(program: Command, script: &str, operations: usize) {
    let provider = accepting_provider();
    let server = Running::checked(&provider);
    if is_python(script) {
        let tokens = [READING, WRITING].map(|scopes| token_of(&server, SCOPED, scopes));
        run(program, &server, script, &[&tokens[0], &tokens[1]], operations);
    } else {
        let addresses = [READING, WRITING].map(token_url);
        run(program, &server, script, &[SCOPED, SECRET, &addresses[0], &addresses[1]], operations);
    }
}

/// Starts a fake provider for STRIPE that has no records and accepts every transfer.
fn accepting_provider() -> PaymentProvider {
    let provider = PaymentProvider::start();
    let made = json!({"id": "tr_1", "object": "transfer", "balance_transaction": "txn_1", "status": "paid"});
    provider.answer("/v1/transfers", &made);
    provider.answer("/v1/transfers/tr_1/reversals", &made);
    provider
}

/// Runs a script with this number of operations of the payments API, and again against a server that checks scopes.
#[track_caller]
fn walk_payments(program: impl Fn() -> Command, script: &str, operations: usize) {
    let provider = accepting_provider();
    let addresses = format!("STRIPE={}", provider.url());
    let data = tempfile::tempdir().expect("a directory");
    let server = Running::start_with(data, &["--provider-addresses", &addresses]);
    run(program(), &server, script, &[], operations);
    walk_checked(program(), script, operations);
}

/// Runs a script against a server.
#[track_caller]
pub(crate) fn run(
    mut program: Command,
    server: &Running,
    script: &str,
    arguments: &[&str],
    operations: usize,
) {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/sdk").join(script);
    let output = program.arg(script).arg(&server.base).args(arguments).output().expect("the walk runs");
    let [out, fault] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    println!("{out}");
    assert!(
        output.status.success() && out.contains(&format!("{operations} operations walked")),
        "{out}{fault}"
    );
}

/// Returns whether a program is installed with everything that a script needs.
pub(crate) fn has(mut program: Command, check: &str) -> bool {
    program.arg(check).output().is_ok_and(|output| output.status.success())
}

/// Returns the Python that an environment variable names, if it can run `check`, which needs `packages`.
fn python_with(variable: &str, check: &str, packages: &str) -> Option<impl Fn() -> Command + use<>> {
    let name = std::env::var(variable).unwrap_or_else(|_| "python3".to_owned());
    let mut asked = Command::new(&name);
    asked.arg("-c");
    if !has(asked, check) {
        skipped(format_args!("{name} has no {packages} (tests/sdk/README.md)"));
        return None;
    }
    Some(move || Command::new(&name))
}

/// Returns the Python that an environment variable names, if it has this version of the client.
fn python_with_client(variable: &str, version: &str) -> Option<impl Fn() -> Command + use<>> {
    let check =
        format!("import importlib.metadata as m; assert m.version('formance-sdk-python') == '{version}'");
    python_with(variable, &check, &format!("formance-sdk-python {version}"))
}

fn python_with_oauth() -> Option<impl Fn() -> Command> {
    python_with("OAUTH_PYTHON", "import authlib, requests, joserfc", "authlib, requests and joserfc")
}

#[test]
fn python_client_reads_every_v1_response() {
    let Some(python) = python_with_client("SDK_PYTHON", "1.0.20230915") else { return };
    walk(&python, "walk_v1.py", 20);
    walk_payments(&python, "walk_payments_v1.py", 16);
    let server = Running::guarded();
    run(python(), &server, "walk_auth_v1.py", &[&token(&server)], 19);
    walk_checked(python(), "walk_auth_v1.py", 19);
    walk_scopes(python(), "scopes_v1.py", 6);
}

#[test]
fn python_client_reads_every_v2_response() {
    let Some(python) = python_with_client("SDK_PYTHON_V2", "2.4.1") else { return };
    walk(&python, "walk_v2.py", 24);
    walk_payments(&python, "walk_payments_v2.py", 43);
    let server = Running::guarded();
    run(python(), &server, "walk_auth_v2.py", &[&token(&server)], 9);
    walk_checked(python(), "walk_auth_v2.py", 9);
    walk_scopes(python(), "scopes_v2.py", 7);
}

/// Returns Node with the configured modules, if the client is among them.
fn node_with_client() -> Option<impl Fn() -> Command> {
    let modules = std::env::var("SDK_NODE_PATH").unwrap_or_default();
    let node = move || {
        let mut node = Command::new("node");
        node.env("NODE_PATH", &modules);
        node
    };
    let mut asked = node();
    asked.arg("-e");
    let wanted =
        "require('node:assert').equal(require('@formance/formance-sdk/package.json').version, '2.7.0')";
    if !has(asked, wanted) {
        skipped("there is no node with @formance/formance-sdk 2.7.0 (tests/sdk/README.md)");
        return None;
    }
    Some(node)
}

#[test]
fn typescript_client_reads_every_v1_response() {
    if let Some(node) = node_with_client() {
        walk(node, "walk_v1.cjs", 20);
    }
}

#[test]
fn typescript_client_reads_every_v2_response() {
    if let Some(node) = node_with_client() {
        walk_payments(&node, "walk_payments_v2.mjs", 43);
        walk(node, "walk_v2.mjs", 24);
    }
}

#[test]
fn the_typescript_client_gets_tokens_by_itself() {
    if let Some(node) = node_with_client() {
        run(node(), &Running::guarded(), "walk_auth_v2.mjs", &[ID, SECRET], 9);
        walk_checked(node(), "walk_auth_v2.mjs", 9);
        walk_scopes(node(), "scopes.mjs", 8);
    }
}

#[test]
fn a_stock_oauth_library_gets_tokens() {
    let Some(python) = python_with_oauth() else { return };
    run(python(), &Running::guarded(), "oauth.py", &[ID, SECRET], 2);
}

/// A real `OpenID` provider. Dropping this ends it. Its output must be read, because it never stops.
struct Provider {
    child: Child,
    issuer: String,
    _stdout: BufReader<ChildStdout>,
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns Node with the modules that the scripts of logins need, if they are installed.
pub(crate) fn node_with(modules: &[&str]) -> Option<impl Fn() -> Command> {
    let path = std::env::var("OAUTH_NODE_PATH").unwrap_or_default();
    let node = move || {
        let mut node = Command::new("node");
        node.env("NODE_PATH", &path);
        node
    };
    let mut asked = node();
    asked.arg("-e");
    let check = format!("{modules:?}.forEach(module => require.resolve(module))");
    if !has(asked, &check) {
        skipped(format_args!("there is no node with {} (tests/sdk/README.md)", modules.join(", ")));
        return None;
    }
    Some(node)
}

impl Provider {
    fn start(mut node: Command) -> Self {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/sdk/provider.mjs");
        let node = node.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = node.spawn().expect("the provider starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut issuer = String::new();
        stdout.read_line(&mut issuer).expect("the line with the issuer");
        Self { child, issuer: issuer.trim().to_owned(), _stdout: stdout }
    }

    /// Starts a server whose users log in at this provider.
    fn server(&self) -> Running {
        let client = ["--delegated-client-id", "stack", "--delegated-client-secret", "its secret"];
        Running::guarded_with(&[&["--delegated-issuer", &self.issuer][..], &client].concat())
    }
}

#[test]
fn people_log_in_at_a_real_openid_provider() {
    let Some(node) = node_with(&["openid-client", "oidc-provider", "jose"]) else { return };
    let provider = Provider::start(node());
    run(node(), &provider.server(), "oauth.mjs", &[ID, SECRET], 5);
}

/// Returns a browser, if one is installed.
pub(crate) fn browser() -> Option<String> {
    let named = std::env::var("OAUTH_BROWSER").ok();
    let usual = ["chromium", "chromium-browser", "google-chrome"].map(|name| format!("/usr/bin/{name}"));
    let mut browsers = named.into_iter().chain(usual);
    let found = browsers.find(|browser| has(Command::new(browser), "--version"));
    if found.is_none() {
        skipped("there is no Chromium (tests/sdk/README.md)");
    }
    found
}

#[test]
fn a_browser_walks_the_login() {
    let Some(node) = node_with(&["openid-client", "oidc-provider", "playwright-core"]) else { return };
    let Some(browser) = browser() else { return };
    let provider = Provider::start(node());
    run(node(), &provider.server(), "browser.mjs", &[ID, SECRET, &browser], 4);
}

#[test]
fn a_stock_oauth_library_lets_people_log_in() {
    let Some(python) = python_with_oauth() else { return };
    let Some(node) = node_with(&["oidc-provider"]) else { return };
    let provider = Provider::start(node());
    run(python(), &provider.server(), "oauth_login.py", &[ID, SECRET], 4);
}
