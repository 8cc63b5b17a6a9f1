//! The ledger and bucket routes of v2: create, list, read, statistics, metadata, delete and restore.

use hyper::StatusCode;
use ledger_core::{BucketName, Features, FirstId, HashLogs, LedgerName, LedgerOptions, Resource, Switch};
use ledger_store::{Deleted, Direction, LedgerInfo, Store, WriteError};

use crate::api::context::Context;
use crate::api::cursor::Sort;
use crate::api::ledger_v2::list::{List, ListSpec};
use crate::api::ledger_v2::wire::LedgerBody;
use crate::api::ledger_v2::write;
use crate::http::error::{ApiError, Profile};
use crate::http::json::{self, Object};
use crate::http::response::{self, Json, Reply};

static LIST: ListSpec = ListSpec {
    name: "ledgers",
    resource: Resource::Ledgers,
    direction: Direction::Ascending,
    sortable: &[("id", Sort::Natural)],
    until: &[],
    since: &[],
};

/// A reserved name that no bucket may have.
const RESERVED_BUCKET: &str = "_system";

pub(crate) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let list = List::of(context, &LIST)?;
    let page = list.page(|text| text.parse().ok())?;
    let deleted = if list.query.include_deleted { Deleted::Shown } else { Deleted::Hidden };
    let (snapshot, filter) = (context.app.snapshot(), list.filter()?);
    let page = context.app.long(move || Ok(snapshot.ledgers(&page, &filter, deleted)?)).await?;
    Ok(list.reply(context, &page, |ledger| ledger.id.to_string(), write_ledger))
}

pub(crate) async fn create(context: &Context<'_>) -> Result<Reply, ApiError> {
    let invalid = |error: &dyn std::fmt::Display| {
        ApiError::validation(format!("invalid ledger configuration: {error}"))
    };
    let name = LedgerName::parse(context.variable(0)).map_err(|error| invalid(&error))?;
    let blank = context.body.iter().all(u8::is_ascii_whitespace);
    let Object(body) = if blank {
        Object(LedgerBody::default())
    } else {
        json::first(&context.body)
            .map_err(|error| ApiError::validation(format!("invalid format: {error}")))?
    };
    let bucket = match body.bucket.0.as_ref() {
        "" => BucketName::default_bucket(),
        // Other servers of this API keep their own tables in a bucket of this name.
        RESERVED_BUCKET => {
            let message = format_args!("invalid bucket name '{RESERVED_BUCKET}': name is reserved");
            return Err(invalid(&message));
        }
        text => BucketName::parse(text).map_err(|error| invalid(&error))?,
    };
    let mut features = Features::default();
    for (feature, value) in &body.features {
        set_feature(&mut features, &feature.0, &value.0)?;
    }
    if features != Features::default() && !context.app.settings().experimental_features {
        return Err(ApiError::validation("experimental features are disabled"));
    }
    let first_id = context.app.settings().first_id.unwrap_or(match context.profile {
        Profile::Stack => FirstId::Zero,
        Profile::Ledger => FirstId::One,
    });
    let options = LedgerOptions { bucket, first_id, features, metadata: body.metadata };
    context.app.blocking(move |store| Ok(store.create_ledger(name, options)?)).await?;
    Ok(response::no_content())
}

/// Sets one feature by its name and value on the wire.
fn set_feature(features: &mut Features, feature: &str, value: &str) -> Result<(), ApiError> {
    let impossible =
        || ApiError::validation(format!("configuration {value} it not possible for feature {feature}"));
    let switch = |on: &str, off: &str| match value {
        value if value == on => Ok(Switch::On),
        value if value == off => Ok(Switch::Off),
        _ => Err(impossible()),
    };
    match feature {
        "HASH_LOGS" => {
            features.hash_logs = match value {
                "SYNC" => HashLogs::Sync,
                "ASYNC" => HashLogs::Async,
                "DISABLED" => HashLogs::Disabled,
                _ => return Err(impossible()),
            }
        }
        "MOVES_HISTORY" => features.moves_history = switch("ON", "OFF")?,
        "MOVES_HISTORY_POST_COMMIT_EFFECTIVE_VOLUMES" => {
            features.effective_volumes = switch("SYNC", "DISABLED")?;
        }
        "ACCOUNT_METADATA_HISTORY" => features.account_metadata_history = switch("SYNC", "DISABLED")?,
        "TRANSACTION_METADATA_HISTORY" => {
            features.transaction_metadata_history = switch("SYNC", "DISABLED")?;
        }
        _ => return Err(ApiError::validation(format!("feature \"{feature}\" not exists"))),
    }
    Ok(())
}

