//! Version 1 of the ledger API.
//!
//! Like those of v2, the handlers only translate; both versions work on the same ledgers. A missing ledger reads as an
//! empty one, and the first write creates it.

mod accounts;
mod balances;
mod client;
mod error;
mod expression;
mod filter;
mod ledger;
mod list;
mod logs;
mod mapping;
pub(crate) mod rules;
mod script;
mod transactions;
mod wire;
mod write;

pub(crate) use client::Client;
pub(crate) use error::{refusal, v1_code};

use crate::api::context::Context;
use crate::api::operations::V1;
use crate::http::response::Reply;

/// Handles a request. Also builds the error responses, because v1 has its own codes and form for them.
pub(crate) async fn handle(operation: V1, context: &Context<'_>) -> Reply {
    let answer = match operation {
        V1::LedgerInfo => ledger::info(context),
        V1::Stats => ledger::stats(context),
        V1::ListAccounts => accounts::list(context).await,
        V1::CountAccounts => accounts::count(context).await,
        V1::ReadAccount => accounts::read(context),
        V1::SetAccountMetadata => accounts::set_metadata(context).await,
        V1::DeleteAccountMetadata => accounts::delete_metadata(context).await,
        V1::ListTransactions => transactions::list(context).await,
        V1::CountTransactions => transactions::count(context).await,
        V1::CreateTransaction => transactions::create(context).await,
        V1::CreateBatch => transactions::create_batch(context).await,
        V1::ReadTransaction => transactions::read(context),
        V1::RevertTransaction => transactions::revert(context).await,
        V1::SetTransactionMetadata => transactions::set_metadata(context).await,
        V1::DeleteTransactionMetadata => transactions::delete_metadata(context).await,
        V1::RunScript => script::run(context).await,
        V1::ReadMapping => mapping::read(context),
        V1::UpdateMapping => mapping::update(context).await,
        V1::ListBalances => balances::list(context).await,
        V1::AggregatedBalances => balances::aggregated(context).await,
        V1::ListLogs => logs::list(context).await,
    };
    answer.unwrap_or_else(|error| refusal(&error))
}
