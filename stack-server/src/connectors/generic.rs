//! GENERIC: fetches from any server that implements the generic connector API v0.1. Without an address it fetches
//! nothing, and clients create the accounts and payments.

use std::sync::Arc;

use ledger_core::{Balance, Timestamp};
use serde::de::{Deserialize, MapAccess};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::connectors::config::{Parameter, ParameterType, Values, optional, secret};
use crate::connectors::definition::{Capabilities, Definition, SLOTS};
use crate::connectors::error::ConfigError;
use crate::connectors::generic_walk::{WalkPosition, hash, whole_seconds};
use crate::connectors::http::{Provider, ProviderAccess, escape};
use crate::connectors::{
    Connector, ConnectorFuture, Failure, NewTask, Order, OrderResult, Page, Restart, TaskContext, currency,
};
use crate::http::json::{self, Array, Date, Fields, Object, Text, TextMap};
use crate::http::response::{Json, Numbers};
use crate::payments::account::NewAccount;
use crate::payments::balance::NewBalance;
use crate::payments::codec::Metadata;
use crate::payments::enumerations::{AccountType, PaymentStatus, PaymentType, Scheme};
use crate::payments::payment::NewPayment;

const PROVIDER: &str = "GENERIC";

pub(crate) const DEFINITION: Definition = Definition {
    provider: PROVIDER,
    parameters: PARAMETERS,
    period: "pollingPeriod",
    slots: SLOTS,
    capabilities: Capabilities { pays: false, reverses: false, transfers: false, bank_accounts: false },
    build: &build,
    clean: None,
};

const PARAMETERS: &[Parameter] = &[
    optional("name", ParameterType::Text, PROVIDER),
    secret(optional("apiKey", ParameterType::Text, "")),
    optional("endpoint", ParameterType::Text, ""),
    optional("pollingPeriod", ParameterType::Duration, "2m0s"),
];

/// Number of rows per request.
const PAGE_SIZE: usize = 100;

struct Generic {
    /// The provider; `None` if clients create all records.
    provider: Option<Provider>,
    authorization: String,
}

fn build(values: &Values, access: &ProviderAccess) -> Result<Arc<dyn Connector>, ConfigError> {
    let (endpoint, key) = (values.text("endpoint"), values.text("apiKey"));
    let provider = match endpoint {
        "" => None,
        endpoint => Some(access.provider(endpoint, &[key]).map_err(|reason| reason.of("endpoint"))?),
    };
    Ok(Arc::new(Generic { provider, authorization: format!("Bearer {key}") }))
}

fn descriptor(name: &str, key: &str, account: &str) -> String {
    let mut json = Json::new(Numbers::Plain);
    json.raw("{\"name\":").string(name).raw(",\"key\":").string(key);
    if !account.is_empty() {
        json.raw(",\"accountID\":").string(account);
    }
    json.raw("}");
    json.into_string()
}

fn once(name: &str, key: &str, account: &str) -> NewTask {
    NewTask::once(descriptor(name, key, account), Restart::IfNotActive)
}

impl Connector for Generic {
    fn first_tasks(&self) -> Vec<NewTask> {
        let main = "Main task to periodically fetch users and transactions";
        match self.provider {
            None => vec![],
            Some(_) => vec![NewTask::periodic(descriptor(main, "main", ""))],
        }
    }

    fn poll<'a>(&'a self, context: &'a TaskContext) -> ConnectorFuture<'a, Page> {
        Box::pin(async move {
            let Some(provider) = &self.provider else { return Ok(Page::default()) };
            match context.descriptor_member("key").as_str() {
                "main" => Ok(Page {
                    children: vec![
                        once("Fetch accounts from client", "fetch-accounts", ""),
                        once("Fetch beneficiaries from client", "fetch-beneficiaries", ""),
                    ],
                    ..Page::default()
                }),
                "fetch-accounts" => self.walk(provider, context, &ACCOUNTS).await,
                "fetch-beneficiaries" => self.walk(provider, context, &BENEFICIARIES).await,
                "fetch-transactions" => self.walk(provider, context, &TRANSACTIONS).await,
                "fetch-balances" => self.balances(provider, context).await,
                other => Err(Failure::permanent(format!("there is no task {other:?}"))),
            }
        })
    }

