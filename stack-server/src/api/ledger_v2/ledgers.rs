//! The ledger and bucket routes of v2: create, list, read, statistics, metadata, delete and restore.

use hyper::StatusCode;
use ledger_core::{BucketName, Features, FirstId, LedgerName, LedgerOptions, Resource};
use ledger_store::json::write_features;
use ledger_store::{Deleted, Direction, Feature, LedgerInfo, Store, WriteError};

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
    let known = Feature::parse(feature);
    let known = known.ok_or_else(|| ApiError::validation(format!("feature \"{feature}\" not exists")))?;
    if !known.set(features, value) {
        let message = format!("configuration {value} it not possible for feature {feature}");
        return Err(ApiError::validation(message));
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
    json.raw("{\"bucket\":").plain_string(ledger.bucket.as_str());
    json.raw(",\"metadata\":").metadata(&ledger.metadata);
    // v2 shows the features that it has names for.
    json.raw(",\"features\":");
    write_features(json.text(), &ledger.features);
    json.raw(",\"id\":").integer(ledger.id.into());
    json.raw(",\"name\":").plain_string(ledger.name.as_str());
    json.raw(",\"addedAt\":").time(ledger.added_at);
    if let Some(deleted_at) = ledger.deleted_at {
        json.raw(",\"deletedAt\":").time(deleted_at);
    }
    json.raw("}");
}
