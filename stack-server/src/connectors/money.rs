//! Tasks that execute transfer initiations.
//!
//! A task sends an order to the connector, records the result as a step of the initiation, and asks again until the
//! provider has decided. Before the task calls the provider, it records a step with the status of an order in progress.
//! The idempotency key is derived from the number of this step. After a crash the task repeats the call with the same
//! key, so the provider moves the money only once.

use ledger_core::{Balance, Timestamp};
use ledger_store::{DocumentChange, Expected, Snapshot};

use crate::connectors::{
    BankDetails, Failure, NewTask, Order, OrderResult, OrderState, Restart, Retry, Transfer,
};
use crate::http::error::ApiError;
use crate::http::response::{Json, Numbers};
use crate::payments::account::Account;
use crate::payments::bank_account::{self, BankAccount};
use crate::payments::codec::Metadata;
use crate::payments::enumerations::{AccountType, InitiationStatus, PaymentType, TaskStatus};
use crate::payments::event::Event;
use crate::payments::ids::{AccountId, ConnectorId, InitiationId, PaymentId};
use crate::payments::initiation::{self, Initiation, RelatedPayment, Step};
use crate::payments::record::{self, Versioned};
use crate::payments::service::{Payments, require_installation};
use crate::payments::task::{Schedule, Task};

/// The work of a task: to pay a transfer initiation, or to reverse it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Pay,
    Reverse,
}

/// The keys in the descriptors of these tasks.
const PAY: &str = "initiate-payment";
const REVERSE: &str = "reverse-payment";

/// The key in a step's metadata for the provider's id of the transfer.
const PROVIDER_ID: &str = "transfer_id";

/// Returns the task that executes an initiation.
pub(super) fn start(initiation: &Initiation, action: Action, now: Timestamp) -> NewTask {
    let (name, key) = match action {
        Action::Pay => ("Initiate payment", PAY),
        Action::Reverse => ("Reverse payment", REVERSE),
    };
    let mut json = Json::new(Numbers::Plain);
    json.raw("{\"name\":").plain_string(name).raw(",\"key\":").plain_string(key);
    json.raw(",\"transferID\":").plain_string(&initiation.id.text()).raw("}");
    let descriptor = json.into_string();
    let later = (action == Action::Pay && initiation.scheduled_at > now).then_some(initiation.scheduled_at);
    let schedule = Schedule::Once(later);
    NewTask { schedule, ..NewTask::once(descriptor, Restart::IfNotActive) }
}

/// Returns the action and the initiation of a task, or `None` if the task executes no initiation.
pub(super) fn of_task(descriptor: &str) -> Option<(Action, InitiationId)> {
    let value: serde_json::Value = serde_json::from_str(descriptor).ok()?;
    let action = match value["key"].as_str()? {
        PAY => Action::Pay,
        REVERSE => Action::Reverse,
        _ => return None,
    };
    Some((action, InitiationId::parse(value["transferID"].as_str()?)?))
}

/// The next step of a task that moves money.
pub(super) enum Next {
    /// Send this order to the provider.
    Ask(Box<Order>),
    /// Do nothing: the task has ended.
    Nothing,
}

/// Records that an initiation is in progress, and returns the order for the provider. If there is nothing to order,
/// records the end of the task.
pub(super) fn prepare(
    payments: &Payments,
    task: &Task,
    id: &InitiationId,
    action: Action,
    now: Timestamp,
) -> Result<Next, ApiError> {
    use InitiationStatus as S;
    // Record the end of the task with its reason. A later order starts the task again.
    let ended = || vec![record::put(&terminated(task, now), Expected::Anything)];
    payments.write(|snapshot| {
        let Some(Versioned { value: mut initiation, version }) = initiation::find(snapshot, id)? else {
            return Ok((ended(), Next::Nothing));
        };
        let processing = match (action, initiation.status()) {
            (Action::Pay, S::Validated | S::AskRetried) => S::Processing,
            (Action::Reverse, S::AskReversed) => S::ReverseProcessing,
            // The provider may already have received the order.
            (Action::Pay, S::Processing) | (Action::Reverse, S::ReverseProcessing) => {
                let next = order(payments, snapshot, &initiation, action).map_err(as_temporary)?;
                let changes = if matches!(next, Next::Nothing) { ended() } else { vec![] };
                return Ok((changes, next));
            }
            _ => return Ok((ended(), Next::Nothing)),
        };
        initiation.steps.push(Step::new(processing, now)?);
        let mut changes = payments.event_changes(&[Event::Initiation(&initiation)], now);
        changes.push(record::put(&initiation, Expected::Version(version)));
        let next = order(payments, snapshot, &initiation, action)?;
        if matches!(next, Next::Nothing) {
            changes.extend(ended());
        }
        Ok((changes, next))
    })
}

