//! Login endpoints: the request of a client, the redirects to the identity provider and back, and the end of a session.

use std::sync::Arc;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::StatusCode;
use hyper::header::{COOKIE, HeaderValue, LOCATION, SET_COOKIE};
use ledger_store::{Expected, Snapshot};
use sha2::{Digest as _, Sha256};

use crate::api::auth::form::Form;
use crate::api::auth::protocol;
use crate::api::context::Context;
use crate::auth::authority::{Authority, MOUNT};
use crate::auth::grants::authenticate::{find, opened};
use crate::auth::grants::caller::Caller;
use crate::auth::grants::error::{ErrorCode, OAuthError};
use crate::auth::grants::pending::{self, LOGIN_SECONDS, Pending, Stage};
use crate::auth::grants::provider::{Binding, Identity, Provider};
use crate::auth::guard::bearer_of;
use crate::auth::guard::token::CLOCK_LEEWAY;
use crate::auth::keys::random_uuid;
use crate::auth::keys::vault::{Use, Vault, same_secret};
use crate::auth::rate_limiter::Verdict;
use crate::auth::resources::users;
use crate::http::error::ApiError;
use crate::http::request::encode_form;
use crate::http::response::{self, Json, Numbers, Reply};
use crate::limits::AUTH_TEXT_BYTES_MAX;

/// Returns a redirect that must not be cached.
fn redirect(to: &str) -> Result<Reply, OAuthError> {
    let location = HeaderValue::from_str(to);
    let location = location.map_err(|_| {
        OAuthError::new(ErrorCode::InvalidRequest, "the redirect URI is not a valid header value")
    })?;
    let mut reply = response::empty(StatusCode::FOUND);
    reply.headers_mut().insert(LOCATION, location);
    response::forbid_storing(&mut reply);
    Ok(reply)
}

/// Appends parameters to the query of an address.
fn with_parameters(address: &str, parameters: &[(&str, Option<&str>)]) -> String {
    let mut address = address.to_owned();
    for (name, value) in parameters {
        let Some(value) = value else { continue };
        address.push(if address.contains('?') { '&' } else { '?' });
        address.push_str(&format!("{name}={}", encode_form(value)));
    }
    address
}

/// Returns whether an address is registered, compared byte by byte, and has a scheme to which a browser may be
/// redirected.
fn is_registered(list: &[String], address: &str) -> bool {
    let is_web = address.starts_with("https://") || address.starts_with("http://");
    is_web && !address.contains('#') && list.iter().any(|have| have == address)
}

/// Returns the error of a server without an identity provider, where no user can log in.
fn no_provider() -> Reply {
    let error = OAuthError::new(
        ErrorCode::TemporarilyUnavailable,
        "no identity provider is configured: nobody can log in",
    );
    let mut reply = protocol::refusal(&error, None);
    *reply.status_mut() = StatusCode::BAD_REQUEST;
    reply
}

pub(super) async fn authorize(context: &Context<'_>) -> Result<Reply, ApiError> {
    let authority = context.authority()?;
    let Some(provider) = authority.provider.as_ref() else { return Ok(no_provider()) };
    let form = match Form::of(context) {
        Ok(form) => form,
        Err(error) => return Ok(protocol::refusal(&error, None)),
    };
    // Do not redirect before the redirect URI is known to belong to the client.
    let (Some(client), Some(redirect_uri)) = (form.get("client_id"), form.get("redirect_uri")) else {
        return Ok(protocol::text(StatusCode::BAD_REQUEST, "client_id or redirect_uri missing"));
    };
    let caller = find(&authority, client)?;
    let Some(caller) = caller.filter(|caller| is_registered(&caller.redirect_uris, redirect_uri)) else {
        return Ok(protocol::text(StatusCode::BAD_REQUEST, "the client, or its redirect URI, is unknown"));
    };
    let state = form.get("state");
    let begun = match request(&context.app.snapshot(), &form, &caller, redirect_uri, authority.now()) {
        Ok(request) => begin(context, &authority, provider, &form, request).await,
        Err(error) => Err(error),
    };
    Ok(match begun {
        Ok(reply) => reply,
        Err(error) => {
            error.log_cause();
            let parameters = [
                ("error", Some(error.code.text())),
                ("error_description", error.description.as_deref()),
                ("state", state),
            ];
            let answer = redirect(&with_parameters(redirect_uri, &parameters));
            answer.unwrap_or_else(|error| protocol::refusal(&error, state))
        }
    })
}

