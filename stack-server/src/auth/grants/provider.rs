//! The identity provider: another `OpenID` Connect server, where users log in.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::body::Bytes;
use hyper::header::HeaderValue;
use hyper::{Method, StatusCode};
use serde_json::Value;
use thiserror::Error;

use crate::auth::guard::error::{AnswerError, AnswerFault, UrlError};
use crate::auth::guard::fetch::{self, FetchRequest, Url, discover};
use crate::auth::guard::keys::Keys;
use crate::auth::guard::token::{Token, seconds};
use crate::auth::resources::users::ProviderIdentity;
use crate::http::request::encode_form;

/// Time for which the endpoints of the provider are kept before they are fetched again.
const ENDPOINTS_FRESH: Duration = Duration::from_mins(10);

/// Settings of the identity provider.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderSettings {
    /// The provider's issuer: the address below which its discovery document is.
    pub issuer: String,
    /// The client id of this server at the provider.
    pub client_id: String,
    /// The client secret of this server at the provider.
    pub client_secret: String,
}

impl fmt::Debug for ProviderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderSettings").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// The endpoints of the provider.
#[derive(Clone, Debug)]
struct Endpoints {
    authorization: String,
    token: Url,
}

/// The identity provider.
pub(crate) struct Provider {
    settings: ProviderSettings,
    url: Url,
    keys: Keys,
    endpoints: Mutex<Option<(Instant, Endpoints)>>,
}

/// The user that a provider has identified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) issuer: String,
    pub(crate) subject: String,
    pub(crate) email: String,
    pub(crate) email_verified: bool,
    /// Date of the login at the provider, if the provider tells it.
    pub(crate) logged_in: Option<u64>,
}

impl Identity {
    /// Returns the issuer and the subject by which the provider knows the user.
    pub(crate) fn of_provider(&self) -> ProviderIdentity<'_> {
        ProviderIdentity { issuer: &self.issuer, subject: &self.subject }
    }
}

/// The reason why a provider did not identify the user. It is for the log.
#[derive(Debug, Error)]
pub(crate) enum IdentityError {
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error("the id token of the provider is not good")]
    BadToken,
    #[error("the id token of the provider is for another client or login")]
    OtherLogin,
    #[error("the id token of the provider has no subject")]
    NoSubject,
}

/// The values that bind a login to an authorization.
#[derive(Clone, Copy)]
pub(crate) struct Binding<'a> {
    /// The address to which the provider sends the user back.
    pub(crate) callback: &'a str,
    pub(crate) nonce: &'a str,
    /// The PKCE verifier.
    pub(crate) verifier: &'a str,
}

impl Provider {
    /// Creates a provider without contacting it.
    ///
    /// # Errors
    ///
    /// Fails if the issuer is not an address. The error is for the operator.
    pub(crate) fn new(settings: ProviderSettings) -> Result<Self, UrlError> {
        let url = Url::parse(&settings.issuer)?;
        let keys = Keys::of_issuer(&settings.issuer, &url);
        Ok(Self { settings, url, keys, endpoints: Mutex::new(None) })
    }

    async fn endpoints(&self) -> Result<Endpoints, AnswerError> {
        let known = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, endpoints)) = known.filter(|(at, _)| at.elapsed() < ENDPOINTS_FRESH) {
            return Ok(endpoints);
        }
        let discovery = discover(&self.url, &self.settings.issuer).await?;
        let at = |name| discovery.address(name, &self.url);
        let endpoints = Endpoints {
            authorization: at("authorization_endpoint")?.to_string(),
            token: at("token_endpoint")?,
        };
        *self.endpoints.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((Instant::now(), endpoints.clone()));
        Ok(endpoints)
    }

    /// Returns the address of the provider at which the user logs in.
    ///
    /// # Errors
    ///
    /// Fails if the provider's endpoints cannot be fetched. The error is for the log.
    pub(crate) async fn login_at(
        &self,
        binding: &Binding<'_>,
        challenge: &str,
        state: &str,
        hints: &[(&str, &str)],
    ) -> Result<String, AnswerError> {
        let mut address = self.endpoints().await?.authorization;
        let own = [
            ("response_type", "code"),
            ("client_id", &self.settings.client_id),
            ("redirect_uri", binding.callback),
            ("scope", "openid email profile"),
            ("state", state),
            ("nonce", binding.nonce),
            ("code_challenge", challenge),
            ("code_challenge_method", "S256"),
        ];
        for (name, value) in own.iter().chain(hints) {
            address.push(if address.contains('?') { '&' } else { '?' });
            address.push_str(&format!("{name}={}", encode_form(value)));
        }
        Ok(address)
    }

    /// Identifies the user: exchanges the code of the provider for a token, and checks the token. `now` is in seconds
    /// since the Unix epoch.
    ///
    /// # Errors
    ///
    /// Fails if the provider refuses, or if its token is not valid. The error is for the log.
    pub(crate) async fn identity(
        &self,
        code: &str,
        binding: &Binding<'_>,
        now: u64,
    ) -> Result<Identity, IdentityError> {
        let endpoint = self.endpoints().await?.token;
        let pair =
            [&self.settings.client_id, &self.settings.client_secret].map(|text| encode_form(text)).join(":");
        let mut basic = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair)))
            .expect("base64 is visible ASCII");
        basic.set_sensitive(true);
        let form = format!(
            "grant_type=authorization_code&code={}&redirect_uri={}&code_verifier={}",
            encode_form(code),
            encode_form(binding.callback),
            encode_form(binding.verifier)
        );
        let outgoing = FetchRequest {
            method: Method::POST,
            authorization: Some(basic),
            content_type: "application/x-www-form-urlencoded",
            body: Bytes::from(form),
        };
        let (status, body) =
            fetch::send(&endpoint, &outgoing).await.map_err(|error| endpoint.wrong(error))?;
        if status != StatusCode::OK {
            return Err(endpoint.wrong(AnswerFault::Status(status)).into());
        }
        let answer: Value = serde_json::from_slice(&body).map_err(|error| endpoint.wrong(error))?;
        let text =
            answer["id_token"].as_str().ok_or_else(|| endpoint.wrong(AnswerFault::Missing("id_token")))?;
        let token = self.valid_token(text, now).await.ok_or(IdentityError::BadToken)?;
        if !token.audience().contains(&self.settings.client_id.as_str())
            || token.claim("nonce") != Some(binding.nonce)
        {
            return Err(IdentityError::OtherLogin);
        }
        let subject = token.claim("sub").ok_or(IdentityError::NoSubject)?.to_owned();
        let email = token.claim("email").unwrap_or_default().to_owned();
        let email_verified = token.claims["email_verified"] == true;
        let (issuer, logged_in) = (token.issuer.clone(), seconds(&token.claims["auth_time"]));
        Ok(Identity { issuer, subject, email, email_verified, logged_in })
    }

    /// Returns a token of the provider if its signature, issuer and dates are valid. `now` is in seconds since the Unix
    /// epoch.
    pub(crate) async fn valid_token<'a>(&self, text: &'a str, now: u64) -> Option<Token<'a>> {
        let token = Token::parse(text)?;
        if token.issuer != self.settings.issuer || !token.is_valid_at(now) {
            return None;
        }
        self.keys.check(&token).await.map(|_| token)
    }
}
