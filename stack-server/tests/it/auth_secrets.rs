//! Secrets stay secret: none is in the data directory, a backup, the log, an error, an event or an export, and no private
//! key is in the binary.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::auth::{ONE, now};
use crate::auth_world::{ASSERTION, Provider, REDIRECT, parameters};
use crate::client::escape;
use crate::kill::{address_of, ask_with};
use crate::receiver::Receiver;
use crate::stream::EventStream;

const SERVER: &str = env!("CARGO_BIN_EXE_stack-server");
const STATIC: &str = "canary-of-the-file-5b1c";
const OF_PROVIDER: &str = "canary-of-the-provider-77aa";

/// The start of every RSA key in PKCS #8: the version, the algorithm, and the tag of the octets that contain the key.
const PKCS8: &[u8] = b"\x02\x01\x00\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00\x04\x82";

/// Returns the offsets of unencrypted private keys: as PKCS #8, as base64, and as PEM with a body.
fn private_keys(bytes: &[u8]) -> Vec<usize> {
    let is_text = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/\r\n".contains(byte);
    let pem = |rest: &[u8]| {
        let head = &rest[..rest.len().min(40)];
        let end = head.windows(16).position(|part| part == b"PRIVATE KEY-----");
        end.is_some_and(|end| rest.iter().skip(end + 16).take_while(|byte| is_text(byte)).count() > 100)
    };
    let starts = |at: usize| match bytes[at] {
        // The numbers that follow distinguish a key from the mere name of its algorithm.
        0x02 => bytes[at..].starts_with(PKCS8) && bytes.get(at + 22..at + 24) == Some(b"\x30\x82"),
        b'I' => bytes[at..].starts_with(b"IBADANBgkqhkiG9w0BAQEFAASC"),
        b'-' => bytes[at..].starts_with(b"-----BEGIN ") && pem(&bytes[at + 11..]),
        _ => false,
    };
    (0..bytes.len()).filter(|at| starts(*at)).collect()
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|part| part == needle)
}

/// Returns all files below a directory.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.display().to_string(), std::fs::read(&path).expect("a file")));
        }
    }
    found
}

/// The output of a run, and the secrets that it must not contain.
struct Run {
    address: String,
    secrets: Vec<(&'static str, String)>,
    /// Texts of the server that anybody may read, by what they are.
    said: Vec<(&'static str, String)>,
}

impl Run {
    fn hide(&mut self, what: &'static str, secret: &Value) {
        let secret = secret.as_str().unwrap_or_else(|| panic!("no {what}")).to_owned();
        self.secrets.push((what, secret));
    }

    fn ask(&mut self, method: &str, path: &str, bearer: &str, body: &str) -> (u16, String, Value) {
        let headers = if bearer.is_empty() { String::new() } else { format!("{bearer}\r\n") };
        let (status, head, body) = ask_with(&self.address, method, path, &headers, body).expect("an answer");
        if status >= 400 {
            self.said.push(("a refusal", format!("{head}{body}")));
        }
        (status, head, serde_json::from_str(&body).unwrap_or(Value::Null))
    }

    fn form(&mut self, path: &str, client: &(String, String), form: &str) -> (u16, Value) {
        let form = format!("{form}&client_id={}&client_secret={}", client.0, client.1);
        let (status, _, answer) = self.ask("POST", &format!("/api/auth{path}"), "", &form);
        (status, answer)
    }

    fn log_in(&mut self, provider: &Provider, client: &(String, String)) -> String {
        let path = format!(
            "/api/auth/authorize?client_id={}&redirect_uri={}&response_type=code&scope=openid+offline_access",
            client.0,
            escape(REDIRECT)
        );
        let header = |head: &str, name: &str| {
            let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name));
            line.expect("a header").split_once(": ").expect("a value").1.to_owned()
        };
        let (_, head, _) = self.ask("GET", &path, "", "");
        let (sent, cookie) = (parameters(&header(&head, "location")), header(&head, "set-cookie"));
        let code = provider.log_in(&sent, |_| {});
        let cookie = cookie.split(';').next().expect("a pair").to_owned();
        self.secrets.push(("cookie", cookie.split_once('=').expect("a value").1.to_owned()));
        let path = format!("/api/auth/authorize/callback?code={code}&state={}", sent["state"]);
        let (_, head, _) = self.ask("GET", &path, &format!("Cookie: {cookie}"), "");
        let code = parameters(&header(&head, "location"))["code"].clone();
        self.secrets.push(("code", code.clone()));
        code
    }
}

