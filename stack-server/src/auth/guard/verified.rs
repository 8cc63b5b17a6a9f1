//! Cache of verified tokens until they expire.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::auth::guard::pass::Pass;
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
pub(super) struct Verified(Mutex<HashMap<Digest, Pass>>);

impl Verified {
    /// Returns the pass of a cached token if it has not expired and its epoch has not ended.
    pub(super) fn get(&self, digest: &Digest, now: u64) -> Option<Pass> {
        let known = self.lock();
        let pass = known.get(digest)?;
        (pass.expires > now && pass.epoch.is_current()).then(|| pass.clone())
    }

    /// Stores a verified token. If the cache is full, it drops the tokens that are no longer valid; if that frees
    /// nothing, it drops all.
    pub(super) fn put(&self, digest: Digest, pass: Pass, now: u64) {
        let mut known = self.lock();
        if known.len() >= VERIFIED_TOKENS_MAX {
            known.retain(|_, pass| pass.expires > now && pass.epoch.is_current());
            if known.len() >= VERIFIED_TOKENS_MAX {
                known.clear();
            }
        }
        known.insert(digest, pass);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Pass>> {
        // Each entry is inserted in one step, so the map is consistent even if a thread panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::guard::keys::Epoch;
    use crate::auth::guard::pass::Rights;

    const RIGHTS: Rights = Rights { read: 1, write: 0 };

    fn pass(expires: u64, epoch: &Epoch) -> Pass {
        Pass { rights: RIGHTS, expires, epoch: epoch.clone(), keys: None }
    }

    #[test]
    fn forgets_expired_tokens_and_old_key_epochs() {
        let verified = Verified::default();
        let (digest, epoch) = (Digest::of(b"a"), Epoch::default());
        verified.put(digest, pass(10, &epoch), 0);
        let get = |digest: &Digest, now| verified.get(digest, now).map(|pass| pass.rights);
        assert_eq!(get(&digest, 9), Some(RIGHTS));
        assert_eq!(get(&digest, 10), None);
        assert_eq!(get(&Digest::of(b"b"), 9), None);
        epoch.end();
        assert_eq!(get(&digest, 9), None);
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for() {
        let verified = Verified::default();
        let epoch = Epoch::default();
        for number in 0..=VERIFIED_TOKENS_MAX {
            verified.put(Digest::of(number.to_string().as_bytes()), pass(u64::MAX, &epoch), 0);
            assert!(verified.lock().len() <= VERIFIED_TOKENS_MAX);
        }
        let last = Digest::of(VERIFIED_TOKENS_MAX.to_string().as_bytes());
        assert_eq!(verified.get(&last, 0).map(|pass| pass.rights), Some(RIGHTS));
    }
}
