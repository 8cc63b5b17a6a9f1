//! MODULR: fetches accounts with their balances and transactions, and beneficiaries. Sends payments to accounts and
//! beneficiaries.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use httpdate::fmt_http_date;
use ledger_core::Timestamp;

use crate::connectors::config::{Parameter, ParameterType, Values, Visibility, optional, required, secret};
use crate::connectors::definition::{Capabilities, Definition, SLOTS};
use crate::connectors::error::ConfigError;
use crate::connectors::http::{Provider, ProviderAccess, escape, parsed};
use crate::connectors::json_object::{InvalidRecord, JsonObject};
use crate::connectors::walk::{List, PagePosition};
use crate::connectors::{
    Connector, ConnectorFuture, Failure, NewTask, Order, OrderResult, Page, TaskContext, Transfer, currency,
    object,
};
use crate::http::response::{Json, Numbers};
use crate::log;
use crate::payments::account::NewAccount;
use crate::payments::balance::NewBalance;
use crate::payments::codec::Metadata;
use crate::payments::enumerations::{AccountType, InitiationType, PaymentStatus, PaymentType, Scheme};
use crate::payments::payment::NewPayment;
use crate::uuid::Uuid;

const PROVIDER: &str = "MODULR";

pub(crate) const DEFINITION: Definition = Definition {
    provider: PROVIDER,
    parameters: PARAMETERS,
    period: "pollingPeriod",
    slots: SLOTS,
    capabilities: Capabilities { pays: true, reverses: false, transfers: false, bank_accounts: false },
    build: &build,
    clean: None,
};

const PARAMETERS: &[Parameter] = &[
    optional("name", ParameterType::Text, PROVIDER),
    secret(required("apiKey", ParameterType::Text, "")),
    secret(required("apiSecret", ParameterType::Text, "")),
    optional("endpoint", ParameterType::Text, "https://api-sandbox.modulrfinance.com/api-sandbox"),
    optional("pollingPeriod", ParameterType::Duration, "2m0s"),
    Parameter { visibility: Visibility::CatalogueOnly, ..optional("pageSize", ParameterType::Number, "100") },
];

/// Maximum number of rows per request that the provider accepts.
const PAGE_MAX: u64 = 500;

const ACCOUNTS: List = List {
    name: "Fetch accounts from client",
    key: "fetch-accounts",
    rows: "content",
    is_last,
    token: "",
    overlap: None,
    read: read_account,
};

const BENEFICIARIES: List = List {
    name: "Fetch beneficiaries from client",
    key: "fetch-beneficiaries",
    rows: "content",
    is_last,
    token: "",
    overlap: None,
    read: read_beneficiary,
};

const TRANSACTIONS: List = List {
    name: "Fetch transactions from client by account",
    key: "fetch-transactions",
    rows: "content",
    is_last,
    token: "",
    // A transaction may be posted some days after its date.
    overlap: Some(Duration::from_hours(7 * 24)),
    read: read_transaction,
};

struct Modulr {
    provider: Provider,
    key: String,
    secret: hmac::Key,
    page_size: u64,
}

fn build(values: &Values, access: &ProviderAccess) -> Result<Arc<dyn Connector>, ConfigError> {
    let (key, secret) = (values.text("apiKey"), values.text("apiSecret"));
    let provider = access.provider_of(PROVIDER, values.text("endpoint"), &[key, secret]);
    Ok(Arc::new(Modulr {
        provider: provider.map_err(|reason| reason.of("endpoint"))?,
        key: key.to_owned(),
        secret: hmac::Key::new(hmac::HMAC_SHA512, secret.as_bytes()),
        page_size: values.number("pageSize").clamp(1, PAGE_MAX),
    }))
}

/// Returns whether the response says that no page follows.
fn is_last(answer: Option<&JsonObject<'_>>, place: &PagePosition) -> bool {
    let total = answer.and_then(|answer| answer.text("totalPages").parse::<u64>().ok());
    total.is_some_and(|total| place.page >= total)
}

impl Connector for Modulr {
    fn first_tasks(&self) -> Vec<NewTask> {
        let main = [("name", "Main task to periodically fetch accounts and transactions"), ("key", "main")];
        vec![NewTask::periodic(object(&main))]
    }

