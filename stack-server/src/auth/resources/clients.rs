//! Clients and their secrets.

use std::borrow::Cow;

use ledger_core::Metadata;
use ledger_store::{DocumentRejection, Expected, ReadError, Snapshot, Store, WriteError};

use crate::auth::keys::vault::{Use, Vault};
use crate::auth::keys::{random, random_uuid};
use crate::auth::resources::client::{Client, ScopeRef, Secret};
use crate::auth::resources::scopes::Scopes;
use crate::auth::resources::stored_client::{self, CLIENT_BY_DATE};
use crate::auth::resources::{check_list, check_scope_name, check_text, refused};
use crate::collections::AUTH_CLIENTS;
use crate::documents::{Versioned, again, all_by, delete as deletion};
use crate::http::error::ApiError;
use crate::limits::{
    AUTH_KEY_BYTES_MAX, CLIENT_SCOPES_MAX, CLIENT_SECRETS_MAX, CLIENT_URIS_MAX, CLIENTS_MAX,
};
use crate::uuid;

/// The description of a client in a request.
#[derive(Debug, Default)]
pub(crate) struct Draft<'a> {
    pub(crate) id: Cow<'a, str>,
    pub(crate) name: Cow<'a, str>,
    pub(crate) description: Cow<'a, str>,
    pub(crate) public: bool,
    pub(crate) trusted: bool,
    pub(crate) redirect_uris: Vec<Cow<'a, str>>,
    pub(crate) post_logout_redirect_uris: Vec<Cow<'a, str>>,
    pub(crate) metadata: Metadata,
    /// Names of scopes; `None` leaves the scopes of an existing client unchanged.
    pub(crate) scopes: Option<Vec<Cow<'a, str>>>,
}

impl Draft<'_> {
    fn check(&self) -> Result<(), ApiError> {
        check_text("name", &self.name, true)?;
        check_text("description", &self.description, false)?;
        check_list("redirectUris", self.redirect_uris.iter(), CLIENT_URIS_MAX)?;
        check_list("postLogoutRedirectUris", self.post_logout_redirect_uris.iter(), CLIENT_URIS_MAX)?;
        for scope in self.scopes.iter().flatten() {
            check_scope_name(scope)?;
        }
        check_list("scopes", self.scopes.iter().flatten().collect::<Vec<_>>().into_iter(), CLIENT_SCOPES_MAX)
    }

    /// Applies the draft to a client.
    fn apply(&self, client: &mut Client, scopes: &Scopes) {
        let owned = |texts: &[Cow<'_, str>]| texts.iter().map(|text| text.clone().into_owned()).collect();
        client.name = self.name.clone().into_owned();
        client.description = self.description.clone().into_owned();
        (client.public, client.trusted) = (self.public, self.trusted);
        client.redirect_uris = owned(&self.redirect_uris);
        client.post_logout_redirect_uris = owned(&self.post_logout_redirect_uris);
        client.metadata = self.metadata.clone();
        let Some(names) = &self.scopes else { return };
        let mut held: Vec<ScopeRef> = Vec::new();
        for name in names {
            // Keep a link if the client has one, so that it follows changes of the label.
            let link = scopes.by_label(name).map(|scope| ScopeRef::Link(scope.id.clone()));
            let link = link.filter(|link| client.scopes.contains(link));
            let scope = link.unwrap_or_else(|| ScopeRef::Name(name.clone().into_owned()));
            if !held.contains(&scope) {
                held.push(scope);
            }
        }
        client.scopes = held;
    }
}

/// Returns the error for a client that does not exist.
pub(crate) fn no_client() -> ApiError {
    ApiError::not_found("client not found")
}

/// Returns the client with this id.
///
/// # Errors
///
/// Fails if the store cannot be read.
pub(crate) fn client(snapshot: &Snapshot, id: &str) -> Result<Option<Versioned<Client>>, ReadError> {
    // Keys of the store are at most this long, so no client has a longer id.
    if id.len() > AUTH_KEY_BYTES_MAX {
        return Ok(None);
    }
    let found = snapshot.document(AUTH_CLIENTS, id.as_bytes())?;
    found.as_ref().map(stored_client::read).transpose()
}

/// Returns all clients, oldest first.
///
/// # Errors
///
/// Fails if the store cannot be read.
pub(crate) fn clients(snapshot: &Snapshot) -> Result<Vec<Client>, ReadError> {
    let found = all_by(snapshot, AUTH_CLIENTS, CLIENT_BY_DATE)?;
    found.iter().map(|document| stored_client::read(document).map(|client| client.value)).collect()
}

