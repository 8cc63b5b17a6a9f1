//! Logins through an identity provider: codes, sessions, refresh tokens and assertions, each of which can be used once.

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ledger_store::{Collection, DocumentAction, DocumentChange, DocumentRange, Expected, Store};
use serde_json::{Value, json};
use stack_server::{KeySource, MasterKey, StaticClient};

use crate::auth::{Signer, TWO, now};
use crate::auth_tokens::{Known, claims};
use crate::auth_world::{ASSERTION, Provider, REDIRECT, World, error, parameters, serve, settings_of};
use crate::client::{Answer, TestServer, escape};
use crate::kill::ask;

const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/// A change that makes the claims of a provider's token invalid.
type Change = fn(&mut Value);

fn challenge() -> String {
    URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, VERIFIER.as_bytes()))
}

/// The collection of sessions.
const SESSIONS: u32 = 71;

/// Overwrites every document of a collection with nonsense.
fn damage(store: &Store, collection: u32) {
    let collection = Collection::new(collection).expect("a collection of the server");
    let found = store.snapshot().documents(collection, &DocumentRange::default()).expect("no fault");
    assert!(!found.is_empty(), "there is something to damage");
    let changes = found.into_iter().map(|document| DocumentChange {
        collection,
        key: document.key,
        expected: Expected::Anything,
        action: DocumentAction::Put { value: b"nonsense".to_vec(), keys: vec![] },
    });
    store.change_documents(changes.collect()).expect("written");
}

#[test]
fn a_login_ends_with_tokens_of_a_user() {
    let world = World::new();
    let app = world.app.id.clone();
    let more = "scope=openid+email+offline_access+ledger:read+ledger:write&state=s%20t&nonce=n";
    let (sent, cookie) = world.authorize(&app, more);
    assert_eq!((sent["client_id"].as_str(), sent["response_type"].as_str()), ("stack", "code"));
    assert_eq!(sent["redirect_uri"], format!("http://{}/api/auth/authorize/callback", world.server.address));
    assert_eq!(sent["code_challenge_method"], "S256");
    let back = world.come_back(&sent, &cookie, |_| {}).is(302);
    let back = parameters(back.header("location").expect("a location"));
    assert_eq!((back["keep"].as_str(), back["state"].as_str()), ("1", "s t"));
    let tokens = world.exchange(&back["code"]).is(200).json();
    let said = claims(tokens["access_token"].as_str().expect("a token"));
    assert_eq!(said["scope"], "openid offline_access ledger:read", "what the client lacks is dropped");
    assert_eq!(said["exp"].as_u64(), said["iat"].as_u64().map(|at| at + 300));
    let identity = claims(tokens["id_token"].as_str().expect("an id token"));
    assert_eq!(
        (&identity["sub"], &identity["aud"], &identity["nonce"]),
        (&said["sub"], &json!([app]), &json!("n"))
    );
    assert_eq!((&identity["email"], &identity["email_verified"]), (&json!("ann@example.com"), &json!(true)));
    assert!(world.takes(&tokens));
    let claims = world.bearer("/api/auth/userinfo", &tokens).is(200).json();
    assert_eq!(claims, json!({"sub": said["sub"], "email": "ann@example.com", "email_verified": true}));
    let users = world.bearer("/api/auth/users", &tokens).is(200).json();
    assert_eq!(users["data"], json!([{"id": said["sub"], "subject": "p|1", "email": "ann@example.com"}]));
    let path = format!("/api/auth/users/{}", said["sub"].as_str().expect("an id"));
    assert_eq!(world.bearer(&path, &tokens).is(200).json()["data"], users["data"][0]);
    // The ID token, which identifies the user, allows no requests.
    assert!(!world.takes(&json!({"access_token": tokens["id_token"]})));
    // A second login of the same person belongs to the same user.
    let again = world.exchange(&world.code(&app, "scope=openid")).is(200).json();
    assert_eq!(again.get("refresh_token"), None);
    assert_eq!(world.bearer("/api/auth/users", &again).json()["data"].as_array().map(Vec::len), Some(1));
    assert_eq!(world.bearer("/api/auth/userinfo", &again).is(200).json(), json!({"sub": said["sub"]}));
}

