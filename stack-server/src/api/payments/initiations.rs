//! Handlers of transfer initiations.

use hyper::StatusCode;
use ledger_core::{Asset, Balance, Timestamp};
use ledger_store::{Expected, Snapshot};
use serde::de::MapAccess;
use serde_json::value::RawValue;

use crate::api::context::Context;
use crate::api::payments::forms::{self, data};
use crate::api::payments::list::{self, List};
use crate::api::payments::payment::{
    account, account_id, body, connector_id, metadata, reference, required, word,
};
use crate::collections::TRANSFER_INITIATIONS;
use crate::connectors::money::Action;
use crate::connectors::orders;
use crate::http::error::ApiError;
use crate::http::json::{self, Date, Digits, Fields, Flag, Text};
use crate::http::response::{self, Reply};
use crate::log;
use crate::payments::codec::Metadata;
use crate::payments::enumerations::{AccountType, InitiationStatus, InitiationType};
use crate::payments::event::Event;
use crate::payments::filter::Filter;
use crate::payments::ids::{AccountId, ConnectorId, InitiationId};
use crate::payments::initiation::{self, BY_DATE, BY_REFERENCE, Initiation, Reversal, Step};
use crate::payments::installation;
use crate::payments::record::{self, Record as _, Versioned};
use crate::payments::service::require_installation;

const LIST: List = List {
    name: "transfer initiations",
    collection: TRANSFER_INITIATIONS,
    sorts: &[("createdAt", BY_DATE), ("created_at", BY_DATE), ("date", BY_DATE), ("reference", BY_REFERENCE)],
    filter: Initiation::FILTER,
    by_reference: None,
    by_value: list::no_values,
};

pub(super) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let request = LIST.parse(context, "", vec![])?;
    let accept = |request: &list::ListRequest, _: &Snapshot, document: &_| {
        let initiation = record::of::<Initiation>(document)?.value;
        let is_wanted = request.filter.as_ref().is_none_or(|filter: &Filter| filter.accepts(&initiation));
        Ok(is_wanted.then_some(initiation))
    };
    list::answer(context, request, accept, |json, found| forms::initiation(json, found, false)).await
}

fn id(context: &Context<'_>) -> Result<InitiationId, ApiError> {
    let text = context.variable(0);
    InitiationId::parse(text)
        .ok_or_else(|| ApiError::validation(format!("{text:?} is no id of a transfer initiation")))
}

fn find(snapshot: &Snapshot, id: &InitiationId) -> Result<Versioned<Initiation>, ApiError> {
    initiation::find(snapshot, id)?.ok_or_else(|| ApiError::not_found("transfer initiation not found"))
}

pub(super) async fn read(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = id(context)?;
    let found = context.app.blocking(move |store| find(&store.snapshot(), &id)).await?;
    Ok(data(context, StatusCode::OK, |json| forms::initiation(json, &found.value, true)))
}

#[derive(Default)]
struct Body<'a> {
    reference: Text<'a>,
    scheduled_at: Option<Timestamp>,
    description: Text<'a>,
    source: Text<'a>,
    destination: Text<'a>,
    connector: Text<'a>,
    provider: Text<'a>,
    kind: Text<'a>,
    amount: Option<&'a str>,
    asset: Text<'a>,
    validated: bool,
    metadata: Option<&'a RawValue>,
}

impl<'de> Fields<'de> for Body<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        let known = [
            "reference",
            "scheduledAt",
            "description",
            "sourceAccountID",
            "destinationAccountID",
            "connectorID",
            "provider",
            "type",
            "amount",
            "asset",
            "validated",
            "metadata",
        ];
        match json::field(name, &known) {
            Some("reference") => self.reference = map.next_value()?,
            Some("scheduledAt") => self.scheduled_at = map.next_value::<Date>()?.0,
            Some("description") => self.description = map.next_value()?,
            Some("sourceAccountID") => self.source = map.next_value()?,
            Some("destinationAccountID") => self.destination = map.next_value()?,
            Some("connectorID") => self.connector = map.next_value()?,
            Some("provider") => self.provider = map.next_value()?,
            Some("type") => self.kind = map.next_value()?,
            Some("amount") => self.amount = map.next_value::<Digits<'de>>()?.0,
            Some("asset") => self.asset = map.next_value()?,
            Some("validated") => self.validated = map.next_value::<Flag>()?.0,
            Some("metadata") => self.metadata = Some(map.next_value()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The first instant of the year 1, which means that there is no date.
const NO_DATE: Timestamp = Timestamp::from_micros(-62_135_596_800_000_000);

/// Parses a positive amount.
fn amount(digits: Option<&str>) -> Result<Balance, ApiError> {
    let digits = digits.ok_or_else(|| ApiError::validation("amount is required"))?;
    let amount = Balance::parse(digits).map_err(|error| ApiError::validation(format!("amount: {error}")))?;
    if amount <= Balance::ZERO {
        return Err(ApiError::validation(format!("amount must be above zero, got {amount}")));
    }
    Ok(amount)
}

fn asset(text: &Text<'_>) -> Result<String, ApiError> {
    let asset = required(text, "asset")?;
    match Asset::parse(asset) {
        Ok(_) => Ok(asset.to_owned()),
        Err(_) => Err(ApiError::validation(format!("invalid asset: {asset:?}"))),
    }
}

/// Returns the installation that must move the money. The request names its id, or a provider with one installation.
fn connector(context: &Context<'_>, body: &Body<'_>) -> Result<ConnectorId, ApiError> {
    if !body.connector.0.is_empty() {
        return connector_id(&body.connector.0);
    }
    let provider = match &*body.provider.0 {
        "" => return Err(ApiError::validation("connectorID or provider is required")),
        provider => provider.to_ascii_uppercase(),
    };
    let mut found = installation::of_provider(&context.app.snapshot(), &provider)?;
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only.id),
        (None, _) => Err(ApiError::validation(format!("no connector {provider:?} is installed"))),
        (Some(_), false) => {
            Err(ApiError::validation(format!("several connectors {provider:?} are installed")))
        }
    }
}

