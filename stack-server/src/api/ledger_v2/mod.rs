//! Version 2 of the ledger API.
//!
//! Handlers only translate: a body or a query string becomes a command or a query, and an outcome or a page becomes a
//! response. The core makes the decisions, and the store has the data. No handler computes a balance.

mod accounts;
mod bulk;
mod bulk_elements;
mod bulk_script;
mod events;
mod explain;
mod exporters;
mod info;
pub(crate) mod known_schemas;
mod ledgers;
mod list;
mod logs;
mod pipelines;
mod queries;
mod query;
mod schemas;
mod transactions;
mod transfer;
mod volumes;
mod wire;
mod write;

use ledger_store::Store;

#[cfg(feature = "testing")]
#[cfg(feature = "testing")]
pub(crate) use query::parse as parse_filter;

use crate::api::call::Call;
use crate::api::operations::V2;
use crate::http::error::ApiError;
use crate::http::response::Reply;

/// Handles a request.
pub(crate) async fn answer(operation: V2, call: &Call<'_>) -> Result<Reply, ApiError> {
    match operation {
        V2::ListLedgers => ledgers::list(call).await,
        V2::CreateLedger => ledgers::create(call).await,
        V2::ReadLedger => ledgers::read(call),
        V2::SetLedgerMetadata => ledgers::set_metadata(call).await,
        V2::DeleteLedgerMetadata => ledgers::delete_metadata(call).await,
        V2::LedgerInfo => info::ledger(call),
        V2::LedgerStats => ledgers::stats(call),
        V2::Bulk => bulk::bulk(call).await,
        V2::ListAccounts => accounts::list(call).await,
        V2::CountAccounts => accounts::count(call).await,
        V2::ReadAccount => accounts::read(call),
        V2::SetAccountMetadata => accounts::set_metadata(call).await,
        V2::DeleteAccountMetadata => accounts::delete_metadata(call).await,
        V2::ListTransactions => transactions::list(call).await,
        V2::CountTransactions => transactions::count(call).await,
        V2::CreateTransaction => transactions::create(call).await,
        V2::ReadTransaction => transactions::read(call),
        V2::RevertTransaction => transactions::revert(call).await,
        V2::SetTransactionMetadata => transactions::set_metadata(call).await,
        V2::DeleteTransactionMetadata => transactions::delete_metadata(call).await,
        V2::AggregatedBalances => volumes::balances(call).await,
        V2::ListVolumes => volumes::list(call).await,
        V2::ListLogs => logs::list(call).await,
        V2::ExportLogs => transfer::export(call).await,
        V2::ImportLogs => transfer::import(call).await,
        V2::StreamEvents => events::stream(call),
        V2::ListExporters => exporters::list(call).await,
        V2::CreateExporter => exporters::create(call).await,
        V2::ReadExporter => exporters::read(call).await,
        V2::UpdateExporter => exporters::update(call).await,
        V2::DeleteExporter => exporters::delete(call).await,
        V2::ListPipelines => pipelines::list(call).await,
        V2::CreatePipeline => pipelines::create(call).await,
        V2::ReadPipeline => pipelines::read(call).await,
        V2::DeletePipeline => pipelines::delete(call).await,
        V2::StartPipeline => pipelines::start(call).await,
        V2::StopPipeline => pipelines::stop(call).await,
        V2::ResetPipeline => pipelines::reset(call).await,
        V2::InsertSchema => schemas::insert(call).await,
        V2::ReadSchema => schemas::read(call),
        V2::ListSchemas => schemas::list(call).await,
        V2::ExplainAccounts => explain::accounts(call).await,
        V2::ExplainTransactions => explain::transactions(call).await,
        V2::ExplainVolumes => explain::volumes(call).await,
        V2::ExplainBalances => explain::balances(call).await,
        V2::ExplainLogs => explain::logs(call).await,
        V2::DeleteBucket => ledgers::mark_bucket(call, Store::delete_bucket).await,
        V2::RestoreBucket => ledgers::mark_bucket(call, Store::restore_bucket).await,
        V2::RunQuery => queries::run(call).await,
    }
}
