//! STRIPE: accounts, balances and balance transactions of a platform and of the accounts connected to it; transfers,
//! payouts and reversals.

use std::sync::Arc;

use ledger_core::Timestamp;
use serde_json::Value;

use crate::connectors::config::{Kind, Parameter, Values, optional, required, secret};
use crate::connectors::definition::{Abilities, Row, SLOTS};
use crate::connectors::error::{ConfigError, ParameterError};
use crate::connectors::http::{Provider, Tools, escape};
use crate::connectors::stripe_mapping::{self, rows, text};
use crate::connectors::{
    Connector, Failure, Order, Outcome, Page, Paid, Pending, Restart, Start, Transfer, Work, currency,
};
use crate::http::response::{Json, Numbers};
use crate::payments::account::NewAccount;
use crate::payments::balance::NewBalance;
use crate::payments::codec::Metadata;
use crate::payments::words::{AccountType, InitiationType, PaymentType};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const PROVIDER: &str = "STRIPE";

const ADDRESS: &str = "https://api.stripe.com";

/// The account of the platform itself.
pub(super) const ROOT: &str = "root";

pub(crate) const ROW: Row = Row {
    provider: PROVIDER,
    parameters: PARAMETERS,
    period: "pollingPeriod",
    slots: SLOTS,
    abilities: Abilities { pays: true, reverses: true, transfers: true, bank_accounts: false },
    build: &build,
    clean: None,
};

const PARAMETERS: &[Parameter] = &[
    optional("name", Kind::Text, PROVIDER),
    secret(required("apiKey", Kind::Text, "")),
    optional("pollingPeriod", Kind::Duration, "2m0s"),
    optional("pageSize", Kind::Number, "10"),
];

/// Most rows of a page that the provider gives.
const PAGE_MAX: u64 = 100;

struct Stripe {
    provider: Provider,
    authorization: String,
    page_size: u64,
}

fn build(values: &Values, tools: &Tools) -> Result<Arc<dyn Connector>, ConfigError> {
    let key = values.text("apiKey");
    if key.chars().any(char::is_control) {
        return Err(ParameterError::ControlCharacter.of("apiKey"));
    }
    let encoded = STANDARD.encode(format!("{key}:"));
    Ok(Arc::new(Stripe {
        provider: tools.known_provider(PROVIDER, ADDRESS, &[key, &encoded]),
        authorization: format!("Basic {encoded}"),
        page_size: values.number("pageSize").clamp(1, PAGE_MAX),
    }))
}

/// The names of tasks, which tell what they do.
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
    String::from_utf8(json.into_bytes()).expect("JSON is UTF-8")
}

fn once(name: &str, account: &str) -> Start {
    Start::once(descriptor(name, false, account), Restart::IfNotActive)
}

impl Connector for Stripe {
    fn first_tasks(&self) -> Vec<Start> {
        vec![Start::periodic(descriptor(MAIN, true, ""))]
    }

    fn poll<'a>(&'a self, work: &'a Work) -> Pending<'a, Page> {
        Box::pin(async move {
            let account = work.field("account");
            match work.field("name").as_str() {
                MAIN => {
                    Ok(Page { children: vec![once(ACCOUNTS, ""), once(PAYMENTS, "")], ..Page::default() })
                }
                ACCOUNTS => self.accounts(work).await,
                PAYMENTS => self.transactions(work, ROOT).await,
                TRANSACTIONS => self.transactions(work, &account).await,
                ROOT_BALANCE => self.balance(work, ROOT).await,
                BALANCE => self.balance(work, &account).await,
                EXTERNAL => self.external_accounts(work, &account).await,
                other => Err(Failure::final_(format!("there is no task {other:?}"))),
            }
        })
    }

    fn pay<'a>(&'a self, order: &'a Order) -> Pending<'a, Paid> {
        Box::pin(async move {
            match order {
                Order::Send(transfer) if transfer.kind == InitiationType::Transfer => {
                    self.transfer(transfer).await
                }
                Order::Send(transfer) => self.payout(transfer).await,
                Order::Look { provider_id, source, .. } => {
                    let path = format!("/v1/payouts/{}", escape(provider_id));
                    payout_outcome(&self.get(&path, source).await?)
                }
                Order::Reverse { transfer, provider_id } => self.reverse(transfer, provider_id).await,
            }
        })
    }
}

