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
pub(crate) use query::parse as parse_filter;

use crate::api::context::Context;
use crate::api::operations::V2;
use crate::http::error::ApiError;
use crate::http::response::Reply;

/// Handles a request.
pub(crate) async fn handle(operation: V2, context: &Context<'_>) -> Result<Reply, ApiError> {
    match operation {
        V2::ListLedgers => ledgers::list(context).await,
        V2::CreateLedger => ledgers::create(context).await,
        V2::ReadLedger => ledgers::read(context),
        V2::SetLedgerMetadata => ledgers::set_metadata(context).await,
        V2::DeleteLedgerMetadata => ledgers::delete_metadata(context).await,
        V2::LedgerInfo => info::ledger(context),
        V2::LedgerStats => ledgers::stats(context),
        V2::Bulk => bulk::bulk(context).await,
        V2::ListAccounts => accounts::list(context).await,
        V2::CountAccounts => accounts::count(context).await,
        V2::ReadAccount => accounts::read(context),
        V2::SetAccountMetadata => accounts::set_metadata(context).await,
        V2::DeleteAccountMetadata => accounts::delete_metadata(context).await,
        V2::ListTransactions => transactions::list(context).await,
        V2::CountTransactions => transactions::count(context).await,
        V2::CreateTransaction => transactions::create(context).await,
        V2::ReadTransaction => transactions::read(context),
        V2::RevertTransaction => transactions::revert(context).await,
        V2::SetTransactionMetadata => transactions::set_metadata(context).await,
        V2::DeleteTransactionMetadata => transactions::delete_metadata(context).await,
        V2::AggregatedBalances => volumes::balances(context).await,
        V2::ListVolumes => volumes::list(context).await,
        V2::ListLogs => logs::list(context).await,
        V2::ExportLogs => transfer::export(context).await,
        V2::ImportLogs => transfer::import(context).await,
        V2::StreamEvents => events::stream(context),
        V2::ListExporters => exporters::list(context).await,
        V2::CreateExporter => exporters::create(context).await,
        V2::ReadExporter => exporters::read(context).await,
        V2::UpdateExporter => exporters::update(context).await,
        V2::DeleteExporter => exporters::delete(context).await,
        V2::ListPipelines => pipelines::list(context).await,
        V2::CreatePipeline => pipelines::create(context).await,
        V2::ReadPipeline => pipelines::read(context).await,
        V2::DeletePipeline => pipelines::delete(context).await,
        V2::StartPipeline => pipelines::start(context).await,
        V2::StopPipeline => pipelines::stop(context).await,
        V2::ResetPipeline => pipelines::reset(context).await,
        V2::InsertSchema => schemas::insert(context).await,
        V2::ReadSchema => schemas::read(context),
        V2::ListSchemas => schemas::list(context).await,
        V2::ExplainAccounts => explain::accounts(context).await,
        V2::ExplainTransactions => explain::transactions(context).await,
        V2::ExplainVolumes => explain::volumes(context).await,
        V2::ExplainBalances => explain::balances(context).await,
        V2::ExplainLogs => explain::logs(context).await,
        V2::DeleteBucket => ledgers::change_bucket(context, Store::delete_bucket).await,
        V2::RestoreBucket => ledgers::change_bucket(context, Store::restore_bucket).await,
        V2::RunQuery => queries::run(context).await,
    }
}
