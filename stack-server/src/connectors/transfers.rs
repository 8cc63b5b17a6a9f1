//! Transfers of the payments API of stack 1.10. The task of a transfer moves the money once and records the result.

use ledger_core::{Balance, Timestamp};
use ledger_store::{Expected, Snapshot};

use crate::connectors::money::{self, Action, Next};
use crate::connectors::{
    Failure, NewTask, Order, OrderResult, OrderState, Restart, Retry, Transfer, currency, object,
};
use crate::http::error::ApiError;
use crate::payments::account::Account;
use crate::payments::codec::Metadata;
use crate::payments::enumerations::{AccountType, InitiationType, TransferStatus};
use crate::payments::ids::{AccountId, ConnectorId, InitiationId};
use crate::payments::record::{self, Versioned};
use crate::payments::service::{Payments, require_installation};
use crate::payments::task::Task;
use crate::payments::transfer as stored;
use crate::uuid::Uuid;

/// The key in the descriptors of these tasks.
const KEY: &str = "transfer";

/// The request for a transfer.
#[derive(Clone, Debug)]
pub(crate) struct NewTransfer {
    pub(crate) amount: Balance,
    pub(crate) asset: String,
    pub(crate) source: String,
    pub(crate) destination: String,
    pub(crate) metadata: Metadata,
}

/// Returns the task that executes a transfer.
pub(super) fn start(id: &Uuid) -> NewTask {
    let named = [("name", "Initiate transfer"), ("key", KEY), ("transferID", &*id.to_string())];
    NewTask::once(object(&named), Restart::Never)
}

/// Returns the data of the order for the provider.
pub(super) fn order_of(
    new: NewTransfer,
    kind: InitiationType,
    source_metadata: Metadata,
    idempotency_key: String,
) -> Transfer {
    Transfer {
        kind,
        source: new.source,
        destination: new.destination,
        amount: new.amount,
        asset: new.asset,
        description: String::new(),
        idempotency_key,
        metadata: new.metadata,
        source_metadata,
        bank_account: None,
    }
}

/// The initiation or transfer that a task executes.
#[derive(Clone, Debug)]
pub(super) enum MoneyMovement {
    Initiation(Action, InitiationId),
    Transfer(ConnectorId, Uuid),
}

impl MoneyMovement {
    /// Returns the subject of a task, or `None` if the task moves no money.
    pub(super) fn of_task(task: &Task) -> Option<Self> {
        if let Some((action, id)) = money::of_task(&task.descriptor) {
            return Some(Self::Initiation(action, id));
        }
        let value: serde_json::Value = serde_json::from_str(&task.descriptor).ok()?;
        if value["key"].as_str()? != KEY {
            return None;
        }
        Some(Self::Transfer(task.connector.clone(), Uuid::parse(value["transferID"].as_str()?)?))
    }

    /// Records that the order is in progress, and returns the order for the provider.
    pub(super) fn prepare(&self, payments: &Payments, task: &Task, now: Timestamp) -> Result<Next, ApiError> {
        match self {
            Self::Initiation(action, id) => money::prepare(payments, task, id, *action, now),
            Self::Transfer(connector, id) => prepare(payments, task, connector, id, now),
        }
    }

    /// Records the response of the provider. Returns whether the task has ended.
    pub(super) fn note(
        &self,
        payments: &Payments,
        task: &Task,
        came: &Result<OrderResult, Failure>,
        now: Timestamp,
    ) -> Result<bool, ApiError> {
        match self {
            Self::Initiation(action, id) => money::note(payments, task, id, *action, came, now),
            Self::Transfer(connector, id) => note(payments, task, connector, id, came, now),
        }
    }
}

fn find(
    snapshot: &Snapshot,
    connector: &ConnectorId,
    id: &Uuid,
) -> Result<Option<Versioned<stored::Transfer>>, ApiError> {
    let key = [&connector.installation.bytes()[..], id.bytes()].concat();
    Ok(record::find::<stored::Transfer>(snapshot, &key)?)
}