fn new_initiation(context: &Context<'_>) -> Result<(Initiation, bool), ApiError> {
    let body = body::<Body<'_>>(context)?;
    let reference = reference(&body.reference)?;
    let kind = word(&body.kind, "type", InitiationType::parse)?;
    let amount = amount(body.amount)?;
    let asset = asset(&body.asset)?;
    let destination = account_id(&body.destination, "destinationAccountID")?
        .ok_or_else(|| ApiError::validation("destinationAccountID is required"))?;
    let source = account_id(&body.source, "sourceAccountID")?;
    let connector = connector(context, &body)?;
    let now = log::now();
    let status =
        if body.validated { InitiationStatus::Validated } else { InitiationStatus::WaitingForValidation };
    let initiation = Initiation {
        id: InitiationId { connector, reference },
        created_at: now,
        scheduled_at: body.scheduled_at.unwrap_or(NO_DATE),
        description: body.description.0.to_string(),
        kind,
        source,
        destination,
        initial_amount: amount.clone(),
        amount,
        asset,
        metadata: match body.metadata {
            None => Metadata::new(),
            Some(given) => metadata(given.get().as_bytes())?,
        },
        steps: vec![Step::new(status, now)?],
        payments: vec![],
        reversals: vec![],
    };
    Ok((initiation, body.validated))
}

/// Refuses accounts that do not exist, belong to another installation, or have the wrong type.
fn check_accounts(snapshot: &Snapshot, initiation: &Initiation) -> Result<(), ApiError> {
    let find = |id: &AccountId| {
        account(snapshot, id)?
            .ok_or_else(|| ApiError::not_found(format!("account {:?} not found", id.reference)))
    };
    let source = initiation.source.as_ref().map(find).transpose()?;
    let destination = find(&initiation.destination)?;
    for found in source.iter().chain([&destination]) {
        if found.id.connector != initiation.id.connector {
            let message = format!("account {:?} is one of another connector", found.id.reference);
            return Err(ApiError::validation(message));
        }
    }
    if source.is_some_and(|source| source.kind == AccountType::External) {
        return Err(ApiError::validation("the source is an EXTERNAL account: its money is not ours to move"));
    }
    let wanted = match initiation.kind {
        InitiationType::Transfer => AccountType::Internal,
        InitiationType::Payout => AccountType::External,
    };
    if destination.kind != wanted {
        let message = format!("{} wants an {} destination", initiation.kind.name(), wanted.name());
        return Err(ApiError::validation(message));
    }
    Ok(())
}

pub(super) async fn create(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (initiation, is_validated) = new_initiation(context)?;
    let (payments, created) = (context.app.payments().clone(), initiation.clone());
    let change = move |snapshot: &Snapshot| {
        require_installation(snapshot, &initiation.id.connector)?;
        check_accounts(snapshot, &initiation)?;
        if initiation::find(snapshot, &initiation.id)?.is_some() {
            let message = format!("the reference {:?} is taken", initiation.id.reference);
            return Err(ApiError::validation(message));
        }
        let mut changes = payments.event_changes(&[Event::Initiation(&initiation)], initiation.created_at);
        changes.push(record::put(&initiation, Expected::Absent));
        Ok((changes, initiation.clone()))
    };
    let action = is_validated.then_some(Action::Pay);
    orders::change_initiation(context.app.connectors(), action, change).await?;
    Ok(data(context, StatusCode::OK, |json| forms::initiation(json, &created, false)))
}

pub(super) async fn delete(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = id(context)?;
    let payments = context.app.payments().clone();
    let write = move |_: &ledger_store::Store| {
        payments.write(|snapshot| {
            let found = find(snapshot, &id)?;
            if found.value.status() != InitiationStatus::WaitingForValidation {
                return Err(ApiError::validation("only what waits for validation can be deleted"));
            }
            let mut changes = payments.event_changes(&[Event::InitiationDeleted(&id)], log::now());
            changes.push(record::delete::<Initiation>(found.value.key(), Expected::Version(found.version)));
            Ok((changes, ()))
        })
    };
    context.app.blocking(write).await?;
    Ok(response::no_content())
}

