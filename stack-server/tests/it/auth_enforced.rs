//! Every route requires a token of the server's own authorization server with the right scope.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ledger_store::{Options, Store};
use ledger_testkit::{Disk, Faults, SimDisk};
use serde_json::{Value, json};
use stack_server::{
    AuthSettings, FixedKeys, OutboundPolicy, Route, Scope, Server, Service, Settings, StaticClient, routes,
};

use crate::auth::{Issuer, ONE, Signer};
use crate::auth_expiry::ManualClock;
use crate::auth_tokens::{Known, claims};
use crate::client::{TestServer, authorizing};
use crate::kill::ask_with;

fn own(check_scopes: bool) -> AuthSettings {
    AuthSettings {
        issuers: vec![],
        audiences: vec![],
        check_scopes,
        service: "ledger".to_owned(),
        own: true,
        check_management_scopes: check_scopes,
    }
}

/// Starts a server that only accepts its own tokens, with a static client that may do everything.
pub(crate) fn guarded(check_scopes: bool) -> (TestServer, Known) {
    guarded_by(&Store::in_memory(), &own(check_scopes), None)
}

/// Starts a server with fixed keys. Returns it with a token that allows everything.
pub(crate) fn guarded_with(keys: Option<FixedKeys>) -> (TestServer, String) {
    let (server, root) = guarded_by(&Store::in_memory(), &own(false), keys);
    let token = root.token(&server, "openid");
    (server, token)
}

fn guarded_by(store: &Store, auth: &AuthSettings, keys: Option<FixedKeys>) -> (TestServer, Known) {
    let mut settings = authorizing();
    settings.generic_keys = keys;
    settings.experimental_exporters = true;
    let authorization = settings.authorization.as_mut().expect("an authorization server");
    let file = "clients: [{id: root, trusted: true, secrets: [root], scopes: [openid, 'auth:read', 'auth:write', \
        'ledger:read', 'ledger:write', 'payments:read', 'payments:write']}]";
    authorization.clients = StaticClient::parse(file).expect("a client");
    authorization.wrong_secrets_per_minute = 100_000;
    (start(store, settings, auth), Known { id: "root".into(), secret: "root".into() })
}

fn start(store: &Store, settings: Settings, auth: &AuthSettings) -> TestServer {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let server = Server::start_guarded(store, settings, auth, listener).expect("a server");
    TestServer { address: server.address(), server: Some(server) }
}

fn status(server: &TestServer, method: &str, path: &str, token: &str) -> u16 {
    let value = format!("Bearer {token}");
    let answer = server.send(method, path, &[("Authorization", &value)], "");
    if answer.status == 401 && !is_of_protocol(path) {
        let is_generic = path.starts_with("/api/generic/");
        assert!(answer.body.is_empty() != is_generic, "{path}: {}", answer.body);
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{path}");
    }
    answer.status
}

/// Returns whether a path requires no token because it checks other credentials.
fn is_of_protocol(path: &str) -> bool {
    ["oauth/", "revoke", "userinfo", "authorize", "end_session"]
        .iter()
        .any(|rest| path.starts_with(&format!("/api/auth/{rest}")))
}

/// Returns all paths of a route.
pub(crate) fn paths(route: &Route) -> Vec<String> {
    let template = route.template.replace("{ledger}", "main").replace(['{', '}'], "");
    // This parameter makes the server refuse the request. An event stream would not end.
    let template = template.replace("/_events", "/_events?type=NOSUCH");
    route.mount.paths().map(|prefix| format!("{prefix}{template}")).collect()
}

