//! The payments API over HTTP. One set of handlers serves the paths and the JSON of stack 1.10 and stack 2.

mod accounts;
mod bank_accounts;
mod connectors;
mod forms;
mod initiations;
mod list;
mod payment;
mod pools;
mod postings;
#[cfg(test)]
mod tests;
mod transfers;

use crate::api::context::Context;
use crate::api::operations::Payments as P;
use crate::http::error::ApiError;
use crate::http::response::Reply;

/// Handles a request.
///
/// # Errors
///
/// Returns the error to send to the client.
pub(crate) async fn handle(operation: P, context: &Context<'_>) -> Result<Reply, ApiError> {
    match operation {
        P::ListPayments => payment::list(context).await,
        P::CreatePayment => payment::create(context).await,
        P::ReadPayment => payment::read(context).await,
        P::SetPaymentMetadata => payment::set_metadata(context).await,
        P::ExplainPayment => postings::explain_payment(context).await,
        P::ListAccounts => accounts::list(context).await,
        P::CreateAccount => accounts::create(context).await,
        P::ReadAccount => accounts::read(context).await,
        P::ListBalances => accounts::balances(context).await,
        P::ListBankAccounts => bank_accounts::list(context).await,
        P::CreateBankAccount => bank_accounts::create(context).await,
        P::ReadBankAccount => bank_accounts::read(context).await,
        P::ForwardBankAccount => bank_accounts::forward(context).await,
        P::SetBankAccountMetadata => bank_accounts::set_metadata(context).await,
        P::ListInitiations => initiations::list(context).await,
        P::CreateInitiation => initiations::create(context).await,
        P::ReadInitiation => initiations::read(context).await,
        P::DeleteInitiation => initiations::delete(context).await,
        P::SetInitiationStatus => initiations::set_status(context).await,
        P::RetryInitiation => initiations::retry(context).await,
        P::ReverseInitiation => initiations::reverse(context).await,
        P::ListPools => pools::list(context).await,
        P::CreatePool => pools::create(context).await,
        P::ReadPool => pools::read(context).await,
        P::DeletePool => pools::delete(context).await,
        P::AddPoolAccount => pools::add_account(context).await,
        P::RemovePoolAccount => pools::remove_account(context).await,
        P::PoolBalances => pools::balances(context).await,
        P::ListConnectors => connectors::list(context).await,
        P::ListConfigs => Ok(connectors::configs(context)),
        P::Install => connectors::install(context).await,
        P::Uninstall => connectors::uninstall(context).await,
        P::ReadConfig => connectors::read_config(context).await,
        P::UpdateConfig => connectors::update_config(context).await,
        P::Reset => connectors::reset(context).await,
        P::ReadPostingRule => postings::read(context).await,
        P::SetPostingRule => postings::set(context).await,
        P::DeletePostingRule => postings::delete(context).await,
        P::RunPostings => postings::run(context).await,
        P::ListTasks => connectors::tasks(context).await,
        P::ReadTask => connectors::task(context).await,
        P::StripeTransfer => transfers::stripe(context).await,
        P::CreateTransfer => transfers::create(context).await,
        P::ListTransfers => transfers::list(context).await,
    }
}
