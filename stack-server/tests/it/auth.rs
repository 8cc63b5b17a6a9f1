//! Tokens of an issuer outside the server: the requests that they allow, and changes of the issuer's keys.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::PublicKeyComponents;
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ledger_store::Store;
use serde_json::{Value, json};
use stack_server::{AuthSettings, Mount, Scope, Server, Settings, routes};

use crate::client::TestServer;

// These keys were generated for these tests and are not used for anything else.
pub(crate) static ONE: &[u8] = include_bytes!("../data/keys/one.pk8");
pub(crate) static TWO: &[u8] = include_bytes!("../data/keys/two.pk8");

/// A signing key with its name in tokens.
pub(crate) struct Signer {
    pair: RsaKeyPair,
    id: Option<&'static str>,
}

impl Signer {
    pub(crate) fn new(pkcs8: &[u8], id: Option<&'static str>) -> Self {
        Self { pair: RsaKeyPair::from_pkcs8(pkcs8).expect("a key"), id }
    }

    pub(crate) fn public(&self) -> Value {
        let public = PublicKeyComponents::<Vec<u8>>::from(self.pair.public_key());
        let mut key = json!({"kty": "RSA", "use": "sig", "alg": "RS256",
            "n": URL_SAFE_NO_PAD.encode(&public.n), "e": URL_SAFE_NO_PAD.encode(&public.e)});
        if let Some(id) = self.id {
            key["kid"] = json!(id);
        }
        key
    }

    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encode(header), encode(claims));
        let mut signature = vec![0; self.pair.public_key().modulus_len()];
        self.pair
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
            .expect("a signature");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    pub(crate) fn token(&self, claims: &Value) -> String {
        let mut header = json!({"alg": "RS256", "typ": "JWT"});
        if let Some(id) = self.id {
            header["kid"] = json!(id);
        }
        self.sign(&header, claims)
    }
}

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs()
}

/// An issuer with a discovery document, and keys that a test can change.
pub(crate) struct Issuer {
    address: SocketAddr,
    keys: Arc<Mutex<Vec<Value>>>,
    asked: Arc<AtomicUsize>,
}

impl Issuer {
    pub(crate) fn start(keys: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (keys, asked) = (Arc::new(Mutex::new(keys)), Arc::new(AtomicUsize::new(0)));
        let (served, counter) = (keys.clone(), asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                counter.fetch_add(1, Ordering::SeqCst);
                Self::answer(stream.expect("a connection"), address, &served);
            }
        });
        Self { address, keys, asked }
    }

    fn answer(mut stream: TcpStream, address: SocketAddr, keys: &Mutex<Vec<Value>>) {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head);
        let body = if head.starts_with("GET /api/auth/.well-known/openid-configuration ") {
            let base = format!("http://{address}/api/auth");
            json!({"issuer": base, "jwks_uri": format!("{base}/keys")})
        } else {
            assert!(head.starts_with("GET /api/auth/keys "), "{head}");
            json!({"keys": *keys.lock().expect("no panic")})
        };
        let body = body.to_string();
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        // Ignore the error of a client that has disconnected.
        let _ = stream.write_all(answer.as_bytes());
    }

    pub(crate) fn name(&self) -> String {
        format!("http://{}/api/auth", self.address)
    }

    fn claims(&self, scope: &str) -> Value {
        json!({"iss": self.name(), "exp": now() + 600, "scope": scope})
    }

    fn guarded(&self, check_scopes: bool) -> TestServer {
        let auth = AuthSettings {
            issuers: vec!["http://127.0.0.1:9/nobody".to_owned(), self.name()],
            audiences: vec![],
            check_scopes,
            service: "ledger".to_owned(),
            own: false,
            check_management_scopes: true,
        };
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let mut settings = Settings::default();
        settings.experimental_exporters = true;
        let server = Server::start_guarded(&Store::in_memory(), settings, &auth, listener);
        let server = server.expect("a server");
        TestServer { address: server.address(), server: Some(server) }
    }
}

