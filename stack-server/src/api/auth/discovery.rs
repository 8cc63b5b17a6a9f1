//! Documents that clients read before they request a token.

use hyper::StatusCode;
use serde_json::{Value, json};

use crate::api::context::Context;
use crate::auth::authority::Authority;
use crate::auth::grants::authenticate::opened;
use crate::http::error::ApiError;
use crate::http::response::Reply;

/// Returns the discovery document.
pub(super) fn configuration(context: &Context<'_>) -> Result<Reply, ApiError> {
    let mut json = context.json();
    json.raw(&document(context.authority()?.as_ref()).to_string());
    Ok(json.reply(StatusCode::OK))
}

fn document(authority: &Authority) -> Value {
    let issuer = authority.issuer();
    let at = |path: &str| format!("{issuer}{path}");
    let methods = json!(["client_secret_basic", "client_secret_post", "none"]);
    json!({
        "issuer": issuer,
        "authorization_endpoint": at("/authorize"),
        "token_endpoint": at("/oauth/token"),
        "introspection_endpoint": at("/oauth/introspect"),
        "userinfo_endpoint": at("/userinfo"),
        "revocation_endpoint": at("/revoke"),
        "end_session_endpoint": at("/end_session"),
        "jwks_uri": at("/keys"),
        "scopes_supported": ["openid", "email", "offline_access"],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": if authority.provider.is_some() { &GRANTS[..] } else { &GRANTS[..1] },
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "token_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "introspection_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "claims_supported": ["sub", "aud", "exp", "iat", "iss", "auth_time", "nonce", "email", "email_verified"],
        "code_challenge_methods_supported": ["S256"],
        "request_parameter_supported": false,
        "request_uri_parameter_supported": false
    })
}

/// The supported grants. Without an identity provider, only the first is available.
const GRANTS: [&str; 4] = [
    "client_credentials",
    "authorization_code",
    "refresh_token",
    "urn:ietf:params:oauth:grant-type:jwt-bearer",
];

/// Returns the public parts of the signing keys.
pub(super) async fn keys(context: &Context<'_>) -> Result<Reply, ApiError> {
    let authority = context.authority()?;
    let Ok(opened) = opened(&authority).await else {
        return Err(ApiError::busy("the keys of the authorization server cannot be had"));
    };
    let keys: Vec<Value> = opened.keys.all().map(crate::auth::keys::signing::SigningKey::public).collect();
    let mut json = context.json();
    json.raw(&json!({ "keys": keys }).to_string());
    Ok(json.reply(StatusCode::OK))
}
