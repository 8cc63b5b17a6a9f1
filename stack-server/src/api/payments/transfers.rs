//! Transfers of the payments API of stack 1.10.

use hyper::StatusCode;

use crate::api::context::Context;
use crate::api::payments::connectors::installation;
use crate::api::payments::forms::{self, data};
use crate::api::payments::payment::{body, metadata, required};
use crate::connectors::orders;
use crate::connectors::transfers::NewTransfer;
use crate::http::error::ApiError;
use crate::http::json::{self, Digits, Fields, Text};
use crate::http::response::Reply;
use crate::payments::codec::Metadata;
use crate::payments::installation as installations;
use crate::payments::transfer;
use ledger_core::Balance;
use serde::de::MapAccess;
use serde_json::value::RawValue;

#[derive(Default)]
struct Body<'a> {
    amount: Option<&'a str>,
    asset: Text<'a>,
    source: Text<'a>,
    destination: Text<'a>,
    metadata: Option<&'a RawValue>,
}

impl<'de> Fields<'de> for Body<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match json::field(name, &["amount", "asset", "source", "destination", "metadata"]) {
            Some("amount") => self.amount = map.next_value::<Digits<'de>>()?.0,
            Some("asset") => self.asset = map.next_value()?,
            Some("source") => self.source = map.next_value()?,
            Some("destination") => self.destination = map.next_value()?,
            Some("metadata") => self.metadata = Some(map.next_value()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Reads a transfer from a request. It requires a positive amount, an asset and a destination.
fn new_transfer(context: &Context<'_>) -> Result<NewTransfer, ApiError> {
    let body = body::<Body<'_>>(context)?;
    let amount = body.amount.and_then(|digits| Balance::parse(digits).ok());
    let amount = amount.filter(|amount| *amount > Balance::ZERO);
    let amount = amount.ok_or_else(|| ApiError::validation("amount must be above zero"))?;
    if body.asset.0.chars().count() < 3 {
        return Err(ApiError::validation(format!("invalid asset: {:?}", body.asset.0)));
    }
    Ok(NewTransfer {
        amount,
        asset: body.asset.0.to_string(),
        source: body.source.0.to_string(),
        destination: required(&body.destination, "destination")?.to_owned(),
        metadata: match body.metadata {
            None => Metadata::new(),
            Some(given) => metadata(given.get().as_bytes())?,
        },
    })
}

pub(super) async fn create(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (_, found) = installation(context, 2).await?;
    let new = new_transfer(context)?;
    let id = orders::begin_transfer(context.app.connectors(), &found.id, new).await?.to_string();
    let mut json = context.json();
    // Some clients read the id at the top level, others below `data`.
    json.raw("{\"id\":").plain_string(&id).raw(",\"data\":{\"id\":").plain_string(&id).raw("}}");
    Ok(json.reply(StatusCode::OK))
}

/// Assets that the provider accepts in a transfer.
const STRIPE_ASSETS: [&str; 2] = ["USD/2", "EUR/2"];

pub(super) async fn stripe(context: &Context<'_>) -> Result<Reply, ApiError> {
    let find = |store: &ledger_store::Store| Ok(installations::of_provider(&store.snapshot(), "STRIPE")?);
    let mut found = context.app.blocking(find).await?;
    let only = found.pop().ok_or_else(|| ApiError::validation("no connectors installed"))?;
    if !found.is_empty() {
        return Err(ApiError::validation("more than one connectors installed"));
    }
    let new = new_transfer(context)?;
    if !STRIPE_ASSETS.contains(&&*new.asset) {
        return Err(ApiError::validation(format!("invalid asset: {:?}, it is USD/2 or EUR/2", new.asset)));
    }
    let made = orders::make_transfer(context.app.connectors(), &only.id, new).await?;
    Ok(data(context, StatusCode::OK, |json| {
        json.raw(&made);
    }))
}

pub(super) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (_, found) = installation(context, 2).await?;
    let id = found.id.installation;
    let all = context.app.blocking(move |store| Ok(transfer::all(&store.snapshot(), &id)?)).await?;
    let mut json = context.json();
    json.raw("{\"data\":[").list(&all, forms::transfer).raw("]}");
    Ok(json.reply(StatusCode::OK))
}
