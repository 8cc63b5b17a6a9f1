//! Authenticates clients by id and secret. The time that a check takes does not reveal which clients exist.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use crate::auth::authority::{Authority, Opened};
use crate::auth::grants::caller::{Caller, Credentials};
use crate::auth::grants::error::{ErrorCode, OAuthError};
use crate::auth::keys::vault::Vault;
use crate::auth::rate_limiter::Verdict;
use crate::auth::resources::clients;
use crate::http::error::ApiError;
use crate::limits::AUTH_KEY_BYTES_MAX;
use crate::log::{self, Level};

/// Returns the client with these credentials. A public client needs no secret.
///
/// The right secret of a stored client is accepted even after many wrong ones: it is random, and its check is quick.
/// People choose the secrets of static clients, so these are accepted only while the address may try.
///
/// # Errors
///
/// `invalid_client` for a wrong secret. After too many of them the status is a different one. An error of the store if
/// the read fails.
pub(crate) async fn authenticate(
    authority: &Arc<Authority>,
    credentials: &Credentials,
    address: IpAddr,
) -> Result<Caller, OAuthError> {
    if credentials.id.len() > AUTH_KEY_BYTES_MAX {
        return Err(OAuthError::invalid_client());
    }
    let opened = opened(authority).await?;
    let found = match check_quickly(authority, &opened, credentials, address)? {
        Some(caller) => Ok(caller),
        None => check_slowly(authority, &opened, credentials, address).await?,
    };
    match found {
        Ok(caller) => {
            authority.rates.record_success(&caller.id, address, Instant::now());
            Ok(caller)
        }
        Err(verdict) => {
            // Log one line for each counted attempt, and none for an attempt that is refused without a check.
            if verdict != Verdict::Refused {
                let reason = "unknown client or wrong secret";
                log::event(Level::Warning, "auth", &[("address", &address), ("reason", &reason)]);
            }
            Err(refusal(verdict))
        }
    }
}

/// Returns the error for a wrong secret.
pub(crate) fn refusal(verdict: Verdict) -> OAuthError {
    match verdict {
        Verdict::Allowed => OAuthError::invalid_client(),
        Verdict::ClientExceeded | Verdict::Refused => {
            OAuthError::new(ErrorCode::TooManyTries, "too many wrong secrets: come back later")
        }
    }
}

/// Returns the client with this id without checking a secret.
///
/// # Errors
///
/// Fails if the store cannot be read.
pub(crate) fn find(authority: &Authority, id: &str) -> Result<Option<Caller>, ApiError> {
    if let Some(client) = authority.statics.get(id) {
        return Ok(Some(client.into()));
    }
    Ok(clients::client(&authority.store().snapshot(), id)?.map(|client| client.value.into()))
}

/// Returns the vault and the keys. The first request creates them, on a separate thread.
///
/// # Errors
///
/// `server_error`. The log contains the reason.
pub(crate) async fn opened(authority: &Arc<Authority>) -> Result<Opened, OAuthError> {
    if let Some(opened) = authority.if_open() {
        return Ok(opened);
    }
    let opening = authority.clone();
    Ok(authority.signing.run(move || opening.open_for_request()).await??)
}

/// Returns the client if it needs no secret, or if the secret is known to be right. An unknown client takes the same
/// work as a wrong secret.
///
/// # Errors
///
/// Fails if the store cannot be read.
fn check_quickly(
    authority: &Authority,
    opened: &Opened,
    credentials: &Credentials,
    address: IpAddr,
) -> Result<Option<Caller>, ApiError> {
    let (vault, secret) = (&opened.vault, credentials.secret.as_deref());
    if let Some(client) = authority.statics.get(&credentials.id) {
        let may_try = || authority.rates.may_try(&client.id, address, Instant::now());
        let is_right = client.public
            || secret.is_some_and(|secret| may_try() && authority.statics.knows(vault, client, secret));
        return Ok(is_right.then(|| client.into()));
    }
    if !opened.known.may_be_right(vault, &credentials.id, secret) {
        return Ok(None);
    }
    let Some(found) = clients::client(&authority.store().snapshot(), &credentials.id)? else {
        return Ok(None);
    };
    let client = found.value;
    let is_right = client.public || secret.is_some_and(|secret| client.has_secret(vault, secret));
    Ok(is_right.then(|| client.into()))
}