    fn pay<'a>(&'a self, _: &'a Order) -> ConnectorFuture<'a, OrderResult> {
        Box::pin(async { Err(Failure::permanent("this connector moves no money")) })
    }
}

/// A list of the provider.
struct List {
    path: &'static str,
    /// The filter by date, and the member of the state for its value. Empty if each walk fetches everything.
    since: &'static str,
    kept: &'static str,
    read: fn(&RawValue, &TaskContext, &mut Page) -> Result<Option<Timestamp>, SkipReason>,
}

const ACCOUNTS: List = List { path: "/accounts", since: "", kept: "", read: read_account };
const BENEFICIARIES: List =
    List { path: "/beneficiaries", since: "createdAtFrom", kept: "LastCreatedAt", read: read_beneficiary };
const TRANSACTIONS: List =
    List { path: "/transactions", since: "updatedAtFrom", kept: "last_updated_at", read: read_transaction };

impl Generic {
    /// Fetches a page of a list. If rows are in the order of their dates, the next page begins at the date of the last
    /// row. Otherwise records that change meanwhile would move to the end, and shift all later pages by one row. If
    /// rows are in another order, the next page has the next number.
    async fn walk(&self, provider: &Provider, context: &TaskContext, list: &List) -> Result<Page, Failure> {
        let place = WalkPosition::of(context, list.kept);
        let mut path = format!("{}?pageSize={PAGE_SIZE}&page={}", list.path, place.page);
        if !place.since.is_empty() {
            path.push_str(&format!("&{}={}", list.since, escape(&whole_seconds(&place.since))));
        }
        let body = provider.get(&path, &[("authorization", &self.authorization)]).await?;
        let rows = rows(&body).map_err(|error| Failure::retryable(format!("{}: {error}", list.path)))?;
        let mut page = Page::default();
        if rows.is_empty() {
            return Ok(end_walk(page, list, &place));
        }
        let mut dates = Vec::with_capacity(rows.len());
        for row in &rows {
            match (list.read)(row, context, &mut page) {
                // A date in the future would hide all records up to this date.
                Ok(at) => dates.extend(at.map(|at| at.min(context.now))),
                Err(reason) => page.warning = page.warning.or_else(|| Some(reason.to_string())),
            }
        }
        let hashes: Vec<_> = rows.iter().map(|row| hash(row.get())).collect();
        match place.next(list.kept, &dates, &hashes) {
            Some(place) => {
                page.state = Some(place.json(list.kept));
                page.has_more = true;
                Ok(page)
            }
            None => Ok(end_walk(page, list, &place.without_proof())),
        }
    }

    async fn balances(&self, provider: &Provider, context: &TaskContext) -> Result<Page, Failure> {
        let account = context.descriptor_member("accountID");
        let path = format!("/accounts/{}/balances", escape(&account));
        let body = provider.get(&path, &[("authorization", &self.authorization)]).await?;
        let Object(found) = serde_json::from_slice::<Object<Balances<'_>>>(&body)
            .map_err(|error| Failure::retryable(format!("/accounts/…/balances: {error}")))?;
        let mut page = Page::default();
        let Some(at) = found.at else {
            page.warning = Some(format!("the balances of {account:?} have no date"));
            return Ok(page);
        };
        for Object(balance) in found.balances.0 {
            match Balance::parse(&balance.amount.0) {
                Ok(amount) if !balance.currency.0.is_empty() => page.batch.balances.push(NewBalance {
                    account: account.clone(),
                    asset: currency::asset(&balance.currency.0),
                    // A date in the future would hide the balance until then.
                    at: at.min(context.now),
                    balance: amount,
                }),
                _ => {
                    page.warning = Some(format!("a balance of {account:?} is no whole number of a currency"));
                }
            }
        }
        Ok(page)
    }
}

/// Ends a walk. The walk of the transactions follows that of the accounts.
fn end_walk(mut page: Page, list: &List, place: &WalkPosition) -> Page {
    page.state = Some(place.end(list.kept));
    if list.path == ACCOUNTS.path {
        page.children.push(once("Fetch transactions from client", "fetch-transactions", ""));
    }
    page
}

