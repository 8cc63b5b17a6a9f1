//! Distinguishes clients of stack 1.10 from later clients of the authorization server.

use crate::api::context::Context;
use crate::api::release::Release;
use crate::settings::Compat;

/// Returns whether the client expects the API of stack 1.10, where the scopes of clients are ids in responses and
/// absent in requests. The API documents of stack 1.10, and so its SDKs, have the release number 1.0.
pub(super) fn is_1_10(context: &Context<'_>) -> bool {
    let by_default = context.app.settings().compat == Compat::V1_10;
    Release::of(context.headers).map_or(by_default, Release::is_1_0)
}