#[test]
fn every_route_wants_a_token_of_its_service() {
    let signer = Signer::new(ONE, Some("one"));
    let issuer = Issuer::start(vec![signer.public()]);
    let mut auth = own(true);
    auth.issuers = vec![issuer.name()];
    let clock = ManualClock::new();
    let (server, root) = guarded_by(&clock.store(), &auth, None);
    let token = |scope: &str| root.token(&server, scope);
    let all = "auth:write ledger:write payments:write";
    let of_issuer = |exp: u64| signer.token(&json!({"iss": issuer.name(), "exp": exp, "scope": all}));
    // Use a token of each issuer. The server accepts both until they expire.
    let expired = [token(all), of_issuer(clock.seconds() + 3_600)];
    for left in [3_599, 1] {
        assert!(expired.iter().all(|token| status(&server, "GET", "/v2", token) == 200));
        clock.advance(left);
    }
    let revoked = token(all);
    root.ask(&server, "/revoke", &format!("token={revoked}")).is(200);
    let cut = token(all);
    let cut = &cut[..cut.len() - 1];
    assert_eq!(status(&server, "POST", "/v2/main", &token("ledger:write")), 204);
    for route in routes() {
        let service = route.mount.service();
        let word = service.scope_prefix();
        let others =
            [Service::Ledger, Service::Payments, Service::Auth].into_iter().filter(|other| *other != service);
        let foreign: Vec<String> =
            others.map(|other| format!("{0}:read {0}:write", other.scope_prefix())).collect();
        let (none, read, write) =
            (token("openid"), token(&format!("{word}:read")), token(&format!("{word}:write")));
        let foreign = token(&foreign.join(" "));
        for path in paths(route) {
            let is_open = route.scope == Scope::Open;
            let refused = |token: &str| status(&server, route.method, &path, token) == 401;
            if is_of_protocol(&path) {
                assert!(is_open, "{path}");
                continue;
            }
            let bare = server.send(route.method, &path, &[], "").status == 401;
            assert_eq!(bare, !is_open, "{} {path} without a token", route.method);
            for token in [&none, &foreign, &revoked, &expired[0], &expired[1], cut, "nonsense", ""] {
                assert_eq!(refused(token), !is_open, "{} {path} with {token}", route.method);
            }
            assert_eq!(refused(&read), route.scope == Scope::Write, "{} {path} with read", route.method);
            assert!(!refused(&write), "{} {path} with write", route.method);
        }
    }
}

#[test]
fn a_revoked_token_is_refused_at_once() {
    let (server, root) = guarded(false);
    let [token, kept] = [0, 1].map(|_| root.token(&server, ""));
    for _ in 0..2 {
        assert_eq!((status(&server, "GET", "/v2", &token), status(&server, "GET", "/v2", &kept)), (200, 200));
    }
    root.ask(&server, "/revoke", &format!("token={token}")).is(200);
    assert_eq!((status(&server, "GET", "/v2", &token), status(&server, "GET", "/v2", &kept)), (401, 200));
    let header = token.split('.').next().expect("a header");
    let header: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).expect("base64")).expect("JSON");
    let path = format!("/api/auth/keys/{}", header["kid"].as_str().expect("a key"));
    assert_eq!(status(&server, "DELETE", &path, &kept), 204);
    assert_eq!(status(&server, "GET", "/v2", &kept), 401, "its key is not trusted any more");
    assert_eq!(status(&server, "GET", "/v2", &root.token(&server, "")), 200);
}

#[test]
fn rotation_under_load_refuses_no_good_token() {
    let (server, root) = guarded(true);
    let token = root.token(&server, "ledger:write auth:write");
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..25 {
                    let fresh = root.token(&server, "ledger:read");
                    assert_eq!(
                        (status(&server, "GET", "/v2", &fresh), status(&server, "GET", "/v2", &token)),
                        (200, 200)
                    );
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..6 {
                assert_eq!(status(&server, "POST", "/api/auth/keys/rotate", &token), 204);
            }
        });
    });
}

