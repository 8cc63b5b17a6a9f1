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

use crate::api::context::Context;
use crate::api::operations::Auth;
use crate::http::error::ApiError;
use crate::http::response::Reply;

/// Returns the response to a request that was refused before it reached an OAuth operation.
pub(crate) fn refusal(error: &ApiError) -> Reply {
    protocol::refused_early(error)
}

/// Handles a request.
pub(crate) async fn handle(operation: Auth, context: &Context<'_>) -> Result<Reply, ApiError> {
    match operation {
        Auth::Info => Ok(service::info(context)),
        Auth::Health => Ok(service::health(context).await),
        Auth::Ready => Ok(service::ready(context).await),
        Auth::ListClients => clients::list(context).await,
        Auth::CreateClient => clients::create(context).await,
        Auth::ReadClient => clients::read(context).await,
        Auth::UpdateClient => clients::update(context).await,
        Auth::DeleteClient => clients::delete(context).await,
        Auth::CreateSecret => clients::create_secret(context).await,
        Auth::DeleteSecret => clients::delete_secret(context).await,
        Auth::AddScopeToClient => clients::set_scope(context, true).await,
        Auth::DeleteScopeFromClient => clients::set_scope(context, false).await,
        Auth::ListScopes => scopes::list(context).await,
        Auth::CreateScope => scopes::create(context).await,
        Auth::ReadScope => scopes::read(context).await,
        Auth::UpdateScope => scopes::update(context).await,
        Auth::DeleteScope => scopes::delete(context).await,
        Auth::AddTransientScope => scopes::set_transient(context, true).await,
        Auth::DeleteTransientScope => scopes::set_transient(context, false).await,
        Auth::ListUsers => users::list(context).await,
        Auth::ReadUser => users::read(context).await,
        Auth::RotateKeys => keys::rotate(context).await,
        Auth::RevokeKey => keys::revoke(context).await,
        Auth::Configuration => discovery::configuration(context),
        Auth::Keys => discovery::keys(context).await,
        Auth::Token => token::token(context).await,
        Auth::Introspect => token::introspect(context).await,
        Auth::Revoke => token::revoke(context).await,
        Auth::Authorize => authorize::authorize(context).await,
        Auth::Callback => authorize::callback(context).await,
        Auth::UserInfo => authorize::user_info(context),
        Auth::EndSession => authorize::end_session(context).await,
        Auth::LoggedOut => Ok(authorize::logged_out()),
    }
}
