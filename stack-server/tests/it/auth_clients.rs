//! Clients, secrets, scopes and users of the authorization server, in the JSON forms of stack 1.10 and of later
//! releases.

use serde_json::{Value, json};

use crate::auth_world::error;
use crate::client::{Answer, TestServer, authorizing, escape};

/// The header of an official client of stack 1.10.
const OF_1_10: (&str, &str) = ("User-Agent", "speakeasy-sdk/go v1.0.20230718 2.31.0");

fn data(answer: &Answer) -> Value {
    answer.json()["data"].clone()
}

fn create(server: &TestServer, body: &Value) -> Value {
    data(&server.post("/api/auth/clients", &body.to_string()).is(201))
}

fn put(server: &TestServer, path: &str, body: &str) -> Answer {
    server.send("PUT", &format!("/api/auth{path}"), &[], body)
}

fn delete(server: &TestServer, path: &str) -> Answer {
    server.send("DELETE", &format!("/api/auth{path}"), &[], "")
}

fn id(value: &Value) -> &str {
    value["id"].as_str().expect("an id")
}

#[test]
fn a_client_is_created_read_changed_and_deleted() {
    let server = TestServer::with_authorization();
    assert_eq!(data(&server.get("/api/auth/clients").is(200)), json!([]));
    let made = create(
        &server,
        &json!({"name": "backoffice", "description": "desk", "redirectUris": ["https://app.example/cb"],
            "trusted": true, "metadata": {"team": "finance", "n": [1, {"deep": null}]},
            "scopes": ["openid", "ledger:read", "openid"], "nosuch": 7}),
    );
    let expected = json!({
        "id": id(&made), "name": "backoffice", "description": "desk", "public": false, "trusted": true,
        "redirectUris": ["https://app.example/cb"], "postLogoutRedirectUris": [],
        "metadata": {"team": "finance", "n": [1, {"deep": null}]}, "scopes": ["openid", "ledger:read"],
        "secrets": []
    });
    assert_eq!(made, expected);
    let path = format!("/clients/{}", id(&made));
    assert_eq!(data(&server.get(&format!("/api/auth{path}")).is(200)), expected);
    // An update replaces all properties of a client. Properties that the request leaves out are reset.
    let changed = data(&put(&server, &path, r#"{"name":"desk","public":true}"#).is(200));
    assert_eq!(
        (&changed["name"], &changed["public"], &changed["trusted"]),
        (&json!("desk"), &json!(true), &json!(false))
    );
    assert_eq!(
        (&changed["scopes"], &changed["redirectUris"], &changed["metadata"]),
        (&json!([]), &json!([]), &json!({}))
    );
    let second = create(&server, &json!({"name": "second", "id": "chosen"}));
    assert_eq!(id(&second), "chosen");
    assert_eq!(data(&server.get("/api/auth/clients").is(200)), json!([changed, second]));
    delete(&server, &path).is(204);
    delete(&server, &path).is(204);
    server.get(&format!("/api/auth{path}")).refused(404, "NOT_FOUND");
    put(&server, &path, r#"{"name":"x"}"#).refused(404, "NOT_FOUND");
    assert_eq!(data(&server.get("/api/auth/clients").is(200)), json!([second]));
}

#[test]
fn bad_clients_are_refused_and_change_nothing() {
    let server = TestServer::with_authorization();
    create(&server, &json!({"name": "first", "id": "first"}));
    let before = server.get("/api/auth/clients").body;
    let long = "x".repeat(2_049);
    for body in [
        "",
        "[]",
        "7",
        "{",
        "\"x\"",
        "{}",
        r#"{"name":""}"#,
        r#"{"name":" "}"#,
        r#"{"name":7}"#,
        r#"{"name":"x","public":"yes"}"#,
        r#"{"name":"x","redirectUris":"https://a"}"#,
        r#"{"name":"x","redirectUris":[7]}"#,
        r#"{"name":"x","metadata":[]}"#,
        r#"{"name":"x","metadata":"a"}"#,
        r#"{"name":"x","scopes":["a b"]}"#,
        r#"{"name":"x","scopes":[""]}"#,
        r#"{"name":"x","scopes":["\""]}"#,
        r#"{"name":"x","scopes":"openid"}"#,
        r#"{"name":"x","id":"first"}"#,
        r#"{"name":"x","id":"a\u0000b"}"#,
        &json!({"name": long}).to_string(),
        &json!({"name": "x", "redirectUris": vec!["a"; 65]}).to_string(),
        &json!({"name": "x", "scopes": vec!["a"; 129]}).to_string(),
        &json!({"name": "x", "id": long}).to_string(),
    ] {
        server.post("/api/auth/clients", body).refused(400, "VALIDATION");
        if !body.contains("\"id\"") {
            put(&server, "/clients/first", body).refused(400, "VALIDATION");
        }
    }
    server.post("/api/auth/clients", &" ".repeat(70_000)).refused(413, "VALIDATION");
    let form = format!("grant_type=client_credentials&client_id=a&client_secret={}", "s".repeat(70_000));
    assert_eq!(error(&server.post("/api/auth/oauth/token", &form).is(413)), "invalid_request");
    server.get(&format!("/api/auth/clients/{}", escape(&"é".repeat(600)))).refused(404, "NOT_FOUND");
    assert_eq!(server.get("/api/auth/clients").body, before);
}

#[test]
fn a_secret_is_shown_once() {
    let server = TestServer::with_authorization();
    create(&server, &json!({"name": "x", "id": "x"}));
    let secrets = "/api/auth/clients/x/secrets";
    let answer = server.post(secrets, r#"{"name":"ci","metadata":{"rotated":true}}"#).is(200);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let secret = data(&answer);
    let clear = secret["clear"].as_str().expect("a secret");
    assert_eq!((clear.len(), secret["lastDigits"].as_str()), (36, Some(&clear[32..])));
    assert_eq!((&secret["name"], &secret["metadata"]), (&json!("ci"), &json!({"rotated": true})));
    let other = data(&server.post(secrets, r#"{"name":"second"}"#).is(200));
    for path in ["/api/auth/clients", "/api/auth/clients/x"] {
        let shown = server.get(path).is(200).body;
        assert!(
            !shown.contains(clear) && shown.contains(id(&secret)) && shown.contains(id(&other)),
            "{shown}"
        );
    }
    // Updates of a client do not change its secrets.
    let kept = data(&put(&server, "/clients/x", r#"{"name":"y"}"#).is(200));
    assert_eq!(kept["secrets"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        kept["secrets"][0],
        json!({"id": id(&secret), "name": "ci", "lastDigits": &clear[32..], "metadata": {"rotated": true}})
    );
    let path = format!("/clients/x/secrets/{}", id(&secret));
    delete(&server, &path).is(204);
    delete(&server, &path).refused(404, "NOT_FOUND");
    delete(&server, "/clients/nosuch/secrets/x").refused(404, "NOT_FOUND");
    server.post("/api/auth/clients/nosuch/secrets", r#"{"name":"a"}"#).refused(404, "NOT_FOUND");
    for body in ["", "{}", r#"{"name":7}"#, r#"{"name":""}"#, r#"{"name":"a","metadata":1}"#] {
        server.post(secrets, body).refused(400, "VALIDATION");
    }
    for _ in 1..12 {
        server.post(secrets, r#"{"name":"more"}"#).is(200);
    }
    server.post(secrets, r#"{"name":"more"}"#).refused(400, "VALIDATION");
}

#[test]
fn scopes_bring_others_along_and_go_with_their_links() {
    let server = TestServer::with_authorization();
    let make = |label: &str| {
        let body = json!({"label": label, "metadata": {"k": [label]}});
        data(&server.post("/api/auth/scopes", &body.to_string()).is(201))
    };
    let (a, b) = (make("a"), make("b"));
    assert_eq!(a, json!({"id": id(&a), "label": "a", "metadata": {"k": ["a"]}, "transient": []}));
    let link = |from: &Value, to: &Value| format!("/scopes/{}/transient/{}", id(from), id(to));
    put(&server, &link(&a, &b), "").is(204);
    put(&server, &link(&a, &b), "").is(204);
    put(&server, &link(&b, &a), "").is(204);
    put(&server, &format!("/scopes/{}/transient/nosuch", id(&a)), "").refused(404, "NOT_FOUND");
    put(&server, &format!("/scopes/nosuch/transient/{}", id(&a)), "").refused(404, "NOT_FOUND");
    let path = format!("/scopes/{}", id(&a));
    let changed = data(&put(&server, &path, r#"{"label":"c"}"#).is(200));
    assert_eq!(changed, json!({"id": id(&a), "label": "c", "metadata": {}, "transient": [id(&b)]}));
    assert_eq!(data(&server.get(&format!("/api/auth{path}")).is(200)), changed);
    put(&server, &path, r#"{"label":"b"}"#).refused(400, "VALIDATION");
    server.post("/api/auth/scopes", r#"{"label":"b"}"#).refused(400, "VALIDATION");
    for body in ["", "{}", r#"{"label":""}"#, r#"{"label":"a b"}"#, r#"{"label":[]}"#] {
        server.post("/api/auth/scopes", body).refused(400, "VALIDATION");
        put(&server, &path, body).refused(400, "VALIDATION");
    }
    assert_eq!(data(&server.get("/api/auth/scopes").is(200)).as_array().map(Vec::len), Some(2));
    delete(&server, &link(&a, &b)).is(204);
    delete(&server, &link(&a, &b)).refused(404, "NOT_FOUND");
    delete(&server, &path).is(204);
    delete(&server, &path).refused(404, "NOT_FOUND");
    let left = data(&server.get("/api/auth/scopes").is(200));
    assert_eq!(left, json!([{"id": id(&b), "label": "b", "metadata": {"k": ["b"]}, "transient": []}]));
}

#[test]
fn clients_hold_scopes_in_the_form_of_their_release() {
    let server = TestServer::with_authorization();
    let scope = data(&server.post("/api/auth/scopes", r#"{"label":"ledger:read"}"#).is(201));
    // Requests of clients of 1.10 contain no scopes.
    let body = r#"{"name":"old","id":"old","scopes":["ignored"]}"#;
    let made = data(&server.send("POST", "/api/auth/clients", &[OF_1_10], body).is(201));
    assert_eq!(made["scopes"], json!([]));
    let link = format!("/clients/old/scopes/{}", id(&scope));
    put(&server, &link, "").is(204);
    put(&server, &link, "").is(204);
    let shown = |headers: &[(&str, &str)]| {
        data(&server.send("GET", "/api/auth/clients/old", headers, "").is(200))["scopes"].clone()
    };
    assert_eq!((shown(&[OF_1_10]), shown(&[])), (json!([id(&scope)]), json!(["ledger:read"])));
    // An update by such a client does not change the scopes. An update by a later client replaces them.
    server.send("PUT", "/api/auth/clients/old", &[OF_1_10], r#"{"name":"old"}"#).is(200);
    assert_eq!(shown(&[OF_1_10]), json!([id(&scope)]));
    put(&server, "/clients/old", r#"{"name":"old","scopes":["ledger:read","own"]}"#).is(200);
    put(&server, &format!("/scopes/{}", id(&scope)), r#"{"label":"ledger:write"}"#).is(200);
    assert_eq!(shown(&[]), json!(["own", "ledger:write"]), "a link follows its label");
    delete(&server, &link).is(204);
    delete(&server, &link).is(204);
    assert_eq!((shown(&[OF_1_10]), shown(&[])), (json!([]), json!(["own"])));
    put(&server, "/clients/nosuch/scopes/x", "").refused(404, "NOT_FOUND");
    put(&server, "/clients/old/scopes/nosuch", "").refused(404, "NOT_FOUND");
    put(&server, &link, "").is(204);
    delete(&server, &format!("/scopes/{}", id(&scope))).is(204);
    assert_eq!((shown(&[OF_1_10]), shown(&[])), (json!([]), json!(["own"])));
}

#[test]
fn without_users_and_without_an_authorization_server() {
    let server = TestServer::with_authorization();
    assert_eq!(data(&server.get("/api/auth/users").is(200)), json!([]));
    server.get("/api/auth/users/nosuch").refused(404, "NOT_FOUND");
    assert_eq!(server.get("/api/auth/_info").is(200).json(), json!({"version": "v2.0.0"}));
    for (path, said) in [
        ("_healthcheck", json!({"storage": "OK"})),
        ("_health", json!({"storage": "OK"})),
        ("_live", json!({})),
        ("healthz", json!({"status": "ok"})),
        ("ready", json!({"status": "ok"})),
    ] {
        assert_eq!(server.get(&format!("/api/auth/{path}")).is(200).json(), said, "{path}");
    }
    server.send("PATCH", "/api/auth/clients", &[], "").is(405);
    let names = server.get("/versions").is(200).json()["versions"].clone();
    assert_eq!(
        names.as_array().expect("services").iter().map(|one| one["name"].clone()).collect::<Vec<_>>(),
        ["ledger", "payments", "auth"]
    );
    let server = TestServer::start();
    assert_eq!(server.get("/api/auth/clients").is(404).body, "Not Found");
    assert_eq!(server.get("/versions").is(200).json()["versions"].as_array().map(Vec::len), Some(2));
    let mut settings = authorizing();
    settings.read_only = true;
    let server = TestServer::with(settings);
    server.post("/api/auth/clients", r#"{"name":"x"}"#).refused(400, "READ_ONLY");
    assert_eq!(error(&server.post("/api/auth/revoke", "token=a").is(503)), "temporarily_unavailable");
}

#[test]
fn parallel_changes_of_one_client_are_all_kept() {
    let server = TestServer::with_authorization();
    create(&server, &json!({"name": "x", "id": "x"}));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| server.post("/api/auth/clients/x/secrets", r#"{"name":"a"}"#).is(200));
        }
    });
    let shown = data(&server.get("/api/auth/clients/x").is(200));
    assert_eq!(shown["secrets"].as_array().map(Vec::len), Some(8));
}
