//! The check of a client's id and secret, in a time that does not tell which clients there are.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use crate::auth::authority::{Authority, Opened};
use crate::auth::grants::caller::{Caller, Credentials, Found, look_up};
use crate::auth::grants::error::{OAuthError, Word};
use crate::auth::rates::Verdict;
use crate::auth::resources::clients;
use crate::http::error::ApiError;
use crate::limits::AUTH_KEY_BYTES_MAX;
use crate::log::{self, Level};

/// The refusal of somebody who was wrong too often.
fn slow_down() -> OAuthError {
    OAuthError::new(Word::SlowDown, "too many wrong secrets: come back later")
}

/// Finds the client with these credentials. A public client needs no secret.
///
/// # Errors
///
/// `invalid_client`, and `slow_down` after too many of them; what any read may meet.
pub(crate) async fn authenticate(
    authority: &Arc<Authority>,
    credentials: &Credentials,
    address: IpAddr,
) -> Result<Caller, OAuthError> {
    if credentials.id.len() > AUTH_KEY_BYTES_MAX {
        return Err(OAuthError::invalid_client());
    }
    let verdict = authority.rates.verdict(&credentials.id, address, Instant::now());
    if verdict == Verdict::Refuse {
        return Err(slow_down());
    }
    let opened = opened(authority).await?;
    let caller = match authority.statics.get(&credentials.id) {
        Some(_) => fixed(authority, &opened, credentials, verdict).await?,
        None => stored(authority, &opened, credentials, verdict).await?,
    };
    if let Some(caller) = caller {
        authority.rates.right(&caller.id, address, Instant::now());
        return Ok(caller);
    }
    authority.rates.wrong(&credentials.id, address, Instant::now());
    log::event(
        Level::Warning,
        "auth",
        &[("address", &address), ("reason", &"unknown client or wrong secret")],
    );
    Err(if verdict == Verdict::Check { OAuthError::invalid_client() } else { slow_down() })
}

/// The client with an id, without any check of a secret.
///
/// # Errors
///
/// Those of any read.
pub(crate) fn find(authority: &Authority, id: &str) -> Result<Option<Caller>, ApiError> {
    let snapshot = authority.store().snapshot();
    if let Some(client) = authority.statics.get(id) {
        return Caller::fixed(&snapshot, client).map(Some);
    }
    match clients::client(&snapshot, id)? {
        Some(client) => Caller::stored(&snapshot, client.value).map(Some),
        None => Ok(None),
    }
}

/// Vault and keys. The first request makes them, on a thread of its own.
///
/// # Errors
///
/// `server_error`, with the reason in the log.
pub(crate) async fn opened(authority: &Arc<Authority>) -> Result<Opened, OAuthError> {
    if let Some(opened) = authority.opened_already() {
        return Ok(opened);
    }
    let opening = authority.clone();
    Ok(authority.signing.run(move || opening.opened()).await??)
}

async fn fixed(
    authority: &Arc<Authority>,
    opened: &Opened,
    credentials: &Credentials,
    verdict: Verdict,
) -> Result<Option<Caller>, OAuthError> {
    let Some(client) = authority.statics.get(&credentials.id) else { return Ok(None) };
    let is_right = match &credentials.secret {
        _ if client.public => true,
        Some(secret) if authority.statics.knows(&opened.vault, client, secret) => true,
        _ if verdict == Verdict::CheckQuickly => false,
        // No client of the file has an empty secret. A missing one takes as long as a wrong one.
        secret => {
            let (all, vault, id, secret) = (
                authority.clone(),
                opened.vault.clone(),
                credentials.id.clone(),
                secret.clone().unwrap_or_default(),
            );
            let check = move || all.statics.check(&vault, all.statics.get(&id), &secret);
            authority.hashing.run(check).await?
        }
    };
    Ok(if is_right { Some(Caller::fixed(&authority.store().snapshot(), client)?) } else { None })
}

async fn stored(
    authority: &Arc<Authority>,
    opened: &Opened,
    credentials: &Credentials,
    verdict: Verdict,
) -> Result<Option<Caller>, OAuthError> {
    let snapshot = authority.store().snapshot();
    let (found, is_right) = look_up(&snapshot, &opened.vault, credentials)?;
    match found {
        Found::Stored(client) if is_right || client.public => {
            return Ok(Some(Caller::stored(&snapshot, *client)?));
        }
        _ => {}
    }
    if authority.statics.are_slow() && verdict == Verdict::Check {
        // As slow as a wrong secret of a static client.
        let (all, vault) = (authority.clone(), opened.vault.clone());
        let secret = credentials.secret.clone().unwrap_or_default();
        authority.hashing.run(move || all.statics.check(&vault, None, &secret)).await?;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use ledger_store::Store;

    use super::*;
    use crate::auth::authority::AuthorizationSettings;
    use crate::auth::keys::master::{KeySource, MasterKey};
    use crate::auth::static_clients::StaticClient;

    #[test]
    fn every_wrong_secret_costs_the_same_hashes() {
        let file = "clients: [{id: one, secrets: [a]}, {id: two, secrets: [a, b]}]";
        let mut settings =
            AuthorizationSettings::new(KeySource::Given(MasterKey::random().expect("random bytes")));
        settings.clients = StaticClient::parse(file).expect("clients");
        let store = Store::in_memory();
        let authority = Arc::new(Authority::new(&store, settings, "http://127.0.0.1:1").expect("an issuer"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let computed = |id: &str, secret: Option<&str>| {
            let credentials = Credentials { id: id.to_owned(), secret: secret.map(str::to_owned) };
            let before = authority.statics.computed.load(Ordering::Relaxed);
            let found = runtime.block_on(authenticate(
                &authority,
                &credentials,
                std::net::Ipv4Addr::LOCALHOST.into(),
            ));
            assert_eq!(found.map_err(|error| error.word), Err(Word::InvalidClient), "{id} {secret:?}");
            authority.statics.computed.load(Ordering::Relaxed) - before
        };
        for id in ["one", "two", "nosuch"] {
            for secret in [None, Some(""), Some("wrong")] {
                assert_eq!(computed(id, secret), 2, "{id} {secret:?}");
            }
        }
    }
}
