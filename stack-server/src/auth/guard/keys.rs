//! The public keys of an issuer. The server fetches them when it first needs them, refreshes them regularly, and also
//! asks again when the known keys did not sign a token. A minimum pause between requests protects the issuer.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use tokio::sync::Notify;

use crate::auth::guard::error::{AnswerError, AnswerFault};
use crate::auth::guard::fetch::{self, Url, discover};
use crate::auth::guard::token::Token;
use crate::limits::{ISSUER_KEYS_MAX, KEYS_FRESH, KEYS_KEPT, KEYS_PAUSE, KEYS_WAIT};
use crate::log::{self, Level};

/// A public key.
#[derive(Debug, PartialEq, Eq)]
struct Key {
    id: Option<String>,
    modulus: Vec<u8>,
    exponent: Vec<u8>,
}

impl Key {
    /// Returns the RSA key of an entry if it is for RS256 signatures, or `None` for all other entries.
    fn of(entry: &Value) -> Option<Self> {
        let is_or_absent = |name: &str, wanted: &str| entry.get(name).is_none_or(|value| value == wanted);
        if entry["kty"] != "RSA" || !is_or_absent("use", "sig") || !is_or_absent("alg", "RS256") {
            return None;
        }
        let number = |name: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(entry[name].as_str()?.trim_end_matches('=')).ok()?;
            // Some issuers write leading zeros.
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            Some(bytes[zeros..].to_vec()).filter(|bytes| !bytes.is_empty())
        };
        Some(Self {
            id: entry["kid"].as_str().map(str::to_owned),
            modulus: number("n")?,
            exponent: number("e")?,
        })
    }

    fn signed(&self, token: &Token<'_>) -> bool {
        is_signed(token, &self.modulus, &self.exponent)
    }
}

/// Returns whether the key with this modulus and exponent signed a token. Refuses keys with fewer than 2048 bits.
pub(super) fn is_signed(token: &Token<'_>, modulus: &[u8], exponent: &[u8]) -> bool {
    let key = RsaPublicKeyComponents { n: modulus, e: exponent };
    key.verify(&RSA_PKCS1_2048_8192_SHA256, token.signed.as_bytes(), &token.signature).is_ok()
}

/// A period without a change of keys and without a revocation. Tokens that were verified in an epoch are valid until
/// the epoch ends, and must then be verified again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Epoch(Arc<EpochState>);

#[derive(Debug, Default)]
struct EpochState {
    has_ended: AtomicBool,
    /// Wakes the tasks that wait for the end.
    told: Notify,
}

impl Epoch {
    /// Returns whether the epoch has not ended yet.
    pub(crate) fn is_current(&self) -> bool {
        !self.0.has_ended.load(Ordering::Acquire)
    }

    /// Ends the epoch, and wakes the tasks that wait for the end.
    pub(crate) fn end(&self) {
        self.0.has_ended.store(true, Ordering::Release);
        self.0.told.notify_waiters();
    }

    /// Waits until the epoch ends.
    pub(crate) async fn ended(&self) {
        let mut told = pin!(self.0.told.notified());
        // Register before the check, so that an end between the two is not missed.
        told.as_mut().enable();
        if self.is_current() {
            told.await;
        }
    }
}

/// The keys in one response of an issuer.
#[derive(Debug, Default)]
struct KeySet {
    keys: Vec<Key>,
    epoch: Epoch,
}

