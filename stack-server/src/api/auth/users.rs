//! Users: list and read them.

use hyper::StatusCode;

use crate::api::context::Context;
use crate::auth::resources::users::{self, User};
use crate::http::error::ApiError;
use crate::http::response::{Json, Reply};

pub(super) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let all = context.app.blocking(|store| Ok(users::users(&store.snapshot())?)).await?;
    let mut json = context.json();
    json.raw("{\"data\":[").list(&all, write).raw("]}");
    Ok(json.reply(StatusCode::OK))
}

pub(super) async fn read(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = context.variable(0).to_owned();
    let found = context.app.blocking(move |store| Ok(users::user(&store.snapshot(), &id)?)).await?;
    let user = found.ok_or_else(|| ApiError::not_found("user not found"))?;
    let mut json = context.json();
    json.raw("{\"data\":");
    write(&mut json, &user);
    json.raw("}");
    Ok(json.reply(StatusCode::OK))
}

fn write(json: &mut Json, user: &User) {
    json.raw("{\"id\":").string(&user.id).raw(",\"subject\":").string(&user.subject);
    json.raw(",\"email\":").string(&user.email).raw("}");
}
