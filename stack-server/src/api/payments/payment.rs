//! Handlers of payments, and parsers of fields that other handlers of this module share.

use hyper::StatusCode;
use ledger_core::{Balance, Timestamp};
use ledger_store::{Expected, Snapshot};
use serde::de::MapAccess;
use serde_json::value::RawValue;

use crate::api::context::Context;
use crate::api::payments::forms::{self, Reader, data};
use crate::api::payments::list::{self, List};
use crate::collections::PAYMENTS;
use crate::http::error::ApiError;
use crate::http::json::{self, Date, Digits, Fields, Object, Text};
use crate::http::response::{self, Reply};
use crate::log;
use crate::payments::account::Account;
use crate::payments::codec::Metadata;
use crate::payments::enumerations::{PaymentStatus, PaymentType, Scheme};
use crate::payments::event::Event;
use crate::payments::filter::Filter;
use crate::payments::ids::{AccountId, ConnectorId, PaymentId, REFERENCE_BYTES_MAX};
use crate::payments::installation;
use crate::payments::page::IndexFilter;
use crate::payments::payment::{
    self, BY_AMOUNT, BY_ASSET, BY_DATE, BY_INITIAL_AMOUNT, BY_REFERENCE, BY_SCHEME, BY_STATUS, BY_TYPE,
    DATED_FIELDS, NewPayment, Payment,
};
use crate::payments::postings::write::PaymentChanges;
use crate::payments::record;
use crate::payments::service::require_installation;

const LIST: List = List {
    name: "payments",
    collection: PAYMENTS,
    sorts: &[
        ("date", BY_DATE),
        ("createdAt", BY_DATE),
        ("created_at", BY_DATE),
        ("reference", BY_REFERENCE),
        ("amount", BY_AMOUNT),
        ("initialAmount", BY_INITIAL_AMOUNT),
        ("initial_amount", BY_INITIAL_AMOUNT),
        ("status", BY_STATUS),
        ("type", BY_TYPE),
        ("scheme", BY_SCHEME),
        ("asset", BY_ASSET),
    ],
    filter: Payment::FILTER,
    by_reference: Some(BY_REFERENCE),
    by_value,
};

/// The part of a dated index that has all rows of a filter.
fn by_value(filter: &Filter) -> Option<IndexFilter> {
    let value = |field: &&str| payment::dated_value(field, filter.required_text(field)?);
    DATED_FIELDS.iter().find_map(value).map(|(index, value)| IndexFilter::Value(index, value))
}

pub(super) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let request = LIST.parse(context, "", vec![])?;
    let reader = Reader::of(context);
    let accept = |request: &list::ListRequest, _: &Snapshot, document: &_| {
        let payment = record::of::<Payment>(document)?.value;
        let is_wanted = request.filter.as_ref().is_none_or(|filter| filter.accepts(&payment));
        Ok(is_wanted.then_some(payment))
    };
    list::answer(context, request, accept, |json, payment| forms::payment(json, payment, reader)).await
}

/// Returns the id of a payment from the path.
pub(super) fn id(context: &Context<'_>) -> Result<PaymentId, ApiError> {
    let text = context.variable(0);
    PaymentId::parse(text).ok_or_else(|| ApiError::validation(format!("{text:?} is no id of a payment")))
}

/// Returns the payment with this id.
pub(super) fn find(snapshot: &Snapshot, id: &PaymentId) -> Result<record::Versioned<Payment>, ApiError> {
    let found = record::find::<Payment>(snapshot, &id.key())?.filter(|found| found.value.id == *id);
    found.ok_or_else(|| ApiError::not_found("payment not found"))
}

pub(super) async fn read(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (id, reader) = (id(context)?, Reader::of(context));
    let found = context.app.blocking(move |store| find(&store.snapshot(), &id)).await?;
    Ok(data(context, StatusCode::OK, |json| forms::payment(json, &found.value, reader)))
}

#[derive(Default)]
struct Body<'a> {
    reference: Text<'a>,
    connector: Text<'a>,
    created_at: Option<Timestamp>,
    amount: Option<&'a str>,
    kind: Text<'a>,
    status: Text<'a>,
    scheme: Text<'a>,
    asset: Text<'a>,
    source: Text<'a>,
    destination: Text<'a>,
}

