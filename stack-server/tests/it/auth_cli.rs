//! `stack-server auth`: clients, their secrets, signing keys and tokens, managed in the data directory of a stopped
//! server and through a running server.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::kill::address_of;

const SERVER: &str = env!("CARGO_BIN_EXE_stack-server");

/// A server with its data below a folder, until it is dropped.
struct Running {
    child: Child,
    url: String,
}

impl Running {
    fn start(home: &Path, flags: &[&str]) -> Self {
        let mut child = Command::new(SERVER)
            .args(["serve", "--listen", "127.0.0.1:0", "--debug", "--data"])
            .arg(home.join("data"))
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let url = format!("http://{}", address_of(&mut child));
        Self { child, url }
    }

    /// Stops the server and returns its log.
    fn stop(mut self) -> String {
        let sent = Command::new("kill").arg(self.child.id().to_string()).status();
        assert!(sent.expect("a signal is sent").success());
        let mut log = String::new();
        self.child.stderr.take().expect("piped").read_to_string(&mut log).expect("text");
        assert!(self.child.wait().expect("the process ends").success(), "{log}");
        log
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After a successful test, the server has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The id and the secret of a client, which a command prints as shell exports.
struct Pair {
    id: String,
    secret: String,
}

impl Pair {
    fn of(output: &Output) -> Self {
        let text = text(output);
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("export {name}=")));
            line.unwrap_or_else(|| panic!("{name}: {text}")).trim_matches('\'').to_owned()
        };
        Self { id: value("STACK_CLIENT_ID"), secret: value("STACK_CLIENT_SECRET") }
    }
}

#[track_caller]
fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn auth(arguments: &[&str]) -> Output {
    Command::new(SERVER).arg("auth").args(arguments).output().expect("the command runs")
}

/// Sends a request with a token and returns the status.
fn status(url: &str, path: &str, token: &str) -> u16 {
    let address = url.strip_prefix("http://").expect("an address");
    let mut stream = std::net::TcpStream::connect(address).expect("the server listens");
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
    )
    .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}

#[test]
fn from_nothing_to_an_authenticated_call() {
    let home = tempfile::tempdir().expect("a directory");
    let data = home.path().join("data");
    let data = data.to_str().expect("text");
    let admin = Pair::of(&auth(&["init", "--data", data]));
    let again = auth(&["init", "--data", data]);
    assert_eq!((again.status.code(), again.stdout.len()), (Some(1), 0));
    assert!(String::from_utf8_lossy(&again.stderr).contains("clients already"));

    let server = Running::start(home.path(), &["--auth-enabled", "--auth-check-scopes"]);
    // Runs `stack-server auth` against the running server, as a client.
    let through = |client: &Pair, words: &[&str]| {
        let mut command = Command::new(SERVER);
        command.arg("auth").args(words).args(["--server", &server.url]);
        command.env("STACK_CLIENT_ID", &client.id).env("STACK_CLIENT_SECRET", &client.secret);
        command.output().expect("the command runs")
    };
    let token = text(&through(&admin, &["token"])).trim().to_owned();
    assert_eq!((status(&server.url, "/v2", &token), status(&server.url, "/v2", "x")), (200, 401));
    let openid_token = text(&through(&admin, &["token", "--scope", "openid"])).trim().to_owned();
    assert_eq!(status(&server.url, "/v2", &openid_token), 401);

    let words = ["client", "create", "--name", "o'shop", "--id", "shop", "--scope", "ledger:read"];
    let shop = Pair::of(&through(&admin, &words));
    assert!(text(&through(&admin, &["client", "list"])).contains("\"o'shop\""));
    let shop_token = text(&through(&shop, &["token"])).trim().to_owned();
    assert_eq!(status(&server.url, "/v2", &shop_token), 200);
    let rotated = Pair::of(&through(&admin, &["client", "rotate-secret", "shop"]));
    assert!(!through(&shop, &["token"]).status.success(), "the older secret is gone");
    text(&through(&rotated, &["token"]));
    text(&through(&admin, &["keys", "rotate"]));
    assert_eq!(status(&server.url, "/v2", &token), 200);
    text(&through(&admin, &["client", "delete", "shop"]));
    assert!(!through(&admin, &["client", "delete", "shop"]).status.success());
    assert!(!through(&rotated, &["token"]).status.success());

    let log = server.stop();
    for secret in [&admin.secret, &shop.secret, &rotated.secret, &token] {
        assert!(!log.contains(secret.as_str()), "{log}");
    }
}

