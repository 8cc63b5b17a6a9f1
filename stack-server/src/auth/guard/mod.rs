//! The check of a request's token against the scope of its route.
//!
//! A token is checked with the keys of its issuer ([`keys`]), once: until it expires it is known by its digest,
//! and on its connection by its text (`last_token`).
//! Every failure is the same empty 401, so that nobody learns from the answer what was wrong.

pub(crate) mod error;
pub(crate) mod fetch;
pub(crate) mod fixed_keys;
pub(crate) mod keys;
mod last_token;
pub(crate) mod own;
mod pass;
#[cfg(test)]
mod tests;
pub(crate) mod token;
mod verified;

use std::sync::Arc;

use hyper::header::{AUTHORIZATION, HeaderMap};
use ledger_store::Store;

use crate::auth::authority::Authority;
use crate::auth::clock;
use crate::auth::{Scope, Service};
use crate::limits::TOKEN_BYTES_MAX;

use error::{GuardError, UrlError};
use fetch::Url;
use keys::Keys;
pub(crate) use last_token::LastToken;
pub(crate) use pass::Pass;
use pass::Rights;
use token::Token;
use verified::{Digest, Verified};

/// Whose tokens are taken, and what they must allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthSettings {
    /// The issuers, as their tokens name them: the addresses where their discovery documents are.
    pub issuers: Vec<String>,
    /// Tokens of the issuers must be made for one of these; none is for anybody. Those of this server's own authorization
    /// server are made for a client.
    pub audiences: Vec<String>,
    /// Whether scopes are looked at.
    pub check_scopes: bool,
    /// The word before the colon of a scope of the ledger.
    pub service: String,
    /// Whether tokens of this server's own authorization server are taken.
    pub own: bool,
    /// Whether scopes are looked at on the management routes of the authorization server. Clients of this API manage
    /// clients with tokens without scopes, so it is a choice of its own.
    pub check_management_scopes: bool,
}

/// The decision about a request.
pub(crate) enum Admission {
    /// The route needs no token.
    Open,
    /// The token of the request allows it.
    By(Pass),
    /// No token allows it.
    Refused,
}

/// Someone whose tokens are taken.
struct Issuer {
    /// The `iss` of its tokens.
    name: String,
    keys: Keys,
}

/// Checks tokens.
pub(crate) struct Guard {
    issuers: Vec<Arc<Issuer>>,
    /// Its clock tells when tokens expire.
    store: Store,
    own: Option<Arc<Authority>>,
    audiences: Vec<String>,
    /// The scopes that tokens must have, by service.
    rules: Vec<Rule>,
    verified: Verified,
}

/// The scopes of a service.
struct Rule {
    service: Service,
    is_checked: bool,
    read: String,
    write: String,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let issuers: Vec<_> = self.issuers.iter().map(|issuer| &issuer.name).collect();
        f.debug_struct("Guard").field("issuers", &issuers).field("own", &self.own).finish_non_exhaustive()
    }
}

impl Guard {
    /// A guard that asks the issuers of these settings for their keys, when it first needs them. The store's clock tells
    /// when tokens expire. If it takes tokens of
    /// the server's own authorization server, that is opened here.
    ///
    /// # Errors
    ///
    /// If an issuer is no `http` or `https` address, nobody's tokens are taken, or the authorization server cannot be
    /// opened; the text is for a person.
    pub(crate) fn new(
        settings: &AuthSettings,
        store: &Store,
        authority: Option<&Arc<Authority>>,
    ) -> Result<Self, GuardError> {
        let issuers = settings.issuers.iter().map(|name| {
            let keys = Keys::of_issuer(name, &Url::parse(name)?);
            Ok(Arc::new(Issuer { name: name.clone(), keys }))
        });
        let issuers = issuers.collect::<Result<Vec<_>, UrlError>>()?;
        let own = match authority {
            _ if !settings.own => None,
            Some(authority) => {
                authority.open()?;
                Some(authority.clone())
            }
            None => return Err(GuardError::NoAuthority),
        };
        if issuers.is_empty() && own.is_none() {
            return Err(GuardError::NoIssuer);
        }
        let rules = Service::ALL.map(|service| {
            let (word, is_checked) = match service {
                Service::Ledger => (settings.service.as_str(), settings.check_scopes),
                Service::Payments => (service.word(), settings.check_scopes),
                Service::Auth => (service.word(), settings.check_management_scopes),
            };
            Rule { service, is_checked, read: format!("{word}:read"), write: format!("{word}:write") }
        });
        Ok(Self {
            issuers,
            store: store.clone(),
            own,
            audiences: settings.audiences.clone(),
            rules: rules.into(),
            verified: Verified::default(),
        })
    }

