//! Commands on the clients and keys of a stopped store.

use std::path::Path;
use std::sync::Arc;

use ledger_core::Metadata;
use ledger_store::Store;
use serde_json::{Value, json};

use crate::auth::authority::{Authority, AuthorizationSettings};
use crate::auth::keys::master::KeySource;
use crate::auth::resources::clients::{self, Draft};
use crate::auth::resources::scopes::Scopes;
use crate::cli::auth::error::LocalError;
use crate::cli::directory;

/// A store that is not open in a server.
pub(super) struct Local {
    store: Store,
    authority: Arc<Authority>,
}

impl Local {
    /// Opens a data directory, and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be opened, for example because a running server has it open. Fails if other users may
    /// write into the directory, unless sharing is allowed.
    pub(super) fn open(
        data: &Path,
        key: KeySource,
        address: &str,
        is_sharing_allowed: bool,
    ) -> Result<Self, LocalError> {
        directory::check(data, is_sharing_allowed)?;
        let store = Store::open(data).map_err(|source| LocalError::Open { path: data.to_owned(), source })?;
        let authority = Arc::new(Authority::new(&store, AuthorizationSettings::new(key), address)?);
        authority.open()?;
        Ok(Self { store, authority })
    }

    /// Closes the store. All confirmed changes are durable even without this.
    pub(super) fn close(self) -> Result<(), LocalError> {
        drop(self.authority);
        Ok(self.store.close()?)
    }

    pub(super) fn create(&self, draft: &Value) -> Result<String, LocalError> {
        let text = |name: &str| draft[name].as_str().unwrap_or_default().into();
        let list = |name: &str| {
            let items = draft[name].as_array().map(Vec::as_slice).unwrap_or_default();
            items.iter().filter_map(|item| item.as_str().map(Into::into)).collect()
        };
        let draft = Draft {
            id: text("id"),
            name: text("name"),
            description: text("description"),
            public: draft["public"] == true,
            trusted: draft["trusted"] == true,
            redirect_uris: list("redirectUris"),
            post_logout_redirect_uris: vec![],
            metadata: Metadata::EMPTY,
            scopes: Some(list("scopes")),
        };
        Ok(clients::create(&self.store, &draft)?.id)
    }

    /// Adds a secret to a client. If `replaces` is set, removes the other secrets.
    pub(super) fn add_secret(&self, id: &str, replaces: bool) -> Result<String, LocalError> {
        let vault = self.authority.open()?.vault;
        let before = clients::client(&self.store.snapshot(), id)?;
        let (_, clear) = clients::add_secret(&self.store, &vault, id, "command line", &Metadata::EMPTY)?;
        for secret in before.iter().flat_map(|client| &client.value.secrets).filter(|_| replaces) {
            clients::delete_secret(&self.store, id, &secret.id)?;
        }
        Ok(clear)
    }

    pub(super) fn list(&self) -> Result<Vec<Value>, LocalError> {
        let snapshot = self.store.snapshot();
        let scopes = Scopes::of(&snapshot)?;
        let clients = clients::clients(&snapshot)?;
        let shown = clients.iter().map(|client| {
            json!({
                "id": client.id,
                "name": client.name,
                "public": client.public,
                "trusted": client.trusted,
                "scopes": scopes.names(&client.scopes),
                "secrets": client.secrets.iter().map(|secret| &secret.last_digits).collect::<Vec<_>>()
            })
        });
        Ok(shown.collect())
    }

    pub(super) fn delete(&self, id: &str) -> Result<(), LocalError> {
        if clients::client(&self.store.snapshot(), id)?.is_none() {
            return Err(LocalError::NoClient(id.to_owned()));
        }
        Ok(clients::delete(&self.store, id)?)
    }

    pub(super) fn rotate_keys(&self) -> Result<(), LocalError> {
        Ok(self.authority.rotate()?)
    }
}
