//! Rotation and revocation of signing keys.

use crate::api::call::Call;
use crate::http::error::ApiError;
use crate::http::response::{self, Reply};

pub(super) async fn rotate(call: &Call<'_>) -> Result<Reply, ApiError> {
    let authority = call.authority()?;
    call.app.blocking(move |_| authority.rotate()).await?;
    Ok(response::no_content())
}

pub(super) async fn revoke(call: &Call<'_>) -> Result<Reply, ApiError> {
    let (authority, id) = (call.authority()?, call.variable(0).to_owned());
    call.app.blocking(move |_| authority.revoke_key(&id)).await?;
    Ok(response::no_content())
}