    /// The scopes of which a route of a service wants one; none where scopes are not looked at.
    pub(crate) fn accepted_scopes(&self, service: Service, scope: Scope) -> Vec<&str> {
        let rule = self.rules.iter().find(|rule| rule.service == service && rule.is_checked);
        match (rule, scope) {
            (None, _) | (_, Scope::Open) => vec![],
            (Some(rule), Scope::Read) => vec![&rule.read, &rule.write],
            (Some(rule), Scope::Write) => vec![&rule.write],
        }
    }

    /// Decides whether a request with these headers may use a route of a service that demands this scope. `last` is that
    /// of its connection.
    pub(crate) async fn admit(
        &self,
        headers: &HeaderMap,
        last: &LastToken,
        service: Service,
        scope: Scope,
    ) -> Admission {
        if scope == Scope::Open {
            return Admission::Open;
        }
        match self.pass_of(headers, last).await.filter(|pass| pass.rights.allow(service, scope)) {
            Some(pass) => Admission::By(pass),
            None => Admission::Refused,
        }
    }

    /// Whether the token of a request allows to read from a service.
    pub(crate) async fn may_read(&self, headers: &HeaderMap, service: Service) -> bool {
        matches!(self.admit(headers, &LastToken::default(), service, Scope::Read).await, Admission::By(_))
    }

    async fn pass_of(&self, headers: &HeaderMap, last: &LastToken) -> Option<Pass> {
        let token = bearer_of(headers)?;
        let now = clock::now(&self.store);
        if let Some(pass) = last.pass(token, now)
            && pass.is_good(now).await
        {
            return Some(pass);
        }
        let digest = Digest::of(token);
        let pass = match self.verified.get(&digest, now) {
            Some(pass) if pass.is_good(now).await => pass,
            _ => self.verify(str::from_utf8(token).ok()?, digest, now).await?,
        };
        last.keep(token, &pass);
        Some(pass)
    }

    /// Checks a token that is not known yet.
    async fn verify(&self, text: &str, digest: Digest, now: u64) -> Option<Pass> {
        let token = Token::parse(text)?;
        if !token.is_good_at(now) {
            return None;
        }
        let (epoch, keys) = match &self.own {
            Some(own) if own.issuer() == token.issuer => (own::check(own, &token)?, None),
            _ => {
                let issuer = self.issuers.iter().find(|issuer| issuer.name == token.issuer)?;
                if !self.is_for_us(&token) {
                    return None;
                }
                (issuer.keys.check(&token).await?, Some(issuer.keys.clone()))
            }
        };
        let pass = Pass { rights: self.rights(&token), expires: token.expires, epoch, keys };
        self.verified.put(digest, pass.clone(), now);
        Some(pass)
    }

    /// Whether a token was made for one of the audiences that the operator named, if he named any.
    fn is_for_us(&self, token: &Token<'_>) -> bool {
        let is_named = |name: &&str| self.audiences.iter().any(|audience| audience == name);
        self.audiences.is_empty() || token.audience().iter().any(is_named)
    }

    /// The rights that a token's scopes give.
    fn rights(&self, token: &Token<'_>) -> Rights {
        let has = |wanted: &str| token.scopes.iter().any(|scope| scope == wanted);
        let mut rights = Rights::default();
        for rule in &self.rules {
            let write = !rule.is_checked || has(&rule.write);
            let bit = Rights::bit(rule.service);
            rights.write |= if write { bit } else { 0 };
            rights.read |= if write || has(&rule.read) { bit } else { 0 };
        }
        rights
    }
}

/// The one bearer token of a request.
pub(crate) fn bearer_of(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let value = value.as_bytes();
    let token = value.strip_prefix(b"Bearer ").or_else(|| value.strip_prefix(b"bearer "))?;
    (!token.is_empty() && token.len() <= TOKEN_BYTES_MAX).then_some(token)
}

/// Whether a text reads as a token.
#[cfg(feature = "testing")]
pub(crate) fn reads_as_token(text: &str) -> bool {
    let token = Token::parse(text);
    if let Some(token) = &token {
        // What is checked is all of the text but the signature.
        assert!(text.strip_prefix(token.signed).is_some_and(|rest| rest.starts_with('.')), "{text}");
        assert_eq!(Token::parse(text).as_ref(), Some(token), "{text}");
    }
    token.is_some()
}
