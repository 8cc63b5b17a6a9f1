//! Tokens of the server's own authorization server: requests for tokens, their claims, and their end.

use std::net::TcpListener;
use std::path::Path;

use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ledger_store::{RestorePoint, Store};
use serde_json::{Value, json};
use stack_server::{Server, Settings, StaticClient};

use crate::auth_world::error;
use crate::client::{Answer, TestServer, authorizing, escape};

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

/// A client with a secret.
pub(crate) struct Known {
    pub(crate) id: String,
    pub(crate) secret: String,
}

impl Known {
    /// Creates a client, with a token or on a server that requires none.
    pub(crate) fn make(server: &TestServer, body: &Value, token: Option<&str>) -> Self {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<(&str, &str)> =
            bearer.as_deref().map(|value| ("Authorization", value)).into_iter().collect();
        let made = server.send("POST", "/api/auth/clients", &headers, &body.to_string()).is(201).json();
        let id = made["data"]["id"].as_str().expect("an id").to_owned();
        let path = format!("/api/auth/clients/{}/secrets", escape(&id));
        let made = server.send("POST", &path, &headers, r#"{"name":"test"}"#).is(200).json();
        Self { id, secret: made["data"]["clear"].as_str().expect("a secret").to_owned() }
    }

    pub(crate) fn basic(&self) -> String {
        format!("Basic {}", STANDARD.encode(format!("{}:{}", escape(&self.id), escape(&self.secret))))
    }

    pub(crate) fn ask(&self, server: &TestServer, path: &str, body: &str) -> Answer {
        server.send("POST", &format!("/api/auth{path}"), &[FORM, ("Authorization", &self.basic())], body)
    }

    /// Requests a token with these scopes.
    pub(crate) fn token(&self, server: &TestServer, scope: &str) -> String {
        let body = format!("grant_type=client_credentials&scope={}", escape(scope));
        let answer = self.ask(server, "/oauth/token", &body).is(200).json();
        answer["access_token"].as_str().expect("a token").to_owned()
    }
}

pub(crate) fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).expect("three parts");
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("JSON")
}

fn header(token: &str) -> Value {
    let part = token.split('.').next().expect("three parts");
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("JSON")
}

#[test]
fn a_client_gets_the_scopes_that_it_holds() {
    let server = TestServer::with_authorization();
    let shop = Known::make(&server, &json!({"name": "shop", "scopes": ["ledger:read", "openid"]}), None);
    let ask = |body: &str| shop.ask(&server, "/oauth/token", body).is(200);
    let answer = ask("grant_type=client_credentials&scope=ledger%3Aread+ledger%3Awrite+ledger:read");
    assert_eq!(
        (answer.header("cache-control"), answer.header("pragma")),
        (Some("no-store"), Some("no-cache"))
    );
    let granted = answer.json();
    assert_eq!((&granted["token_type"], granted.get("scope")), (&json!("Bearer"), None));
    assert!((3_595..=3_600).contains(&granted["expires_in"].as_u64().expect("seconds")), "{granted}");
    let token = granted["access_token"].as_str().expect("a token");
    let said = claims(token);
    let issuer = format!("http://{}/api/auth", server.address);
    assert_eq!((&said["iss"], &said["aud"]), (&json!(issuer), &json!([shop.id])));
    assert_eq!((&said["scope"], said.get("sub")), (&json!("ledger:read"), None));
    assert_eq!(said["exp"].as_u64(), said["iat"].as_u64().map(|at| at + 3_600));
    assert!(said["jti"].as_str().is_some_and(|id| id.len() == 36) && said["nbf"] == said["iat"]);
    // Without the parameter, the token has no scopes.
    let bare = ask("grant_type=client_credentials").json();
    assert_eq!(claims(bare["access_token"].as_str().expect("a token")).get("scope"), None);
    // The request may have the id and the secret in its form or in its address.
    let form = format!("grant_type=client_credentials&client_id={}&client_secret={}", shop.id, shop.secret);
    server.send("POST", "/api/auth/oauth/token", &[FORM], &form).is(200);
    server.get(&format!("/api/auth/oauth/token?{form}")).is(200);
}

