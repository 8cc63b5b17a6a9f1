//! In-memory set of the tags of all clients' secrets.
//!
//! A lookup in this set refuses wrong secrets, with the same work for every client, whether it exists or not. For a
//! secret in the set, the stored client decides.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ledger_store::{ReadError, Snapshot};

use crate::auth::keys::vault::{Tag, Use, Vault};
use crate::auth::resources::client::{Client, Secret};
use crate::auth::resources::clients;
use crate::limits::{CLIENT_SECRETS_MAX, CLIENTS_MAX};

#[derive(Default)]
struct SecretTables {
    /// Tags of secrets, possibly including deleted ones.
    tags: HashSet<Tag>,
    /// Ids of clients without secrets, possibly including deleted clients.
    public: HashSet<String>,
}

impl SecretTables {
    fn of(snapshot: &Snapshot) -> Result<Self, ReadError> {
        let mut known = Self::default();
        for client in clients::clients(snapshot)? {
            known.tags.extend(client.secrets.iter().map(|secret| secret.tag));
            if client.public {
                known.public.insert(client.id);
            }
        }
        Ok(known)
    }
}

/// The secrets of a store's clients.
pub(crate) struct KnownSecrets(Mutex<SecretTables>);

impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownSecrets").finish_non_exhaustive()
    }
}

impl KnownSecrets {
    /// Reads the secrets of all clients.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub(crate) fn of(snapshot: &Snapshot) -> Result<Self, ReadError> {
        Ok(Self(Mutex::new(SecretTables::of(snapshot)?)))
    }

    fn lock(&self) -> MutexGuard<'_, SecretTables> {
        // Each entry is inserted in one step, so the sets are consistent even if a thread panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client that was created or changed.
    pub(crate) fn add_client(&self, client: &Client) {
        let mut known = self.lock();
        if client.public {
            known.public.insert(client.id.clone());
        }
    }

    /// Adds a secret of a client.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub(crate) fn add_secret(&self, secret: &Secret, snapshot: &Snapshot) -> Result<(), ReadError> {
        let mut known = self.lock();
        if known.tags.len() >= CLIENTS_MAX * CLIENT_SECRETS_MAX {
            // Most of the tags belong to deleted secrets, so read the set again.
            *known = SecretTables::of(snapshot)?;
        }
        known.tags.insert(secret.tag);
        Ok(())
    }

    /// Returns whether a client with this secret, or without one, may exist. If this returns `true`, the stored client
    /// decides.
    pub(crate) fn may_be_right(&self, vault: &Vault, id: &str, secret: Option<&str>) -> bool {
        let tag = vault.tag(Use::ClientSecret, secret.unwrap_or_default().as_bytes());
        let known = self.lock();
        known.tags.contains(&tag) | known.public.contains(id)
    }
}

#[cfg(test)]
mod tests {
    use ledger_core::Metadata;
    use ledger_store::Store;

    use super::*;
    use crate::auth::keys::master::{KeySource, MasterKey};
    use crate::auth::resources::clients::Draft;

    #[test]
    fn only_known_secrets_lead_to_a_client() {
        let store = Store::in_memory();
        let key = KeySource::Given(MasterKey::random().expect("random bytes"));
        let vault = Vault::open(&store, &key).expect("a vault");
        let draft = |public| Draft { name: "shop".into(), public, ..Draft::default() };
        let shop = clients::create(&store, &draft(false)).expect("the client can be created");
        let (_, before) =
            clients::add_secret(&store, &vault, &shop.id, "first", &Metadata::EMPTY).expect("a secret");
        let known = KnownSecrets::of(&store.snapshot()).expect("the store can be read");
        let may = |id: &str, secret| known.may_be_right(&vault, id, secret);
        assert!(may(&shop.id, Some(&before)) && may("nosuch", Some(&before)), "the stored client decides");
        assert!(!may(&shop.id, Some("wrong")) && !may(&shop.id, Some("")) && !may(&shop.id, None));
        let (secret, after) =
            clients::add_secret(&store, &vault, &shop.id, "second", &Metadata::EMPTY).expect("a secret");
        assert!(!may(&shop.id, Some(&after)));
        known.add_secret(&secret, &store.snapshot()).expect("the store can be read");
        assert!(may(&shop.id, Some(&after)));
        let page = clients::create(&store, &draft(true)).expect("the client can be created");
        assert!(!may(&page.id, None));
        known.add_client(&page);
        assert!(may(&page.id, None));
    }
}
