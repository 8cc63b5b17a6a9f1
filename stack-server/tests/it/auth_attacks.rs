//! Attempts to get more than was granted, by codes, refresh tokens, changed clients, and the secrets of others.

use serde_json::{Value, json};

use crate::auth::now;
use crate::auth_tokens::{Known, claims};
use crate::auth_world::{REDIRECT, World, error, parameters};
use crate::client::{TestServer, authorizing, escape};

impl World {
    /// Sends a request with a token that may manage clients.
    fn manage(&self, method: &str, path: &str, body: &Value) -> crate::client::Answer {
        let value = format!("Bearer {}", self.root.token(&self.server, ""));
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.server.send(method, &format!("/api/auth{path}"), &[("Authorization", &value)], &body)
    }

    fn app(&self, change: impl Fn(&mut Value)) -> Value {
        let mut app = json!({"name": "app", "id": self.app.id, "redirectUris": [REDIRECT],
            "scopes": ["ledger:read", "ledger:write"]});
        change(&mut app);
        app
    }

    fn change_app(&self, change: impl Fn(&mut Value)) {
        self.manage("PUT", &format!("/clients/{}", self.app.id), &self.app(change)).is(200);
    }

    /// Deletes the application, and creates another one with its id.
    fn replace_app(&self) -> Known {
        self.manage("DELETE", &format!("/clients/{}", self.app.id), &Value::Null).is(204);
        let token = self.root.token(&self.server, "");
        Known::make(&self.server, &self.app(|_| {}), Some(&token))
    }
}

#[test]
fn a_verifier_without_a_challenge_is_refused() {
    let world = World::new();
    let code = world.code(&world.app.id, "scope=openid");
    let ask = |more: &str| {
        let body =
            format!("grant_type=authorization_code&code={code}&redirect_uri={}{more}", escape(REDIRECT));
        world.app.ask(&world.server, "/oauth/token", &body)
    };
    // An attacker has removed the challenge from the address.
    assert_eq!(
        error(&ask("&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk").is(400)),
        "invalid_grant"
    );
    ask("").is(200);
    let path = format!(
        "/api/auth/authorize?client_id={}&redirect_uri={}&response_type=code&scope=openid&code_challenge_method=S256",
        world.app.id,
        escape(REDIRECT)
    );
    let refused = world.server.get(&path).is(302);
    assert_eq!(parameters(refused.header("location").expect("a location"))["error"], "invalid_request");
}

#[test]
fn a_refresh_drops_scopes_that_the_client_lost() {
    let world = World::new();
    world.change_app(|_| {});
    let code = world.code(&world.app.id, "scope=openid+offline_access+ledger:read+ledger:write");
    let tokens = world.exchange(&code).is(200).json();
    let scope = |tokens: &Value| claims(tokens["access_token"].as_str().expect("a token"))["scope"].clone();
    assert_eq!(scope(&tokens), "openid offline_access ledger:read ledger:write");
    world.change_app(|app| app["scopes"] = json!(["ledger:read"]));
    let tokens = world.refresh(&tokens, "").is(200).json();
    assert_eq!(scope(&tokens), "openid offline_access ledger:read");
    let tokens = world.refresh(&tokens, "&scope=ledger:write").is(200).json();
    assert_eq!(scope(&tokens), Value::Null);
}

#[test]
fn a_later_client_with_the_same_id_inherits_nothing() {
    let mut world = World::new();
    let code = || world.code(&world.app.id, "scope=openid+offline_access");
    let (first, second) = (code(), code());
    let tokens = world.exchange(&first).is(200).json();
    let (sent, cookie) = world.authorize(&world.app.id, "scope=openid");
    let later = world.replace_app();
    assert_eq!(later.id, world.app.id);
    world.app = later;
    assert_eq!(error(&world.refresh(&tokens, "").is(400)), "invalid_grant");
    assert_eq!(error(&world.exchange(&second).is(400)), "invalid_grant");
    assert_eq!(error(&world.come_back(&sent, &cookie, |_| {}).is(400)), "invalid_request");
    // The client's own codes are valid.
    world.exchange(&world.code(&world.app.id, "scope=openid")).is(200);
}

