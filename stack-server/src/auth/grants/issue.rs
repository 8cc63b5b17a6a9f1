//! Signs access tokens. The constants are the lifetimes of all kinds of tokens.

use serde_json::{Value, json};

use crate::auth::authority::Authority;
use crate::auth::grants::error::OAuthError;
use crate::auth::guard::own;
use crate::auth::keys::random_uuid;

/// Lifetime of a client's access token in seconds.
pub(crate) const CLIENT_TOKEN_SECONDS: u64 = 60 * 60;

/// Lifetime of a user's access token in seconds.
pub(crate) const USER_TOKEN_SECONDS: u64 = 5 * 60;

/// Lifetime of an ID token in seconds.
pub(crate) const ID_TOKEN_SECONDS: u64 = 60 * 60;

/// Lifetime of a refresh token in seconds.
pub(crate) const REFRESH_TOKEN_SECONDS: u64 = 5 * 60 * 60;

/// Scopes that select the user's data which a client may read. Services ignore them.
const IDENTITY_SCOPES: [&str; 4] = ["profile", "email", "address", "phone"];

/// The claims of an access token.
#[derive(Clone, Debug)]
pub(crate) struct AccessClaims<'a> {
    pub(crate) client: Option<&'a str>,
    pub(crate) audience: Value,
    pub(crate) subject: Option<&'a str>,
    pub(crate) session: Option<&'a str>,
    pub(crate) scopes: &'a [String],
    pub(crate) seconds: u64,
}

/// A signed access token.
#[derive(Clone)]
pub(crate) struct AccessToken {
    pub(crate) text: String,
    /// The id (`jti`), by which the token can be revoked.
    pub(crate) id: String,
    /// Expiry, in seconds since the epoch.
    pub(crate) expires: u64,
}

/// The tokens of one response.
pub(crate) struct Tokens {
    pub(crate) access: AccessToken,
    pub(crate) refresh: Option<String>,
    pub(crate) id: Option<String>,
}

impl From<AccessToken> for Tokens {
    fn from(access: AccessToken) -> Self {
        Self { access, refresh: None, id: None }
    }
}

/// Signs an access token.
///
/// # Errors
///
/// `server_error`. The log contains the reason.
pub(crate) fn sign_access(
    authority: &Authority,
    access: &AccessClaims<'_>,
) -> Result<AccessToken, OAuthError> {
    let id = random_uuid()?;
    let now = authority.now();
    let expires = now + access.seconds;
    let mut claims = json!({
        "iss": authority.issuer(),
        "aud": access.audience,
        "exp": expires,
        "iat": now,
        "nbf": now,
        "jti": id
    });
    let scopes = access.scopes.iter().filter(|name| !IDENTITY_SCOPES.contains(&name.as_str()));
    let scope = scopes.map(String::as_str).collect::<Vec<_>>().join(" ");
    let texts = [
        ("client_id", access.client),
        ("sub", access.subject),
        ("sid", access.session),
        ("scope", Some(scope.as_str()).filter(|scope| !scope.is_empty())),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            claims[name] = json!(text);
        }
    }
    let opened = authority.open_for_request()?;
    let text = opened.keys.current().sign(own::ACCESS, &claims)?;
    Ok(AccessToken { text, id, expires })
}
