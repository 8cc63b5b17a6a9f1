//! The account routes of v1: list, count and read accounts, and change their metadata.

use hyper::StatusCode;
use ledger_core::{AccountAddress, AddressRole, Asset, Command, FilterNode, Resource, Target, Volumes};
use ledger_store::{Account, AccountKey, AccountOrder, AccountQuery, Expand, LedgerView};

use crate::api::context::Context;
use crate::api::ledger_v1::client::Client;
use crate::api::ledger_v1::list::{self, List, ListSpec, Parameters};
use crate::api::ledger_v1::{filter, ledger, write};
use crate::http::error::ApiError;
use crate::http::response::{self, Json, Reply};
use crate::shapes::volumes::write_volumes;

static LIST: ListSpec = ListSpec {
    name: "v1 accounts",
    resource: Resource::Accounts,
    parameters: &["after", "address", "balance", "balanceOperator", "balance_operator"],
    metadata: true,
    ascends_for_2_4: true,
    ignored_by_1_10_counts: &["after", "balance", "balanceOperator", "balance_operator"],
    select,
};

fn select(parameters: &Parameters) -> Result<Vec<FilterNode>, ApiError> {
    let mut nodes: Vec<FilterNode> = filter::balance(parameters)?.into_iter().collect();
    if let Some(pattern) = parameters.get("address") {
        nodes.push(filter::address(AddressRole::Own, pattern)?);
    }
    nodes.extend(parameters.get("after").map(filter::below_address));
    nodes.extend(filter::metadata(parameters));
    Ok(nodes)
}

pub(crate) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = ledger::view(context)?;
    let list = List::of(context, &LIST)?;
    let question = AccountQuery {
        filter: list.filter()?,
        at: None,
        expand: Expand::default(),
        order: AccountOrder::Address,
        page: list.page(|text| AccountAddress::parse(text).ok().map(AccountKey::from))?,
    };
    let page = List::ask(context, ledger, question, list.is_long(), LedgerView::accounts).await?;
    Ok(list.reply(
        context,
        page.as_ref(),
        |account| account.address.to_string(),
        |json, account| {
            json.raw("{\"address\":").plain_string(account.address.as_str());
            json.raw(",\"metadata\":").any_metadata(&account.metadata).raw("}");
        },
    ))
}

pub(crate) async fn count(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = ledger::view(context)?;
    let filter = list::count_filter(context, &LIST)?;
    let number = match ledger {
        None => 0,
        Some(ledger) => context.app.long(move || Ok(ledger.count_accounts(&filter, None)?)).await?,
    };
    let later = Client::of(context).counts_accounts_with_204();
    Ok(response::count(if later { StatusCode::NO_CONTENT } else { StatusCode::OK }, number))
}

pub(crate) fn read(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = ledger::view(context)?;
    let address = address(context)?;
    let expand = Expand { volumes: true, effective_volumes: false };
    let found = match ledger {
        Some(ledger) => ledger.account(&address, None, expand)?,
        None => None,
    };
    let mut json = context.json();
    json.raw("{\"data\":{\"address\":").plain_string(address.as_str()).raw(",\"metadata\":");
    match &found {
        Some(account) => json.any_metadata(&account.metadata),
        None => json.raw("{}"),
    };
    json.raw(",\"volumes\":{");
    let volumes = volumes(found.as_ref());
    json.list(volumes, |json, (asset, volumes)| {
        json.plain_string(asset.as_str()).raw(":");
        write_volumes(json, volumes);
    });
    json.raw("},\"balances\":");
    write_balances(&mut json, volumes);
    json.raw("}}");
    Ok(json.reply(StatusCode::OK))
}

fn volumes(account: Option<&Account>) -> &[(Asset, Volumes)] {
    account.and_then(|account| account.volumes.as_deref()).unwrap_or_default()
}

/// Writes a JSON object from asset to balance.
pub(crate) fn write_balances(json: &mut Json, volumes: &[(Asset, Volumes)]) {
    json.raw("{").list(volumes, |json, (asset, volumes)| {
        json.plain_string(asset.as_str()).raw(":").balance(&volumes.balance());
    });
    json.raw("}");
}

fn address(context: &Context<'_>) -> Result<AccountAddress, ApiError> {
    AccountAddress::parse(context.variable(1))
        .map_err(|_| ApiError::validation("invalid account address format"))
}

pub(crate) async fn set_metadata(context: &Context<'_>) -> Result<Reply, ApiError> {
    let target = Target::Account(address(context)?);
    let metadata = write::metadata_body(context)?;
    write::submit_without_body(context, Command::SetMetadata { target, metadata }).await
}

pub(crate) async fn delete_metadata(context: &Context<'_>) -> Result<Reply, ApiError> {
    let target = Target::Account(address(context)?);
    let key = context.variable(2).into();
    write::submit_without_body(context, Command::DeleteMetadata { target, key }).await
}
