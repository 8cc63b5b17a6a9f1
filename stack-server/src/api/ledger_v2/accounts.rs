//! The account routes of v2: list, count and read accounts, and change their metadata.

use hyper::StatusCode;
use ledger_core::{AccountAddress, Asset, Command, Resource, Target, Timestamp, Volumes};
use ledger_store::{Account, AccountKey, AccountOrder, AccountQuery, Direction, LedgerView};

use crate::api::call::Call;
use crate::api::cursor::Sort;
use crate::api::ledger_v2::list::{self, Kind, List};
use crate::api::ledger_v2::wire::address_of;
use crate::api::ledger_v2::{query, write};
use crate::http::error::ApiError;
use crate::http::response::{self, Json, Reply};
use crate::shapes::volumes::write_volumes;

pub(crate) static LIST: Kind = Kind {
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

pub(crate) async fn list(call: &Call<'_>) -> Result<Reply, ApiError> {
    let ledger = call.ledger()?;
    let list = List::of(call, &LIST)?;
    page(call, ledger, &list).await
}

/// Answers a list of accounts with one page.
pub(crate) async fn page(call: &Call<'_>, ledger: LedgerView, list: &List) -> Result<Reply, ApiError> {
    let question = question(list)?;
    let order = question.order;
    let page = if list.is_long() {
        call.app.long(move || Ok(ledger.accounts(&question)?)).await?
    } else {
        ledger.accounts(&question)?
    };
    let key = |account: &Account| format!("{} {}", order.date_of(account).as_micros(), account.address);
    Ok(list.reply(call, &page, key, write_account))
}

/// Builds the query for the store.
///
/// # Errors
///
/// Returns `VALIDATION` if the key in the cursor is malformed. Only a defect of this server makes such a cursor.
pub(crate) fn question(list: &List) -> Result<AccountQuery, ApiError> {
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

pub(crate) async fn count(call: &Call<'_>) -> Result<Reply, ApiError> {
    let ledger = call.ledger()?;
    let at = list::point_in_time(call)?;
    let filter = query::filter(call)?;
    let number = call.app.long(move || Ok(ledger.count_accounts(&filter, at)?)).await?;
    Ok(response::count(StatusCode::NO_CONTENT, number))
}

pub(crate) fn read(call: &Call<'_>) -> Result<Reply, ApiError> {
    let ledger = call.ledger()?;
    let at = list::point_in_time(call)?;
    let not_found = || ApiError::not_found("getting account: not found");
    // A text that is not an address has never been used by an account.
    let address = AccountAddress::parse(call.variable(1)).map_err(|_| not_found())?;
    let account = ledger.account(&address, at, list::expand(call))?.ok_or_else(not_found)?;
    let mut json = call.json();
    json.raw("{\"data\":");
    write_account(&mut json, &account);
    json.raw("}");
    Ok(json.reply(StatusCode::OK))
}

pub(crate) async fn set_metadata(call: &Call<'_>) -> Result<Reply, ApiError> {
    let address = address_of(call.variable(1)).map_err(|error| call.unless_no_ledger(error))?;
    let metadata = write::metadata_body(call)?;
    write::without_answer(call, Command::SetMetadata { target: Target::Account(address), metadata }).await
}

pub(crate) async fn delete_metadata(call: &Call<'_>) -> Result<Reply, ApiError> {
    let address = address_of(call.variable(1)).map_err(|error| call.unless_no_ledger(error))?;
    let key = call.variable(2).into();
    write::without_answer(call, Command::DeleteMetadata { target: Target::Account(address), key }).await
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
