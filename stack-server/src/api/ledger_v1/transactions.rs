//! The transaction routes of v1: create, batch, list, count, read, revert and metadata.

use std::borrow::Cow;
use std::fmt::Display;

use hyper::StatusCode;
use ledger_core::{
    Command, CreateTransaction, FilterNode, Metadata, MetadataValue, Overdraft, REVERTS_KEY, Resource,
    RevertDate, RevertTransaction, Target, Timestamp, Transaction, TransactionId,
};
use ledger_store::{Detail, LedgerView, Mode, Receipt, TransactionKey, TransactionOrder, TransactionQuery};

use crate::api::context::Context;
use crate::api::ledger_v1::client::Client;
use crate::api::ledger_v1::list::{self, List, ListSpec, Parameters};
use crate::api::ledger_v1::wire::{self, BatchBody, TransactionBody};
use crate::api::ledger_v1::{error, filter, ledger, write};
use crate::http::error::{ApiError, Code};
use crate::http::json::{self, Object};
use crate::http::response::{self, Json, Reply};
use crate::limits::ATOMIC_COMMANDS_MAX;
use crate::shapes::volumes::{volumes_before, write_holdings, write_posting};

/// Approximate number of bytes of JSON for a transaction with one posting.
const TRANSACTION_BYTES: usize = 1_024;

static LIST: ListSpec = ListSpec {
    name: "v1 transactions",
    resource: Resource::Transactions,
    parameters: &[
        "after",
        "reference",
        "account",
        "source",
        "destination",
        "startTime",
        "start_time",
        "endTime",
        "end_time",
    ],
    metadata: true,
    ascends_for_2_4: false,
    ignored_by_1_10_counts: &["after"],
    select,
};

fn select(parameters: &Parameters) -> Result<Vec<FilterNode>, ApiError> {
    let mut nodes: Vec<FilterNode> = filter::below_id(parameters)?.into_iter().collect();
    nodes.extend(filter::window(parameters)?);
    nodes.extend(parameters.get("reference").map(filter::reference));
    nodes.extend(filter::sides(parameters)?);
    nodes.extend(filter::metadata(parameters));
    Ok(nodes)
}

pub(crate) async fn create(context: &Context<'_>) -> Result<Reply, ApiError> {
    let Object(body) =
        json::first::<Object<TransactionBody<'_>>>(&context.body).map_err(|error| wire::malformed(&error))?;
    let create = body.into_create(context.app.legacy_rules(ledger::view(context)?.as_ref())?)?;
    let receipts = create_all(context, vec![create], write::mode(context)).await?;
    answer(context, &receipts)
}

pub(crate) async fn create_batch(context: &Context<'_>) -> Result<Reply, ApiError> {
    let invalid =
        |reason: &dyn Display| ApiError::validation(format!("invalid transactions format: {reason}"));
    let Object(body) =
        json::first::<Object<BatchBody<'_>>>(&context.body).map_err(|error| invalid(&error))?;
    let transactions = body.transactions.ok_or_else(|| invalid(&"transactions: expected an array"))?;
    if transactions.is_empty() {
        return Err(ApiError::validation("no transaction to insert"));
    }
    if transactions.len() > ATOMIC_COMMANDS_MAX {
        let message = format!("bulk size exceeded, max size is {ATOMIC_COMMANDS_MAX}");
        return Err(ApiError::new(Code::BulkSizeExceeded, message));
    }
    let rules = context.app.legacy_rules(ledger::view(context)?.as_ref())?;
    let elements = transactions.into_iter().enumerate();
    let creates = elements.map(|(at, element)| element.into_element(at, rules.clone()));
    let receipts = create_all(context, creates.collect::<Result<_, _>>()?, Mode::Commit).await?;
    answer(context, &receipts)
}

async fn create_all(
    context: &Context<'_>,
    creates: Vec<CreateTransaction>,
    mode: Mode,
) -> Result<Vec<Receipt>, ApiError> {
    let commands = creates.into_iter().map(Command::CreateTransaction).collect();
    write::submit(context, commands, mode, Detail::Entry, error::refused).await
}

