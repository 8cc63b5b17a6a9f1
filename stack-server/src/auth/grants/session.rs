//! Sessions of users: the scopes granted at a login, and the refresh tokens that continue the session.
//!
//! A refresh token contains the id of its session, the generation (the number of earlier refreshes) and a tag over
//! both. The session stores the generation of the only valid token. If a client sends a token of an earlier generation,
//! two clients have the token, so the session ends. A token with a wrong tag was never issued and changes nothing.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ledger_store::{
    Document, DocumentChange, DocumentKey, DocumentRejection, Expected, ReadError, Snapshot, WriteError,
};
use serde_json::{Value, json};

use crate::auth::authority::Authority;
use crate::auth::denylist::{self, Denied, expiry_key};
use crate::auth::grants::caller::Caller;
use crate::auth::grants::error::{ErrorCode, OAuthError};
use crate::auth::grants::issue::{
    self, AccessClaims, AccessToken, REFRESH_TOKEN_SECONDS, Tokens, USER_TOKEN_SECONDS,
};
use crate::auth::guard::own;
use crate::auth::keys::vault::{Use, Vault, same_secret};
use crate::auth::resources::users;
use crate::collections::AUTH_SESSIONS;
use crate::documents::{Versioned, damaged, delete, put, with_key};
use crate::http::error::ApiError;

/// The index of sessions by user and client.
const SESSION_BY_USER: u32 = 2;

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) client: String,
    /// Date of the client's creation. It tells a later client with the same id apart.
    pub(crate) client_created: i64,
    pub(crate) user: String,
    /// The scopes that the user granted at the login.
    pub(crate) scopes: Vec<String>,
    /// The scopes of the current access token.
    pub(crate) granted: Vec<String>,
    /// Number of refreshes so far.
    pub(crate) generation: u64,
    /// Expiry of the refresh token, in seconds since the epoch.
    pub(crate) expires: u64,
    /// The id of the current access token.
    pub(crate) access_id: String,
    pub(crate) access_expires: u64,
    /// Date of the login, in seconds since the epoch.
    pub(crate) logged_in: u64,
}

fn user_key(user: &str, client: &str) -> Vec<u8> {
    [user.as_bytes(), &[0], client.as_bytes()].concat()
}

fn read(document: &Document) -> Result<Versioned<Session>, ReadError> {
    let read = || {
        let body: Value = serde_json::from_slice(&document.value).ok()?;
        let text = |name: &str| body[name].as_str().map(str::to_owned);
        let texts = |value: &Value| {
            value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        };
        let scopes = texts(&body["scopes"])?;
        Some(Session {
            id: String::from_utf8(document.key.clone()).ok()?,
            client: text("client")?,
            client_created: body["clientCreated"].as_i64().unwrap_or_default(),
            user: text("user")?,
            // Documents of earlier releases lack this member.
            granted: texts(&body["granted"]).unwrap_or_else(|| scopes.clone()),
            scopes,
            generation: body["generation"].as_u64()?,
            expires: body["expires"].as_u64()?,
            access_id: text("accessId")?,
            access_expires: body["accessExpires"].as_u64()?,
            logged_in: body["loggedIn"].as_u64()?,
        })
    };
    let value = read().ok_or_else(|| damaged("a session"))?;
    Ok(Versioned { value, version: document.version })
}

impl Session {
    /// Returns the change that stores this session.
    pub(crate) fn put(&self, expected: Expected) -> DocumentChange {
        let body = json!({
            "client": self.client,
            "clientCreated": self.client_created,
            "user": self.user,
            "scopes": self.scopes,
            "granted": self.granted,
            "generation": self.generation,
            "expires": self.expires,
            "accessId": self.access_id,
            "accessExpires": self.access_expires,
            "loggedIn": self.logged_in
        });
        let by_user =
            DocumentKey { index: SESSION_BY_USER, key: user_key(&self.user, &self.client), unique: false };
        let keys = vec![expiry_key(self.expires), by_user];
        put(AUTH_SESSIONS, self.id.as_bytes(), body.to_string().into_bytes(), keys, expected)
    }

