//! Connectors: the code that speaks to payment providers, and the engine that runs their tasks.
//!
//! A connector is a row of [`registry`], a configuration, and an implementation of [`Connector`] in a file of its own.
//! It fetches one page at a time and stores nothing: the engine records the page, the state behind it and the tasks
//! that follow in one commit, so that a crash at any point repeats two pages at most.

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
mod manage;
mod modulr;
pub(crate) mod money;
pub(crate) mod orders;
pub(crate) mod registry;
mod resealing;
mod rows;
mod runner;
mod session;
mod stripe;
mod stripe_mapping;
mod stripe_timeline;
#[cfg(test)]
mod tests;
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
use crate::payments::ids::{AccountId, ConnectorId};
use crate::payments::ingest::Batch;
use crate::payments::task::Schedule;
use crate::payments::words::{InitiationType, PaymentStatus, PaymentType};
use crate::uuid;

/// The answer of a connector, some time later.
pub(crate) type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// The client of a payment provider.
pub(crate) trait Connector: Send + Sync {
    /// The tasks that begin with the installation.
    fn first_tasks(&self) -> Vec<Start>;

    /// Checks that the connector finds what it needs in this server, before it replaces an installation.
    ///
    /// # Errors
    ///
    /// The reason why it could not be set up.
    fn check(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Does one step of a task: fetches a page, from the place that the state tells. The page before it may not be recorded
    /// yet, and may never be: the task then goes back to the state before that page.
    fn poll<'a>(&'a self, work: &'a Work) -> Pending<'a, Page>;

    /// Moves money, or asks what became of it.
    fn pay<'a>(&'a self, order: &'a Order) -> Pending<'a, Paid>;
}

/// The step of a task.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) connector: ConnectorId,
    /// The descriptor of the task: a JSON object.
    pub(crate) descriptor: String,
    /// The state that the step before returned: a JSON object.
    pub(crate) state: String,
    pub(crate) now: Timestamp,
}

impl Work {
    /// A member of the descriptor; empty if it is not there.
    pub(crate) fn field(&self, name: &str) -> String {
        member(&self.descriptor, name)
    }

    /// A member of the state; empty if it is not there.
    pub(crate) fn kept(&self, name: &str) -> String {
        member(&self.state, name)
    }

    /// The id of an account of this installation; `None` without a reference.
    pub(crate) fn account(&self, reference: &str) -> Option<AccountId> {
        (!reference.is_empty())
            .then(|| AccountId { connector: self.connector.clone(), reference: reference.to_owned() })
    }
}

/// The text of a member of a JSON object.
fn member(object: &str, name: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(object).unwrap_or_default();
    match &value[name] {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A JSON object of texts.
fn object(members: &[(&str, &str)]) -> String {
    let mut json = Json::new(Numbers::Plain);
    json.raw("{").list(members, |json, (name, value)| {
        json.plain_string(name).raw(":").string(value);
    });
    json.raw("}");
    String::from_utf8(json.into_bytes()).expect("JSON is UTF-8")
}

/// The result of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) batch: Batch,
    /// The state for the next step; `None` keeps the old one.
    pub(crate) state: Option<String>,
    /// Tasks to begin.
    pub(crate) children: Vec<Start>,
    /// Whether there is more to fetch at once.
    pub(crate) has_more: bool,
    /// The reason why some records were passed over.
    pub(crate) warning: Option<String>,
}

/// A task to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) descriptor: String,
    pub(crate) schedule: Schedule,
    pub(crate) restart: Restart,
    /// Whether the installation waits until it has ended.
    pub(crate) is_synchronous: bool,
}

impl Start {
    /// A task that runs again and again.
    pub(crate) fn periodic(descriptor: String) -> Self {
        let schedule = Schedule::Periodic;
        Self { descriptor, schedule, restart: Restart::IfNotActive, is_synchronous: false }
    }

    /// A task that runs once, as soon as may be.
    pub(crate) fn once(descriptor: String, restart: Restart) -> Self {
        Self { descriptor, schedule: Schedule::Once(None), restart, is_synchronous: false }
    }
}

/// Whether a task that already exists begins again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restart {
    /// It stays as it is.
    Never,
    /// It begins again unless it is active.
    IfNotActive,
}

/// Why a step failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) reason: String,
    /// Whether to try again, and how long to wait at least.
    pub(crate) retry: Retry,
    /// The HTTP status of the provider's answer; 0 without one.
    pub(crate) status: u16,
}

/// Whether a step is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Never: the task has failed.
    Never,
    /// After a pause that grows.
    Later,
    /// Not before this time has passed, as the provider asks.
    After(Duration),
}

impl Failure {
    /// A fault of the provider or of the way to it.
    pub(crate) fn later(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), retry: Retry::Later, status: 0 }
    }

    /// A fault that no repetition mends.
    pub(crate) fn final_(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), retry: Retry::Never, status: 0 }
    }
}

/// An order to move money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// To send it.
    Send(Transfer),
    /// To ask what became of what was sent.
    Look { provider_id: String, kind: InitiationType, source: String },
    /// To take some of it back.
    Reverse { transfer: Transfer, provider_id: String },
}

/// Money on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) kind: InitiationType,
    /// The provider's names of the accounts; the source is empty where there is none.
    pub(crate) source: String,
    pub(crate) destination: String,
    pub(crate) amount: Balance,
    pub(crate) asset: String,
    pub(crate) description: String,
    /// The key by which the provider recognises a repetition.
    pub(crate) idempotency_key: String,
    pub(crate) metadata: Metadata,
    /// The metadata of the source account, as the connector brought it in.
    pub(crate) source_metadata: Metadata,
    /// The bank account of which the destination was made, if it was.
    pub(crate) bank_account: Option<BankDetails>,
}

impl Transfer {
    /// The amount as decimal text, and the code of its currency.
    ///
    /// # Errors
    ///
    /// Fails if the asset does not have the decimals of its currency.
    fn decimal_amount(&self) -> Result<(String, &str), Failure> {
        let found = currency::major_units(&self.amount, &self.asset);
        found.map_err(|error| Failure::final_(format!("{}: {error}", self.asset)))
    }

    /// The idempotency key for providers that want a UUID.
    fn idempotency_uuid(&self) -> String {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&blake3::hash(self.idempotency_key.as_bytes()).as_bytes()[..16]);
        uuid::text(bytes, 8)
    }
}

/// The numbers of a bank account. They are secrets of its owner and are not printed.
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
pub(crate) struct Paid {
    pub(crate) outcome: Outcome,
    /// The payment as which it will be fetched, if that is known.
    pub(crate) payment: Option<(PaymentType, String)>,
    /// The provider's name of the transfer.
    pub(crate) provider_id: String,
    /// The provider's record of the transfer: a JSON text.
    pub(crate) raw: String,
}

impl Paid {
    /// The answer for a transfer whose payment has a status at the provider.
    fn of_status(provider_id: String, status: PaymentStatus, word: &str) -> Self {
        let outcome = match status {
            PaymentStatus::Succeeded => Outcome::Done,
            PaymentStatus::Failed | PaymentStatus::Cancelled => {
                Outcome::Failed(format!("the provider's status is {word:?}"))
            }
            _ => Outcome::UnderWay,
        };
        Self { outcome, payment: None, provider_id, raw: String::new() }
    }
}

/// Where an order stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// To be asked for again.
    UnderWay,
    Failed(String),
}
