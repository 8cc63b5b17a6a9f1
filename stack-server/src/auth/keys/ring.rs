//! The signing keys in use: the current key, the next one, and retired keys whose tokens have not expired yet.

use std::time::Duration;

use ledger_core::Timestamp;
use ledger_store::{
    DocumentChange, DocumentRange, DocumentRejection, Expected, ReadError, Store, WriteError,
};

use crate::auth::keys::error::OpenKeysError;
use crate::auth::keys::signing::{SigningKey, State};
use crate::auth::keys::vault::Vault;
use crate::collections::AUTH_KEYS;
use crate::documents::{Versioned, delete};
use crate::http::error::ApiError;
use crate::limits::{RETIRED_KEY_KEPT, SIGNING_KEYS_MAX};

/// The signing keys of a snapshot of the store.
#[derive(Debug)]
pub(crate) struct KeyRing {
    keys: Vec<Versioned<SigningKey>>,
}

/// Returns the time that is `by` after `at`, at most the last representable time.
fn after(at: Timestamp, by: Duration) -> Timestamp {
    let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(at.as_micros().saturating_add(micros))
}

impl KeyRing {
    fn read(store: &Store, vault: &Vault) -> Result<Self, ReadError> {
        let stored = store.snapshot().documents(AUTH_KEYS, &DocumentRange::default())?;
        let keys = stored.iter().map(|document| SigningKey::read(vault, document));
        Ok(Self { keys: keys.collect::<Result<_, _>>()? })
    }

    /// Reads the keys of a store, and creates a missing current or next key.
    ///
    /// # Errors
    ///
    /// Fails if keys cannot be read, created or stored.
    pub(crate) fn open(store: &Store, vault: &Vault) -> Result<Self, OpenKeysError> {
        loop {
            let ring = Self::read(store, vault)?;
            let missing: Vec<State> = [State::Current, State::Next]
                .into_iter()
                .filter(|state| ring.keys.iter().all(|key| key.value.state != *state))
                .collect();
            if missing.is_empty() {
                return Ok(ring);
            }
            let now = store.now();
            let mut changes = Vec::new();
            for state in missing {
                let key = SigningKey::generate(vault, state, now)?;
                changes.push(key.put(state, now, None, Expected::Absent));
            }
            store.change_documents(changes)?;
        }
    }

    /// Returns the current key, which signs.
    pub(crate) fn current(&self) -> &SigningKey {
        let current = self.keys.iter().find(|key| key.value.state == State::Current);
        &current.or(self.keys.first()).expect("opening a ring creates missing keys").value
    }

    /// Returns all keys that may have signed a valid token.
    pub(crate) fn all(&self) -> impl Iterator<Item = &SigningKey> {
        self.keys.iter().map(|key| &key.value)
    }

    /// Returns the key with this id.
    pub(crate) fn get(&self, id: &str) -> Option<&SigningKey> {
        self.all().find(|key| key.id == id)
    }

    /// Returns whether the current key has signed for this period or longer.
    pub(crate) fn is_due(&self, period: Duration, now: Timestamp) -> bool {
        after(self.current().since, period) <= now
    }

    /// Makes the next key the current one and creates another next key. Tokens of the previous key remain valid.
    ///
    /// # Errors
    ///
    /// Fails if there are too many keys, if a key cannot be created, or if the store refuses the change. The keys are
    /// then unchanged.
    pub(crate) fn rotate(&self, store: &Store, vault: &Vault) -> Result<(), ApiError> {
        if self.keys.len() >= SIGNING_KEYS_MAX {
            return Err(ApiError::validation(format!(
                "there are {SIGNING_KEYS_MAX} keys already: wait until tokens of the older ones have expired"
            )));
        }
        let now = store.now();
        let fresh = SigningKey::generate(vault, State::Next, now)?;
        let mut changes = vec![fresh.put(State::Next, now, None, Expected::Absent)];
        for Versioned { value: key, version } in &self.keys {
            let expected = Expected::Version(*version);
            match key.state {
                State::Next => changes.push(key.put(State::Current, now, None, expected)),
                State::Current => {
                    let until = after(now, RETIRED_KEY_KEPT);
                    changes.push(key.put(State::Retired, now, Some(until), expected));
                }
                State::Retired => {}
            }
        }
        commit(store, changes)
    }

