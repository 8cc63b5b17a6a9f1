//! Who may do what: the token of a request against the scope of its route.
//!
//! A token is checked with the keys of its issuer ([`keys`]), once: until it expires it is known by its digest.
//! Every failure is the same empty 401, so that nobody learns from the answer what was wrong.

mod fetch;
mod keys;
mod token;
mod verified;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use hyper::header::{AUTHORIZATION, HeaderMap};

use crate::limits::TOKEN_BYTES_MAX;
use crate::router::Scope;

use fetch::Url;
use keys::Keys;
use token::Token;
use verified::{Digest, Verified};

/// Whose tokens are taken, and what they must allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthSettings {
    /// The issuers, as their tokens name them: the addresses where their discovery documents are.
    pub issuers: Vec<String>,
    /// Whether scopes are looked at.
    pub check_scopes: bool,
    /// The word before the colon of a scope.
    pub service: String,
}

/// Refuses what cannot be an issuer.
///
/// # Errors
///
/// If it is no `http` or `https` address; the text is for a person.
pub(crate) fn check_issuer(name: &str) -> Result<(), String> {
    Url::parse(name).map(|_| ())
}

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rights {
    read: bool,
    write: bool,
}

impl Rights {
    const fn allow(self, scope: Scope) -> bool {
        match scope {
            Scope::Open => true,
            Scope::Read => self.read,
            Scope::Write => self.write,
        }
    }
}

/// Someone whose tokens are taken.
struct Issuer {
    /// What its tokens name as `iss`.
    name: String,
    keys: Keys,
}

/// Checks tokens.
pub(crate) struct Guard {
    issuers: Vec<Arc<Issuer>>,
    check_scopes: bool,
    read: String,
    write: String,
    verified: Verified,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let issuers: Vec<_> = self.issuers.iter().map(|issuer| &issuer.name).collect();
        f.debug_struct("Guard").field("issuers", &issuers).field("write", &self.write).finish_non_exhaustive()
    }
}

impl Guard {
    /// A guard that asks the issuers of these settings for their keys, when it first needs them.
    ///
    /// # Errors
    ///
    /// If an issuer is no `http` or `https` address; the text is for a person.
    pub(crate) fn new(settings: &AuthSettings) -> Result<Self, String> {
        let issuers = settings.issuers.iter().map(|name| {
            let keys = Keys::of_issuer(name, &Url::parse(name)?);
            Ok(Arc::new(Issuer { name: name.clone(), keys }))
        });
        let issuers = issuers.collect::<Result<Vec<_>, String>>()?;
        if issuers.is_empty() {
            return Err("tokens are asked for, but no issuer is named whose tokens they could be".to_owned());
        }
        Ok(Self {
            issuers,
            check_scopes: settings.check_scopes,
            read: format!("{}:read", settings.service),
            write: format!("{}:write", settings.service),
            verified: Verified::default(),
        })
    }

    /// The scopes of which a route wants one; none where scopes are not looked at.
    pub(crate) fn accepted_scopes(&self, scope: Scope) -> Vec<&str> {
        match scope {
            _ if !self.check_scopes => vec![],
            Scope::Open => vec![],
            Scope::Read => vec![&self.read, &self.write],
            Scope::Write => vec![&self.write],
        }
    }

    /// Whether a request with these headers may use a route of this scope.
    pub(crate) async fn allows(&self, headers: &HeaderMap, scope: Scope) -> bool {
        if scope == Scope::Open {
            return true;
        }
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return false };
        let Some(text) = value.to_str().ok().and_then(bearer) else { return false };
        let now = now();
        let digest = Digest::of(text);
        if let Some(rights) = self.verified.get(&digest, now) {
            return rights.allow(scope);
        }
        self.verify(text, digest, now).await.is_some_and(|rights| rights.allow(scope))
    }

    /// Checks a token that is not known yet.
    async fn verify(&self, text: &str, digest: Digest, now: u64) -> Option<Rights> {
        let token = Token::parse(text)?;
        let issuer = self.issuers.iter().find(|issuer| issuer.name == token.issuer)?;
        if token.expires <= now {
            return None;
        }
        let epoch = issuer.keys.check(&token).await?;
        let has = |wanted: &str| token.scopes.iter().any(|scope| scope == wanted);
        let write = !self.check_scopes || has(&self.write);
        let rights = Rights { read: write || has(&self.read), write };
        self.verified.put(digest, rights, token.expires, epoch);
        Some(rights)
    }
}

/// The token behind `Bearer `.
fn bearer(value: &str) -> Option<&str> {
    let text = value.strip_prefix("Bearer ").or_else(|| value.strip_prefix("bearer "))?;
    (!text.is_empty() && text.len() <= TOKEN_BYTES_MAX).then_some(text)
}

/// Seconds since the epoch. A clock before it makes every token expired in no way; such a machine has other worries.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}