fn prepare(
    payments: &Payments,
    task: &Task,
    connector: &ConnectorId,
    id: &Uuid,
    now: Timestamp,
) -> Result<Next, ApiError> {
    payments.write(|snapshot| {
        let found = find(snapshot, connector, id)?;
        let Some(Versioned { value: transfer, version }) =
            found.filter(|found| found.value.status == TransferStatus::Pending)
        else {
            return Ok((vec![record::put(&money::terminated(task, now), Expected::Anything)], Next::Nothing));
        };
        if transfer.is_sent {
            let order = order(snapshot, transfer).map_err(money::as_temporary)?;
            return Ok((vec![], Next::Ask(Box::new(order))));
        }
        // Record this before the provider is called. After a crash, it shows that the order may have been sent.
        let sent = stored::Transfer { is_sent: true, ..transfer.clone() };
        let order = order(snapshot, transfer)?;
        Ok((vec![record::put(&sent, Expected::Version(version))], Next::Ask(Box::new(order))))
    })
}

fn order(snapshot: &Snapshot, transfer: stored::Transfer) -> Result<Order, ApiError> {
    let account = |reference: &str| AccountId {
        connector: transfer.connector.clone(),
        reference: reference.to_owned(),
    };
    let destination = record::find::<Account>(snapshot, &account(&transfer.destination).key())?;
    let kind = match destination.map(|found| found.value.kind) {
        Some(AccountType::External) => InitiationType::Payout,
        _ => InitiationType::Transfer,
    };
    let source = transfer.source;
    if !transfer.provider_id.is_empty() {
        return Ok(Order::GetState { provider_id: transfer.provider_id, kind, source });
    }
    let source_metadata = if source.is_empty() {
        Metadata::new()
    } else {
        let connector = transfer.connector.clone();
        money::metadata_of_source(snapshot, &AccountId { connector, reference: source.clone() })?
    };
    let new = NewTransfer {
        amount: transfer.amount,
        asset: with_decimals(transfer.asset),
        source,
        destination: transfer.destination,
        metadata: Metadata::new(),
    };
    Ok(Order::Send(order_of(new, kind, source_metadata, transfer.id.to_string())))
}

/// Returns the asset for the provider. Clients of 1.10 may send a currency without its decimals. They mean its smallest
/// unit.
fn with_decimals(asset: String) -> String {
    if asset.contains('/') { asset } else { currency::asset(&asset) }
}

fn note(
    payments: &Payments,
    task: &Task,
    connector: &ConnectorId,
    id: &Uuid,
    came: &Result<OrderResult, Failure>,
    now: Timestamp,
) -> Result<bool, ApiError> {
    payments.write(|snapshot| {
        require_installation(snapshot, connector)?;
        let ended = || record::put(&money::terminated(task, now), Expected::Anything);
        let Some(Versioned { value, version }) = find(snapshot, connector, id)? else {
            return Ok((vec![ended()], true));
        };
        let mut transfer = value.clone();
        match came {
            Ok(paid) => {
                transfer.provider_id.clone_from(&paid.provider_id);
                (transfer.status, transfer.error) = match &paid.outcome {
                    OrderState::Done => (TransferStatus::Succeeded, String::new()),
                    OrderState::InProgress => (TransferStatus::Pending, String::new()),
                    OrderState::Failed(reason) => (TransferStatus::Failed, reason.clone()),
                };
            }
            Err(failure) => {
                transfer.error.clone_from(&failure.reason);
                if failure.retry == Retry::Never {
                    transfer.status = TransferStatus::Failed;
                }
            }
        }
        let ends = transfer.status != TransferStatus::Pending;
        let mut changes = vec![];
        if transfer != value {
            changes.push(record::put(&transfer, Expected::Version(version)));
        }
        if ends {
            changes.push(ended());
        }
        Ok((changes, ends))
    })
}