impl KeySet {
    /// Parses a JSON set of keys.
    ///
    /// # Errors
    ///
    /// Fails if the text is not a set of keys, or if it contains no usable key, too many keys, or two keys with the
    /// same id. The error is for the log.
    fn parse(text: &[u8]) -> Result<Self, AnswerFault> {
        let document: Value = serde_json::from_slice(text)?;
        let entries = document["keys"].as_array().ok_or(AnswerFault::Missing("list of keys"))?;
        let keys: Vec<Key> = entries.iter().filter_map(Key::of).collect();
        if keys.is_empty() || keys.len() > ISSUER_KEYS_MAX {
            return Err(AnswerFault::KeyCount(keys.len()));
        }
        let mut ids: Vec<_> = keys.iter().filter_map(|key| key.id.as_deref()).collect();
        ids.sort_unstable();
        if ids.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(AnswerFault::SameKeyName);
        }
        Ok(Self { keys, epoch: Epoch::default() })
    }

    /// Returns whether a key of this set signed the token. If the token names a key, keys with another id do not count.
    fn signed(&self, token: &Token<'_>) -> bool {
        let may = |key: &&Key| match (&token.key, &key.id) {
            (Some(wanted), Some(id)) => wanted == id,
            // The token names no key, or the key has no id and may be the named one.
            _ => true,
        };
        self.keys.iter().filter(may).any(|key| key.signed(token))
    }
}

/// The known keys of an issuer.
#[derive(Debug, Default)]
struct CachedKeys {
    set: Arc<KeySet>,
    /// Time of the last successful response.
    fetched: Option<Instant>,
    /// Time of the last failure; `None` after a successful response.
    failed: Option<Instant>,
}

/// The keys of an issuer. Clones share the known keys.
#[derive(Clone)]
pub(crate) struct Keys(Arc<Shared>);

struct Shared {
    issuer: String,
    url: Url,
    known: Mutex<CachedKeys>,
    /// Time of the last request to the issuer. A task holds this lock during the request.
    asked: tokio::sync::Mutex<Option<Instant>>,
    /// True if a background refresh is running.
    is_refreshing: AtomicBool,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keys").field(&self.0.issuer).finish()
    }
}

/// A background refresh. Dropping it allows the next one.
struct Refreshing(Keys);

impl Drop for Refreshing {
    fn drop(&mut self) {
        self.0.0.is_refreshing.store(false, Ordering::Release);
    }
}

impl Keys {
    /// Creates the keys of the issuer with this name and address. Nothing is fetched yet.
    pub(crate) fn of_issuer(issuer: &str, url: &Url) -> Self {
        Self(Arc::new(Shared {
            issuer: issuer.to_owned(),
            url: url.clone(),
            known: Mutex::default(),
            asked: tokio::sync::Mutex::new(None),
            is_refreshing: AtomicBool::new(false),
        }))
    }

    /// Checks the signature of a token, and returns the epoch of the keys. If none of the known keys signed the token,
    /// asks the issuer once more, because it may have a new key.
    pub(crate) async fn check(&self, token: &Token<'_>) -> Option<Epoch> {
        let arrived = Instant::now();
        let (set, age) = self.known();
        if age.is_some_and(|age| age < KEYS_KEPT) && set.signed(token) {
            self.keep_fresh().await;
            if set.epoch.is_current() {
                return Some(set.epoch.clone());
            }
        }
        self.refresh(arrived).await;
        let (set, age) = self.known();
        (age.is_some_and(|age| age < KEYS_KEPT) && set.signed(token)).then(|| set.epoch.clone())
    }

    /// Refreshes the keys in the background when they are at least half a minute old. Keys that are older than a minute
    /// may have been withdrawn, so the caller then waits for the response. While the issuer fails, callers wait at most
    /// once a minute.
    pub(crate) async fn keep_fresh(&self) {
        let (age, failed) = {
            let known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
            (known.fetched.map(|at| at.elapsed()), known.failed.map(|at| at.elapsed()))
        };
        let Some(age) = age.filter(|age| *age >= KEYS_FRESH / 2) else { return };
        let must_wait = age >= KEYS_FRESH && failed.is_none_or(|ago| ago >= KEYS_FRESH);
        if self.0.is_refreshing.swap(true, Ordering::AcqRel) {
            if must_wait {
                // The refreshing task holds this lock.
                let _ = tokio::time::timeout(KEYS_WAIT, self.0.asked.lock()).await;
            }
            return;
        }
        let (refreshing, arrived) = (Refreshing(self.clone()), Instant::now());
        let refresh = tokio::spawn(async move { refreshing.0.refresh(arrived).await });
        if must_wait {
            // After this timeout the refresh continues in the background.
            let _ = tokio::time::timeout(KEYS_WAIT, refresh).await;
        }
    }