    /// Removes a key, so that its tokens are refused. If it is the current key, the next key replaces it. Returns
    /// whether the key existed.
    ///
    /// # Errors
    ///
    /// Fails like [`KeyRing::rotate`].
    pub(crate) fn revoke(&self, store: &Store, vault: &Vault, id: &str) -> Result<bool, ApiError> {
        let Some(revoked) = self.keys.iter().find(|key| key.value.id == id) else { return Ok(false) };
        let mut changes =
            vec![delete(AUTH_KEYS, revoked.value.id.as_bytes(), Expected::Version(revoked.version))];
        let now = store.now();
        if revoked.value.state == State::Current {
            for next in self.keys.iter().filter(|key| key.value.state == State::Next) {
                let expected = Expected::Version(next.version);
                changes.push(next.value.put(State::Current, now, None, expected));
            }
        }
        if revoked.value.state != State::Retired {
            let fresh = SigningKey::generate(vault, State::Next, now)?;
            changes.push(fresh.put(State::Next, now, None, Expected::Absent));
        }
        commit(store, changes).map(|()| true)
    }

    /// Removes the retired keys whose last tokens have expired. Returns whether there were any.
    ///
    /// # Errors
    ///
    /// Fails if the store refuses the change.
    pub(crate) fn sweep(&self, store: &Store, now: Timestamp) -> Result<bool, ApiError> {
        let expired = self.keys.iter().filter(|key| key.value.until.is_some_and(|until| until <= now));
        let changes: Vec<DocumentChange> = expired
            .map(|key| delete(AUTH_KEYS, key.value.id.as_bytes(), Expected::Version(key.version)))
            .collect();
        if changes.is_empty() {
            return Ok(false);
        }
        commit(store, changes).map(|()| true)
    }
}

/// Commits changes of keys. Succeeds without a change if another thread has changed the same keys.
fn commit(store: &Store, changes: Vec<DocumentChange>) -> Result<(), ApiError> {
    match store.change_documents(changes) {
        // Another thread did the same concurrently.
        Ok(_) | Err(WriteError::Document(DocumentRejection::Changed { .. })) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::keys::master::{KeySource, MasterKey};

    fn vault(store: &Store) -> Vault {
        let source = KeySource::Given(MasterKey::parse(&"07".repeat(32)).expect("the key is well formed"));
        Vault::open(store, &source).expect("a vault")
    }

    #[test]
    fn rotates_through_keys_that_were_published_before() {
        let store = Store::in_memory();
        let vault = vault(&store);
        let first = KeyRing::open(&store, &vault).expect("the ring can be opened");
        assert_eq!(first.all().count(), 2);
        let signer = first.current().id.clone();
        let next = first.all().find(|key| key.id != signer).expect("a second key").id.clone();
        first.rotate(&store, &vault).expect("a rotation");
        first.rotate(&store, &vault).expect("a repeated rotation changes nothing");
        let second = KeyRing::open(&store, &vault).expect("three keys");
        assert_eq!(second.current().id, next);
        assert_eq!(second.get(&signer).map(|key| key.state), Some(State::Retired));
        assert_eq!(second.all().count(), 3);
        assert!(!second.sweep(&store, store.now()).expect("the sweep finishes"), "its tokens are good yet");
        assert!(second.sweep(&store, after(store.now(), RETIRED_KEY_KEPT)).expect("the sweep finishes"));
        let third = KeyRing::open(&store, &vault).expect("the ring can be opened");
        assert_eq!((third.get(&signer).is_none(), third.all().count()), (true, 2));
    }

    #[test]
    fn replaces_a_revoked_key_at_once() {
        let store = Store::in_memory();
        let vault = vault(&store);
        let first = KeyRing::open(&store, &vault).expect("the ring can be opened");
        let signer = first.current().id.clone();
        assert_eq!(first.revoke(&store, &vault, "nosuch"), Ok(false));
        assert_eq!(first.revoke(&store, &vault, &signer), Ok(true));
        let second = KeyRing::open(&store, &vault).expect("the ring can be opened");
        assert_eq!((second.get(&signer).is_none(), second.all().count()), (true, 2));
    }

    #[test]
    fn knows_when_a_rotation_is_due() {
        let store = Store::in_memory();
        let ring = KeyRing::open(&store, &vault(&store)).expect("the ring can be opened");
        let period = Duration::from_hours(1);
        assert!(!ring.is_due(period, store.now()));
        assert!(ring.is_due(period, after(store.now(), period)));
    }
}
