//! WISE: fetches balances of profiles, recipients and transfers. Sends transfers to recipients and between balances.

use std::sync::Arc;
use std::time::Duration;

use ledger_core::Timestamp;

use crate::connectors::config::{Parameter, ParameterType, Values, optional, required, secret};
use crate::connectors::definition::{Capabilities, Definition, SLOTS};
use crate::connectors::http::{Provider, ProviderAccess, escape, parsed};
use crate::connectors::json_object::{InvalidRecord, JsonObject};
use crate::connectors::walk::{self, List, PagePosition};
use crate::connectors::{
    Connector, ConnectorFuture, Failure, NewTask, Order, OrderResult, Page, TaskContext, Transfer, currency,
    object,
};
use crate::http::response::{Json, Numbers};
use crate::payments::account::NewAccount;
use crate::payments::balance::NewBalance;
use crate::payments::codec::Metadata;
use crate::payments::enumerations::{AccountType, InitiationType, PaymentStatus, PaymentType, Scheme};
use crate::payments::payment::NewPayment;

const PROVIDER: &str = "WISE";

const ADDRESS: &str = "https://api.transferwise.com";

/// Number of rows per request.
const PAGE_SIZE: u64 = 100;

/// The status of a transfer that is not funded yet.
const UNFUNDED: &str = "incoming_payment_waiting";

/// The metadata key by which an account names the profile that owns it.
const PROFILE: &str = "profile_id";

pub(crate) const DEFINITION: Definition = Definition {
    provider: PROVIDER,
    parameters: PARAMETERS,
    period: "pollingPeriod",
    slots: SLOTS,
    capabilities: Capabilities { pays: true, reverses: false, transfers: true, bank_accounts: false },
    build: &|values, access| Ok(build(values, access)),
    clean: None,
};

const PARAMETERS: &[Parameter] = &[
    optional("name", ParameterType::Text, PROVIDER),
    secret(required("apiKey", ParameterType::Text, "")),
    optional("pollingPeriod", ParameterType::Duration, "2m0s"),
];

const PROFILES: List = List {
    name: "Fetch profiles from client",
    key: "fetch-profiles",
    rows: "",
    is_last: walk::single_page,
    token: "",
    overlap: None,
    read: read_profile,
};

const BALANCES: List = List {
    name: "Fetch balances of a profile",
    key: "fetch-balances",
    rows: "",
    is_last: walk::single_page,
    token: "",
    overlap: None,
    read: read_balance,
};

const RECIPIENTS: List = List {
    name: "Fetch recipient accounts from client by profile",
    key: "fetch-recipient-accounts",
    rows: "content",
    is_last: walk::until_empty,
    token: "seekPositionForNext",
    overlap: None,
    read: read_recipient,
};

const TRANSFERS: List = List {
    name: "Fetch transfers from client by profile",
    key: "fetch-transfers",
    rows: "",
    is_last: walk::until_empty,
    token: "",
    // The status of a transfer can change for weeks.
    overlap: Some(Duration::from_hours(30 * 24)),
    read: read_transfer,
};

struct Wise {
    provider: Provider,
    authorization: String,
}

fn build(values: &Values, access: &ProviderAccess) -> Arc<dyn Connector> {
    let key = values.text("apiKey");
    let provider = access.known_provider(PROVIDER, ADDRESS, &[key]);
    Arc::new(Wise { provider, authorization: format!("Bearer {key}") })
}

impl Connector for Wise {
    fn first_tasks(&self) -> Vec<NewTask> {
        let main = [("name", "Main task to periodically fetch users and transactions"), ("key", "main")];
        vec![NewTask::periodic(object(&main))]
    }

    fn poll<'a>(&'a self, context: &'a TaskContext) -> ConnectorFuture<'a, Page> {
        Box::pin(async move {
            let profile = escape(&context.descriptor_member("profileID"));
            let place = PagePosition::of(context);
            let (list, path) = match context.descriptor_member("key").as_str() {
                "main" => return Ok(Page { children: vec![PROFILES.task(&[])], ..Page::default() }),
                "fetch-profiles" => (&PROFILES, "/v1/profiles".to_owned()),
                "fetch-balances" => {
                    (&BALANCES, format!("/v4/profiles/{profile}/balances?types=STANDARD,SAVINGS"))
                }
                "fetch-recipient-accounts" => (&RECIPIENTS, recipients(&profile, &place)),
                "fetch-transfers" => (&TRANSFERS, transfers(&profile, &place)),
                other => return Err(Failure::permanent(format!("there is no task {other:?}"))),
            };
            let body = self.provider.get(&path, &[("authorization", &self.authorization)]).await?;
            place.read(list, context, &body)
        })
    }

