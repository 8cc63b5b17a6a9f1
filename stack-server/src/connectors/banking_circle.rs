//! BANKING-CIRCLE: fetches accounts with their balances, and payments. Sends payments, also to bank accounts that
//! clients have created.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::body::Bytes;
use ledger_core::Timestamp;

use crate::connectors::config::{Parameter, ParameterType, Values, optional, required, secret};
use crate::connectors::definition::{Capabilities, Definition, SLOTS};
use crate::connectors::error::ConfigError;
use crate::connectors::http::{Provider, ProviderAccess, escape, parsed};
use crate::connectors::json_object::{InvalidRecord, JsonObject};
use crate::connectors::session::{Session, token_of};
use crate::connectors::walk::{self, List, PagePosition};
use crate::connectors::{
    BankDetails, Connector, ConnectorFuture, Failure, NewTask, Order, OrderResult, Page, TaskContext,
    Transfer, currency, object,
};
use crate::http::response::{Json, Numbers};
use crate::log;
use crate::payments::account::NewAccount;
use crate::payments::balance::NewBalance;
use crate::payments::codec::Metadata;
use crate::payments::enumerations::{AccountType, InitiationType, PaymentStatus, PaymentType, Scheme};
use crate::payments::payment::NewPayment;

const PROVIDER: &str = "BANKING-CIRCLE";

/// Number of rows per request.
const PAGE_SIZE: u64 = 100;

pub(crate) const DEFINITION: Definition = Definition {
    provider: PROVIDER,
    parameters: PARAMETERS,
    period: "pollingPeriod",
    slots: SLOTS,
    capabilities: Capabilities { pays: true, reverses: false, transfers: false, bank_accounts: true },
    build: &build,
    clean: None,
};

const PARAMETERS: &[Parameter] = &[
    optional("name", ParameterType::Text, PROVIDER),
    required("username", ParameterType::Text, ""),
    secret(required("password", ParameterType::Text, "")),
    required("endpoint", ParameterType::Text, ""),
    required("authorizationEndpoint", ParameterType::Text, ""),
    required("userCertificate", ParameterType::LongText, ""),
    secret(required("userCertificateKey", ParameterType::LongText, "")),
    optional("pollingPeriod", ParameterType::Duration, "2m0s"),
];

const ACCOUNTS: List = List {
    name: "Fetch accounts from client",
    key: "fetch-accounts",
    rows: "result",
    is_last: walk::until_empty,
    token: "",
    overlap: None,
    read: read_account,
};

const PAYMENTS: List = List {
    name: "Fetch payments from client",
    key: "fetch-payments",
    rows: "result",
    is_last: walk::until_empty,
    token: "",
    // The list of payments has no filter for changes.
    overlap: None,
    read: read_payment,
};

struct BankingCircle {
    provider: Provider,
    authorization: Provider,
    session: Session,
    login: String,
}

fn build(values: &Values, access: &ProviderAccess) -> Result<Arc<dyn Connector>, ConfigError> {
    let (user, password) = (values.text("username"), values.text("password"));
    let login = STANDARD.encode(format!("{user}:{password}"));
    let secrets = [password, &login];
    let (certificate, key) = (values.text("userCertificate"), values.text("userCertificateKey"));
    let provider_at =
        |endpoint| access.provider_with_identity(PROVIDER, values.text(endpoint), certificate, key, &secrets);
    let (provider, authorization) = (provider_at("endpoint"), provider_at("authorizationEndpoint"));
    Ok(Arc::new(BankingCircle {
        provider: provider.map_err(|reason| reason.of("endpoint"))?,
        authorization: authorization.map_err(|reason| reason.of("authorizationEndpoint"))?,
        session: Session::default(),
        login: format!("Basic {login}"),
    }))
}

impl Connector for BankingCircle {
    fn first_tasks(&self) -> Vec<NewTask> {
        let main = [("name", "Main task to periodically fetch accounts and payments"), ("key", "main")];
        vec![NewTask::periodic(object(&main))]
    }

