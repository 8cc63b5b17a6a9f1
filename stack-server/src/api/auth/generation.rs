//! The generation of the API that a client of the authorization server expects.

use crate::api::call::Call;
use crate::api::release::Release;
use crate::settings::Compat;

/// Whether a client shows scopes by their ids, as stack 1.10 does, and knows no scopes of clients in requests.
pub(super) fn is_1_10(call: &Call<'_>) -> bool {
    let by_default = call.app.settings().compat == Compat::V1_10;
    Release::of(call.headers).map_or(by_default, Release::is_1_0)
}