/// Builds the response with all transactions that the request recorded.
fn answer(context: &Context<'_>, receipts: &[Receipt]) -> Result<Reply, ApiError> {
    let client = Client::of(context);
    let mut json = Json::with_capacity(context.numbers(), receipts.len() * TRANSACTION_BYTES);
    json.raw("{\"data\":[");
    for (at, receipt) in receipts.iter().enumerate() {
        json.raw(if at == 0 { "" } else { "," });
        write_transaction(&mut json, write::transaction(receipt)?, None, client);
    }
    json.raw("]}");
    Ok(write::mark_replays(json.reply(StatusCode::OK), receipts))
}

pub(crate) async fn revert(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (ledger, client) = (ledger::view(context)?, Client::of(context));
    let id = transaction_id(context)?;
    let not_found = || ApiError::not_found(format!("transaction {} not found", id.get()));
    // Do not create a ledger for a transaction that it cannot contain.
    let rules = context.app.legacy_rules(Some(&ledger.ok_or_else(not_found)?))?;
    let unchecked = matches!(context.query.get("disableChecks"), Some("1" | "true"));
    let command = Command::RevertTransaction(RevertTransaction {
        id,
        overdraft: if unchecked { Overdraft::Allow } else { Overdraft::Refuse },
        dated: RevertDate::Now,
        metadata: Metadata::EMPTY,
        rules,
    });
    let receipts = write::submit(context, vec![command], write::mode(context), Detail::Entry, |rejection| {
        let mut error = error::refused(rejection);
        match error.code {
            Code::NotFound => not_found(),
            Code::InsufficientFund => {
                let text = format!("executing revert script for transaction {}: {}", id.get(), error.message);
                error.message = Cow::Owned(text);
                error
            }
            _ => error,
        }
    });
    let receipts = receipts.await?;
    let mut json = context.json();
    json.raw("{\"data\":");
    for receipt in &receipts {
        write_transaction(&mut json, write::transaction(receipt)?, None, client);
    }
    json.raw("}");
    let status = if client.reverts_with_200() { StatusCode::OK } else { StatusCode::CREATED };
    Ok(write::mark_replays(json.reply(status), &receipts))
}

pub(crate) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (ledger, client) = (ledger::view(context)?, Client::of(context));
    let list = List::of(context, &LIST)?;
    let question = TransactionQuery {
        filter: list.filter()?,
        at: None,
        effective_volumes: false,
        order: TransactionOrder::Id,
        // The list is ordered by id, so the date of the key does not matter.
        page: list.page(|text| {
            let id = TransactionId::new(text.parse().ok()?);
            Some(TransactionKey { timestamp: Timestamp::default(), id })
        })?,
    };
    let page = List::ask(context, ledger, question, list.is_long(), LedgerView::transactions).await?;
    let key = |view: &ledger_store::TransactionView| view.transaction.id.get().to_string();
    Ok(list.reply(context, page.as_ref(), key, |json, view| {
        write_transaction(json, &view.transaction, view.reverted_by, client);
    }))
}

pub(crate) async fn count(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = ledger::view(context)?;
    let filter = list::count_filter(context, &LIST)?;
    let number = match ledger {
        None => 0,
        Some(ledger) => context.app.long(move || Ok(ledger.count_transactions(&filter, None)?)).await?,
    };
    let later = Client::of(context).is_2_4();
    Ok(response::count(if later { StatusCode::NO_CONTENT } else { StatusCode::OK }, number))
}

pub(crate) fn read(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (ledger, client) = (ledger::view(context)?, Client::of(context));
    let id = transaction_id(context)?;
    let not_found = || ApiError::not_found("transaction not found");
    let view = ledger.ok_or_else(not_found)?.transaction(id, None, false)?.ok_or_else(not_found)?;
    let mut json = context.json();
    json.raw("{\"data\":");
    write_transaction(&mut json, &view.transaction, view.reverted_by, client);
    json.raw("}");
    Ok(json.reply(StatusCode::OK))
}

