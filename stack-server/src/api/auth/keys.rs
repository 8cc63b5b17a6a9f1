//! Rotation and revocation of signing keys.

use crate::api::context::Context;
use crate::http::error::ApiError;
use crate::http::response::{self, Reply};

pub(super) async fn rotate(context: &Context<'_>) -> Result<Reply, ApiError> {
    let authority = context.authority()?;
    context.app.blocking(move |_| authority.rotate()).await?;
    Ok(response::no_content())
}

pub(super) async fn revoke(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (authority, id) = (context.authority()?, context.variable(0).to_owned());
    context.app.blocking(move |_| authority.revoke_key(&id)).await?;
    Ok(response::no_content())
}
