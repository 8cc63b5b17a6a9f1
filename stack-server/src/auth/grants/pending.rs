//! Authorizations in progress, from the client's request through the login of a user to the exchange of the code.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ledger_store::{Document, DocumentChange, DocumentRejection, Expected, ReadError, Snapshot, WriteError};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::auth::authority::Authority;
use crate::auth::denylist::expiry_key;
use crate::auth::grants::caller::Caller;
use crate::auth::grants::error::{ErrorCode, OAuthError};
use crate::auth::grants::issue::{REFRESH_TOKEN_SECONDS, Tokens, USER_TOKEN_SECONDS};
use crate::auth::grants::session::{Session, session};
use crate::auth::keys::random_uuid;
use crate::auth::keys::vault::{Use, Vault, same_secret};
use crate::collections::AUTH_PENDING;
use crate::documents::{Versioned, damaged, put};

/// Time for the login of a user, in seconds.
pub(crate) const LOGIN_SECONDS: u64 = 10 * 60;

/// Time for the exchange of a code by the client, in seconds.
const CODE_SECONDS: u64 = 60;

/// Time for which a used code is remembered, in seconds. A second use within it ends the session of the first use.
const USED_CODE_SECONDS: u64 = 60 * 60;

/// Progress of an authorization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The user is at the provider.
    Login,
    /// The client has a code for this user, who logged in at that second.
    Code { user: String, logged_in: u64 },
    /// The client exchanged the code, which started this session.
    Used { session: String },
}

/// An authorization in progress.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) id: String,
    pub(crate) client: String,
    /// Date of the client's creation. It tells a later client with the same id apart.
    pub(crate) client_created: i64,
    pub(crate) redirect_uri: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) state: Option<String>,
    pub(crate) nonce: Option<String>,
    /// The PKCE challenge of the client, and whether it is the hash of the verifier (method `S256`).
    pub(crate) challenge: Option<(String, bool)>,
    /// The earliest login that the client accepts, in seconds since the epoch.
    pub(crate) login_since: Option<u64>,
    pub(crate) expires: u64,
    pub(crate) stage: Stage,
}

fn read(document: &Document) -> Result<Versioned<Pending>, ReadError> {
    let read = || {
        let body: Value = serde_json::from_slice(&document.value).ok()?;
        let text = |name: &str| body[name].as_str().map(str::to_owned);
        let scopes = body["scopes"].as_array()?.iter().map(|scope| scope.as_str().map(str::to_owned));
        let stage = match (text("user"), text("session")) {
            (_, Some(session)) => Stage::Used { session },
            (Some(user), None) => Stage::Code { user, logged_in: body["loggedIn"].as_u64()? },
            (None, None) => Stage::Login,
        };
        let expires = body["expires"].as_u64()?;
        // Earlier releases stored the maximum age of a login instead.
        let age =
            body["maxAge"].as_u64().map(|age| expires.saturating_sub(LOGIN_SECONDS).saturating_sub(age));
        Some(Pending {
            id: String::from_utf8(document.key.clone()).ok()?,
            client: text("client")?,
            client_created: body["clientCreated"].as_i64().unwrap_or_default(),
            redirect_uri: text("redirectUri")?,
            scopes: scopes.collect::<Option<_>>()?,
            state: text("state"),
            nonce: text("nonce"),
            challenge: text("challenge").map(|challenge| (challenge, body["isHash"] == true)),
            login_since: body["loginSince"].as_u64().or(age),
            expires,
            stage,
        })
    };
    let value = read().ok_or_else(|| damaged("an authorization under way"))?;
    Ok(Versioned { value, version: document.version })
}

impl Pending {
    /// Returns the change that stores this authorization.
    pub(crate) fn put(&self, expected: Expected) -> DocumentChange {
        let mut body = json!({
            "client": self.client,
            "clientCreated": self.client_created,
            "redirectUri": self.redirect_uri,
            "scopes": self.scopes,
            "state": self.state,
            "nonce": self.nonce,
            "challenge": self.challenge.as_ref().map(|(challenge, _)| challenge),
            "isHash": self.challenge.as_ref().is_some_and(|(_, is_hash)| *is_hash),
            "loginSince": self.login_since,
            "expires": self.expires
        });
        match &self.stage {
            Stage::Login => {}
            Stage::Code { user, logged_in } => {
                body["user"] = json!(user);
                body["loggedIn"] = json!(logged_in);
            }
            Stage::Used { session } => body["session"] = json!(session),
        }
        let keys = vec![expiry_key(self.expires)];
        put(AUTH_PENDING, self.id.as_bytes(), body.to_string().into_bytes(), keys, expected)
    }

