//! Tests power cuts at every sync while clients and secrets are created and removed, tokens are revoked, and codes,
//! refresh tokens and assertions are used. Every change that was answered before the cut must be there after it.

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ledger_core::Metadata;
use ledger_store::{Expected, Options, Store};
use ledger_testkit::{Disk, Faults, SimDisk};
use serde_json::json;

use crate::auth::authority::{Authority, AuthorizationSettings};
use crate::auth::grants::caller::Caller;
use crate::auth::grants::error::{ErrorCode, OAuthError};
use crate::auth::grants::issue::{self, AccessClaims, AccessToken, Tokens};
use crate::auth::grants::pending::{self, LOGIN_SECONDS, Pending, Stage, finish_login};
use crate::auth::guard::token::Token;
use crate::auth::keys::master::{KeySource, MasterKey};
use crate::auth::keys::random_uuid;
use crate::auth::resources::clients::{self, Draft};
use crate::auth::resources::users::{self, ProviderIdentity};

pub(super) const REDIRECT: &str = "https://app.example/cb";
const ROUNDS: usize = 2;

/// Number of possible disk contents to test after each cut. They differ in the unsynced writes that survived.
const PASTS: u64 = 3;

fn open(disk: &SimDisk, key: &KeySource) -> Authority {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let store = Store::open_on_disk(disk, Path::new("data"), &Options::default()).expect("an open store");
    let settings = AuthorizationSettings::new(key.clone());
    Authority::new(&store, settings, "http://127.0.0.1:1").expect("an authorization server")
}

/// All answered changes. Objects with an unanswered change are in none of the lists.
#[derive(Default)]
struct Acknowledged {
    /// Ids of clients, with their valid secrets.
    secrets: Vec<(String, String)>,
    /// Ids of clients, with their removed secrets.
    removed: Vec<(String, String)>,
    /// Ids of users.
    users: Vec<String>,
    kept: Vec<String>,
    revoked: Vec<String>,
    /// The client to which the codes and refresh tokens belong.
    client: Option<String>,
    codes: Vec<String>,
    used_codes: Vec<String>,
    used_refresh: Vec<String>,
    used_assertions: Vec<String>,
}

impl Acknowledged {
    fn count(&self) -> usize {
        let texts = [
            &self.users,
            &self.kept,
            &self.revoked,
            &self.codes,
            &self.used_codes,
            &self.used_refresh,
            &self.used_assertions,
        ];
        texts.into_iter().map(Vec::len).sum::<usize>() + self.secrets.len() + self.removed.len()
    }
}

/// Returns the client with this id as authenticated.
pub(super) fn caller(authority: &Authority, id: &str) -> Option<Caller> {
    let snapshot = authority.store().snapshot();
    let client = clients::client(&snapshot, id).expect("the store can be read")?;
    Some(client.value.into())
}

pub(super) fn log_in(authority: &Authority, caller: &Caller, user: &str) -> Option<String> {
    let begun = Pending {
        id: random_uuid().expect("random bytes"),
        client: caller.id.clone(),
        client_created: caller.created,
        redirect_uri: REDIRECT.to_owned(),
        scopes: ["openid", "offline_access"].map(str::to_owned).to_vec(),
        state: None,
        nonce: None,
        challenge: None,
        login_since: None,
        expires: authority.now() + LOGIN_SECONDS,
        stage: Stage::Login,
    };
    authority.store().change_documents(vec![begun.put(Expected::Absent)]).ok()?;
    let found = pending::pending(&authority.store().snapshot(), &begun.id).expect("the store can be read")?;
    finish_login(authority, &found, user, authority.now()).ok()
}

fn exchange(authority: &Authority, caller: &Caller, code: &str) -> Result<Tokens, OAuthError> {
    authority.exchange_code(caller, code, REDIRECT, None)
}