/// Reads the authorization request of a client. `now` is in seconds since the Unix epoch.
fn request(
    snapshot: &Snapshot,
    form: &Form,
    caller: &Caller,
    redirect_uri: &str,
    now: u64,
) -> Result<Pending, OAuthError> {
    match form.get("response_type") {
        Some("code") => {}
        None => return Err(OAuthError::new(ErrorCode::InvalidRequest, "response_type missing")),
        Some(_) => return Err(OAuthError::new(ErrorCode::UnauthorizedClient, "response_type not supported")),
    }
    for name in ["request", "request_uri"] {
        if form.get(name).is_some() {
            return Err(OAuthError::new(ErrorCode::InvalidRequest, format!("{name} not supported")));
        }
    }
    let wanted = form.get("scope").unwrap_or_default();
    if wanted.split(' ').all(|scope| scope != "openid") {
        return Err(OAuthError::new(ErrorCode::InvalidScope, "the scope openid is missing"));
    }
    let challenge = match (form.get("code_challenge"), form.get("code_challenge_method")) {
        (Some(challenge), Some("S256")) => Some((challenge.to_owned(), true)),
        (Some(challenge), None | Some("plain")) => Some((challenge.to_owned(), false)),
        (Some(_), Some(_)) => {
            return Err(OAuthError::new(ErrorCode::InvalidRequest, "code_challenge_method not supported"));
        }
        (None, Some(_)) => return Err(OAuthError::new(ErrorCode::InvalidRequest, "code_challenge missing")),
        (None, None) => None,
    };
    if caller.public && challenge.is_none() {
        return Err(OAuthError::new(ErrorCode::InvalidRequest, "code_challenge required"));
    }
    let max_age: Option<u64> = match form.get("max_age").map(str::parse) {
        _ if wants_new_login(form) => Some(0),
        None => None,
        Some(Ok(seconds)) => Some(seconds),
        Some(Err(_)) => {
            return Err(OAuthError::new(ErrorCode::InvalidRequest, "max_age is not a number of seconds"));
        }
    };
    let texts = ["state", "nonce", "code_challenge"].map(|name| form.get(name).unwrap_or_default().len());
    if texts.iter().any(|length| *length > AUTH_TEXT_BYTES_MAX) {
        return Err(OAuthError::new(ErrorCode::InvalidRequest, "a parameter is too long"));
    }
    Ok(Pending {
        id: random_uuid()?,
        client: caller.id.clone(),
        client_created: caller.created,
        redirect_uri: redirect_uri.to_owned(),
        scopes: caller.granted_at_login(snapshot, wanted)?,
        state: form.get("state").map(str::to_owned),
        nonce: form.get("nonce").map(str::to_owned),
        challenge,
        login_since: max_age.map(|age| now.saturating_sub(age)),
        expires: now + LOGIN_SECONDS,
        stage: Stage::Login,
    })
}

/// Returns whether the client requests a new login even if the user is logged in at the provider.
fn wants_new_login(form: &Form) -> bool {
    form.get("prompt").is_some_and(|prompt| prompt.split(' ').any(|word| word == "login"))
}

fn callback_of(authority: &Authority) -> String {
    format!("{}/authorize/callback", authority.issuer())
}

/// Returns name and value of the cookie that binds a login to the browser that started it. A browser may have several
/// logins in progress.
fn cookie_of(vault: &Vault, pending: &Pending) -> (String, String) {
    (format!("stack-login-{}", &pending.id[..8]), pending.provider_secret(vault, Use::Browser))
}

