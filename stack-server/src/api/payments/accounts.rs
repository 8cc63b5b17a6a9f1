//! Handlers of accounts at providers and their balances.

use hyper::StatusCode;
use ledger_core::{Asset, Timestamp};
use ledger_store::{Expected, Snapshot};
use serde::de::MapAccess;

use crate::api::context::Context;
use crate::api::payments::forms::{self, Reader, data};
use crate::api::payments::list::{self, BALANCES, List, UNFILTERED};
use crate::api::payments::payment::{
    account, body, connector_id, metadata, past, raw, reference, required, word,
};
use crate::collections::{PAYMENT_ACCOUNTS, PAYMENT_BALANCES};
use crate::http::error::ApiError;
use crate::http::json::{self, Date, Fields, Text};
use crate::http::response::Reply;
use crate::log;
use crate::payments::account::{Account, BY_DATE, BY_NAME, BY_REFERENCE, BY_TYPE, NewAccount};
use crate::payments::balance::{self, AccountBalance};
use crate::payments::codec::Metadata;
use crate::payments::enumerations::AccountType;
use crate::payments::event::Event;
use crate::payments::ids::{AccountId, ConnectorId};
use crate::payments::record;
use crate::payments::service::require_installation;
use crate::payments::{account as accounts, pool};
use serde_json::value::RawValue;

const LIST: List = List {
    name: "payment accounts",
    collection: PAYMENT_ACCOUNTS,
    sorts: &[
        ("date", BY_DATE),
        ("createdAt", BY_DATE),
        ("created_at", BY_DATE),
        ("reference", BY_REFERENCE),
        ("type", BY_TYPE),
        ("accountName", BY_NAME),
        ("account_name", BY_NAME),
    ],
    filter: Account::FILTER,
    by_reference: Some(accounts::BY_REFERENCE),
    by_value: list::no_values,
};

const BALANCE_LIST: List = List {
    name: BALANCES,
    collection: PAYMENT_BALANCES,
    sorts: &[
        ("createdAt", balance::BY_DATE),
        ("created_at", balance::BY_DATE),
        ("date", balance::BY_DATE),
        ("lastUpdatedAt", balance::BY_LAST_UPDATE),
        ("last_updated_at", balance::BY_LAST_UPDATE),
        ("asset", balance::BY_ASSET),
        ("currency", balance::BY_ASSET),
        ("balance", balance::BY_BALANCE),
    ],
    filter: UNFILTERED,
    by_reference: None,
    by_value: list::no_values,
};

pub(super) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let request = LIST.parse(context, "", vec![])?;
    let reader = Reader::of(context);
    let accept = |request: &list::ListRequest, snapshot: &Snapshot, document: &_| {
        let account = record::of::<Account>(document)?.value;
        if request.filter.as_ref().is_some_and(|filter| !filter.accepts(&account)) {
            return Ok(None);
        }
        let pools = pool::pools_of(snapshot, &account.id)?;
        Ok(Some((account, pools)))
    };
    let write = |json: &mut _, (account, pools): &(Account, Vec<_>)| {
        forms::account(json, account, pools, reader);
    };
    list::answer(context, request, accept, write).await
}

/// Returns the id of an account from the path.
fn id(context: &Context<'_>, at: usize) -> Result<AccountId, ApiError> {
    let text = context.variable(at);
    AccountId::parse(text).ok_or_else(|| ApiError::validation(format!("{text:?} is no id of an account")))
}

pub(super) async fn read(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (id, reader) = (id(context, 0)?, Reader::of(context));
    let read = move |store: &ledger_store::Store| {
        let snapshot = store.snapshot();
        let found = account(&snapshot, &id)?.ok_or_else(|| ApiError::not_found("account not found"))?;
        Ok((pool::pools_of(&snapshot, &id)?, found))
    };
    let (pools, found) = context.app.blocking(read).await?;
    Ok(data(context, StatusCode::OK, |json| forms::account(json, &found, &pools, reader)))
}