/// Makes the refusal of an order temporary. This is for orders that the provider may already have received: the money
/// may have moved, so the order must stay open and be tried again.
pub(super) fn as_temporary(error: ApiError) -> ApiError {
    if error.is_temporary() { error } else { ApiError::busy(error.message) }
}

/// Returns a task with the status of a task that has ended.
pub(super) fn terminated(task: &Task, now: Timestamp) -> Task {
    let (status, error) = (TaskStatus::Terminated, String::new());
    Task { status, error, updated_at: now, ..task.clone() }
}

/// Returns the order for the provider, or [`Next::Nothing`] if there is nothing to reverse.
fn order(
    payments: &Payments,
    snapshot: &Snapshot,
    initiation: &Initiation,
    action: Action,
) -> Result<Next, ApiError> {
    let source = initiation.source.as_ref().map(|account| account.reference.clone()).unwrap_or_default();
    let source_metadata = match &initiation.source {
        Some(source) => metadata_of_source(snapshot, source)?,
        None => Metadata::new(),
    };
    let bank_account = bank_account::of_account(snapshot, &initiation.destination)?;
    let bank_account = bank_account.map(|account| details(payments, &account)).transpose()?;
    let sent = initiation.steps.iter().rev().find_map(|step| step.metadata.get(PROVIDER_ID));
    let transfer = |amount: &Balance, description: &str, reference: &str| Transfer {
        kind: initiation.kind,
        source: source.clone(),
        destination: initiation.destination.reference.clone(),
        amount: amount.clone(),
        asset: initiation.asset.clone(),
        description: description.to_owned(),
        idempotency_key: format!("{reference}_{}", steps_before_order(initiation)),
        metadata: initiation.metadata.clone(),
        source_metadata: source_metadata.clone(),
        bank_account: bank_account.clone(),
    };
    let order = match (action, sent) {
        // The current step has the provider's id once the provider has answered its order. Steps of earlier orders may
        // have an id as well.
        (Action::Pay, Some(provider_id)) if initiation.step().metadata.contains_key(PROVIDER_ID) => {
            let (kind, provider_id) = (initiation.kind, provider_id.clone());
            Order::GetState { provider_id, kind, source }
        }
        (Action::Pay, _) => Order::Send(transfer(
            &initiation.initial_amount,
            &initiation.description,
            &initiation.id.reference,
        )),
        (Action::Reverse, Some(provider_id)) => {
            let Some(reversal) = initiation.reversals.last() else { return Ok(Next::Nothing) };
            let transfer = transfer(&reversal.amount, &reversal.description, &reversal.reference);
            Order::Reverse { transfer, provider_id: provider_id.clone() }
        }
        (Action::Reverse, None) => return Ok(Next::Nothing),
    };
    Ok(Next::Ask(Box::new(order)))
}

/// Returns the number of steps that an initiation had before its current order began. It is the same for all
/// repetitions of a call.
fn steps_before_order(initiation: &Initiation) -> usize {
    use InitiationStatus as S;
    let is_in_progress = |step: &Step| matches!(step.status, S::Processing | S::ReverseProcessing);
    let in_progress = initiation.steps.iter().rev().take_while(|step| is_in_progress(step)).count();
    initiation.steps.len() - in_progress
}

/// Returns the metadata of a source account. Refuses an `EXTERNAL` account, because it belongs to a counterparty.
pub(super) fn metadata_of_source(snapshot: &Snapshot, source: &AccountId) -> Result<Metadata, ApiError> {
    let found = record::find::<Account>(snapshot, &source.key())?;
    match found {
        Some(found) if found.value.kind == AccountType::External => {
            Err(ApiError::validation("the source is an EXTERNAL account"))
        }
        Some(found) => Ok(found.value.metadata),
        None => Ok(Metadata::new()),
    }
}

