//! The binary: what it prints, how it starts and how a signal ends it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

const SERVER: &str = env!("CARGO_BIN_EXE_stack-server");

#[test]
fn it_serves_until_a_signal_and_ends_well() {
    let data = tempfile::tempdir().expect("a directory");
    for signal in ["TERM", "INT"] {
        let mut server = Command::new(SERVER)
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data.path().join("store"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        BufReader::new(server.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on http://").expect("the address").to_owned();
        assert!(std::net::TcpStream::connect(&address).is_ok(), "{address}");
        let killed = Command::new("kill").args([format!("-{signal}"), server.id().to_string()]).status();
        assert!(killed.expect("a signal is sent").success());
        let status = server.wait().expect("it ends");
        let mut log = String::new();
        server.stderr.take().expect("piped").read_to_string(&mut log).expect("text");
        assert!(status.success(), "{signal}: {log}");
        let events: Vec<_> = log.lines().filter_map(|line| line.split(' ').nth(2)).collect();
        assert_eq!(events, ["event=recovery", "event=start", "event=stop"], "{log}");
        assert!(log.contains(&format!("signal=\"SIG{signal}\"")), "{log}");
    }
}

#[test]
fn it_explains_itself() {
    let run = |arguments: &[&str]| Command::new(SERVER).args(arguments).output().expect("it runs");
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
fn a_taken_address_is_a_fault_that_names_it() {
    let data = tempfile::tempdir().expect("a directory");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("an address").to_string();
    let output = Command::new(SERVER)
        .args(["--listen", &address, "--data"])
        .arg(data.path())
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(log.contains("level=error event=fault") && log.contains(&address), "{log}");
}
