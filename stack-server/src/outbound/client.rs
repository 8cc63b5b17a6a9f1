//! A small HTTP/1.1 client for requests of this server to other servers. It keeps idle connections for later requests.
//!
//! There are two kinds of requests. A delivery posts events or logs as JSON, with a fixed timeout ([`Client::post`]).
//! If an idle connection fails, the client repeats a delivery, so it may arrive twice. A question ([`Client::ask`]) has
//! any method and its own limits, and returns headers and body of the response. The client repeats only GET questions.

use std::sync::Mutex;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::error::{OutboundError, RequestFailure};
use super::policy::OutboundPolicy;
use super::target::Target;
use super::tls::{Identity, connect_tls};
use crate::limits::{DELIVERY_ANSWER_BYTES_MAX, DELIVERY_IDLE_MAX, DELIVERY_TIMEOUT};

type Sender = SendRequest<Full<Bytes>>;

/// The status and the body of a response. The body is `None` if it is too long or incomplete.
type DeliveryResponse = (StatusCode, Option<Vec<u8>>);

/// A request to another server whose response matters.
#[derive(Clone, Debug)]
pub(crate) struct OutboundRequest {
    pub(crate) method: Method,
    pub(crate) target: Target,
    /// All headers except `host`. The client does not add the credentials of the target.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Maximum size of the response body in bytes. A longer body is an error.
    pub(crate) bytes_max: usize,
    /// Maximum time to connect.
    pub(crate) connect_timeout: Duration,
    /// Maximum time until the response is complete, including the time to connect.
    pub(crate) timeout: Duration,
}

/// The response to a [`OutboundRequest`].
#[derive(Clone, Debug)]
pub(crate) struct OutboundResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// An HTTP client that keeps idle connections for later requests.
#[derive(Debug)]
pub(crate) struct Client {
    /// The policy for addresses.
    policy: OutboundPolicy,
    /// The client certificate for servers that request one.
    identity: Option<Identity>,
    /// Idle connections and their servers.
    idle: Mutex<Vec<(Target, Sender)>>,
    /// Changes whenever a connection has closed.
    closings: watch::Sender<()>,
}

impl Client {
    /// Creates a client without a certificate. It connects only to addresses that the policy allows.
    pub(crate) fn new(policy: OutboundPolicy) -> Self {
        Self { policy, identity: None, idle: Mutex::default(), closings: watch::Sender::default() }
    }

    /// Creates a client with a certificate, for mutual TLS.
    pub(crate) fn with_identity(policy: OutboundPolicy, identity: Identity) -> Self {
        Self { identity: Some(identity), ..Self::new(policy) }
    }

    /// Opens a connection to the server of a target for later requests, unless there is one.
    ///
    /// # Errors
    ///
    /// Fails if the client cannot connect in time.
    pub(crate) async fn open(&self, target: &Target) -> Result<(), OutboundError> {
        let opening = async {
            let sender = match self.take_idle(target) {
                Some(sender) => sender,
                None => self.connect(target).await?,
            };
            self.keep_when_ready(target, sender).await;
            Ok(())
        };
        let opened = tokio::time::timeout(DELIVERY_TIMEOUT, opening).await;
        let opened = opened.unwrap_or(Err(RequestFailure::ConnectTimeout));
        opened.map_err(|reason| OutboundError { target: target.clone(), reason })
    }

    /// Returns a receiver that changes whenever a connection of this client closes from now on.
    pub(crate) fn closings(&self) -> watch::Receiver<()> {
        self.closings.subscribe()
    }

    /// Waits until a connection has closed and no idle one to the server of a target is left.
    pub(crate) async fn wait_until_closed(&self, target: &Target, closings: &mut watch::Receiver<()>) {
        // An error would mean that the client was dropped.
        while closings.changed().await.is_ok() && self.keeps_connection_to(target) {}
    }

    /// Returns whether there is an idle connection to the server of a target, or no space for one.
    fn keeps_connection_to(&self, target: &Target) -> bool {
        let Ok(idle) = self.idle.lock() else { return false };
        let mut open = idle.iter().filter(|(_, sender)| !sender.is_closed());
        open.clone().count() >= DELIVERY_IDLE_MAX || open.any(|(other, _)| other.shares_connection(target))
    }