    /// Returns the currently valid refresh token.
    pub(crate) fn refresh_token(&self, vault: &Vault) -> String {
        let mut bytes = self.id.clone().into_bytes();
        bytes.extend(self.generation.to_be_bytes());
        let tag = vault.tag(Use::RefreshToken, &bytes);
        bytes.extend(tag);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Returns the changes that end the session, so that all of its tokens are refused. `now` is in seconds since the
    /// Unix epoch.
    pub(crate) fn end(&self, now: u64) -> Vec<DocumentChange> {
        // Remember the ended session until the last of its tokens that are verified without reading the session has
        // expired.
        let until = now.max(self.access_expires) + REFRESH_TOKEN_SECONDS;
        vec![
            denylist::deny(Denied::Session(&self.id), until, Expected::Anything),
            delete(AUTH_SESSIONS, self.id.as_bytes(), Expected::Anything),
        ]
    }
}

/// Returns the session id and the generation of a refresh token that this server issued.
fn read_refresh_token(vault: &Vault, text: &str) -> Option<(String, u64)> {
    const ID: usize = 36;
    let bytes = URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| bytes.len() == ID + 8 + 32)?;
    let (signed, tag) = bytes.split_at(ID + 8);
    if !same_secret(tag, &vault.tag(Use::RefreshToken, signed)) {
        return None;
    }
    let (id, generation) = signed.split_at(ID);
    Some((String::from_utf8(id.to_vec()).ok()?, u64::from_be_bytes(generation.try_into().ok()?)))
}

/// Returns the session with this id.
///
/// # Errors
///
/// Fails if the store cannot be read.
pub(crate) fn session(snapshot: &Snapshot, id: &str) -> Result<Option<Versioned<Session>>, ReadError> {
    snapshot.document(AUTH_SESSIONS, id.as_bytes())?.as_ref().map(read).transpose()
}

fn invalid_grant() -> OAuthError {
    OAuthError::new(ErrorCode::InvalidGrant, "unknown, used or expired refresh token")
}

impl Authority {
    /// Issues an access token for a session.
    ///
    /// # Errors
    ///
    /// `server_error`. The log contains the reason.
    pub(crate) fn access_of(&self, session: &Session, scopes: &[String]) -> Result<AccessToken, OAuthError> {
        let access = AccessClaims {
            client: Some(&session.client),
            audience: json!([session.client]),
            subject: Some(&session.user),
            session: Some(&session.id),
            scopes,
            seconds: USER_TOKEN_SECONDS,
        };
        issue::sign_access(self, &access)
    }

