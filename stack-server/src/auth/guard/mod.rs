//! The check of a request's token against the scope of its route.
//!
//! The server verifies a token once with the keys of its issuer ([`keys`]). Until the token expires, the server
//! recognizes it by its digest, and on the same connection by its text (`last_token`). Every failure results in the
//! same empty 401, so that the response does not reveal the reason.

pub(crate) mod error;
pub(crate) mod fetch;
pub(crate) mod fixed_keys;
pub(crate) mod keys;
mod last_token;
pub(crate) mod own;
#[cfg(test)]
mod tests;
pub(crate) mod token;
mod token_cache;
mod verified_token;

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
use token::Token;
use token_cache::{Digest, TokenCache};
use verified_token::Rights;
pub(crate) use verified_token::VerifiedToken;

/// The accepted issuers, audiences and scopes of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthSettings {
    /// The issuers, as their tokens name them. These are also the addresses of their discovery documents.
    pub issuers: Vec<String>,
    /// The accepted audiences in tokens of the issuers; if empty, every audience is accepted. Tokens of this server's
    /// own authorization server are not checked, because they name their client.
    pub audiences: Vec<String>,
    /// True if the scopes of tokens are checked.
    pub check_scopes: bool,
    /// The part of the ledger's scopes before the colon.
    pub service: String,
    /// True if tokens of this server's own authorization server are accepted.
    pub own: bool,
    /// True if scopes are checked on the management routes of the authorization server. This is a separate setting,
    /// because existing clients of this API use these routes with tokens without scopes.
    pub check_management_scopes: bool,
}

/// The decision about a request.
pub(crate) enum Admission {
    /// The route needs no token.
    Open,
    /// The token of the request allows it.
    By(VerifiedToken),
    /// The request has no token that allows it.
    Refused,
}

/// An issuer whose tokens are accepted.
struct Issuer {
    /// The `iss` of its tokens.
    name: String,
    keys: Keys,
}

/// Checks tokens.
pub(crate) struct Guard {
    issuers: Vec<Arc<Issuer>>,
    /// The store whose clock determines when tokens expire.
    store: Store,
    own: Option<Arc<Authority>>,
    audiences: Vec<String>,
    /// The required scopes of each service.
    rules: Vec<Rule>,
    cache: TokenCache,
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
    /// Creates a guard with these settings. It fetches the keys of the issuers when it first needs them. The clock of
    /// the store determines when tokens expire. If the guard accepts tokens of the server's own authorization server,
    /// this function opens the authorization server.
    ///
    /// # Errors
    ///
    /// Fails if an issuer is not an `http` or `https` address, if the settings accept no tokens, or if the
    /// authorization server cannot be opened. The error is for the operator.
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
                Service::Payments => (service.scope_prefix(), settings.check_scopes),
                Service::Auth => (service.scope_prefix(), settings.check_management_scopes),
            };
            Rule { service, is_checked, read: format!("{word}:read"), write: format!("{word}:write") }
        });
        Ok(Self {
            issuers,
            store: store.clone(),
            own,
            audiences: settings.audiences.clone(),
            rules: rules.into(),
            cache: TokenCache::default(),
        })
    }

    /// Returns the scopes that allow a route of a service: a token needs one of them. Returns none if the scopes of the
    /// service are not checked.
    pub(crate) fn accepted_scopes(&self, service: Service, scope: Scope) -> Vec<&str> {
        let rule = self.rules.iter().find(|rule| rule.service == service && rule.is_checked);
        match (rule, scope) {
            (None, _) | (_, Scope::Open) => vec![],
            (Some(rule), Scope::Read) => vec![&rule.read, &rule.write],
            (Some(rule), Scope::Write) => vec![&rule.write],
        }
    }

    /// Decides whether a request with these headers may use a route of this service that requires this scope. `last` is
    /// the last token of the connection.
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
        match self
            .verified_token_of(headers, last)
            .await
            .filter(|verified| verified.rights.allow(service, scope))
        {
            Some(verified) => Admission::By(verified),
            None => Admission::Refused,
        }
    }

    /// Returns whether the token of a request allows reading from a service.
    pub(crate) async fn may_read(&self, headers: &HeaderMap, service: Service) -> bool {
        matches!(self.admit(headers, &LastToken::default(), service, Scope::Read).await, Admission::By(_))
    }

    async fn verified_token_of(&self, headers: &HeaderMap, last: &LastToken) -> Option<VerifiedToken> {
        let token = bearer_of(headers)?;
        let now = clock::now(&self.store);
        if let Some(verified) = last.verified(token, now)
            && verified.is_valid(now).await
        {
            return Some(verified);
        }
        let digest = Digest::of(token);
        let verified = match self.cache.get(&digest, now) {
            Some(verified) if verified.is_valid(now).await => verified,
            _ => self.verify(str::from_utf8(token).ok()?, digest, now).await?,
        };
        last.keep(token, &verified);
        Some(verified)
    }

    /// Verifies a token that is not known yet.
    async fn verify(&self, text: &str, digest: Digest, now: u64) -> Option<VerifiedToken> {
        let token = Token::parse(text)?;
        if !token.is_valid_at(now) {
            return None;
        }
        let (epoch, keys) = match &self.own {
            Some(own) if own.issuer() == token.issuer => (own::verify_except_dates(own, &token)?, None),
            _ => {
                let issuer = self.issuers.iter().find(|issuer| issuer.name == token.issuer)?;
                if !self.is_for_us(&token) {
                    return None;
                }
                (issuer.keys.check(&token).await?, Some(issuer.keys.clone()))
            }
        };
        let verified = VerifiedToken { rights: self.rights(&token), expires: token.expires, epoch, keys };
        self.cache.put(digest, verified.clone(), now);
        Some(verified)
    }

    /// Returns whether the audience of a token is accepted.
    fn is_for_us(&self, token: &Token<'_>) -> bool {
        let is_named = |name: &&str| self.audiences.iter().any(|audience| audience == name);
        self.audiences.is_empty() || token.audience().iter().any(is_named)
    }

    /// Returns the rights that the scopes of a token grant.
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

/// Returns the bearer token of a request, if the request has exactly one and it is not too long.
pub(crate) fn bearer_of(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let value = value.as_bytes();
    let token = value.strip_prefix(b"Bearer ").or_else(|| value.strip_prefix(b"bearer "))?;
    (!token.is_empty() && token.len() <= TOKEN_BYTES_MAX).then_some(token)
}

/// Returns whether a text has the form of a token.
#[cfg(feature = "testing")]
pub(crate) fn reads_as_token(text: &str) -> bool {
    let token = Token::parse(text);
    if let Some(token) = &token {
        // The signature covers all of the text before it.
        assert!(text.strip_prefix(token.signed).is_some_and(|rest| rest.starts_with('.')), "{text}");
        assert_eq!(Token::parse(text).as_ref(), Some(token), "{text}");
    }
    token.is_some()
}
