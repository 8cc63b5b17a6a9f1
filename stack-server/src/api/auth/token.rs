//! The endpoints that issue, revoke and inspect tokens.

use std::sync::Arc;
use std::time::Instant;

use hyper::StatusCode;
use serde_json::json;

use crate::api::auth::form::Form;
use crate::api::auth::generation::is_1_10;
use crate::api::auth::protocol;
use crate::api::context::Context;
use crate::auth::authority::Authority;
use crate::auth::grants::authenticate::{authenticate, opened, refusal};
use crate::auth::grants::caller::Caller;
use crate::auth::grants::error::{ErrorCode, OAuthError};
use crate::auth::grants::issue::{self, AccessClaims, CLIENT_TOKEN_SECONDS, Tokens};
use crate::auth::guard::token::Token;
use crate::auth::rate_limiter::Verdict;
use crate::http::error::ApiError;
use crate::http::response::{self, Reply};

pub(super) async fn token(context: &Context<'_>) -> Result<Reply, ApiError> {
    let form = match Form::of(context) {
        Ok(form) => form,
        Err(error) => return Ok(protocol::refusal(&error, None)),
    };
    let authority = context.authority()?;
    Ok(match grant(context, &authority, &form).await {
        Ok(granted) => write(context, &granted, authority.now()),
        Err(error) => protocol::refusal(&error, form.get("state")),
    })
}

async fn grant(context: &Context<'_>, authority: &Arc<Authority>, form: &Form) -> Result<Tokens, OAuthError> {
    let grant = form.get("grant_type");
    if context.app.settings().read_only && grant != Some("client_credentials") {
        return Err(OAuthError::new(ErrorCode::TemporarilyUnavailable, "the server only reads at present"));
    }
    match grant {
        Some("client_credentials") => client_credentials(context, authority, form).await,
        Some("authorization_code") => authorization_code(context, authority, form).await,
        Some("refresh_token") => refresh_token(context, authority, form).await,
        Some(ASSERTION) if authority.provider.is_some() => assertion(context, authority, form).await,
        None => Err(OAuthError::new(ErrorCode::InvalidRequest, "grant_type missing")),
        Some(_) => Err(OAuthError::new(ErrorCode::UnsupportedGrantType, "grant_type not supported")),
    }
}

/// Authenticates the client of a request.
async fn caller(
    context: &Context<'_>,
    authority: &Arc<Authority>,
    form: &Form,
) -> Result<Caller, OAuthError> {
    let credentials = form.credentials(context.headers)?.ok_or_else(OAuthError::invalid_client)?;
    authenticate(authority, &credentials, protocol::address(context, authority)).await
}

/// Authenticates the client like [`caller`], for grants where clients expect a description of the error.
async fn caller_with_description(
    context: &Context<'_>,
    authority: &Arc<Authority>,
    form: &Form,
) -> Result<Caller, OAuthError> {
    caller(context, authority, form).await.map_err(|error| match error.code {
        ErrorCode::InvalidClient => {
            OAuthError::new(ErrorCode::InvalidClient, "invalid client_id / client_secret")
        }
        _ => error,
    })
}

async fn client_credentials(
    context: &Context<'_>,
    authority: &Arc<Authority>,
    form: &Form,
) -> Result<Tokens, OAuthError> {
    let caller = caller(context, authority, form).await?;
    if caller.public {
        return Err(OAuthError::new(
            ErrorCode::UnauthorizedClient,
            "a public client has no credentials of its own",
        ));
    }
    let scopes = caller.granted(&context.app.snapshot(), form.get("scope").unwrap_or_default())?;
    let signer = authority.clone();
    let sign = move || {
        let access = AccessClaims {
            client: Some(&caller.id),
            audience: json!([caller.id]),
            subject: None,
            session: None,
            scopes: &scopes,
            seconds: CLIENT_TOKEN_SECONDS,
        };
        issue::sign_access(&signer, &access)
    };
    Ok(authority.signing.run(sign).await??.into())
}

async fn authorization_code(
    context: &Context<'_>,
    authority: &Arc<Authority>,
    form: &Form,
) -> Result<Tokens, OAuthError> {
    let caller = caller_with_description(context, authority, form).await?;
    let [code, redirect_uri] = ["code", "redirect_uri"].map(|name| form.need(name).map(str::to_owned));
    let (code, redirect_uri) = (code?, redirect_uri?);
    let verifier = form.get("code_verifier").map(str::to_owned);
    let signer = authority.clone();
    let exchange = move || signer.exchange_code(&caller, &code, &redirect_uri, verifier.as_deref());
    authority.signing.run(exchange).await?
}

