//! The account routes of v2: list, count and read accounts, and change their metadata.

use hyper::StatusCode;
use ledger_core::{AccountAddress, Asset, Command, Resource, Target, Timestamp, Volumes};
use ledger_store::{Account, AccountKey, AccountOrder, AccountQuery, Direction, LedgerView};

use crate::api::context::Context;
use crate::api::cursor::Sort;
use crate::api::ledger_v2::list::{self, List, ListSpec};
use crate::api::ledger_v2::wire::address_of;
use crate::api::ledger_v2::{query, write};
use crate::http::error::ApiError;
use crate::http::response::{self, Json, Reply};
use crate::shapes::volumes::write_volumes;

pub(crate) static LIST: ListSpec = ListSpec {
    name: "accounts",
    resource: Resource::Accounts,
    direction: Direction::Ascending,
    sortable: &[
        ("address", Sort::Natural),
        ("first_usage", Sort::FirstUsage),
        ("insertion_date", Sort::InsertionDate),
        ("updated_at", Sort::UpdatedAt),
    ],
    until: &["pit"],
    since: &["oot"],
};

pub(crate) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = context.ledger()?;
    let list = List::of(context, &LIST)?;
    page(context, ledger, &list).await
}

/// Answers a list of accounts with one page.
pub(crate) async fn page(context: &Context<'_>, ledger: LedgerView, list: &List) -> Result<Reply, ApiError> {
    let query = store_query(list)?;
    let order = query.order;
    let page = if list.is_long() {
        context.app.long(move || Ok(ledger.accounts(&query)?)).await?
    } else {
        ledger.accounts(&query)?
    };
    let key = |account: &Account| format!("{} {}", order.date_of(account).as_micros(), account.address);
    Ok(list.reply(context, &page, key, write_account))
}

/// Builds the query for the store.
///
/// # Errors
///
/// Returns `VALIDATION` if the key in the cursor is malformed. Only a defect of this server makes such a cursor.
pub(crate) fn store_query(list: &List) -> Result<AccountQuery, ApiError> {
    let order = match list.query.order {
        Sort::FirstUsage => AccountOrder::FirstUsage,
        Sort::InsertionDate => AccountOrder::InsertionDate,
        Sort::UpdatedAt => AccountOrder::UpdatedAt,
        _ => AccountOrder::Address,
    };
    Ok(AccountQuery {
        order,
        filter: list.filter()?,
        at: list.query.at,
        expand: list.query.expand,
        page: list.page(|text| {
            let (date, address) = text.split_once(' ')?;
            Some(AccountKey {
                date: Timestamp::from_micros(date.parse().ok()?),
                address: AccountAddress::parse(address).ok()?,
            })
        })?,
    })
}

pub(crate) async fn count(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = context.ledger()?;
    let at = list::point_in_time(context)?;
    let filter = query::filter(context)?;
    let number = context.app.long(move || Ok(ledger.count_accounts(&filter, at)?)).await?;
    Ok(response::count(StatusCode::NO_CONTENT, number))
}

pub(crate) fn read(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = context.ledger()?;
    let at = list::point_in_time(context)?;
    let not_found = || ApiError::not_found("getting account: not found");
    // A text that is not an address has never been used by an account.
    let address = AccountAddress::parse(context.variable(1)).map_err(|_| not_found())?;
    let account = ledger.account(&address, at, list::expand(context))?.ok_or_else(not_found)?;
    let mut json = context.json();
    json.raw("{\"data\":");
    write_account(&mut json, &account);
    json.raw("}");
    Ok(json.reply(StatusCode::OK))
}

pub(crate) async fn set_metadata(context: &Context<'_>) -> Result<Reply, ApiError> {
    let address = address_of(context.variable(1)).map_err(|error| context.or_ledger_not_found(error))?;
    let metadata = write::metadata_body(context)?;
    write::submit_without_body(context, Command::SetMetadata { target: Target::Account(address), metadata })
        .await
}

pub(crate) async fn delete_metadata(context: &Context<'_>) -> Result<Reply, ApiError> {
    let address = address_of(context.variable(1)).map_err(|error| context.or_ledger_not_found(error))?;
    let key = context.variable(2).into();
    write::submit_without_body(context, Command::DeleteMetadata { target: Target::Account(address), key })
        .await
}

fn write_account(json: &mut Json, account: &Account) {
    json.raw("{\"address\":").plain_string(account.address.as_str());
    json.raw(",\"metadata\":").metadata(&account.metadata);
    json.raw(",\"firstUsage\":").time(account.first_usage);
    json.raw(",\"insertionDate\":").time(account.insertion_date);
    json.raw(",\"updatedAt\":").time(account.updated_at);
    let mut by_asset = |name: &str, volumes: &Option<Vec<(Asset, Volumes)>>| {
        if let Some(volumes) = volumes.as_deref().filter(|volumes| !volumes.is_empty()) {
            json.raw(name).list(volumes, |json, (asset, volumes)| {
                json.plain_string(asset.as_str()).raw(":");
                write_volumes(json, volumes);
            });
            json.raw("}");
        }
    };
    by_asset(",\"volumes\":{", &account.volumes);
    by_asset(",\"effectiveVolumes\":{", &account.effective_volumes);
    json.raw("}");
}
