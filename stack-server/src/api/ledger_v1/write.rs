//! Shared handling of v1 writes: dry runs, idempotency keys, submission and receipts.

use std::fmt::Display;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use ledger_core::{Command, Idempotency, LogPayload, Metadata, Rejection, SmolStr, Transaction};
use ledger_store::{Atomicity, Detail, Mode, Outcome, Receipt, Request, Submission};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::api::context::Context;
use crate::api::ledger_v1::{error, ledger};
use crate::http::error::ApiError;
use crate::http::json::{self, AnyMap};
use crate::http::response::{self, Reply};

/// Returns the mode of a write: commit or dry run. Every write of a single item honours the dry-run parameter, so that
/// a preview never changes anything.
pub(crate) fn mode(context: &Context<'_>) -> Mode {
    let preview = context.query.get("preview").is_some_and(|value| {
        value == "1" || value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("yes")
    });
    if preview { Mode::DryRun } else { Mode::Commit }
}

/// Submits the commands of a request atomically, under its idempotency key.
///
/// # Errors
///
/// Returns the error that `refused` creates from a rejection, or the reason why the outcome is unknown.
pub(crate) async fn submit(
    context: &Context<'_>,
    commands: Vec<Command>,
    mode: Mode,
    detail: Detail,
    refused: impl Fn(Rejection) -> ApiError,
) -> Result<Vec<Receipt>, ApiError> {
    outcome(context, commands, mode, detail).await?.map_err(refused)
}

/// Works like [`submit`], but returns the rejection of the first refused command unchanged.
///
/// The first successful write creates the ledger. A refused write or a dry run does not.
///
/// # Errors
///
/// Returns the reason why the outcome is unknown.
pub(crate) async fn outcome(
    context: &Context<'_>,
    commands: Vec<Command>,
    mode: Mode,
    detail: Detail,
) -> Result<Result<Vec<Receipt>, Rejection>, ApiError> {
    let key = context.idempotency_key()?;
    let mut requests: Vec<Request> = commands.into_iter().map(Request::from).collect();
    if let (Some(key), Some(first)) = (key, requests.first_mut()) {
        first.idempotency = Some(Box::new(Idempotency { key, hash: hash_of(context) }));
    }
    // A single command needs no atomicity.
    let atomicity = if requests.len() == 1 { Atomicity::Independent } else { Atomicity::AsOne };
    let submission = Submission { ledger: ledger::name(context)?, requests, atomicity, mode, detail };
    if ledger::view(context)?.is_none() {
        let tried = context.app.try_on_new_ledger(ledger::options(context), submission.clone()).await?;
        let tried = receipts(tried);
        if mode == Mode::DryRun || tried.is_err() {
            return Ok(tried);
        }
        ledger::ensured(context).await?;
    }
    Ok(receipts(context.app.submit(submission).await?))
}

/// Returns the receipts of an atomic group, or the rejection that undid it.
fn receipts(outcomes: Vec<Outcome>) -> Result<Vec<Receipt>, Rejection> {
    let mut receipts = Vec::with_capacity(outcomes.len());
    let mut refusal = None;
    for outcome in outcomes {
        match outcome {
            Outcome::Done(receipt) => receipts.push(receipt),
            Outcome::Refused(rejection) => refusal = refusal.or(Some(rejection)),
            // The command that caused the rejection of the group carries it. A single command fails with its
            // submission.
            Outcome::Cancelled | Outcome::Failed(_) => {}
        }
    }
    refusal.map_or(Ok(receipts), Err)
}

/// Hashes the parts in which a repeated request must be identical: the target of the request and the bytes of its body.
/// The prefix keeps these hashes apart from those of v2.
fn hash_of(context: &Context<'_>) -> SmolStr {
    let mut hasher = Sha256::new();
    hasher.update(b"v1\n");
    hasher.update(context.target.as_bytes());
    hasher.update(b"\n");
    hasher.update(&context.body);
    URL_SAFE.encode(hasher.finalize()).into()
}

/// Submits a command, and returns a response without a body.
///
/// # Errors
///
/// Fails like [`submit`].
pub(crate) async fn submit_without_body(context: &Context<'_>, command: Command) -> Result<Reply, ApiError> {
    let receipts = submit(context, vec![command], mode(context), Detail::Ids, error::refused).await?;
    Ok(mark_replays(response::no_content(), &receipts))
}

/// Sets the header that marks the response as an idempotent replay.
pub(crate) fn mark_replays(mut reply: Reply, receipts: &[Receipt]) -> Reply {
    if receipts.iter().any(|receipt| receipt.replayed) {
        response::mark_replayed(&mut reply);
    }
    reply
}

/// Returns the transaction of a receipt that was requested with [`Detail::Entry`].
///
/// # Errors
///
/// Returns `INTERNAL` if the store broke its promise to return it.
pub(crate) fn transaction(receipt: &Receipt) -> Result<&Transaction, ApiError> {
    match receipt.entry.as_deref().map(|entry| &entry.payload) {
        Some(
            LogPayload::NewTransaction { transaction, .. }
            | LogPayload::RevertedTransaction { transaction, .. },
        ) => Ok(transaction),
        _ => Err(ApiError::fault("a receipt lacks its transaction")),
    }
}

/// Parses the body of a metadata write: an object with values of any type.
///
/// # Errors
///
/// `VALIDATION` if the body is malformed.
pub(crate) fn metadata_body(context: &Context<'_>) -> Result<Metadata, ApiError> {
    let invalid = |reason: &dyn Display| ApiError::validation(format!("invalid metadata format: {reason}"));
    let body = json::first::<&RawValue>(&context.body).map_err(|error| invalid(&error))?;
    if body.get() == "null" {
        return Err(invalid(&"expected an object"));
    }
    let AnyMap(metadata) = json::first(body.get().as_bytes()).map_err(|error| invalid(&error))?;
    Ok(metadata)
}
