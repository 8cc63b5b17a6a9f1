//! Verifies tokens that this server's own authorization server issued.

use crate::auth::authority::Authority;
use crate::auth::denylist;
use crate::auth::guard::keys::{Epoch, is_signed};
use crate::auth::guard::token::Token;
use crate::log::{self, Level};

/// Type of access tokens in their header (RFC 9068). ID tokens have another type, [`IDENTITY`], and give no access.
pub(crate) const ACCESS: &str = "at+jwt";

/// Type of ID tokens in their header. An ID token tells a client which user logged in.
pub(crate) const IDENTITY: &str = "JWT";

/// Returns whether this server issued a token of any type: the token names this server as its issuer, and one of the
/// server's keys signed it. Ignores dates and revocation.
pub(crate) fn is_issued_by_us(authority: &Authority, token: &Token<'_>) -> bool {
    let signed = || {
        let opened = authority.open().ok()?;
        let key = opened.keys.get(token.key.as_deref()?)?;
        Some(token.issuer == authority.issuer() && is_signed(token, &key.modulus, &key.exponent))
    };
    signed().unwrap_or(false)
}

/// Verifies an access token except for its dates: its type, issuer and signature are right, and neither the token nor
/// its session was revoked. The token must name an audience, but any audience is accepted: this server's tokens name
/// the client that received them. Returns the epoch during which the token may stay cached. When the epoch ends, the
/// token must be verified again.
pub(crate) fn verify_except_dates(authority: &Authority, token: &Token<'_>) -> Option<Epoch> {
    // Take the epoch before the checks, so that a revocation during them ends it.
    let epoch = authority.epoch();
    if token.kind.as_deref() != Some(ACCESS)
        || token.audience().is_empty()
        || !is_issued_by_us(authority, token)
    {
        return None;
    }
    match denylist::is_revoked(&authority.store().snapshot(), token) {
        Ok(false) => Some(epoch),
        Ok(true) => None,
        // If the revocations cannot be read, refuse the token.
        Err(error) => {
            log::event(Level::Error, "fault", &[("reason", &error)]);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
    use ledger_store::Store;
    use serde_json::{Value, json};

    use super::*;
    use crate::auth::authority::AuthorizationSettings;
    use crate::auth::guard::{Admission, AuthSettings, Guard, LastToken};
    use crate::auth::keys::master::{KeySource, MasterKey};
    use crate::auth::{Scope, Service};

    fn authority() -> Arc<Authority> {
        let key = KeySource::Given(MasterKey::random().expect("random bytes"));
        let settings = AuthorizationSettings::new(key);
        let made = Authority::new(&Store::in_memory(), settings, "http://127.0.0.1:1").expect("an issuer");
        Arc::new(made)
    }

    fn allows(guard: &Guard, token: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(
            AUTHORIZATION,
            HeaderValue::from_str(&format!("Bearer {token}")).expect("a token is visible ASCII"),
        );
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let admitted =
            runtime.block_on(guard.admit(&headers, &LastToken::default(), Service::Ledger, Scope::Write));
        matches!(admitted, Admission::By(_))
    }

    #[test]
    fn refuses_signed_token_with_wrong_type_or_claim() {
        let authority = authority();
        let now = authority.now();
        let settings = AuthSettings {
            issuers: vec![],
            audiences: vec![],
            check_scopes: false,
            service: "ledger".to_owned(),
            own: true,
            check_management_scopes: false,
        };
        let guard = Guard::new(&settings, authority.store(), Some(&authority)).expect("a guard");
        let opened = authority.open().expect("the keys can be opened");
        let sign =
            |kind: &str, claims: &Value| opened.keys.current().sign(kind, claims).expect("the key can sign");
        let good = json!({"iss": authority.issuer(), "aud": ["c"], "exp": now + 60, "nbf": now, "jti": "j"});
        assert!(allows(&guard, &sign(ACCESS, &good)));
        let with = |name: &str, value: Value| {
            let mut claims = good.clone();
            claims[name] = value;
            sign(ACCESS, &claims)
        };
        for kind in [IDENTITY, "", "AT+JWT", "logout+jwt"] {
            assert!(!allows(&guard, &sign(kind, &good)), "{kind}");
        }
        for (name, value) in [
            ("iss", json!("http://127.0.0.1:1")),
            ("iss", json!(format!("{}/", authority.issuer()))),
            ("iss", Value::Null),
            ("aud", Value::Null),
            ("aud", json!([])),
            ("aud", json!([7])),
            ("exp", Value::Null),
            ("exp", json!(now)),
            ("exp", json!("9999999999")),
            ("exp", json!(1e30)),
            ("nbf", json!(now + 120)),
            ("nbf", json!("0")),
            ("jti", Value::Null),
            ("scope", json!(7)),
        ] {
            assert!(!allows(&guard, &with(name, value.clone())), "{name} {value}");
        }
        // Clocks may differ a little.
        assert!(allows(&guard, &with("nbf", json!(now + 20))));
    }

    #[test]
    fn a_verified_token_ends_with_its_session() {
        let authority = authority();
        let opened = authority.open().expect("the keys can be opened");
        let claims = json!({"iss": authority.issuer(), "aud": "c", "exp": authority.now() + 60, "jti": "j", "sid": "s"});
        let text = opened.keys.current().sign(ACCESS, &claims).expect("the key can sign");
        let token = Token::parse(&text).expect("the token is well formed");
        let epoch = verify_except_dates(&authority, &token).expect("a valid token");
        assert!(epoch.is_current());
        let session = denylist::Denied::Session("s");
        let change = denylist::deny(session, authority.now() + 60, ledger_store::Expected::Absent);
        authority.store().change_documents(vec![change]).expect("the store takes the change");
        authority.end_epoch();
        assert!(!epoch.is_current() && verify_except_dates(&authority, &token).is_none());
    }
}