#[test]
fn management_needs_no_scopes_by_default() {
    let mut auth = own(true);
    auth.check_management_scopes = false;
    let mut settings = authorizing();
    let authorization = settings.authorization.as_mut().expect("an authorization server");
    authorization.clients = StaticClient::parse("clients: [{id: root, secrets: [root]}]").expect("a client");
    let server = start(&Store::in_memory(), settings, &auth);
    let root = Known { id: "root".into(), secret: "root".into() };
    let token = root.token(&server, "");
    assert_eq!(claims(&token).get("scope"), None);
    server.post("/api/auth/clients", r#"{"name":"x"}"#).is(401);
    let shop = Known::make(&server, &json!({"name": "shop", "scopes": ["ledger:read"]}), Some(&token));
    assert_eq!(status(&server, "GET", "/v2", &token), 401);
    assert_eq!(status(&server, "GET", "/v2", &shop.token(&server, "ledger:read")), 200);
}

#[test]
fn the_description_names_the_scopes_of_each_service() {
    let (server, _) = guarded(true);
    let document = server.get("/openapi.json").is(200).json();
    let security = |path: &str, method: &str| document["paths"][path][method]["security"].clone();
    assert_eq!(security("/api/auth/clients", "get"), json!([{"bearer": ["auth:read", "auth:write"]}]));
    assert_eq!(security("/v2/{ledger}", "post"), json!([{"bearer": ["ledger:write"]}]));
    assert_eq!(security("/api/auth/oauth/token", "post"), Value::Null);
}

#[test]
fn tells_strangers_no_names_of_ledgers() {
    let (server, root) = guarded(true);
    let bearer = |scope: &str| format!("Bearer {}", root.token(&server, scope));
    let (reader, manager) = (bearer("ledger:read"), bearer("auth:write"));
    let write = bearer("ledger:write");
    server.send("POST", "/v2/secret-project", &[("Authorization", &write)], "").is(204);
    for path in ["/_info", "/v2/_info", "/api/ledger/_info", "/api/ledger/v2/_info"] {
        let ledgers = |headers: &[(&str, &str)]| {
            server.send("GET", path, headers, "").is(200).json()["data"]["config"]["storage"]["ledgers"]
                .clone()
        };
        assert_eq!(ledgers(&[]), json!([]), "{path}");
        assert_eq!(ledgers(&[("Authorization", "Bearer x")]), json!([]), "{path}");
        assert_eq!(ledgers(&[("Authorization", &manager)]), json!([]), "{path}");
        assert_eq!(ledgers(&[("Authorization", &reader)]), json!(["secret-project"]), "{path}");
    }
}

#[test]
fn tells_strangers_no_cause_of_stopped_writing() {
    let disk = SimDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let store = Store::open_on_disk(shared, Path::new("data"), &Options::default()).expect("a store");
    let (server, root) = guarded_by(&store, &own(true), None);
    let bearer = |scope: &str| format!("Bearer {}", root.token(&server, scope));
    let (reader, writer) = (bearer("ledger:read"), bearer("ledger:write"));
    disk.set_faults(Faults { fail_sync: Some(disk.syncs() + 1), ..Faults::default() });
    // The test client refuses answers with the status 500.
    let address = server.address.to_string();
    let ask = |method: &str, path: &str, headers: &str| {
        ask_with(&address, method, path, headers, "").expect("an answer")
    };
    let create =
        |name: u32| ask("POST", &format!("/v2/ledger-{name}"), &format!("Authorization: {writer}\r\n")).0;
    assert!((0..10).any(|name| create(name) >= 500), "no commit fails");
    let cause = store.status().stopped.expect("a failed commit stops the writing");
    for path in ["/_healthcheck", "/v2/_healthcheck", "/api/payments/_healthcheck", "/api/auth/_healthcheck"]
    {
        let shown = ask("GET", path, "").2;
        assert!(!shown.contains("\"OK\"") && !shown.contains(&cause), "{path}: {shown}");
    }
    let shown = ask("GET", "/_healthcheck", &format!("Authorization: {reader}\r\n")).2;
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(shown, json!({"storage-driver-up-to-date": cause}));
}

#[test]
fn tokens_and_proxies_keep_requests_public() {
    let exporter = r#"{"driver":"http","config":{"url":"http://127.0.0.1:9/in"}}"#;
    let connector = r#"{"name":"bank","apiKey":"key","endpoint":"http://127.0.0.1:9/"}"#;
    // The statuses of an exporter and of a connector to a private address.
    let statuses = |server: &TestServer, headers: &[(&str, &str)]| {
        let post = |path: &str, body: &str| server.send("POST", path, headers, body).status;
        (post("/v2/_/exporters", exporter), post("/api/payments/connectors/GENERIC", connector))
    };
    let with_token = |settings: &Settings| {
        let server = start(&Store::in_memory(), settings.clone(), &own(false));
        let root = Known { id: "root".into(), secret: "root".into() };
        let token = format!("Bearer {}", root.token(&server, ""));
        statuses(&server, &[("Authorization", &token)])
    };
    let mut settings = authorizing();
    settings.experimental_exporters = true;
    let authorization = settings.authorization.as_mut().expect("an authorization server");
    authorization.clients =
        StaticClient::parse("clients: [{id: root, secrets: [root], scopes: [openid]}]").expect("a client");
    assert_eq!(with_token(&settings), (400, 400), "with tokens");
    settings.outbound = Some(OutboundPolicy::Any);
    assert_eq!(with_token(&settings), (201, 201), "as the operator says");
    let mut open = Settings::default();
    open.experimental_exporters = true;
    assert_eq!(statuses(&TestServer::with(open.clone()), &[]), (201, 201), "on loopback");
    open.behind_proxy = true;
    assert_eq!(statuses(&TestServer::with(open), &[]), (400, 400), "behind a proxy");
}
