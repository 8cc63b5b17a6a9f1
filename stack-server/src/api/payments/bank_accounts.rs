//! Handlers of bank accounts.

use hyper::StatusCode;
use ledger_store::{Expected, Snapshot};
use serde::de::MapAccess;
use serde_json::value::RawValue;

use crate::api::context::Context;
use crate::api::payments::forms::{self, data};
use crate::api::payments::list::{self, List, UNFILTERED};
use crate::api::payments::payment::{body, connector_id, metadata, required};
use crate::collections::BANK_ACCOUNTS;
use crate::connectors::engine::Engine;
use crate::http::error::ApiError;
use crate::http::json::{self, Fields, Text};
use crate::http::response::{self, Reply};
use crate::log;
use crate::payments::account::Account;
use crate::payments::bank_account::{self, BY_DATE, BY_NAME, BankAccount, Numbers, RelatedAccount};
use crate::payments::codec::Metadata;
use crate::payments::enumerations::AccountType;
use crate::payments::event::Event;
use crate::payments::ids::ConnectorId;
use crate::payments::record::{self, Versioned};
use crate::payments::service::require_installation;
use crate::uuid::Uuid;

const LIST: List = List {
    name: "bank accounts",
    collection: BANK_ACCOUNTS,
    sorts: &[("createdAt", BY_DATE), ("created_at", BY_DATE), ("date", BY_DATE), ("name", BY_NAME)],
    filter: UNFILTERED,
    by_reference: None,
    by_value: list::no_values,
};

pub(super) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let request = LIST.parse(context, "", vec![])?;
    let accept = |_: &list::ListRequest, _: &Snapshot, document: &_| {
        Ok(Some(record::of::<BankAccount>(document)?.value))
    };
    list::answer(context, request, accept, |json, account| forms::bank_account(json, account, None)).await
}

/// Returns a UUID from the path.
pub(super) fn uuid(context: &Context<'_>, at: usize) -> Result<Uuid, ApiError> {
    let text = context.variable(at);
    Uuid::parse(text).ok_or_else(|| ApiError::validation(format!("{text:?} is no UUID")))
}

fn find(snapshot: &Snapshot, id: &Uuid) -> Result<Versioned<BankAccount>, ApiError> {
    bank_account::find(snapshot, id)?.ok_or_else(|| ApiError::not_found("bank account not found"))
}

pub(super) async fn read(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = uuid(context, 0)?;
    let found = context.app.blocking(move |store| find(&store.snapshot(), &id)).await?.value;
    let numbers = found.open(&context.app.payments().sealer)?;
    Ok(data(context, StatusCode::OK, |json| forms::bank_account(json, &found, Some(&numbers.masked()))))
}

#[derive(Default)]
struct Body<'a> {
    name: Text<'a>,
    country: Text<'a>,
    account_number: Text<'a>,
    iban: Text<'a>,
    swift_bic_code: Text<'a>,
    connector: Text<'a>,
    metadata: Option<&'a RawValue>,
}