/// Adds a client.
///
/// # Errors
///
/// `VALIDATION` for an invalid draft, an id that exists, or one client too many.
pub(crate) fn create(store: &Store, draft: &Draft<'_>) -> Result<Client, ApiError> {
    draft.check()?;
    if draft.id.len() > AUTH_KEY_BYTES_MAX || draft.id.chars().any(char::is_control) {
        let message = format!("invalid id {:?}: it is too long or has control characters", draft.id);
        return Err(ApiError::validation(message));
    }
    let id = if draft.id.is_empty() { random_uuid()? } else { draft.id.clone().into_owned() };
    let snapshot = store.snapshot();
    if clients(&snapshot)?.len() >= CLIENTS_MAX {
        return Err(ApiError::validation(format!("there are {CLIENTS_MAX} clients already")));
    }
    let mut client = Client {
        id,
        name: String::new(),
        description: String::new(),
        public: false,
        trusted: false,
        redirect_uris: vec![],
        post_logout_redirect_uris: vec![],
        metadata: Metadata::EMPTY,
        scopes: vec![],
        secrets: vec![],
        created_at: store.now(),
    };
    draft.apply(&mut client, &Scopes::of(&snapshot)?);
    match store.change_documents(vec![stored_client::store(&client, Expected::Absent)]) {
        Ok(_) => Ok(client),
        Err(WriteError::Document(DocumentRejection::Changed { .. })) => {
            Err(ApiError::validation(format!("invalid id {:?}: another client has it", client.id)))
        }
        Err(error) => Err(refused(error)),
    }
}

/// Applies a change to the stored client, and repeats it if another thread has changed the client.
fn change(
    store: &Store,
    id: &str,
    mut edit: impl FnMut(&mut Client, &Snapshot) -> Result<(), ApiError>,
) -> Result<Client, ApiError> {
    let mut changed = None;
    let outcome = again(|| {
        let snapshot = store.snapshot();
        let mut found = client(&snapshot, id)?.ok_or_else(no_client)?;
        edit(&mut found.value, &snapshot)?;
        let change = stored_client::store(&found.value, Expected::Version(found.version));
        changed = Some(found.value);
        Ok(store.change_documents(vec![change]))
    })?;
    outcome.map_err(refused)?;
    changed.ok_or_else(no_client)
}

/// Replaces all properties of a client except its id and its secrets.
///
/// # Errors
///
/// `NOT_FOUND` if there is no such client; `VALIDATION` for an invalid draft.
pub(crate) fn update(store: &Store, id: &str, draft: &Draft<'_>) -> Result<Client, ApiError> {
    draft.check()?;
    change(store, id, |client, snapshot| {
        draft.apply(client, &Scopes::of(snapshot)?);
        Ok(())
    })
}

/// Removes a client with its secrets. Succeeds if there is no such client.
///
/// # Errors
///
/// Fails if the store cannot be written.
pub(crate) fn delete(store: &Store, id: &str) -> Result<(), ApiError> {
    if client(&store.snapshot(), id)?.is_some() {
        store.change_documents(vec![deletion(AUTH_CLIENTS, id.as_bytes(), Expected::Anything)])?;
    }
    Ok(())
}

/// Adds a secret to a client. Returns it with its clear text, which is stored nowhere.
///
/// # Errors
///
/// `NOT_FOUND` if there is no such client; `VALIDATION` for an invalid name, or one secret too many.
pub(crate) fn add_secret(
    store: &Store,
    vault: &Vault,
    id: &str,
    name: &str,
    metadata: &Metadata,
) -> Result<(Secret, String), ApiError> {
    check_text("name", name, true)?;
    let clear = uuid::text(random()?, 4);
    let secret = Secret {
        id: random_uuid()?,
        name: name.to_owned(),
        last_digits: clear[clear.len() - 4..].to_owned(),
        tag: vault.tag(Use::ClientSecret, clear.as_bytes()),
        metadata: metadata.clone(),
    };
    change(store, id, |client, _| {
        if client.secrets.len() >= CLIENT_SECRETS_MAX {
            return Err(ApiError::validation(format!("the client has {CLIENT_SECRETS_MAX} secrets already")));
        }
        client.secrets.push(secret.clone());
        Ok(())
    })?;
    Ok((secret, clear))
}

/// Removes a secret of a client.
///
/// # Errors
///
/// `NOT_FOUND` if there is no such client or secret.
pub(crate) fn delete_secret(store: &Store, id: &str, secret: &str) -> Result<(), ApiError> {
    change(store, id, |client, _| {
        let before = client.secrets.len();
        client.secrets.retain(|have| have.id != secret);
        if client.secrets.len() == before {
            return Err(ApiError::not_found("secret not found"));
        }
        Ok(())
    })
    .map(drop)
}

/// Adds a scope to a client or removes it. Succeeds if the client has this state already.
///
/// # Errors
///
/// `NOT_FOUND` if there is no such client or scope; `VALIDATION` for one scope too many.
pub(crate) fn set_scope(store: &Store, id: &str, scope: &str, holds: bool) -> Result<(), ApiError> {
    change(store, id, |client, snapshot| {
        let scopes = Scopes::of(snapshot)?;
        let scope = scopes.get(scope).ok_or_else(super::scopes::no_scope)?;
        let name = ScopeRef::Name(scope.label.clone());
        let link = ScopeRef::Link(scope.id.clone());
        client.scopes.retain(|held| *held != name && *held != link);
        if holds {
            client.scopes.push(link);
        }
        if client.scopes.len() > CLIENT_SCOPES_MAX {
            return Err(ApiError::validation(format!("the client has {CLIENT_SCOPES_MAX} scopes already")));
        }
        Ok(())
    })
    .map(drop)
}