    fn poll<'a>(&'a self, context: &'a TaskContext) -> ConnectorFuture<'a, Page> {
        Box::pin(async move {
            let place = PagePosition::of(context);
            let (list, path) = match context.descriptor_member("key").as_str() {
                "main" => {
                    let children = vec![ACCOUNTS.task(&[]), PAYMENTS.task(&[])];
                    return Ok(Page { children, ..Page::default() });
                }
                "fetch-accounts" => (&ACCOUNTS, "/api/v1/accounts"),
                "fetch-payments" => (&PAYMENTS, "/api/v1/payments/singles"),
                other => return Err(Failure::permanent(format!("there is no task {other:?}"))),
            };
            let path = format!("{path}?PageSize={PAGE_SIZE}&PageNumber={}", place.page + 1);
            let body = self.get(&path).await?;
            place.read(list, context, &body)
        })
    }

    fn pay<'a>(&'a self, order: &'a Order) -> ConnectorFuture<'a, OrderResult> {
        Box::pin(async move {
            match order {
                Order::Send(transfer) => self.send(transfer).await,
                Order::GetState { provider_id, kind, .. } => {
                    let path = format!("/api/v1/payments/singles/{}/status", escape(provider_id));
                    let found = parsed(&self.get(&path).await?)?;
                    Ok(order_result(provider_id, *kind, found["status"].as_str().unwrap_or_default()))
                }
                Order::Reverse { .. } => Err(Failure::permanent("BANKING-CIRCLE reverses no payments")),
            }
        })
    }
}

impl BankingCircle {
    async fn log_in(&self) -> Result<String, Failure> {
        let path = "/api/v1/authorizations/authorize";
        let body = self.authorization.get(path, &[("authorization", &self.login)]).await?;
        token_of(&body, "access_token")
    }

    async fn get(&self, path: &str) -> Result<Bytes, Failure> {
        let ask = |token: String| async move {
            self.provider.get(path, &[("authorization", &format!("Bearer {token}"))]).await
        };
        self.session.ask(|| self.log_in(), ask).await
    }

    /// Sends money. The idempotency key tells the provider that a request is a repetition.
    async fn send(&self, transfer: &Transfer) -> Result<OrderResult, Failure> {
        if transfer.source.is_empty() {
            return Err(Failure::permanent("BANKING-CIRCLE needs a source account"));
        }
        let (amount, code) = transfer.decimal_amount()?;
        let debtor = self.numbers_of(&transfer.source).await?;
        let creditor = match (&transfer.bank_account, transfer.kind) {
            (Some(details), _) => numbers(details),
            (None, InitiationType::Transfer) => self.numbers_of(&transfer.destination).await?,
            (None, InitiationType::Payout) => {
                return Err(Failure::permanent("the destination is no bank account that was forwarded"));
            }
        };
        let today = log::now().to_string();
        let today = today.split('T').next().unwrap_or_default();
        let mut json = Json::new(Numbers::Plain);
        json.raw("{\"idempotencyKey\":").string(&transfer.idempotency_key);
        json.raw(",\"requestedExecutionDate\":").string(today).raw(",\"debtorAccount\":").raw(&debtor);
        json.raw(",\"debtorReference\":").string(&transfer.description);
        json.raw(",\"currencyOfTransfer\":").string(code);
        json.raw(",\"amount\":{\"currency\":").string(code).raw(",\"amount\":").raw(&amount);
        json.raw("},\"chargeBearer\":\"SHA\",\"creditorAccount\":").raw(&creditor);
        if let Some(details) = &transfer.bank_account {
            json.raw(",\"creditorName\":").string(&details.name);
        }
        json.raw("}");
        let body = json.into_string();
        let ask = |token: String| {
            let body = body.clone();
            async move {
                let token = format!("Bearer {token}");
                let headers = [("authorization", &*token), ("content-type", "application/json")];
                self.provider.post("/api/v1/payments/singles", &headers, body).await
            }
        };
        let made = parsed(&self.session.ask(|| self.log_in(), ask).await?)?;
        match made["paymentId"].as_str().unwrap_or_default() {
            "" => Err(Failure::retryable("the provider's payment has no id")),
            id => Ok(order_result(id, transfer.kind, made["status"].as_str().unwrap_or_default())),
        }
    }