    /// Returns a secret that binds a login at the provider to this authorization: its nonce or its PKCE verifier.
    pub(crate) fn provider_secret(&self, vault: &Vault, of: Use) -> String {
        URL_SAFE_NO_PAD.encode(vault.tag(of, self.id.as_bytes()))
    }

    /// Checks that the client's verifier matches its challenge. A verifier without a challenge is refused: somebody
    /// removed the challenge from the request.
    fn fits(&self, verifier: Option<&str>) -> Result<(), OAuthError> {
        let invalid = |text| OAuthError::new(ErrorCode::InvalidGrant, text);
        match (&self.challenge, verifier) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(invalid("the authorization had no code challenge")),
            (Some(_), None) => Err(invalid("code verifier missing")),
            (Some((challenge, is_hash)), Some(verifier)) => {
                let shown = if *is_hash {
                    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
                } else {
                    verifier.to_owned()
                };
                let is_right = same_secret(shown.as_bytes(), challenge.as_bytes());
                is_right.then_some(()).ok_or_else(|| invalid("invalid code challenge"))
            }
        }
    }
}

/// Returns the public name of an authorization: its id, and a tag that only this server can compute.
pub(crate) fn name(vault: &Vault, of: Use, id: &str) -> String {
    URL_SAFE_NO_PAD.encode([id.as_bytes(), &vault.tag(of, id.as_bytes())].concat())
}

/// Returns the id in a public name. Returns `None` if the tag is wrong.
pub(crate) fn id_of(vault: &Vault, of: Use, text: &str) -> Option<String> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| bytes.len() == 36 + 32)?;
    let (id, tag) = bytes.split_at(36);
    same_secret(tag, &vault.tag(of, id)).then(|| String::from_utf8(id.to_vec()).ok())?
}

/// Returns the authorization with this id.
///
/// # Errors
///
/// Fails if the store cannot be read.
pub(crate) fn pending(snapshot: &Snapshot, id: &str) -> Result<Option<Versioned<Pending>>, ReadError> {
    snapshot.document(AUTH_PENDING, id.as_bytes())?.as_ref().map(read).transpose()
}

/// Creates a code for the client of an authorization after the login of the user. Each login counts once.
///
/// # Errors
///
/// `invalid_grant` if the authorization has expired or the login was used. An error of the store if the write fails.
pub(crate) fn finish_login(
    authority: &Authority,
    found: &Versioned<Pending>,
    user: &str,
    logged_in: u64,
) -> Result<String, OAuthError> {
    let expired = || OAuthError::new(ErrorCode::InvalidGrant, "the login has expired or was used");
    if found.value.stage != Stage::Login || found.value.expires <= authority.now() {
        return Err(expired());
    }
    let stage = Stage::Code { user: user.to_owned(), logged_in };
    let with_code = Pending { stage, expires: authority.now() + CODE_SECONDS, ..found.value.clone() };
    match authority.store().change_documents(vec![with_code.put(Expected::Version(found.version))]) {
        Ok(_) => Ok(name(&authority.open_for_request()?.vault, Use::Code, &with_code.id)),
        Err(WriteError::Document(DocumentRejection::Changed { .. })) => Err(expired()),
        Err(error) => Err(error.into()),
    }
}

/// The reason to refuse a code whose authorization has another redirect URI.
const OTHER_REDIRECT_URI: &str = "redirect_uri is not that of the authorization";