/// Returns the decrypted details of a bank account for the provider.
fn details(payments: &Payments, account: &BankAccount) -> Result<BankDetails, ApiError> {
    let numbers = account.open(&payments.sealer)?;
    Ok(BankDetails {
        account_number: numbers.account_number,
        iban: numbers.iban,
        swift_bic_code: account.swift_bic_code.clone(),
        country: account.country.clone(),
        name: account.name.clone(),
    })
}

/// Records the result of an order as a step of its initiation. Returns whether the task has ended.
pub(super) fn note(
    payments: &Payments,
    task: &Task,
    id: &InitiationId,
    action: Action,
    came: &Result<OrderResult, Failure>,
    now: Timestamp,
) -> Result<bool, ApiError> {
    payments.write(|snapshot| {
        require_installation(snapshot, &id.connector)?;
        let Some(Versioned { value: mut initiation, version }) = initiation::find(snapshot, id)? else {
            return Ok((vec![record::put(&terminated(task, now), Expected::Anything)], true));
        };
        let mut step = initiation.step().clone();
        let ends = match came {
            Ok(paid) => apply(&mut initiation, &mut step, action, paid, now),
            Err(failure) if failure.retry == Retry::Never => {
                failed(&mut step, action, &failure.reason);
                true
            }
            Err(failure) => {
                step.error.clone_from(&failure.reason);
                false
            }
        };
        if step == *initiation.step() {
            return Ok((vec![], ends));
        }
        let is_another = step.status != initiation.status();
        if is_another {
            let fresh = Step::new(step.status, now)?;
            initiation.steps.push(Step { error: step.error, metadata: step.metadata, ..fresh });
        } else if let Some(last) = initiation.steps.last_mut() {
            *last = step;
        }
        let mut changes = payments.event_changes(&[Event::Initiation(&initiation)], now);
        changes.push(record::put(&initiation, Expected::Version(version)));
        if ends {
            changes.push(record::put(&terminated(task, now), Expected::Anything));
        }
        Ok::<(Vec<DocumentChange>, bool), ApiError>((changes, ends))
    })
}

fn failed(step: &mut Step, action: Action, reason: &str) {
    step.status = match action {
        Action::Pay => InitiationStatus::Failed,
        Action::Reverse => InitiationStatus::ReverseFailed,
    };
    reason.clone_into(&mut step.error);
}

/// Applies a response of the connector to an initiation. Returns whether the order has ended.
fn apply(
    initiation: &mut Initiation,
    step: &mut Step,
    action: Action,
    paid: &OrderResult,
    now: Timestamp,
) -> bool {
    step.error.clear();
    if !paid.provider_id.is_empty() {
        step.metadata.insert(PROVIDER_ID.to_owned(), paid.provider_id.clone());
    }
    match &paid.outcome {
        OrderState::InProgress => return false,
        OrderState::Failed(reason) => failed(step, action, reason),
        OrderState::Done if action == Action::Pay => step.status = InitiationStatus::Processed,
        OrderState::Done => {
            if let Some(reversal) = initiation.reversals.last() {
                initiation.amount += &negated(&reversal.amount);
            }
            let is_all = initiation.amount <= Balance::ZERO;
            step.status =
                if is_all { InitiationStatus::Reversed } else { InitiationStatus::PartiallyReversed };
        }
    }
    if let Some((kind, reference)) = &paid.payment {
        add_payment(initiation, *kind, reference, step, now);
    }
    true
}

fn add_payment(initiation: &mut Initiation, kind: PaymentType, reference: &str, step: &Step, now: Timestamp) {
    let connector: ConnectorId = initiation.id.connector.clone();
    let payment = PaymentId { connector, kind, reference: reference.to_owned() };
    initiation.payments.retain(|have| have.payment != payment);
    let (status, error) = (step.status, step.error.clone());
    initiation.payments.push(RelatedPayment { payment, created_at: now, status, error });
}

/// Returns the amount with the opposite sign.
fn negated(amount: &Balance) -> Balance {
    let text = amount.to_string();
    let turned = text.strip_prefix('-').map_or_else(|| format!("-{text}"), str::to_owned);
    Balance::parse(&turned).unwrap_or(Balance::ZERO)
}
