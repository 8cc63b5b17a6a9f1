//! Requests to providers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};

use crate::connectors::{Failure, Retry};
use crate::limits::{PROVIDER_ANSWER_BYTES_MAX, PROVIDER_CONNECT_TIMEOUT, PROVIDER_TIMEOUT, RETRY_AFTER_MAX};
use crate::outbound::{Answered, Client, Outbound, Question, Target};

/// What connectors are built with.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    client: Arc<Client>,
    policy: Outbound,
    /// The operator's addresses of providers, by the name of the connector.
    addresses: BTreeMap<String, String>,
}

impl Tools {
    pub(crate) fn new(policy: Outbound, addresses: BTreeMap<String, String>) -> Self {
        Self { client: Arc::new(Client::new(policy)), policy, addresses }
    }

    /// A provider at an address that a caller gave.
    ///
    /// # Errors
    ///
    /// If it is no address, or none that callers may have the server reach.
    pub(crate) fn provider(&self, endpoint: &str, secrets: &[&str]) -> Result<Provider, String> {
        let base = endpoint.trim_end_matches('/');
        let target = Target::parse(base)?;
        self.policy.allow(&target)?;
        Ok(Provider::new(self.client.clone(), base, secrets))
    }

    /// A provider with a fixed address, or the one that the operator has for it.
    pub(crate) fn known_provider(&self, name: &str, address: &str, secrets: &[&str]) -> Provider {
        match self.addresses.get(name) {
            // What the operator says is trusted.
            Some(address) => {
                Provider::new(Arc::new(Client::new(Outbound::Any)), address.trim_end_matches('/'), secrets)
            }
            None => Provider::new(self.client.clone(), address, secrets),
        }
    }
}

/// A provider at its address.
pub(crate) struct Provider {
    client: Arc<Client>,
    base: String,
    /// What no error may show.
    secrets: Vec<Box<str>>,
}

/// Headers of a request.
pub(crate) type Headers<'a> = &'a [(&'static str, &'a str)];

/// Most characters of a provider's answer in an error.
const SHOWN_CHARS_MAX: usize = 200;

impl Provider {
    fn new(client: Arc<Client>, base: &str, secrets: &[&str]) -> Self {
        let secrets = secrets.iter().filter(|secret| !secret.is_empty());
        Self { client, base: base.to_owned(), secrets: secrets.map(|secret| (*secret).into()).collect() }
    }

    /// The JSON text that a path answers with.
    pub(crate) async fn get(&self, path: &str, headers: Headers<'_>) -> Result<Bytes, Failure> {
        self.ask(Method::GET, path, headers, Bytes::new()).await
    }

    /// The JSON text with which something that is sent is answered.
    pub(crate) async fn post(
        &self,
        path: &str,
        headers: Headers<'_>,
        body: String,
    ) -> Result<Bytes, Failure> {
        self.ask(Method::POST, path, headers, Bytes::from(body)).await
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        headers: Headers<'_>,
        body: Bytes,
    ) -> Result<Bytes, Failure> {
        let target = Target::parse(&format!("{}{path}", self.base)).map_err(Failure::final_)?;
        let question = Question {
            method,
            target,
            headers: header_map(headers)?,
            body,
            bytes_max: PROVIDER_ANSWER_BYTES_MAX,
            connect_timeout: PROVIDER_CONNECT_TIMEOUT,
            timeout: PROVIDER_TIMEOUT,
        };
        let answered =
            self.client.ask(&question).await.map_err(|error| Failure::later(self.hidden(&error)))?;
        if answered.status.is_success() {
            return Ok(answered.body);
        }
        let failure = self.refused(path, &answered);
        // What is sent and refused is refused again, unless the provider asks for patience.
        let is_final = question.method != Method::GET
            && answered.status.is_client_error()
            && !matches!(answered.status.as_u16(), 408 | 409 | 425 | 429);
        Err(if is_final { Failure::final_(failure.reason) } else { failure })
    }

    fn refused(&self, path: &str, answered: &Answered) -> Failure {
        let said = String::from_utf8_lossy(&answered.body);
        let said: String = self.hidden(&said).chars().take(SHOWN_CHARS_MAX).collect();
        let path = path.split('?').next().unwrap_or_default();
        let reason = format!("{path}: the provider answered {}: {said}", answered.status.as_u16());
        let asked = answered.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let retry = asked
            .map_or(Retry::Later, |seconds| Retry::After(Duration::from_secs(seconds).min(RETRY_AFTER_MAX)));
        Failure { reason, retry }
    }

    /// A text without what no error may show.
    fn hidden(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(&**secret, "***"))
    }
}

fn header_map(headers: Headers<'_>) -> Result<HeaderMap, Failure> {
    let mut map = HeaderMap::new();
    map.insert(ACCEPT, HeaderValue::from_static("application/json"));
    map.insert(USER_AGENT, HeaderValue::from_static(concat!("stack-server/", env!("CARGO_PKG_VERSION"))));
    for (name, value) in headers {
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| Failure::final_(format!("a value of the header {name} cannot be sent")))?;
        value.set_sensitive(true);
        map.insert(HeaderName::from_static(name), value);
    }
    Ok(map)
}

/// Escapes a value in the query or the path of an address.
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
