//! The client behind a request to a protocol endpoint.

use std::fmt;

use ledger_store::{ReadError, Snapshot};

use crate::auth::resources::client::{Client, ScopeRef};
use crate::auth::resources::scopes::Scopes;
use crate::auth::static_clients::StaticClient;

/// The credentials of the client that sent a request. `Debug` hides the secret.
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

/// An authenticated client: its secret was checked, or it is public and has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) id: String,
    /// Date of the client's creation, in microseconds since the epoch; 0 for a static client.
    pub(crate) created: i64,
    pub(crate) public: bool,
    pub(crate) trusted: bool,
    pub(crate) redirect_uris: Vec<String>,
    pub(crate) post_logout_redirect_uris: Vec<String>,
    scopes: Vec<ScopeRef>,
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
    /// Returns those scopes of a space-separated list that the client may ask for, and drops the others.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub(crate) fn granted(&self, snapshot: &Snapshot, requested: &str) -> Result<Vec<String>, ReadError> {
        self.selected(snapshot, requested, |_| false)
    }

    /// Returns the granted scopes like [`Caller::granted`], for the login of a user. Every client may ask for the
    /// scopes that describe the user; it must hold all other scopes.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
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
        // Read the stored scopes only if the request names any: most requests do not.
        if wanted.iter().any(|name| !is_free(name)) {
            let allowed = Scopes::of(snapshot)?.closure(&self.scopes);
            wanted.retain(|name| is_free(name) || allowed.contains(*name));
        }
        Ok(wanted.into_iter().map(str::to_owned).collect())
    }

    /// Returns whether this client has the given id and date of creation.
    pub(crate) fn is(&self, id: &str, created: i64) -> bool {
        self.id == id && self.created == created
    }
}