/// Returns the rows of a response.
fn rows(body: &[u8]) -> serde_json::Result<Vec<&RawValue>> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let Array(rows) = Array::<&RawValue>::deserialize(&mut reader)?;
    reader.end()?;
    Ok(rows)
}

#[derive(Default)]
struct Balances<'a> {
    at: Option<Timestamp>,
    balances: BalanceRows<'a>,
}

/// The balances of a response.
#[derive(Default)]
struct BalanceRows<'a>(Vec<Object<OneBalance<'a>>>);

#[derive(Default)]
struct OneBalance<'a> {
    amount: Text<'a>,
    currency: Text<'a>,
}

impl<'de> Fields<'de> for Balances<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match json::field(name, &["at", "balances"]) {
            Some("at") => self.at = map.next_value::<Date>()?.0,
            Some("balances") => self.balances = BalanceRows(map.next_value::<Array<_>>()?.0),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl<'de> Fields<'de> for OneBalance<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match json::field(name, &["amount", "currency"]) {
            Some("amount") => self.amount = map.next_value()?,
            Some("currency") => self.currency = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The fields of an account, a beneficiary or a transaction. Each kind has some of them.
#[derive(Default)]
struct ProviderRecord<'a> {
    id: Text<'a>,
    name: Option<Text<'a>>,
    owner: Option<Text<'a>>,
    created_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    currency: Text<'a>,
    kind: Text<'a>,
    status: Text<'a>,
    amount: Text<'a>,
    source: Text<'a>,
    destination: Text<'a>,
    metadata: TextMap,
}

impl<'de> Fields<'de> for ProviderRecord<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "id" => self.id = map.next_value()?,
            "accountName" => self.name = Some(map.next_value()?),
            "ownerName" => self.owner = Some(map.next_value()?),
            "createdAt" => self.created_at = map.next_value::<Date>()?.0,
            "updatedAt" => self.updated_at = map.next_value::<Date>()?.0,
            "currency" => self.currency = map.next_value()?,
            "type" => self.kind = map.next_value()?,
            "status" => self.status = map.next_value()?,
            "amount" => self.amount = map.next_value()?,
            "sourceAccountID" => self.source = map.next_value()?,
            "destinationAccountID" => self.destination = map.next_value()?,
            "metadata" => self.metadata = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn read(row: &RawValue) -> Result<ProviderRecord<'_>, SkipReason> {
    let Object(fields) = json::first::<Object<ProviderRecord<'_>>>(row.get().as_bytes())?;
    if fields.id.0.is_empty() {
        return Err(SkipReason::NoId);
    }
    Ok(fields)
}