impl Stripe {
    async fn get(&self, path: &str, account: &str) -> Result<Value, Failure> {
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
    ) -> Result<Value, Failure> {
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

    /// The next page of a list that begins anew each time, and the place behind it.
    async fn next_page(&self, work: &Work, path: &str, account: &str) -> Result<(Value, Page), Failure> {
        let mut path = format!("{path}limit={}", self.page_size);
        let after = work.kept("after");
        if !after.is_empty() {
            path.push_str(&format!("&starting_after={}", escape(&after)));
        }
        let found = self.get(&path, account).await?;
        let last = rows(&found).last().map(|row| text(row, "id")).unwrap_or_default();
        let has_more = found["has_more"] == true && !last.is_empty() && last != after;
        let mut state = Json::new(Numbers::Plain);
        state.raw("{\"after\":").string(&last).raw("}");
        let state = if has_more { String::from_utf8(state.into_bytes()).ok() } else { Some("{}".to_owned()) };
        Ok((found, Page { state, has_more, ..Page::default() }))
    }

    async fn accounts(&self, work: &Work) -> Result<Page, Failure> {
        let is_first = work.kept("after").is_empty();
        let (found, mut page) = self.next_page(work, "/v1/accounts?", "").await?;
        if is_first {
            page.batch.accounts.push(NewAccount {
                reference: ROOT.to_owned(),
                // It has none; a date that changes would make another account of it each time.
                created_at: Timestamp::from_micros(0),
                default_asset: String::new(),
                name: ROOT.to_owned(),
                kind: AccountType::Internal,
                metadata: Metadata::new(),
                raw: Some("{}".to_owned()),
            });
            page.children.push(once(ROOT_BALANCE, ""));
        }
        for row in rows(&found) {
            let id = text(row, "id");
            if id.is_empty() {
                continue;
            }
            page.children.extend([BALANCE, TRANSACTIONS, EXTERNAL].map(|name| once(name, &id)));
            page.batch.accounts.push(account_of(row, &id, AccountType::Internal, "default_currency"));
        }
        Ok(page)
    }

    async fn external_accounts(&self, work: &Work, account: &str) -> Result<Page, Failure> {
        let path = format!("/v1/accounts/{}/external_accounts?object=bank_account&", escape(account));
        let (found, mut page) = self.next_page(work, &path, "").await?;
        for row in rows(&found) {
            let id = text(row, "id");
            if !id.is_empty() {
                page.batch.accounts.push(account_of(row, &id, AccountType::External, "currency"));
            }
        }
        Ok(page)
    }

    async fn balance(&self, work: &Work, account: &str) -> Result<Page, Failure> {
        let found = self.get("/v1/balance", account).await?;
        let mut page = Page::default();
        for row in found["available"].as_array().into_iter().flatten() {
            let code = text(row, "currency").to_ascii_uppercase();
            let amount = stripe_mapping::number(&row["amount"]);
            if let Some(amount) = amount.filter(|_| stripe_mapping::is_supported(&code)) {
                let asset = currency::asset(&code);
                page.batch.balances.push(NewBalance {
                    account: account.to_owned(),
                    asset,
                    at: work.now,
                    balance: amount,
                });
            }
        }
        Ok(page)
    }

    /// Walks the balance transactions of an account: first into the past until its end, then, each time, from the
    /// newest that is known to the newest there is. The state is saved with each page.
    async fn transactions(&self, work: &Work, account: &str) -> Result<Page, Failure> {
        let state = Timeline::of(work);
        let path = state.path(work, self.page_size);
        let found = self.get(&path, account).await?;
        let listed = rows(&found);
        let has_more = found["has_more"] == true && !listed.is_empty();
        let (state, goes_on) = state.after(listed, has_more);
        let mut page = Page { state: Some(state.json()), has_more: goes_on, ..Page::default() };
        // News come newest first; they are taken oldest first.
        for row in listed.iter().rev() {
            if let Some(payment) = stripe_mapping::payment(row, work, account) {
                page.batch.payments.push(payment);
            }
        }
        Ok(page)
    }

    async fn transfer(&self, transfer: &Transfer) -> Result<Paid, Failure> {
        let (amount, code) = minor_amount(transfer)?;
        let mut form = vec![
            ("amount", &*amount),
            ("currency", &*code),
            ("destination", &*transfer.destination),
            ("description", &*transfer.description),
        ];
        // Callers of old transfers expect their metadata at the provider.
        let named: Vec<_> =
            transfer.metadata.iter().map(|(key, value)| (format!("metadata[{key}]"), value)).collect();
        form.extend(named.iter().map(|(name, value)| (&**name, &***value)));
        let made = self.post("/v1/transfers", &transfer.source, &transfer.idempotency_key, &form).await?;
        let reference = stripe_mapping::id_of(&made["balance_transaction"]);
        Ok(Paid {
            outcome: Outcome::Done,
            payment: (!reference.is_empty()).then_some((PaymentType::Transfer, reference)),
            provider_id: text(&made, "id"),
            raw: made.to_string(),
        })
    }

    async fn payout(&self, transfer: &Transfer) -> Result<Paid, Failure> {
        let (amount, code) = minor_amount(transfer)?;
        let form = [
            ("amount", &*amount),
            ("currency", &*code),
            ("destination", &*transfer.destination),
            ("description", &*transfer.description),
        ];
        let made = self.post("/v1/payouts", &transfer.source, &transfer.idempotency_key, &form).await?;
        payout_outcome(&made)
    }

    async fn reverse(&self, transfer: &Transfer, id: &str) -> Result<Paid, Failure> {
        let amount = transfer.amount.to_string();
        let path = format!("/v1/transfers/{}/reversals", escape(id));
        let form = [("amount", &*amount), ("description", &*transfer.description)];
        self.post(&path, &transfer.source, &transfer.idempotency_key, &form).await?;
        Ok(Paid { outcome: Outcome::Done, payment: None, provider_id: id.to_owned(), raw: String::new() })
    }
}

fn parsed(path: &str, body: &[u8]) -> Result<Value, Failure> {
    let path = path.split('?').next().unwrap_or_default();
    serde_json::from_slice(body).map_err(|error| Failure::later(format!("{path}: {error}")))
}

fn account_of(row: &Value, id: &str, kind: AccountType, asset: &str) -> NewAccount {
    let code = text(row, asset);
    NewAccount {
        reference: id.to_owned(),
        created_at: stripe_mapping::date(&row["created"]).unwrap_or(Timestamp::from_micros(0)),
        default_asset: if code.is_empty() { String::new() } else { currency::asset(&code) },
        name: String::new(),
        kind,
        metadata: stripe_mapping::metadata(&row["metadata"]),
        raw: Some(row.to_string()),
    }
}

/// The amount and the currency of a transfer as the provider takes them.
fn minor_amount(transfer: &Transfer) -> Result<(String, String), Failure> {
    let code = currency::currency(&transfer.asset).filter(|code| stripe_mapping::is_supported(code));
    let code = code.ok_or_else(|| Failure::final_(format!("{} is not supported", transfer.asset)))?;
    Ok((transfer.amount.to_string(), code.to_ascii_lowercase()))
}

fn payout_outcome(made: &Value) -> Result<Paid, Failure> {
    let id = text(made, "id");
    if id.is_empty() {
        return Err(Failure::later("the provider's payout has no id"));
    }
    let outcome = match made["status"].as_str().unwrap_or_default() {
        "paid" => Outcome::Done,
        "failed" => Outcome::Failed(text(made, "failure_message")),
        "canceled" => Outcome::Failed("the payout was cancelled".to_owned()),
        _ => Outcome::UnderWay,
    };
    let reference = stripe_mapping::id_of(&made["balance_transaction"]);
    let payment = (!reference.is_empty()).then_some((PaymentType::Payout, reference));
    Ok(Paid { outcome, payment, provider_id: id, raw: made.to_string() })
}

/// How far the balance transactions of an account are walked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Timeline {
    oldest: String,
    oldest_date: String,
    newest: String,
    newest_date: String,
    no_more_history: bool,
}

