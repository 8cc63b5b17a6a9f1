//! Transfers of the first generation of the API.

use hyper::StatusCode;

use crate::api::call::Call;
use crate::api::payments::connectors::installation;
use crate::api::payments::forms;
use crate::api::payments::payment::{body, required};
use crate::http::error::ApiError;
use crate::http::json::{self, Digits, Fields, Text};
use crate::http::response::Reply;
use crate::payments::installation as installations;
use crate::payments::transfer;
use ledger_core::Balance;
use serde::de::MapAccess;

#[derive(Default)]
struct Body<'a> {
    amount: Option<&'a str>,
    asset: Text<'a>,
    destination: Text<'a>,
}

impl<'de> Fields<'de> for Body<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match json::field(name, &["amount", "asset", "destination"]) {
            Some("amount") => self.amount = map.next_value::<Digits<'de>>()?.0,
            Some("asset") => self.asset = map.next_value()?,
            Some("destination") => self.destination = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Refuses a transfer without an amount above zero, an asset or a destination.
fn check(call: &Call<'_>) -> Result<(), ApiError> {
    let body = body::<Body<'_>>(call)?;
    let amount = body.amount.and_then(|digits| Balance::parse(digits).ok());
    if amount.is_none_or(|amount| amount <= Balance::ZERO) {
        return Err(ApiError::validation("amount must be above zero"));
    }
    if body.asset.0.chars().count() < 3 {
        return Err(ApiError::validation(format!("invalid asset: {:?}", body.asset.0)));
    }
    required(&body.destination, "destination").map(drop)
}

pub(super) async fn create(call: &Call<'_>) -> Result<Reply, ApiError> {
    let (row, _) = installation(call, 2).await?;
    check(call)?;
    Err(ApiError::validation(format!("the connector {} makes no transfers", row.provider)))
}

pub(super) async fn stripe(call: &Call<'_>) -> Result<Reply, ApiError> {
    let find = |store: &ledger_store::Store| Ok(installations::of_provider(&store.snapshot(), "STRIPE")?);
    if call.app.blocking(find).await?.is_empty() {
        return Err(ApiError::validation("no connectors installed"));
    }
    check(call)?;
    Err(ApiError::validation("the connector STRIPE makes no transfers"))
}

pub(super) async fn list(call: &Call<'_>) -> Result<Reply, ApiError> {
    let (_, found) = installation(call, 2).await?;
    let id = found.id.installation;
    let all = call.app.blocking(move |store| Ok(transfer::all(&store.snapshot(), &id)?)).await?;
    let mut json = call.json();
    json.raw("{\"data\":[").list(&all, forms::transfer).raw("]}");
    Ok(json.reply(StatusCode::OK))
}
