//! The volume routes of v2: the list of volumes by account, and the sums of balances.

use hyper::StatusCode;
use ledger_core::{Asset, Resource};
use ledger_store::{BalancesQuery, Direction, LedgerView, VolumesQuery};

use crate::api::context::Context;
use crate::api::cursor::Sort;
use crate::api::ledger_v2::list::{self, List, ListSpec};
use crate::api::ledger_v2::query;
use crate::http::error::ApiError;
use crate::http::response::Reply;

pub(crate) static LIST: ListSpec = ListSpec {
    name: "volumes",
    resource: Resource::Volumes,
    direction: Direction::Ascending,
    sortable: &[("account", Sort::Natural), ("address", Sort::Natural)],
    until: &["endTime", "pit"],
    since: &["startTime", "oot"],
};

pub(crate) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = context.ledger()?;
    let list = List::of(context, &LIST)?;
    page(context, ledger, &list).await
}

/// Answers a list of volumes with one page.
pub(crate) async fn page(context: &Context<'_>, ledger: LedgerView, list: &List) -> Result<Reply, ApiError> {
    let query = store_query(list)?;
    let page = context.app.long(move || Ok(ledger.volumes(&query)?)).await?;
    Ok(list.reply(
        context,
        &page,
        |row| format!("{} {}", row.asset, row.account),
        |json, row| {
            json.raw("{\"account\":").string(&row.account);
            json.raw(",\"asset\":").plain_string(row.asset.as_str());
            json.raw(",\"input\":").amount(&row.volumes.input);
            json.raw(",\"output\":").amount(&row.volumes.output);
            json.raw(",\"balance\":").balance(&row.volumes.balance()).raw("}");
        },
    ))
}

/// Builds the query of a list of volumes.
pub(crate) fn store_query(list: &List) -> Result<VolumesQuery, ApiError> {
    Ok(VolumesQuery {
        filter: list.filter()?,
        from: list.query.from,
        to: list.query.at,
        axis: list.query.axis,
        group_by: list.query.group_by as usize,
        // The key is account and asset, separated by a space. An asset has no space in it.
        page: list.page(|text| {
            let (asset, account) = text.split_once(' ')?;
            Some((account.to_owned(), Asset::parse(asset).ok()?))
        })?,
    })
}

/// Builds the query of aggregated balances.
pub(crate) fn balances_query(context: &Context<'_>) -> Result<BalancesQuery, ApiError> {
    Ok(BalancesQuery {
        at: list::point_in_time(context)?,
        filter: query::filter(context)?,
        axis: list::time_axis(context),
    })
}

pub(crate) async fn balances(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = context.ledger()?;
    let query = balances_query(context)?;
    let balances = context.app.long(move || Ok(ledger.aggregated_balances(&query)?)).await?;
    let mut json = context.json();
    json.raw("{\"data\":{").list(&balances, |json, (asset, balance)| {
        json.plain_string(asset.as_str()).raw(":").balance(balance);
    });
    json.raw("}}");
    Ok(json.reply(StatusCode::OK))
}