#[derive(Default)]
struct StatusBody<'a> {
    status: Text<'a>,
}

impl<'de> Fields<'de> for StatusBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        let is_known = json::field(name, &["status"]).is_some();
        if is_known {
            self.status = map.next_value()?;
        }
        Ok(is_known)
    }
}

/// Adds a step to an initiation, if `change` accepts the initiation, and starts the task that executes `action`.
async fn add_step(
    context: &Context<'_>,
    id: &InitiationId,
    status: InitiationStatus,
    action: Option<Action>,
    change: impl Fn(&mut Initiation) -> Result<(), ApiError> + Send + 'static,
) -> Result<(), ApiError> {
    let (payments, id) = (context.app.payments().clone(), id.clone());
    let change = move |snapshot: &Snapshot| {
        let Versioned { value: mut initiation, version } = find(snapshot, &id)?;
        change(&mut initiation)?;
        let now = log::now();
        initiation.steps.push(Step::new(status, now)?);
        let mut changes = payments.event_changes(&[Event::Initiation(&initiation)], now);
        changes.push(record::put(&initiation, Expected::Version(version)));
        Ok((changes, initiation))
    };
    orders::change_initiation(context.app.connectors(), action, change).await
}

/// Refuses an initiation that does not have the wanted status.
fn expect(initiation: &Initiation, wanted: InitiationStatus) -> Result<(), ApiError> {
    if initiation.status() == wanted {
        return Ok(());
    }
    let (have, wanted) = (initiation.status().name(), wanted.name());
    Err(ApiError::validation(format!("the transfer initiation is {have}, and would have to be {wanted}")))
}

pub(super) async fn set_status(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = id(context)?;
    let body = body::<StatusBody<'_>>(context)?;
    let status = word(&body.status, "status", InitiationStatus::parse)?;
    if !matches!(status, InitiationStatus::Validated | InitiationStatus::Rejected) {
        return Err(ApiError::validation(format!("the status cannot be set to {}", status.name())));
    }
    let action = (status == InitiationStatus::Validated).then_some(Action::Pay);
    let waits = |initiation: &mut Initiation| expect(initiation, InitiationStatus::WaitingForValidation);
    add_step(context, &id, status, action, waits).await?;
    Ok(response::no_content())
}

pub(super) async fn retry(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = id(context)?;
    let has_failed = |initiation: &mut Initiation| expect(initiation, InitiationStatus::Failed);
    add_step(context, &id, InitiationStatus::AskRetried, Some(Action::Pay), has_failed).await?;
    Ok(response::no_content())
}

#[derive(Default)]
struct ReverseBody<'a> {
    reference: Text<'a>,
    description: Text<'a>,
    amount: Option<&'a str>,
    asset: Text<'a>,
    metadata: Option<&'a RawValue>,
}

impl<'de> Fields<'de> for ReverseBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match json::field(name, &["reference", "description", "amount", "asset", "metadata"]) {
            Some("reference") => self.reference = map.next_value()?,
            Some("description") => self.description = map.next_value()?,
            Some("amount") => self.amount = map.next_value::<Digits<'de>>()?.0,
            Some("asset") => self.asset = map.next_value()?,
            Some("metadata") => self.metadata = Some(map.next_value()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

pub(super) async fn reverse(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = id(context)?;
    let body = body::<ReverseBody<'_>>(context)?;
    let asset = asset(&body.asset)?;
    let reversal = Reversal {
        reference: reference(&body.reference)?,
        description: body.description.0.to_string(),
        amount: amount(body.amount)?,
        metadata: match body.metadata {
            None => Metadata::new(),
            Some(given) => metadata(given.get().as_bytes())?,
        },
    };
    let definition = context.app.connectors().definition(&id.connector.provider);
    let reverses = definition.is_ok_and(|definition| definition.capabilities.reverses);
    add_step(context, &id, InitiationStatus::AskReversed, Some(Action::Reverse), move |initiation| {
        if initiation.kind != InitiationType::Transfer {
            return Err(ApiError::validation("only a TRANSFER can be reversed"));
        }
        expect(initiation, InitiationStatus::Processed)?;
        if !reverses {
            return Err(ApiError::validation("the connector reverses nothing"));
        }
        if asset != initiation.asset || reversal.amount > initiation.amount {
            let (left, asset) = (&initiation.amount, &initiation.asset);
            return Err(ApiError::validation(format!("at most {left} of {asset} can be reversed")));
        }
        if initiation.reversals.iter().any(|have| have.reference == reversal.reference) {
            return Err(ApiError::validation(format!("the reference {:?} is taken", reversal.reference)));
        }
        initiation.reversals.push(reversal.clone());
        Ok(())
    })
    .await?;
    Ok(response::no_content())
}
