//! The balance routes of v1: the balances of each account, and their sums.

use hyper::StatusCode;
use ledger_core::{AccountAddress, AddressRole, FilterNode, FilterOf, Resource};
use ledger_store::{AccountKey, AccountOrder, AccountQuery, BalancesQuery, Expand, LedgerView, TimeAxis};

use crate::api::context::Context;
use crate::api::ledger_v1::accounts::write_balances;
use crate::api::ledger_v1::list::{List, ListSpec, Parameters};
use crate::api::ledger_v1::{filter, ledger};
use crate::http::error::ApiError;
use crate::http::response::Reply;

static LIST: ListSpec = ListSpec {
    name: "v1 balances",
    resource: Resource::Accounts,
    parameters: &["after", "address"],
    metadata: false,
    ascends_for_2_4: true,
    ignored_by_1_10_counts: &[],
    select,
};

fn select(parameters: &Parameters) -> Result<Vec<FilterNode>, ApiError> {
    let mut nodes = vec![filter::with_balances()];
    let values: Vec<&str> = parameters.all("address").flat_map(|value| value.split(',')).collect();
    match values.as_slice() {
        [] => {}
        [pattern] => nodes.push(filter::address(AddressRole::Own, pattern)?),
        // Several values are exact addresses. A text that is not an address matches no account.
        several => {
            let addresses = several.iter().filter_map(|text| AccountAddress::parse(text).ok());
            nodes.push(filter::one_of(addresses.collect()));
        }
    }
    nodes.extend(parameters.get("after").map(filter::below_address));
    Ok(nodes)
}

pub(crate) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = ledger::view(context)?;
    let list = List::of(context, &LIST)?;
    let question = AccountQuery {
        filter: list.filter()?,
        at: None,
        expand: Expand { volumes: true, effective_volumes: false },
        order: AccountOrder::Address,
        page: list.page(|text| AccountAddress::parse(text).ok().map(AccountKey::from))?,
    };
    let page = List::ask(context, ledger, question, true, LedgerView::accounts).await?;
    Ok(list.reply(
        context,
        page.as_ref(),
        |account| account.address.to_string(),
        |json, account| {
            json.raw("{").plain_string(account.address.as_str()).raw(":");
            write_balances(json, account.volumes.as_deref().unwrap_or_default());
            json.raw("}");
        },
    ))
}

pub(crate) async fn aggregated(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = ledger::view(context)?;
    let filter = match context.query.get("address").filter(|pattern| !pattern.is_empty()) {
        None => FilterOf::all(),
        Some(pattern) => {
            let node = filter::address(AddressRole::Own, pattern)?;
            FilterOf::new(node).map_err(|error| ApiError::validation(error.to_string()))?
        }
    };
    let balances = match ledger {
        None => Vec::new(),
        Some(ledger) => {
            let question = BalancesQuery { filter, at: None, axis: TimeAxis::Inserted };
            context.app.long(move || Ok(ledger.aggregated_balances(&question)?)).await?
        }
    };
    let mut json = context.json();
    json.raw("{\"data\":{").list(&balances, |json, (asset, balance)| {
        json.plain_string(asset.as_str()).raw(":").balance(balance);
    });
    json.raw("}}");
    Ok(json.reply(StatusCode::OK))
}