pub(crate) fn read(context: &Context<'_>) -> Result<Reply, ApiError> {
    // On other routes, a missing ledger has an error code of its own. Here it has that of any missing resource.
    let ledger = context.ledger().map_err(|_| ApiError::not_found("not found"))?;
    let mut json = context.json();
    json.raw("{\"data\":");
    write_ledger(&mut json, ledger.info());
    json.raw("}");
    Ok(json.reply(StatusCode::OK))
}

pub(crate) fn stats(context: &Context<'_>) -> Result<Reply, ApiError> {
    let stats = context.ledger()?.stats()?;
    let mut json = context.json();
    json.raw("{\"data\":{\"transactions\":").integer(stats.transactions);
    json.raw(",\"accounts\":").integer(stats.accounts).raw("}}");
    Ok(json.reply(StatusCode::OK))
}

pub(crate) async fn set_metadata(context: &Context<'_>) -> Result<Reply, ApiError> {
    let name = context.ledger_name()?;
    let metadata = write::metadata_body(context)?;
    context.app.blocking(move |store| Ok(store.set_ledger_metadata(&name, metadata)?)).await?;
    Ok(response::no_content())
}

pub(crate) async fn delete_metadata(context: &Context<'_>) -> Result<Reply, ApiError> {
    let name = context.ledger_name()?;
    let key = context.variable(1).to_owned();
    context.app.blocking(move |store| Ok(store.delete_ledger_metadata(&name, &key)?)).await?;
    Ok(response::no_content())
}

/// Deletes or restores a bucket by calling `mark`. A bucket that never had a ledger is no error, and neither is a name
/// that no bucket can have: nothing changes.
pub(crate) async fn change_bucket(
    context: &Context<'_>,
    mark: fn(&Store, &BucketName) -> Result<(), WriteError>,
) -> Result<Reply, ApiError> {
    if let Ok(bucket) = BucketName::parse(context.variable(0)) {
        context.app.blocking(move |store| Ok(mark(store, &bucket)?)).await?;
    }
    Ok(response::no_content())
}

fn write_ledger(json: &mut Json, ledger: &LedgerInfo) {
    let Features {
        hash_logs,
        moves_history,
        effective_volumes,
        account_metadata_history,
        transaction_metadata_history,
        // v2 does not show this feature.
        legacy_hashes: _,
    } = ledger.features;
    let sync_or_disabled = |switch| if switch == Switch::On { "SYNC" } else { "DISABLED" };
    json.raw("{\"bucket\":").plain_string(ledger.bucket.as_str());
    json.raw(",\"metadata\":").metadata(&ledger.metadata);
    json.raw(",\"features\":{\"ACCOUNT_METADATA_HISTORY\":")
        .plain_string(sync_or_disabled(account_metadata_history));
    json.raw(",\"HASH_LOGS\":").plain_string(match hash_logs {
        HashLogs::Sync => "SYNC",
        HashLogs::Async => "ASYNC",
        HashLogs::Disabled => "DISABLED",
    });
    json.raw(",\"MOVES_HISTORY\":");
    json.plain_string(if moves_history == Switch::On { "ON" } else { "OFF" });
    json.raw(",\"MOVES_HISTORY_POST_COMMIT_EFFECTIVE_VOLUMES\":")
        .plain_string(sync_or_disabled(effective_volumes));
    json.raw(",\"TRANSACTION_METADATA_HISTORY\":")
        .plain_string(sync_or_disabled(transaction_metadata_history));
    json.raw("},\"id\":").integer(ledger.id.into());
    json.raw(",\"name\":").plain_string(ledger.name.as_str());
    json.raw(",\"addedAt\":").time(ledger.added_at);
    if let Some(deleted_at) = ledger.deleted_at {
        json.raw(",\"deletedAt\":").time(deleted_at);
    }
    json.raw("}");
}
