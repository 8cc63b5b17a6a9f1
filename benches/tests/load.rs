//! Tests of the load program's command line: every sub-command ends with its figures.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use ledger_store::Store;
use serde_json::Value;
use stack_server::{Server, Settings};

/// The error output of a run that failed.
#[derive(Debug)]
struct ErrorOutput(String);

/// Runs the load program and returns its figures.
fn load(arguments: &str) -> Result<Value, ErrorOutput> {
    let output = Command::new(env!("CARGO_BIN_EXE_load"))
        .args(arguments.split_whitespace())
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .output()
        .expect("the program runs");
    if !output.status.success() {
        return Err(ErrorOutput(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let printed = String::from_utf8(output.stdout).expect("text");
    let last = printed.lines().last().expect("a last line");
    Ok(serde_json::from_str(last).expect("one JSON object"))
}

/// Returns the path of the server, if it is built. Else says that the running test is skipped; the harness does not
/// capture this line.
fn server() -> Option<String> {
    let server = Path::new(env!("CARGO_BIN_EXE_load")).with_file_name("stack-server");
    if server.exists() {
        return Some(server.display().to_string());
    }
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    writeln!(std::io::stderr(), "skipped: {name}: {} is not built", server.display()).expect("it is open");
    None
}

fn number(figures: &Value, name: &str) -> f64 {
    figures[name].as_f64().unwrap_or_else(|| panic!("no {name} in {figures}"))
}

#[test]
fn embedded_prints_figures() {
    let figures = load("embedded --transactions 1000 --accounts 100 --batch 64 --rich").expect("figures");
    for name in
        ["tx_per_s", "tx_per_s_indexed", "p50_ms", "p99_ms", "max_ms", "bytes_per_tx", "fdatasync_p50_ms"]
    {
        assert!(number(&figures, name) > 0.0, "{name}");
    }
    let compared = load("embedded --compare naive --transactions 1000 --accounts 100").expect("figures");
    assert!(number(&compared, "ratio") > 0.0);
}

#[test]
fn killed_writer_keeps_acknowledged_transactions() {
    let figures = load("reopen --transactions 1000 --accounts 100 --batch 64 --rich").expect("figures");
    assert!(number(&figures, "open_killed_ms") > 0.0 && number(&figures, "open_closed_ms") > 0.0);
    assert!(number(&figures, "replayed_killed") >= 1000.0, "the last transactions were in the journal alone");
    assert!(number(&figures, "replayed_closed") < 0.5);
}

#[test]
fn http_measures_a_bare_server_too() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let server = Server::start(&Store::in_memory(), Settings::default(), listener).expect("threads");
    for (bulk, form) in [(1, ""), (10, ""), (1, " --script"), (1, " --api v1"), (10, " --api v1")] {
        let address = server.address();
        let arguments = format!(
            "http --url http://{address} --bulk {bulk} --connections 4 --seconds 1 --accounts 50{form}"
        );
        let figures = load(&arguments).expect("figures");
        assert!(number(&figures, "bare_requests_per_s") > 0.0);
        assert!(number(&figures, "tx_per_s") >= number(&figures, "requests_per_s"));
        assert!(number(&figures, "transactions") >= f64::from(bulk));
    }
    let both = format!(
        "http --url http://{} --api both --connections 4 --seconds 1 --accounts 50",
        server.address()
    );
    let figures = load(&both).expect("figures");
    let ratio = number(&figures, "v1_tx_per_s") / number(&figures, "v2_tx_per_s");
    assert!((number(&figures, "ratio") / ratio - 1.0).abs() < 0.01);
    server.stop();
}

#[test]
fn measures_every_kind_of_list() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let server = Server::start(&Store::in_memory(), Settings::default(), listener).expect("threads");
    let arguments = format!(
        "lists --url http://{} --transactions 1500 --accounts 50 --page-size 10 --reads 3",
        server.address()
    );
    let figures = load(&arguments).expect("figures");
    assert!((number(&figures, "transactions") - 1_550.0).abs() < 0.5);
    for name in ["newest", "older", "accounts_by_prefix", "transactions_by_prefix", "accounts_scanned"] {
        assert!(number(&figures, &format!("{name}_p99_ms")) > 0.0, "{name}");
    }
    server.stop();
}

#[test]
fn measures_event_consumers_against_none() {
    let Some(server) = server() else { return };
    let arguments = format!("events --spawn {server} --turns 1 --seconds 1 --accounts 50");
    let figures = load(&arguments).expect("figures");
    for name in ["ratio_dead_consumer", "ratio_live_consumer", "events_received"] {
        assert!(number(&figures, name) > 0.0, "{name}: {figures}");
    }
    assert!(load("events").is_err(), "without a server");
}

#[test]
fn measures_deliveries_of_events() {
    let Some(server) = server() else { return };
    let figures = load(&format!("deliveries --spawn {server} --events 5")).expect("figures");
    for name in ["stream_p99_ms", "http_p99_ms", "http_first_ms"] {
        assert!(number(&figures, name) > 0.0, "{name}: {figures}");
    }
    assert!(load("deliveries").is_err(), "without a server");
}

#[test]
fn measures_the_cost_of_tokens() {
    let Some(server) = server() else { return };
    let arguments = format!("auth --spawn {server} --turns 1 --seconds 1 --accounts 50 --connections 4");
    let figures = load(&arguments).expect("figures");
    for name in ["writes_per_s_with_token", "reads_per_s_with_token", "tokens_per_s"] {
        assert!(number(&figures, name) > 0.0, "{name}: {figures}");
    }
    assert!(load("auth").is_err(), "without a server");
}

#[test]
fn reports_invalid_options() {
    for arguments in ["", "nothing", "embedded --unknown", "http", "embedded --transactions many"] {
        assert!(load(arguments).is_err_and(|error| error.0.starts_with("load: ")), "{arguments}");
    }
}
