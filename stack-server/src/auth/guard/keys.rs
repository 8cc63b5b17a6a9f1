//! The keys of an issuer: fetched when they are first needed, again after a while and when a token names one that
//! is not there, and never oftener than the limits allow.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
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
    /// The RSA key of an entry that may be used for RS256 signatures; others are passed over.
    fn of(entry: &Value) -> Option<Self> {
        let is_or_absent = |name: &str, wanted: &str| entry.get(name).is_none_or(|value| value == wanted);
        if entry["kty"] != "RSA" || !is_or_absent("use", "sig") || !is_or_absent("alg", "RS256") {
            return None;
        }
        let number = |name: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(entry[name].as_str()?.trim_end_matches('=')).ok()?;
            // Some write a number with zeros before it.
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

/// Whether the key with this modulus and exponent signed a token. Keys of fewer than 2048 bits sign nothing.
pub(super) fn is_signed(token: &Token<'_>, modulus: &[u8], exponent: &[u8]) -> bool {
    let key = RsaPublicKeyComponents { n: modulus, e: exponent };
    key.verify(&RSA_PKCS1_2048_8192_SHA256, token.signed.as_bytes(), &token.signature).is_ok()
}

/// Keys as they were at one time. What was found good with them is as good as they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Epoch(Arc<EpochState>);

#[derive(Debug, Default)]
struct EpochState {
    has_ended: AtomicBool,
    /// Wakes those that wait for the end.
    told: Notify,
}

impl Epoch {
    /// Whether the keys are still those of the issuer.
    pub(crate) fn stands(&self) -> bool {
        !self.0.has_ended.load(Ordering::Acquire)
    }

    /// Says that they are no longer.
    pub(crate) fn end(&self) {
        self.0.has_ended.store(true, Ordering::Release);
        self.0.told.notify_waiters();
    }

    /// Waits until they are no longer.
    pub(crate) async fn ended(&self) {
        let mut told = pin!(self.0.told.notified());
        // Listens before it looks, so that it misses no end.
        told.as_mut().enable();
        if self.stands() {
            told.await;
        }
    }
}

/// The keys of one answer of an issuer.
#[derive(Debug, Default)]
struct KeySet {
    keys: Vec<Key>,
    epoch: Epoch,
}

impl KeySet {
    /// Reads a set of keys.
    ///
    /// # Errors
    ///
    /// If it is none, or holds no key that can be used, or two of one name; the text is for the log.
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

    /// Whether a key of this set signed the token: the one that it names, or if it names none, any.
    fn signed(&self, token: &Token<'_>) -> bool {
        let may = |key: &&Key| match (&token.key, &key.id) {
            (Some(wanted), Some(id)) => wanted == id,
            // A key without a name can be the one that is meant.
            _ => true,
        };
        self.keys.iter().filter(may).any(|key| key.signed(token))
    }
}

/// The known keys of an issuer.
#[derive(Debug, Default)]
struct Known {
    set: Arc<KeySet>,
    /// When they were last had from the issuer.
    fetched: Option<Instant>,
    /// When the issuer last gave none.
    failed: Option<Instant>,
}

/// The keys of an issuer.
#[derive(Clone)]
pub(crate) struct Keys(Arc<Shared>);

struct Shared {
    issuer: String,
    url: Url,
    known: Mutex<Known>,
    /// When the issuer was last asked. A thread holds this lock while it asks.
    asked: tokio::sync::Mutex<Option<Instant>>,
    /// Whether somebody refreshes the keys for all.
    is_refreshing: AtomicBool,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keys").field(&self.0.issuer).finish()
    }
}

/// A refresh for all, until it is dropped.
struct Refreshing(Keys);

impl Drop for Refreshing {
    fn drop(&mut self) {
        self.0.0.is_refreshing.store(false, Ordering::Release);
    }
}

impl Keys {
    /// Those of the issuer of this name at this address; nothing is fetched yet.
    pub(crate) fn of_issuer(issuer: &str, url: &Url) -> Self {
        Self(Arc::new(Shared {
            issuer: issuer.to_owned(),
            url: url.clone(),
            known: Mutex::default(),
            asked: tokio::sync::Mutex::new(None),
            is_refreshing: AtomicBool::new(false),
        }))
    }

    /// Checks the signature of a token. If the keys at hand did not sign it, the issuer is asked once more: it may
    /// have a new one.
    pub(crate) async fn check(&self, token: &Token<'_>) -> Option<Epoch> {
        let arrived = Instant::now();
        let (set, age) = self.known();
        if age.is_some_and(|age| age < KEYS_KEPT) && set.signed(token) {
            self.keep_fresh().await;
            if set.epoch.stands() {
                return Some(set.epoch.clone());
            }
        }
        self.refresh(arrived).await;
        let (set, age) = self.known();
        (age.is_some_and(|age| age < KEYS_KEPT) && set.signed(token)).then(|| set.epoch.clone())
    }

    /// Asks the issuer again before its keys are a minute old, while the caller goes on. Of older keys nobody knows whether
    /// they were withdrawn, so the caller then waits for the answer. If the issuer gives none, that happens once a minute.
    pub(crate) async fn keep_fresh(&self) {
        let (age, failed) = {
            let known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
            (known.fetched.map(|at| at.elapsed()), known.failed.map(|at| at.elapsed()))
        };
        let Some(age) = age.filter(|age| *age >= KEYS_FRESH / 2) else { return };
        let must_wait = age >= KEYS_FRESH && failed.is_none_or(|ago| ago >= KEYS_FRESH);
        if self.0.is_refreshing.swap(true, Ordering::AcqRel) {
            if must_wait {
                // Who refreshes holds it.
                let _ = tokio::time::timeout(KEYS_WAIT, self.0.asked.lock()).await;
            }
            return;
        }
        let (refreshing, arrived) = (Refreshing(self.clone()), Instant::now());
        let refresh = tokio::spawn(async move { refreshing.0.refresh(arrived).await });
        if must_wait {
            // The refresh goes on if it takes longer.
            let _ = tokio::time::timeout(KEYS_WAIT, refresh).await;
        }
    }

    fn known(&self) -> (Arc<KeySet>, Option<Duration>) {
        let known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        (known.set.clone(), known.fetched.map(|at| at.elapsed()))
    }

    /// Asks the issuer, unless somebody has done so since `wanted`. Between two questions there is a pause, for which
    /// those wait that come too early: a token may be signed with a key that is newer than the last answer.
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
                    *known = Known::default();
                }
            }
        }
    }

    /// The issuer's keys, by its discovery document.
    async fn ask(&self) -> Result<KeySet, AnswerError> {
        let discovery = discover(&self.0.url, &self.0.issuer).await?;
        let address = discovery.address("jwks_uri", &self.0.url)?;
        KeySet::parse(&fetch::get(&address).await?).map_err(|error| address.wrong(error))
    }
}

#[cfg(test)]
impl Keys {
    /// Makes the keys older than they are.
    pub(super) fn age(&self, by: Duration) {
        let mut known = self.0.known.lock().expect("no panic");
        known.fetched = known.fetched.and_then(|at| at.checked_sub(by));
        known.failed = known.failed.and_then(|at| at.checked_sub(by));
    }

    /// Waits until nobody asks the issuer.
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
        let found = found.expect("one key");
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