impl Timeline {
    fn of(work: &Work) -> Self {
        Self {
            oldest: work.kept("oldestID"),
            oldest_date: work.kept("oldestDate"),
            newest: work.kept("moreRecentID"),
            newest_date: work.kept("moreRecentDate"),
            no_more_history: work.kept("noMoreHistory") == "true",
        }
    }

    fn path(&self, work: &Work, size: u64) -> String {
        let expand = "expand[]=data.source&expand[]=data.source.charge&expand[]=data.source.payment_intent";
        let place = if self.no_more_history && !self.newest.is_empty() {
            format!("ending_before={}", escape(&self.newest))
        } else if self.oldest.is_empty() {
            format!("created[lte]={}", work.now.as_micros() / 1_000_000)
        } else {
            format!("starting_after={}", escape(&self.oldest))
        };
        format!("/v1/balance_transactions?limit={size}&{place}&{expand}")
    }

    /// The state after a page, newest first, and whether another page follows at once.
    fn after(mut self, listed: &[Value], has_more: bool) -> (Self, bool) {
        let date =
            |row: &Value| stripe_mapping::date(&row["created"]).map(|at| at.to_string()).unwrap_or_default();
        if self.no_more_history && !self.newest.is_empty() {
            if let Some(first) = listed.first() {
                (self.newest, self.newest_date) = (text(first, "id"), date(first));
            }
            return (self, has_more);
        }
        if let Some(first) = listed.first().filter(|_| self.newest.is_empty()) {
            (self.newest, self.newest_date) = (text(first, "id"), date(first));
        }
        if let Some(last) = listed.last() {
            (self.oldest, self.oldest_date) = (text(last, "id"), date(last));
        }
        // Without anything there is no history to walk, and the next run begins again.
        self.no_more_history = !has_more && !self.oldest.is_empty();
        // The end of the past is followed by the news since the walk began.
        let goes_on = has_more || self.no_more_history;
        (self, goes_on)
    }