/// The reason why a record is skipped.
#[derive(Debug, Error)]
enum SkipReason {
    #[error("a record was passed over: {0}")]
    Json(#[from] json::JsonError),
    #[error("a record without an id was passed over")]
    NoId,
    #[error("{id:?} was passed over: it has no {missing}")]
    Incomplete {
        /// The beginning of the record's id.
        id: String,
        missing: &'static str,
    },
    #[error("{id:?} was passed over: its amount is no whole number")]
    Amount { id: String },
}

/// Returns the beginning of a record's id. The id itself may have any length.
fn beginning_of_id(row: &ProviderRecord<'_>) -> String {
    row.id.0.chars().take(64).collect()
}

fn incomplete(row: &ProviderRecord<'_>, missing: &'static str) -> SkipReason {
    SkipReason::Incomplete { id: beginning_of_id(row), missing }
}

fn metadata_of(metadata: &TextMap) -> Metadata {
    metadata.0.iter().map(|(key, value)| (key.to_owned(), value.as_text().unwrap_or("").to_owned())).collect()
}

fn account_of(
    row: &ProviderRecord<'_>,
    raw: &RawValue,
    name: Option<&Text<'_>>,
    kind: AccountType,
) -> Result<(NewAccount, Timestamp), SkipReason> {
    let name = name.ok_or_else(|| incomplete(row, "name"))?;
    let created_at = row.created_at.ok_or_else(|| incomplete(row, "createdAt"))?;
    let account = NewAccount {
        reference: row.id.0.to_string(),
        created_at,
        default_asset: String::new(),
        name: name.0.to_string(),
        kind,
        metadata: metadata_of(&row.metadata),
        raw: Some(raw.get().to_owned()),
    };
    Ok((account, created_at))
}

fn read_account(raw: &RawValue, _: &TaskContext, page: &mut Page) -> Result<Option<Timestamp>, SkipReason> {
    let row = read(raw)?;
    let (account, _) = account_of(&row, raw, row.name.as_ref(), AccountType::Internal)?;
    page.children.push(once("Fetch balances from client", "fetch-balances", &account.reference));
    page.batch.accounts.push(account);
    Ok(None)
}

fn read_beneficiary(
    raw: &RawValue,
    _: &TaskContext,
    page: &mut Page,
) -> Result<Option<Timestamp>, SkipReason> {
    let row = read(raw)?;
    let (account, created_at) = account_of(&row, raw, row.owner.as_ref(), AccountType::External)?;
    page.batch.accounts.push(account);
    Ok(Some(created_at))
}

fn read_transaction(
    raw: &RawValue,
    context: &TaskContext,
    page: &mut Page,
) -> Result<Option<Timestamp>, SkipReason> {
    let row = read(raw)?;
    let updated_at = row.updated_at.ok_or_else(|| incomplete(&row, "updatedAt"))?;
    let created_at = row.created_at.ok_or_else(|| incomplete(&row, "createdAt"))?;
    if row.currency.0.is_empty() || row.kind.0.is_empty() || row.status.0.is_empty() {
        return Err(incomplete(&row, "currency, type or status"));
    }
    let amount = Balance::parse(&row.amount.0);
    let amount = amount.map_err(|_| SkipReason::Amount { id: beginning_of_id(&row) })?;
    page.batch.payments.push(NewPayment {
        kind: match &*row.kind.0 {
            "PAYIN" => PaymentType::PayIn,
            "PAYOUT" => PaymentType::Payout,
            "TRANSFER" => PaymentType::Transfer,
            _ => PaymentType::Other,
        },
        reference: row.id.0.to_string(),
        source: context.account(&row.source.0),
        destination: context.account(&row.destination.0),
        status: match &*row.status.0 {
            "PENDING" => PaymentStatus::Pending,
            "SUCCEEDED" => PaymentStatus::Succeeded,
            "FAILED" => PaymentStatus::Failed,
            _ => PaymentStatus::Other,
        },
        initial_amount: amount.clone(),
        amount,
        scheme: Scheme::Other,
        asset: currency::asset(&row.currency.0),
        created_at,
        raw: Some(raw.get().to_owned()),
        adjustments: vec![],
        metadata: metadata_of(&row.metadata),
        // A date of a fast clock would hide later changes once the clock is corrected.
        revision: Some(updated_at.min(context.now)),
    });
    Ok(Some(updated_at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payments::ids::ConnectorId;
    use crate::uuid::Uuid;

    #[test]
    fn clock_that_runs_ahead_dates_no_change_ahead() {
        let now = Timestamp::parse("2024-05-01T00:00:00Z").expect("a date");
        let context = TaskContext {
            connector: ConnectorId { provider: PROVIDER.into(), installation: Uuid::from_bytes([7; 16]) },
            descriptor: String::new(),
            state: String::new(),
            now,
        };
        let row = |updated_at: &str| {
            let text = format!(
                r#"{{"id":"t","createdAt":"2024-01-01T00:00:00Z","updatedAt":"{updated_at}","currency":"EUR",
                "type":"PAYIN","status":"SUCCEEDED","amount":"1"}}"#
            );
            RawValue::from_string(text).expect("JSON")
        };
        let mut page = Page::default();
        for date in ["2024-05-01T01:00:00Z", "2024-04-30T00:00:00Z"] {
            read_transaction(&row(date), &context, &mut page).expect("a payment");
        }
        let revisions: Vec<_> = page.batch.payments.iter().map(|payment| payment.revision).collect();
        assert_eq!(revisions, [Some(now), Timestamp::parse("2024-04-30T00:00:00Z").ok()]);
    }
}
