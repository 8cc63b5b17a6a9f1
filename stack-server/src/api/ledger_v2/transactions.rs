//! The transaction routes of v2: create, list, count, read, revert and metadata.

use hyper::StatusCode;
use ledger_core::{Command, LogPayload, Overdraft, Resource, Target, Timestamp, TransactionId};
use ledger_store::{
    Detail, Direction, LedgerView, Receipt, TransactionKey, TransactionOrder, TransactionQuery,
    TransactionView,
};

use crate::api::context::Context;
use crate::api::cursor::Sort;
use crate::api::ledger_v2::list::{self, List, ListSpec};
use crate::api::ledger_v2::wire::{CreateBody, RevertBody};
use crate::api::ledger_v2::{query, wire, write};
use crate::http::error::ApiError;
use crate::http::json::{self, Object};
use crate::http::response::{self, Json, Reply};
use crate::shapes::transaction::{keeps_effective_volumes, write_recorded, write_transaction};

pub(crate) static LIST: ListSpec = ListSpec {
    name: "transactions",
    resource: Resource::Transactions,
    direction: Direction::Descending,
    // Insertion dates never decrease as ids grow, so both columns have the same order.
    sortable: &[
        ("id", Sort::Natural),
        ("inserted_at", Sort::Natural),
        ("timestamp", Sort::Timestamp),
        ("updated_at", Sort::UpdatedAt),
        ("reverted_at", Sort::RevertedAt),
    ],
    until: &["pit"],
    since: &["oot"],
};

pub(crate) async fn create(context: &Context<'_>) -> Result<Reply, ApiError> {
    let command = create_command(context).map_err(|error| context.or_ledger_not_found(error))?;
    let receipt = write::submit(context, command, Detail::Entry).await?;
    recorded(context, &receipt, StatusCode::OK)
}

fn create_command(context: &Context<'_>) -> Result<Command, ApiError> {
    let Object(body) = json::first::<Object<CreateBody<'_>>>(&context.body)
        .map_err(|error| ApiError::validation(format!("invalid transaction format: {error}")))?;
    let overdraft = if context.query.flag("force") { Overdraft::Allow } else { Overdraft::Refuse };
    body.into_command(overdraft, context.app.settings().script_wording)
}

pub(crate) async fn revert(context: &Context<'_>) -> Result<Reply, ApiError> {
    let command = revert_command(context).map_err(|error| context.or_ledger_not_found(error))?;
    let receipt = write::submit(context, command, Detail::Entry).await?;
    recorded(context, &receipt, StatusCode::CREATED)
}

fn revert_command(context: &Context<'_>) -> Result<Command, ApiError> {
    let id = transaction_id(context)?;
    let metadata = if context.body.is_empty() {
        RevertBody::default().metadata
    } else {
        let Object(body) = json::first::<Object<RevertBody>>(&context.body)
            .map_err(|error| ApiError::validation(format!("expected JSON body with metadata: {error}")))?;
        body.metadata
    };
    Ok(wire::revert(id, context.query.flag("force"), context.query.flag("atEffectiveDate"), metadata))
}

/// Builds the response with the recorded transaction, also for an idempotent replay.
fn recorded(context: &Context<'_>, receipt: &Receipt, status: StatusCode) -> Result<Reply, ApiError> {
    let mut json = context.json();
    json.raw("{\"data\":");
    match &write::entry(receipt)?.payload {
        LogPayload::NewTransaction { transaction, effective_volumes, .. }
        | LogPayload::RevertedTransaction { transaction, effective_volumes, .. } => {
            let kept = answers_effective_volumes(context);
            write_recorded(&mut json, transaction, effective_volumes.as_deref(), kept);
        }
        _ => return Err(ApiError::fault("the entry of a transaction is of another type")),
    }
    let mut reply = {
        json.raw("}");
        json.reply(status)
    };
    if receipt.replayed {
        response::mark_replayed(&mut reply);
    }
    Ok(reply)
}

pub(crate) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = context.ledger()?;
    let list = List::of(context, &LIST)?;
    page(context, ledger, &list).await
}