#[test]
fn a_second_use_of_a_code_ends_the_session() {
    let world = World::new();
    let code = world.code(&world.app.id, "scope=openid+offline_access");
    let body = |redirect: &str| {
        format!("grant_type=authorization_code&code={code}&redirect_uri={}", escape(redirect))
    };
    for (body, word) in [
        (body("https://app.example/cb"), "invalid_grant"),
        ("grant_type=authorization_code&redirect_uri=x".to_owned(), "invalid_request"),
        (format!("grant_type=authorization_code&code={code}"), "invalid_request"),
        ("grant_type=authorization_code&code=nonsense&redirect_uri=x".to_owned(), "invalid_grant"),
    ] {
        assert_eq!(error(&world.app.ask(&world.server, "/oauth/token", &body).is(400)), word, "{body}");
    }
    let other = world.root.ask(&world.server, "/oauth/token", &body(REDIRECT));
    assert_eq!(error(&other.is(400)), "invalid_grant", "a code is one client's");
    let tokens = world.exchange(&code).is(200).json();
    assert!(world.takes(&tokens));
    assert_eq!(error(&world.exchange(&code).is(400)), "invalid_grant");
    assert!(!world.takes(&tokens), "two have the code: nobody may go on");
    assert_eq!(error(&world.refresh(&tokens, "").is(400)), "invalid_grant");
}

#[test]
fn a_code_is_exchanged_by_one_of_many_at_once() {
    let world = World::new();
    let code = world.code(&world.app.id, "scope=openid");
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..8).map(|_| scope.spawn(|| world.exchange(&code).status)).collect();
        tries.into_iter().map(|one| one.join().expect("no panic")).collect()
    });
    assert!(statuses.iter().filter(|status| **status == 200).count() <= 1, "{statuses:?}");
}

#[test]
fn refresh_tokens_rotate_and_reuse_ends_the_family() {
    let world = World::new();
    let code = world.code(&world.app.id, "scope=openid+email+offline_access+ledger:read");
    let first = world.exchange(&code).is(200).json();
    let second = world.refresh(&first, "").is(200).json();
    assert_ne!(first["refresh_token"], second["refresh_token"]);
    assert!(
        !world.takes(&first) && world.takes(&second),
        "the older access token goes with its refresh token"
    );
    let narrow = world.refresh(&second, "&scope=ledger:read").is(200).json();
    assert_eq!(claims(narrow["access_token"].as_str().expect("a token"))["scope"], "ledger:read");
    assert_eq!(error(&world.refresh(&narrow, "&scope=ledger:write").is(400)), "invalid_scope");
    let wide = world.refresh(&narrow, "").is(200).json();
    assert!(world.takes(&wide));
    // Revoking a forged token has no effect.
    let text = wide["refresh_token"].as_str().expect("a token");
    for forged in ["", "nonsense", &text[1..], &format!("{}A", &text[..text.len() - 1])] {
        if forged != text {
            world
                .app
                .ask(
                    &world.server,
                    "/oauth/token",
                    &format!("grant_type=refresh_token&refresh_token={forged}"),
                )
                .is(400);
        }
    }
    let stolen = format!("grant_type=refresh_token&refresh_token={text}");
    assert_eq!(error(&world.root.ask(&world.server, "/oauth/token", &stolen).is(400)), "invalid_grant");
    assert!(world.takes(&wide));
    assert_eq!(error(&world.refresh(&first, "").is(400)), "invalid_grant");
    assert!(!world.takes(&wide), "somebody has an older one: the family ends");
    assert_eq!(error(&world.refresh(&wide, "").is(400)), "invalid_grant");
}