    fn poll<'a>(&'a self, context: &'a TaskContext) -> ConnectorFuture<'a, Page> {
        Box::pin(async move {
            let place = PagePosition::of(context);
            let paging = format!("page={}&size={}", place.page, self.page_size);
            let (list, path) = match context.descriptor_member("key").as_str() {
                "main" => {
                    let children = vec![ACCOUNTS.task(&[]), BENEFICIARIES.task(&[])];
                    return Ok(Page { children, ..Page::default() });
                }
                "fetch-accounts" => {
                    (&ACCOUNTS, format!("/accounts?{paging}&sortField=createdDate&sortOrder=asc"))
                }
                "fetch-beneficiaries" => (&BENEFICIARIES, format!("/beneficiaries?{paging}")),
                "fetch-transactions" => {
                    let account = escape(&context.descriptor_member("accountID"));
                    let mut path = format!("/accounts/{account}/transactions?{paging}");
                    // The provider's filter only supports whole days.
                    if let Some((day, _)) = place.since.split_once('T') {
                        path.push_str(&format!("&fromTransactionDate={day}"));
                    }
                    (&TRANSACTIONS, path)
                }
                other => return Err(Failure::permanent(format!("there is no task {other:?}"))),
            };
            let body = self.get(&path).await?;
            place.read(list, context, &body)
        })
    }

    fn pay<'a>(&'a self, order: &'a Order) -> ConnectorFuture<'a, OrderResult> {
        Box::pin(async move {
            match order {
                Order::Send(transfer) => self.send(transfer).await,
                Order::GetState { provider_id, .. } => {
                    let body = self.get(&format!("/payments?id={}", escape(provider_id))).await?;
                    let found = parsed(&body)?;
                    order_result(&found["content"][0])
                }
                Order::Reverse { .. } => Err(Failure::permanent("MODULR reverses no payments")),
            }
        })
    }
}

impl Modulr {
    async fn get(&self, path: &str) -> Result<hyper::body::Bytes, Failure> {
        let nonce = Uuid::random().map_err(|error| Failure::retryable(error.to_string()))?.to_string();
        let (date, authorization) = self.signed(log::now(), &nonce);
        let headers = [("date", &*date), ("x-mod-nonce", &nonce), ("authorization", &authorization)];
        self.provider.get(path, &headers).await
    }

    /// Returns the date and the signature of a request.
    fn signed(&self, now: Timestamp, nonce: &str) -> (String, String) {
        let date = http_date(now);
        let tag = hmac::sign(&self.secret, format!("date: {date}\nx-mod-nonce: {nonce}").as_bytes());
        let signature = escape(&STANDARD.encode(tag.as_ref()));
        let authorization = format!(
            "Signature keyId=\"{}\",algorithm=\"hmac-sha512\",headers=\"date x-mod-nonce\",signature=\"{signature}\"",
            self.key
        );
        (date, authorization)
    }

    /// Sends money. If the nonce of a request repeats, the provider returns the payment of the first request.
    async fn send(&self, transfer: &Transfer) -> Result<OrderResult, Failure> {
        if transfer.source.is_empty() {
            return Err(Failure::permanent("MODULR needs a source account"));
        }
        let (amount, code) = transfer.decimal_amount()?;
        let kind = match transfer.kind {
            InitiationType::Transfer => "ACCOUNT",
            InitiationType::Payout => "BENEFICIARY",
        };
        let mut json = Json::new(Numbers::Plain);
        json.raw("{\"sourceAccountId\":").string(&transfer.source);
        json.raw(",\"destination\":{\"type\":").plain_string(kind);
        json.raw(",\"id\":").string(&transfer.destination).raw("},\"currency\":").string(code);
        json.raw(",\"amount\":").raw(&amount).raw(",\"reference\":").string(&transfer.description);
        json.raw(",\"externalReference\":").string(&transfer.idempotency_key).raw("}");
        let body = json.into_string();
        let nonce = transfer.idempotency_uuid();
        let (date, authorization) = self.signed(log::now(), &nonce);
        let headers = [
            ("date", &*date),
            ("x-mod-nonce", &nonce),
            ("x-mod-retry", "true"),
            ("authorization", &authorization),
            ("content-type", "application/json"),
        ];
        order_result(&parsed(&self.provider.post("/payments", &headers, body).await?)?)
    }
}

/// Formats a date for HTTP, for example `Mon, 25 Jul 2016 16:36:07 GMT`.
fn http_date(at: Timestamp) -> String {
    let since = Duration::from_micros(at.as_micros().max(0).unsigned_abs());
    fmt_http_date(SystemTime::UNIX_EPOCH + since)
}

