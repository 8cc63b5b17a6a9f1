//! Requests to providers.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use httpdate::parse_http_date;
use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};

use crate::connectors::error::ParameterError;
use crate::connectors::{Failure, Retry};
use crate::limits::{PROVIDER_ANSWER_BYTES_MAX, PROVIDER_CONNECT_TIMEOUT, RETRY_AFTER_MAX};
use crate::outbound::{Client, Identity, OutboundPolicy, OutboundRequest, OutboundResponse, Target};

/// The HTTP client, address policy and folder that all connectors share.
#[derive(Clone, Debug)]
pub(crate) struct ProviderAccess {
    client: Arc<Client>,
    policy: OutboundPolicy,
    /// The operator's addresses of providers, by the name of the connector.
    addresses: BTreeMap<String, String>,
    /// Timeout for a response.
    timeout: Duration,
    /// The folder that must contain the directories of all connectors.
    folder: PathBuf,
}

impl ProviderAccess {
    pub(crate) fn new(
        policy: OutboundPolicy,
        addresses: BTreeMap<String, String>,
        timeout: Duration,
    ) -> Self {
        let client = Arc::new(Client::new(policy));
        Self { client, policy, addresses, timeout, folder: std::env::temp_dir() }
    }

    /// Sets the folder for files. The default is the system's folder for temporary files.
    pub(crate) fn with_folder(self, folder: Option<PathBuf>) -> Self {
        Self { folder: folder.unwrap_or(self.folder), ..self }
    }

    /// Returns the path of a directory from a configuration. The directory need not exist.
    ///
    /// # Errors
    ///
    /// Fails if the path is not absolute, contains `..`, or is not below the folder for files after resolving links.
    pub(crate) fn directory(&self, text: &str) -> Result<PathBuf, ParameterError> {
        let path = Path::new(text);
        let refusal = || {
            let folder = self.folder.display().to_string();
            ParameterError::OutsideFolder { path: text.to_owned(), folder }
        };
        let is_plain = path.components().all(|part| part != Component::ParentDir);
        if !path.is_absolute() || !is_plain {
            return Err(refusal());
        }
        let root = self.folder.canonicalize().map_err(|_| refusal())?;
        // Resolve links in the part of the path that exists. The connector creates the rest.
        let existing = path.ancestors().find_map(|part| part.canonicalize().ok()).ok_or_else(refusal)?;
        if existing.starts_with(&root) { Ok(path.to_owned()) } else { Err(refusal()) }
    }

    /// Returns a provider with an address from a configuration.
    ///
    /// # Errors
    ///
    /// Fails if the address is not valid, contains a user, or is forbidden for outbound requests.
    pub(crate) fn provider(&self, endpoint: &str, secrets: &[&str]) -> Result<Provider, ParameterError> {
        let base = endpoint.trim_end_matches('/');
        let target = Target::parse(base)?;
        if target.has_user() {
            return Err(ParameterError::UserInAddress);
        }
        self.policy.allow(&target)?;
        Ok(Provider::new(self.client.clone(), base, secrets, self.timeout))
    }

    /// Returns a provider with the operator's address for it, or otherwise with the address from the configuration.
    ///
    /// # Errors
    ///
    /// Returns errors of [`ProviderAccess::provider`].
    pub(crate) fn provider_of(
        &self,
        name: &str,
        endpoint: &str,
        secrets: &[&str],
    ) -> Result<Provider, ParameterError> {
        if self.addresses.contains_key(name) {
            return Ok(self.known_provider(name, "", secrets));
        }
        self.provider(endpoint, secrets)
    }

    /// Returns a provider like [`ProviderAccess::provider_of`], with a client certificate and its key in PEM form.
    ///
    /// # Errors
    ///
    /// Returns errors of [`ProviderAccess::provider`]. Also fails if the certificate or the key is not valid, or if
    /// they do not belong together.
    pub(crate) fn provider_with_identity(
        &self,
        name: &str,
        endpoint: &str,
        certificate: &str,
        key: &str,
        secrets: &[&str],
    ) -> Result<Provider, ParameterError> {
        let mut provider = self.provider_of(name, endpoint, secrets)?;
        let policy = if self.addresses.contains_key(name) { OutboundPolicy::Any } else { self.policy };
        let identity = Identity::parse(certificate.as_bytes(), key.as_bytes())?;
        provider.client = Arc::new(Client::with_identity(policy, identity));
        Ok(provider)
    }

