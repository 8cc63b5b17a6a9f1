//! The result of a successful verification of a token: its rights and its validity.

use std::time::{Duration, Instant};

use crate::auth::guard::keys::{Epoch, Keys};
use crate::auth::{Scope, Service};
use crate::limits::KEYS_FRESH;

/// The services that a token may read and write, as one bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rights {
    pub(super) read: u8,
    pub(super) write: u8,
}

impl Rights {
    pub(super) const fn bit(service: Service) -> u8 {
        1 << service as u8
    }

    pub(super) const fn allow(self, service: Service, scope: Scope) -> bool {
        match scope {
            Scope::Open => true,
            Scope::Read => self.read & Self::bit(service) != 0,
            Scope::Write => self.write & Self::bit(service) != 0,
        }
    }
}

/// A verified token.
#[derive(Clone, Debug)]
pub(crate) struct VerifiedToken {
    pub(super) rights: Rights,
    /// Expiry, in seconds since the Unix epoch. At that second the token is no longer valid.
    pub(super) expires: u64,
    /// Ends when the key that signed the token is withdrawn, or the token is revoked.
    pub(super) epoch: Epoch,
    /// The keys of the issuer; `None` for tokens that this server issued.
    pub(super) keys: Option<Keys>,
}

impl VerifiedToken {
    /// Returns whether the token is still valid. Fetches the keys of its issuer again if they are older than a minute.
    pub(super) async fn is_valid(&self, now: u64) -> bool {
        if let Some(keys) = &self.keys {
            keys.keep_fresh().await;
        }
        now < self.expires && self.epoch.is_current()
    }

    /// Waits until the token expires, its key is withdrawn or it is revoked. `now` is in seconds since the Unix epoch.
    pub(crate) async fn ended(&self, now: u64) {
        let began = Instant::now();
        let lasts = Duration::from_secs(self.expires.saturating_sub(now));
        while self.epoch.is_current() {
            let left = lasts.saturating_sub(began.elapsed());
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(left.min(KEYS_FRESH)) => {}
                () = self.epoch.ended() => return,
            }
            if let Some(keys) = &self.keys {
                keys.keep_fresh().await;
            }
        }
    }
}
