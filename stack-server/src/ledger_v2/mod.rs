//! The second generation of the ledger's API.
//!
//! Handlers translate: a body or a query becomes a command or a question, an outcome or a page becomes an answer.
//! What is allowed is decided in the core, what there is is known by the store; no handler computes a balance.

mod accounts;
mod bulk;
mod bulk_script;
mod idempotency;
mod info;
mod ledgers;
mod list;
mod logs;
mod query;
mod transactions;
mod volumes;
mod wire;
mod write;

use crate::call::Call;
use crate::error::ApiError;
use crate::response::Reply;
use crate::router::Operation;
use crate::service;

/// Answers a request by its operation.
pub(crate) async fn answer(operation: Operation, call: &Call<'_>) -> Result<Reply, ApiError> {
    match operation {
        Operation::ListLedgers => ledgers::list(call).await,
        Operation::CreateLedger => ledgers::create(call).await,
        Operation::ReadLedger => ledgers::read(call),
        Operation::SetLedgerMetadata => ledgers::set_metadata(call).await,
        Operation::DeleteLedgerMetadata => ledgers::delete_metadata(call).await,
        Operation::LedgerInfo => info::ledger(call),
        Operation::LedgerStats => ledgers::stats(call),
        Operation::Bulk => bulk::bulk(call).await,
        Operation::ListAccounts => accounts::list(call).await,
        Operation::CountAccounts => accounts::count(call).await,
        Operation::ReadAccount => accounts::read(call),
        Operation::SetAccountMetadata => accounts::set_metadata(call).await,
        Operation::DeleteAccountMetadata => accounts::delete_metadata(call).await,
        Operation::ListTransactions => transactions::list(call).await,
        Operation::CountTransactions => transactions::count(call).await,
        Operation::CreateTransaction => transactions::create(call).await,
        Operation::ReadTransaction => transactions::read(call),
        Operation::RevertTransaction => transactions::revert(call).await,
        Operation::SetTransactionMetadata => transactions::set_metadata(call).await,
        Operation::DeleteTransactionMetadata => transactions::delete_metadata(call).await,
        Operation::AggregatedBalances => volumes::balances(call).await,
        Operation::ListVolumes => volumes::list(call).await,
        Operation::ListLogs => logs::list(call).await,
        Operation::Info(form) => service::info(call, form),
        Operation::Health(form) => Ok(service::health(call, form)),
        Operation::Versions => Ok(service::versions(call)),
    }
}
