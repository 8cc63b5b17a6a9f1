//! Writes records as JSON. An object contains the members for clients of stack 1.10 and of stack 2.

use hyper::StatusCode;
use ledger_core::Timestamp;

use crate::api::context::Context;
use crate::api::ledger_v1::Client;
use crate::http::response::{Json, Reply};
use crate::payments::account::Account;
use crate::payments::balance::AccountBalance;
use crate::payments::bank_account::{BankAccount, Numbers};
use crate::payments::enumerations::{AccountType, PaymentStatus};
use crate::payments::event::write_metadata;
use crate::payments::ids::AccountId;
use crate::payments::initiation::Initiation;
use crate::payments::payment::{Adjustment, Payment};
use crate::payments::task::Task;
use crate::payments::transfer::Transfer;
use crate::uuid::Uuid;

/// The client that reads a response. Most members are the same for clients of stack 1.10 and of stack 2; the client's
/// version decides where they exclude each other, such as the names of statuses and of account types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reader {
    /// True if the client knows only the statuses and types of 1.10.
    pub(super) is_1_10: bool,
}

impl Reader {
    /// Returns the reader for a request.
    pub(super) fn of(context: &Context<'_>) -> Self {
        Self { is_1_10: Client::of(context).is_1_10() }
    }

    fn status(self, status: PaymentStatus) -> &'static str {
        use PaymentStatus as S;
        let narrowed = match status {
            S::Expired | S::DisputeLost | S::RefundedFailure => S::Failed,
            S::Refunded | S::DisputeWon => S::Succeeded,
            S::Dispute => S::Pending,
            other => other,
        };
        if self.is_1_10 { narrowed.name() } else { status.name() }
    }

    fn account_type(self, kind: AccountType) -> &'static str {
        match (self.is_1_10, kind) {
            (true, AccountType::Internal) => "SOURCE",
            (true, AccountType::External) => "TARGET",
            (_, kind) => kind.name(),
        }
    }
}

/// Returns a response with one record in the member `data`.
pub(super) fn data(context: &Context<'_>, status: StatusCode, write: impl FnOnce(&mut Json)) -> Reply {
    let mut json = context.json();
    json.raw("{\"data\":");
    write(&mut json);
    json.raw("}");
    json.reply(status)
}

fn id_of(account: Option<&AccountId>) -> String {
    account.map(AccountId::text).unwrap_or_default()
}

fn write_uuid(json: &mut Json, uuid: &Uuid) {
    json.plain_string(&uuid.to_string());
}

/// Writes a payment.
pub(super) fn payment(json: &mut Json, payment: &Payment, reader: Reader) {
    let (source, destination) = (id_of(payment.source.as_ref()), id_of(payment.destination.as_ref()));
    let account_id = if source.is_empty() { &destination } else { &source };
    json.raw("{\"id\":").plain_string(&payment.id.text());
    json.raw(",\"reference\":").string(&payment.id.reference);
    json.raw(",\"accountID\":").plain_string(account_id);
    json.raw(",\"sourceAccountID\":").plain_string(&source);
    json.raw(",\"destinationAccountID\":").plain_string(&destination);
    json.raw(",\"type\":").plain_string(payment.id.kind.name());
    json.raw(",\"provider\":").plain_string(&payment.id.connector.provider);
    json.raw(",\"connectorID\":").plain_string(&payment.id.connector.text());
    json.raw(",\"status\":").plain_string(reader.status(payment.status));
    json.raw(",\"initialAmount\":").balance(&payment.initial_amount);
    json.raw(",\"amount\":").balance(&payment.amount);
    json.raw(",\"scheme\":").plain_string(payment.scheme.name());
    json.raw(",\"asset\":").string(&payment.asset).raw(",\"createdAt\":").time(payment.created_at);
    json.raw(",\"raw\":").raw(payment.raw.as_deref().unwrap_or("null")).raw(",\"adjustments\":[");
    let mut adjustments: Vec<&Adjustment> = payment.adjustments.iter().collect();
    adjustments.sort_by_key(|adjustment| std::cmp::Reverse(adjustment.created_at));
    json.list(adjustments, |json, adjustment| write_adjustment(json, adjustment, reader));
    json.raw("],\"metadata\":");
    write_metadata(json, &payment.metadata);
    json.raw("}");
}