/// Answers a list of transactions with one page.
pub(crate) async fn page(context: &Context<'_>, ledger: LedgerView, list: &List) -> Result<Reply, ApiError> {
    let query = store_query(list)?;
    let (order, expand) = (query.order, list.query.expand);
    let page = if list.is_long() || expand.effective_volumes {
        context.app.long(move || Ok(ledger.transactions(&query)?)).await?
    } else {
        ledger.transactions(&query)?
    };
    let key = |view: &TransactionView| {
        format!("{} {}", order.date_of(&view.transaction).as_micros(), view.transaction.id.get())
    };
    Ok(list.reply(context, &page, key, |json, view| write_view(json, view, expand.volumes)))
}

/// Builds the query for the store.
///
/// # Errors
///
/// Returns `VALIDATION` if the key in the cursor is malformed. Only a defect of this server makes such a cursor.
pub(crate) fn store_query(list: &List) -> Result<TransactionQuery, ApiError> {
    let expand = list.query.expand;
    let order = match list.query.order {
        Sort::Timestamp => TransactionOrder::Timestamp,
        Sort::UpdatedAt => TransactionOrder::UpdatedAt,
        Sort::RevertedAt => TransactionOrder::RevertedAt,
        _ => TransactionOrder::Id,
    };
    Ok(TransactionQuery {
        filter: list.filter()?,
        at: list.query.at,
        effective_volumes: expand.effective_volumes,
        order,
        page: list.page(|text| {
            let (timestamp, id) = text.split_once(' ')?;
            Some(TransactionKey {
                timestamp: Timestamp::from_micros(timestamp.parse().ok()?),
                id: TransactionId::new(id.parse().ok()?),
            })
        })?,
    })
}

pub(crate) async fn count(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = context.ledger()?;
    let at = list::point_in_time(context)?;
    let filter = query::filter(context)?;
    let number = context.app.long(move || Ok(ledger.count_transactions(&filter, at)?)).await?;
    Ok(response::count(StatusCode::NO_CONTENT, number))
}

pub(crate) fn read(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = context.ledger()?;
    let text = context.variable(1);
    // No transaction has a negative id, but the text is a number: the error is "not found".
    if text.strip_prefix('-').is_some_and(|digits| digits.parse::<u64>().is_ok()) {
        return Err(not_found());
    }
    let id = transaction_id(context)?;
    let at = list::point_in_time(context)?;
    let expand = list::expand(context);
    let view = ledger.transaction(id, at, expand.effective_volumes)?.ok_or_else(not_found)?;
    let mut json = context.json();
    json.raw("{\"data\":");
    write_view(&mut json, &view, expand.volumes);
    json.raw("}");
    Ok(json.reply(StatusCode::OK))
}

pub(crate) async fn set_metadata(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = transaction_id(context).map_err(|error| context.or_ledger_not_found(error))?;
    let metadata = write::metadata_body(context)?;
    write::submit_without_body(context, Command::SetMetadata { target: Target::Transaction(id), metadata })
        .await
}

pub(crate) async fn delete_metadata(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = transaction_id(context).map_err(|error| context.or_ledger_not_found(error))?;
    let key = context.variable(2).into();
    write::submit_without_body(context, Command::DeleteMetadata { target: Target::Transaction(id), key })
        .await
}

fn not_found() -> ApiError {
    ApiError::not_found("getting transaction: not found")
}

fn transaction_id(context: &Context<'_>) -> Result<TransactionId, ApiError> {
    let text = context.variable(1);
    match text.parse() {
        Ok(id) if !text.starts_with('+') => Ok(TransactionId::new(id)),
        _ => Err(ApiError::validation("invalid transaction id")),
    }
}

fn write_view(json: &mut Json, view: &TransactionView, volumes: bool) {
    let committed = volumes.then_some(view.transaction.post_commit_volumes.as_slice());
    write_transaction(json, &view.transaction, committed, view.effective_volumes.as_deref());
}

/// Returns whether the ledger of an accepted write keeps effective volumes.
pub(crate) fn answers_effective_volumes(context: &Context<'_>) -> bool {
    // The ledger may have been deleted after the write, which still needs its response.
    context.ledger().map_or(true, |ledger| keeps_effective_volumes(ledger.info().features))
}