    /// Returns the numbers of an account at the provider, as JSON for a request.
    async fn numbers_of(&self, account: &str) -> Result<String, Failure> {
        let found = parsed(&self.get(&format!("/api/v1/accounts/{}", escape(account))).await?)?;
        let first = &found["accountIdentifiers"][0];
        let member = |name: &str| first[name].as_str().unwrap_or_default();
        if member("account").is_empty() {
            return Err(Failure::permanent(format!("the account {account:?} has no number")));
        }
        Ok(identification(member("account"), member("financialInstitution"), member("country")))
    }
}

/// Returns the numbers of a bank account, as JSON for a request.
fn numbers(details: &BankDetails) -> String {
    let account = if details.iban.is_empty() { &details.account_number } else { &details.iban };
    identification(account, &details.swift_bic_code, &details.country)
}

fn identification(account: &str, institution: &str, country: &str) -> String {
    object(&[("account", account), ("financialInstitution", institution), ("country", country)])
}

fn read_account(
    row: &JsonObject<'_>,
    context: &TaskContext,
    page: &mut Page,
) -> Result<Option<Timestamp>, InvalidRecord> {
    let (reference, code) = (row.required("accountId")?, row.text("currency"));
    page.batch.accounts.push(NewAccount {
        reference: reference.clone(),
        created_at: row.required_date("openingDate")?,
        default_asset: if code.is_empty() { String::new() } else { currency::asset(&code) },
        name: row.text("accountDescription"),
        kind: AccountType::Internal,
        metadata: Metadata::new(),
        raw: Some(row.raw()),
    });
    for balance in row.list("balances").unwrap_or_default().into_iter().filter_map(JsonObject::of) {
        let code = balance.text("currency");
        let amount = balance.amount("intraDayAmount", &code)?;
        let (account, asset) = (reference.clone(), currency::asset(&code));
        page.batch.balances.push(NewBalance { account, asset, at: context.now, balance: amount });
    }
    Ok(None)
}

fn read_payment(
    row: &JsonObject<'_>,
    context: &TaskContext,
    page: &mut Page,
) -> Result<Option<Timestamp>, InvalidRecord> {
    let given = row.object_or_empty("transfer").object_or_empty("amount");
    let code = given.text("currency");
    let amount = given.amount("amount", &code).map_err(|InvalidRecord(reason)| row.invalid(&reason))?;
    let changed_at = row.required_date("latestStatusChangedTimestamp")?;
    page.batch.payments.push(NewPayment {
        kind: match &*row.text("classification") {
            "Incoming" => PaymentType::PayIn,
            "Outgoing" => PaymentType::Payout,
            "Own" => PaymentType::Transfer,
            _ => PaymentType::Other,
        },
        reference: row.required("paymentId")?,
        source: context.account(&row.object_or_empty("debtorInformation").text("accountId")),
        destination: context.account(&row.object_or_empty("creditorInformation").text("accountId")),
        status: status(&row.text("status")),
        initial_amount: amount.clone(),
        amount,
        scheme: Scheme::Other,
        asset: currency::asset(&code),
        created_at: changed_at,
        raw: Some(row.raw()),
        adjustments: vec![],
        metadata: Metadata::new(),
        // A date in the future would hide later changes.
        revision: Some(changed_at.min(context.now)),
    });
    Ok(None)
}

fn status(word: &str) -> PaymentStatus {
    match word {
        "Processed" => PaymentStatus::Succeeded,
        "PendingProcessing" | "MissingFunding" => PaymentStatus::Pending,
        "Rejected" | "Cancelled" | "Reversed" | "Returned" => PaymentStatus::Failed,
        _ => PaymentStatus::Other,
    }
}

/// Returns the state of an order. The provider lists transfers between own accounts as `Own`.
fn order_result(id: &str, kind: InitiationType, word: &str) -> OrderResult {
    let kind = match kind {
        InitiationType::Transfer => PaymentType::Transfer,
        InitiationType::Payout => PaymentType::Payout,
    };
    let payment = Some((kind, id.to_owned()));
    OrderResult { payment, ..OrderResult::of_status(id.to_owned(), status(word), word) }
}
