//! The signing keys in use: one that signs, one that will, and those whose tokens have not expired yet.

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

/// The keys of a store at one moment.
#[derive(Debug)]
pub(crate) struct KeyRing {
    keys: Vec<Versioned<SigningKey>>,
}

/// The time after another, at most the last that there is.
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

    /// The keys of a store. Those that are missing are made: one that signs, and one that will.
    ///
    /// # Errors
    ///
    /// If keys cannot be read, made or stored.
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

    /// The key that signs.
    pub(crate) fn current(&self) -> &SigningKey {
        let current = self.keys.iter().find(|key| key.value.state == State::Current);
        &current.or(self.keys.first()).expect("a ring is opened with keys").value
    }

    /// All of them that may have signed a token that is good.
    pub(crate) fn all(&self) -> impl Iterator<Item = &SigningKey> {
        self.keys.iter().map(|key| &key.value)
    }

    /// The key with an id.
    pub(crate) fn get(&self, id: &str) -> Option<&SigningKey> {
        self.all().find(|key| key.id == id)
    }

    /// Whether the current key has signed for longer than a period.
    pub(crate) fn is_due(&self, period: Duration, now: Timestamp) -> bool {
        after(self.current().since, period) <= now
    }

    /// Lets the next key sign from now on. What the current one signed stays good.
    ///
    /// # Errors
    ///
    /// If a key cannot be made, or the store refuses. The keys are as they were then.
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

    /// Removes a key: what it signed is refused from now on. If it is the one that signs, the next one does.
    ///
    /// # Errors
    ///
    /// As [`KeyRing::rotate`].
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

    /// Removes keys whose last token has expired; whether there were any.
    ///
    /// # Errors
    ///
    /// If the store refuses.
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

/// Makes changes of keys, unless somebody else has changed the same.
fn commit(store: &Store, changes: Vec<DocumentChange>) -> Result<(), ApiError> {
    match store.change_documents(changes) {
        // Somebody else did what was asked for.
        Ok(_) | Err(WriteError::Document(DocumentRejection::Changed { .. })) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::keys::master::{KeySource, MasterKey};

    fn vault(store: &Store) -> Vault {
        let source = KeySource::Given(MasterKey::parse(&"07".repeat(32)).expect("a key"));
        Vault::open(store, &source).expect("a vault")
    }

    #[test]
    fn rotates_through_keys_that_were_published_before() {
        let store = Store::in_memory();
        let vault = vault(&store);
        let first = KeyRing::open(&store, &vault).expect("two keys");
        assert_eq!(first.all().count(), 2);
        let signer = first.current().id.clone();
        let next = first.all().find(|key| key.id != signer).expect("a second key").id.clone();
        first.rotate(&store, &vault).expect("it rotates");
        first.rotate(&store, &vault).expect("the same again is no error");
        let second = KeyRing::open(&store, &vault).expect("three keys");
        assert_eq!(second.current().id, next);
        assert_eq!(second.get(&signer).map(|key| key.state), Some(State::Retired));
        assert_eq!(second.all().count(), 3);
        assert!(!second.sweep(&store, store.now()).expect("swept"), "its tokens are good yet");
        assert!(second.sweep(&store, after(store.now(), RETIRED_KEY_KEPT)).expect("swept"));
        let third = KeyRing::open(&store, &vault).expect("two keys");
        assert_eq!((third.get(&signer).is_none(), third.all().count()), (true, 2));
    }

    #[test]
    fn replaces_a_revoked_key_at_once() {
        let store = Store::in_memory();
        let vault = vault(&store);
        let first = KeyRing::open(&store, &vault).expect("two keys");
        let signer = first.current().id.clone();
        assert_eq!(first.revoke(&store, &vault, "nosuch"), Ok(false));
        assert_eq!(first.revoke(&store, &vault, &signer), Ok(true));
        let second = KeyRing::open(&store, &vault).expect("two keys");
        assert_eq!((second.get(&signer).is_none(), second.all().count()), (true, 2));
    }

    #[test]
    fn knows_when_a_rotation_is_due() {
        let store = Store::in_memory();
        let ring = KeyRing::open(&store, &vault(&store)).expect("keys");
        let period = Duration::from_hours(1);
        assert!(!ring.is_due(period, store.now()));
        assert!(ring.is_due(period, after(store.now(), period)));
    }
}