async fn refresh_token(
    context: &Context<'_>,
    authority: &Arc<Authority>,
    form: &Form,
) -> Result<Tokens, OAuthError> {
    let caller = caller_with_description(context, authority, form).await?;
    let token = form.need("refresh_token")?.to_owned();
    let scope = form.get("scope").map(str::to_owned);
    let signer = authority.clone();
    authority.signing.run(move || signer.refresh(&caller, &token, scope.as_deref())).await?
}

/// The grant for an assertion of the identity provider (RFC 7523). The client need not identify itself.
const ASSERTION: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

async fn assertion(
    context: &Context<'_>,
    authority: &Arc<Authority>,
    form: &Form,
) -> Result<Tokens, OAuthError> {
    let client = match form.credentials(context.headers)? {
        Some(credentials) => {
            Some(authenticate(authority, &credentials, protocol::address(context, authority)).await?.id)
        }
        None => None,
    };
    opened(authority).await?;
    let text = form.need("assertion")?;
    // Count wrong assertions like wrong secrets, by address, because no client is named.
    let (address, now) = (protocol::address(context, authority), Instant::now());
    let issuer = address.to_string();
    let verdict = authority.rates.try_once(&issuer, address, now);
    if verdict == Verdict::Refused {
        return Err(refusal(verdict));
    }
    let refused = || OAuthError::new(ErrorCode::InvalidGrant, "the assertion is not good");
    let provider = authority.provider.as_ref().ok_or_else(refused)?;
    if provider.valid_token(text, authority.now()).await.is_none() {
        return Err(refused());
    }
    authority.rates.give_back(&issuer, address);
    let (text, requested) = (text.to_owned(), form.get("scope").unwrap_or_default().to_owned());
    let (signer, is_1_10) = (authority.clone(), is_1_10(context));
    let accept = move || {
        // The provider has just accepted this text.
        let token = Token::parse(&text).ok_or_else(refused)?;
        signer.accept_assertion(client.as_deref(), &token, &requested, is_1_10)
    };
    Ok(authority.signing.run(accept).await??.into())
}

fn write(context: &Context<'_>, granted: &Tokens, now: u64) -> Reply {
    let mut json = context.json();
    json.raw("{\"access_token\":").plain_string(&granted.access.text);
    json.raw(",\"token_type\":\"Bearer\",\"expires_in\":");
    json.integer(granted.access.expires.saturating_sub(now));
    for (name, token) in [("refresh_token", &granted.refresh), ("id_token", &granted.id)] {
        if let Some(token) = token {
            json.raw(",").plain_string(name).raw(":").plain_string(token);
        }
    }
    json.raw("}");
    let mut reply = json.reply(StatusCode::OK);
    response::forbid_storing(&mut reply);
    reply
}

/// Revokes a token. Succeeds for an unknown token and for that of another client, without a change.
pub(super) async fn revoke(context: &Context<'_>) -> Result<Reply, ApiError> {
    let authority = context.authority()?;
    let revoked = async {
        let form = Form::of(context)?;
        let caller = caller(context, &authority, &form).await?;
        let token = form.need("token")?.to_owned();
        let revoking = authority.clone();
        context.app.blocking(move |_| revoking.revoke_token(&caller.id, &token)).await?;
        Ok::<_, OAuthError>(())
    };
    Ok(match revoked.await {
        Ok(()) => response::empty(StatusCode::OK),
        Err(error) => {
            let mut reply = protocol::refusal(&error, None);
            // Only the token endpoint reports a fault of the server with status 400.
            if error.code == ErrorCode::ServerError {
                *reply.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            }
            reply
        }
    })
}

/// Returns the claims of a token to a trusted client, or to a client in the audience of the token.
pub(super) async fn introspect(context: &Context<'_>) -> Result<Reply, ApiError> {
    let authority = context.authority()?;
    let asked = async {
        let form = Form::of(context)?;
        let caller = caller(context, &authority, &form).await?;
        if caller.public {
            return Err(OAuthError::invalid_client());
        }
        Ok(authority.introspect(&caller, form.need("token")?)?)
    };
    Ok(match asked.await {
        Ok(found) => {
            let found = found.unwrap_or_else(|| json!({"active": false}));
            let mut json = context.json();
            json.raw(&found.to_string());
            let mut reply = json.reply(StatusCode::OK);
            response::forbid_storing(&mut reply);
            reply
        }
        Err(error) => protocol::refusal(&error, None),
    })
}
