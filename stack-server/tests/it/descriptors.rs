//! Runs a server with few descriptors in a separate process. Connections must leave enough descriptors for the store.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ledger_store::{Options, Store};
use socket2::{Domain, Socket, Type};
use stack_server::{Server, Settings, descriptors};

use crate::kill::{Running, address_of};
use crate::skipping::skipped;

/// The variable with the data directory of the child process, which only runs [`child_serves_with_few_descriptors`].
const CHILD_DATA: &str = "STACK_TEST_DESCRIPTORS_DATA";

/// Serves a store with small segments until the parent closes standard input. Does nothing unless the parent has
/// started this process.
#[test]
fn child_serves_with_few_descriptors() {
    let Some(data) = std::env::var_os(CHILD_DATA) else { return };
    descriptors::raise_limit();
    let mut options = Options::default();
    options.segment_bytes = 256 << 10;
    let store = Store::open_with(Path::new(&data), &options).expect("a store");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut settings = Settings::default();
    // The bound on connections is one for all threads.
    settings.http_threads = 4;
    let server = Server::start(&store, settings, listener).expect("a server");
    println!("\nlistening on http://{}", server.address());
    std::io::stdin().read_to_end(&mut Vec::new()).expect("the parent ends it");
    server.stop();
    store.close().expect("the store closes");
    // The parent no longer reads the output, so the test harness could not print its result.
    std::process::exit(0);
}

/// Starts the child in a shell, after the commands in `limits`.
fn start(limits: &str, data: &Path) -> (Child, String) {
    let this = std::env::current_exe().expect("this program has a path");
    let command =
        format!("{limits} exec \"$0\" --exact descriptors::child_serves_with_few_descriptors --nocapture");
    let mut child = Command::new("sh")
        .args(["-c", &command])
        .arg(this)
        .env(CHILD_DATA, data)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let address = address_of(&mut child);
    (child, address)
}

fn segments(data: &Path) -> usize {
    std::fs::read_dir(data.join("journal")).expect("the journal").count()
}

/// Sends a request on a connection that stays open, and returns the status.
fn ask_on(connection: &mut BufReader<TcpStream>, path: &str, body: &str) -> u16 {
    let length = body.len();
    let request =
        format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n{body}");
    connection.get_mut().write_all(request.as_bytes()).expect("sent");
    let mut line = String::new();
    connection.read_line(&mut line).expect("an answer");
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let mut length = 0;
    while line != "\r\n" {
        line.clear();
        connection.read_line(&mut line).expect("a header");
        if let Some(text) = line.strip_prefix("content-length: ") {
            length = text.trim().parse().expect("a number");
        }
    }
    connection.read_exact(&mut vec![0; length]).expect("a body");
    status.unwrap_or_else(|| panic!("no answer: {line:?}"))
}

#[test]
fn idle_connections_leave_files_to_the_store() {
    let data = tempfile::tempdir().expect("a directory");
    let data = data.path().join("store");
    let (child, address) = start("ulimit -n 128;", &data);
    let mut running = Running { child, address };
    let mut honest = BufReader::new(TcpStream::connect(&running.address).expect("the server listens"));
    assert_eq!(ask_on(&mut honest, "/v2/main", ""), 204);
    // Open more connections than the process has descriptors.
    let idle: Vec<TcpStream> = (0..200).filter_map(|_| TcpStream::connect(&running.address).ok()).collect();
    assert!(idle.len() > 128, "{}", idle.len());
    let note = "x".repeat(20_000);
    let transaction = format!(
        r#"{{"postings":[{{"source":"world","destination":"a","amount":1,"asset":"USD"}}],"metadata":{{"note":"{note}"}}}}"#
    );
    let before = segments(&data);
    for _ in 0..100 {
        assert_eq!(ask_on(&mut honest, "/v2/main/transactions", &transaction), 200);
    }
    assert!(segments(&data) > before + 3, "the journal began segments meanwhile");
    drop(idle);
    drop(running.child.stdin.take());
    assert!(running.child.wait().expect("the process ends").success());
}

#[test]
fn raises_soft_limit_of_descriptors() {
    let data = tempfile::tempdir().expect("a directory");
    let (child, address) = start("ulimit -Sn 32; ulimit -Hn 1024;", &data.path().join("store"));
    let running = Running { child, address };
    let open: Vec<_> = (0..64)
        .map(|_| {
            let mut connection =
                BufReader::new(TcpStream::connect(&running.address).expect("the server listens"));
            assert_eq!(ask_on(&mut connection, "/v2/nowhere/transactions", "{}"), 404);
            connection
        })
        .collect();
    assert_eq!(open.len(), 64);
}

/// Connects to the server from an address of loopback.
fn connect_from(peer: &str, address: &str) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    let peer = format!("{peer}:0").parse::<SocketAddr>().expect("an address");
    socket.bind(&peer.into())?;
    socket.connect(&address.parse::<SocketAddr>().expect("an address").into())?;
    socket.set_read_timeout(Some(Duration::from_secs(20)))?;
    Ok(socket.into())
}

/// Sends a request on a connection that stays open. Returns whether the server answers it.
fn is_served(mut connection: &TcpStream) -> bool {
    // The server may close the connection before or after the request.
    let _ = connection.write_all(b"GET /v2 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    let mut begin = [0; 12];
    match connection.read_exact(&mut begin) {
        Ok(()) => begin == *b"HTTP/1.1 200",
        Err(error) => {
            assert_ne!(error.kind(), io::ErrorKind::WouldBlock, "the server neither answers nor closes");
            false
        }
    }
}

#[test]
fn one_peer_leaves_connections_to_others() {
    let data = tempfile::tempdir().expect("a directory");
    let (child, address) = start("ulimit -n 128;", &data.path().join("store"));
    let running = Running { child, address };
    let other = match connect_from("127.0.0.2", &running.address) {
        Ok(other) => other,
        Err(error) => return skipped(format_args!("no second address of loopback: {error}")),
    };
    drop(other);
    let connect = |peer| connect_from(peer, &running.address).expect("the server listens");
    // Connections may use 64 of the descriptors, and one peer may have half of those connections.
    let mut greedy: Vec<TcpStream> = (0..60).map(|_| connect("127.0.0.1")).filter(is_served).collect();
    assert_eq!(greedy.len(), 32);
    let others: Vec<TcpStream> = (0..8).map(|_| connect("127.0.0.2")).filter(is_served).collect();
    assert_eq!(others.len(), 8);
    // A connection that ends gives its place back to its peer.
    greedy.pop();
    let late = Instant::now() + Duration::from_secs(20);
    while !is_served(&connect("127.0.0.1")) {
        assert!(Instant::now() < late, "the place is not free again");
    }
}
