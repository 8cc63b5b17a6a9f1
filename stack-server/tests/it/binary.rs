//! The binary: its output, its start, and its reaction to signals.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::kill::{address_of, ask};

const SERVER: &str = env!("CARGO_BIN_EXE_stack-server");

#[test]
fn serves_until_signal_and_exits_cleanly() {
    let data = tempfile::tempdir().expect("a directory");
    for signal in ["TERM", "INT", "HUP"] {
        let mut server = Command::new(SERVER)
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data.path().join("store"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let address = address_of(&mut server);
        assert!(std::net::TcpStream::connect(&address).is_ok(), "{address}");
        let killed = Command::new("kill").args([format!("-{signal}"), server.id().to_string()]).status();
        assert!(killed.expect("a signal is sent").success());
        let status = server.wait().expect("the process ends");
        let mut log = String::new();
        server.stderr.take().expect("piped").read_to_string(&mut log).expect("text");
        assert!(status.success(), "{signal}: {log}");
        let events: Vec<_> = log.lines().filter_map(|line| line.split(' ').nth(2)).collect();
        assert_eq!(events, ["event=recovery", "event=start", "event=stop"], "{log}");
        assert!(log.contains(&format!("signal=\"SIG{signal}\"")), "{log}");
    }
}

#[test]
fn tells_that_it_does_the_work_of_workers() {
    let data = tempfile::tempdir().expect("a directory");
    let mut server = Command::new(SERVER)
        .args(["serve", "--listen", "127.0.0.1:0", "--worker-grpc-address", "worker:8081", "--data"])
        .arg(data.path().join("store"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the server starts");
    address_of(&mut server);
    terminate(&server);
    let output = server.wait_with_output().expect("the process ends");
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(log.matches("event=worker").count(), 1, "{log}");
}

/// Starts the server in a shell, after the commands in `first`.
fn started(first: &str, data: &Path) -> (Child, String) {
    let mut server = Command::new("sh")
        .args(["-c", &format!("{first} exec \"$0\" serve --listen 127.0.0.1:0 --data \"$1\""), SERVER])
        .arg(data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    let address = address_of(&mut server);
    (server, address)
}

fn terminate(server: &Child) {
    let sent = Command::new("kill").arg(server.id().to_string()).status();
    assert!(sent.expect("a signal is sent").success());
}

/// Sends a request on a new connection and returns the status of the response.
fn request(address: &str, method: &str, path: &str, body: &str) -> u16 {
    ask(address, method, path, body).expect("an answer").0
}

#[test]
fn a_second_signal_ends_the_wait_for_requests() {
    let data = tempfile::tempdir().expect("a directory");
    let (mut server, address) = started("", &data.path().join("store"));
    let mut stuck = TcpStream::connect(&address).expect("the server listens");
    let head =
        "POST /v2/main HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n";
    stuck.write_all(head.as_bytes()).expect("sent");
    // The server has asked for the body, so it has started this request.
    let mut leave = [0; 12];
    stuck.read_exact(&mut leave).expect("an interim response");
    let mut idle = TcpStream::connect(&address).expect("the server listens");
    write!(idle, "GET /v2/_healthcheck HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    assert!(idle.read(&mut [0; 4_096]).expect("an answer") > 0);
    terminate(&server);
    // The idle connection ends, so the server is stopping.
    while idle.read(&mut [0; 4_096]).expect("the rest, or the end") > 0 {}
    let begun = Instant::now();
    terminate(&server);
    assert!(server.wait().expect("the process ends").success());
    // Without the second signal, the server would wait ten seconds for the stuck request.
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

#[test]
fn survives_file_size_limit_and_refuses_writes() {
    let data = tempfile::tempdir().expect("a directory");
    let (mut server, address) = started("ulimit -f 8192;", &data.path().join("store"));
    assert_eq!(request(&address, "POST", "/v2/main", ""), 204);
    let note = "x".repeat(20_000);
    let transaction = format!(
        r#"{{"postings":[{{"source":"world","destination":"a","amount":1,"asset":"USD"}}],"metadata":{{"note":"{note}"}}}}"#
    );
    let statuses = (0..2_000).map(|_| request(&address, "POST", "/v2/main/transactions", &transaction));
    let refused = statuses.filter(|status| *status != 200).take(3).collect::<Vec<_>>();
    assert_eq!(refused, [503, 503, 503]);
    assert_eq!(request(&address, "GET", "/v2/main/transactions", ""), 200);
    terminate(&server);
    assert!(
        server.wait().expect("the process ends").success(),
        "everything that it acknowledged is recorded"
    );
    let (mut server, address) = started("", &data.path().join("store"));
    assert_eq!(request(&address, "POST", "/v2/main/transactions", &transaction), 200);
    terminate(&server);
    assert!(server.wait().expect("the process ends").success());
}

#[test]
fn verify_with_kept_head_detects_rewritten_history() {
    let data = tempfile::tempdir().expect("a directory");
    let store = data.path().join("store");
    let head_after = |ledger: &str| {
        let (mut server, address) = started("", &store);
        assert_eq!(request(&address, "POST", &format!("/v2/{ledger}"), ""), 204);
        terminate(&server);
        assert!(server.wait().expect("the process ends").success());
        let summary =
            Command::new(SERVER).arg("verify").arg(&store).output().expect("the command runs").stdout;
        let summary: serde_json::Value = serde_json::from_slice(&summary).expect("one line of JSON");
        format!("{}:{}", summary["entries"], summary["head"].as_str().expect("a hash"))
    };
    let kept = [head_after("first"), head_after("second")];
    let verified = |head: &str| {
        let output = Command::new(SERVER).arg("verify").arg(&store).args(["--expect-head", head]).output();
        let output = output.expect("the command runs");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    for head in &kept {
        assert_eq!(verified(head).0, Some(0), "{head}");
    }
    let (first, second) =
        (kept[0].split_once(':').expect("a hash"), kept[1].split_once(':').expect("a hash"));
    for (entries, hash) in [(first.0, second.1), (second.0, first.1), ("99", first.1)] {
        let (status, lines) = verified(&format!("{entries}:{hash}"));
        assert_eq!(status, Some(1), "{lines}");
        assert!(lines.contains("HEAD_MISMATCH") && lines.contains("\"violations\":1"), "{lines}");
    }
}

#[test]
fn refuses_directory_writable_by_others() {
    let data = tempfile::tempdir().expect("a directory");
    let mode = |mode| std::fs::set_permissions(data.path(), std::fs::Permissions::from_mode(mode));
    let command = |flags: &[&str]| {
        let mut command = Command::new(SERVER);
        command.args(["--listen", "127.0.0.1:0", "--data"]).arg(data.path()).args(flags);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let allowed = ["--allow-shared-directory"];
    for (bits, flags, is_told) in
        [(0o755, &[][..], false), (0o755, &allowed, false), (0o775, &allowed, true), (0o777, &allowed, true)]
    {
        mode(bits).expect("its mode");
        let mut server = command(flags).spawn().expect("the server starts");
        address_of(&mut server);
        terminate(&server);
        let log = server.wait_with_output().expect("the process ends").stderr;
        let log = String::from_utf8_lossy(&log).into_owned();
        assert_eq!(log.contains("level=warning event=exposed"), is_told, "{bits:o}: {log}");
    }
    for bits in [0o775, 0o757, 0o1777] {
        mode(bits).expect("its mode");
        let refused = command(&[]).output().expect("the command runs");
        let log = String::from_utf8_lossy(&refused.stderr);
        assert!(
            refused.status.code() == Some(1) && log.contains("--allow-shared-directory"),
            "{bits:o}: {log}"
        );
    }
}

#[test]
fn prints_version_help_and_usage_errors() {
    let run = |arguments: &[&str]| Command::new(SERVER).args(arguments).output().expect("the command runs");
    let version = run(&["--version"]);
    assert!(version.status.success());
    assert!(String::from_utf8_lossy(&version.stdout).starts_with("stack-server 0."));
    let help = run(&["--help"]);
    assert!(String::from_utf8_lossy(&help.stdout).contains("STACK_MEMORY_BUDGET"));
    let refused = run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--allow-unauthenticated"));
}

#[test]
fn output_may_be_closed_before_its_end() {
    let data = tempfile::tempdir().expect("a directory");
    let store = data.path().join("store");
    drop(ledger_store::Store::open(&store).expect("a store"));
    let store = store.to_str().expect("text");
    for arguments in [&["help"][..], &["help", "serve"], &["--version"], &["verify", store]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let done = Command::new(SERVER).args(arguments).stdout(writer).output().expect("it runs");
        assert!(done.status.success() && done.stderr.is_empty(), "{arguments:?}: {done:?}");
    }
}

#[test]
fn reports_address_that_is_in_use() {
    let data = tempfile::tempdir().expect("a directory");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("an address").to_string();
    let output = Command::new(SERVER)
        .args(["--listen", &address, "--data"])
        .arg(data.path())
        .output()
        .expect("the command runs");
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(log.contains("level=error event=fault") && log.contains(&address), "{log}");
}

#[test]
fn only_the_log_tells_the_cause_of_a_fault() {
    let data = tempfile::tempdir().expect("a directory");
    let store = data.path().join("store");
    let (mut server, address) = started("export EXPERIMENTAL_FEATURES=true;", &store);
    // The thread that hashes logs reads the journal as well, and damage that it meets ends the server.
    let unhashed = r#"{"features":{"HASH_LOGS":"DISABLED"}}"#;
    assert_eq!(request(&address, "POST", "/v2/main", unhashed), 204);
    let body = r#"{"postings":[{"source":"world","destination":"a","amount":1,"asset":"USD"}]}"#;
    assert_eq!(request(&address, "POST", "/v2/main/transactions", body), 200);
    terminate(&server);
    assert!(server.wait().expect("the process ends").success());

    let mut server = Command::new(SERVER)
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(&store)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let address = address_of(&mut server);
    for file in std::fs::read_dir(store.join("journal")).expect("a journal") {
        let file = std::fs::File::options().write(true).open(file.expect("a file").path());
        file.and_then(|file| file.set_len(0)).expect("the journal is damaged");
    }
    let (status, said) = ask(&address, "GET", "/v2/main/transactions/1", "").expect("an answer");
    let message = "Internal error. Consult logs/traces to have more details.";
    assert_eq!(
        (status, &said["errorCode"], &said["errorMessage"]),
        (500, &"INTERNAL".into(), &message.into())
    );
    assert!(!said.to_string().contains("journal"), "{said}");
    terminate(&server);
    let output = server.wait_with_output().expect("the process ends");
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let fault = log.lines().find(|line| line.contains("event=fault")).expect("the fault is logged");
    assert!(
        fault.contains("level=error") && fault.contains("journal") && fault.contains("request_id="),
        "{log}"
    );
}

#[test]
fn a_worker_says_why_it_waits_and_ends_by_a_signal() {
    let mut worker = Command::new(SERVER)
        .args(["worker", "--worker-grpc-address", ":8081"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut log = std::io::BufReader::new(worker.stderr.take().expect("piped"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut log, &mut line).expect("a line");
    assert!(line.contains("event=worker") && line.contains("in the server itself"), "{line}");
    // The worker logs this line before it handles signals. A signal in between ends it like any other process.
    terminate(&worker);
    worker.wait().expect("the process ends");
}