impl Authority {
    /// Exchanges a code for tokens. The commit that starts the session also marks the code as used. A second use of the
    /// code ends the session.
    ///
    /// # Errors
    ///
    /// `invalid_grant` if the code is unknown, used, expired or issued to another client, or if the redirect URI or the
    /// verifier does not match the authorization; `invalid_request` for a public client without PKCE.
    pub(crate) fn exchange_code(
        &self,
        caller: &Caller,
        code: &str,
        redirect_uri: &str,
        verifier: Option<&str>,
    ) -> Result<Tokens, OAuthError> {
        let invalid = || OAuthError::new(ErrorCode::InvalidGrant, "unknown, used or expired code");
        let vault = self.open_for_request()?.vault;
        let id = id_of(&vault, Use::Code, code).ok_or_else(invalid)?;
        let found = pending(&self.store().snapshot(), &id)?
            .filter(|found| caller.is(&found.value.client, found.value.client_created));
        let Versioned { value: found, version } = found.ok_or_else(invalid)?;
        let now = self.now();
        let (user, logged_in) = match &found.stage {
            Stage::Code { user, logged_in } if found.expires > now => (user.clone(), *logged_in),
            Stage::Used { session } => {
                self.end_session_of_code(session)?;
                return Err(invalid());
            }
            _ => return Err(invalid()),
        };
        if found.redirect_uri != redirect_uri {
            return Err(OAuthError::new(ErrorCode::InvalidGrant, OTHER_REDIRECT_URI));
        }
        if caller.public && (found.challenge.is_none() || verifier.is_none()) {
            return Err(OAuthError::new(ErrorCode::InvalidRequest, "code_challenge required"));
        }
        found.fits(verifier)?;
        let mut session = Session {
            id: random_uuid()?,
            client: caller.id.clone(),
            client_created: caller.created,
            user,
            scopes: found.scopes.clone(),
            granted: found.scopes.clone(),
            generation: 0,
            expires: now + USER_TOKEN_SECONDS,
            access_id: String::new(),
            access_expires: 0,
            logged_in,
        };
        let access = self.access_of(&session, &found.scopes)?;
        let id_token = self.id_token(&session, found.nonce.as_deref())?;
        (session.access_id, session.access_expires) = (access.id.clone(), access.expires);
        let continues = found.scopes.iter().any(|scope| scope == "offline_access");
        if continues {
            session.expires = now + REFRESH_TOKEN_SECONDS;
        }
        let used = Pending {
            stage: Stage::Used { session: session.id.clone() },
            expires: now + USED_CODE_SECONDS,
            ..found
        };
        let changes = vec![used.put(Expected::Version(version)), session.put(Expected::Absent)];
        match self.store().change_documents(changes) {
            Ok(_) => {}
            Err(WriteError::Document(DocumentRejection::Changed { .. })) => {
                // Another request exchanged the code concurrently.
                if let Some(Versioned { value: Pending { stage: Stage::Used { session }, .. }, .. }) =
                    pending(&self.store().snapshot(), &id)?
                {
                    self.end_session_of_code(&session)?;
                }
                return Err(invalid());
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Tokens { refresh: continues.then(|| session.refresh_token(&vault)), id: id_token, access })
    }

    fn end_session_of_code(&self, id: &str) -> Result<(), OAuthError> {
        if let Some(found) = session(&self.store().snapshot(), id)? {
            self.end_session(&found.value)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ledger_store::Store;

    use super::*;

    #[test]
    fn reads_the_greatest_age_of_earlier_releases() {
        let store = Store::in_memory();
        let value = br#"{"client":"a","clientCreated":7,"redirectUri":"https://a/cb","scopes":["openid"],
            "state":null,"nonce":null,"challenge":null,"isHash":false,"maxAge":300,"expires":10000}"#;
        let change = put(AUTH_PENDING, b"old", value.to_vec(), vec![expiry_key(10_000)], Expected::Absent);
        store.change_documents(vec![change]).expect("the store takes the change");
        let found = pending(&store.snapshot(), "old").expect("the store can be read").expect("a record");
        assert_eq!(found.value.login_since, Some(10_000 - LOGIN_SECONDS - 300));
        store
            .change_documents(vec![found.value.put(Expected::Anything)])
            .expect("the store takes the change");
        let again = pending(&store.snapshot(), "old").expect("the store can be read").expect("a record");
        assert!(again.value == found.value);
    }
}
