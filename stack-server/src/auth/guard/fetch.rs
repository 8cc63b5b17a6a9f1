//! One small exchange with another server.
//!
//! There are few of them, so every one has a connection of its own. Redirects are not followed: who is trusted
//! says where its documents are.

use std::fmt;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::rt::{Read, Write};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::limits::{FETCH_BYTES_MAX, FETCH_TIMEOUT};
use crate::outbound::{redacted, secured};

/// An address that can be asked.
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
    /// If it is none, or names a user.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let invalid = || format!("{:?} is no http or https address", redacted(text));
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

    /// The address with this behind its path.
    pub(crate) fn below(&self, path: &str) -> Self {
        Self { text: format!("{}{path}", self.text.trim_end_matches('/')), ..self.clone() }
    }

    pub(crate) const fn is_secure(&self) -> bool {
        self.is_secure
    }
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
/// If it is not there within the limits of time and size; the text is for the log.
pub(crate) async fn get(url: &Url) -> Result<Bytes, String> {
    match send(url, &Question::get()).await? {
        (StatusCode::OK, body) => Ok(body),
        (status, _) => Err(format!("it answers {status}")),
    }
}

/// A request to an issuer.
#[derive(Clone)]
pub(crate) struct Question {
    pub(crate) method: Method,
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) content_type: &'static str,
    pub(crate) body: Bytes,
}

impl Question {
    /// Asks for a document.
    pub(crate) const fn get() -> Self {
        Self { method: Method::GET, authorization: None, content_type: "", body: Bytes::new() }
    }
}

/// Sends a request, and returns status and body of the answer, whatever they are.
///
/// # Errors
///
/// If there is no answer within the limits of time and size; the text is for the log, and holds nothing of the question.
pub(crate) async fn send(url: &Url, question: &Question) -> Result<(StatusCode, Bytes), String> {
    // Boxed, because every request that may ask an issuer would otherwise contain the buffers of a TLS handshake.
    let asking = Box::pin(connect_and_ask(url, question));
    match tokio::time::timeout(FETCH_TIMEOUT, asking).await {
        Ok(answer) => answer,
        Err(_) => Err("it did not answer in time".to_owned()),
    }
}

async fn connect_and_ask(url: &Url, question: &Question) -> Result<(StatusCode, Bytes), String> {
    let stream =
        TcpStream::connect((url.host.as_str(), url.port)).await.map_err(|error| error.to_string())?;
    if !url.is_secure {
        return ask(TokioIo::new(stream), url, question).await;
    }
    let stream = secured(stream, &url.host).await.map_err(|error| error.to_string())?;
    ask(TokioIo::new(stream), url, question).await
}

async fn ask(
    stream: impl Read + Write + Unpin + Send + 'static,
    url: &Url,
    question: &Question,
) -> Result<(StatusCode, Bytes), String> {
    let uri: Uri = url.text.parse().map_err(|_| "it is no address".to_owned())?;
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let mut request = Request::builder()
        .method(question.method.clone())
        .uri(uri.path_and_query().map_or("/", |target| target.as_str()))
        .header(HOST, authority)
        .header(ACCEPT, "application/json")
        .header(USER_AGENT, concat!("stack-server/", env!("CARGO_PKG_VERSION")));
    if let Some(authorization) = &question.authorization {
        request = request.header(AUTHORIZATION, authorization);
    }
    if !question.content_type.is_empty() {
        request = request.header(CONTENT_TYPE, question.content_type);
    }
    let request = request.body(Full::new(question.body.clone())).map_err(|error| error.to_string())?;
    let (mut sender, connection) = http1::handshake(stream).await.map_err(|error| error.to_string())?;
    let exchange = async {
        let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), FETCH_BYTES_MAX).collect().await;
        Ok((status, body.map_err(|error| error.to_string())?.to_bytes()))
    };
    tokio::pin!(connection);
    tokio::pin!(exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        // The connection may end with the last byte of the answer, which is then there to be read.
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