    fn json(&self) -> String {
        let mut json = Json::new(Numbers::Plain);
        json.raw("{\"oldestID\":").string(&self.oldest).raw(",\"oldestDate\":").string(&self.oldest_date);
        json.raw(",\"moreRecentID\":")
            .string(&self.newest)
            .raw(",\"moreRecentDate\":")
            .string(&self.newest_date);
        json.raw(",\"noMoreHistory\":").boolean(self.no_more_history).raw("}");
        String::from_utf8(json.into_bytes()).expect("JSON is UTF-8")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str) -> Value {
        serde_json::json!({"id": id, "created": 1_700_000_000})
    }

    #[test]
    fn the_timeline_is_walked_to_its_end_and_then_forward() {
        let (first, goes_on) = Timeline::default().after(&[row("t9"), row("t8")], true);
        assert!(goes_on && first.newest == "t9" && first.oldest == "t8" && !first.no_more_history);
        let (last, goes_on) = first.after(&[row("t7")], false);
        assert!(goes_on && last.no_more_history && last.oldest == "t7" && last.newest == "t9");
        let (news, goes_on) = last.after(&[row("t11"), row("t10")], true);
        assert!(goes_on && news.newest == "t11" && news.oldest == "t7");
        let (same, goes_on) = news.clone().after(&[], false);
        assert_eq!((same, goes_on), (news, false));
    }

    #[test]
    fn nothing_known_is_asked_for_again() {
        let (state, goes_on) = Timeline::default().after(&[], false);
        assert_eq!((state, goes_on), (Timeline::default(), false));
    }

    #[test]
    fn a_payout_is_done_or_failed_or_under_way() {
        for (status, outcome) in [
            ("paid", Outcome::Done),
            ("in_transit", Outcome::UnderWay),
            ("pending", Outcome::UnderWay),
            ("canceled", Outcome::Failed("the payout was cancelled".to_owned())),
        ] {
            let made = serde_json::json!({"id": "po_1", "status": status, "balance_transaction": "txn_1"});
            let paid = payout_outcome(&made).expect("it has an id");
            assert_eq!(
                (paid.outcome, paid.payment),
                (outcome, Some((PaymentType::Payout, "txn_1".to_owned())))
            );
        }
        assert!(payout_outcome(&serde_json::json!({"status": "paid"})).is_err());
    }
}
