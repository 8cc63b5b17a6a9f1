//! Cache of verified tokens until they expire.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::auth::guard::verified_token::VerifiedToken;
use crate::limits::VERIFIED_TOKENS_MAX;

/// Digest of a token. Nobody can construct a second token with the same digest, and a reader of this memory finds no
/// tokens in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Digest([u8; 32]);

impl Digest {
    pub(super) fn of(token: &[u8]) -> Self {
        Self(*blake3::hash(token).as_bytes())
    }
}

/// The verified tokens by digest.
#[derive(Debug, Default)]
pub(super) struct TokenCache(Mutex<HashMap<Digest, VerifiedToken>>);

impl TokenCache {
    /// Returns the pass of a cached token if it has not expired and its epoch has not ended.
    pub(super) fn get(&self, digest: &Digest, now: u64) -> Option<VerifiedToken> {
        let known = self.lock();
        let verified = known.get(digest)?;
        (verified.expires > now && verified.epoch.is_current()).then(|| verified.clone())
    }

    /// Stores a verified token. If the cache is full, it drops the tokens that are no longer valid; if that frees
    /// nothing, it drops all.
    pub(super) fn put(&self, digest: Digest, verified: VerifiedToken, now: u64) {
        let mut known = self.lock();
        if known.len() >= VERIFIED_TOKENS_MAX {
            known.retain(|_, verified| verified.expires > now && verified.epoch.is_current());
            if known.len() >= VERIFIED_TOKENS_MAX {
                known.clear();
            }
        }
        known.insert(digest, verified);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, VerifiedToken>> {
        // Each entry is inserted in one step, so the map is consistent even if a thread panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::guard::keys::Epoch;
    use crate::auth::guard::verified_token::Rights;

    const RIGHTS: Rights = Rights { read: 1, write: 0 };

    fn verified(expires: u64, epoch: &Epoch) -> VerifiedToken {
        VerifiedToken { rights: RIGHTS, expires, epoch: epoch.clone(), keys: None }
    }

    #[test]
    fn forgets_expired_tokens_and_old_key_epochs() {
        let cache = TokenCache::default();
        let (digest, epoch) = (Digest::of(b"a"), Epoch::default());
        cache.put(digest, verified(10, &epoch), 0);
        let get = |digest: &Digest, now| cache.get(digest, now).map(|verified| verified.rights);
        assert_eq!(get(&digest, 9), Some(RIGHTS));
        assert_eq!(get(&digest, 10), None);
        assert_eq!(get(&Digest::of(b"b"), 9), None);
        epoch.end();
        assert_eq!(get(&digest, 9), None);
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for() {
        let cache = TokenCache::default();
        let epoch = Epoch::default();
        for number in 0..=VERIFIED_TOKENS_MAX {
            cache.put(Digest::of(number.to_string().as_bytes()), verified(u64::MAX, &epoch), 0);
            assert!(cache.lock().len() <= VERIFIED_TOKENS_MAX);
        }
        let last = Digest::of(VERIFIED_TOKENS_MAX.to_string().as_bytes());
        assert_eq!(cache.get(&last, 0).map(|verified| verified.rights), Some(RIGHTS));
    }
}