pub(crate) async fn set_metadata(context: &Context<'_>) -> Result<Reply, ApiError> {
    let metadata = write::metadata_body(context)?;
    let target = target(context)?;
    write::submit_without_body(context, Command::SetMetadata { target, metadata }).await
}

pub(crate) async fn delete_metadata(context: &Context<'_>) -> Result<Reply, ApiError> {
    let target = target(context)?;
    let key = context.variable(2);
    let command = Command::DeleteMetadata { target, key: key.into() };
    let kept = |error: &ApiError| error.message.starts_with("metadata key ");
    match write::submit_without_body(context, command).await {
        // Removing metadata that does not exist succeeds.
        Err(error) if error.code == Code::NotFound && kept(&error) => Ok(response::no_content()),
        answer => answer,
    }
}

fn target(context: &Context<'_>) -> Result<Target, ApiError> {
    let id = transaction_id(context)?;
    // Do not create a ledger for a transaction that it cannot contain.
    ledger::view(context)?.ok_or_else(|| ApiError::not_found("transaction not found"))?;
    Ok(Target::Transaction(id))
}

fn transaction_id(context: &Context<'_>) -> Result<TransactionId, ApiError> {
    let text = context.variable(1);
    match text.parse() {
        Ok(id) if !text.starts_with('+') => Ok(TransactionId::new(id)),
        _ => Err(ApiError::validation("invalid transaction ID")),
    }
}

/// The metadata keys by which release 1.10 linked a transaction and its revert.
const LEGACY_REVERTS_KEY: &str = "com.numary.spec/state/reverts";
const LEGACY_REVERTED_KEY: &str = "com.numary.spec/state/reverted";

/// Writes a transaction with the volumes before and after it.
pub(crate) fn write_transaction(
    json: &mut Json,
    transaction: &Transaction,
    reverted_by: Option<TransactionId>,
    client: Client,
) {
    json.raw("{\"postings\":[").list(&transaction.postings, write_posting).raw("]");
    match &transaction.reference {
        Some(reference) => {
            json.raw(",\"reference\":").string(reference.as_str());
        }
        None if client.is_1_10() => {
            json.raw(",\"reference\":\"\"");
        }
        None => {}
    }
    let metadata = if client.is_1_10() {
        with_marks(&transaction.metadata, reverted_by)
    } else {
        Cow::Borrowed(&transaction.metadata)
    };
    json.raw(",\"metadata\":").any_metadata(&metadata);
    json.raw(",\"txid\":").integer(transaction.id.get());
    let after = &transaction.post_commit_volumes;

    json.raw(",\"preCommitVolumes\":");
    write_holdings(json, after.iter().zip(&volumes_before(transaction, after)));
    json.raw(",\"postCommitVolumes\":");
    write_holdings(json, after.iter().map(|holding| (holding, &holding.volumes)));
    json.raw(",\"timestamp\":").time(shown_date(transaction.timestamp, client)).raw("}");
}

/// Adds the links to and from a revert to the metadata, in the form of release 1.10.
fn with_marks(metadata: &Metadata, reverted_by: Option<TransactionId>) -> Cow<'_, Metadata> {
    let reverts = metadata.get(REVERTS_KEY).filter(|_| metadata.get(LEGACY_REVERTS_KEY).is_none());
    if reverts.is_none() && reverted_by.is_none() {
        return Cow::Borrowed(metadata);
    }
    let mut marked = metadata.clone();
    if let Some(reverts) = reverts {
        marked.insert(LEGACY_REVERTS_KEY, reverts.clone());
    }
    if let Some(by) = reverted_by {
        let mark = MetadataValue::Json(format!("{{\"by\":\"{}\"}}", by.get()).into());
        marked.insert(LEGACY_REVERTED_KEY, mark);
    }
    Cow::Owned(marked)
}

/// Returns the date to show to a client. Clients of release 1.10 get whole seconds.
fn shown_date(date: Timestamp, client: Client) -> Timestamp {
    const SECOND: i64 = 1_000_000;
    if client.is_1_10() {
        Timestamp::from_micros(date.as_micros().div_euclid(SECOND).saturating_mul(SECOND))
    } else {
        date
    }
}