    /// Continues a session with a refresh token, which is then used up, and revokes the session's previous access
    /// token. The new tokens do not contain scopes that the client has lost since.
    ///
    /// # Errors
    ///
    /// `invalid_grant` if the token is not valid; `invalid_scope` for a scope that the session does not have.
    pub(crate) fn refresh(
        &self,
        caller: &Caller,
        token: &str,
        scope: Option<&str>,
    ) -> Result<Tokens, OAuthError> {
        let vault = self.open_for_request()?.vault;
        let (id, generation) = read_refresh_token(&vault, token).ok_or_else(invalid_grant)?;
        let snapshot = self.store().snapshot();
        let found = session(&snapshot, &id)?
            .filter(|found| caller.is(&found.value.client, found.value.client_created));
        let Versioned { value: before, version } = found.ok_or_else(invalid_grant)?;
        if generation != before.generation {
            self.end_session(&before)?;
            return Err(invalid_grant());
        }
        let now = self.now();
        if before.expires <= now || denylist::is_denied(&snapshot, Denied::Session(&id))? {
            return Err(invalid_grant());
        }
        let scopes: Vec<String> = match scope {
            None => before.scopes.clone(),
            Some(wanted) => wanted.split(' ').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        };
        if scopes.iter().any(|name| !before.scopes.contains(name)) {
            return Err(OAuthError::new(
                ErrorCode::InvalidScope,
                "the refresh token does not have these scopes",
            ));
        }
        let scopes = caller.granted_at_login(&snapshot, &scopes.join(" "))?;
        let access = self.access_of(&before, &scopes)?;
        let after = Session {
            granted: scopes,
            generation: before.generation + 1,
            expires: now + REFRESH_TOKEN_SECONDS,
            access_id: access.id.clone(),
            access_expires: access.expires,
            ..before.clone()
        };
        let id_token = self.id_token(&after, None)?;
        let changes = vec![
            after.put(Expected::Version(version)),
            denylist::deny(Denied::Token(&before.access_id), before.access_expires, Expected::Anything),
        ];
        match self.store().change_documents(changes) {
            Ok(_) => self.end_epoch(),
            // Another request used the token concurrently, so two clients have it.
            Err(WriteError::Document(DocumentRejection::Changed { .. })) => {
                self.end_session(&before)?;
                return Err(invalid_grant());
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Tokens { refresh: Some(after.refresh_token(&vault)), id: id_token, access })
    }

    /// Ends a session and revokes all of its tokens.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be written.
    pub(crate) fn end_session(&self, session: &Session) -> Result<(), ApiError> {
        self.store().change_documents(session.end(self.now()))?;
        self.end_epoch();
        Ok(())
    }

    /// Ends the session of a client's refresh token. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be written.
    pub(crate) fn revoke_refresh_token(&self, client: &str, token: &str) -> Result<bool, ApiError> {
        let Some((id, _)) = read_refresh_token(&self.open_for_request()?.vault, token) else {
            return Ok(false);
        };
        let found = session(&self.store().snapshot(), &id)?.filter(|found| found.value.client == client);
        found.map_or(Ok(false), |found| self.end_session(&found.value).map(|()| true))
    }

    /// Ends all sessions of a user with a client.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read or written.
    pub(crate) fn log_out(&self, user: &str, client: &str) -> Result<(), ApiError> {
        // A page contains only a part of the sessions. The next search no longer finds the ended ones.
        loop {
            let snapshot = self.store().snapshot();
            let found = with_key(&snapshot, AUTH_SESSIONS, SESSION_BY_USER, &user_key(user, client))?;
            if found.is_empty() {
                return Ok(());
            }
            for document in found {
                self.end_session(&read(&document)?.value)?;
            }
        }
    }

    /// Returns the ID token of a session, or `None` if the client did not ask for the scope `openid`.
    ///
    /// # Errors
    ///
    /// `server_error`. The log contains the reason.
    pub(crate) fn id_token(
        &self,
        session: &Session,
        nonce: Option<&str>,
    ) -> Result<Option<String>, OAuthError> {
        if session.granted.iter().all(|scope| scope != "openid") {
            return Ok(None);
        }
        let now = self.now();
        let mut claims = json!({
            "iss": self.issuer(),
            "sub": session.user,
            "aud": [session.client],
            "azp": session.client,
            "exp": now + issue::ID_TOKEN_SECONDS,
            "iat": now,
            "auth_time": session.logged_in
        });
        if let Some(nonce) = nonce {
            claims["nonce"] = json!(nonce);
        }
        self.add_email(&mut claims, session)?;
        let opened = self.open_for_request()?;
        Ok(Some(opened.keys.current().sign(own::IDENTITY, &claims)?))
    }

    /// Returns the claims about the user of a session that the client may read, or `None` if there is no such user.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub(crate) fn user_info(&self, session: &str) -> Result<Option<Value>, ApiError> {
        let Some(found) = self::session(&self.store().snapshot(), session)? else { return Ok(None) };
        let mut claims = json!({"sub": found.value.user});
        Ok(self.add_email(&mut claims, &found.value)?.then_some(claims))
    }

    /// Adds the email address of the user if the client may read it. Returns whether the user exists.
    fn add_email(&self, claims: &mut Value, session: &Session) -> Result<bool, ApiError> {
        let user = users::user(&self.store().snapshot(), &session.user)?;
        if let Some(user) = user.as_ref().filter(|_| session.granted.iter().any(|scope| scope == "email")) {
            claims["email"] = json!(user.email);
            claims["email_verified"] = json!(user.email_verified);
        }
        Ok(user.is_some())
    }
}
