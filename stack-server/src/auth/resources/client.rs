//! A client with its secrets.

use ledger_core::{Metadata, Timestamp};

use crate::auth::keys::vault::{Tag, Use, Vault, same_secret};

/// A scope that a client holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScopeRef {
    /// Held by name.
    Name(String),
    /// Held by the id of a scope, whose label may change. Ignored while no scope has this id.
    Link(String),
}

/// A secret of a client, without its clear text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) last_digits: String,
    pub(crate) tag: Tag,
    pub(crate) metadata: Metadata,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secret").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

/// A client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    /// A public client has no secret.
    pub(crate) public: bool,
    /// A trusted client may introspect tokens of others.
    pub(crate) trusted: bool,
    pub(crate) redirect_uris: Vec<String>,
    pub(crate) post_logout_redirect_uris: Vec<String>,
    pub(crate) metadata: Metadata,
    pub(crate) scopes: Vec<ScopeRef>,
    pub(crate) secrets: Vec<Secret>,
    pub(crate) created_at: Timestamp,
}

impl Client {
    /// Returns whether a text is one of the client's secrets. Compares all secrets, so that the time does not tell
    /// which one matches.
    pub(crate) fn has_secret(&self, vault: &Vault, clear: &str) -> bool {
        let tag = vault.tag(Use::ClientSecret, clear.as_bytes());
        self.secrets.iter().fold(false, |found, secret| same_secret(&secret.tag, &tag) | found)
    }
}