#[test]
fn tokens_verify_with_the_published_keys() {
    let server = TestServer::with_authorization();
    let shop = Known::make(&server, &json!({"name": "shop"}), None);
    let token = shop.token(&server, "");
    let discovery = server.get("/api/auth/.well-known/openid-configuration").is(200).json();
    let issuer = format!("http://{}/api/auth", server.address);
    assert_eq!(discovery["issuer"], issuer);
    for (name, path) in [
        ("token_endpoint", "/oauth/token"),
        ("jwks_uri", "/keys"),
        ("introspection_endpoint", "/oauth/introspect"),
        ("revocation_endpoint", "/revoke"),
    ] {
        assert_eq!(discovery[name], format!("{issuer}{path}"), "{name}");
    }
    let keys = server.get("/api/auth/keys").is(200).json()["keys"].clone();
    assert_eq!(keys.as_array().map(Vec::len), Some(2), "the next key is known before it signs");
    let head = header(&token);
    assert_eq!((&head["alg"], &head["typ"]), (&json!("RS256"), &json!("at+jwt")));
    let key = keys.as_array().expect("keys").iter().find(|key| key["kid"] == head["kid"]).expect("the key");
    assert!(key.get("d").is_none() && key["use"] == "sig");
    let number = |name: &str| URL_SAFE_NO_PAD.decode(key[name].as_str().expect("base64")).expect("base64");
    let (signed, signature) = token.rsplit_once('.').expect("three parts");
    let signature = URL_SAFE_NO_PAD.decode(signature).expect("base64");
    RsaPublicKeyComponents { n: number("n"), e: number("e") }
        .verify(&RSA_PKCS1_2048_8192_SHA256, signed.as_bytes(), &signature)
        .expect("a right signature");
}

#[test]
fn transient_scopes_may_be_asked_for() {
    let server = TestServer::with_authorization();
    let scope = |label: &str| {
        let made = server.post("/api/auth/scopes", &json!({"label": label}).to_string()).is(201).json();
        made["data"]["id"].as_str().expect("an id").to_owned()
    };
    let ids = ["a", "b", "c", "d"].map(scope);
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        let path = format!("/api/auth/scopes/{}/transient/{}", ids[from], ids[to]);
        server.send("PUT", &path, &[], "").is(204);
    }
    let known = Known::make(&server, &json!({"name": "x", "scopes": ["b"]}), None);
    assert_eq!(claims(&known.token(&server, "d a b c"))["scope"], "a b c");
}