    fn pay<'a>(&'a self, order: &'a Order) -> ConnectorFuture<'a, OrderResult> {
        Box::pin(async move {
            match order {
                // Old transfers may have a profile as their source, which has no balance itself.
                Order::Send(transfer)
                    if transfer.kind == InitiationType::Transfer
                        && transfer.source_metadata.contains_key(PROFILE) =>
                {
                    self.move_between_balances(transfer).await
                }
                Order::Send(transfer) => self.send(transfer).await,
                Order::GetState { provider_id, .. } => {
                    let path = format!("/v1/transfers/{}", escape(provider_id));
                    let body = self.provider.get(&path, &[("authorization", &self.authorization)]).await?;
                    order_result(&parsed(&body)?)
                }
                Order::Reverse { .. } => Err(Failure::permanent("WISE reverses no transfers")),
            }
        })
    }
}

fn recipients(profile: &str, place: &PagePosition) -> String {
    let seek = if place.token.is_empty() { "0".to_owned() } else { escape(&place.token) };
    format!("/v2/accounts?profile={profile}&size={PAGE_SIZE}&seekPosition={seek}")
}

fn transfers(profile: &str, place: &PagePosition) -> String {
    let mut path = format!("/v1/transfers?profile={profile}&limit={PAGE_SIZE}&offset={}", place.offset);
    if !place.since.is_empty() {
        path.push_str(&format!("&createdDateStart={}", escape(&place.since)));
    }
    path
}

fn read_profile(
    row: &JsonObject<'_>,
    _: &TaskContext,
    page: &mut Page,
) -> Result<Option<Timestamp>, InvalidRecord> {
    let id = row.required("id")?;
    page.children.extend([BALANCES, RECIPIENTS, TRANSFERS].map(|list| list.task(&[("profileID", &id)])));
    Ok(None)
}

fn read_balance(
    row: &JsonObject<'_>,
    context: &TaskContext,
    page: &mut Page,
) -> Result<Option<Timestamp>, InvalidRecord> {
    let (reference, code) = (row.required("id")?, row.required("currency")?);
    page.batch.accounts.push(NewAccount {
        reference: reference.clone(),
        created_at: row.required_date("creationTime")?,
        default_asset: currency::asset(&code),
        name: row.text("name"),
        kind: AccountType::Internal,
        metadata: Metadata::from([(PROFILE.to_owned(), context.descriptor_member("profileID"))]),
        raw: Some(row.raw()),
    });
    let balance = row.object_or_empty("amount").amount("value", &code)?;
    page.batch.balances.push(NewBalance {
        account: reference,
        asset: currency::asset(&code),
        at: context.now,
        balance,
    });
    Ok(None)
}

fn read_recipient(
    row: &JsonObject<'_>,
    context: &TaskContext,
    page: &mut Page,
) -> Result<Option<Timestamp>, InvalidRecord> {
    let code = row.text("currency");
    let name = row.object_or_empty("name").text("fullName");
    page.batch.accounts.push(NewAccount {
        reference: row.required("id")?,
        // Without a date of the provider, use a fixed one, so that every walk reads the same account.
        created_at: row.date("creationTime").unwrap_or(Timestamp::from_micros(0)),
        default_asset: if code.is_empty() { String::new() } else { currency::asset(&code) },
        name: if name.is_empty() { row.text("accountHolderName") } else { name },
        kind: AccountType::External,
        metadata: Metadata::from([(PROFILE.to_owned(), context.descriptor_member("profileID"))]),
        raw: Some(row.raw()),
    });
    Ok(None)
}

fn read_transfer(
    row: &JsonObject<'_>,
    context: &TaskContext,
    page: &mut Page,
) -> Result<Option<Timestamp>, InvalidRecord> {
    let code = row.required("targetCurrency")?;
    let (amount, created_at) = (row.amount("targetValue", &code)?, row.required_date("created")?);
    page.batch.payments.push(NewPayment {
        kind: PaymentType::Transfer,
        reference: row.required("id")?,
        source: context.account(&row.text("sourceAccount")),
        destination: context.account(&row.text("targetAccount")),
        status: status(&row.text("status")),
        initial_amount: amount.clone(),
        amount,
        scheme: Scheme::Other,
        asset: currency::asset(&code),
        created_at,
        raw: Some(row.raw()),
        adjustments: vec![],
        metadata: Metadata::new(),
        revision: None,
    });
    Ok(Some(created_at))
}

fn status(word: &str) -> PaymentStatus {
    match word {
        "funds_converted" | "outgoing_payment_sent" => PaymentStatus::Succeeded,
        UNFUNDED | "incoming_payment_initiated" | "processing" => PaymentStatus::Pending,
        "bounced_back" | "funds_refunded" => PaymentStatus::Failed,
        "cancelled" => PaymentStatus::Cancelled,
        _ => PaymentStatus::Other,
    }
}