    /// Returns a provider with the operator's address for it, or otherwise with a fixed address.
    pub(crate) fn known_provider(&self, name: &str, address: &str, secrets: &[&str]) -> Provider {
        match self.addresses.get(name) {
            // The operator's addresses are trusted, so no policy applies.
            Some(address) => {
                let client = Arc::new(Client::new(OutboundPolicy::Any));
                Provider::new(client, address.trim_end_matches('/'), secrets, self.timeout)
            }
            None => Provider::new(self.client.clone(), address, secrets, self.timeout),
        }
    }
}

/// A client of one provider.
pub(crate) struct Provider {
    client: Arc<Client>,
    base: String,
    /// Texts that must not appear in errors.
    secrets: Vec<Box<str>>,
    timeout: Duration,
}

/// Headers of a request.
pub(crate) type Headers<'a> = &'a [(&'static str, &'a str)];

/// Headers whose values must not appear in errors.
const SECRET_HEADERS: [&str; 2] = ["authorization", "x-auth-token"];

/// The effect of a request at the provider.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    None,
    Change,
}

/// Maximum number of characters of a provider's response in an error.
const SHOWN_CHARS_MAX: usize = 200;

impl Provider {
    fn new(client: Arc<Client>, base: &str, secrets: &[&str], timeout: Duration) -> Self {
        let secrets = secrets.iter().filter(|secret| !secret.is_empty());
        let secrets = secrets.map(|secret| (*secret).into()).collect();
        Self { client, base: base.to_owned(), secrets, timeout }
    }

    /// Sends a GET request and returns the body of the response.
    pub(crate) async fn get(&self, path: &str, headers: Headers<'_>) -> Result<Bytes, Failure> {
        self.ask(Method::GET, Effect::None, path, headers, Bytes::new()).await
    }

    /// Sends a POST request that only reads, and returns the body of the response.
    pub(crate) async fn search(
        &self,
        path: &str,
        headers: Headers<'_>,
        body: String,
    ) -> Result<Bytes, Failure> {
        self.ask(Method::POST, Effect::None, path, headers, Bytes::from(body)).await
    }

    /// Sends a POST request that changes something, and returns the body of the response. Most refusals are final.
    pub(crate) async fn post(
        &self,
        path: &str,
        headers: Headers<'_>,
        body: String,
    ) -> Result<Bytes, Failure> {
        self.ask(Method::POST, Effect::Change, path, headers, Bytes::from(body)).await
    }

    async fn ask(
        &self,
        method: Method,
        effect: Effect,
        path: &str,
        headers: Headers<'_>,
        body: Bytes,
    ) -> Result<Bytes, Failure> {
        let target = Target::parse(&format!("{}{path}", self.base))
            .map_err(|error| Failure::permanent(error.to_string()))?;
        let outgoing = OutboundRequest {
            method,
            target,
            headers: header_map(headers)?,
            body,
            bytes_max: PROVIDER_ANSWER_BYTES_MAX,
            connect_timeout: PROVIDER_CONNECT_TIMEOUT,
            timeout: self.timeout,
        };
        let answered = self
            .client
            .ask(&outgoing)
            .await
            .map_err(|error| Failure::retryable(self.redact(&error.to_string())))?;
        if answered.status.is_success() {
            return Ok(answered.body);
        }
        let mut failure = self.refused(path, headers, &answered);
        // Do not repeat a refused change. With these statuses, a repetition may succeed.
        let is_final = effect == Effect::Change
            && answered.status.is_client_error()
            && !matches!(answered.status.as_u16(), 408 | 409 | 425 | 429);
        if is_final {
            failure.retry = Retry::Never;
        }
        Err(failure)
    }

