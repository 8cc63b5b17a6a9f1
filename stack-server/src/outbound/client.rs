//! A small HTTP client: POST, and what became of it.

use std::sync::Mutex;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::policy::Outbound;
use super::target::Target;
use super::tls::secured;
use crate::limits::{DELIVERY_ANSWER_BYTES_MAX, DELIVERY_IDLE_MAX, DELIVERY_TIMEOUT};

type Sender = SendRequest<Full<Bytes>>;

/// Posts to others, over connections that are kept for the next request.
#[derive(Debug)]
pub(crate) struct Client {
    policy: Outbound,
    idle: Mutex<Vec<(Target, Sender)>>,
}

impl Client {
    /// A client that goes where the policy allows.
    pub(crate) fn new(policy: Outbound) -> Self {
        Self { policy, idle: Mutex::default() }
    }

    /// Posts a body of JSON and waits for the answer.
    ///
    /// # Errors
    ///
    /// Why it is not known to have been taken: no connection, no answer in time, or one that is no success.
    pub(crate) async fn post(&self, target: &Target, headers: &HeaderMap, body: Bytes) -> Result<(), String> {
        let posting = tokio::time::timeout(DELIVERY_TIMEOUT, self.send(target, headers, body));
        let status = posting.await.map_err(|_| format!("{target}: no answer in time"))?;
        let status = status.map_err(|error| format!("{target}: {error}"))?;
        if status.is_success() { Ok(()) } else { Err(format!("{target}: answered {status}")) }
    }

    async fn send(&self, target: &Target, headers: &HeaderMap, body: Bytes) -> Result<StatusCode, String> {
        // The other side may have closed a kept connection at any time; a new one tells what is wrong.
        if let Some(sender) = self.kept(target)
            && let Ok(status) = self.exchange(target, sender, headers, body.clone()).await
        {
            return Ok(status);
        }
        let sender = self.connect(target).await?;
        self.exchange(target, sender, headers, body).await
    }

    fn kept(&self, target: &Target) -> Option<Sender> {
        let mut idle = self.idle.lock().ok()?;
        idle.retain(|(_, sender)| !sender.is_closed());
        let at =
            idle.iter().position(|(kept, sender)| kept.shares_connection(target) && sender.is_ready())?;
        Some(idle.swap_remove(at).1)
    }

    fn keep(&self, target: &Target, sender: Sender) {
        if let Ok(mut idle) = self.idle.lock()
            && idle.len() < DELIVERY_IDLE_MAX
        {
            idle.push((target.clone(), sender));
        }
    }

    async fn exchange(
        &self,
        target: &Target,
        mut sender: Sender,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<StatusCode, String> {
        let mut request =
            Request::post(target.path()).body(Full::new(body)).map_err(|error| error.to_string())?;
        *request.headers_mut() = headers.clone();
        let host = HeaderValue::from_str(&target.host_header()).map_err(|error| error.to_string())?;
        request.headers_mut().insert(HOST, host);
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(authorization) = target.authorization() {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        // An answer that is read to its end leaves the connection to the next request. What it says is not looked at.
        if is_read(response).await && sender.ready().await.is_ok() {
            self.keep(target, sender);
        }
        Ok(status)
    }

    async fn connect(&self, target: &Target) -> Result<Sender, String> {
        self.policy.allow(target)?;
        let stream = self.reach(target).await?;
        // Requests are small, and each waits for its answer.
        let _ = stream.set_nodelay(true);
        if !target.is_secure() {
            return handshake(TokioIo::new(stream)).await;
        }
        handshake(TokioIo::new(secured(stream, target.host()).await?)).await
    }

    /// Connects to the first address of the host that may be reached and answers.
    async fn reach(&self, target: &Target) -> Result<TcpStream, String> {
        let addresses = tokio::net::lookup_host((target.host(), target.port()));
        let addresses = addresses.await.map_err(|error| error.to_string())?;
        let mut failed = "it has no address".to_owned();
        for address in addresses {
            match self.policy.allow_address(address.ip()) {
                Err(refused) => failed = refused,
                Ok(()) => match TcpStream::connect(address).await {
                    Ok(stream) => return Ok(stream),
                    Err(error) => failed = error.to_string(),
                },
            }
        }
        Err(failed)
    }
}

async fn handshake<T>(stream: T) -> Result<Sender, String>
where
    T: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(stream).await.map_err(|error| error.to_string())?;
    tokio::spawn(async move {
        // Whoever sends over it is told of its end.
        let _ = connection.await;
    });
    Ok(sender)
}

/// Reads an answer to its end, unless it is too long.
async fn is_read(response: Response<hyper::body::Incoming>) -> bool {
    let mut body = response.into_body();
    let mut left = DELIVERY_ANSWER_BYTES_MAX;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        let Some(rest) = left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) else { return false };
        left = rest;
    }
    true
}