fn write_adjustment(json: &mut Json, adjustment: &Adjustment, reader: Reader) {
    json.raw("{\"reference\":").string(&adjustment.reference);
    json.raw(",\"createdAt\":").time(adjustment.created_at);
    json.raw(",\"date\":").time(adjustment.created_at);
    json.raw(",\"status\":").plain_string(reader.status(adjustment.status)).raw(",\"amount\":");
    match &adjustment.amount {
        None => json.raw("0"),
        Some(amount) => json.balance(amount),
    };
    // An adjustment without an amount sets the status; with an amount it is a difference.
    json.raw(",\"absolute\":").boolean(adjustment.amount.is_none());
    json.raw(",\"raw\":").raw(&adjustment.raw).raw("}");
}

/// Writes an account with the pools that contain it.
pub(super) fn account(json: &mut Json, account: &Account, pools: &[Uuid], reader: Reader) {
    json.raw("{\"id\":").plain_string(&account.id.text());
    json.raw(",\"reference\":").string(&account.id.reference);
    json.raw(",\"createdAt\":").time(account.created_at);
    json.raw(",\"connectorID\":").plain_string(&account.id.connector.text());
    json.raw(",\"provider\":").plain_string(&account.id.connector.provider);
    json.raw(",\"defaultCurrency\":").string(&account.default_asset);
    json.raw(",\"defaultAsset\":").string(&account.default_asset);
    json.raw(",\"accountName\":").string(&account.name);
    json.raw(",\"type\":").plain_string(reader.account_type(account.kind)).raw(",\"metadata\":");
    write_metadata(json, &account.metadata);
    json.raw(",\"pools\":[").list(pools, write_uuid).raw("],\"raw\":");
    json.raw(account.raw.as_deref().unwrap_or("null")).raw("}");
}

/// Writes a balance of an account.
pub(super) fn balance(json: &mut Json, balance: &AccountBalance) {
    json.raw("{\"accountId\":").plain_string(&balance.account.text());
    json.raw(",\"createdAt\":").time(balance.created_at);
    json.raw(",\"lastUpdatedAt\":").time(balance.last_updated_at);
    json.raw(",\"currency\":").string(&balance.asset).raw(",\"asset\":").string(&balance.asset);
    json.raw(",\"balance\":").balance(&balance.balance).raw("}");
}

/// Writes a bank account. `numbers` is present only when the client reads a single bank account.
pub(super) fn bank_account(json: &mut Json, account: &BankAccount, numbers: Option<&Numbers>) {
    json.raw("{\"id\":");
    write_uuid(json, &account.id);
    json.raw(",\"name\":").string(&account.name).raw(",\"createdAt\":").time(account.created_at);
    json.raw(",\"country\":").string(&account.country);
    if let Some(numbers) = numbers {
        for (name, number) in [("iban", &numbers.iban), ("accountNumber", &numbers.account_number)] {
            if !number.is_empty() {
                json.raw(",").plain_string(name).raw(":").string(number);
            }
        }
    }
    json.raw(",\"swiftBicCode\":").string(&account.swift_bic_code).raw(",\"metadata\":");
    write_metadata(json, &account.metadata);
    json.raw(",\"relatedAccounts\":[").list(&account.related, |json, related| {
        json.raw("{\"id\":");
        write_uuid(json, &related.id);
        json.raw(",\"createdAt\":").time(related.created_at);
        json.raw(",\"accountID\":").plain_string(&related.account.text());
        json.raw(",\"connectorID\":").plain_string(&related.account.connector.text());
        json.raw(",\"provider\":").plain_string(&related.account.connector.provider).raw("}");
    });
    let first = account.related.first().map(|related| &related.account);
    let (connector, provider) =
        first.map(|account| (account.connector.text(), &*account.connector.provider)).unwrap_or_default();
    json.raw("],\"connectorID\":").plain_string(&connector).raw(",\"provider\":").plain_string(provider);
    json.raw(",\"accountID\":").plain_string(&id_of(first)).raw("}");
}

