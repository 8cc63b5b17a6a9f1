//! Transactions: create, list, count, read, revert, metadata.

use hyper::StatusCode;
use ledger_core::{
    Command, Features, HoldingVolumes, LogPayload, Overdraft, Resource, Switch, Target, Timestamp,
    Transaction, TransactionId,
};
use ledger_store::{
    Detail, Direction, LedgerView, Receipt, TransactionKey, TransactionOrder, TransactionQuery,
    TransactionView,
};

use crate::call::Call;
use crate::cursor::Sort;
use crate::error::ApiError;
use crate::json::{self, Object};
use crate::ledger_v2::list::{self, Kind, List};
use crate::ledger_v2::wire::{CreateBody, RevertBody};
use crate::ledger_v2::{query, wire, write};
use crate::response::{self, Json, Reply};
use crate::shape::{volumes_before, write_holdings, write_posting};

pub(crate) static LIST: Kind = Kind {
    name: "transactions",
    resource: Resource::Transactions,
    direction: Direction::Descending,
    // Insertion dates do not decrease along the ids.
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

pub(crate) async fn create(call: &Call<'_>) -> Result<Reply, ApiError> {
    let command = create_command(call).map_err(|error| call.unless_no_ledger(error))?;
    let receipt = write::submit(call, command, Detail::Entry).await?;
    recorded(call, &receipt, StatusCode::OK)
}

fn create_command(call: &Call<'_>) -> Result<Command, ApiError> {
    let Object(body) = json::first::<Object<CreateBody<'_>>>(&call.body)
        .map_err(|error| ApiError::validation(format!("invalid transaction format: {error}")))?;
    let overdraft = if call.query.flag("force") { Overdraft::Allow } else { Overdraft::Refuse };
    body.into_command(overdraft, call.app.settings().runtime)
}

pub(crate) async fn revert(call: &Call<'_>) -> Result<Reply, ApiError> {
    let command = revert_command(call).map_err(|error| call.unless_no_ledger(error))?;
    let receipt = write::submit(call, command, Detail::Entry).await?;
    recorded(call, &receipt, StatusCode::CREATED)
}

fn revert_command(call: &Call<'_>) -> Result<Command, ApiError> {
    let id = transaction_id(call)?;
    let metadata = if call.body.is_empty() {
        RevertBody::default().metadata
    } else {
        let Object(body) = json::first::<Object<RevertBody>>(&call.body)
            .map_err(|error| ApiError::validation(format!("expected JSON body with metadata: {error}")))?;
        body.metadata
    };
    Ok(wire::revert(id, call.query.flag("force"), call.query.flag("atEffectiveDate"), metadata))
}

/// The answer with a transaction that was just recorded, or recorded before under the same idempotency key.
fn recorded(call: &Call<'_>, receipt: &Receipt, status: StatusCode) -> Result<Reply, ApiError> {
    let mut json = call.json();
    json.raw("{\"data\":");
    match &write::entry(receipt)?.payload {
        LogPayload::NewTransaction { transaction, effective_volumes, .. }
        | LogPayload::RevertedTransaction { transaction, effective_volumes, .. } => {
            let kept = answers_effective_volumes(call);
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

pub(crate) async fn list(call: &Call<'_>) -> Result<Reply, ApiError> {
    let ledger = call.ledger()?;
    let list = List::of(call, &LIST)?;
    page(call, ledger, &list).await
}

/// The answer to a list.
pub(crate) async fn page(call: &Call<'_>, ledger: LedgerView, list: &List) -> Result<Reply, ApiError> {
    let question = question(list)?;
    let (order, expand) = (question.order, list.query.expand);
    let page = if list.is_long() || expand.effective_volumes {
        call.app.long(move || Ok(ledger.transactions(&question)?)).await?
    } else {
        ledger.transactions(&question)?
    };
    let key = |view: &TransactionView| {
        format!("{} {}", order.date_of(&view.transaction).as_micros(), view.transaction.id.get())
    };
    Ok(list.reply(call, &page, key, |json, view| write_view(json, view, expand.volumes)))
}

/// What a list asks the store.
///
/// # Errors
///
/// `VALIDATION` for a cursor that only a defect makes.
pub(crate) fn question(list: &List) -> Result<TransactionQuery, ApiError> {
    let expand = list.query.expand;
    let order = match list.query.order {
        Sort::Timestamp => TransactionOrder::Timestamp,
        Sort::UpdatedAt => TransactionOrder::UpdatedAt,
        Sort::RevertedAt => TransactionOrder::RevertedAt,
        _ => TransactionOrder::Id,
    };
    Ok(TransactionQuery {
        filter: list.filter.clone(),
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

pub(crate) async fn count(call: &Call<'_>) -> Result<Reply, ApiError> {
    let ledger = call.ledger()?;
    let at = list::point_in_time(call)?;
    let filter = query::parse(call.profile, Resource::Transactions, query::filter_text(call)?)?;
    let number = call.app.long(move || Ok(ledger.count_transactions(&filter, at)?)).await?;
    Ok(response::count(StatusCode::NO_CONTENT, number))
}

pub(crate) fn read(call: &Call<'_>) -> Result<Reply, ApiError> {
    let ledger = call.ledger()?;
    let text = call.variable(1);
    // A whole number below zero is nobody's id, but it is a number.
    if text.strip_prefix('-').is_some_and(|digits| digits.parse::<u64>().is_ok()) {
        return Err(not_found());
    }
    let id = transaction_id(call)?;
    let at = list::point_in_time(call)?;
    let expand = list::expand(call);
    let view = ledger.transaction(id, at, expand.effective_volumes)?.ok_or_else(not_found)?;
    let mut json = call.json();
    json.raw("{\"data\":");
    write_view(&mut json, &view, expand.volumes);
    json.raw("}");
    Ok(json.reply(StatusCode::OK))
}

pub(crate) async fn set_metadata(call: &Call<'_>) -> Result<Reply, ApiError> {
    let id = transaction_id(call).map_err(|error| call.unless_no_ledger(error))?;
    let metadata = write::metadata_body(call)?;
    write::without_answer(call, Command::SetMetadata { target: Target::Transaction(id), metadata }).await
}

pub(crate) async fn delete_metadata(call: &Call<'_>) -> Result<Reply, ApiError> {
    let id = transaction_id(call).map_err(|error| call.unless_no_ledger(error))?;
    let key = call.variable(2).into();
    write::without_answer(call, Command::DeleteMetadata { target: Target::Transaction(id), key }).await
}

fn not_found() -> ApiError {
    ApiError::not_found("getting transaction: not found")
}

fn transaction_id(call: &Call<'_>) -> Result<TransactionId, ApiError> {
    let text = call.variable(1);
    match text.parse() {
        Ok(id) if !text.starts_with('+') => Ok(TransactionId::new(id)),
        _ => Err(ApiError::validation("invalid transaction id")),
    }
}

fn write_view(json: &mut Json, view: &TransactionView, volumes: bool) {
    let committed = volumes.then_some(view.transaction.post_commit_volumes.as_slice());
    write_transaction(json, &view.transaction, committed, view.effective_volumes.as_deref());
}

/// Whether a ledger keeps volumes in effective order. They are part of the history of its moves.
pub(crate) fn keeps_effective_volumes(features: Features) -> bool {
    let Features { effective_volumes, moves_history, .. } = features;
    (effective_volumes, moves_history) == (Switch::On, Switch::On)
}

/// Whether the ledger of a write that was accepted keeps them.
pub(crate) fn answers_effective_volumes(call: &Call<'_>) -> bool {
    // It may have been deleted since: the write is answered all the same.
    call.ledger().map_or(true, |ledger| keeps_effective_volumes(ledger.info().features))
}

/// A transaction as its create or revert is answered: with all volumes that its ledger keeps. Where those in effective
/// order are not told, they are those in order of insertion.
pub(crate) fn write_recorded(
    json: &mut Json,
    transaction: &Transaction,
    effective: Option<&[HoldingVolumes]>,
    effective_kept: bool,
) {
    let committed = transaction.post_commit_volumes.as_slice();
    let effective = effective_kept.then(|| effective.unwrap_or(committed));
    write_transaction(json, transaction, Some(committed), effective);
}

/// A transaction with the volumes right after it by insertion and by effective date, where they are given; those
/// before it are the same without its own postings.
pub(crate) fn write_transaction(
    json: &mut Json,
    transaction: &Transaction,
    committed: Option<&[HoldingVolumes]>,
    effective: Option<&[HoldingVolumes]>,
) {
    let committed = committed.filter(|volumes| !volumes.is_empty());
    let effective = effective.filter(|volumes| !volumes.is_empty());
    json.raw("{\"postings\":[").list(&transaction.postings, write_posting);
    json.raw("],\"metadata\":").metadata(&transaction.metadata);
    json.raw(",\"timestamp\":").time(transaction.timestamp);
    if let Some(reference) = &transaction.reference {
        json.raw(",\"reference\":").string(reference.as_str());
    }
    json.raw(",\"id\":").integer(transaction.id.get());
    json.raw(",\"insertedAt\":").time(transaction.inserted_at);
    json.raw(",\"updatedAt\":").time(transaction.updated_at);
    if let Some(at) = transaction.reverted_at {
        json.raw(",\"revertedAt\":").time(at);
    }
    if let Some(template) = &transaction.template {
        json.raw(",\"template\":").string(template);
    }
    write_both(json, "postCommit", committed, effective, |json, volumes| {
        write_holdings(json, volumes.iter().map(|holding| (holding, &holding.volumes)));
    });
    json.raw(",\"reverted\":").boolean(transaction.reverted_at.is_some());
    write_both(json, "preCommit", committed, effective, |json, volumes| {
        write_holdings(json, volumes.iter().zip(&volumes_before(transaction, volumes)));
    });
    json.raw("}");
}

/// Writes volumes by insertion and by effective date. They are the same unless a date was chosen, and then the
/// second map is a copy of the first.
fn write_both(
    json: &mut Json,
    moment: &str,
    committed: Option<&[HoldingVolumes]>,
    effective: Option<&[HoldingVolumes]>,
    write: impl Fn(&mut Json, &[HoldingVolumes]),
) {
    let mut written = None;
    if let Some(volumes) = committed {
        json.raw(",\"").raw(moment).raw("Volumes\":");
        let from = json.len();
        write(json, volumes);
        written = Some((volumes, from..json.len()));
    }
    if let Some(volumes) = effective {
        json.raw(",\"").raw(moment).raw("EffectiveVolumes\":");
        match written {
            Some((same, bytes)) if std::ptr::eq(same, volumes) => {
                json.repeat(bytes);
            }
            _ => write(json, volumes),
        }
    }
}
