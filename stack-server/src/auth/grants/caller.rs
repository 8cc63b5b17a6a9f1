//! The client behind a request to a protocol endpoint.

use std::fmt;

use ledger_store::{ReadError, Snapshot};

use crate::auth::resources::client::{Client, Held};
use crate::auth::resources::scopes::Scopes;
use crate::auth::static_clients::StaticClient;

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
    scopes: Vec<Held>,
}

impl From<Client> for Caller {
    fn from(client: Client) -> Self {
        Self {
            id: client.id,
            created: client.created_at.as_micros(),
            public: client.public,
            trusted: client.trusted,
            redirect_uris: client.redirect_uris,
            post_logout_redirect_uris: client.post_logout_redirect_uris,
            scopes: client.scopes,
        }
    }
}

impl From<&StaticClient> for Caller {
    fn from(client: &StaticClient) -> Self {
        Self {
            id: client.id.clone(),
            created: 0,
            public: client.public,
            trusted: client.trusted,
            redirect_uris: client.redirect_uris.clone(),
            post_logout_redirect_uris: client.post_logout_redirect_uris.clone(),
            scopes: client.scopes.clone(),
        }
    }
}

impl Caller {
    /// Those of the names in a text, divided by spaces, that the client may ask for; the others are dropped.
    ///
    /// # Errors
    ///
    /// Those of any read.
    pub(crate) fn granted(&self, snapshot: &Snapshot, requested: &str) -> Result<Vec<String>, ReadError> {
        self.selected(snapshot, requested, |_| false)
    }

    /// As [`Caller::granted`], for the login of a user. Scopes about the user are the user's, who logs in; the client
    /// must hold everything else.
    ///
    /// # Errors
    ///
    /// Those of any read.
    pub(crate) fn granted_at_login(
        &self,
        snapshot: &Snapshot,
        requested: &str,
    ) -> Result<Vec<String>, ReadError> {
        self.selected(snapshot, requested, |name| OF_LOGIN.contains(&name))
    }

    fn selected(
        &self,
        snapshot: &Snapshot,
        requested: &str,
        is_free: impl Fn(&str) -> bool,
    ) -> Result<Vec<String>, ReadError> {
        let mut wanted: Vec<&str> = Vec::new();
        for name in requested.split(' ').filter(|name| !name.is_empty()) {
            if !wanted.contains(&name) {
                wanted.push(name);
            }
        }
        // Most requests name no scope, and need not read all of them.
        if wanted.iter().any(|name| !is_free(name)) {
            let allowed = Scopes::of(snapshot)?.closure(&self.scopes);
            wanted.retain(|name| is_free(name) || allowed.contains(*name));
        }
        Ok(wanted.into_iter().map(str::to_owned).collect())
    }

    /// Whether this is the client with an id that was created at a time.
    pub(crate) fn is(&self, id: &str, created: i64) -> bool {
        self.id == id && self.created == created
    }
}
