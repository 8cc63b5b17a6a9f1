//! Connectors: the clients of payment providers, and the engine that runs their tasks.
//!
//! A connector consists of a row of [`registry`], a configuration and an implementation of [`Connector`] in a separate
//! file. It fetches one page at a time and stores nothing. The engine records the page, the next state and the new
//! tasks in one commit. Only a page with more than 200 records takes several commits, and the last one contains the
//! state. The engine fetches the next page while it records one, so after a crash the connector fetches at most two
//! pages again.

mod banking_circle;
pub(crate) mod clock;
pub(crate) mod config;
pub(crate) mod currency;
mod currency_cloud;
pub(crate) mod definition;
mod dummy_pay;
pub(crate) mod engine;
pub(crate) mod error;
mod generic;
mod generic_walk;
pub(crate) mod http;
mod json_object;
mod manage;
mod modulr;
pub(crate) mod money;
pub(crate) mod orders;
pub(crate) mod registry;
mod resealing;
mod runner;
mod session;
mod stripe;
mod stripe_mapping;
mod stripe_timeline;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod transfers;
mod walk;
mod wise;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use ledger_core::{Balance, Timestamp};

use crate::http::response::{Json, Numbers};
use crate::payments::codec::Metadata;
use crate::payments::enumerations::{InitiationType, PaymentStatus, PaymentType};
use crate::payments::ids::{AccountId, ConnectorId};
use crate::payments::ingest::Batch;
use crate::payments::task::Schedule;
use crate::uuid;

/// A future with the result of a connector.
pub(crate) type ConnectorFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// The client of a payment provider.
pub(crate) trait Connector: Send + Sync {
    /// Returns the tasks to start when the connector is installed or configured.
    fn first_tasks(&self) -> Vec<NewTask>;

    /// Checks that this server has everything that the connector needs, such as its directory. The engine calls this
    /// before it installs or resets a connector.
    ///
    /// # Errors
    ///
    /// Fails if the connector cannot be set up.
    fn check(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Executes one step of a task: fetches the page at the position in the task's state. The page before it may not be
    /// recorded yet, and may never be: the task then returns to the state before that page.
    fn poll<'a>(&'a self, context: &'a TaskContext) -> ConnectorFuture<'a, Page>;

    /// Moves money, or asks the provider for the state of an earlier order.
    fn pay<'a>(&'a self, order: &'a Order) -> ConnectorFuture<'a, OrderResult>;
}

/// The input of one step of a task.
#[derive(Clone, Debug)]
pub(crate) struct TaskContext {
    pub(crate) connector: ConnectorId,
    /// The descriptor of the task: a JSON object.
    pub(crate) descriptor: String,
    /// The state after the previous step: a JSON object.
    pub(crate) state: String,
    pub(crate) now: Timestamp,
}

impl TaskContext {
    /// Returns a member of the descriptor, or an empty text if there is none.
    pub(crate) fn descriptor_member(&self, name: &str) -> String {
        member(&self.descriptor, name)
    }

    /// Returns a member of the state, or an empty text if there is none.
    pub(crate) fn state_member(&self, name: &str) -> String {
        member(&self.state, name)
    }

    /// Returns the id of an account of this installation, or `None` if the reference is empty.
    pub(crate) fn account(&self, reference: &str) -> Option<AccountId> {
        (!reference.is_empty())
            .then(|| AccountId { connector: self.connector.clone(), reference: reference.to_owned() })
    }
}

/// Returns a member of a JSON object as text.
fn member(object: &str, name: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(object).unwrap_or_default();
    match &value[name] {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns a JSON object whose members are texts.
fn object(members: &[(&str, &str)]) -> String {
    let mut json = Json::new(Numbers::Plain);
    json.raw("{").list(members, |json, (name, value)| {
        json.plain_string(name).raw(":").string(value);
    });
    json.raw("}");
    json.into_string()
}

/// The result of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) batch: Batch,
    /// The state for the next step; `None` keeps the old one.
    pub(crate) state: Option<String>,
    /// Tasks to start.
    pub(crate) children: Vec<NewTask>,
    /// True if the next step follows without a pause.
    pub(crate) has_more: bool,
    /// The reason why records of the page were skipped.
    pub(crate) warning: Option<String>,
}

/// A task to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewTask {
    pub(crate) descriptor: String,
    pub(crate) schedule: Schedule,
    pub(crate) restart: Restart,
    /// True if the request that installs the connector waits until the task has ended.
    pub(crate) is_synchronous: bool,
}

impl NewTask {
    /// Returns a task that runs again after each polling period.
    pub(crate) fn periodic(descriptor: String) -> Self {
        let schedule = Schedule::Periodic;
        Self { descriptor, schedule, restart: Restart::IfNotActive, is_synchronous: false }
    }

