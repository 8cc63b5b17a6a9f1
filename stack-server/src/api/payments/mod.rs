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
mod transfers;

use crate::api::call::Call;
use crate::api::operations::Payments as P;
use crate::http::error::ApiError;
use crate::http::response::Reply;

/// Handles a request.
///
/// # Errors
///
/// Returns the error to send to the client.
pub(crate) async fn answer(operation: P, call: &Call<'_>) -> Result<Reply, ApiError> {
    match operation {
        P::ListPayments => payment::list(call).await,
        P::CreatePayment => payment::create(call).await,
        P::ReadPayment => payment::read(call).await,
        P::SetPaymentMetadata => payment::set_metadata(call).await,
        P::ExplainPayment => postings::explain_payment(call).await,
        P::ListAccounts => accounts::list(call).await,
        P::CreateAccount => accounts::create(call).await,
        P::ReadAccount => accounts::read(call).await,
        P::ListBalances => accounts::balances(call).await,
        P::ListBankAccounts => bank_accounts::list(call).await,
        P::CreateBankAccount => bank_accounts::create(call).await,
        P::ReadBankAccount => bank_accounts::read(call).await,
        P::ForwardBankAccount => bank_accounts::forward(call).await,
        P::SetBankAccountMetadata => bank_accounts::set_metadata(call).await,
        P::ListInitiations => initiations::list(call).await,
        P::CreateInitiation => initiations::create(call).await,
        P::ReadInitiation => initiations::read(call).await,
        P::DeleteInitiation => initiations::delete(call).await,
        P::SetInitiationStatus => initiations::set_status(call).await,
        P::RetryInitiation => initiations::retry(call).await,
        P::ReverseInitiation => initiations::reverse(call).await,
        P::ListPools => pools::list(call).await,
        P::CreatePool => pools::create(call).await,
        P::ReadPool => pools::read(call).await,
        P::DeletePool => pools::delete(call).await,
        P::AddPoolAccount => pools::add_account(call).await,
        P::RemovePoolAccount => pools::remove_account(call).await,
        P::PoolBalances => pools::balances(call).await,
        P::ListConnectors => connectors::list(call).await,
        P::ListConfigs => Ok(connectors::configs(call)),
        P::Install => connectors::install(call).await,
        P::Uninstall => connectors::uninstall(call).await,
        P::ReadConfig => connectors::read_config(call).await,
        P::UpdateConfig => connectors::update_config(call).await,
        P::Reset => connectors::reset(call).await,
        P::ReadPostingRule => postings::read(call).await,
        P::SetPostingRule => postings::set(call).await,
        P::DeletePostingRule => postings::delete(call).await,
        P::RunPostings => postings::run(call).await,
        P::ListTasks => connectors::tasks(call).await,
        P::ReadTask => connectors::task(call).await,
        P::StripeTransfer => transfers::stripe(call).await,
        P::CreateTransfer => transfers::create(call).await,
        P::ListTransfers => transfers::list(call).await,
    }
}
