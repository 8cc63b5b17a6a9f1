//! STRIPE: fetches accounts, balances and balance transactions of a platform and its connected accounts, and the bank
//! accounts of the latter. Sends transfers, payouts and reversals.

use std::sync::Arc;

use ledger_core::Timestamp;
use serde_json::value::RawValue;

use crate::connectors::config::{Parameter, ParameterType, Values, optional, required, secret};
use crate::connectors::definition::{Capabilities, Definition, SLOTS};
use crate::connectors::http::{Provider, ProviderAccess, escape};
use crate::connectors::json_object::JsonObject;
use crate::connectors::stripe_mapping::{self, id_of};
use crate::connectors::stripe_timeline::Timeline;
use crate::connectors::{
    Connector, ConnectorFuture, Failure, NewTask, Order, OrderResult, OrderState, Page, Restart, TaskContext,
    Transfer, currency, object,
};
use crate::http::response::{Json, Numbers};
use crate::payments::account::NewAccount;
use crate::payments::balance::NewBalance;
use crate::payments::codec::Metadata;
use crate::payments::enumerations::{AccountType, InitiationType, PaymentType};
use crate::payments::task::NO_STATE;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const PROVIDER: &str = "STRIPE";

const ADDRESS: &str = "https://api.stripe.com";

/// The reference of the platform's own account.
pub(super) const ROOT: &str = "root";

pub(crate) const DEFINITION: Definition = Definition {
    provider: PROVIDER,
    parameters: PARAMETERS,
    period: "pollingPeriod",
    slots: SLOTS,
    capabilities: Capabilities { pays: true, reverses: true, transfers: true, bank_accounts: false },
    build: &|values, access| Ok(build(values, access)),
    clean: None,
};

const PARAMETERS: &[Parameter] = &[
    optional("name", ParameterType::Text, PROVIDER),
    secret(required("apiKey", ParameterType::Text, "")),
    optional("pollingPeriod", ParameterType::Duration, "2m0s"),
    optional("pageSize", ParameterType::Number, "10"),
];

/// Maximum number of rows per request that the provider accepts.
const PAGE_MAX: u64 = 100;

struct Stripe {
    provider: Provider,
    authorization: String,
    page_size: u64,
}

fn build(values: &Values, access: &ProviderAccess) -> Arc<dyn Connector> {
    let key = values.text("apiKey");
    let encoded = STANDARD.encode(format!("{key}:"));
    Arc::new(Stripe {
        provider: access.known_provider(PROVIDER, ADDRESS, &[key, &encoded]),
        authorization: format!("Basic {encoded}"),
        page_size: values.number("pageSize").clamp(1, PAGE_MAX),
    })
}

/// Names of the tasks, which clients see in the descriptor. The name determines what a task does.
const MAIN: &str = "Main task to periodically fetch transactions";
const ACCOUNTS: &str = "Fetch accounts from client";
const PAYMENTS: &str = "Fetch payments from client";
const TRANSACTIONS: &str = "Fetch transactions for a specific connected account";
const ROOT_BALANCE: &str = "Fetch balance for the root account";
const BALANCE: &str = "Fetch balance for a specific connected account";
const EXTERNAL: &str = "Fetch external account for a specific connected account";

fn descriptor(name: &str, is_main: bool, account: &str) -> String {
    let mut json = Json::new(Numbers::Plain);
    json.raw("{\"name\":").string(name).raw(",\"main\":").boolean(is_main);
    json.raw(",\"account\":").string(account).raw("}");
    json.into_string()
}

fn once(name: &str, account: &str) -> NewTask {
    NewTask::once(descriptor(name, false, account), Restart::IfNotActive)
}

impl Connector for Stripe {
    fn first_tasks(&self) -> Vec<NewTask> {
        vec![NewTask::periodic(descriptor(MAIN, true, ""))]
    }

