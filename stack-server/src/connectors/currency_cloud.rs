//! CURRENCY-CLOUD: fetches accounts, balances, beneficiaries and transactions. Sends payments and transfers.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use ledger_core::Timestamp;

use crate::connectors::config::{Parameter, ParameterType, Values, optional, required, secret};
use crate::connectors::definition::{Capabilities, Definition, SLOTS};
use crate::connectors::error::ConfigError;
use crate::connectors::http::{Provider, ProviderAccess, escape, form, parsed};
use crate::connectors::json_object::{InvalidRecord, JsonObject};
use crate::connectors::session::{Session, token_of};
use crate::connectors::walk::{List, PagePosition};
use crate::connectors::{
    Connector, ConnectorFuture, Failure, NewTask, Order, OrderResult, Page, TaskContext, Transfer, currency,
    object,
};
use crate::payments::account::NewAccount;
use crate::payments::balance::NewBalance;
use crate::payments::codec::Metadata;
use crate::payments::enumerations::{AccountType, InitiationType, PaymentStatus, PaymentType, Scheme};
use crate::payments::payment::NewPayment;

const PROVIDER: &str = "CURRENCY-CLOUD";

/// Number of rows per request.
const PAGE_SIZE: u64 = 100;

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
    required("loginID", ParameterType::Text, ""),
    secret(required("apiKey", ParameterType::Text, "")),
    optional("endpoint", ParameterType::Text, "https://devapi.currencycloud.com"),
    optional("pollingPeriod", ParameterType::Duration, "2m0s"),
];

const ACCOUNTS: List = List {
    name: "Fetch accounts from client",
    key: "fetch-accounts",
    rows: "accounts",
    is_last,
    token: "",
    overlap: None,
    read: read_account,
};

const BENEFICIARIES: List = List {
    name: "Fetch beneficiaries from client",
    key: "fetch-beneficiaries",
    rows: "beneficiaries",
    read: read_beneficiary,
    ..ACCOUNTS
};

const BALANCES: List = List {
    name: "Fetch balances from client",
    key: "fetch-balances",
    rows: "balances",
    read: read_balance,
    ..ACCOUNTS
};

const TRANSACTIONS: List = List {
    name: "Fetch transactions from client",
    key: "fetch-transactions",
    rows: "transactions",
    // Covers a slow clock of the provider, and updates that become visible late.
    overlap: Some(Duration::from_hours(1)),
    read: read_transaction,
    ..ACCOUNTS
};

struct CurrencyCloud {
    provider: Provider,
    session: Session,
    login: String,
}

fn build(values: &Values, access: &ProviderAccess) -> Result<Arc<dyn Connector>, ConfigError> {
    let (login, key) = (values.text("loginID"), values.text("apiKey"));
    let provider = access.provider_of(PROVIDER, values.text("endpoint"), &[key]);
    Ok(Arc::new(CurrencyCloud {
        provider: provider.map_err(|reason| reason.of("endpoint"))?,
        session: Session::default(),
        login: form(&[("login_id", login), ("api_key", key)]),
    }))
}

/// Returns whether the response says that no page follows.
fn is_last(answer: Option<&JsonObject<'_>>, _: &PagePosition) -> bool {
    answer.is_some_and(|answer| answer.object_or_empty("pagination").text("next_page") == "-1")
}

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

impl Connector for CurrencyCloud {
    fn first_tasks(&self) -> Vec<NewTask> {
        let main = [("name", "Main task to periodically fetch accounts and transactions"), ("key", "main")];
        vec![NewTask::periodic(object(&main))]
    }

    fn poll<'a>(&'a self, context: &'a TaskContext) -> ConnectorFuture<'a, Page> {
        Box::pin(async move {
            let place = PagePosition::of(context);
            let number = (place.page + 1).to_string();
            let size = PAGE_SIZE.to_string();
            let mut query = vec![("page", &*number), ("per_page", &size)];
            let (list, path) = match context.descriptor_member("key").as_str() {
                "main" => {
                    let children = [&ACCOUNTS, &BENEFICIARIES, &BALANCES, &TRANSACTIONS];
                    return Ok(Page {
                        children: children.map(|list| list.task(&[])).into(),
                        ..Page::default()
                    });
                }
                "fetch-accounts" => (&ACCOUNTS, "/v2/accounts/find"),
                "fetch-beneficiaries" => (&BENEFICIARIES, "/v2/beneficiaries/find"),
                "fetch-balances" => (&BALANCES, "/v2/balances/find"),
                "fetch-transactions" => (&TRANSACTIONS, "/v2/transactions/find"),
                other => return Err(Failure::permanent(format!("there is no task {other:?}"))),
            };
            query.extend([("order", "updated_at"), ("order_asc_desc", "asc")]);
            if list.key == TRANSACTIONS.key && !place.since.is_empty() {
                query.push(("updated_at_from", &place.since));
            }
            let query = form(&query);
            let body = match list.key {
                "fetch-accounts" | "fetch-beneficiaries" => self.search(path, &query).await?,
                _ => self.get(&format!("{path}?{query}")).await?,
            };
            place.clone().read(list, context, &body)
        })
    }

    fn pay<'a>(&'a self, order: &'a Order) -> ConnectorFuture<'a, OrderResult> {
        Box::pin(async move {
            match order {
                Order::Send(transfer) => self.send(transfer).await,
                Order::GetState { provider_id, kind, .. } => {
                    let path = match kind {
                        InitiationType::Transfer => format!("/v2/transfers/{}", escape(provider_id)),
                        InitiationType::Payout => format!("/v2/payments/{}", escape(provider_id)),
                    };
                    order_result(&self.get(&path).await?)
                }
                Order::Reverse { .. } => Err(Failure::permanent("CURRENCY-CLOUD reverses no payments")),
            }
        })
    }
}

