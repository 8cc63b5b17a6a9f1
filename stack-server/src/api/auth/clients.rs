//! Clients: create, list, read, change and delete them, their secrets and their scopes.

use hyper::StatusCode;
use ledger_core::Metadata;
use serde::de::MapAccess;

use crate::api::auth::generation::is_1_10;
use crate::api::context::Context;
use crate::auth::resources::client::{Client, Secret};
use crate::auth::resources::clients::{self, Draft};
use crate::auth::resources::scopes::Scopes;
use crate::http::error::ApiError;
use crate::http::json::{self, AnyMap, Array, Fields, Flag, Object, Text};
use crate::http::response::{self, Json, Reply};

#[derive(Default)]
struct Body<'a>(Draft<'a>);

const FIELDS: [&str; 9] = [
    "id",
    "name",
    "description",
    "public",
    "trusted",
    "redirectUris",
    "postLogoutRedirectUris",
    "metadata",
    "scopes",
];

impl<'de> Fields<'de> for Body<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        let texts = |map: &mut A| {
            let Array(texts) = map.next_value::<Array<Text<'de>>>()?;
            Ok(texts.into_iter().map(|Text(text)| text).collect())
        };
        let Self(draft) = self;
        match json::field(name, &FIELDS) {
            Some("id") => draft.id = map.next_value::<Text<'de>>()?.0,
            Some("name") => draft.name = map.next_value::<Text<'de>>()?.0,
            Some("description") => draft.description = map.next_value::<Text<'de>>()?.0,
            Some("public") => draft.public = map.next_value::<Flag>()?.0,
            Some("trusted") => draft.trusted = map.next_value::<Flag>()?.0,
            Some("redirectUris") => draft.redirect_uris = texts(map)?,
            Some("postLogoutRedirectUris") => draft.post_logout_redirect_uris = texts(map)?,
            Some("metadata") => draft.metadata = map.next_value::<AnyMap>()?.0,
            Some("scopes") => draft.scopes = Some(texts(map)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Reads the description of a client. Requests of 1.10 do not contain scopes, so they leave the scopes unchanged. In
/// other requests, a missing list means no scopes.
fn read_body(body: &[u8], is_1_10: bool) -> Result<Draft<'_>, ApiError> {
    let Object(Body(mut draft)) = json::first::<Object<Body<'_>>>(body)
        .map_err(|error| ApiError::validation(format!("invalid format: {error}")))?;
    draft.scopes = if is_1_10 { None } else { Some(draft.scopes.unwrap_or_default()) };
    Ok(draft)
}

pub(super) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (all, scopes) = context
        .app
        .long({
            let snapshot = context.app.snapshot();
            move || Ok((clients::clients(&snapshot)?, Scopes::of(&snapshot)?))
        })
        .await?;
    let by_id = is_1_10(context);
    let mut json = context.json();
    json.raw("{\"data\":[").list(&all, |json, client| write(json, client, &scopes, by_id)).raw("]}");
    Ok(json.reply(StatusCode::OK))
}

/// Adds a client to the in-memory set that secrets are checked against.
fn note(context: &Context<'_>, client: &Client) -> Result<(), ApiError> {
    if let Some(opened) = context.authority()?.if_open() {
        opened.known.add_client(client);
    }
    Ok(())
}

pub(super) async fn create(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (body, is_1_10, authority) = (context.body.clone(), is_1_10(context), context.authority()?);
    let create = move |store: &_| {
        let draft = read_body(&body, is_1_10)?;
        if authority.statics.get(&draft.id).is_some() {
            let message = format!("invalid id {:?}: a client of the operator's file has it", draft.id);
            return Err(ApiError::validation(message));
        }
        clients::create(store, &draft)
    };
    let made = context.app.blocking(create).await?;
    note(context, &made)?;
    data(context, &made, StatusCode::CREATED)
}

pub(super) async fn read(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = context.variable(0).to_owned();
    let found = context.app.blocking(move |store| Ok(clients::client(&store.snapshot(), &id)?)).await?;
    data(context, &found.ok_or_else(clients::no_client)?.value, StatusCode::OK)
}