/// Stores the authorization and redirects the user to the provider.
async fn begin(
    context: &Context<'_>,
    authority: &Arc<Authority>,
    provider: &Provider,
    form: &Form,
    request: Pending,
) -> Result<Reply, OAuthError> {
    let (address, now) = (protocol::address(context, authority), Instant::now());
    let key = address.to_string();
    if authority.logins.try_once(&key, address, now) != Verdict::Allowed {
        return Err(OAuthError::new(
            ErrorCode::TemporarilyUnavailable,
            "too many logins were begun: try again later",
        ));
    }
    let vault = opened(authority).await?.vault;
    let (nonce, verifier) =
        (request.provider_secret(&vault, Use::Nonce), request.provider_secret(&vault, Use::Verifier));
    let callback = callback_of(authority);
    let binding = Binding { callback: &callback, nonce: &nonce, verifier: &verifier };
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
    let mut hints: Vec<(&str, &str)> = ["prompt", "login_hint"]
        .iter()
        .filter_map(|name| form.get(name).map(|value| (*name, value)))
        .collect();
    // `max_age` makes the provider report the date of the login, so that the callback notices a removed `prompt`.
    let max_age = if wants_new_login(form) { Some("0") } else { form.get("max_age") };
    hints.extend(max_age.map(|age| ("max_age", age)));
    let state = pending::name(&vault, Use::State, &request.id);
    let address = provider
        .login_at(&binding, &challenge, &state, &hints)
        .await
        .map_err(|reason| provider_failed(&reason))?;
    let (cookie, value) = cookie_of(&vault, &request);
    context
        .app
        .blocking(move |store| Ok(store.change_documents(vec![request.put(Expected::Absent)])?))
        .await?;
    let mut reply = redirect(&address)?;
    let secure = if authority.issuer().starts_with("https://") { "; Secure" } else { "" };
    let cookie =
        format!("{cookie}={value}; Path={MOUNT}; HttpOnly; SameSite=Lax; Max-Age={LOGIN_SECONDS}{secure}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        reply.headers_mut().insert(SET_COOKIE, cookie);
    }
    Ok(reply)
}

fn provider_failed(reason: &dyn std::error::Error) -> OAuthError {
    OAuthError::fault(
        "the identity provider did not give a valid answer",
        &format!("identity provider: {reason}"),
    )
}

/// Handles the redirect of the provider back to this server.
pub(super) async fn callback(context: &Context<'_>) -> Result<Reply, ApiError> {
    let authority = context.authority()?;
    let Some(provider) = authority.provider.as_ref() else { return Ok(no_provider()) };
    if let Some(error) = context.query.get("error") {
        let about = context.query.get("error_description").unwrap_or_default();
        let shown: String = format!("{error} : {about}").chars().take(500).collect();
        return Ok(protocol::text(StatusCode::BAD_REQUEST, shown));
    }
    Ok(match finish_callback(context, &authority, provider).await {
        Ok(reply) => reply,
        Err(error) => protocol::refusal(&error, None),
    })
}

