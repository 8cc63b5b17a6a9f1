//! The authorization server of a store: its issuer, vault and keys.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ledger_core::Timestamp;
use ledger_store::Store;
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::auth::clock;
use crate::auth::denylist;
use crate::auth::grants::provider::{Provider, ProviderSettings};
use crate::auth::guard::error::UrlError;
use crate::auth::guard::fetch::check_issuer;
use crate::auth::guard::keys::Epoch;
use crate::auth::keys::error::OpenKeysError;
use crate::auth::keys::master::KeySource;
use crate::auth::keys::ring::KeyRing;
use crate::auth::keys::vault::Vault;
use crate::auth::rate_limiter::RateLimiter;
use crate::auth::resources::known_secrets::KnownSecrets;
use crate::auth::static_clients::{HashError, StaticClient, StaticClients};
use crate::blocking;
use crate::http::error::ApiError;
use crate::limits::{
    LOGINS_PER_MINUTE, SIGNING_MAX, SIGNING_WAITING_MAX, SLOW_HASHES_MAX, SLOW_HASHES_WAITING_MAX,
};
use crate::log::{self, Level};
use crate::outbound::redacted;

/// The path of the authorization server. The URL of its issuer ends with this path.
pub(crate) const MOUNT: &str = "/api/auth";

/// The operator's settings of the authorization server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationSettings {
    /// The address by which clients reach this server, without a path. `None` means the address on which the server
    /// listens.
    pub public_url: Option<String>,
    /// The source of the key that encrypts private values.
    pub key: KeySource,
    /// How long a key signs before the next key replaces it.
    pub key_rotation: Duration,
    /// Clients of the configuration. They are not stored.
    pub clients: Vec<StaticClient>,
    /// Maximum number of wrong secrets per minute, for each address and for each client.
    pub wrong_secrets_per_minute: u32,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpAddr>,
    /// The provider through which people log in. If `None`, they cannot log in.
    pub provider: Option<ProviderSettings>,
}

impl AuthorizationSettings {
    /// Creates settings with this key, and defaults for everything else.
    pub fn new(key: KeySource) -> Self {
        Self {
            public_url: None,
            key,
            key_rotation: Duration::from_hours(30 * 24),
            clients: vec![],
            wrong_secrets_per_minute: 60,
            trusted_proxies: vec![],
            provider: None,
        }
    }
}

/// The reason why the settings of an authorization server are refused. The error is for the operator.
#[derive(Debug, Error)]
pub(crate) enum AuthorityError {
    #[error(transparent)]
    Address(#[from] UrlError),
    #[error(transparent)]
    Clients(#[from] HashError),
}

/// A limit of slow work: how much of it runs at the same time, and how much may wait.
#[derive(Debug)]
pub(crate) struct WorkLimit {
    running: Semaphore,
    /// One permit for each caller that runs or waits.
    admitted: Semaphore,
}

impl WorkLimit {
    fn new(running: usize, waiting: usize) -> Self {
        Self { running: Semaphore::new(running), admitted: Semaphore::new(running + waiting) }
    }

    /// Runs the work on a separate thread.
    ///
    /// # Errors
    ///
    /// 503 if too many callers already wait; 500 if the work panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let Ok(_admitted) = self.admitted.try_acquire() else {
            return Err(ApiError::busy("too many requests for tokens are waiting"));
        };
        let _running = self.running.acquire().await.expect("the semaphore is never closed");
        blocking::run(work).await.map_err(|panic| ApiError::fault(&panic.to_string()))
    }
}

/// The opened vault, the signing keys, and the set that recognises the secrets of all clients.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(crate) vault: Arc<Vault>,
    pub(crate) keys: Arc<KeyRing>,
    pub(crate) known: Arc<KnownSecrets>,
}

