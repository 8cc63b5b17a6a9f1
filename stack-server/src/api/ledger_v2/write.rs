//! Shared handling of v2 writes: submission of a command, and responses without a body.

use ledger_core::{Command, Idempotency, LogEntry, Metadata, request_hash};
use ledger_store::{Atomicity, Detail, Mode, Outcome, Receipt, Request, Submission};

use crate::api::context::Context;
use crate::http::error::ApiError;
use crate::http::json::{self, TextMap};
use crate::http::response::{self, Reply};

/// Submits the command of a request with its idempotency key, as a dry run if the request says so.
///
/// # Errors
///
/// Returns the rejection of the command, or the reason why the outcome is unknown.
pub(crate) async fn submit(
    context: &Context<'_>,
    command: Command,
    detail: Detail,
) -> Result<Receipt, ApiError> {
    let key = context.idempotency_key().map_err(|error| context.or_ledger_not_found(error))?;
    let schema_version = match &command {
        Command::InsertSchema(_) => None,
        _ => context.schema_version().map_err(|error| context.or_ledger_not_found(error))?,
    };
    let idempotency = key.map(|key| Box::new(Idempotency { key, hash: request_hash(&command) }));
    let submission = Submission {
        ledger: context.ledger_name()?,
        requests: vec![Request {
            idempotency,
            schema_version: schema_version.map(Box::new),
            ..Request::from(command)
        }],
        atomicity: Atomicity::Independent,
        mode: if context.query.dry_run(context.profile) { Mode::DryRun } else { Mode::Commit },
        detail,
    };
    match context.app.submit(submission).await?.pop() {
        Some(Outcome::Done(receipt)) => Ok(receipt),
        Some(Outcome::Refused(rejection)) => Err(rejection.into()),
        Some(Outcome::Failed(error)) => Err(error.into()),
        Some(Outcome::Cancelled) | None => Err(ApiError::fault("one command has no outcome")),
    }
}

/// Submits a command, and returns a response without a body.
///
/// # Errors
///
/// Fails like [`submit`].
pub(crate) async fn submit_without_body(context: &Context<'_>, command: Command) -> Result<Reply, ApiError> {
    let receipt = submit(context, command, Detail::Ids).await?;
    let mut reply = response::no_content();
    if receipt.replayed {
        response::mark_replayed(&mut reply);
    }
    Ok(reply)
}

/// Returns the log entry of a receipt that was requested with [`Detail::Entry`].
///
/// # Errors
///
/// `INTERNAL` if the store broke its promise to return it.
pub(crate) fn entry(receipt: &Receipt) -> Result<&LogEntry, ApiError> {
    receipt.entry.as_deref().ok_or_else(|| ApiError::fault("a receipt lacks its entry"))
}

/// Parses the body of a metadata write.
///
/// # Errors
///
/// `VALIDATION` if the body is malformed; `LEDGER_NOT_FOUND` if it is malformed and the ledger does not exist.
pub(crate) fn metadata_body(context: &Context<'_>) -> Result<Metadata, ApiError> {
    match json::first(&context.body) {
        Ok(TextMap(metadata)) => Ok(metadata),
        Err(error) => {
            Err(context
                .or_ledger_not_found(ApiError::validation(format!("invalid metadata format: {error}"))))
        }
    }
}