    /// Returns a task that runs once, as soon as possible.
    pub(crate) fn once(descriptor: String, restart: Restart) -> Self {
        Self { descriptor, schedule: Schedule::Once(None), restart, is_synchronous: false }
    }
}

/// Treatment of a task to start that already exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restart {
    /// The task stays unchanged.
    Never,
    /// The task starts again unless it is active.
    IfNotActive,
}

/// The reason why a step failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) reason: String,
    /// The time of the next try, if there is one.
    pub(crate) retry: Retry,
    /// The HTTP status of the provider's error response; 0 for all other failures.
    pub(crate) status: u16,
}

/// The time of the next try of a failed step, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Never. The task has failed.
    Never,
    /// After a pause that doubles with each failure, up to the polling period.
    Later,
    /// After at least this time, which the provider requested.
    After(Duration),
}

impl Failure {
    /// Creates a failure after which the step is tried again, for example after a fault of the provider or the network.
    pub(crate) fn retryable(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), retry: Retry::Later, status: 0 }
    }

    /// Creates a failure that ends the task, because trying again cannot succeed.
    pub(crate) fn permanent(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), retry: Retry::Never, status: 0 }
    }
}

/// An order to a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Sends money.
    Send(Transfer),
    /// Asks for the state of money that was sent.
    GetState { provider_id: String, kind: InitiationType, source: String },
    /// Takes back a transfer or a part of it.
    Reverse { transfer: Transfer, provider_id: String },
}

/// The data of a transfer or payout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) kind: InitiationType,
    /// The provider's references of the accounts. The source is empty if there is none.
    pub(crate) source: String,
    pub(crate) destination: String,
    pub(crate) amount: Balance,
    pub(crate) asset: String,
    pub(crate) description: String,
    /// The key by which the provider recognises a repetition.
    pub(crate) idempotency_key: String,
    pub(crate) metadata: Metadata,
    /// The metadata of the source account, as the connector fetched it.
    pub(crate) source_metadata: Metadata,
    /// The bank account from which the destination was created, if any.
    pub(crate) bank_account: Option<BankDetails>,
}

impl Transfer {
    /// Returns the amount as decimal text, and the code of its currency.
    ///
    /// # Errors
    ///
    /// Fails if the asset does not have the decimals of its currency.
    fn decimal_amount(&self) -> Result<(String, &str), Failure> {
        let found = currency::major_units(&self.amount, &self.asset);
        found.map_err(|error| Failure::permanent(format!("{}: {error}", self.asset)))
    }

    /// Returns the idempotency key as a UUID, for providers that require one.
    fn idempotency_uuid(&self) -> String {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&blake3::hash(self.idempotency_key.as_bytes()).as_bytes()[..16]);
        uuid::text(bytes, 8)
    }
}

/// The details of a bank account. `Debug` hides them, because they are secrets of the owner.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct BankDetails {
    pub(crate) account_number: String,
    pub(crate) iban: String,
    pub(crate) swift_bic_code: String,
    pub(crate) country: String,
    pub(crate) name: String,
}

impl fmt::Debug for BankDetails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BankDetails")
    }
}

/// The result of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OrderResult {
    pub(crate) outcome: OrderState,
    /// The type and reference of the payment that the provider will list for this order, if known.
    pub(crate) payment: Option<(PaymentType, String)>,
    /// The provider's id of the transfer.
    pub(crate) provider_id: String,
    /// The provider's record of the transfer as JSON text; empty if there is none.
    pub(crate) raw: String,
}

impl OrderResult {
    /// Returns the result of an order from the status of its payment. `word` is the provider's word for the status.
    fn of_status(provider_id: String, status: PaymentStatus, word: &str) -> Self {
        let outcome = match status {
            PaymentStatus::Succeeded => OrderState::Done,
            PaymentStatus::Failed | PaymentStatus::Cancelled => {
                OrderState::Failed(format!("the provider's status is {word:?}"))
            }
            _ => OrderState::InProgress,
        };
        Self { outcome, payment: None, provider_id, raw: String::new() }
    }
}

/// The state of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OrderState {
    Done,
    /// The provider has not decided yet. The task asks again later.
    InProgress,
    Failed(String),
}