#[test]
fn a_login_ends_with_the_redirect_uri_of_its_client() {
    let world = World::new();
    let (sent, cookie) = world.authorize(&world.app.id, "scope=openid");
    world.change_app(|app| app["redirectUris"] = json!(["https://app.example/else"]));
    let back = world.come_back(&sent, &cookie, |_| {}).is(400);
    assert_eq!((error(&back).as_str(), back.header("location")), ("invalid_request", None));
    world.change_app(|_| {});
    world.come_back(&sent, &cookie, |_| {}).is(302);
    let (sent, cookie) = world.authorize(&world.app.id, "scope=openid");
    world.manage("DELETE", &format!("/clients/{}", world.app.id), &Value::Null).is(204);
    assert_eq!(world.come_back(&sent, &cookie, |_| {}).is(400).header("location"), None);
}

#[test]
fn an_older_login_than_max_age_is_refused() {
    let world = World::new();
    let (sent, cookie) = world.authorize(&world.app.id, "scope=openid&max_age=300");
    assert_eq!(sent["max_age"], "300");
    // A browser can leave out `max_age` at the provider, which then does not require a new login.
    for auth_time in [json!(now() - 600), Value::Null, json!("soon")] {
        let back = world.come_back(&sent, &cookie, |claims| claims["auth_time"] = auth_time.clone());
        assert_eq!(error(&back.is(400)), "invalid_request", "{auth_time}");
    }
    let at = now() - 200;
    let back = world.come_back(&sent, &cookie, |claims| claims["auth_time"] = json!(at)).is(302);
    let code = parameters(back.header("location").expect("a location"))["code"].clone();
    let tokens = world.exchange(&code).is(200).json();
    assert_eq!(claims(tokens["id_token"].as_str().expect("an id token"))["auth_time"], at);
}

#[test]
fn a_login_without_the_asked_prompt_is_refused() {
    let world = World::new();
    for prompt in ["login", "login%20consent", "consent+login&max_age=9999"] {
        let begun = now();
        let (sent, cookie) = world.authorize(&world.app.id, &format!("scope=openid&prompt={prompt}"));
        assert_eq!(sent["max_age"], "0", "so that the provider tells when the user logged in");
        // A browser can leave out `prompt` at the provider, which then accepts an earlier login.
        for auth_time in [json!(begun - 60), Value::Null] {
            let back = world.come_back(&sent, &cookie, |claims| claims["auth_time"] = auth_time.clone());
            assert_eq!(error(&back.is(400)), "invalid_request", "{prompt} {auth_time}");
        }
        world.come_back(&sent, &cookie, |claims| claims["auth_time"] = json!(begun)).is(302);
    }
    // This request does not require a login.
    let (sent, cookie) = world.authorize(&world.app.id, "scope=openid&prompt=consent");
    assert_eq!(sent.get("max_age"), None);
    world.come_back(&sent, &cookie, |_| {}).is(302);
}

#[test]
fn introspection_tells_the_email_with_its_scope() {
    let world = World::new();
    let email = |scope: &str| {
        let tokens = world.exchange(&world.code(&world.app.id, scope)).is(200).json();
        let body = format!("token={}", tokens["access_token"].as_str().expect("a token"));
        let told = world.app.ask(&world.server, "/oauth/introspect", &body).is(200).json();
        assert_eq!(told["active"], true);
        told["email"].clone()
    };
    assert_eq!(email("scope=openid"), Value::Null);
    assert_eq!(email("scope=openid+email"), "ann@example.com");
}

#[test]
fn a_narrowed_refresh_tells_no_email() {
    let world = World::new();
    let tokens =
        world.exchange(&world.code(&world.app.id, "scope=openid+email+offline_access")).is(200).json();
    let refresh = tokens["refresh_token"].as_str().expect("a refresh token");
    let body = format!("grant_type=refresh_token&refresh_token={refresh}&scope=openid");
    let narrowed = world.app.ask(&world.server, "/oauth/token", &body).is(200).json();
    assert_eq!(claims(narrowed["id_token"].as_str().expect("an id token")).get("email"), None);
    let access = narrowed["access_token"].as_str().expect("a token");
    let told = world.app.ask(&world.server, "/oauth/introspect", &format!("token={access}")).is(200).json();
    assert_eq!((&told["active"], told.get("email")), (&json!(true), None));
    let bearer = format!("Bearer {access}");
    let user =
        world.server.send("GET", "/api/auth/userinfo", &[("Authorization", &bearer)], "").is(200).json();
    assert_eq!(user.get("email"), None, "{user}");
}