#[test]
fn refusals_are_those_of_the_standard() {
    let server = TestServer::with_authorization();
    let shop = Known::make(&server, &json!({"name": "shop"}), None);
    server.post("/api/auth/clients", r#"{"name":"spa","id":"spa","public":true}"#).is(201);
    let grant = "grant_type=client_credentials";
    for (body, status, word) in [
        ("", 400, "invalid_request"),
        ("grant_type=", 400, "invalid_request"),
        ("grant_type=password", 400, "unsupported_grant_type"),
        ("grant_type=urn:ietf:params:oauth:grant-type:token-exchange", 400, "unsupported_grant_type"),
        (&format!("{grant}&{grant}"), 400, "invalid_request"),
        (&format!("{grant}&scope=a&scope=b"), 400, "invalid_request"),
    ] {
        let answer = shop.ask(&server, "/oauth/token", body).is(status);
        assert_eq!(error(&answer), word, "{body}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    let send =
        |headers: &[(&str, &str)], body: &str| server.send("POST", "/api/auth/oauth/token", headers, body);
    for body in [
        grant,
        &format!("{grant}&client_id=nosuch&client_secret=x"),
        &format!("{grant}&client_id={}&client_secret=wrong", shop.id),
        &format!("{grant}&client_id={}", shop.id),
        &format!("{grant}&client_id={}&client_secret={}", shop.id, shop.secret.to_uppercase()),
        &format!("{grant}&client_id={}&client_secret={}", "x".repeat(2_000), shop.secret),
    ] {
        let answer = send(&[], body).is(401);
        assert_eq!(
            (error(&answer).as_str(), answer.json().get("error_description")),
            ("invalid_client", None)
        );
        assert!(answer.header("www-authenticate").is_some_and(|value| value.starts_with("Basic")));
    }
    let answer = send(&[], &format!("{grant}&client_id=spa&state=s")).is(400);
    assert_eq!((error(&answer).as_str(), &answer.json()["state"]), ("unauthorized_client", &json!("s")));
    for value in ["Basic", "Basic !!", "Basic YWJj"] {
        assert_eq!(error(&send(&[("Authorization", value)], grant).is(400)), "invalid_request", "{value}");
    }
    assert_eq!(
        error(&server.send_bytes("POST", "/api/auth/oauth/token", &[], b"\xff=1").is(400)),
        "invalid_request"
    );
}

#[test]
fn a_deleted_secret_gets_no_more_tokens() {
    let server = TestServer::with_authorization();
    let shop = Known::make(&server, &json!({"name": "shop"}), None);
    shop.token(&server, "");
    let path = format!("/api/auth/clients/{}", shop.id);
    let shown = server.get(&path).json();
    let secret = shown["data"]["secrets"][0]["id"].as_str().expect("an id").to_owned();
    server.send("DELETE", &format!("{path}/secrets/{secret}"), &[], "").is(204);
    shop.ask(&server, "/oauth/token", "grant_type=client_credentials").is(401);
}

#[test]
fn introspection_tells_only_whom_it_concerns() {
    let server = TestServer::with_authorization();
    let make = |name: &str, trusted: bool| {
        Known::make(&server, &json!({"name": name, "trusted": trusted, "scopes": ["a"]}), None)
    };
    let (shop, other, trusted) = (make("shop", false), make("other", false), make("trusted", true));
    let token = shop.token(&server, "a");
    let ask = |caller: &Known, token: &str| {
        caller.ask(&server, "/oauth/introspect", &format!("token={token}")).is(200).json()
    };
    for caller in [&shop, &trusted] {
        let said = ask(caller, &token);
        assert_eq!(
            (&said["active"], &said["scope"], &said["client_id"]),
            (&json!(true), &json!("a"), &json!(shop.id))
        );
        assert_eq!(said["exp"], claims(&token)["exp"]);
    }
    assert_eq!(ask(&other, &token), json!({"active": false}));
    for token in ["nonsense", "a.b.c", &token[..token.len() - 4], &"x".repeat(9_000)] {
        assert_eq!(ask(&trusted, token), json!({"active": false}), "{token}");
    }
    assert_eq!(error(&shop.ask(&server, "/oauth/introspect", "").is(400)), "invalid_request");
    server.send("POST", "/api/auth/oauth/introspect", &[FORM], &format!("token={token}")).is(401);
}

#[test]
fn a_revoked_token_is_not_active() {
    let server = TestServer::with_authorization();
    let shop = Known::make(&server, &json!({"name": "shop", "trusted": true}), None);
    let other = Known::make(&server, &json!({"name": "other"}), None);
    let [token, kept] = [0, 1].map(|_| shop.token(&server, ""));
    let is_active = |token: &str| {
        shop.ask(&server, "/oauth/introspect", &format!("token={token}")).is(200).json()["active"] == true
    };
    let revoke =
        |caller: &Known, token: &str| caller.ask(&server, "/revoke", &format!("token={token}")).is(200);
    revoke(&other, &token);
    assert!(is_active(&token), "nobody revokes tokens of others");
    assert_eq!(revoke(&shop, &token).body, "");
    assert!(!is_active(&token) && is_active(&kept));
    revoke(&shop, &token);
    revoke(&shop, "nonsense");
    assert_eq!(error(&shop.ask(&server, "/revoke", "").is(400)), "invalid_request");
    server.send("POST", "/api/auth/revoke", &[FORM], "token=x").is(401);
}

#[test]
fn keys_rotate_and_old_tokens_stay_good() {
    let server = TestServer::with_authorization();
    let shop = Known::make(&server, &json!({"name": "shop"}), None);
    let is_active = |token: &str| {
        shop.ask(&server, "/oauth/introspect", &format!("token={token}")).is(200).json()["active"] == true
    };
    let old = shop.token(&server, "");
    server.post("/api/auth/keys/rotate", "").is(204);
    let new = shop.token(&server, "");
    let [old_key, new_key] =
        [&old, &new].map(|token| header(token)["kid"].as_str().expect("a key").to_owned());
    assert_ne!(old_key, new_key);
    assert!(is_active(&old) && is_active(&new));
    assert_eq!(server.get("/api/auth/keys").json()["keys"].as_array().map(Vec::len), Some(3));
    // Tokens of a removed key are no longer valid.
    server.send("DELETE", &format!("/api/auth/keys/{old_key}"), &[], "").is(204);
    server.send("DELETE", &format!("/api/auth/keys/{old_key}"), &[], "").refused(404, "NOT_FOUND");
    assert!(!is_active(&old) && is_active(&new));
    server.send("DELETE", &format!("/api/auth/keys/{new_key}"), &[], "").is(204);
    assert!(!is_active(&new) && is_active(&shop.token(&server, "")));
    assert_eq!(server.get("/api/auth/keys").json()["keys"].as_array().map(Vec::len), Some(2));
}

/// Returns settings with a static client `global`, and with this limit of wrong secrets per minute.
fn static_settings(wrong_secrets: u32) -> Settings {
    let mut settings = authorizing();
    let authorization = settings.authorization.as_mut().expect("an authorization server");
    let file = "clients: [{id: global, trusted: true, scopes: [openid, 'ledger:read'], secrets: [global]}]";
    authorization.clients = StaticClient::parse(file).expect("a client");
    authorization.wrong_secrets_per_minute = wrong_secrets;
    settings
}

#[test]
fn static_clients_are_known_and_never_listed() {
    let server = TestServer::with(static_settings(60));
    let global = Known { id: "global".into(), secret: "global".into() };
    for _ in 0..2 {
        assert_eq!(claims(&global.token(&server, "ledger:read ledger:write"))["scope"], "ledger:read");
    }
    assert_eq!(server.get("/api/auth/clients").is(200).json()["data"], json!([]));
    server.get("/api/auth/clients/global").refused(404, "NOT_FOUND");
    let same_id = json!({"name": "other", "id": "global"});
    server.post("/api/auth/clients", &same_id.to_string()).refused(400, "VALIDATION");
    for secret in ["", "Global", "global "] {
        let wrong = Known { id: "global".into(), secret: secret.into() };
        assert_eq!(
            error(&wrong.ask(&server, "/oauth/token", "grant_type=client_credentials").is(401)),
            "invalid_client"
        );
    }
}

#[test]
fn wrong_secrets_are_slowed_without_locking_out() {
    let server = TestServer::with(static_settings(5));
    let shop = Known::make(&server, &json!({"name": "shop"}), None);
    shop.token(&server, "");
    let grant = "grant_type=client_credentials";
    let wrong = |id: &str| {
        let wrong = Known { id: id.to_owned(), secret: "wrong".to_owned() };
        wrong.ask(&server, "/oauth/token", grant).status
    };
    let statuses: Vec<u16> = (0..10).map(|_| wrong(&shop.id)).collect();
    assert_eq!(statuses[..5], [401; 5]);
    assert!(statuses[5..].iter().filter(|status| **status == 429).count() >= 4, "{statuses:?}");
    // Other clients at this address must also wait, except a client that has already authenticated from this address.
    assert_eq!(wrong("nosuch"), 429);
    shop.token(&server, "");
    let answer =
        Known { id: "nosuch".into(), secret: "x".into() }.ask(&server, "/oauth/token", grant).is(429);
    assert_eq!((error(&answer).as_str(), answer.header("retry-after")), ("invalid_client", Some("1")));
}

#[test]
fn wrong_secrets_lock_no_static_client_out() {
    let mut settings = static_settings(5);
    let authorization = settings.authorization.as_mut().expect("an authorization server");
    authorization.trusted_proxies = vec!["127.0.0.1".parse().expect("an address")];
    let server = TestServer::with(settings);
    let ask = |secret: &str, from: &str| {
        let body = format!("grant_type=client_credentials&client_id=global&client_secret={secret}");
        server.send("POST", "/api/auth/oauth/token", &[("X-Forwarded-For", from)], &body).status
    };
    let wrong: Vec<u16> = (0..8).map(|_| ask("wrong", "192.0.2.1")).collect();
    assert_eq!(wrong[..5], [401; 5]);
    assert_eq!(ask("global", "192.0.2.1"), 429, "this address must wait");
    assert_eq!(ask("global", "192.0.2.2"), 200, "it was never right before");
}

#[test]
fn only_trusted_proxies_say_who_asks() {
    let mut settings = authorizing();
    let authorization = settings.authorization.as_mut().expect("an authorization server");
    authorization.wrong_secrets_per_minute = 3;
    authorization.trusted_proxies = vec!["127.0.0.1".parse().expect("an address")];
    let behind = TestServer::with(settings.clone());
    settings.authorization.as_mut().expect("an authorization server").trusted_proxies.clear();
    let alone = TestServer::with(settings);
    let wrong = |server: &TestServer, number: usize| {
        let from = format!("192.0.2.{number}, 198.51.100.{number}");
        let id = format!("client_id=nosuch-{number}&client_secret=x&grant_type=client_credentials");
        server.send("POST", "/api/auth/oauth/token", &[("X-Forwarded-For", &from)], &id).status
    };
    assert_eq!((0..8).map(|number| wrong(&behind, number)).collect::<Vec<_>>(), [401; 8]);
    let spoofed: Vec<u16> = (0..8).map(|number| wrong(&alone, number)).collect();
    assert!(spoofed[3..].iter().filter(|status| **status == 429).count() >= 4, "{spoofed:?}");
}

/// Returns settings with a key and a public address.
fn public_settings() -> Settings {
    let mut settings = authorizing();
    settings.authorization.as_mut().expect("an authorization server").public_url =
        Some("https://stack.example".to_owned());
    settings
}

/// Starts a server on the store in a directory.
fn serving(path: &Path, settings: &Settings) -> (TestServer, Store) {
    let store = Store::open(path).expect("a store");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let server = Server::start(&store, settings.clone(), listener).expect("a server");
    (TestServer { address: server.address(), server: Some(server) }, store)
}

/// Stops a server and closes its store.
fn stop((server, store): (TestServer, Store)) {
    drop(server);
    store.close().expect("closed");
}

/// Fails if a secret, or a private key, is in a file below a directory.
fn assert_no_secret(directory: &Path, secrets: &[&str]) {
    let mut files = vec![directory.to_owned()];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(
                std::fs::read_dir(&path).expect("a directory").map(|entry| entry.expect("a file").path()),
            );
            continue;
        }
        let bytes = std::fs::read(&path).expect("a file");
        for secret in secrets.iter().chain([&"PRIVATE KEY"]).map(|secret| secret.as_bytes()) {
            assert!(!bytes.windows(secret.len()).any(|window| window == secret), "{}", path.display());
        }
    }
}

#[test]
fn clients_and_revocations_survive_a_restart() {
    let home = tempfile::tempdir().expect("a directory");
    let (path, settings) = (home.path().join("store"), public_settings());
    let (server, store) = serving(&path, &settings);
    let shop = Known::make(&server, &json!({"name": "shop", "scopes": ["a"]}), None);
    let [kept, revoked] = [0, 1].map(|_| shop.token(&server, "a"));
    assert_eq!(claims(&kept)["iss"], "https://stack.example/api/auth");
    shop.ask(&server, "/revoke", &format!("token={revoked}")).is(200);
    stop((server, store));
    let (server, store) = serving(&path, &settings);
    let active = |token: &str| {
        shop.ask(&server, "/oauth/introspect", &format!("token={token}")).is(200).json()["active"].clone()
    };
    assert_eq!((active(&kept), active(&revoked)), (json!(true), json!(false)));
    stop((server, store));
    assert_no_secret(home.path(), &[&shop.secret, &kept]);
}

#[test]
fn a_restored_backup_knows_clients_and_revocations() {
    let home = tempfile::tempdir().expect("a directory");
    let [path, copy, restored] = ["store", "copy", "restored"].map(|name| home.path().join(name));
    let settings = public_settings();
    let (server, store) = serving(&path, &settings);
    let shop = Known::make(&server, &json!({"name": "shop"}), None);
    let gone = Known::make(&server, &json!({"name": "gone"}), None);
    let [kept, revoked] = [0, 1].map(|_| shop.token(&server, ""));
    gone.token(&server, "");
    server.send("DELETE", &format!("/api/auth/clients/{}", gone.id), &[], "").is(204);
    shop.ask(&server, "/revoke", &format!("token={revoked}")).is(200);
    store.backup(&copy).expect("copied while it runs");
    stop((server, store));
    Store::restore(&copy, &restored, RestorePoint::End).expect("restored");
    assert_no_secret(home.path(), &[&shop.secret, &gone.secret, &kept, &revoked]);
    let (server, store) = serving(&restored, &settings);
    let active = |token: &str| {
        shop.ask(&server, "/oauth/introspect", &format!("token={token}")).is(200).json()["active"].clone()
    };
    assert_eq!((active(&kept), active(&revoked)), (json!(true), json!(false)));
    let grant = "grant_type=client_credentials";
    assert_eq!(error(&gone.ask(&server, "/oauth/token", grant).is(401)), "invalid_client");
    stop((server, store));
}
