//! Handlers of posting rules, and of the explanation of a payment's transactions.

use hyper::StatusCode;
use ledger_store::Expected;
use serde::de::MapAccess;

use crate::api::context::Context;
use crate::api::payments::connectors::installation;
use crate::api::payments::forms::data;
use crate::api::payments::payment::{self, body, required};
use crate::http::error::ApiError;
use crate::http::json::{self, Fields, Text};
use crate::http::response::{self, Json, Reply};
use crate::log;
use crate::payments::ids::PaymentId;
use crate::payments::postings::explain::{Explanation, explain};
use crate::payments::postings::rule::{self, NewRule, PostingRule};
use crate::payments::postings::run::no_posting_rule;
use crate::payments::record;
use crate::payments::service::require_installation;

/// The JSON body of a rule.
#[derive(Default)]
struct Body<'a> {
    ledger: Text<'a>,
    script: Text<'a>,
    account_prefix: Text<'a>,
    schema_version: Text<'a>,
}

impl<'de> Fields<'de> for Body<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match json::field(name, &["ledger", "script", "accountPrefix", "schemaVersion"]) {
            Some("ledger") => self.ledger = map.next_value()?,
            Some("script") => self.script = map.next_value()?,
            Some("accountPrefix") => self.account_prefix = map.next_value()?,
            Some("schemaVersion") => self.schema_version = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn write(json: &mut Json, rule: &PostingRule) {
    json.raw("{\"connectorID\":").plain_string(&rule.connector.text());
    json.raw(",\"ledger\":").plain_string(rule.ledger.as_str()).raw(",\"script\":").string(&rule.script);
    json.raw(",\"accountPrefix\":").plain_string(&rule.account_prefix);
    if let Some(version) = &rule.schema_version {
        json.raw(",\"schemaVersion\":").string(version.as_str());
    }
    json.raw(",\"setAt\":").time(rule.set_at).raw("}");
}

/// Sets the rule of an installation.
pub(super) async fn set(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (_, found) = installation(context, 2).await?;
    let body = body::<Body<'_>>(context)?;
    let new = NewRule {
        ledger: required(&body.ledger, "ledger")?.to_owned(),
        script: required(&body.script, "script")?.to_owned(),
        account_prefix: match &*body.account_prefix.0 {
            "" => PostingRule::default_prefix(&found.name),
            text => text.to_owned(),
        },
        schema_version: body.schema_version.0.to_string(),
    };
    let rule = PostingRule::new(found.id, new, log::now())?;
    let payments = context.app.payments().clone();
    let set = context.app.blocking(move |_| {
        let _guard = payments.write_lock();
        record::change(&payments.store, |snapshot| {
            require_installation(snapshot, &rule.connector)?;
            if snapshot.ledger(&rule.ledger).is_none() {
                return Err(ApiError::validation(format!("there is no ledger {:?}", rule.ledger.as_str())));
            }
            Ok((vec![record::put(&rule, Expected::Anything)], rule.clone()))
        })
    });
    let set = set.await?;
    Ok(data(context, StatusCode::OK, |json| write(json, &set)))
}

/// Reads the rule of an installation.
pub(super) async fn read(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (_, found) = installation(context, 2).await?;
    let find = move |store: &ledger_store::Store| {
        rule::find(&store.snapshot(), &found.id)?.ok_or_else(no_posting_rule)
    };
    let found = context.app.blocking(find).await?;
    Ok(data(context, StatusCode::OK, |json| write(json, &found.value)))
}

/// Deletes the rule of an installation. The ledger keeps the transactions.
pub(super) async fn delete(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (_, found) = installation(context, 2).await?;
    let payments = context.app.payments().clone();
    let deleted = context.app.blocking(move |_| {
        let _guard = payments.write_lock();
        record::change(&payments.store, |snapshot| {
            let found = rule::find(snapshot, &found.id)?.ok_or_else(no_posting_rule)?;
            let key = record::Record::key(&found.value);
            Ok((vec![record::delete::<PostingRule>(key, Expected::Version(found.version))], ()))
        })
    });
    deleted.await?;
    Ok(response::no_content())
}

/// Posts payments that are older than the rule, and payments that were refused.
pub(super) async fn run(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (_, found) = installation(context, 2).await?;
    let after = match context.query.get("after") {
        None | Some("") => None,
        Some(text) => {
            let id = PaymentId::parse(text).filter(|id| id.connector == found.id);
            let invalid =
                || ApiError::validation(format!("after: {text:?} is no payment of the installation"));
            Some(id.ok_or_else(invalid)?)
        }
    };
    let payments = context.app.payments().clone();
    let ran = context.app.blocking(move |_| payments.run_postings(&found.id, after.as_ref(), log::now()));
    let ran = ran.await?;
    Ok(data(context, StatusCode::OK, |json| {
        json.raw("{\"examined\":").integer(ran.examined).raw(",\"posted\":").integer(ran.posted);
        json.raw(",\"refused\":").integer(ran.refused);
        json.raw(",\"hasMore\":").boolean(ran.more_after.is_some());
        if let Some(after) = &ran.more_after {
            json.raw(",\"after\":").plain_string(&after.text());
        }
        json.raw("}");
    }))
}

/// Explains which transactions a payment made, or why it made none.
pub(super) async fn explain_payment(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = payment::id(context)?;
    let (id, explained) = context
        .app
        .blocking(move |store| {
            let snapshot = store.snapshot();
            let found = payment::find(&snapshot, &id)?;
            Ok((id, explain(&snapshot, &found.value)?))
        })
        .await?;
    let Explanation { is_posted, transactions, reason } = explained;
    Ok(data(context, StatusCode::OK, |json| {
        json.raw("{\"paymentID\":").plain_string(&id.text());
        json.raw(",\"connectorID\":").plain_string(&id.connector.text());
        json.raw(",\"posted\":").boolean(is_posted).raw(",\"transactions\":[");
        json.list(&transactions, |json, made| {
            json.raw("{\"ledger\":").plain_string(made.ledger.as_str());
            json.raw(",\"id\":").integer(made.id);
            json.raw(",\"reference\":").plain_string(&made.reference);
            json.raw(",\"timestamp\":").time(made.timestamp);
            json.raw(",\"reverted\":").boolean(made.reverted_by.is_some());
            if let Some(id) = made.reverted_by {
                json.raw(",\"revertedBy\":").integer(id);
            }
            json.raw("}");
        });
        json.raw("]");
        if let Some(reason) = &reason {
            json.raw(",\"reason\":{\"code\":").plain_string(&reason.code);
            json.raw(",\"message\":").string(&reason.message).raw("}");
        }
        json.raw("}");
    }))
}