/// Finishes a login: checks the answer of the provider, stores the user and redirects the user to the client with a
/// code.
async fn finish_callback(
    context: &Context<'_>,
    authority: &Arc<Authority>,
    provider: &Provider,
) -> Result<Reply, OAuthError> {
    let unknown =
        || OAuthError::new(ErrorCode::InvalidRequest, "this login is unknown here, has expired or was used");
    let (Some(code), Some(state)) = (context.query.get("code"), context.query.get("state")) else {
        return Err(OAuthError::new(ErrorCode::InvalidRequest, "code or state missing"));
    };
    let vault = opened(authority).await?.vault;
    let id = pending::id_of(&vault, Use::State, state).ok_or_else(unknown)?;
    let found = pending::pending(&authority.store().snapshot(), &id)?.ok_or_else(unknown)?;
    let now = authority.now();
    if found.value.stage != Stage::Login || found.value.expires <= now {
        return Err(unknown());
    }
    let (name, value) = cookie_of(&vault, &found.value);
    if !has_cookie(context, &name, &value) {
        return Err(unknown());
    }
    // During the login, the client may have been deleted, or may have lost its redirect URI.
    let caller = find(authority, &found.value.client)?;
    let caller = caller.filter(|caller| caller.is(&found.value.client, found.value.client_created));
    if !caller.is_some_and(|caller| is_registered(&caller.redirect_uris, &found.value.redirect_uri)) {
        return Err(unknown());
    }
    let (nonce, verifier) =
        (found.value.provider_secret(&vault, Use::Nonce), found.value.provider_secret(&vault, Use::Verifier));
    let callback = callback_of(authority);
    let binding = Binding { callback: &callback, nonce: &nonce, verifier: &verifier };
    let identity = provider.identity(code, &binding, now).await.map_err(|reason| provider_failed(&reason))?;
    let logged_in = checked_login_time(&identity, found.value.login_since, now)?;
    let (redirect_uri, state) = (found.value.redirect_uri.clone(), found.value.state.clone());
    let finishing = authority.clone();
    let finish = move || {
        let store = finishing.store();
        let user = users::found_or_created(
            store,
            &identity.of_provider(),
            &identity.email,
            identity.email_verified,
        )?;
        pending::finish_login(&finishing, &found, &user.id, logged_in)
    };
    let code = authority.signing.run(finish).await??;
    redirect(&with_parameters(&redirect_uri, &[("code", Some(&code)), ("state", state.as_deref())]))
}

/// Returns the time of the login at the provider, if it is recent enough for the client. Checks it here, because the
/// user's browser carries `max_age` and `prompt` to the provider and may have removed them.
fn checked_login_time(identity: &Identity, since: Option<u64>, now: u64) -> Result<u64, OAuthError> {
    let Some(since) = since else { return Ok(identity.logged_in.unwrap_or(now)) };
    let oldest = since.saturating_sub(CLOCK_LEEWAY);
    let logged_in = identity.logged_in.filter(|at| *at >= oldest);
    logged_in.ok_or_else(|| {
        OAuthError::new(ErrorCode::InvalidRequest, "the login is older than the client accepts")
    })
}

fn has_cookie(context: &Context<'_>, name: &str, value: &str) -> bool {
    let lines = context.headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.any(|(have, shown)| have == name && same_secret(shown.as_bytes(), value.as_bytes()))
}

/// Returns the claims about the user of a token that the client may read.
pub(super) fn user_info(context: &Context<'_>) -> Result<Reply, ApiError> {
    let authority = context.authority()?;
    let unauthorized = |text: &str| {
        let mut reply = protocol::text(StatusCode::UNAUTHORIZED, text);
        let challenge = HeaderValue::from_static("Bearer");
        reply.headers_mut().insert(hyper::header::WWW_AUTHENTICATE, challenge);
        reply
    };
    let Some(text) = bearer_of(context.headers) else { return Ok(unauthorized("access token missing")) };
    let token = str::from_utf8(text).ok().and_then(|text| authority.valid_token(text));
    let Some(token) = token else { return Ok(unauthorized("access token invalid")) };
    let claims = match token.claim("sid") {
        Some(session) => authority.user_info(session)?,
        None => None,
    };
    let Some(claims) = claims else {
        return Ok(protocol::text(StatusCode::FORBIDDEN, "the token does not belong to a user"));
    };
    let mut json = Json::new(Numbers::Plain);
    json.raw(&claims.to_string());
    Ok(json.reply(StatusCode::OK))
}