/// Writes a transfer initiation. When the client reads a single one, `is_whole` adds its steps and payments.
pub(super) fn initiation(json: &mut Json, initiation: &Initiation, is_whole: bool) {
    json.raw("{\"id\":").plain_string(&initiation.id.text());
    json.raw(",\"reference\":").string(&initiation.id.reference);
    json.raw(",\"createdAt\":").time(initiation.created_at);
    json.raw(",\"scheduledAt\":").time(initiation.scheduled_at);
    json.raw(",\"description\":").string(&initiation.description);
    json.raw(",\"sourceAccountID\":").plain_string(&id_of(initiation.source.as_ref()));
    json.raw(",\"destinationAccountID\":").plain_string(&initiation.destination.text());
    json.raw(",\"connectorID\":").plain_string(&initiation.id.connector.text());
    json.raw(",\"provider\":").plain_string(&initiation.id.connector.provider);
    json.raw(",\"type\":").plain_string(initiation.kind.name());
    json.raw(",\"amount\":").balance(&initiation.amount);
    json.raw(",\"initialAmount\":").balance(&initiation.initial_amount);
    json.raw(",\"asset\":").string(&initiation.asset);
    json.raw(",\"status\":").plain_string(initiation.status().name());
    json.raw(",\"error\":").string(&initiation.step().error).raw(",\"metadata\":");
    write_metadata(json, &initiation.metadata);
    if is_whole {
        write_steps(json, initiation);
    }
    json.raw("}");
}

fn write_steps(json: &mut Json, initiation: &Initiation) {
    json.raw(",\"relatedPayments\":[").list(&initiation.payments, |json, payment| {
        json.raw("{\"paymentID\":").plain_string(&payment.payment.text());
        json.raw(",\"createdAt\":").time(payment.created_at);
        json.raw(",\"status\":").plain_string(payment.status.name());
        json.raw(",\"error\":").string(&payment.error).raw("}");
    });
    json.raw("],\"relatedAdjustments\":[").list(initiation.steps.iter().rev(), |json, step| {
        json.raw("{\"adjustmentID\":");
        write_uuid(json, &step.id);
        json.raw(",\"createdAt\":").time(step.created_at);
        json.raw(",\"status\":").plain_string(step.status.name());
        json.raw(",\"error\":").string(&step.error).raw(",\"metadata\":");
        write_metadata(json, &step.metadata);
        json.raw("}");
    });
    json.raw("]");
}

/// Writes a pool with its accounts.
pub(super) fn pool(json: &mut Json, id: &Uuid, name: &str, accounts: &[AccountId]) {
    json.raw("{\"id\":");
    write_uuid(json, id);
    json.raw(",\"name\":").string(name).raw(",\"accounts\":[").list(accounts, |json, account| {
        json.plain_string(&account.text());
    });
    json.raw("]}");
}

/// Returns a time without its fraction of a second. Other servers write the times of tasks in this form.
fn whole_seconds(at: Timestamp) -> Timestamp {
    const SECOND: i64 = 1_000_000;
    Timestamp::from_micros(at.as_micros().div_euclid(SECOND) * SECOND)
}

/// Writes a task.
pub(super) fn task(json: &mut Json, task: &Task) {
    json.raw("{\"id\":");
    write_uuid(json, &task.id);
    json.raw(",\"connectorID\":").plain_string(&task.connector.text());
    json.raw(",\"createdAt\":").time(whole_seconds(task.created_at));
    json.raw(",\"updatedAt\":").time(whole_seconds(task.updated_at));
    json.raw(",\"descriptor\":").raw(&task.descriptor);
    json.raw(",\"status\":").plain_string(task.status.name());
    json.raw(",\"state\":").raw(&task.state).raw(",\"error\":").string(&task.error).raw("}");
}

/// Writes a transfer of stack 1.10.
pub(super) fn transfer(json: &mut Json, transfer: &Transfer) {
    let currency = transfer.asset.split('/').next().unwrap_or_default();
    json.raw("{\"id\":");
    write_uuid(json, &transfer.id);
    json.raw(",\"source\":").string(&transfer.source);
    json.raw(",\"destination\":").string(&transfer.destination);
    json.raw(",\"amount\":").balance(&transfer.amount).raw(",\"asset\":").string(&transfer.asset);
    json.raw(",\"currency\":").string(currency);
    json.raw(",\"status\":").plain_string(transfer.status.name());
    json.raw(",\"error\":").string(&transfer.error).raw("}");
}
