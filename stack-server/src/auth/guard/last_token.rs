//! The last valid token of a connection.
//!
//! A client sends the same token with all requests of a connection. A lookup in the cache of verified tokens needs the
//! token's digest and a lock that all connections share. Comparing the token with the last one takes a tenth of the
//! time of the digest, and waits for no other connection.

use std::sync::{Mutex, MutexGuard, PoisonError};

use constant_time_eq::constant_time_eq;

use crate::auth::guard::verified_token::VerifiedToken;
use crate::limits::LAST_TOKEN_BYTES_MAX;

/// The last valid token that was sent on a connection.
#[derive(Default)]
pub(crate) struct LastToken(Mutex<Option<(Box<[u8]>, VerifiedToken)>>);

impl LastToken {
    /// Returns the pass of the token if it is the last one and still valid. `now` is in seconds since the Unix epoch.
    pub(super) fn verified(&self, token: &[u8], now: u64) -> Option<VerifiedToken> {
        let last = self.lock();
        let (text, verified) = last.as_ref()?;
        // Clients of a proxy share a connection, so the time of the comparison must not reveal how similar two tokens
        // are.
        (constant_time_eq(text, token) && verified.expires > now && verified.epoch.is_current())
            .then(|| verified.clone())
    }

    /// Stores a token and its pass, unless the token is long.
    pub(super) fn keep(&self, token: &[u8], verified: &VerifiedToken) {
        if token.len() <= LAST_TOKEN_BYTES_MAX {
            *self.lock() = Some((token.into(), verified.clone()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Box<[u8]>, VerifiedToken)>> {
        // The value is replaced in one step, so it is consistent even if a thread panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::guard::keys::Epoch;
    use crate::auth::guard::verified_token::Rights;

    #[test]
    fn only_the_last_good_token_is_known() {
        let last = LastToken::default();
        let epoch = Epoch::default();
        let rights = Rights { read: 1, write: 0 };
        let verified = VerifiedToken { rights, expires: 10, epoch: epoch.clone(), keys: None };
        let is_known =
            |token: &[u8], now| last.verified(token, now).is_some_and(|verified| verified.rights == rights);
        assert!(!is_known(b"first", 9));
        last.keep(b"first", &verified);
        assert!(is_known(b"first", 9) && !is_known(b"first", 10));
        for other in [b"firsT".as_slice(), b"first.", b"firs", b"", b"Bearer first"] {
            assert!(!is_known(other, 9), "{other:?}");
        }
        last.keep(b"second", &verified);
        assert!(is_known(b"second", 9) && !is_known(b"first", 9));
        last.keep(&[b'a'; LAST_TOKEN_BYTES_MAX + 1], &verified);
        assert!(is_known(b"second", 9));
        epoch.end();
        assert!(!is_known(b"second", 9));
    }
}