#[test]
fn token_errors_have_words_and_status_of_their_route() {
    let provider = Provider::start();
    let store = Store::in_memory();
    let world = World::with_app(serve(&store, settings_of(&provider)), provider);
    let wrong = Known { id: world.app.id.clone(), secret: "wrong".into() };
    for (grant, description) in [
        ("client_credentials", Value::Null),
        ("authorization_code", json!("invalid client_id / client_secret")),
        ("refresh_token", json!("invalid client_id / client_secret")),
    ] {
        let refused = wrong.ask(&world.server, "/oauth/token", &format!("grant_type={grant}")).is(401);
        assert_eq!(error(&refused), "invalid_client");
        assert_eq!(refused.json()["error_description"], description, "{grant}");
    }
    let code = world.code(&world.app.id, "scope=openid+offline_access");
    let tokens = world.exchange(&code).is(200).json();
    damage(&store, SESSIONS);
    assert_eq!(error(&world.refresh(&tokens, "").is(400)), "server_error");
    // The test client fails on status 500, so use another client.
    let (id, secret) = (&world.app.id, &world.app.secret);
    let refresh = tokens["refresh_token"].as_str().expect("a token");
    let body = format!("token={refresh}&client_id={id}&client_secret={secret}");
    let address = world.server.address.to_string();
    let (status, said) = ask(&address, "POST", "/api/auth/revoke", &body).expect("an answer");
    assert_eq!((status, &said["error"]), (500, &json!("server_error")));
}

#[test]
fn a_session_ends_by_revocation_or_by_logging_out() {
    let world = World::new();
    let log_in = || world.exchange(&world.code(&world.app.id, "scope=openid+offline_access")).is(200).json();
    let tokens = log_in();
    let refresh = tokens["refresh_token"].as_str().expect("a token");
    world.root.ask(&world.server, "/revoke", &format!("token={refresh}")).is(200);
    assert!(world.takes(&tokens), "it is another client's");
    world.app.ask(&world.server, "/revoke", &format!("token={refresh}")).is(200);
    assert!(!world.takes(&tokens));
    let (tokens, elsewhere) = (log_in(), log_in());
    let hint = tokens["id_token"].as_str().expect("a token");
    let end = |query: &str| world.server.get(&format!("/api/auth/end_session?{query}"));
    let bye = escape("https://app.example/bye");
    for query in [
        format!("id_token_hint={hint}&post_logout_redirect_uri=https://evil.example"),
        format!("id_token_hint={hint}&client_id=root"),
        format!("post_logout_redirect_uri={bye}"),
    ] {
        assert_eq!(error(&end(&query).is(400)), "invalid_request", "{query}");
    }
    end("id_token_hint=nonsense").is(302);
    assert!(world.takes(&tokens) && world.takes(&elsewhere));
    let left = end(&format!("id_token_hint={hint}&post_logout_redirect_uri={bye}&state=x")).is(302);
    assert_eq!(left.header("location"), Some("https://app.example/bye?state=x"));
    for tokens in [&tokens, &elsewhere] {
        assert!(!world.takes(tokens), "every session of the user with the client ends");
        assert_eq!(error(&world.refresh(tokens, "").is(400)), "invalid_grant");
    }
    let plain = end("").is(302);
    assert!(plain.header("location").is_some_and(|to| to.ends_with("/api/auth/logged-out")));
    assert_eq!(world.server.get("/api/auth/logged-out").is(200).body, "logged out\n");
}

