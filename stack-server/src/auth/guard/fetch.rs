//! Small HTTP requests to other servers.
//!
//! Such requests are rare, so each has its own connection. Redirects are not followed: only the configured server says
//! where its documents are.

use std::fmt;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::rt::{Read, Write};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::auth::guard::error::{AnswerError, AnswerFault, FetchError, UrlError};
use crate::limits::{FETCH_BYTES_MAX, FETCH_TIMEOUT};
use crate::outbound::{connect_tls, redacted};

/// An `http` or `https` address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    text: String,
    is_secure: bool,
    host: String,
    port: u16,
}

impl Url {
    /// Reads an `http` or `https` address.
    ///
    /// # Errors
    ///
    /// Fails if the text is not such an address, or contains a user.
    pub(crate) fn parse(text: &str) -> Result<Self, UrlError> {
        let invalid = || UrlError::NoAddress(redacted(text));
        let uri: Uri = text.parse().map_err(|_| invalid())?;
        let is_secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(invalid()),
        };
        let authority =
            uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(invalid)?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(invalid());
        }
        let port = authority.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        Ok(Self { text: text.to_owned(), is_secure, host, port })
    }

    /// Returns the address with this text appended to the path.
    pub(crate) fn below(&self, path: &str) -> Self {
        Self { text: format!("{}{path}", self.text.trim_end_matches('/')), ..self.clone() }
    }

    /// Returns the error for an unusable response from this address.
    pub(crate) fn wrong(&self, reason: impl Into<AnswerFault>) -> AnswerError {
        AnswerError { address: self.text.clone(), reason: reason.into() }
    }

    pub(crate) const fn is_secure(&self) -> bool {
        self.is_secure
    }
}

/// Checks that a text can be an issuer.
///
/// # Errors
///
/// Fails if it is not an `http` or `https` address. The error is for a person.
pub(crate) fn check_issuer(name: &str) -> Result<(), UrlError> {
    Url::parse(name).map(|_| ())
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Fetches a document.
///
/// # Errors
///
/// Fails if the document does not arrive within the limits of time and size. The error is for the log.
pub(crate) async fn get(url: &Url) -> Result<Bytes, AnswerError> {
    match send(url, &FetchRequest::get()).await.map_err(|error| url.wrong(error))? {
        (StatusCode::OK, body) => Ok(body),
        (status, _) => Err(url.wrong(AnswerFault::Status(status))),
    }
}

/// The discovery document of an issuer.
pub(crate) struct Discovery {
    at: Url,
    document: Value,
}

/// Fetches the discovery document of an issuer.
///
/// # Errors
///
/// Fails if the document cannot be fetched, or is that of another issuer. The error is for the log.
pub(crate) async fn discover(url: &Url, issuer: &str) -> Result<Discovery, AnswerError> {
    let at = url.below("/.well-known/openid-configuration");
    let document: Value = serde_json::from_slice(&get(&at).await?).map_err(|error| at.wrong(error))?;
    if document["issuer"] != issuer {
        return Err(at.wrong(AnswerFault::OtherIssuer(document["issuer"].to_string())));
    }
    Ok(Discovery { at, document })
}

impl Discovery {
    /// Returns the address in the member `name`. If the issuer's address is `https`, this address must be too.
    ///
    /// # Errors
    ///
    /// Fails if the member is missing, or is not such an address. The error is for the log.
    pub(crate) fn address(&self, name: &'static str, issuer: &Url) -> Result<Url, AnswerError> {
        let text = self.document[name].as_str().ok_or_else(|| self.at.wrong(AnswerFault::Missing(name)))?;
        let url = Url::parse(text).map_err(|error| self.at.wrong(error))?;
        if issuer.is_secure() && !url.is_secure() {
            return Err(self.at.wrong(AnswerFault::Unprotected(url.to_string())));
        }
        Ok(url)
    }
}

/// A request to an issuer.
#[derive(Clone)]
pub(crate) struct FetchRequest {
    pub(crate) method: Method,
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) content_type: &'static str,
    pub(crate) body: Bytes,
}

impl FetchRequest {
    /// Creates a request for a document.
    pub(crate) const fn get() -> Self {
        Self { method: Method::GET, authorization: None, content_type: "", body: Bytes::new() }
    }
}

/// Sends a request. Returns the status and the body of the response, whatever the status is.
///
/// # Errors
///
/// Fails if no response arrives within the limits of time and size. The error is for the log, and contains nothing of
/// the request.
pub(crate) async fn send(url: &Url, outgoing: &FetchRequest) -> Result<(StatusCode, Bytes), FetchError> {
    // Boxed, because otherwise the future of every request that may contact an issuer would contain the buffers of a
    // TLS handshake.
    let asking = Box::pin(connect_and_send(url, outgoing));
    match tokio::time::timeout(FETCH_TIMEOUT, asking).await {
        Ok(answer) => answer,
        Err(_) => Err(FetchError::Timeout),
    }
}

async fn connect_and_send(url: &Url, outgoing: &FetchRequest) -> Result<(StatusCode, Bytes), FetchError> {
    let stream = TcpStream::connect((url.host.as_str(), url.port)).await?;
    if !url.is_secure {
        return ask(TokioIo::new(stream), url, outgoing).await;
    }
    let stream = connect_tls(stream, &url.host).await?;
    ask(TokioIo::new(stream), url, outgoing).await
}

async fn ask(
    stream: impl Read + Write + Unpin + Send + 'static,
    url: &Url,
    outgoing: &FetchRequest,
) -> Result<(StatusCode, Bytes), FetchError> {
    let uri: Uri = url.text.parse().map_err(hyper::http::Error::from)?;
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let mut request = Request::builder()
        .method(outgoing.method.clone())
        .uri(uri.path_and_query().map_or("/", |target| target.as_str()))
        .header(HOST, authority)
        .header(ACCEPT, "application/json")
        .header(USER_AGENT, concat!("stack-server/", env!("CARGO_PKG_VERSION")));
    if let Some(authorization) = &outgoing.authorization {
        request = request.header(AUTHORIZATION, authorization);
    }
    if !outgoing.content_type.is_empty() {
        request = request.header(CONTENT_TYPE, outgoing.content_type);
    }
    let request = request.body(Full::new(outgoing.body.clone()))?;
    let (mut sender, connection) = http1::handshake(stream).await?;
    let exchange = async {
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), FETCH_BYTES_MAX).collect().await;
        Ok((status, body.map_err(FetchError::Body)?.to_bytes()))
    };
    tokio::pin!(connection);
    tokio::pin!(exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        // The connection may end with the last byte of the response, which can then be read.
        _ = &mut connection => exchange.await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart() {
        let url = Url::parse("http://localhost:8080/api/auth/").expect("an address");
        assert_eq!((url.host.as_str(), url.port, url.is_secure()), ("localhost", 8080, false));
        assert_eq!(url.below("/x").to_string(), "http://localhost:8080/api/auth/x");
        let url = Url::parse("https://[::1]/a").expect("an address");
        assert_eq!((url.host.as_str(), url.port, url.is_secure()), ("::1", 443, true));
        for text in ["", "x", "ftp://a", "http://", "//a", "http://u@a/", "http://a b/"] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }
}
