//! The first generation of the ledger's API.
//!
//! Handlers translate, as those of the second generation do; both work on the same ledgers. A ledger that is
//! not there reads as an empty one, and comes into being with the first write.

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
pub(crate) use error::{refusal, word};

use crate::api::call::Call;
use crate::api::operations::V1;
use crate::http::response::Reply;

/// Answers a request by its operation. Refusals are answered here too, since this generation has a form and words
/// of its own for them.
pub(crate) async fn answer(operation: V1, call: &Call<'_>) -> Reply {
    let answer = match operation {
        V1::LedgerInfo => ledger::info(call),
        V1::Stats => ledger::stats(call),
        V1::ListAccounts => accounts::list(call).await,
        V1::CountAccounts => accounts::count(call).await,
        V1::ReadAccount => accounts::read(call),
        V1::SetAccountMetadata => accounts::set_metadata(call).await,
        V1::DeleteAccountMetadata => accounts::delete_metadata(call).await,
        V1::ListTransactions => transactions::list(call).await,
        V1::CountTransactions => transactions::count(call).await,
        V1::CreateTransaction => transactions::create(call).await,
        V1::CreateBatch => transactions::create_batch(call).await,
        V1::ReadTransaction => transactions::read(call),
        V1::RevertTransaction => transactions::revert(call).await,
        V1::SetTransactionMetadata => transactions::set_metadata(call).await,
        V1::DeleteTransactionMetadata => transactions::delete_metadata(call).await,
        V1::RunScript => script::run(call).await,
        V1::ReadMapping => mapping::read(call),
        V1::UpdateMapping => mapping::update(call).await,
        V1::ListBalances => balances::list(call).await,
        V1::AggregatedBalances => balances::aggregated(call).await,
        V1::ListLogs => logs::list(call).await,
    };
    answer.unwrap_or_else(|error| refusal(&error))
}