#[test]
fn public_clients_prove_their_challenge() {
    let world = World::new();
    let token = world.root.token(&world.server, "");
    let value = format!("Bearer {token}");
    let body = json!({"name": "spa", "id": "spa", "public": true, "redirectUris": [REDIRECT]}).to_string();
    world.server.send("POST", "/api/auth/clients", &[("Authorization", &value)], &body).is(201);
    let exchange = |code: &str, verifier: &str| {
        let body = format!(
            "grant_type=authorization_code&client_id=spa&code={code}&redirect_uri={}{verifier}",
            escape(REDIRECT)
        );
        world.server.send("POST", "/api/auth/oauth/token", &[], &body)
    };
    for (challenge, method) in [(challenge(), "&code_challenge_method=S256"), (VERIFIER.to_owned(), "")] {
        let code = world.code("spa", &format!("scope=openid&code_challenge={challenge}{method}"));
        assert_eq!(error(&exchange(&code, "").is(400)), "invalid_request");
        assert_eq!(error(&exchange(&code, "&code_verifier=wrong").is(400)), "invalid_grant");
        let tokens = exchange(&code, &format!("&code_verifier={VERIFIER}")).is(200).json();
        assert!(world.takes(&tokens));
    }
    let path = format!(
        "/api/auth/authorize?client_id=spa&redirect_uri={}&response_type=code&scope=openid",
        escape(REDIRECT)
    );
    let refused = world.server.get(&path).is(302);
    assert_eq!(parameters(refused.header("location").expect("a location"))["error"], "invalid_request");
}

#[test]
fn requests_to_authorize_are_refused_where_it_is_safe() {
    let world = World::new();
    let app = world.app.id.clone();
    let redirect = escape(REDIRECT);
    for query in [
        String::new(),
        format!("client_id={app}"),
        format!("client_id=nosuch&redirect_uri={redirect}"),
        format!("client_id={app}&redirect_uri={redirect}x"),
        format!("client_id={app}&redirect_uri={}", escape("https://app.example/cb")),
        format!("client_id={app}&redirect_uri={}", escape("https://APP.example/cb?keep=1")),
    ] {
        let answer =
            world.server.get(&format!("/api/auth/authorize?{query}&response_type=code&scope=openid"));
        assert_eq!(answer.is(400).header("location"), None, "{query}");
    }
    for (more, word) in [
        ("scope=openid", "invalid_request"),
        ("scope=openid&response_type=token", "unauthorized_client"),
        ("response_type=code", "invalid_scope"),
        ("response_type=code&scope=email", "invalid_scope"),
        ("response_type=code&scope=openid&code_challenge=x&code_challenge_method=S512", "invalid_request"),
        ("response_type=code&scope=openid&request=x", "invalid_request"),
    ] {
        let path = format!("/api/auth/authorize?client_id={app}&redirect_uri={redirect}&state=s&{more}");
        let answer = world.server.get(&path).is(302);
        let location = answer.header("location").expect("a location");
        assert!(location.starts_with(REDIRECT), "{location}");
        let said = parameters(location);
        assert_eq!((said["error"].as_str(), said["state"].as_str()), (word, "s"), "{more}");
    }
}

#[test]
fn a_login_belongs_to_one_browser_and_counts_once() {
    let world = World::new();
    let app = world.app.id.clone();
    let (sent, cookie) = world.authorize(&app, "scope=openid");
    let (other, other_cookie) = world.authorize(&app, "scope=openid");
    assert_eq!(error(&world.come_back(&sent, "", |_| {}).is(400)), "invalid_request");
    assert_eq!(error(&world.come_back(&sent, &other_cookie, |_| {}).is(400)), "invalid_request");
    let mut forged = sent.clone();
    forged.insert("state".to_owned(), format!("{}A", &sent["state"][1..]));
    assert_eq!(error(&world.come_back(&forged, &cookie, |_| {}).is(400)), "invalid_request");
    let changes: [(&str, Change); 5] = [
        ("another client", |claims| claims["aud"] = json!("else")),
        ("another login", |claims| claims["nonce"] = json!("else")),
        ("expired", |claims| claims["exp"] = json!(now() - 60)),
        ("another issuer", |claims| claims["iss"] = json!("http://else")),
        ("no subject", |claims| claims["sub"] = Value::Null),
    ];
    for (what, change) in changes {
        assert_eq!(error(&world.come_back(&sent, &cookie, change).is(400)), "server_error", "{what}");
    }
    let refused =
        world.server.get("/api/auth/authorize/callback?error=access_denied&error_description=no").is(400);
    assert_eq!(refused.body, "access_denied : no");
    world.come_back(&sent, &cookie, |_| {}).is(302);
    assert_eq!(error(&world.come_back(&sent, &cookie, |_| {}).is(400)), "invalid_request", "it counts once");
    world.come_back(&other, &format!("a=b; {other_cookie}; c=d"), |_| {}).is(302);
}