impl CurrencyCloud {
    async fn log_in(&self) -> Result<String, Failure> {
        let body = self.provider.search("/v2/authenticate/api", &[FORM], self.login.clone()).await?;
        token_of(&body, "auth_token")
    }

    async fn get(&self, path: &str) -> Result<Bytes, Failure> {
        let ask = |token: String| async move { self.provider.get(path, &[("x-auth-token", &token)]).await };
        self.session.ask(|| self.log_in(), ask).await
    }

    async fn search(&self, path: &str, form: &str) -> Result<Bytes, Failure> {
        let ask = |token: String| async move {
            self.provider.search(path, &[FORM, ("x-auth-token", &token)], form.to_owned()).await
        };
        self.session.ask(|| self.log_in(), ask).await
    }

    /// Sends money: a transfer between accounts, or a payment to a beneficiary. The provider refuses a repeated request
    /// id, and then returns the result of the first request.
    async fn send(&self, transfer: &Transfer) -> Result<OrderResult, Failure> {
        let (amount, code) = transfer.decimal_amount()?;
        let reason = if transfer.description.is_empty() { "payment" } else { &transfer.description };
        let mut fields = vec![
            ("currency", code),
            ("amount", &*amount),
            ("reason", reason),
            ("unique_request_id", &*transfer.idempotency_key),
        ];
        let path = match transfer.kind {
            InitiationType::Transfer => {
                fields.push(("source_account_id", &transfer.source));
                fields.push(("destination_account_id", &transfer.destination));
                "/v2/transfers/create"
            }
            InitiationType::Payout => {
                fields.push(("beneficiary_id", &transfer.destination));
                fields.push(("reference", reason));
                if !transfer.source.is_empty() {
                    fields.push(("on_behalf_of", &transfer.source));
                }
                "/v2/payments/create"
            }
        };
        let body = form(&fields);
        let ask = |token: String| {
            let body = body.clone();
            async move { self.provider.post(path, &[FORM, ("x-auth-token", &token)], body).await }
        };
        order_result(&self.session.ask(|| self.log_in(), ask).await?)
    }
}

fn new_account(row: &JsonObject<'_>, name: &str, kind: AccountType) -> Result<NewAccount, InvalidRecord> {
    let code = row.text("currency");
    Ok(NewAccount {
        reference: row.required("id")?,
        created_at: row.required_date("created_at")?,
        default_asset: if code.is_empty() { String::new() } else { currency::asset(&code) },
        name: row.text(name),
        kind,
        metadata: Metadata::new(),
        raw: Some(row.raw()),
    })
}

fn read_account(
    row: &JsonObject<'_>,
    _: &TaskContext,
    page: &mut Page,
) -> Result<Option<Timestamp>, InvalidRecord> {
    page.batch.accounts.push(new_account(row, "account_name", AccountType::Internal)?);
    Ok(None)
}

fn read_beneficiary(
    row: &JsonObject<'_>,
    _: &TaskContext,
    page: &mut Page,
) -> Result<Option<Timestamp>, InvalidRecord> {
    page.batch.accounts.push(new_account(row, "name", AccountType::External)?);
    Ok(None)
}

fn read_balance(
    row: &JsonObject<'_>,
    context: &TaskContext,
    page: &mut Page,
) -> Result<Option<Timestamp>, InvalidRecord> {
    let code = row.required("currency")?;
    page.batch.balances.push(NewBalance {
        account: row.required("account_id")?,
        asset: currency::asset(&code),
        at: row.date("updated_at").unwrap_or(context.now).min(context.now),
        balance: row.amount("amount", &code)?,
    });
    Ok(None)
}

fn read_transaction(
    row: &JsonObject<'_>,
    context: &TaskContext,
    page: &mut Page,
) -> Result<Option<Timestamp>, InvalidRecord> {
    let (code, updated_at) = (row.required("currency")?, row.required_date("updated_at")?);
    let amount = row.amount("amount", &code)?;
    let account = context.account(&row.text("account_id"));
    let (kind, source, destination) = match &*row.text("type") {
        "credit" => (PaymentType::PayIn, None, account),
        "debit" => (PaymentType::Payout, account, None),
        _ => (PaymentType::Other, account, None),
    };
    page.batch.payments.push(NewPayment {
        kind,
        reference: row.required("id")?,
        source,
        destination,
        status: match &*row.text("status") {
            "completed" => PaymentStatus::Succeeded,
            "pending" => PaymentStatus::Pending,
            "deleted" => PaymentStatus::Failed,
            _ => PaymentStatus::Other,
        },
        initial_amount: amount.clone(),
        amount,
        scheme: Scheme::Other,
        asset: currency::asset(&code),
        created_at: row.required_date("created_at")?,
        raw: Some(row.raw()),
        adjustments: vec![],
        metadata: Metadata::new(),
        // A date in the future would hide later changes.
        revision: Some(updated_at.min(context.now)),
    });
    Ok(Some(updated_at))
}

/// Returns the state of an order. Its transactions have separate ids, so the result names no payment.
fn order_result(body: &[u8]) -> Result<OrderResult, Failure> {
    let made = parsed(body)?;
    let (id, word) = (made["id"].as_str().unwrap_or_default(), made["status"].as_str().unwrap_or_default());
    if id.is_empty() {
        return Err(Failure::retryable("the provider's payment has no id"));
    }
    let status = match word {
        "completed" => PaymentStatus::Succeeded,
        "failed" | "deleted" => PaymentStatus::Failed,
        "cancelled" => PaymentStatus::Cancelled,
        _ => PaymentStatus::Pending,
    };
    Ok(OrderResult::of_status(id.to_owned(), status, word))
}
