//! Clients as JSON documents.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ledger_core::{Metadata, Timestamp};
use ledger_store::{Document, DocumentChange, Expected, ReadError};
use serde::de::MapAccess;

use crate::auth::resources::client::{Client, ScopeRef, Secret};
use crate::collections::AUTH_CLIENTS;
use crate::documents::{Versioned, damaged, date_key, put};
use crate::http::json::{self, AnyMap, Array, Date, Fields, Flag, Object, Text};
use crate::http::response::{Json, Numbers};

/// The index of clients by their date of creation.
pub(super) const CLIENT_BY_DATE: u32 = 1;

#[derive(Default)]
struct ClientBody<'a> {
    name: Text<'a>,
    description: Text<'a>,
    public: bool,
    trusted: bool,
    redirect_uris: Vec<Text<'a>>,
    post_logout_redirect_uris: Vec<Text<'a>>,
    metadata: Metadata,
    names: Vec<Text<'a>>,
    links: Vec<Text<'a>>,
    secrets: Vec<Object<SecretBody<'a>>>,
    created_at: Option<Timestamp>,
}

impl<'de> Fields<'de> for ClientBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "name" => self.name = map.next_value()?,
            "description" => self.description = map.next_value()?,
            "public" => self.public = map.next_value::<Flag>()?.0,
            "trusted" => self.trusted = map.next_value::<Flag>()?.0,
            "redirectUris" => self.redirect_uris = map.next_value::<Array<_>>()?.0,
            "postLogoutRedirectUris" => self.post_logout_redirect_uris = map.next_value::<Array<_>>()?.0,
            "metadata" => self.metadata = map.next_value::<AnyMap>()?.0,
            "names" => self.names = map.next_value::<Array<_>>()?.0,
            "links" => self.links = map.next_value::<Array<_>>()?.0,
            "secrets" => self.secrets = map.next_value::<Array<_>>()?.0,
            "createdAt" => self.created_at = map.next_value::<Date>()?.0,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[derive(Default)]
struct SecretBody<'a> {
    id: Text<'a>,
    name: Text<'a>,
    last_digits: Text<'a>,
    tag: Text<'a>,
    metadata: Metadata,
}

impl<'de> Fields<'de> for SecretBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "id" => self.id = map.next_value()?,
            "name" => self.name = map.next_value()?,
            "lastDigits" => self.last_digits = map.next_value()?,
            "tag" => self.tag = map.next_value()?,
            "metadata" => self.metadata = map.next_value::<AnyMap>()?.0,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn owned(texts: Vec<Text<'_>>) -> Vec<String> {
    texts.into_iter().map(|Text(text)| text.into_owned()).collect()
}

fn secret(Object(body): Object<SecretBody<'_>>) -> Option<Secret> {
    Some(Secret {
        id: body.id.0.into_owned(),
        name: body.name.0.into_owned(),
        last_digits: body.last_digits.0.into_owned(),
        tag: STANDARD.decode(body.tag.0.as_bytes()).ok()?.try_into().ok()?,
        metadata: body.metadata,
    })
}

/// Reads a client.
///
/// # Errors
///
/// Fails if the document is not a client.
pub(super) fn read(document: &Document) -> Result<Versioned<Client>, ReadError> {
    let read = || {
        let Object(body) = json::first::<Object<ClientBody<'_>>>(&document.value).ok()?;
        let names = owned(body.names).into_iter().map(ScopeRef::Name);
        let links = owned(body.links).into_iter().map(ScopeRef::Link);
        Some(Client {
            id: String::from_utf8(document.key.clone()).ok()?,
            name: body.name.0.into_owned(),
            description: body.description.0.into_owned(),
            public: body.public,
            trusted: body.trusted,
            redirect_uris: owned(body.redirect_uris),
            post_logout_redirect_uris: owned(body.post_logout_redirect_uris),
            metadata: body.metadata,
            scopes: names.chain(links).collect(),
            secrets: body.secrets.into_iter().map(secret).collect::<Option<_>>()?,
            created_at: body.created_at?,
        })
    };
    let value = read().ok_or_else(|| damaged("a client"))?;
    Ok(Versioned { value, version: document.version })
}

fn strings<'a>(json: &mut Json, name: &str, texts: impl IntoIterator<Item = &'a String>) {
    json.raw(",").plain_string(name).raw(":[");
    json.list(texts, |json, text| {
        json.string(text);
    });
    json.raw("]");
}

/// Returns the change that stores a client.
pub(super) fn store(client: &Client, expected: Expected) -> DocumentChange {
    let mut json = Json::new(Numbers::Plain);
    json.raw("{\"name\":").string(&client.name);
    json.raw(",\"description\":").string(&client.description);
    json.raw(",\"public\":").boolean(client.public).raw(",\"trusted\":").boolean(client.trusted);
    strings(&mut json, "redirectUris", &client.redirect_uris);
    strings(&mut json, "postLogoutRedirectUris", &client.post_logout_redirect_uris);
    json.raw(",\"metadata\":").any_metadata(&client.metadata);
    let names = client.scopes.iter().filter_map(|held| match held {
        ScopeRef::Name(name) => Some(name),
        ScopeRef::Link(_) => None,
    });
    strings(&mut json, "names", names);
    let links = client.scopes.iter().filter_map(|held| match held {
        ScopeRef::Link(id) => Some(id),
        ScopeRef::Name(_) => None,
    });
    strings(&mut json, "links", links);
    json.raw(",\"secrets\":[").list(&client.secrets, |json, secret| {
        json.raw("{\"id\":").string(&secret.id).raw(",\"name\":").string(&secret.name);
        json.raw(",\"lastDigits\":").string(&secret.last_digits);
        json.raw(",\"tag\":").plain_string(&STANDARD.encode(secret.tag));
        json.raw(",\"metadata\":").any_metadata(&secret.metadata).raw("}");
    });
    json.raw("],\"createdAt\":").time(client.created_at).raw("}");
    let keys = vec![date_key(CLIENT_BY_DATE, client.created_at)];
    put(AUTH_CLIENTS, client.id.as_bytes(), json.into_bytes(), keys, expected)
}