/// Does everything that secrets are needed for, rightly and wrongly. Returns the header of a token that is good.
fn use_secrets(run: &mut Run, provider: &Provider, issuer: &str) -> String {
    let root = ("root".to_owned(), STATIC.to_owned());
    let (_, answer) = run.form("/oauth/token", &root, "grant_type=client_credentials&scope=openid");
    let bearer = format!("Authorization: Bearer {}", answer["access_token"].as_str().expect("a token"));
    run.hide("access token", &answer["access_token"]);
    // The server accepts secrets in an address, but must not log them.
    let path =
        format!("/api/auth/oauth/token?grant_type=client_credentials&client_id=root&client_secret={STATIC}");
    assert_eq!(run.ask("GET", &path, "", "").0, 200);
    let body = json!({"name": "canary-name", "redirectUris": [REDIRECT]}).to_string();
    let (_, _, made) = run.ask("POST", "/api/auth/clients", &bearer, &body);
    let id = made["data"]["id"].as_str().expect("an id").to_owned();
    let (_, _, made) =
        run.ask("POST", &format!("/api/auth/clients/{id}/secrets"), &bearer, r#"{"name":"s"}"#);
    run.hide("secret of a client", &made["data"]["clear"]);
    let app = (id, made["data"]["clear"].as_str().expect("a secret").to_owned());
    let code = run.log_in(provider, &app);
    let exchange = format!("grant_type=authorization_code&code={code}&redirect_uri={}", escape(REDIRECT));
    let (_, first) = run.form("/oauth/token", &app, &exchange);
    let refresh = format!(
        "grant_type=refresh_token&refresh_token={}",
        first["refresh_token"].as_str().expect("a token")
    );
    let (_, second) = run.form("/oauth/token", &app, &refresh);
    for tokens in [&first, &second] {
        for name in ["access_token", "refresh_token", "id_token"] {
            run.hide(name, &tokens[name]);
        }
    }
    let assertion = provider.signer.token(&json!({"iss": provider.name(), "sub": "p|7", "aud": issuer,
        "exp": now() + 60, "jti": "j"}));
    run.secrets.push(("assertion", assertion.clone()));
    assert_eq!(
        run.form("/oauth/token", &app, &format!("grant_type={ASSERTION}&assertion={assertion}")).0,
        200
    );
    // The server now refuses each of them.
    for form in [exchange, refresh, format!("grant_type={ASSERTION}&assertion={assertion}")] {
        assert_eq!(run.form("/oauth/token", &app, &form).0, 400, "{form}");
    }
    send_wrong_secrets(run, &app);
    assert_eq!(run.ask("POST", "/api/auth/keys/rotate", &bearer, "").0, 204);
    for path in ["/api/auth/clients", "/api/auth/users"] {
        let shown = show(run, "GET", path, &bearer);
        run.said.push(("a list", shown));
    }
    bearer
}

/// Asks for a text that holds no secret.
fn show(run: &Run, method: &str, path: &str, bearer: &str) -> String {
    let headers = format!("{bearer}\r\n");
    let (status, head, body) = ask_with(&run.address, method, path, &headers, "").expect("an answer");
    assert_eq!(status, 200, "{path}: {body}");
    format!("{head}{body}")
}

/// Writes to a ledger, and reads its export and its events, which are all events that there are.
fn use_ledger(run: &mut Run, bearer: &str, receiver: &Receiver) {
    run.ask("POST", "/v2/main", bearer, "");
    let posting =
        r#"{"postings":[{"source":"world","destination":"canary:account","amount":7,"asset":"USD"}]}"#;
    assert_eq!(run.ask("POST", "/v2/main/transactions", bearer, posting).0, 200);
    let path = "/v2/main/accounts/canary:account/metadata";
    assert_eq!(run.ask("POST", path, bearer, r#"{"k":"v"}"#).0, 204);
    let exported = show(run, "POST", "/v2/main/logs/export", bearer);
    assert!(exported.contains("canary:account"), "{exported}");
    run.said.push(("the export of a route", exported));
    let address = run.address.parse().expect("an address");
    let path = "/v2/main/_events?from=first";
    let stream = EventStream::try_open_with(address, path, &format!("{bearer}\r\n"));
    let events = stream.expect("the token is good").events(2);
    run.said.push(("the stream of events", format!("{events:?}")));
    // Order counts: an event of what was written before would be among these.
    let published = receiver.taken(2);
    assert_eq!(published.len(), 2, "only ledgers have events: {published:?}");
    assert!(published[0].body.contains("canary:account"), "{published:?}");
    run.said.push(("a published event", format!("{published:?}")));
}

/// Sends unknown secrets to all routes that accept one.
fn send_wrong_secrets(run: &mut Run, app: &(String, String)) {
    for wrong in ["canary-wrong-1", "canary-wrong-2"] {
        run.secrets.push(("wrong secret", wrong.to_owned()));
        run.form("/oauth/token", &(app.0.clone(), wrong.to_owned()), "grant_type=client_credentials");
        run.form("/oauth/introspect", &("root".to_owned(), wrong.to_owned()), &format!("token={wrong}"));
        run.form("/oauth/token", app, &format!("grant_type=refresh_token&refresh_token={wrong}"));
        run.form(
            "/oauth/token",
            app,
            &format!("grant_type=authorization_code&code={wrong}&redirect_uri={wrong}&code_verifier={wrong}"),
        );
        run.ask(
            "GET",
            &format!("/v2?access_token={wrong}"),
            &format!("Authorization: Bearer {wrong}.{wrong}.{wrong}"),
            "",
        );
        run.ask(
            "POST",
            "/api/auth/oauth/token",
            &format!("Authorization: Basic {}", STANDARD.encode(wrong)),
            "x=y",
        );
        run.ask(
            "POST",
            "/api/auth/oauth/token",
            &format!("Authorization: {wrong}"),
            &format!("{wrong}&{wrong}"),
        );
    }
}

/// Starts a server that logs everything and publishes its events.
fn start(home: &Path, provider: &Provider, receiver: &Receiver) -> Child {
    let clients = home.join("clients.yaml");
    std::fs::write(&clients, format!("clients: [{{id: root, trusted: true, secrets: [{STATIC}]}}]\n"))
        .expect("it is written");
    let topics = format!("*:{}", receiver.url("/in"));
    Command::new(SERVER)
        .args(["serve", "--listen", "127.0.0.1:0", "--debug", "--auth-enabled", "--auth-mode", "own"])
        .args(["--auth-wrong-secrets", "1000", "--auth-public-url", "https://stack.example"])
        .args(["--delegated-client-id", "stack", "--delegated-client-secret", OF_PROVIDER])
        .args(["--delegated-issuer", &provider.name()])
        .args(["--publisher-http-enabled", "--publisher-topic-mapping", &topics])
        .arg("--data")
        .arg(home.join("data"))
        .arg("--auth-client")
        .arg(&clients)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the server starts")
}

/// Runs a command on the stopped store. Returns what it prints.
fn command(arguments: &[&str]) -> String {
    let output = Command::new(SERVER).args(arguments).output().expect("it runs");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {log}");
    format!("{}{log}", String::from_utf8_lossy(&output.stdout))
}

#[test]
fn no_secret_is_written_or_told() {
    let home = tempfile::tempdir().expect("a directory");
    let (provider, receiver) = (Provider::start(), Receiver::start());
    let mut child = start(home.path(), &provider, &receiver);
    // What it logs is read all the time: a full pipe would stop it.
    let mut stderr = child.stderr.take().expect("piped");
    let log = std::thread::spawn(move || {
        let mut log = String::new();
        stderr.read_to_string(&mut log).map(|_| log)
    });
    let secrets =
        vec![("secret of the file", STATIC.to_owned()), ("secret of the provider", OF_PROVIDER.to_owned())];
    let mut run = Run { address: address_of(&mut child), secrets, said: Vec::new() };
    let bearer = use_secrets(&mut run, &provider, "https://stack.example/api/auth");
    use_ledger(&mut run, &bearer, &receiver);
    assert!(Command::new("kill").arg(child.id().to_string()).status().expect("a signal").success());
    assert!(child.wait().expect("the process ends").success());
    let log = log.join().expect("no panic").expect("text");
    assert!(log.contains("unknown client or wrong secret"), "{log}");
    run.said.push(("the log", log));
    let [data, backup] = ["data", "backup"].map(|name| home.path().join(name).display().to_string());
    for arguments in [&["export", &data, "main"][..], &["export", "--logs", &data, "main"]] {
        run.said.push(("the export of a command", command(arguments)));
    }
    run.said.push(("the output of a backup", command(&["backup", &data, &backup])));

    let key = std::fs::read_to_string(home.path().join("data.auth-key")).expect("the key of the operator");
    let raw: Vec<u8> =
        (0..32).map(|at| u8::from_str_radix(&key[2 * at..2 * at + 2], 16).expect("a byte")).collect();
    run.secrets.push(("key of the operator", key.trim().to_owned()));
    run.secrets.push(("key of the operator", STANDARD.encode(&raw)));
    let mut places = Vec::new();
    for directory in [&data, &backup] {
        let found = files(Path::new(directory));
        let is_clear = found.iter().any(|(_, bytes)| contains(bytes, b"canary-name"));
        assert!(is_clear, "documents are in the clear in {directory}");
        places.extend(found);
    }
    places.extend(run.said.into_iter().map(|(place, text)| (place.to_owned(), text.into_bytes())));
    for (place, bytes) in &places {
        for (what, secret) in &run.secrets {
            let text = String::from_utf8_lossy(bytes);
            let line = text.lines().find(|line| line.contains(secret.as_str()));
            assert_eq!(line, None, "{place} holds the {what}");
        }
        assert!(!contains(bytes, &raw), "{place} holds the key of the operator");
        assert_eq!(private_keys(bytes), [0_usize; 0], "{place} holds a private key");
    }
}

#[test]
fn the_binary_holds_no_private_key() {
    // Check that the search finds a key.
    let pem = format!("x-----BEGIN PRIVATE KEY-----\n{}", STANDARD.encode(ONE));
    assert_eq!((private_keys(ONE), private_keys(pem.as_bytes())[0]), (vec![4], 1));
    let binary = std::fs::read(SERVER).expect("the binary");
    assert_eq!(private_keys(&binary), [0_usize; 0]);
}