/// Counts an attempt and checks its secret by slow hashes, if there are static clients. Returns the verdict if the
/// secret is wrong.
///
/// # Errors
///
/// `temporarily_unavailable` while too many checks wait.
async fn check_slowly(
    authority: &Arc<Authority>,
    opened: &Opened,
    credentials: &Credentials,
    address: IpAddr,
) -> Result<Result<Caller, Verdict>, ApiError> {
    if !authority.statics.are_slow() {
        return Ok(Err(authority.rates.try_once(&credentials.id, address, Instant::now())));
    }
    let (checking, vault, credentials) = (authority.clone(), opened.vault.clone(), credentials.clone());
    // Count the attempt when its check starts. An earlier check of the same secret may have made this one quick, and
    // earlier wrong secrets may have exhausted its attempts.
    authority.hashing.run(move || compare_hashes(&checking, &vault, &credentials, address)).await
}

fn compare_hashes(
    authority: &Authority,
    vault: &Vault,
    credentials: &Credentials,
    address: IpAddr,
) -> Result<Caller, Verdict> {
    let verdict = authority.rates.try_once(&credentials.id, address, Instant::now());
    if verdict == Verdict::Refused {
        return Err(verdict);
    }
    let client = authority.statics.get(&credentials.id);
    // No static client has an empty secret, so a missing secret takes as long as a wrong one.
    let secret = credentials.secret.as_deref().unwrap_or_default();
    let is_known = client.is_some_and(|client| authority.statics.knows(vault, client, secret));
    let is_right = is_known || authority.statics.check(vault, client, secret);
    match client.filter(|_| is_right) {
        Some(client) => {
            authority.rates.give_back(&client.id, address);
            Ok(client.into())
        }
        None => Err(verdict),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use ledger_store::Store;

    use super::*;
    use crate::auth::authority::AuthorizationSettings;
    use crate::auth::keys::master::{KeySource, MasterKey};
    use crate::auth::static_clients::StaticClient;

    fn authority(file: &str, wrong_secrets_per_minute: u32) -> Arc<Authority> {
        let key = KeySource::Given(MasterKey::random().expect("random bytes"));
        let mut settings = AuthorizationSettings::new(key);
        settings.clients = StaticClient::parse(file).expect("the file is well formed");
        settings.wrong_secrets_per_minute = wrong_secrets_per_minute;
        Arc::new(Authority::new(&Store::in_memory(), settings, "http://127.0.0.1:1").expect("an issuer"))
    }

    #[test]
    fn wrong_secrets_at_once_stay_within_the_rate() {
        let authority = authority("clients: [{id: one, secrets: [a]}]", 3);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let words = runtime.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for number in 0..20 {
                let (authority, id) = (authority.clone(), format!("nosuch-{number}"));
                tasks.spawn(async move {
                    let credentials = Credentials { id, secret: Some("wrong".to_owned()) };
                    let found = authenticate(&authority, &credentials, std::net::Ipv4Addr::LOCALHOST.into());
                    found.await.expect_err("a refusal").code
                });
            }
            tasks.join_all().await
        });
        assert_eq!(words.iter().filter(|word| **word == ErrorCode::InvalidClient).count(), 3, "{words:?}");
        assert_eq!(authority.statics.computed.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn every_wrong_secret_costs_the_same_hashes() {
        let authority = authority("clients: [{id: one, secrets: [a]}, {id: two, secrets: [a, b]}]", 60);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let computed = |id: &str, secret: Option<&str>| {
            let credentials = Credentials { id: id.to_owned(), secret: secret.map(str::to_owned) };
            let before = authority.statics.computed.load(Ordering::Relaxed);
            let found = runtime.block_on(authenticate(
                &authority,
                &credentials,
                std::net::Ipv4Addr::LOCALHOST.into(),
            ));
            assert_eq!(found.map_err(|error| error.code), Err(ErrorCode::InvalidClient), "{id} {secret:?}");
            authority.statics.computed.load(Ordering::Relaxed) - before
        };
        for id in ["one", "two", "nosuch"] {
            for secret in [None, Some(""), Some("wrong")] {
                assert_eq!(computed(id, secret), 2, "{id} {secret:?}");
            }
        }
    }
}
