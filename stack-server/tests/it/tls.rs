//! TLS towards clients and towards other servers, with a certificate authority of the test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::Value;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};

use crate::kill::address_of;

/// A certificate authority and its certificate for this machine.
struct Trust {
    authority: String,
    certificate: String,
    key: String,
}

impl Trust {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("an authority");
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(names).expect("names");
        let certificate = params.signed_by(&key, &authority).expect("a certificate");
        Self { authority: authority.pem(), certificate: certificate.pem(), key: key.serialize_pem() }
    }

    fn write(&self, home: &Path) {
        for (name, text) in [
            ("authority.pem", &self.authority),
            ("certificate.pem", &self.certificate),
            ("key.pem", &self.key),
        ] {
            std::fs::write(home.join(name), text).expect("the file is written");
        }
    }

    fn chain(&self) -> Vec<CertificateDer<'static>> {
        vec![CertificateDer::from_pem_slice(self.certificate.as_bytes()).expect("a certificate")]
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::from_pem_slice(self.key.as_bytes()).expect("a key")
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(self.authority.as_bytes()).expect("a certificate");
        roots.add(authority).expect("an authority");
        roots
    }
}

/// The running binary, which trusts only the authority of the test.
struct Running {
    server: Child,
    address: SocketAddr,
    _data: tempfile::TempDir,
}

