//! The client behind a request to a protocol endpoint.

use std::collections::BTreeSet;
use std::fmt;

use ledger_store::Snapshot;

use crate::auth::keys::vault::Vault;
use crate::auth::resources::client::{Client, waste_comparison};
use crate::auth::resources::clients;
use crate::auth::resources::scopes::Scopes;
use crate::auth::static_clients::StaticClient;
use crate::http::error::ApiError;

/// The credentials of a request's client. Their text shows no secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) id: String,
    pub(crate) secret: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Scopes that every client may ask for at a login.
const OF_LOGIN: [&str; 4] = ["openid", "email", "profile", "offline_access"];

/// A client whose secret was checked, or that has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) id: String,
    /// When it was created, in microseconds since the epoch; 0 for a client of the operator's file.
    pub(crate) created: i64,
    pub(crate) public: bool,
    pub(crate) trusted: bool,
    pub(crate) redirect_uris: Vec<String>,
    pub(crate) post_logout_redirect_uris: Vec<String>,
    /// The names of all scopes that it may ask for.
    pub(crate) allowed: BTreeSet<String>,
}

impl Caller {
    /// A stored client.
    ///
    /// # Errors
    ///
    /// Those of any read.
    pub(crate) fn stored(snapshot: &Snapshot, client: Client) -> Result<Self, ApiError> {
        Ok(Self {
            allowed: Scopes::of(snapshot)?.closure(&client.scopes),
            id: client.id,
            created: client.created_at.as_micros(),
            public: client.public,
            trusted: client.trusted,
            redirect_uris: client.redirect_uris,
            post_logout_redirect_uris: client.post_logout_redirect_uris,
        })
    }

    /// A client of the operator's file.
    ///
    /// # Errors
    ///
    /// Those of any read.
    pub(crate) fn fixed(snapshot: &Snapshot, client: &StaticClient) -> Result<Self, ApiError> {
        Ok(Self {
            allowed: Scopes::of(snapshot)?.closure(&client.scopes),
            id: client.id.clone(),
            created: 0,
            public: client.public,
            trusted: client.trusted,
            redirect_uris: client.redirect_uris.clone(),
            post_logout_redirect_uris: client.post_logout_redirect_uris.clone(),
        })
    }

    /// Those of the names in a text, divided by spaces, that the client may ask for; the others are dropped.
    pub(crate) fn granted(&self, requested: &str) -> Vec<String> {
        self.selected(requested, |_| false)
    }

    /// As [`Caller::granted`], for the login of a user. Scopes about the user are the user's, who logs in; the client
    /// must hold everything else.
    pub(crate) fn granted_at_login(&self, requested: &str) -> Vec<String> {
        self.selected(requested, |name| OF_LOGIN.contains(&name))
    }

    fn selected(&self, requested: &str, is_free: impl Fn(&str) -> bool) -> Vec<String> {
        let mut granted: Vec<String> = Vec::new();
        for name in requested.split(' ').filter(|name| is_free(name) || self.allowed.contains(*name)) {
            if granted.iter().all(|have| have != name) {
                granted.push(name.to_owned());
            }
        }
        granted
    }

    /// Whether this is the client with an id that was created at a time.
    pub(crate) fn is(&self, id: &str, created: i64) -> bool {
        self.id == id && self.created == created
    }
}

/// The result of a lookup by an id.
pub(crate) enum Found {
    Stored(Box<Client>),
    Nobody,
}

/// The stored client with an id, and whether a text is one of its secrets. An unknown client takes the same work.
///
/// # Errors
///
/// Those of any read.
pub(crate) fn look_up(
    snapshot: &Snapshot,
    vault: &Vault,
    credentials: &Credentials,
) -> Result<(Found, bool), ApiError> {
    let found = clients::client(snapshot, &credentials.id)?;
    let secret = credentials.secret.as_deref().unwrap_or_default();
    if let Some(client) = found {
        let is_right = client.value.has_secret(vault, secret) && credentials.secret.is_some();
        return Ok((Found::Stored(Box::new(client.value)), is_right));
    }
    waste_comparison(vault, secret);
    Ok((Found::Nobody, false))
}