    /// Posts a JSON body and waits until the other server accepts it. The request may arrive twice.
    ///
    /// # Errors
    ///
    /// Fails if the client cannot connect, if no response arrives in time, or if its status is not a success. The other
    /// server may have accepted the body nevertheless.
    pub(crate) async fn post(
        &self,
        target: &Target,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<(), OutboundError> {
        self.post_for_answer(target, headers, body).await.map(drop)
    }

    /// Posts like [`Client::post`], and returns the body of the response. Returns `None` if the body is longer than
    /// [`DELIVERY_ANSWER_BYTES_MAX`] or incomplete.
    ///
    /// # Errors
    ///
    /// Fails like [`Client::post`].
    pub(crate) async fn post_for_answer(
        &self,
        target: &Target,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Option<Vec<u8>>, OutboundError> {
        let posting = tokio::time::timeout(DELIVERY_TIMEOUT, self.send(target, headers, body));
        let answer = posting.await.unwrap_or(Err(RequestFailure::AnswerTimeout));
        let delivered = match answer {
            Ok((status, answer_body)) if status.is_success() => Ok(answer_body),
            Ok((status, _)) => Err(RequestFailure::Status(status)),
            Err(reason) => Err(reason),
        };
        delivered.map_err(|reason| OutboundError { target: target.clone(), reason })
    }

    async fn send(
        &self,
        target: &Target,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<DeliveryResponse, RequestFailure> {
        // The other server may close an idle connection at any time. So ignore the error of an idle connection, and try
        // the next one. Only the error of a new connection is final.
        while let Some(sender) = self.take_idle(target) {
            if let Ok(answer) = self.exchange(target, sender, headers, body.clone()).await {
                return Ok(answer);
            }
        }
        let sender = self.connect(target).await?;
        self.exchange(target, sender, headers, body).await
    }

    /// Sends a request to another server and reads its response, whatever the status is. Does not follow redirects.
    ///
    /// # Errors
    ///
    /// Fails if the client cannot connect, if the response is not complete in time, or if it is too long.
    pub(crate) async fn ask(&self, outgoing: &OutboundRequest) -> Result<OutboundResponse, OutboundError> {
        let asking = tokio::time::timeout(outgoing.timeout, self.ask_with_retry(outgoing));
        let answered = asking.await.unwrap_or(Err(RequestFailure::AnswerTimeout));
        answered.map_err(|reason| OutboundError { target: outgoing.target.clone(), reason })
    }

    async fn ask_with_retry(&self, outgoing: &OutboundRequest) -> Result<OutboundResponse, RequestFailure> {
        // Use an idle connection only for GET. If the connection fails, the server may or may not have received the
        // request. Repeating a request that changes data could change them twice.
        if outgoing.method == Method::GET
            && let Some(sender) = self.take_idle(&outgoing.target)
            && let Ok(answered) = self.ask_over(outgoing, sender).await
        {
            return Ok(answered);
        }
        let connecting = tokio::time::timeout(outgoing.connect_timeout, self.connect(&outgoing.target));
        let sender = connecting.await.map_err(|_| RequestFailure::ConnectTimeout)??;
        self.ask_over(outgoing, sender).await
    }

    async fn ask_over(
        &self,
        outgoing: &OutboundRequest,
        mut sender: Sender,
    ) -> Result<OutboundResponse, RequestFailure> {
        let target = &outgoing.target;
        let request = Request::builder().method(outgoing.method.clone()).uri(target.path());
        let mut request = request.body(Full::new(outgoing.body.clone()))?;
        *request.headers_mut() = outgoing.headers.clone();
        request.headers_mut().insert(HOST, HeaderValue::from_str(&target.host_header())?);
        let response = sender.send_request(request).await?;
        let (parts, mut body) = response.into_parts();
        let mut read = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(RequestFailure::AnswerBreaksOff)?;
            let data = frame.data_ref().map_or(&[][..], |data| data);
            if read.len() + data.len() > outgoing.bytes_max {
                return Err(RequestFailure::AnswerTooLong { bytes_max: outgoing.bytes_max });
            }
            read.extend_from_slice(data);
        }
        self.keep_when_ready(target, sender).await;
        Ok(OutboundResponse { status: parts.status, headers: parts.headers, body: Bytes::from(read) })
    }

    /// Returns an idle connection to the server of a target. Drops closed connections.
    fn take_idle(&self, target: &Target) -> Option<Sender> {
        let mut idle = self.idle.lock().ok()?;
        idle.retain(|(_, sender)| !sender.is_closed());
        let at =
            idle.iter().position(|(other, sender)| other.shares_connection(target) && sender.is_ready())?;
        Some(idle.swap_remove(at).1)
    }

    /// Keeps a connection for later requests as soon as it is ready, or closes it if enough are idle.
    async fn keep_when_ready(&self, target: &Target, mut sender: Sender) {
        if sender.ready().await.is_ok()
            && let Ok(mut idle) = self.idle.lock()
            && idle.len() < DELIVERY_IDLE_MAX
        {
            idle.push((target.clone(), sender));
        }
    }

    /// Posts a delivery on a connection and reads the response.
    async fn exchange(
        &self,
        target: &Target,
        mut sender: Sender,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<DeliveryResponse, RequestFailure> {
        let mut request = Request::post(target.path()).body(Full::new(body))?;
        *request.headers_mut() = headers.clone();
        request.headers_mut().insert(HOST, HeaderValue::from_str(&target.host_header())?);
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(authorization) = target.authorization() {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        let response = sender.send_request(request).await?;
        let status = response.status();
        // A connection is only reusable after the response was read to its end.
        let answer_body = read_delivery_body(response).await;
        if answer_body.is_some() {
            self.keep_when_ready(target, sender).await;
        }
        Ok((status, answer_body))
    }

    /// Connects to the server of a target, with TLS for `https`.
    async fn connect(&self, target: &Target) -> Result<Sender, RequestFailure> {
        self.policy.allow(target)?;
        let stream = self.reach(target).await?;
        // Disable Nagle's algorithm: each request waits for its response, so a delay has no benefit.
        let _ = stream.set_nodelay(true);
        if !target.is_secure() {
            return self.handshake(TokioIo::new(stream)).await;
        }
        let secured = match &self.identity {
            None => connect_tls(stream, target.host()).await?,
            Some(identity) => identity.connect_tls(stream, target.host()).await?,
        };
        self.handshake(TokioIo::new(secured)).await
    }

    /// Resolves the host of a target, and connects to the first address that the policy allows and that accepts.
    async fn reach(&self, target: &Target) -> Result<TcpStream, RequestFailure> {
        let mut failed = RequestFailure::NoAddress;
        for address in tokio::net::lookup_host((target.host(), target.port())).await? {
            match self.policy.allow_address(address.ip()) {
                Err(refused) => failed = refused.into(),
                Ok(()) => match TcpStream::connect(address).await {
                    Ok(stream) => return Ok(stream),
                    Err(error) => failed = error.into(),
                },
            }
        }
        Err(failed)
    }

    async fn handshake<T>(&self, stream: T) -> Result<Sender, RequestFailure>
    where
        T: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    {
        let (sender, connection) = http1::handshake(stream).await?;
        let closings = self.closings.clone();
        tokio::spawn(async move {
            // Ignore the error of the connection: the requests on the connection report it.
            let _ = connection.await;
            closings.send_replace(());
        });
        Ok(sender)
    }
}

/// Reads the response body of a delivery. Returns `None` if it is too long or incomplete.
async fn read_delivery_body(response: Response<hyper::body::Incoming>) -> Option<Vec<u8>> {
    let mut body = response.into_body();
    let mut said = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.ok()?.into_data() {
            if said.len() + data.len() > DELIVERY_ANSWER_BYTES_MAX {
                return None;
            }
            said.extend_from_slice(&data);
        }
    }
    Some(said)
}