/// Ends the sessions of a user with a client, and redirects the user to the address that the client requests.
pub(super) async fn end_session(context: &Context<'_>) -> Result<Reply, ApiError> {
    let authority = context.authority()?;
    let form = match Form::of(context) {
        Ok(form) => form,
        Err(error) => return Ok(protocol::refusal(&error, None)),
    };
    let hint = form.get("id_token_hint").and_then(|text| authority.hint_claims(text));
    let client = form.get("client_id").map(str::to_owned);
    let client = client.or_else(|| hint.as_ref().map(|(_, client)| client.clone()));
    if hint.as_ref().is_some_and(|(_, of_token)| client.as_ref() != Some(of_token)) {
        let error = OAuthError::new(ErrorCode::InvalidRequest, "id_token_hint is of another client");
        return Ok(protocol::refusal(&error, None));
    }
    let caller = match &client {
        Some(id) => find(&authority, id)?,
        None => None,
    };
    let target = match (form.get("post_logout_redirect_uri"), &caller) {
        (None, _) => format!("{}/logged-out", authority.issuer()),
        (Some(uri), Some(caller)) if is_registered(&caller.post_logout_redirect_uris, uri) => {
            with_parameters(uri, &[("state", form.get("state"))])
        }
        (Some(_), _) => {
            let error = OAuthError::new(
                ErrorCode::InvalidRequest,
                "post_logout_redirect_uri is not one of the client",
            );
            return Ok(protocol::refusal(&error, None));
        }
    };
    if let Some((user, client)) = hint {
        let ending = authority.clone();
        context.app.blocking(move |_| ending.log_out(&user, &client)).await?;
    }
    Ok(redirect(&target).unwrap_or_else(|error| protocol::refusal(&error, None)))
}

pub(super) fn logged_out() -> Reply {
    protocol::text(StatusCode::OK, "logged out\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirect_addresses_match_byte_by_byte() {
        let list =
            ["https://app.example/cb?x=1".to_owned(), "custom:/cb".to_owned(), "https://a/#f".to_owned()];
        assert!(is_registered(&list, "https://app.example/cb?x=1"));
        for near in [
            "https://app.example/cb",
            "https://app.example/cb?x=1&y=2",
            "https://app.example/cb?x=1#f",
            "https://app.example/cb?x=1/",
            "https://app.example/CB?x=1",
            "https://APP.example/cb?x=1",
            "http://app.example/cb?x=1",
            "https://app.example:443/cb?x=1",
            "https://app.example:8443/cb?x=1",
            "https://user@app.example/cb?x=1",
            "https://app.example@evil.example/cb?x=1",
            "https://app.example.evil.example/cb?x=1",
            "https://app.example//cb?x=1",
            "https://app.example/./cb?x=1",
            "https://app.example/a/../cb?x=1",
            "https://app.example/cb%3Fx=1",
            "https://app.example/%63b?x=1",
            "https://app.example\\cb?x=1",
            " https://app.example/cb?x=1",
            "https://app.example/cb?x=1 ",
            "https://app.example/cb?x=1\u{0}",
            "//app.example/cb?x=1",
            "custom:/cb",
            "javascript:alert(1)",
            "https://a/#f",
            "",
        ] {
            assert!(!is_registered(&list, near), "{near}");
        }
    }

    #[test]
    fn a_login_is_as_new_as_the_client_wants() {
        let form = |text: &str| Form::parse(text).expect("a form");
        assert!(wants_new_login(&form("prompt=consent+login")));
        assert!(!wants_new_login(&form("prompt=logins")) && !wants_new_login(&form("")));
        let identity = |at: Option<u64>| Identity {
            issuer: "https://provider".to_owned(),
            subject: "p|1".to_owned(),
            email: String::new(),
            email_verified: false,
            logged_in: at,
        };
        let taken = |at, since| checked_login_time(&identity(at), since, 2_000).ok();
        assert_eq!(taken(Some(1_000), Some(1_000)), Some(1_000));
        assert_eq!(taken(Some(1_000 - CLOCK_LEEWAY), Some(1_000)), Some(1_000 - CLOCK_LEEWAY));
        assert_eq!(taken(Some(1_000 - CLOCK_LEEWAY - 1), Some(1_000)), None);
        assert_eq!(taken(None, Some(1_000)), None, "the provider does not tell");
        assert_eq!(taken(Some(7), None), Some(7));
    }

    #[test]
    fn parameters_go_behind_those_that_are_there() {
        let parameters = [("code", Some("a b")), ("state", None), ("x", Some("&"))];
        assert_eq!(with_parameters("https://a/cb", &parameters), "https://a/cb?code=a%20b&x=%26");
        assert_eq!(with_parameters("https://a/cb?y=1", &parameters), "https://a/cb?y=1&code=a%20b&x=%26");
    }
}