#[test]
fn a_stopped_store_is_managed_without_a_server() {
    let home = tempfile::tempdir().expect("a directory");
    let data = home.path().join("data");
    let data = data.to_str().expect("text");
    let made = Pair::of(&auth(&["client", "create", "--name", "a", "--data", data]));
    text(&auth(&["keys", "rotate", "--data", data]));
    let rotated = Pair::of(&auth(&["client", "rotate-secret", &made.id, "--data", data]));
    assert_eq!((rotated.id == made.id, rotated.secret == made.secret), (true, false));
    let listed = text(&auth(&["client", "list", "--data", data]));
    // The list shows the last four of the 36 characters of a secret.
    assert!(
        listed.contains(&made.id)
            && listed.contains(&rotated.secret[32..])
            && !listed.contains(&rotated.secret)
    );
    text(&auth(&[
        "client",
        "create",
        "--public",
        "--name",
        "b",
        "--redirect-uri",
        "https://b",
        "--data",
        data,
    ]));
    text(&auth(&["client", "delete", &made.id, "--data", data]));
    assert_eq!(text(&auth(&["client", "list", "--data", data])).lines().count(), 1);

    // The key file is next to the directory, and only its owner can read it. Without the key the store cannot be
    // opened.
    let key = home.path().join("data.auth-key");
    assert_eq!(std::fs::metadata(&key).expect("a file").permissions().mode() & 0o777, 0o600);
    std::fs::rename(&key, home.path().join("elsewhere")).expect("moved");
    let lost = auth(&["client", "list", "--data", data]);
    assert!(String::from_utf8_lossy(&lost.stderr).contains("bring it back"), "{lost:?}");
    assert!(!key.exists(), "no other key takes its place");
}

#[test]
fn refuses_malformed_command_lines() {
    for words in [
        &[][..],
        &["nosuch"],
        &["client"],
        &["client", "create", "--nosuch"],
        &["client", "delete"],
        &["token", "--scope"],
        &["token"],
    ] {
        let output = Command::new(SERVER)
            .arg("auth")
            .args(words)
            .env_remove("STACK_CLIENT_ID")
            .output()
            .expect("the command runs");
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
    }
    assert!(text(&auth(&["--help"])).contains("rotate-secret"));
}

#[test]
fn unknown_words_come_with_suggestions() {
    for (words, meant) in [
        (&["clietn"][..], "\"client\""),
        (&["tokne"], "\"token\""),
        (&["clietn", "list"], "\"client\""),
        (&["client", "lsit"], "\"list\""),
        (&["keys", "rotaet"], "\"rotate\""),
        (&["init", "--nmae", "x"], "\"--name\""),
    ] {
        let output = auth(words);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.contains(&format!("did you mean {meant}?")), "{words:?}: {error}");
    }
}

#[test]
fn refuses_shared_directory_unless_allowed() {
    let home = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o777)).expect("its mode");
    let data = home.path().to_str().expect("text");
    let key = tempfile::tempdir().expect("a directory");
    let key = key.path().join("key");
    let init = ["init", "--data", data, "--auth-key-file", key.to_str().expect("text")];
    let refused = auth(&init);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{error}");
    assert!(error.contains("--allow-shared-directory"), "{error}");
    assert!(!home.path().join("MANIFEST").exists(), "nothing is made there");
    text(&auth(&[&init[..], &["--allow-shared-directory"]].concat()));
}

#[test]
fn refuses_store_of_a_running_server() {
    let home = tempfile::tempdir().expect("a directory");
    let server = Running::start(home.path(), &[]);
    let data = home.path().join("data");
    let refused = auth(&["client", "list", "--data", data.to_str().expect("text")]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(!home.path().join("data.auth-key").exists(), "no key is made before one is needed");
    server.stop();
}