/// The authorization server of a store.
pub(crate) struct Authority {
    store: Store,
    issuer: String,
    settings: AuthorizationSettings,
    opened: Mutex<Option<Opened>>,
    /// The current epoch, which ends at the next revocation or change of keys.
    epoch: Mutex<Epoch>,
    /// A thread holds this lock while it changes the keys.
    changing: Mutex<()>,
    pub(crate) provider: Option<Provider>,
    /// The clients of the configuration.
    pub(crate) statics: StaticClients,
    /// Limits the wrong secrets per minute, for each address and for each client.
    pub(crate) rates: RateLimiter,
    /// Limits how many logins an address may start per minute. The store keeps a document for each login until it ends
    /// or expires.
    pub(crate) logins: RateLimiter,
    /// Limits work with the signing keys: opening them, and signing tokens.
    pub(crate) signing: WorkLimit,
    /// Limits the computation of slow hashes of secrets.
    pub(crate) hashing: WorkLimit,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

impl Authority {
    /// Creates the authorization server of a store. Nothing is opened or stored yet.
    ///
    /// # Errors
    ///
    /// Fails if the public address, the provider or a client is not valid. The error is for the operator.
    pub(crate) fn new(
        store: &Store,
        mut settings: AuthorizationSettings,
        listening: &str,
    ) -> Result<Self, AuthorityError> {
        let base = settings.public_url.as_deref().unwrap_or(listening).trim_end_matches('/');
        check_base(base)?;
        let issuer = format!("{base}{MOUNT}");
        let provider = settings.provider.take().map(Provider::new).transpose()?;
        let statics = StaticClients::new(std::mem::take(&mut settings.clients))?;
        Ok(Self {
            store: store.clone(),
            issuer,
            rates: RateLimiter::new(settings.wrong_secrets_per_minute),
            logins: RateLimiter::new(LOGINS_PER_MINUTE),
            settings,
            opened: Mutex::new(None),
            epoch: Mutex::default(),
            changing: Mutex::new(()),
            statics,
            provider,
            signing: WorkLimit::new(SIGNING_MAX, SIGNING_WAITING_MAX),
            hashing: WorkLimit::new(SLOW_HASHES_MAX, SLOW_HASHES_WAITING_MAX),
        })
    }

    /// Returns the issuer, which is the `iss` of the tokens.
    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the time in seconds since the Unix epoch. Tokens, codes and sessions expire by this clock.
    pub(crate) fn now(&self) -> u64 {
        clock::now(&self.store)
    }

    /// Opens the vault and the keys, and creates them if they are missing. This may take a while, because RSA keys
    /// consist of large primes.
    ///
    /// # Errors
    ///
    /// Fails if a file or a document cannot be used. The error is for the operator.
    pub(crate) fn open(&self) -> Result<Opened, OpenKeysError> {
        let mut opened = self.lock();
        if let Some(opened) = opened.as_ref() {
            return Ok(opened.clone());
        }
        let vault = Arc::new(Vault::open(&self.store, &self.settings.key)?);
        let keys = Arc::new(KeyRing::open(&self.store, &vault)?);
        let known = Arc::new(KnownSecrets::of(&self.store.snapshot())?);
        Ok(opened.insert(Opened { vault, keys, known }).clone())
    }

    /// Returns the vault and the keys if they are open. Does not open them.
    pub(crate) fn if_open(&self) -> Option<Opened> {
        self.lock().clone()
    }

    /// Opens the vault and the keys like [`Authority::open`], with an error for clients instead of the operator.
    ///
    /// # Errors
    ///
    /// 500. The log contains the reason.
    pub(crate) fn open_for_request(&self) -> Result<Opened, ApiError> {
        Ok(self.open()?)
    }

    /// Reads the keys again, and ends the epoch of the previous keys.
    fn reload(&self, opened: &Opened) -> Result<(), ApiError> {
        let keys = Arc::new(KeyRing::open(&self.store, &opened.vault)?);
        *self.lock() = Some(Opened { keys, ..opened.clone() });
        self.end_epoch();
        Ok(())
    }