impl<'de> Fields<'de> for Body<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        let known = ["name", "country", "accountNumber", "iban", "swiftBicCode", "connectorID", "metadata"];
        match json::field(name, &known) {
            Some("name") => self.name = map.next_value()?,
            Some("country") => self.country = map.next_value()?,
            Some("accountNumber") => self.account_number = map.next_value()?,
            Some("iban") => self.iban = map.next_value()?,
            Some("swiftBicCode") => self.swift_bic_code = map.next_value()?,
            Some("connectorID") => self.connector = map.next_value()?,
            Some("metadata") => self.metadata = Some(map.next_value()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn new_account(context: &Context<'_>) -> Result<(BankAccount, Option<ConnectorId>), ApiError> {
    let body = body::<Body<'_>>(context)?;
    if body.account_number.0.is_empty() && body.iban.0.is_empty() {
        return Err(ApiError::validation("either accountNumber or iban must be provided"));
    }
    let name = required(&body.name, "name")?.to_owned();
    let country = required(&body.country, "country")?.to_owned();
    let connector = match &*body.connector.0 {
        "" => None,
        text => Some(connector_id(text)?),
    };
    let id = Uuid::random()?;
    let numbers =
        Numbers { account_number: body.account_number.0.to_string(), iban: body.iban.0.to_string() };
    let account = BankAccount {
        id,
        name,
        created_at: log::now(),
        country,
        numbers: context.app.payments().sealer.seal(&BankAccount::purpose(&id), &numbers.encode())?,
        swift_bic_code: body.swift_bic_code.0.to_string(),
        metadata: match body.metadata {
            None => Metadata::new(),
            Some(given) => metadata(given.get().as_bytes())?,
        },
        related: vec![],
    };
    Ok((account, connector))
}

pub(super) async fn create(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (account, connector) = new_account(context)?;
    let (payments, created) = (context.app.payments().clone(), account.clone());
    let wanted = connector.clone();
    let write = move |_: &ledger_store::Store| {
        payments.write(|snapshot| {
            if let Some(connector) = &wanted {
                require_installation(snapshot, connector)?;
            }
            Ok((vec![record::put(&account, Expected::Absent)], ()))
        })
    };
    context.app.blocking(write).await?;
    // The bank account remains even if the connector cannot use it.
    let created = match connector {
        None => created,
        Some(connector) => forward_to(context, created.id, connector).await?,
    };
    Ok(data(context, StatusCode::OK, |json| forms::bank_account(json, &created, None)))
}

/// Creates the account of a connector for a bank account. The connector receives the numbers when it sends money to the
/// account.
async fn forward_to(
    context: &Context<'_>,
    id: Uuid,
    connector: ConnectorId,
) -> Result<BankAccount, ApiError> {
    let can_forward = check_capability(context.app.connectors(), &connector);
    let payments = context.app.payments().clone();
    let write = move |_: &ledger_store::Store| {
        let now = log::now();
        payments.write(|snapshot| {
            let Versioned { mut value, version } = find(snapshot, &id)?;
            require_installation(snapshot, &connector)?;
            can_forward.clone()?;
            if value.related.iter().any(|related| related.account.connector == connector) {
                let message = "the bank account was forwarded to this connector already";
                return Err(ApiError::validation(message));
            }
            let account = Account {
                id: value.account_at(&connector),
                created_at: now,
                default_asset: String::new(),
                name: value.name.clone(),
                kind: AccountType::External,
                metadata: value.metadata.clone(),
                raw: None,
            };
            let (made, related) = (account.id.clone(), Uuid::random()?);
            value.related.push(RelatedAccount { id: related, created_at: now, account: made });
            let masked = value.open(&payments.sealer)?.masked();
            let told = [Event::Account(&account), Event::BankAccount(&value, &masked)];
            let mut changes = payments.event_changes(&told, now);
            changes.push(record::put(&account, Expected::Absent));
            changes.push(record::put(&value, Expected::Version(version)));
            Ok((changes, value))
        })
    };
    context.app.blocking(write).await
}

/// Refuses a connector that cannot create accounts from bank accounts.
fn check_capability(engine: &Engine, connector: &ConnectorId) -> Result<(), ApiError> {
    let definition = engine.definition(&connector.provider)?;
    if definition.capabilities.bank_accounts {
        return Ok(());
    }
    Err(ApiError::validation(format!("the connector {} makes no bank accounts", definition.provider)))
}

#[derive(Default)]
struct ForwardBody<'a> {
    connector: Text<'a>,
}

impl<'de> Fields<'de> for ForwardBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        let is_known = json::field(name, &["connectorID"]).is_some();
        if is_known {
            self.connector = map.next_value()?;
        }
        Ok(is_known)
    }
}

pub(super) async fn forward(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = uuid(context, 0)?;
    let body = body::<ForwardBody<'_>>(context)?;
    let connector = connector_id(required(&body.connector, "connectorID")?)?;
    let found = forward_to(context, id, connector).await?;
    Ok(data(context, StatusCode::OK, |json| forms::bank_account(json, &found, None)))
}

#[derive(Default)]
struct MetadataBody<'a> {
    metadata: Option<&'a RawValue>,
}

impl<'de> Fields<'de> for MetadataBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        let is_known = json::field(name, &["metadata"]).is_some();
        if is_known {
            self.metadata = Some(map.next_value()?);
        }
        Ok(is_known)
    }
}

pub(super) async fn set_metadata(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = uuid(context, 0)?;
    let body = body::<MetadataBody<'_>>(context)?;
    let given = body.metadata.filter(|given| given.get() != "null");
    let given = given.ok_or_else(|| ApiError::validation("metadata is required"))?;
    let added = metadata(given.get().as_bytes())?;
    let payments = context.app.payments().clone();
    let write = move |_: &ledger_store::Store| {
        payments.write(|snapshot| {
            let Versioned { value, version } = find(snapshot, &id)?;
            let mut changed = value.clone();
            changed.metadata.extend(added.clone());
            let is_same = changed == value;
            let change = record::put(&changed, Expected::Version(version));
            Ok((if is_same { vec![] } else { vec![change] }, ()))
        })
    };
    context.app.blocking(write).await?;
    Ok(response::no_content())
}
