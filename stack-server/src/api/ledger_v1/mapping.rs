//! The mapping routes of v1: read and replace the mapping of a ledger.

use hyper::StatusCode;
use ledger_store::LedgerView;

use crate::api::context::Context;
use crate::api::ledger_v1::ledger;
use crate::api::ledger_v1::rules::{contracts, mapping};
use crate::http::error::ApiError;
use crate::http::response::Reply;
use crate::limits::MAPPING_BYTES_MAX;

const NO_CONTRACTS: &str = "{\"contracts\":[]}";

pub(crate) fn read(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = ledger::view(context)?;
    let text = ledger.as_ref().and_then(LedgerView::mapping);
    Ok(answer(context, text.map_or(NO_CONTRACTS, |text| text)))
}

pub(crate) async fn update(context: &Context<'_>) -> Result<Reply, ApiError> {
    let contracts = contracts(&context.body)?;
    mapping(&contracts)?;
    let mut text = b"{\"contracts\":[".to_vec();
    for (at, contract) in contracts.iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        contract.write_to(&mut text)?;
    }
    text.extend_from_slice(b"]}");
    if text.len() > MAPPING_BYTES_MAX {
        return Err(ApiError::validation(format!("a mapping has at most {MAPPING_BYTES_MAX} bytes")));
    }
    let text = String::from_utf8(text).map_err(|error| ApiError::validation(error.to_string()))?;
    let name = ledger::ensured(context).await?.info().name.clone();
    let reply = answer(context, &text);
    context.app.blocking(move |store| Ok(store.set_mapping(&name, text)?)).await?;
    Ok(reply)
}

fn answer(context: &Context<'_>, text: &str) -> Reply {
    let mut json = context.json();
    json.raw("{\"data\":").raw(text).raw("}");
    json.reply(StatusCode::OK)
}
