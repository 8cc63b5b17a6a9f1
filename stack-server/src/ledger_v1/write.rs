//! What all writes have in common.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use ledger_core::{Command, CompactString, Idempotency, LogPayload, Metadata, Rejection, Transaction};
use ledger_store::{Atomicity, Detail, Mode, Outcome, Receipt, Request, Submission};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::call::Call;
use crate::error::ApiError;
use crate::json::{self, AnyMap};
use crate::ledger_v1::{error, ledger};
use crate::response::{self, Reply};

/// Whether nothing is to be stored. Every write of a single thing heeds it, so that what somebody only wanted to see is
/// not done.
pub(crate) fn mode(call: &Call<'_>) -> Mode {
    let preview = call.query.get("preview").is_some_and(|value| {
        value == "1" || value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("yes")
    });
    if preview { Mode::DryRun } else { Mode::Commit }
}

/// Submits the commands of a request as one, under its idempotency key.
///
/// # Errors
///
/// What `refused` makes of the refusal of one of them, or why there is no outcome.
pub(crate) async fn submit(
    call: &Call<'_>,
    commands: Vec<Command>,
    mode: Mode,
    detail: Detail,
    refused: impl Fn(Rejection) -> ApiError,
) -> Result<Vec<Receipt>, ApiError> {
    outcome(call, commands, mode, detail).await?.map_err(refused)
}

/// As [`submit`], with the refusal of the first of them that was refused as it is.
///
/// A ledger that is not there comes into being with the first write that succeeds: what is refused, or is only a
/// preview, leaves none behind.
///
/// # Errors
///
/// Why there is no outcome.
pub(crate) async fn outcome(
    call: &Call<'_>,
    commands: Vec<Command>,
    mode: Mode,
    detail: Detail,
) -> Result<Result<Vec<Receipt>, Rejection>, ApiError> {
    let key = call.idempotency_key()?;
    let mut requests: Vec<Request> = commands.into_iter().map(Request::from).collect();
    if let (Some(key), Some(first)) = (key, requests.first_mut()) {
        first.idempotency = Some(Box::new(Idempotency { key, hash: hash_of(call) }));
    }
    let ledger = if let Some(ledger) = ledger::view(call)? {
        ledger
    } else {
        let rehearsed = receipts(call.app.rehearse(requests.clone(), detail).await?);
        if mode == Mode::DryRun || rehearsed.is_err() {
            return Ok(rehearsed);
        }
        ledger::ensured(call).await?
    };
    let ledger = ledger.info().name.clone();
    // A command by itself needs not be undone with others.
    let atomicity = if requests.len() == 1 { Atomicity::Independent } else { Atomicity::AsOne };
    let submission = Submission { ledger, requests, atomicity, mode, detail };
    Ok(receipts(call.app.submit(submission).await?))
}

/// The receipts of commands that are one, or the refusal that undid them.
fn receipts(outcomes: Vec<Outcome>) -> Result<Vec<Receipt>, Rejection> {
    let mut receipts = Vec::with_capacity(outcomes.len());
    let mut refusal = None;
    for outcome in outcomes {
        match outcome {
            Outcome::Done(receipt) => receipts.push(receipt),
            Outcome::Refused(rejection) => refusal = refusal.or(Some(rejection)),
            // Commands that are one fail as one, and a single one fails as its submission.
            Outcome::Cancelled | Outcome::Failed(_) => {}
        }
    }
    refusal.map_or(Ok(receipts), Err)
}

/// What a repetition must equal: the target of the request and its body, byte by byte. The word before them keeps
/// this apart from the keys of the second generation.
fn hash_of(call: &Call<'_>) -> CompactString {
    let mut hasher = Sha256::new();
    hasher.update(b"v1\n");
    hasher.update(call.target.as_bytes());
    hasher.update(b"\n");
    hasher.update(&call.body);
    let mut text = CompactString::default();
    text.push_str(&URL_SAFE.encode(hasher.finalize()));
    text
}

/// Submits a command whose answer is empty.
///
/// # Errors
///
/// As [`submit`].
pub(crate) async fn without_answer(call: &Call<'_>, command: Command) -> Result<Reply, ApiError> {
    let receipts = submit(call, vec![command], mode(call), Detail::Ids, error::refused).await?;
    Ok(marked(response::no_content(), &receipts))
}

/// Says on an answer whether it is the first one again.
pub(crate) fn marked(mut reply: Reply, receipts: &[Receipt]) -> Reply {
    if receipts.iter().any(|receipt| receipt.replayed) {
        response::mark_replayed(&mut reply);
    }
    reply
}

/// The transaction of a receipt that was asked for with [`Detail::Entry`].
///
/// # Errors
///
/// `INTERNAL` if it is not there: the store promises it.
pub(crate) fn transaction(receipt: &Receipt) -> Result<&Transaction, ApiError> {
    match receipt.entry.as_deref().map(|entry| &entry.payload) {
        Some(
            LogPayload::NewTransaction { transaction, .. }
            | LogPayload::RevertedTransaction { transaction, .. },
        ) => Ok(transaction),
        _ => Err(ApiError::fault("a receipt lacks its transaction")),
    }
}

/// The body of a metadata write: an object, with values of any type.
///
/// # Errors
///
/// `VALIDATION`.
pub(crate) fn metadata_body(call: &Call<'_>) -> Result<Metadata, ApiError> {
    let invalid = |_| ApiError::validation("invalid metadata format");
    let body = json::first::<&RawValue>(&call.body).map_err(invalid)?;
    if body.get() == "null" {
        return Err(ApiError::validation("invalid metadata format"));
    }
    let AnyMap(metadata) = json::first(body.get().as_bytes()).map_err(invalid)?;
    Ok(metadata)
}