    fn known(&self) -> (Arc<KeySet>, Option<Duration>) {
        let known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        (known.set.clone(), known.fetched.map(|at| at.elapsed()))
    }

    /// Asks the issuer, unless another task has asked since `wanted`. There is a minimum pause between two requests.
    /// Early callers wait for it, because their tokens may be signed with a key that is newer than the last response.
    async fn refresh(&self, wanted: Instant) {
        let mut asked = self.0.asked.lock().await;
        if let Some(last) = *asked {
            if last >= wanted {
                return;
            }
            tokio::time::sleep(KEYS_PAUSE.saturating_sub(last.elapsed())).await;
        }
        *asked = Some(Instant::now());
        match self.ask().await {
            Ok(set) => {
                let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
                (known.fetched, known.failed) = (Some(Instant::now()), None);
                if known.set.keys != set.keys {
                    known.set.epoch.end();
                    known.set = Arc::new(set);
                }
            }
            Err(reason) => {
                log::event(Level::Error, "keys", &[("issuer", &self.0.issuer), ("reason", &reason)]);
                let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
                known.failed = Some(Instant::now());
                if known.fetched.is_some_and(|at| at.elapsed() >= KEYS_KEPT) {
                    known.set.epoch.end();
                    *known = CachedKeys::default();
                }
            }
        }
    }

    /// Fetches the issuer's keys from the address in its discovery document.
    async fn ask(&self) -> Result<KeySet, AnswerError> {
        let discovery = discover(&self.0.url, &self.0.issuer).await?;
        let address = discovery.address("jwks_uri", &self.0.url)?;
        KeySet::parse(&fetch::get(&address).await?).map_err(|error| address.wrong(error))
    }
}

#[cfg(test)]
impl Keys {
    /// Increases the age of the keys.
    pub(super) fn age(&self, by: Duration) {
        let mut known = self.0.known.lock().expect("no thread panicked with the lock");
        known.fetched = known.fetched.and_then(|at| at.checked_sub(by));
        known.failed = known.failed.and_then(|at| at.checked_sub(by));
    }

    /// Waits until no request to the issuer is running.
    pub(super) async fn settled(&self) {
        drop(self.0.asked.lock().await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_cannot_be_used_are_passed_over() {
        let set = |keys: &str| KeySet::parse(format!(r#"{{"keys":[{keys}]}}"#).as_bytes());
        let rsa = r#"{"kty":"RSA","kid":"a","n":"AAQ","e":"AQAB"}"#;
        let found = set(&format!(
            r#"{{"kty":"EC","kid":"e"}},{{"kty":"RSA","use":"enc","n":"AQ","e":"AQAB"}},
               {{"kty":"RSA","alg":"PS256","n":"AQ","e":"AQAB"}},{{"kty":"RSA","n":"!","e":"AQAB"}},
               {{"kty":"oct","k":"AQ"}},7,{rsa}"#
        ));
        let found = found.expect("the set can be read");
        assert_eq!(found.keys.len(), 1);
        assert_eq!((found.keys[0].id.as_deref(), found.keys[0].modulus.as_slice()), (Some("a"), &[4_u8][..]));
        for keys in [
            "",
            r#"{"kty":"EC"}"#,
            &format!("{rsa},{rsa}"),
            &vec![r#"{"kty":"RSA","n":"AQ","e":"AQAB"}"#; 101].join(","),
        ] {
            assert!(set(keys).is_err(), "{keys}");
        }
        assert!(KeySet::parse(b"{}").is_err() && KeySet::parse(b"x").is_err());
    }
}
