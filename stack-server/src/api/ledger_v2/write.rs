//! The common part of all writes: submitting one command, and the answer of those that return nothing.

use ledger_core::{Command, Idempotency, LogEntry, Metadata, request_hash};
use ledger_store::{Atomicity, Detail, Mode, Outcome, Receipt, Request, Submission};

use crate::api::call::Call;
use crate::http::error::ApiError;
use crate::http::json::{self, TextMap};
use crate::http::response::{self, Reply};

/// Submits the command of a request, with its idempotency key and as a dry run where the caller says so.
///
/// # Errors
///
/// The refusal of the command, or the reason why there is no outcome.
pub(crate) async fn submit(call: &Call<'_>, command: Command, detail: Detail) -> Result<Receipt, ApiError> {
    let key = call.idempotency_key().map_err(|error| call.unless_no_ledger(error))?;
    let schema_version = match &command {
        Command::InsertSchema(_) => None,
        _ => call.schema_version().map_err(|error| call.unless_no_ledger(error))?,
    };
    let idempotency = key.map(|key| Box::new(Idempotency { key, hash: request_hash(&command) }));
    let submission = Submission {
        ledger: call.ledger_name()?,
        requests: vec![Request { command, idempotency, schema_version: schema_version.map(Box::new) }],
        atomicity: Atomicity::Independent,
        mode: if call.query.dry_run(call.profile) { Mode::DryRun } else { Mode::Commit },
        detail,
    };
    match call.app.submit(submission).await?.pop() {
        Some(Outcome::Done(receipt)) => Ok(receipt),
        Some(Outcome::Refused(rejection)) => Err(rejection.into()),
        Some(Outcome::Failed(error)) => Err(error.into()),
        Some(Outcome::Cancelled) | None => Err(ApiError::fault("one command has no outcome")),
    }
}

/// Submits a command whose answer is empty.
///
/// # Errors
///
/// As [`submit`].
pub(crate) async fn without_answer(call: &Call<'_>, command: Command) -> Result<Reply, ApiError> {
    let receipt = submit(call, command, Detail::Ids).await?;
    let mut reply = response::no_content();
    if receipt.replayed {
        response::mark_replayed(&mut reply);
    }
    Ok(reply)
}

/// The entry of a receipt that was asked for with [`Detail::Entry`].
///
/// # Errors
///
/// `INTERNAL` if it is not there: the store promises it.
pub(crate) fn entry(receipt: &Receipt) -> Result<&LogEntry, ApiError> {
    receipt.entry.as_deref().ok_or_else(|| ApiError::fault("a receipt lacks its entry"))
}

/// The body of a metadata write.
///
/// # Errors
///
/// `VALIDATION`; for a ledger that is not there, that.
pub(crate) fn metadata_body(call: &Call<'_>) -> Result<Metadata, ApiError> {
    match json::first(&call.body) {
        Ok(TextMap(metadata)) => Ok(metadata),
        Err(error) => {
            Err(call.unless_no_ledger(ApiError::validation(format!("invalid metadata format: {error}"))))
        }
    }
}