/// Returns the text of an assertion. Its signature does not matter, because the tested code expects a verified one.
fn assertion(authority: &Authority, id: &str) -> String {
    let claims = json!({"iss": "https://provider", "sub": "p|1", "aud": authority.issuer(), "exp": authority.now() + 600,
        "jti": id});
    let part = |text: String| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.AAAA", part(r#"{"alg":"RS256"}"#.to_owned()), part(claims.to_string()))
}

fn use_assertion(authority: &Authority, text: &str) -> Result<AccessToken, OAuthError> {
    authority.accept_assertion(None, &Token::parse(text).expect("the token is well formed"), "", false)
}

/// Rotates a secret, and revokes a token.
fn manage(authority: &Authority, acknowledged: &mut Acknowledged, id: &str) -> Option<()> {
    let (store, vault) = (authority.store(), authority.open().ok()?.vault);
    let add = || clients::add_secret(store, &vault, id, "s", &Metadata::EMPTY).ok();
    let (old, clear) = add()?;
    acknowledged.secrets.push((id.to_owned(), clear));
    acknowledged.secrets.push((id.to_owned(), add()?.1));
    let removed = acknowledged.secrets.remove(acknowledged.secrets.len() - 2);
    clients::delete_secret(store, id, &old.id).ok()?;
    acknowledged.removed.push(removed);
    let access = AccessClaims {
        client: Some(id),
        audience: json!([id]),
        subject: None,
        session: None,
        scopes: &[],
        seconds: 600,
    };
    let [kept, revoked] = [0, 1].map(|_| issue::sign_access(authority, &access).ok().map(|token| token.text));
    acknowledged.kept.push(kept?);
    let revoked = revoked?;
    authority.revoke_token(id, &revoked).ok()?;
    acknowledged.revoked.push(revoked);
    Some(())
}

/// Lets a user log in twice, uses one of the codes, and continues the session.
fn use_codes(
    authority: &Authority,
    acknowledged: &mut Acknowledged,
    client: &str,
    round: usize,
) -> Option<()> {
    let subject = round.to_string();
    let known = ProviderIdentity { issuer: "https://provider", subject: &subject };
    let user = users::found_or_created(authority.store(), &known, "a@example.com", true).ok()?.id;
    acknowledged.users.push(user.clone());
    let caller = caller(authority, client)?;
    let [unused, code] = [0, 1].map(|_| log_in(authority, &caller, &user));
    acknowledged.codes.push(unused?);
    let code = code?;
    let first = exchange(authority, &caller, &code).ok()?;
    acknowledged.used_codes.push(code);
    let refresh = first.refresh.expect("a refresh token");
    let second = authority.refresh(&caller, &refresh, None).ok()?;
    acknowledged.used_refresh.push(refresh);
    acknowledged.revoked.push(first.access.text);
    acknowledged.kept.push(second.access.text);
    let assertion = assertion(authority, &subject);
    let granted = use_assertion(authority, &assertion).ok()?;
    acknowledged.used_assertions.push(assertion);
    acknowledged.kept.push(granted.text);
    Some(())
}

/// Makes changes until the power fails. Returns `None` if it failed.
fn work(authority: &Authority, acknowledged: &mut Acknowledged) -> Option<()> {
    let draft = Draft { name: "shop".into(), redirect_uris: vec![REDIRECT.into()], ..Draft::default() };
    let id = clients::create(authority.store(), &draft).ok()?.id;
    acknowledged.client = Some(id.clone());
    for round in 0..ROUNDS {
        manage(authority, acknowledged, &id)?;
        use_codes(authority, acknowledged, &id, round)?;
        authority.store().flush();
    }
    Some(())
}