    fn poll<'a>(&'a self, context: &'a TaskContext) -> ConnectorFuture<'a, Page> {
        Box::pin(async move {
            let account = context.descriptor_member("account");
            match context.descriptor_member("name").as_str() {
                MAIN => {
                    Ok(Page { children: vec![once(ACCOUNTS, ""), once(PAYMENTS, "")], ..Page::default() })
                }
                ACCOUNTS => self.accounts(context).await,
                PAYMENTS => self.transactions(context, ROOT).await,
                TRANSACTIONS => self.transactions(context, &account).await,
                ROOT_BALANCE => self.balance(context, ROOT).await,
                BALANCE => self.balance(context, &account).await,
                EXTERNAL => self.external_accounts(context, &account).await,
                other => Err(Failure::permanent(format!("there is no task {other:?}"))),
            }
        })
    }

    fn pay<'a>(&'a self, order: &'a Order) -> ConnectorFuture<'a, OrderResult> {
        Box::pin(async move {
            match order {
                Order::Send(transfer) if transfer.kind == InitiationType::Transfer => {
                    self.transfer(transfer).await
                }
                Order::Send(transfer) => self.payout(transfer).await,
                Order::GetState { provider_id, source, .. } => {
                    let path = format!("/v1/payouts/{}", escape(provider_id));
                    payout_outcome(&record(&self.get(&path, source).await?)?)
                }
                Order::Reverse { transfer, provider_id } => self.reverse(transfer, provider_id).await,
            }
        })
    }
}

impl Stripe {
    async fn get(&self, path: &str, account: &str) -> Result<Box<RawValue>, Failure> {
        let mut headers = vec![("authorization", &*self.authorization)];
        if !account.is_empty() && account != ROOT {
            headers.push(("stripe-account", account));
        }
        parsed(path, &self.provider.get(path, &headers).await?)
    }

    async fn post(
        &self,
        path: &str,
        account: &str,
        key: &str,
        form: &[(&str, &str)],
    ) -> Result<Box<RawValue>, Failure> {
        let mut headers = vec![
            ("authorization", &*self.authorization),
            ("content-type", "application/x-www-form-urlencoded"),
            ("idempotency-key", key),
        ];
        if !account.is_empty() && account != ROOT {
            headers.push(("stripe-account", account));
        }
        let body: Vec<String> =
            form.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
        let answered = self.provider.post(path, &headers, body.join("&")).await?;
        parsed(path, &answered)
    }