fn read_account(
    row: &JsonObject<'_>,
    context: &TaskContext,
    page: &mut Page,
) -> Result<Option<Timestamp>, InvalidRecord> {
    let (reference, code) = (row.required("id")?, row.required("currency")?);
    page.batch.accounts.push(NewAccount {
        reference: reference.clone(),
        created_at: row.required_date("createdDate")?,
        default_asset: currency::asset(&code),
        name: row.text("name"),
        kind: AccountType::Internal,
        metadata: Metadata::new(),
        raw: Some(row.raw()),
    });
    page.children.push(TRANSACTIONS.task(&[("accountID", &reference)]));
    let (asset, balance) = (currency::asset(&code), row.amount("balance", &code)?);
    page.batch.balances.push(NewBalance { account: reference, asset, at: context.now, balance });
    Ok(None)
}

fn read_beneficiary(
    row: &JsonObject<'_>,
    _: &TaskContext,
    page: &mut Page,
) -> Result<Option<Timestamp>, InvalidRecord> {
    page.batch.accounts.push(NewAccount {
        reference: row.required("id")?,
        created_at: row.required_date("created")?,
        default_asset: String::new(),
        name: row.text("name"),
        kind: AccountType::External,
        metadata: Metadata::new(),
        raw: Some(row.raw()),
    });
    Ok(None)
}

fn read_transaction(
    row: &JsonObject<'_>,
    context: &TaskContext,
    page: &mut Page,
) -> Result<Option<Timestamp>, InvalidRecord> {
    let (code, created_at) = (row.required("currency")?, row.required_date("transactionDate")?);
    let amount = row.amount("amount", &code)?;
    let kind = payment_type(&row.text("type"));
    let account = context.account(&context.descriptor_member("accountID"));
    let (source, destination) = match kind {
        PaymentType::PayIn => (None, account),
        PaymentType::Payout => (account, None),
        _ if row.flag("credit") => (None, account),
        _ => (account, None),
    };
    page.batch.payments.push(NewPayment {
        kind,
        reference: row.required("id")?,
        source,
        destination,
        status: PaymentStatus::Succeeded,
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

fn payment_type(word: &str) -> PaymentType {
    // `ADHOC` and `INT_INTERC` have no direction, and the reversals `PI_REV` and `PO_REV` are no payments.
    match word.split_once('_') {
        Some(("PI", how)) if how != "REV" => PaymentType::PayIn,
        Some(("PO", how)) if how != "REV" => PaymentType::Payout,
        _ => PaymentType::Other,
    }
}

/// Returns the state of an order. Its transactions have separate ids, so the result names no payment.
fn order_result(made: &serde_json::Value) -> Result<OrderResult, Failure> {
    let (id, word) = (made["id"].as_str().unwrap_or_default(), made["status"].as_str().unwrap_or_default());
    if id.is_empty() {
        return Err(Failure::retryable("the provider's payment has no id"));
    }
    let status = match word {
        "PROCESSED" => PaymentStatus::Succeeded,
        word if matches!(word, "SUBMITTED" | "VALIDATED" | "SCREENING_REQ")
            || word.starts_with("PENDING_") =>
        {
            PaymentStatus::Pending
        }
        "CANCELLED" => PaymentStatus::Cancelled,
        "" => PaymentStatus::Other,
        _ => PaymentStatus::Failed,
    };
    Ok(OrderResult::of_status(id.to_owned(), status, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_http() {
        for (at, text) in [
            ("2016-07-25T16:36:07Z", "Mon, 25 Jul 2016 16:36:07 GMT"),
            ("1970-01-01T00:00:00Z", "Thu, 01 Jan 1970 00:00:00 GMT"),
            ("2024-02-29T23:59:59.9Z", "Thu, 29 Feb 2024 23:59:59 GMT"),
        ] {
            assert_eq!(http_date(Timestamp::parse(at).expect("a date")), text);
        }
    }

    #[test]
    fn types_of_transactions_are_directions() {
        for (word, kind) in [
            ("PI_FAST", PaymentType::PayIn),
            ("PO_SECT", PaymentType::Payout),
            ("PI_REV", PaymentType::Other),
            ("PO_REV", PaymentType::Other),
            ("ADHOC", PaymentType::Other),
            ("INT_INTERC", PaymentType::Other),
            ("", PaymentType::Other),
        ] {
            assert_eq!(payment_type(word), kind, "{word}");
        }
    }
}
