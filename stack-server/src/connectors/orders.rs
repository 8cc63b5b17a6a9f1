//! Requests to move money. Each request starts a task, except [`make_transfer`], whose client waits for the provider.

use ledger_store::Expected;

use crate::blocking;
use crate::connectors::engine::Engine;
use crate::connectors::money::{self, Action};
use crate::connectors::runner::start_changes;
use crate::connectors::transfers::{self, NewTransfer};
use crate::connectors::{Order, Outcome, Paid};
use crate::http::error::{ApiError, Code};
use crate::payments::codec::Metadata;
use crate::payments::ids::{ConnectorId, InitiationId};
use crate::payments::initiation;
use crate::payments::record;
use crate::payments::service::installed;
use crate::payments::task::Task;
use crate::payments::transfer as stored;
use crate::payments::words::{InitiationType, TransferStatus};
use crate::uuid::Uuid;

/// Starts the task that pays or reverses a transfer initiation.
///
/// # Errors
///
/// `VALIDATION` if the connector is not installed or moves no money. Also fails if the store cannot be written.
pub(crate) async fn begin(engine: &Engine, id: &InitiationId, action: Action) -> Result<(), ApiError> {
    let row = engine.row(&id.connector.provider)?;
    if !row.abilities.pays {
        return Err(ApiError::validation(format!("the connector {} moves no money", row.provider)));
    }
    let (begun, id) = (engine.clone(), id.clone());
    let task = blocking::answer(move || {
        let payments = begun.payments();
        payments.write(|snapshot| {
            installed(snapshot, &id.connector)?;
            let Some(found) = initiation::find(snapshot, &id)? else { return Ok((vec![], None)) };
            let now = begun.0.clock.now();
            let start = money::start(&found.value, action, now);
            let (mut tasks, changes) = start_changes(snapshot, &id.connector, &[start], now)?;
            Ok((changes, tasks.pop()))
        })
    })
    .await?;
    run(engine, task);
    Ok(())
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
            installed(snapshot, &transfer.connector)?;
            let starts = std::slice::from_ref(&start);
            let (mut tasks, mut changes) = start_changes(snapshot, &transfer.connector, starts, now)?;
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
        Ok(Paid { outcome: Outcome::Failed(reason), .. }) => Err(refused(reason)),
        Ok(paid) => Ok(paid.raw),
        Err(failure) => Err(refused(failure.reason)),
    }
}

/// Returns the error for a refusal of the provider, with the provider's reason.
fn refused(reason: String) -> ApiError {
    ApiError::new(Code::Internal, reason)
}

fn check_transfers(engine: &Engine, connector: &ConnectorId) -> Result<(), ApiError> {
    let row = engine.row(&connector.provider)?;
    if row.abilities.transfers {
        return Ok(());
    }
    Err(ApiError::validation(format!("the connector {} makes no transfers", row.provider)))
}