    /// Returns the current epoch. Tokens that were verified in it are valid until it ends.
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the current epoch, because something was revoked. All tokens must then be verified again.
    pub(crate) fn end_epoch(&self) {
        let mut epoch = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *epoch).end();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Opened>> {
        // Ignore poisoning: the value is replaced in one step, so a panic leaves it complete.
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes expired documents and keys, and rotates the keys if that is due.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read or written, or if there are too many keys.
    pub(crate) fn run_housekeeping(&self) -> Result<(), ApiError> {
        denylist::sweep(&self.store, self.now())?;
        // If the keys are not open, no request has needed them yet.
        let Some(opened) = self.lock().clone() else { return Ok(()) };
        let now = self.store.now();
        let is_due = opened.keys.is_due(self.settings.key_rotation, now);
        // Remove retired keys first: the number of keys is limited.
        self.sweep_keys(now)?;
        if is_due { self.rotate() } else { Ok(()) }
    }

    fn sweep_keys(&self, now: Timestamp) -> Result<(), ApiError> {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = self.open_for_request()?;
        if opened.keys.sweep(&self.store, now)? {
            self.reload(&opened)?;
        }
        Ok(())
    }

    /// Returns the address of a request's client: that of the connection, or the one that trusted proxies report.
    pub(crate) fn address(&self, peer: IpAddr, forwarded: &[&str]) -> IpAddr {
        let hops = forwarded.iter().flat_map(|line| line.split(',')).map(str::trim);
        let hops: Vec<&str> = hops.collect();
        let mut address = peer;
        for hop in hops.into_iter().rev() {
            if !self.settings.trusted_proxies.contains(&address) {
                break;
            }
            match hop.parse() {
                Ok(before) => address = before,
                Err(_) => break,
            }
        }
        address
    }

    /// Rotates the keys: the next key signs from now on.
    ///
    /// # Errors
    ///
    /// `VALIDATION` if there are too many keys. Also fails if the store cannot be written.
    pub(crate) fn rotate(&self) -> Result<(), ApiError> {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = self.open_for_request()?;
        opened.keys.rotate(&self.store, &opened.vault)?;
        self.reload(&opened)?;
        log::event(Level::Info, "keys", &[("signs", &self.open_for_request()?.keys.current().id)]);
        Ok(())
    }

    /// Removes a key. Tokens that it signed are refused from now on.
    ///
    /// # Errors
    ///
    /// `NOT_FOUND` if there is no such key. Also fails if the store cannot be written.
    pub(crate) fn revoke_key(&self, id: &str) -> Result<(), ApiError> {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = self.open_for_request()?;
        if !opened.keys.revoke(&self.store, &opened.vault, id)? {
            return Err(ApiError::not_found("key not found"));
        }
        self.reload(&opened)?;
        log::event(Level::Warning, "keys", &[("revoked", &id)]);
        Ok(())
    }
}

/// Refuses a public address that is not an `http` or `https` address, or that has a path, a query or a fragment.
///
/// # Errors
///
/// Returns the reason, for the operator.
pub(crate) fn check_base(base: &str) -> Result<(), UrlError> {
    check_issuer(base)?;
    let (_, origin) = base.split_once("://").unwrap_or_default();
    if origin.trim_end_matches('/').contains(['/', '?', '#']) {
        return Err(UrlError::MoreThanOrigin(redacted(base)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ledger_store::Options;
    use ledger_testkit::SetClock;

    use super::*;
    use crate::auth::keys::master::MasterKey;
    use crate::auth::keys::signing::State;
    use crate::limits::RETIRED_KEY_KEPT;

    #[test]
    fn work_beyond_the_waiting_room_is_refused() {
        let limit = WorkLimit::new(1, 1);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let (release, released) = std::sync::mpsc::channel();
        let (running, waiting, refused) = runtime.block_on(async {
            tokio::join!(
                limit.run(move || released.recv_timeout(Duration::from_secs(20)).is_ok()),
                limit.run(|| true),
                async {
                    let refused = limit.run(|| true).await;
                    release.send(()).expect("the first one waits for it");
                    refused
                }
            )
        });
        assert_eq!((running, waiting), (Ok(true), Ok(true)));
        assert!(refused.is_err_and(|error| error.transient));
    }

    #[test]
    fn rotates_keys_on_schedule() {
        let clock = Arc::new(SetClock::default());
        let mut options = Options::default();
        options.clock = clock.clone();
        let settings = AuthorizationSettings::new(KeySource::Given(
            MasterKey::random().expect("the system has random bytes"),
        ));
        let period = settings.key_rotation;
        let authority = Authority::new(&Store::in_memory_with(&options), settings, "http://127.0.0.1:1");
        let authority = authority.expect("an authorization server");
        let keep_house_at = |time: Duration| {
            let micros = i64::try_from(time.as_micros()).expect("a date");
            clock.set(Timestamp::from_micros(micros));
            authority.run_housekeeping().expect("housekeeping finishes");
            authority.open().expect("the keys can be opened").keys
        };
        let first = authority.open().expect("the keys can be opened").keys;
        let next = first.all().find(|key| key.state == State::Next).expect("it is published").id.clone();
        let signer = &first.current().id;
        assert_eq!(keep_house_at(period.saturating_sub(Duration::from_micros(1))).current().id, *signer);
        let second = keep_house_at(period);
        assert!(second.current().id == next && second.get(signer).is_some(), "its tokens are good");
        let kept = period + RETIRED_KEY_KEPT;
        assert!(keep_house_at(kept.saturating_sub(Duration::from_micros(1))).get(signer).is_some());
        let third = keep_house_at(kept);
        assert!(third.current().id == next && third.get(signer).is_none());
    }
}