    /// Fetches the next page of a list. The pages of one run are the whole list. `read` adds one record to the page.
    async fn list(
        &self,
        context: &TaskContext,
        path: &str,
        read: impl Fn(&JsonObject<'_>, String, &mut Page),
    ) -> Result<Page, Failure> {
        let mut path = format!("{path}limit={}", self.page_size);
        let after = context.state_member("after");
        if !after.is_empty() {
            path.push_str(&format!("&starting_after={}", escape(&after)));
        }
        let answer = self.get(&path, "").await?;
        let listed = ListPage::of(&answer)?;
        let mut page = Page::default();
        for row in &listed.rows {
            read(row, row.text("id"), &mut page);
        }
        let last = listed.rows.last().map(|row| row.text("id")).unwrap_or_default();
        page.has_more = listed.has_more && last != after;
        page.state = Some(if page.has_more { object(&[("after", &last)]) } else { NO_STATE.to_owned() });
        Ok(page)
    }

    async fn accounts(&self, context: &TaskContext) -> Result<Page, Failure> {
        let mut page = self
            .list(context, "/v1/accounts?", |row, id, page| {
                page.children.extend([BALANCE, TRANSACTIONS, EXTERNAL].map(|name| once(name, &id)));
                page.batch.accounts.push(account_of(row, id, AccountType::Internal, "default_currency"));
            })
            .await?;
        if context.state_member("after").is_empty() {
            page.batch.accounts.insert(0, root());
            page.children.insert(0, once(ROOT_BALANCE, ""));
        }
        Ok(page)
    }

    async fn external_accounts(&self, context: &TaskContext, account: &str) -> Result<Page, Failure> {
        let path = format!("/v1/accounts/{}/external_accounts?object=bank_account&", escape(account));
        self.list(context, &path, |row, id, page| {
            page.batch.accounts.push(account_of(row, id, AccountType::External, "currency"));
        })
        .await
    }

    async fn balance(&self, context: &TaskContext, account: &str) -> Result<Page, Failure> {
        let answer = self.get("/v1/balance", account).await?;
        let mut page = Page::default();
        let available = record(&answer)?.list("available").unwrap_or_default();
        for row in available.into_iter().filter_map(JsonObject::of) {
            let code = row.text("currency").to_ascii_uppercase();
            let amount = row.integer("amount").filter(|_| stripe_mapping::is_supported(&code));
            page.batch.balances.extend(amount.map(|balance| NewBalance {
                account: account.to_owned(),
                asset: currency::asset(&code),
                at: context.now,
                balance,
            }));
        }
        Ok(page)
    }

    /// Fetches the next page of an account's balance transactions. The task first reads back to the oldest transaction.
    /// After that, each run reads the transactions that are newer than the newest known one.
    async fn transactions(&self, context: &TaskContext, account: &str) -> Result<Page, Failure> {
        let state = Timeline::of(context);
        let answer = self.get(&state.path(context, self.page_size), account).await?;
        let listed = ListPage::of(&answer)?;
        let (state, goes_on) = state.after(&listed.rows, listed.has_more);
        let mut page = Page { state: Some(state.json()), has_more: goes_on, ..Page::default() };
        // The provider lists the newest transaction first. Record the oldest first.
        let payments = listed.rows.iter().rev();
        page.batch.payments =
            payments.filter_map(|row| stripe_mapping::payment(row, context, account)).collect();
        Ok(page)
    }

    async fn transfer(&self, transfer: &Transfer) -> Result<OrderResult, Failure> {
        let (amount, code) = minor_amount(transfer)?;
        let mut form = vec![
            ("amount", &*amount),
            ("currency", &*code),
            ("destination", &*transfer.destination),
            ("description", &*transfer.description),
        ];
        // Clients of the transfers of stack 1.10 expect their metadata at the provider.
        let named: Vec<_> =
            transfer.metadata.iter().map(|(key, value)| (format!("metadata[{key}]"), value)).collect();
        form.extend(named.iter().map(|(name, value)| (&**name, &***value)));
        let answer = self.post("/v1/transfers", &transfer.source, &transfer.idempotency_key, &form).await?;
        let made = record(&answer)?;
        let reference = id_of(&made, "balance_transaction");
        Ok(OrderResult {
            outcome: OrderState::Done,
            payment: (!reference.is_empty()).then_some((PaymentType::Transfer, reference)),
            provider_id: made.text("id"),
            raw: made.raw(),
        })
    }

    async fn payout(&self, transfer: &Transfer) -> Result<OrderResult, Failure> {
        let (amount, code) = minor_amount(transfer)?;
        let form = [
            ("amount", &*amount),
            ("currency", &*code),
            ("destination", &*transfer.destination),
            ("description", &*transfer.description),
        ];
        let made = self.post("/v1/payouts", &transfer.source, &transfer.idempotency_key, &form).await?;
        payout_outcome(&record(&made)?)
    }

    async fn reverse(&self, transfer: &Transfer, id: &str) -> Result<OrderResult, Failure> {
        let amount = transfer.amount.to_string();
        let path = format!("/v1/transfers/{}/reversals", escape(id));
        let form = [("amount", &*amount), ("description", &*transfer.description)];
        self.post(&path, &transfer.source, &transfer.idempotency_key, &form).await?;
        Ok(OrderResult {
            outcome: OrderState::Done,
            payment: None,
            provider_id: id.to_owned(),
            raw: String::new(),
        })
    }
}

/// Returns the JSON text of a response, as the provider sent it.
fn parsed(path: &str, body: &[u8]) -> Result<Box<RawValue>, Failure> {
    let path = path.split('?').next().unwrap_or_default();
    serde_json::from_slice(body).map_err(|error| Failure::retryable(format!("{path}: {error}")))
}

fn record(answer: &RawValue) -> Result<JsonObject<'_>, Failure> {
    JsonObject::of(answer).ok_or_else(|| Failure::retryable("the answer is no object"))
}