pub(super) async fn update(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (body, is_1_10, id) = (context.body.clone(), is_1_10(context), context.variable(0).to_owned());
    let update = move |store: &_| clients::update(store, &id, &read_body(&body, is_1_10)?);
    let changed = context.app.blocking(update).await?;
    note(context, &changed)?;
    data(context, &changed, StatusCode::OK)
}

pub(super) async fn delete(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = context.variable(0).to_owned();
    context.app.blocking(move |store| clients::delete(store, &id)).await?;
    Ok(response::no_content())
}

#[derive(Default)]
struct SecretBody<'a> {
    name: Text<'a>,
    metadata: Metadata,
}

impl<'de> Fields<'de> for SecretBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match json::field(name, &["name", "metadata"]) {
            Some("name") => self.name = map.next_value()?,
            Some("metadata") => self.metadata = map.next_value::<AnyMap>()?.0,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

pub(super) async fn create_secret(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (body, id, authority) = (context.body.clone(), context.variable(0).to_owned(), context.authority()?);
    let add = move |store: &_| {
        let Object(body) = json::first::<Object<SecretBody<'_>>>(&body)
            .map_err(|error| ApiError::validation(format!("invalid format: {error}")))?;
        let opened = authority.open_for_request()?;
        let (secret, clear) = clients::add_secret(store, &opened.vault, &id, &body.name.0, &body.metadata)?;
        opened.known.add_secret(&secret, &store.snapshot())?;
        Ok((secret, clear))
    };
    let (secret, clear) = context.app.blocking(add).await?;
    let mut json = context.json();
    json.raw("{\"data\":");
    write_secret(&mut json, &secret, Some(&clear));
    json.raw("}");
    let mut reply = json.reply(StatusCode::OK);
    response::forbid_storing(&mut reply);
    Ok(reply)
}

pub(super) async fn delete_secret(context: &Context<'_>) -> Result<Reply, ApiError> {
    let [id, secret] = [0, 1].map(|at| context.variable(at).to_owned());
    context.app.blocking(move |store| clients::delete_secret(store, &id, &secret)).await?;
    Ok(response::no_content())
}

pub(super) async fn set_scope(context: &Context<'_>, holds: bool) -> Result<Reply, ApiError> {
    let [id, scope] = [0, 1].map(|at| context.variable(at).to_owned());
    context.app.blocking(move |store| clients::set_scope(store, &id, &scope, holds)).await?;
    Ok(response::no_content())
}

fn data(context: &Context<'_>, client: &Client, status: StatusCode) -> Result<Reply, ApiError> {
    let scopes = Scopes::of(&context.app.snapshot())?;
    let mut json = context.json();
    json.raw("{\"data\":");
    write(&mut json, client, &scopes, is_1_10(context));
    json.raw("}");
    Ok(json.reply(status))
}

fn write(json: &mut Json, client: &Client, scopes: &Scopes, by_id: bool) {
    json.raw("{\"id\":").string(&client.id).raw(",\"name\":").string(&client.name);
    json.raw(",\"description\":").string(&client.description);
    json.raw(",\"public\":").boolean(client.public).raw(",\"trusted\":").boolean(client.trusted);
    json.raw(",\"redirectUris\":");
    json.strings(&client.redirect_uris);
    json.raw(",\"postLogoutRedirectUris\":");
    json.strings(&client.post_logout_redirect_uris);
    json.raw(",\"metadata\":").any_metadata(&client.metadata).raw(",\"scopes\":");
    json.strings(&if by_id { scopes.ids(&client.scopes) } else { scopes.names(&client.scopes) });
    json.raw(",\"secrets\":[").list(&client.secrets, |json, secret| write_secret(json, secret, None));
    json.raw("]}");
}

fn write_secret(json: &mut Json, secret: &Secret, clear: Option<&str>) {
    json.raw("{\"id\":").string(&secret.id).raw(",\"name\":").string(&secret.name);
    json.raw(",\"lastDigits\":").string(&secret.last_digits);
    json.raw(",\"metadata\":").any_metadata(&secret.metadata);
    if let Some(clear) = clear {
        json.raw(",\"clear\":").string(clear);
    }
    json.raw("}");
}