#[test]
fn bad_assertions_are_slowed() {
    let world = World::new();
    let body = format!("grant_type={ASSERTION}&assertion=nonsense");
    let ask = || world.server.send("POST", "/api/auth/oauth/token", &[], &body);
    let answers: Vec<_> = (0..70).map(|_| ask()).collect();
    assert!(answers[..60].iter().all(|answer| answer.status == 400));
    let slowed = answers.iter().find(|answer| answer.status == 429).expect("60 a minute are answered");
    assert_eq!(error(slowed), "invalid_client");
}

#[test]
fn an_assertion_counts_once() {
    let world = World::new();
    let issuer = format!("http://{}/api/auth", world.server.address);
    let good = json!({"iss": world.provider.name(), "sub": "p|7", "aud": [issuer, "else"], "exp": now() + 60,
        "scope": "openid scope1", "jti": "first"});
    let ask = |assertion: &str, more: &str| {
        let body = format!("grant_type={ASSERTION}&assertion={assertion}{more}");
        world.server.send("POST", "/api/auth/oauth/token", &[], &body)
    };
    let assertion = world.provider.signer.token(&good);
    let tokens = ask(&assertion, "&scope=other").is(200).json();
    let said = claims(tokens["access_token"].as_str().expect("a token"));
    assert_eq!(
        (&said["scope"], &said["sub"], &said["aud"]),
        (&json!("openid scope1"), &json!("p|7"), &good["aud"])
    );
    assert!(world.takes(&tokens));
    world.bearer("/api/auth/userinfo", &tokens).is(403);
    assert_eq!(error(&ask(&assertion, "").is(400)), "invalid_grant", "it was used");
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims["jti"] = json!(format!("with {name}"));
        claims[name] = value;
        world.provider.signer.token(&claims)
    };
    let other = Signer::new(TWO, Some("one"));
    for (what, assertion) in [
        ("another key", other.token(&good)),
        (
            "no algorithm",
            format!(
                "{}.{}.",
                URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#),
                assertion.split('.').nth(1).expect("claims")
            ),
        ),
        ("another audience", with("aud", json!("else"))),
        ("expired", with("exp", json!(now() - 60))),
        ("not valid yet", with("nbf", json!(now() + 600))),
        ("another issuer", with("iss", json!("http://else"))),
        ("no subject", with("sub", Value::Null)),
        ("nothing", String::from("nonsense")),
    ] {
        assert_eq!(error(&ask(&assertion, "").is(400)), "invalid_grant", "{what}");
    }
    assert_eq!(
        error(
            &world
                .server
                .send("POST", "/api/auth/oauth/token", &[], &format!("grant_type={ASSERTION}"))
                .is(400)
        ),
        "invalid_request"
    );
    // If an assertion has no id, the server remembers the assertion itself.
    let mut bare = good.clone();
    bare["jti"] = Value::Null;
    let assertion = world.provider.signer.token(&bare);
    ask(&assertion, "").is(200);
    assert_eq!(error(&ask(&assertion, "").is(400)), "invalid_grant");
    ask(&with("aud", json!(issuer)), "&client_id=root&client_secret=wrong").is(401);
}

#[test]
fn an_address_begins_so_many_logins_a_minute() {
    let world = World::new();
    let path = format!(
        "/api/auth/authorize?client_id={}&redirect_uri={}&response_type=code&scope=openid",
        world.app.id,
        escape(REDIRECT)
    );
    let refused = |answer: &Answer| {
        let location = answer.header("location").expect("a location");
        parameters(location).get("error").is_some_and(|error| error == "temporarily_unavailable")
    };
    let answers: Vec<bool> = (0..80).map(|_| refused(&world.server.get(&path).is(302))).collect();
    assert!(answers[..60].iter().all(|refused| !refused), "{answers:?}");
    assert!(answers[60..].iter().filter(|refused| **refused).count() >= 10, "{answers:?}");
}

