//! Tokens, codes and logins expire by the clock of the store, which these tests set.

use std::sync::Arc;

use ledger_core::Timestamp;
use ledger_store::{Options, Store, TimeSource as _};
use ledger_testkit::SetClock;
use serde_json::{Value, json};

use crate::auth::now;
use crate::auth_tokens::Known;
use crate::auth_world::{ASSERTION, World, error};
use crate::client::TestServer;

/// A clock that only advances when a test advances it. It starts at the system's time.
pub(crate) struct ManualClock(Arc<SetClock>);

impl ManualClock {
    pub(crate) fn new() -> Self {
        let clock = Self(Arc::default());
        clock.set(now());
        clock
    }

    fn set(&self, seconds: u64) {
        self.0.set(Timestamp::from_micros(i64::try_from(seconds * 1_000_000).expect("a date")));
    }

    /// Returns the time in seconds since the Unix epoch.
    pub(crate) fn seconds(&self) -> u64 {
        u64::try_from(self.0.now().as_micros()).expect("a time after 1970") / 1_000_000
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.set(self.seconds() + seconds);
    }

    /// Creates an empty store with this clock.
    pub(crate) fn store(&self) -> Store {
        let mut options = Options::default();
        options.clock = self.0.clone();
        Store::in_memory_with(&options)
    }
}

fn introspect(server: &TestServer, caller: &Known, token: &str) -> Value {
    caller.ask(server, "/oauth/introspect", &format!("token={token}")).is(200).json()
}

#[test]
fn an_expired_token_is_active_nowhere() {
    let clock = ManualClock::new();
    let world = World::on(&clock.store());
    let tokens = world.exchange(&world.code(&world.app.id, "scope=openid+email")).is(200).json();
    let of_user = tokens["access_token"].as_str().expect("a token");
    let of_client = world.root.token(&world.server, "");
    let is_active = |token: &str| introspect(&world.server, &world.root, token) != json!({"active": false});
    assert_eq!(tokens["expires_in"], 300);
    clock.advance(299);
    assert!(is_active(of_user) && is_active(&of_client) && world.takes(&tokens));
    world.bearer("/api/auth/userinfo", &tokens).is(200);
    clock.advance(1);
    assert!(!is_active(of_user) && is_active(&of_client) && !world.takes(&tokens));
    let refused = world.bearer("/api/auth/userinfo", &tokens).is(401);
    assert_eq!(
        (refused.body.as_str(), refused.header("www-authenticate")),
        ("access token invalid", Some("Bearer"))
    );
    clock.advance(3_299);
    assert!(is_active(&of_client));
    clock.advance(1);
    assert!(!is_active(&of_client));
    // Revoking an expired token is not an error, and changes nothing.
    world.root.ask(&world.server, "/revoke", &format!("token={of_client}")).is(200);
}

#[test]
fn logins_codes_and_refresh_tokens_expire() {
    let clock = ManualClock::new();
    let world = World::on(&clock.store());
    let scope = "scope=openid+offline_access";
    let [used, late] = [0, 1].map(|_| world.code(&world.app.id, scope));
    let logins = [0, 1].map(|_| world.authorize(&world.app.id, scope));
    let back = |(sent, cookie): &(_, String)| {
        world.come_back(sent, cookie, |claims| claims["exp"] = json!(clock.seconds() + 60))
    };
    clock.advance(59);
    let first = world.exchange(&used).is(200).json();
    clock.advance(1);
    assert_eq!(error(&world.exchange(&late).is(400)), "invalid_grant");
    clock.advance(539);
    back(&logins[0]).is(302);
    clock.advance(1);
    back(&logins[1]).is(400);
    // A refresh token is valid for five hours from its creation.
    clock.advance(5 * 3_600 - 1 - 541);
    let second = world.refresh(&first, "").is(200).json();
    clock.advance(5 * 3_600);
    assert_eq!(error(&world.refresh(&second, "").is(400)), "invalid_grant");
}

#[test]
fn an_expired_assertion_is_refused() {
    let clock = ManualClock::new();
    let world = World::on(&clock.store());
    let issuer = format!("http://{}/api/auth", world.server.address);
    let ask = |id: &str| {
        let claims =
            json!({"iss": world.provider.name(), "sub": "p|1", "aud": issuer, "exp": now() + 600, "jti": id});
        let assertion = world.provider.signer.token(&claims);
        world.app.ask(&world.server, "/oauth/token", &format!("grant_type={ASSERTION}&assertion={assertion}"))
    };
    ask("a").is(200);
    clock.advance(3_600);
    assert_eq!(error(&ask("b").is(400)), "invalid_grant");
}