fn judge(authority: &Authority, acknowledged: &Acknowledged, place: &str) {
    let vault = authority.open().expect("the keys can be opened").vault;
    let snapshot = authority.store().snapshot();
    let has_secret = |(id, clear): &(String, String)| {
        let client = clients::client(&snapshot, id).expect("the store can be read").expect("the client");
        client.value.has_secret(&vault, clear)
    };
    assert!(acknowledged.secrets.iter().all(has_secret), "{place}: a secret is lost");
    assert!(!acknowledged.removed.iter().any(has_secret), "{place}: a removed secret is good");
    for user in &acknowledged.users {
        assert!(
            users::user(&snapshot, user).expect("the store can be read").is_some(),
            "{place}: a user is lost"
        );
    }
    let is_good = |text: &String| authority.valid_token(text).is_some();
    assert!(acknowledged.kept.iter().all(is_good), "{place}: a token is lost");
    assert!(!acknowledged.revoked.iter().any(is_good), "{place}: a revoked token is good");
    for text in &acknowledged.used_assertions {
        let again = use_assertion(authority, text).map(drop).map_err(|error| error.code);
        assert_eq!(again, Err(ErrorCode::InvalidGrant), "{place}: an assertion counts twice");
    }
    let Some(client) = &acknowledged.client else { return };
    let caller = caller(authority, client).unwrap_or_else(|| panic!("{place}: the client is lost"));
    for code in &acknowledged.codes {
        assert!(exchange(authority, &caller, code).is_ok(), "{place}: a code is lost");
    }
    // Each of these used tokens ends its session if the session exists.
    for refresh in &acknowledged.used_refresh {
        let again = authority.refresh(&caller, refresh, None).map(drop).map_err(|error| error.code);
        assert_eq!(again, Err(ErrorCode::InvalidGrant), "{place}: a refresh token counts twice");
    }
    for code in acknowledged.used_codes.iter().chain(&acknowledged.codes) {
        let again = exchange(authority, &caller, code).map(drop).map_err(|error| error.code);
        assert_eq!(again, Err(ErrorCode::InvalidGrant), "{place}: a code counts twice");
    }
}

#[test]
fn answers_hold_after_a_power_cut_at_every_sync() {
    let key = KeySource::Given(MasterKey::random().expect("random bytes"));
    let with_keys = SimDisk::new();
    let authority = open(&with_keys, &key);
    authority.open().expect("new keys");
    authority.store().close().expect("the store can be closed");
    drop(authority);
    let mut counts = Vec::new();
    for cut in 1.. {
        let disk = with_keys.synced_copy();
        let authority = open(&disk, &key);
        authority.open().expect("the keys can be opened");
        let mut acknowledged = Acknowledged::default();
        disk.set_faults(Faults { cut_at_sync: Some(disk.syncs() + cut), ..Faults::default() });
        let is_done = work(&authority, &mut acknowledged).is_some();
        drop(authority);
        let was_cut = disk.power_is_off();
        counts.push(acknowledged.count());
        for past in 0..PASTS {
            let survivor = disk.after_power_cut(past);
            judge(&open(&survivor, &key), &acknowledged, &format!("cut {cut}, past {past}"));
        }
        if is_done && !was_cut {
            break;
        }
    }
    let all = counts.last().copied().unwrap_or_default();
    println!("{} cuts; {all} answers without one", counts.len() - 1);
    assert!(counts.len() > 20 && all == 12 * ROUNDS, "{counts:?}");
}

#[test]
fn the_first_start_survives_power_cuts() {
    let key = KeySource::Given(MasterKey::random().expect("random bytes"));
    for cut in 1..=3 {
        let disk = SimDisk::new();
        let authority = open(&disk, &key);
        disk.set_faults(Faults { cut_at_sync: Some(disk.syncs() + cut), ..Faults::default() });
        let signed = authority.open().ok().map(|opened| opened.keys.current().id.clone());
        drop(authority);
        let authority = open(&disk.after_power_cut(cut), &key);
        let keys = authority.open().expect("the keys can be opened").keys;
        assert_eq!(keys.all().count(), 2, "cut {cut}");
        // Every key that may have signed a token must exist.
        assert!(signed.is_none_or(|id| keys.get(&id).is_some()), "cut {cut}");
    }
}
