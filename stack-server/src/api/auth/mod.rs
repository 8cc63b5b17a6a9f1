//! The HTTP endpoints of the authorization server.
//!
//! Handlers translate between requests and `crate::auth`, which makes the decisions. This module has no state.

mod authorize;
mod clients;
mod discovery;
pub(crate) mod form;
mod generation;
mod keys;
mod protocol;
mod scopes;
mod service;
mod token;
mod users;

use crate::api::call::Call;
use crate::api::operations::Auth;
use crate::http::error::ApiError;
use crate::http::response::Reply;

/// Returns the response to a request that was refused before it reached an OAuth operation.
pub(crate) fn refusal(error: &ApiError) -> Reply {
    protocol::refused_early(error)
}

/// Handles a request.
pub(crate) async fn answer(operation: Auth, call: &Call<'_>) -> Result<Reply, ApiError> {
    match operation {
        Auth::Info => Ok(service::info(call)),
        Auth::Health => Ok(service::health(call).await),
        Auth::Ready => Ok(service::ready(call).await),
        Auth::ListClients => clients::list(call).await,
        Auth::CreateClient => clients::create(call).await,
        Auth::ReadClient => clients::read(call).await,
        Auth::UpdateClient => clients::update(call).await,
        Auth::DeleteClient => clients::delete(call).await,
        Auth::CreateSecret => clients::create_secret(call).await,
        Auth::DeleteSecret => clients::delete_secret(call).await,
        Auth::AddScopeToClient => clients::set_scope(call, true).await,
        Auth::DeleteScopeFromClient => clients::set_scope(call, false).await,
        Auth::ListScopes => scopes::list(call).await,
        Auth::CreateScope => scopes::create(call).await,
        Auth::ReadScope => scopes::read(call).await,
        Auth::UpdateScope => scopes::update(call).await,
        Auth::DeleteScope => scopes::delete(call).await,
        Auth::AddTransientScope => scopes::set_transient(call, true).await,
        Auth::DeleteTransientScope => scopes::set_transient(call, false).await,
        Auth::ListUsers => users::list(call).await,
        Auth::ReadUser => users::read(call).await,
        Auth::RotateKeys => keys::rotate(call).await,
        Auth::RevokeKey => keys::revoke(call).await,
        Auth::Configuration => discovery::configuration(call),
        Auth::Keys => discovery::keys(call).await,
        Auth::Token => token::token(call).await,
        Auth::Introspect => token::introspect(call).await,
        Auth::Revoke => token::revoke(call).await,
        Auth::Authorize => authorize::authorize(call).await,
        Auth::Callback => authorize::callback(call).await,
        Auth::UserInfo => authorize::user_info(call),
        Auth::EndSession => authorize::end_session(call).await,
        Auth::LoggedOut => Ok(authorize::logged_out()),
    }
}