impl Wise {
    async fn post(&self, path: &str, key: &str, body: String) -> Result<serde_json::Value, Failure> {
        let headers = [
            ("authorization", &*self.authorization),
            ("content-type", "application/json"),
            ("x-idempotence-uuid", key),
        ];
        parsed(&self.provider.post(path, &headers, body).await?)
    }

    /// Sends money to a recipient: creates a quote and a transfer, and pays the transfer from the balance. The customer
    /// transaction id tells the provider that a transfer is a repetition. A transfer that is not funded was not paid.
    async fn send(&self, transfer: &Transfer) -> Result<OrderResult, Failure> {
        let profile = profile(transfer)?;
        let (amount, code) = transfer.decimal_amount()?;
        let key = transfer.idempotency_uuid();
        let path = format!("/v3/profiles/{profile}/quotes");
        let mut json = Json::new(Numbers::Plain);
        json.raw("{\"sourceCurrency\":").string(code).raw(",\"targetCurrency\":").string(code);
        json.raw(",\"targetAmount\":").raw(&amount).raw(",\"targetAccount\":");
        json.raw(&number(&transfer.destination)?).raw("}");
        let quote = text(&self.post(&path, &key, json.into_string()).await?["id"]);
        let mut json = Json::new(Numbers::Plain);
        json.raw("{\"targetAccount\":").raw(&number(&transfer.destination)?);
        json.raw(",\"quoteUuid\":").string(&quote).raw(",\"customerTransactionId\":").string(&key);
        json.raw(",\"details\":{\"reference\":").string(&transfer.description).raw("}}");
        let made = self.post("/v1/transfers", &key, json.into_string()).await?;
        let id = text(&made["id"]);
        if id.is_empty() {
            return Err(Failure::retryable("the provider's transfer has no id"));
        }
        if made["status"] != UNFUNDED {
            return order_result(&made);
        }
        let path = format!("/v3/profiles/{profile}/transfers/{}/payments", escape(&id));
        let funded = self.post(&path, &key, "{\"type\":\"BALANCE\"}".to_owned()).await?;
        if funded["status"] == "REJECTED" {
            return Err(Failure::permanent(format!(
                "the balance pays no transfer: {}",
                text(&funded["errorCode"])
            )));
        }
        order_result(&made)
    }

    /// Moves money between two balances of a profile.
    async fn move_between_balances(&self, transfer: &Transfer) -> Result<OrderResult, Failure> {
        let profile = profile(transfer)?;
        let (amount, code) = transfer.decimal_amount()?;
        let mut json = Json::new(Numbers::Plain);
        json.raw("{\"amount\":{\"value\":").raw(&amount).raw(",\"currency\":").string(code);
        json.raw("},\"sourceBalanceId\":").raw(&number(&transfer.source)?);
        json.raw(",\"targetBalanceId\":").raw(&number(&transfer.destination)?).raw("}");
        let path = format!("/v2/profiles/{profile}/balance-movements");
        let made = self.post(&path, &transfer.idempotency_uuid(), json.into_string()).await?;
        let (id, state) = (text(&made["id"]), text(&made["state"]));
        let status = match &*state {
            "COMPLETED" => PaymentStatus::Succeeded,
            "CANCELLED" | "REVERSED" => PaymentStatus::Failed,
            // There is no route to read a movement. The response to a repeated request contains its state.
            _ => return Err(Failure::retryable(format!("the movement is {state:?}"))),
        };
        Ok(OrderResult::of_status(id, status, &state))
    }
}

/// Returns the profile of the source. A fetched account names its profile; older transfers contain the profile itself.
fn profile(transfer: &Transfer) -> Result<String, Failure> {
    let known = transfer.source_metadata.get(PROFILE).unwrap_or(&transfer.source);
    if known.is_empty() {
        return Err(Failure::permanent("WISE needs a source account, which tells the profile"));
    }
    Ok(escape(known))
}

/// Checks an id of this provider, which must be a number.
fn number(id: &str) -> Result<String, Failure> {
    let is_number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { Ok(id.to_owned()) } else { Err(Failure::permanent(format!("{id:?} is no id of WISE"))) }
}

fn text(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

fn order_result(made: &serde_json::Value) -> Result<OrderResult, Failure> {
    let (id, word) = (text(&made["id"]), text(&made["status"]));
    if id.is_empty() {
        return Err(Failure::retryable("the provider's transfer has no id"));
    }
    let payment = Some((PaymentType::Transfer, id.clone()));
    Ok(OrderResult { payment, ..OrderResult::of_status(id, status(&word), &word) })
}