pub(super) async fn balances(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = id(context, 0)?;
    let mut request = BALANCE_LIST.parse(context, context.variable(0), balance::prefix(&id))?;
    let window = request.window().clone();
    if window != list::Window::default() {
        request.skip_rows();
    }
    let found = move |store: &ledger_store::Store| {
        account(&store.snapshot(), &id)?.ok_or_else(|| ApiError::not_found("account not found")).map(drop)
    };
    context.app.blocking(found).await?;
    // Balances in the future are unknown, so end the window now.
    let to = window.to.unwrap_or_else(log::now);
    let accept = move |_: &list::ListRequest, _: &Snapshot, document: &_| {
        let balance = record::of::<AccountBalance>(document)?.value;
        let is_wanted = balance.is_within(window.from, to)
            && window.asset.as_ref().is_none_or(|asset| *asset == balance.asset);
        Ok(is_wanted.then_some(balance))
    };
    list::answer(context, request, accept, forms::balance).await
}

#[derive(Default)]
struct Body<'a> {
    reference: Text<'a>,
    connector: Text<'a>,
    created_at: Option<Timestamp>,
    default_asset: Text<'a>,
    name: Text<'a>,
    kind: Text<'a>,
    metadata: Option<&'a RawValue>,
}

impl<'de> Fields<'de> for Body<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        let known =
            ["reference", "connectorID", "createdAt", "defaultAsset", "accountName", "type", "metadata"];
        match json::field(name, &known) {
            Some("reference") => self.reference = map.next_value()?,
            Some("connectorID") => self.connector = map.next_value()?,
            Some("createdAt") => self.created_at = map.next_value::<Date>()?.given(),
            Some("defaultAsset") => self.default_asset = map.next_value()?,
            Some("accountName") => self.name = map.next_value()?,
            Some("type") => self.kind = map.next_value()?,
            Some("metadata") => self.metadata = Some(map.next_value()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn new_account(context: &Context<'_>) -> Result<(ConnectorId, NewAccount), ApiError> {
    let body = body::<Body<'_>>(context)?;
    let reference = reference(&body.reference)?;
    let connector = required(&body.connector, "connectorID")?;
    let created_at = past(body.created_at)?;
    let kind = word(&body.kind, "type", |word| {
        AccountType::parse(word).filter(|kind| *kind != AccountType::Unknown)
    })?;
    let default_asset = body.default_asset.0.to_string();
    if !default_asset.is_empty() && Asset::parse(&default_asset).is_err() {
        return Err(ApiError::validation(format!("invalid defaultAsset: {default_asset:?}")));
    }
    let account = NewAccount {
        reference,
        created_at,
        default_asset,
        name: body.name.0.to_string(),
        kind,
        metadata: match body.metadata {
            None => Metadata::new(),
            Some(given) => metadata(given.get().as_bytes())?,
        },
        raw: Some(raw(context)?),
    };
    Ok((connector_id(connector)?, account))
}

pub(super) async fn create(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (connector, requested) = new_account(context)?;
    let (payments, reader) = (context.app.payments().clone(), Reader::of(context));
    let created = context.app.blocking(move |_| {
        payments.write(|snapshot| {
            require_installation(snapshot, &connector)?;
            let id = AccountId { connector: connector.clone(), reference: requested.reference.clone() };
            let (expected, stored) = match record::find::<Account>(snapshot, &id.key())? {
                None => (Expected::Absent, None),
                Some(found) => (Expected::Version(found.version), Some(found.value)),
            };
            let account = requested.clone().replace(&connector, stored);
            let mut changes = payments.event_changes(&[Event::Account(&account)], log::now());
            changes.push(record::put(&account, expected));
            Ok((changes, (account, pool::pools_of(snapshot, &id)?)))
        })
    });
    let (created, pools) = created.await?;
    Ok(data(context, StatusCode::OK, |json| forms::account(json, &created, &pools, reader)))
}