#[test]
fn without_a_provider_nobody_logs_in() {
    let server = TestServer::with_authorization();
    let answer =
        server.get("/api/auth/authorize?client_id=x&redirect_uri=https://a&response_type=code").is(400);
    assert_eq!(error(&answer), "temporarily_unavailable");
    assert_eq!(
        error(&server.get("/api/auth/authorize/callback?code=x&state=y").is(400)),
        "temporarily_unavailable"
    );
    let grant = format!("grant_type={ASSERTION}&assertion=x");
    assert_eq!(
        error(&server.send("POST", "/api/auth/oauth/token", &[], &grant).is(400)),
        "unsupported_grant_type"
    );
    let document = server.get("/api/auth/.well-known/openid-configuration").is(200).json();
    assert_eq!(document["grant_types_supported"], json!(["client_credentials"]));
    server.get("/api/auth/userinfo").is(401);
}

#[test]
fn used_codes_stay_used_after_a_restart() {
    let home = tempfile::tempdir().expect("a directory");
    let provider = Provider::start();
    let mut settings = settings_of(&provider);
    // Tokens contain the server's public address, which must not change with the port.
    settings.authorization.as_mut().expect("an authorization server").public_url =
        Some("https://stack.example".to_owned());
    let open = || Store::open(home.path().join("store")).expect("a store");
    let store = open();
    let mut world = World::with_app(serve(&store, settings.clone()), provider);
    let code = |world: &World| {
        let (sent, cookie) = world.authorize(&world.app.id, "scope=openid+offline_access");
        let back = world.come_back(&sent, &cookie, |_| {}).is(302);
        parameters(back.header("location").expect("a location"))["code"].clone()
    };
    let (used, unused, other) = (code(&world), code(&world), code(&world));
    let first = world.exchange(&used).is(200).json();
    let second = world.refresh(&first, "").is(200).json();
    let kept = world.exchange(&other).is(200).json();
    let assertion = world.provider.signer.token(&json!({"iss": world.provider.name(), "sub": "p|7",
        "aud": "https://stack.example/api/auth", "exp": now() + 60, "jti": "first"}));
    let ask = |world: &World| {
        let body = format!("grant_type={ASSERTION}&assertion={assertion}");
        world.server.send("POST", "/api/auth/oauth/token", &[], &body).status
    };
    assert_eq!(ask(&world), 200);

    let World { server, provider, app, root } = world;
    drop(server);
    store.close().expect("closed");
    drop(store);
    let store = open();
    world = World { server: serve(&store, settings), provider, app, root };
    assert_eq!(ask(&world), 400, "the assertion was used");
    assert!(world.takes(&second) && !world.takes(&first));
    assert!(world.takes(&world.refresh(&kept, "").is(200).json()));
    world.exchange(&unused).is(200);
    world.refresh(&first, "").is(400);
    assert!(!world.takes(&second), "a used refresh token ends its family");
    world.exchange(&other).is(400);
    world.exchange(&used).is(400);
}

#[test]
fn settings_show_no_secret() {
    let mut settings = settings_of(&Provider::start());
    let authorization = settings.authorization.as_mut().expect("an authorization server");
    authorization.key = KeySource::Given(MasterKey::parse(&"a7".repeat(32)).expect("a key"));
    let file = "clients: [{id: canary, secrets: ['secret of the file']}]";
    authorization.clients = StaticClient::parse(file).expect("a client");
    let shown = format!("{settings:?}");
    assert!(shown.contains("canary"), "{shown}");
    for secret in ["its secret", "secret of the file", "a7a7", "167, 167"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
}