/// A page of a list.
struct ListPage<'a> {
    /// The records with an id. Without an id, the next page could not be requested.
    rows: Vec<JsonObject<'a>>,
    has_more: bool,
}

impl<'a> ListPage<'a> {
    fn of(answer: &'a RawValue) -> Result<Self, Failure> {
        let answer = record(answer)?;
        let rows = answer.list("data").ok_or_else(|| Failure::retryable("the answer holds no list"))?;
        let rows = rows.into_iter().filter_map(JsonObject::of).filter(|row| !row.text("id").is_empty());
        let rows: Vec<_> = rows.collect();
        Ok(Self { has_more: answer.flag("has_more") && !rows.is_empty(), rows })
    }
}

/// Returns the platform's own account, which the provider does not list.
fn root() -> NewAccount {
    NewAccount {
        reference: ROOT.to_owned(),
        // The provider has no date for this account. Use a fixed one, so that every run reads the same account.
        created_at: Timestamp::from_micros(0),
        default_asset: String::new(),
        name: ROOT.to_owned(),
        kind: AccountType::Internal,
        metadata: Metadata::new(),
        raw: Some("{}".to_owned()),
    }
}

fn account_of(row: &JsonObject<'_>, id: String, kind: AccountType, asset: &str) -> NewAccount {
    let code = row.text(asset);
    NewAccount {
        reference: id,
        created_at: stripe_mapping::date(row, "created").unwrap_or(Timestamp::from_micros(0)),
        default_asset: if code.is_empty() { String::new() } else { currency::asset(&code) },
        name: String::new(),
        kind,
        metadata: row.object_or_empty("metadata").texts(),
        raw: Some(row.raw()),
    }
}

/// Returns the amount and the currency of a transfer in the provider's form.
fn minor_amount(transfer: &Transfer) -> Result<(String, String), Failure> {
    let code = currency::currency(&transfer.asset).filter(|code| stripe_mapping::is_supported(code));
    let code = code.ok_or_else(|| Failure::permanent(format!("{} is not supported", transfer.asset)))?;
    Ok((transfer.amount.to_string(), code.to_ascii_lowercase()))
}

fn payout_outcome(made: &JsonObject<'_>) -> Result<OrderResult, Failure> {
    let id = made.text("id");
    if id.is_empty() {
        return Err(Failure::retryable("the provider's payout has no id"));
    }
    let outcome = match &*made.text("status") {
        "paid" => OrderState::Done,
        "failed" => OrderState::Failed(made.text("failure_message")),
        "canceled" => OrderState::Failed("the payout was cancelled".to_owned()),
        _ => OrderState::InProgress,
    };
    let reference = id_of(made, "balance_transaction");
    let payment = (!reference.is_empty()).then_some((PaymentType::Payout, reference));
    Ok(OrderResult { outcome, payment, provider_id: id, raw: made.raw() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    fn order_result_of(made: &serde_json::Value) -> Result<OrderResult, Failure> {
        payout_outcome(&record(&to_raw_value(made).expect("JSON"))?)
    }

    #[test]
    fn a_payout_is_done_or_failed_or_under_way() {
        for (status, outcome) in [
            ("paid", OrderState::Done),
            ("in_transit", OrderState::InProgress),
            ("pending", OrderState::InProgress),
            ("canceled", OrderState::Failed("the payout was cancelled".to_owned())),
        ] {
            let made = json!({"id": "po_1", "status": status, "balance_transaction": "txn_1"});
            let paid = order_result_of(&made).expect("it has an id");
            assert_eq!(
                (paid.outcome, paid.payment),
                (outcome, Some((PaymentType::Payout, "txn_1".to_owned())))
            );
        }
        assert!(order_result_of(&json!({"status": "paid"})).is_err());
    }
}