#[test]
fn wrong_secrets_of_others_lock_nobody_out() {
    let mut settings = authorizing();
    let authorization = settings.authorization.as_mut().expect("an authorization server");
    authorization.wrong_secrets_per_minute = 5;
    authorization.trusted_proxies = vec!["127.0.0.1".parse().expect("an address")];
    let server = TestServer::with(settings);
    let shop = Known::make(&server, &json!({"name": "shop"}), None);
    let ask = |secret: &str, from: &str| {
        let body = format!("grant_type=client_credentials&client_id={}&client_secret={secret}", shop.id);
        server.send("POST", "/api/auth/oauth/token", &[("X-Forwarded-For", from)], &body).status
    };
    // Use many addresses, so that none of them exceeds the limit for an address.
    let statuses: Vec<u16> = (0..40).map(|number| ask("wrong", &format!("192.0.2.{number}"))).collect();
    assert!(statuses.iter().filter(|status| **status == 429).count() >= 20, "{statuses:?}");
    assert_eq!(ask(&shop.secret, "198.51.100.1"), 200, "it was never right before");
    // Another client at the same address uses up the limit for the address.
    for _ in 0..8 {
        let body = "grant_type=client_credentials&client_id=nosuch&client_secret=wrong";
        server.send("POST", "/api/auth/oauth/token", &[("X-Forwarded-For", "203.0.113.1")], body);
    }
    assert_eq!(ask("wrong", "203.0.113.1"), 429);
    assert_eq!(ask(&shop.secret, "203.0.113.1"), 200, "its neighbour was wrong, not the client");
}

#[test]
fn near_misses_of_a_redirect_uri_are_refused() {
    let world = World::new();
    let ask = |redirect: &str| {
        let path = format!(
            "/api/auth/authorize?client_id={}&redirect_uri={}&response_type=code&scope=openid",
            world.app.id,
            escape(redirect)
        );
        world.server.get(&path)
    };
    ask(REDIRECT).is(302);
    let code = world.code(&world.app.id, "scope=openid");
    for near in [
        "https://APP.example/cb?keep=1",
        "HTTPS://app.example/cb?keep=1",
        "https://app.example/CB?keep=1",
        "https://app.example/cb?keep=2",
        "https://app.example/cb?KEEP=1",
        "https://app.example/cb?keep=1&more=1",
        "https://app.example/cb?keep=1&",
        "https://app.example/cb?keep=%31",
        "https://app.example/cb",
        "https://app.example/cb?",
        "https://app.example/cb/?keep=1",
        "https://app.example/c%62?keep=1",
        "https://app.example//cb?keep=1",
        "https://app.example/./cb?keep=1",
        "https://app.example/x/../cb?keep=1",
        "https://app.example/cb;x?keep=1",
        "https://app.example:443/cb?keep=1",
        "https://app.example:8443/cb?keep=1",
        "https://user@app.example/cb?keep=1",
        "https://app.example@evil.example/cb?keep=1",
        "https://app.example.evil.example/cb?keep=1",
        "https://app.example./cb?keep=1",
        "https://evil.example/cb?keep=1",
        "https://sub.app.example/cb?keep=1",
        "http://app.example/cb?keep=1",
        "//app.example/cb?keep=1",
        "/cb?keep=1",
        "javascript:https://app.example/cb?keep=1",
        "https://app.example/cb?keep=1#",
        "https://app.example/cb?keep=1#fragment",
        " https://app.example/cb?keep=1",
        "https://app.example/cb?keep=1 ",
        "https://app.example/cb?keep=1\r\nX: y",
        "https://app.example/cb?keep=1\0",
        "https:\\\\app.example\\cb?keep=1",
        "https://app.example/cb?keep=1https://app.example/cb?keep=1",
    ] {
        assert_eq!(ask(near).is(400).header("location"), None, "{near:?}");
        let body = format!("grant_type=authorization_code&code={code}&redirect_uri={}", escape(near));
        let refused = world.app.ask(&world.server, "/oauth/token", &body).is(400);
        assert_eq!(error(&refused), "invalid_grant", "{near:?}");
    }
    world.exchange(&code).is(200);
}

#[test]
fn a_registered_fragment_or_scheme_is_refused_too() {
    let world = World::new();
    for bad in
        ["https://app.example/cb#x", "app://cb", "javascript:alert(1)", "data:text/html,x", "//app.example"]
    {
        world.change_app(|app| app["redirectUris"] = json!([bad]));
        let path = format!(
            "/api/auth/authorize?client_id={}&redirect_uri={}&response_type=code&scope=openid",
            world.app.id,
            escape(bad)
        );
        assert_eq!(world.server.get(&path).is(400).header("location"), None, "{bad}");
    }
}
