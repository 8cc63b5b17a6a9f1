//! Requests to move money. Each request starts a task, except [`make_transfer`], whose client waits for the provider.

use ledger_store::{DocumentChange, Expected, Snapshot};

use crate::blocking;
use crate::connectors::engine::Engine;
use crate::connectors::money::{self, Action};
use crate::connectors::runner::start_changes;
use crate::connectors::transfers::{self, NewTransfer};
use crate::connectors::{Order, OrderResult, OrderState};
use crate::http::error::{ApiError, Code};
use crate::payments::codec::Metadata;
use crate::payments::enumerations::{InitiationType, TransferStatus};
use crate::payments::ids::ConnectorId;
use crate::payments::initiation::Initiation;
use crate::payments::record;
use crate::payments::service::require_installation;
use crate::payments::task::Task;
use crate::payments::transfer as stored;
use crate::uuid::Uuid;

/// Commits the new state of a transfer initiation together with the start of the task that executes `action`. If they
/// were two commits, a crash between them would leave an initiation that no task ever executes.
///
/// `change` returns the changes of the documents, and the initiation in its new state.
///
/// # Errors
///
/// Returns errors of `change`. `VALIDATION` if the connector moves no money: the new state is recorded, without a task.
/// Also fails if the store cannot be written.
pub(crate) async fn change_initiation(
    engine: &Engine,
    action: Option<Action>,
    change: impl Fn(&Snapshot) -> Result<(Vec<DocumentChange>, Initiation), ApiError> + Send + 'static,
) -> Result<(), ApiError> {
    let begun = engine.clone();
    let (task, refused) = blocking::answer(move || {
        begun.payments().write(|snapshot| {
            let (mut changes, initiation) = change(snapshot)?;
            let Some(action) = action else { return Ok((changes, (None, None))) };
            let connector = &initiation.id.connector;
            require_installation(snapshot, connector)?;
            if let Err(refusal) = check_pays(&begun, connector) {
                return Ok((changes, (None, Some(refusal))));
            }
            let now = begun.0.clock.now();
            let start = money::start(&initiation, action, now);
            let (mut tasks, new_tasks) = start_changes(snapshot, connector, &[start], now)?;
            changes.extend(new_tasks);
            Ok((changes, (tasks.pop(), None)))
        })
    })
    .await?;
    run(engine, task);
    refused.map_or(Ok(()), Err)
}

fn check_pays(engine: &Engine, connector: &ConnectorId) -> Result<(), ApiError> {
    let definition = engine.definition(&connector.provider)?;
    if definition.capabilities.pays {
        return Ok(());
    }
    Err(ApiError::validation(format!("the connector {} moves no money", definition.provider)))
}

/// Starts a recorded task, if its installation runs in this process.
fn run(engine: &Engine, task: Option<Task>) {
    if let Some(task) = task
        && let Some(runner) = engine.runner(&task.connector.installation)
    {
        runner.start(task);
    }
}

/// Records a transfer and starts the task that executes it.
///
/// # Errors
///
/// `VALIDATION` if the connector is not installed or makes no such transfers. Also fails if the store cannot be
/// written.
pub(crate) async fn begin_transfer(
    engine: &Engine,
    connector: &ConnectorId,
    new: NewTransfer,
) -> Result<Uuid, ApiError> {
    check_transfers(engine, connector)?;
    let id = Uuid::random()?;
    let now = engine.0.clock.now();
    let transfer = stored::Transfer {
        id,
        connector: connector.clone(),
        created_at: now,
        amount: new.amount,
        asset: new.asset,
        source: new.source,
        destination: new.destination,
        status: TransferStatus::Pending,
        error: String::new(),
        provider_id: String::new(),
        is_sent: false,
    };
    let start = transfers::start(&id);
    let begun = engine.clone();
    let task = blocking::answer(move || {
        begun.payments().write(|snapshot| {
            require_installation(snapshot, &transfer.connector)?;
            let new_tasks = std::slice::from_ref(&start);
            let (mut tasks, mut changes) = start_changes(snapshot, &transfer.connector, new_tasks, now)?;
            changes.push(record::put(&transfer, Expected::Absent));
            Ok((changes, tasks.pop()))
        })
    })
    .await?;
    run(engine, task);
    Ok(id)
}

/// Executes a transfer while the client waits, and returns the provider's record of the transfer. The server does not
/// store the transfer. It becomes a payment when the provider lists it.
///
/// # Errors
///
/// `VALIDATION` if the connector makes no such transfers, `INTERNAL` if the provider refuses or does not answer.
pub(crate) async fn make_transfer(
    engine: &Engine,
    connector: &ConnectorId,
    new: NewTransfer,
) -> Result<String, ApiError> {
    check_transfers(engine, connector)?;
    let idempotency_key = Uuid::random()?.to_string();
    let transfer = transfers::order_of(new, InitiationType::Transfer, Metadata::new(), idempotency_key);
    let (Some(runner), Some(runtime)) = (engine.runner(&connector.installation), engine.runtime()) else {
        return Err(ApiError::fault("no connectors run in this server"));
    };
    let paid = runtime.spawn(async move { runner.pay(Order::Send(transfer)).await }).await;
    let paid = paid.map_err(|error| ApiError::fault(&error.to_string()))?;
    match paid {
        Ok(OrderResult { outcome: OrderState::Failed(reason), .. }) => Err(refused(reason)),
        Ok(paid) => Ok(paid.raw),
        Err(failure) => Err(refused(failure.reason)),
    }
}

/// Returns the error for a refusal of the provider, with the provider's reason.
fn refused(reason: String) -> ApiError {
    ApiError::new(Code::Internal, reason)
}

fn check_transfers(engine: &Engine, connector: &ConnectorId) -> Result<(), ApiError> {
    let definition = engine.definition(&connector.provider)?;
    if definition.capabilities.transfers {
        return Ok(());
    }
    Err(ApiError::validation(format!("the connector {} makes no transfers", definition.provider)))
}