fn status(server: &TestServer, method: &str, path: &str, token: &str) -> u16 {
    let value = format!("Bearer {token}");
    let answer = server.send(method, path, &[("Authorization", &value)], "");
    if answer.status == 401 {
        // Only the generic connector API sends a body with this status.
        assert_eq!(answer.body.is_empty(), !path.starts_with("/api/generic"), "{path}: {}", answer.body);
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    answer.status
}

#[test]
fn every_route_asks_for_its_scope() {
    let one = Signer::new(ONE, Some("one"));
    let issuer = Issuer::start(vec![one.public()]);
    let server = issuer.guarded(true);
    let token = |scope: &str| one.token(&issuer.claims(scope));
    let none = token("openid");
    assert_eq!(status(&server, "POST", "/v2/main", &token("ledger:write")), 204);
    for route in routes() {
        let word = route.mount.service().scope_prefix();
        let (read, write) = (token(&format!("{word}:read openid")), token(&format!("{word}:write")));
        let other_word = if word == "ledger" { "payments" } else { "ledger" };
        let other = token(&format!("{other_word}:write {word}:reader x{word}:write"));
        let prefixes = match route.mount {
            Mount::LedgerV2 => &["/v2", "/api/ledger/v2"][..],
            Mount::LedgerV1 | Mount::Service => &["", "/api/ledger"],
            Mount::Gateway => &[""],
            Mount::Auth => continue,
            Mount::Payments => &["/api/payments"],
            Mount::Generic => &["/api/generic"],
        };
        for prefix in prefixes {
            let template = route.template.replace("{ledger}", "main").replace(['{', '}'], "");
            // This parameter makes the server refuse the request after the token check. An event stream would not end.
            let path = format!("{prefix}{template}").replace("/_events", "/_events?type=NOSUCH");
            let refused = |token: &str| status(&server, route.method, &path, token) == 401;
            let is_open = route.scope == Scope::Open;
            let answer = server.send(route.method, &path, &[], "");
            assert_eq!(answer.status == 401, !is_open, "{} {path} without a token", route.method);
            for token in [&none, &other, "nonsense", ""] {
                assert_eq!(refused(token), !is_open, "{} {path} with {token}", route.method);
            }
            assert_eq!(refused(&read), route.scope == Scope::Write, "{} {path} with read", route.method);
            assert!(!refused(&write), "{} {path} with write", route.method);
        }
    }
}

#[test]
fn a_token_that_is_not_the_issuers_is_refused() {
    let (one, two) = (Signer::new(ONE, Some("one")), Signer::new(TWO, Some("one")));
    let issuer = Issuer::start(vec![one.public()]);
    let server = issuer.guarded(false);
    let path = "/v2";
    let good = issuer.claims("");
    let valid = one.token(&good);
    assert_eq!(status(&server, "GET", path, &valid), 200);
    let header = json!({"alg": "RS256", "kid": "one"});
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        one.token(&claims)
    };
    let parts: Vec<&str> = valid.split('.').collect();
    let rewritten =
        |header: Value| format!("{}.{}.{}", URL_SAFE_NO_PAD.encode(header.to_string()), parts[1], parts[2]);
    let mut flipped = URL_SAFE_NO_PAD.decode(parts[2]).expect("base64");
    flipped[7] ^= 1;
    let forged = [
        ("another key", two.token(&good)),
        ("no algorithm", rewritten(json!({"alg": "none"}))),
        ("no signature", format!("{}.{}.", URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#), parts[1])),
        ("HMAC", rewritten(json!({"alg": "HS256", "kid": "one"}))),
        ("another header", rewritten(json!({"alg": "RS256", "kid": "one", "x": 1}))),
        ("a key of its own", two.sign(&json!({"alg": "RS256", "kid": "one", "jwk": two.public()}), &good)),
        ("a critical header", one.sign(&json!({"alg": "RS256", "kid": "one", "crit": ["x"]}), &good)),
        ("an unknown key", one.sign(&json!({"alg": "RS256", "kid": "two"}), &good)),
        ("other claims", format!("{}.{}.{}", parts[0], URL_SAFE_NO_PAD.encode("{}"), parts[2])),
        ("a flipped bit", format!("{}.{}.{}", parts[0], parts[1], URL_SAFE_NO_PAD.encode(&flipped))),
        ("a cut signature", valid[..valid.len() - 4].to_owned()),
        ("two signatures", format!("{valid}.{}", parts[2])),
        ("no claims", one.sign(&header, &json!({}))),
        ("another issuer", with("iss", json!("http://127.0.0.1:1/"))),
        ("an issuer with a slash", with("iss", json!(format!("{}/", issuer.name())))),
        ("a trusted issuer that did not sign it", with("iss", json!("http://127.0.0.1:9/nobody"))),
        ("no expiry", with("exp", Value::Null)),
        ("expired", with("exp", json!(now() - 1))),
        ("an expiry beyond numbers", with("exp", json!(1e30))),
        ("a text for an expiry", with("exp", json!("9999999999"))),
        ("too long", with("x", json!("x".repeat(9_000)))),
    ];
    // Send the requests in parallel. Each can make the server fetch the keys again, which it does at most once a
    // second.
    std::thread::scope(|scope| {
        for (what, token) in &forged {
            let server = &server;
            scope.spawn(move || assert_eq!(status(server, "GET", path, token), 401, "{what}"));
        }
    });
    for value in
        [format!("Basic {valid}"), valid.clone(), format!("BEARER {valid}"), format!("Bearer  {valid}")]
    {
        server.send("GET", path, &[("Authorization", &value)], "").is(401);
    }
    let value = format!("bearer {valid}");
    server.send("GET", path, &[("Authorization", &value)], "").is(200);
    server.send("GET", path, &[("Authorization", &value), ("Authorization", &value)], "").is(401);
}

#[test]
fn keys_change_while_the_server_runs() {
    let (one, two) = (Signer::new(ONE, Some("id")), Signer::new(TWO, Some("id")));
    let issuer = Issuer::start(vec![one.public()]);
    let server = issuer.guarded(false);
    let (old, new) = (one.token(&issuer.claims("")), two.token(&issuer.claims("")));
    assert_eq!(status(&server, "GET", "/v2", &old), 200);
    let asked = issuer.asked.load(Ordering::SeqCst);
    for _ in 0..20 {
        assert_eq!(status(&server, "GET", "/v2", &old), 200);
    }
    assert_eq!(issuer.asked.load(Ordering::SeqCst), asked, "a token that is known asks nobody");
    // The issuer replaces its key and keeps the name, so the name does not tell the server that the key has changed.
    *issuer.keys.lock().expect("no panic") = vec![two.public()];
    assert_eq!(status(&server, "GET", "/v2", &new), 200);
    assert_eq!(status(&server, "GET", "/v2", &old), 401, "what the old key signed went with it");
}

#[test]
fn many_unknown_tokens_ask_the_issuer_seldom() {
    let (one, two) = (Signer::new(ONE, Some("one")), Signer::new(TWO, Some("two")));
    let issuer = Issuer::start(vec![one.public()]);
    let server = issuer.guarded(false);
    std::thread::scope(|scope| {
        for number in 0..24 {
            let mut claims = issuer.claims("");
            claims["jti"] = json!(number);
            let (server, token) = (&server, two.token(&claims));
            scope.spawn(move || assert_eq!(status(server, "GET", "/v2", &token), 401));
        }
    });
    // The server fetches two documents each time.
    let asked = issuer.asked.load(Ordering::SeqCst);
    assert!(asked <= 2 * 8, "{asked}");
}

#[test]
fn a_token_without_key_name_may_use_any_key() {
    let (one, two) = (Signer::new(ONE, None), Signer::new(TWO, Some("two")));
    let issuer = Issuer::start(vec![two.public(), one.public()]);
    let server = issuer.guarded(false);
    let claims = issuer.claims("");
    assert_eq!(status(&server, "GET", "/v2", &one.token(&claims)), 200);
    let unnamed = two.sign(&json!({"alg": "RS256"}), &claims);
    assert_eq!(status(&server, "GET", "/v2", &unnamed), 200);
    // If no key has the name in a token, a key without a name may be the named one.
    let named = one.sign(&json!({"alg": "RS256", "kid": "one"}), &claims);
    assert_eq!(status(&server, "GET", "/v2", &named), 200);
}

#[test]
fn a_long_body_without_a_token_is_answered_too() {
    let issuer = Issuer::start(Vec::new());
    let server = issuer.guarded(false);
    server.post("/v2/main/transactions", &"x".repeat(3 << 20)).is(401);
    server.send("POST", "/v2/main/transactions", &[("Expect", "100-continue")], &"x".repeat(100)).is(401);
}

#[test]
fn the_description_says_which_scopes_are_wanted() {
    let one = Signer::new(ONE, Some("one"));
    let issuer = Issuer::start(vec![one.public()]);
    let document = issuer.guarded(true).get("/openapi.json").is(200).json();
    let path = &document["paths"]["/v2/{ledger}/transactions"];
    assert_eq!(path["get"]["security"], json!([{"bearer": ["ledger:read", "ledger:write"]}]));
    assert_eq!(path["post"]["security"], json!([{"bearer": ["ledger:write"]}]));
    assert_eq!(document["paths"]["/versions"]["get"]["security"], Value::Null);
}

#[test]
fn a_stream_of_events_ends_with_its_token() {
    let one = Signer::new(ONE, Some("one"));
    let issuer = Issuer::start(vec![one.public()]);
    let server = issuer.guarded(false);
    assert_eq!(status(&server, "POST", "/v2/main", &one.token(&issuer.claims(""))), 204);
    let mut claims = issuer.claims("");
    let expires = now() + 2;
    claims["exp"] = json!(expires);
    let mut stream = server.connect();
    // The timeout is shorter than the interval of heartbeats, which would keep a stream alive that does not end.
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    let head = "GET /v2/main/_events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    write!(stream, "{head}Authorization: Bearer {}\r\n\r\n", one.token(&claims)).expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("the stream ends");
    assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("\r\n0\r\n\r\n"), "{text}");
    assert!(now() >= expires, "not before");
}