impl Running {
    fn start(home: &Path, arguments: &[&str]) -> Self {
        let data = tempfile::tempdir().expect("a directory");
        let mut server = Command::new(env!("CARGO_BIN_EXE_stack-server"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data.path())
            .args(arguments)
            .env("SSL_CERT_FILE", home.join("authority.pem"))
            .env_remove("SSL_CERT_DIR")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let address = address_of(&mut server).parse().expect("an address");
        Self { server, address, _data: data }
    }

    fn send(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).expect("the server listens");
        stream.write_all(request.as_bytes()).expect("the request is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        answer
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn post(path: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends a request over TLS. Returns `None` if there is no connection.
fn ask(trust: &Trust, address: SocketAddr, shown: Option<&Trust>) -> Option<String> {
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(trust.roots());
    let config = match shown {
        None => config.with_no_client_auth(),
        Some(own) => config.with_client_auth_cert(own.chain(), own.key()).expect("a certificate"),
    };
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a configuration");
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let mut stream = StreamOwned::new(connection, stream);
    stream.write_all(b"GET /_healthcheck HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    // Some servers close the connection without a TLS closing message.
    let _ = stream.read_to_string(&mut answer);
    Some(answer).filter(|answer| !answer.is_empty())
}

#[test]
fn clients_are_served_over_tls_and_in_no_other_way() {
    let (trust, home) = (Trust::new(), tempfile::tempdir().expect("a directory"));
    trust.write(home.path());
    let file = |name: &str| home.path().join(name).to_str().expect("text").to_owned();
    let (certificate, key, authority) = (file("certificate.pem"), file("key.pem"), file("authority.pem"));
    let tls = ["--tls-certificate", &certificate, "--tls-key", &key];
    let server = Running::start(home.path(), &tls);
    let answer = ask(&trust, server.address, None).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(ask(&Trust::new(), server.address, None).is_none(), "another authority");
    let clear =
        std::panic::catch_unwind(|| server.send("GET /_healthcheck HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    assert!(!clear.unwrap_or_default().contains("HTTP/1.1 200"));
    drop(server);

    let mutual = [&tls[..], &["--tls-client-authorities", &authority]].concat();
    let server = Running::start(home.path(), &mutual);
    assert!(ask(&trust, server.address, None).is_none(), "who shows nothing");
    assert!(ask(&trust, server.address, Some(&Trust::new())).is_none(), "who shows another's");
    assert!(ask(&trust, server.address, Some(&trust)).expect("an answer").starts_with("HTTP/1.1 200"));
}

/// Starts a TLS server that answers each request by `answer`, which gets its path.
fn serve_others(
    trust: &Trust,
    answer: fn(&str, SocketAddr) -> String,
) -> (SocketAddr, mpsc::Receiver<String>) {
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(trust.chain(), trust.key())
        .expect("a certificate and its key");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (told, received) = mpsc::channel();
    // The thread ends with the process of the test.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (config, told) = (config.clone(), told.clone());
            std::thread::spawn(move || {
                let connection = ServerConnection::new(config).ok()?;
                let mut stream = BufReader::new(StreamOwned::new(connection, stream));
                loop {
                    let (mut path, mut length) = (String::new(), 0);
                    loop {
                        let mut line = String::new();
                        stream.read_line(&mut line).ok().filter(|read| *read > 0)?;
                        if path.is_empty() {
                            line.split(' ').nth(1)?.clone_into(&mut path);
                        }
                        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                            length = value.trim().parse().ok()?;
                        }
                        if line.trim().is_empty() {
                            break;
                        }
                    }
                    let mut body = vec![0; length];
                    stream.read_exact(&mut body).ok()?;
                    let text = answer(&path, address);
                    told.send(format!("{path} {}", String::from_utf8_lossy(&body))).ok()?;
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len());
                    stream.get_mut().write_all(head.as_bytes()).ok()?;
                }
                #[expect(unreachable_code, reason = "the type of what the thread returns")]
                Some(())
            });
        }
    });
    (address, received)
}

#[test]
fn reaches_only_trusted_https_servers() {
    let (trust, home) = (Trust::new(), tempfile::tempdir().expect("a directory"));
    trust.write(home.path());
    let (receiver, received) = serve_others(&trust, |_, _| String::new());
    let (stranger, refused) = serve_others(&Trust::new(), |_, _| String::new());
    let topics = format!(
        "COMMITTED_TRANSACTIONS:https://localhost:{}/events,SAVED_METADATA:https://127.0.0.1:{}/no",
        receiver.port(),
        stranger.port()
    );
    let arguments = [
        "--experimental-exporters",
        "--worker-pipelines-pull-interval=50ms",
        "--publisher-http-enabled",
        "--publisher-topic-mapping",
        &topics,
    ];
    let server = Running::start(home.path(), &arguments);
    assert!(server.send(&post("/v2/main", "")).starts_with("HTTP/1.1 204"));
    let exporter = format!(
        r#"{{"driver":"http","config":{{"url":"https://127.0.0.1:{}/logs","batching":{{"flushInterval":"1ms"}}}}}}"#,
        receiver.port()
    );
    let made = server.send(&post("/v2/_/exporters", &exporter));
    let body = made.split_once("\r\n\r\n").expect("a body").1;
    let made: Value = serde_json::from_str(body).expect("JSON");
    let pipeline = serde_json::json!({"exporterID": made["data"]["id"]}).to_string();
    assert!(server.send(&post("/v2/main/pipelines", &pipeline)).starts_with("HTTP/1.1 201"));
    let pay = r#"{"postings":[{"source":"world","destination":"a","amount":7,"asset":"USD"}]}"#;
    assert!(server.send(&post("/v2/main/transactions", pay)).starts_with("HTTP/1.1 200"));
    let mut seen: Vec<String> =
        (0..2).map(|_| received.recv_timeout(Duration::from_secs(30)).expect("both are delivered")).collect();
    seen.sort();
    assert!(seen[0].starts_with("/events {") && seen[0].contains("COMMITTED_TRANSACTIONS"), "{seen:?}");
    assert!(seen[1].starts_with("/logs [") && seen[1].contains("NEW_TRANSACTION"), "{seen:?}");
    // A server with an untrusted certificate receives nothing.
    assert!(server.send(&post("/v2/main/accounts/a/metadata", r#"{"k":"v"}"#)).starts_with("HTTP/1.1 204"));
    let log = received.recv_timeout(Duration::from_secs(30)).expect("the log is delivered");
    assert!(log.contains("SET_METADATA"), "{log}");
    assert!(refused.try_recv().is_err());
    drop(server);

    // This server has the keys of a token issuer. A token with an unknown key makes the server under test fetch them.
    let (issuer, asked) = serve_others(&trust, |path, address| {
        if path.ends_with("/.well-known/openid-configuration") {
            let issuer = format!("https://localhost:{}", address.port());
            format!(r#"{{"issuer":"{issuer}","jwks_uri":"{issuer}/keys"}}"#)
        } else {
            r#"{"keys":[]}"#.to_owned()
        }
    });
    let issuer = format!("https://localhost:{}", issuer.port());
    let server = Running::start(home.path(), &["--auth-enabled", "--auth-issuer", &issuer]);
    let encode = |text: &str| {
        use base64::Engine as _;
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text)
    };
    let head = encode(r#"{"alg":"RS256","kid":"k"}"#);
    let claims = encode(&format!(r#"{{"iss":"{issuer}","exp":99999999999}}"#));
    let token = format!("{head}.{claims}.{}", encode(&"s".repeat(256)));
    let request = format!(
        "GET /v2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    assert!(server.send(&request).starts_with("HTTP/1.1 401"));
    let paths: Vec<String> =
        (0..2).map(|_| asked.recv_timeout(Duration::from_secs(30)).expect("a request")).collect();
    assert_eq!(paths, ["/.well-known/openid-configuration ", "/keys "]);
}