    fn refused(&self, path: &str, headers: Headers<'_>, answered: &OutboundResponse) -> Failure {
        let said = String::from_utf8_lossy(&answered.body);
        // `secrets` does not contain login tokens, so take them from the headers.
        let sent = headers.iter().filter(|(name, _)| SECRET_HEADERS.contains(name));
        let tokens = sent.map(|(_, value)| value.rsplit(' ').next().unwrap_or_default());
        let tokens = tokens.filter(|token| !token.is_empty());
        let said = tokens.fold(self.redact(&said), |said, token| said.replace(token, "***"));
        let said: String = said.chars().take(SHOWN_CHARS_MAX).collect();
        let path = path.split('?').next().unwrap_or_default();
        let reason = format!("{path}: the provider answered {}: {said}", answered.status.as_u16());
        let retry = retry_after(&answered.headers).map_or(Retry::Later, Retry::After);
        Failure { reason, retry, status: answered.status.as_u16() }
    }

    /// Replaces the secrets in a text.
    fn redact(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(&**secret, "***"))
    }
}

/// Returns the pause that the header `Retry-After` requests, in seconds or until a date. The pause is bounded, so that
/// a provider cannot stop a task for good. A date is compared with the `Date` of the response, because the clocks of
/// provider and server may differ.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let asked = text(RETRY_AFTER)?.trim();
    let pause = if !asked.is_empty() && asked.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that is too large for `u64` is a long pause, too.
        asked.parse().map_or(RETRY_AFTER_MAX, Duration::from_secs)
    } else {
        let until = parse_http_date(asked).ok()?;
        let sent = text(DATE).and_then(|date| parse_http_date(date).ok());
        until.duration_since(sent.unwrap_or_else(SystemTime::now)).unwrap_or_default()
    };
    Some(pause.min(RETRY_AFTER_MAX))
}

fn header_map(headers: Headers<'_>) -> Result<HeaderMap, Failure> {
    let mut map = HeaderMap::new();
    map.insert(ACCEPT, HeaderValue::from_static("application/json"));
    map.insert(USER_AGENT, HeaderValue::from_static(concat!("stack-server/", env!("CARGO_PKG_VERSION"))));
    for (name, value) in headers {
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| Failure::permanent(format!("a value of the header {name} cannot be sent")))?;
        value.set_sensitive(true);
        map.insert(HeaderName::from_static(name), value);
    }
    Ok(map)
}

/// Parses the JSON of a response. Do not read amounts from the result: it does not keep all digits.
///
/// # Errors
///
/// Fails if the response is not JSON.
pub(crate) fn parsed(body: &[u8]) -> Result<serde_json::Value, Failure> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::retryable(format!("the answer is no JSON: {error}")))
}

/// Returns fields as a URL-encoded form.
pub(crate) fn form(fields: &[(&str, &str)]) -> String {
    let escaped = fields.iter().map(|(name, value)| format!("{name}={}", escape(value)));
    escaped.collect::<Vec<_>>().join("&")
}

/// Percent-encodes a value for the query or the path of an address.
pub(crate) fn escape(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(asked: &str, date: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_str(asked).expect("a value"));
        headers.insert(DATE, HeaderValue::from_str(date).expect("a value"));
        retry_after(&headers)
    }

    #[test]
    fn pause_is_in_seconds_or_until_a_date() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        for (asked, expected) in [
            ("0", seconds(0)),
            ("120", seconds(120)),
            ("Sun, 06 Nov 1994 08:51:37 GMT", seconds(120)),
            ("Sunday, 06-Nov-94 08:51:37 GMT", seconds(120)),
            // A date in the past.
            ("Sun, 06 Nov 1994 08:49:00 GMT", seconds(0)),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
        ] {
            assert_eq!(pause(asked, date), expected, "{asked:?}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
        // Without a valid date in the response, the server uses its clock.
        assert_eq!(pause("Sun, 06 Nov 1994 08:51:37 GMT", "today"), seconds(0));
    }

    #[test]
    fn pause_is_an_hour_at_most() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        for asked in ["3601", "99999999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"] {
            assert_eq!(pause(asked, date), Some(RETRY_AFTER_MAX), "{asked}");
        }
    }
}