impl<'de> Fields<'de> for Body<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        let known = [
            "reference",
            "connectorID",
            "createdAt",
            "amount",
            "type",
            "status",
            "scheme",
            "asset",
            "sourceAccountID",
            "destinationAccountID",
        ];
        match json::field(name, &known) {
            Some("reference") => self.reference = map.next_value()?,
            Some("connectorID") => self.connector = map.next_value()?,
            Some("createdAt") => self.created_at = map.next_value::<Date>()?.given(),
            Some("amount") => self.amount = map.next_value::<Digits<'de>>()?.0,
            Some("type") => self.kind = map.next_value()?,
            Some("status") => self.status = map.next_value()?,
            Some("scheme") => self.scheme = map.next_value()?,
            Some("asset") => self.asset = map.next_value()?,
            Some("sourceAccountID") => self.source = map.next_value()?,
            Some("destinationAccountID") => self.destination = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Parses a required JSON body.
pub(super) fn body<'a, T: Fields<'a>>(context: &'a Context<'_>) -> Result<T, ApiError> {
    if context.body.trim_ascii().is_empty() {
        return Err(ApiError::validation("the body is missing"));
    }
    let Object(body) = json::first::<Object<T>>(&context.body)
        .map_err(|error| ApiError::validation(format!("invalid body: {error}")))?;
    Ok(body)
}

/// Returns the body as compact JSON for storage.
pub(super) fn raw(context: &Context<'_>) -> Result<String, ApiError> {
    let value = json::first::<&RawValue>(&context.body).and_then(json::canonical);
    value.map_err(|error| ApiError::validation(format!("invalid body: {error}")))
}

/// Returns a required text.
pub(super) fn required<'a>(text: &'a Text<'_>, name: &str) -> Result<&'a str, ApiError> {
    match &*text.0 {
        "" => Err(ApiError::validation(format!("{name} is required"))),
        text => Ok(text),
    }
}

/// Returns a required reference that is short enough for an id.
pub(super) fn reference(text: &Text<'_>) -> Result<String, ApiError> {
    let reference = required(text, "reference")?;
    if reference.len() > REFERENCE_BYTES_MAX {
        return Err(ApiError::validation(format!("reference is longer than {REFERENCE_BYTES_MAX} bytes")));
    }
    Ok(reference.to_owned())
}

/// Maximum time by which a date of a client may be in the future, because its clock may be fast.
const AHEAD_MICROS: i64 = 1_000_000;

/// Returns a required creation date, which must not be in the future.
pub(super) fn past(at: Option<Timestamp>) -> Result<Timestamp, ApiError> {
    let now = log::now().as_micros();
    at.filter(|at| at.as_micros() <= now + AHEAD_MICROS)
        .ok_or_else(|| ApiError::validation("createdAt is empty or in the future"))
}

/// Parses a required word of a closed set.
pub(super) fn word<T>(text: &Text<'_>, name: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, ApiError> {
    let text = required(text, name)?;
    parse(text).ok_or_else(|| ApiError::validation(format!("invalid {name}: {text:?}")))
}

/// Parses the id of an installation in a body.
pub(super) fn connector_id(text: &str) -> Result<ConnectorId, ApiError> {
    ConnectorId::parse(text).ok_or_else(|| ApiError::validation(format!("{text:?} is no id of a connector")))
}

/// Parses the id of an account in a body. An empty text is no account.
pub(super) fn account_id(text: &Text<'_>, name: &str) -> Result<Option<AccountId>, ApiError> {
    match &*text.0 {
        "" => Ok(None),
        text => match AccountId::parse(text) {
            Some(id) => Ok(Some(id)),
            None => Err(ApiError::validation(format!("{name}: {text:?} is no id of an account"))),
        },
    }
}

/// Returns the account with this id, unless its installation is being removed.
pub(super) fn account(snapshot: &Snapshot, id: &AccountId) -> Result<Option<Account>, ApiError> {
    if installation::find(snapshot, &id.connector)?.is_none() {
        return Ok(None);
    }
    let found = record::find::<Account>(snapshot, &id.key())?;
    Ok(found.map(|found| found.value).filter(|found| found.id == *id))
}

/// Parses the asset of a payment, which must have decimals.
fn asset(text: &Text<'_>) -> Result<String, ApiError> {
    let asset = required(text, "asset")?;
    let is_asset = ledger_core::Asset::parse(asset).is_ok() && asset.contains('/');
    is_asset
        .then(|| asset.to_owned())
        .ok_or_else(|| ApiError::validation(format!("invalid asset: {asset:?}")))
}

/// Parses a request for a payment. Returns the payment with its installation.
fn new_payment(context: &Context<'_>) -> Result<(ConnectorId, NewPayment), ApiError> {
    let body = body::<Body<'_>>(context)?;
    let reference = reference(&body.reference)?;
    let connector = required(&body.connector, "connectorID")?;
    let created_at = past(body.created_at)?;
    let amount = body.amount.ok_or_else(|| ApiError::validation("amount is required"))?;
    let amount = Balance::parse(amount).map_err(|error| ApiError::validation(format!("amount: {error}")))?;
    let kind = word(&body.kind, "type", PaymentType::parse)?;
    let status = word(&body.status, "status", PaymentStatus::parse)?;
    let scheme = word(&body.scheme, "scheme", Scheme::parse_any_case)?;
    let asset = asset(&body.asset)?;
    let payment = NewPayment {
        kind,
        reference,
        source: account_id(&body.source, "sourceAccountID")?,
        destination: account_id(&body.destination, "destinationAccountID")?,
        status,
        initial_amount: amount.clone(),
        amount,
        scheme,
        asset,
        created_at,
        raw: Some(raw(context)?),
        adjustments: vec![],
        metadata: Metadata::new(),
        revision: None,
    };
    Ok((connector_id(connector)?, payment))
}

pub(super) async fn create(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (connector, requested) = new_payment(context)?;
    let (payments, reader) = (context.app.payments().clone(), Reader::of(context));
    let created = context.app.blocking(move |_| {
        let now = log::now();
        payments.write_payments(&connector, now, |snapshot| {
            require_installation(snapshot, &connector)?;
            for id in [&requested.source, &requested.destination].into_iter().flatten() {
                if account(snapshot, id)?.is_none() {
                    return Err(ApiError::validation(format!("there is no account {:?}", id.reference)));
                }
            }
            let id = PaymentId {
                connector: connector.clone(),
                kind: requested.kind,
                reference: requested.reference.clone(),
            };
            let stored = record::find::<Payment>(snapshot, &id.key())?;
            let (expected, stored) = match stored {
                None => (Expected::Absent, None),
                Some(found) => (Expected::Version(found.version), Some(found.value)),
            };
            let payment = by_hand(requested.clone(), &connector, stored, now);
            let mut changes = payments.event_changes(&[Event::Payment(&payment)], now);
            changes.push(record::put(&payment, expected));
            Ok(PaymentChanges { changes, payments: vec![payment.clone()], answer: payment })
        })
    });
    let created = created.await?;
    Ok(data(context, StatusCode::OK, |json| forms::payment(json, &created, reader)))
}

/// Returns the payment after a client's request. An existing payment keeps its date and initial amount, and its raw
/// record becomes the last request.
fn by_hand(
    requested: NewPayment,
    connector: &ConnectorId,
    stored: Option<Payment>,
    now: Timestamp,
) -> Payment {
    match stored {
        None => {
            requested.merge_into(connector, None, now).expect("merging into nothing always gives a payment")
        }
        Some(stored) => Payment {
            source: requested.source,
            destination: requested.destination,
            status: requested.status,
            amount: requested.amount,
            scheme: requested.scheme,
            asset: requested.asset,
            raw: requested.raw,
            changed_at: now.max(stored.changed_at),
            ..stored
        },
    }
}

/// Parses metadata: a JSON object whose values are texts. `null` as a value is refused, because it neither sets nor
/// deletes the value.
pub(super) fn metadata(text: &[u8]) -> Result<Metadata, ApiError> {
    let invalid = |error: String| ApiError::validation(format!("invalid metadata: {error}"));
    let json::Entries(entries) = json::first::<json::Entries<'_, Option<Text<'_>>>>(text)
        .map_err(|error| invalid(error.to_string()))?;
    let given = entries.into_iter().map(|(Text(key), value)| match value {
        Some(Text(value)) => Ok((key.into(), value.into())),
        None => Err(invalid(format!("the value of {key:?} is null"))),
    });
    let metadata = given.collect::<Result<Metadata, ApiError>>()?;
    let bytes: usize = metadata.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > ledger_core::limits::METADATA_BYTES_MAX {
        return Err(invalid(format!("it has more than {} bytes", ledger_core::limits::METADATA_BYTES_MAX)));
    }
    Ok(metadata)
}

pub(super) async fn set_metadata(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = id(context)?;
    if context.body.trim_ascii().is_empty() {
        return Err(ApiError::validation("the body is missing"));
    }
    if context.body.trim_ascii() == b"null" {
        return Err(ApiError::validation("invalid metadata: null is no object"));
    }
    let metadata = metadata(&context.body)?;
    let payments = context.app.payments().clone();
    let changed = context.app.blocking(move |_| {
        payments.write(|snapshot| {
            let record::Versioned { value, version } = find(snapshot, &id)?;
            let mut changed = value.clone();
            changed.metadata.extend(metadata.clone());
            if changed == value {
                return Ok((vec![], ()));
            }
            changed.changed_at = log::now().max(value.changed_at);
            Ok((vec![record::put(&changed, Expected::Version(version))], ()))
        })
    });
    changed.await?;
    Ok(response::no_content())
}
