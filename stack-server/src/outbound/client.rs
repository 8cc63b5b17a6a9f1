//! A small HTTP client: deliveries, of which only the status counts, and questions with their answers.

use std::sync::Mutex;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::policy::Outbound;
use super::target::Target;
use super::tls::{Identity, secured};
use crate::limits::{DELIVERY_ANSWER_BYTES_MAX, DELIVERY_IDLE_MAX, DELIVERY_TIMEOUT};

type Sender = SendRequest<Full<Bytes>>;

/// A status, and what was said unless it was too long.
type Answer = (StatusCode, Option<Vec<u8>>);

/// A question to another server.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) method: Method,
    pub(crate) target: Target,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Most bytes of an answer.
    pub(crate) bytes_max: usize,
    /// How long to wait for a connection, and for all of it.
    pub(crate) connect_timeout: Duration,
    pub(crate) timeout: Duration,
}

/// The answer of another server.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Speaks to others, over connections that are kept for the next request.
#[derive(Debug)]
pub(crate) struct Client {
    policy: Outbound,
    /// The certificate with which it answers servers that ask for one.
    identity: Option<Identity>,
    idle: Mutex<Vec<(Target, Sender)>>,
}

impl Client {
    /// A client that goes where the policy allows.
    pub(crate) fn new(policy: Outbound) -> Self {
        Self { policy, identity: None, idle: Mutex::default() }
    }

    /// A client with a certificate of its own.
    pub(crate) fn with_identity(policy: Outbound, identity: Identity) -> Self {
        Self { identity: Some(identity), ..Self::new(policy) }
    }

    /// Posts a body of JSON and waits for the answer.
    ///
    /// # Errors
    ///
    /// Why it is not known to have been taken: no connection, no answer in time, or one that is no success.
    pub(crate) async fn post(&self, target: &Target, headers: &HeaderMap, body: Bytes) -> Result<(), String> {
        self.post_for_answer(target, headers, body).await.map(drop)
    }

    /// Posts as [`Client::post`], and returns what a success says; nothing where that is too long to be read.
    ///
    /// # Errors
    ///
    /// As [`Client::post`].
    pub(crate) async fn post_for_answer(
        &self,
        target: &Target,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Option<Vec<u8>>, String> {
        let posting = tokio::time::timeout(DELIVERY_TIMEOUT, self.send(target, headers, body));
        let answer = posting.await.map_err(|_| format!("{target}: no answer in time"))?;
        let (status, said) = answer.map_err(|error| format!("{target}: {error}"))?;
        if status.is_success() { Ok(said) } else { Err(format!("{target}: answered {status}")) }
    }

    async fn send(&self, target: &Target, headers: &HeaderMap, body: Bytes) -> Result<Answer, String> {
        // The other side may have closed a kept connection at any time; a new one tells what is wrong.
        while let Some(sender) = self.kept(target) {
            if let Ok(answer) = self.exchange(target, sender, headers, body.clone()).await {
                return Ok(answer);
            }
        }
        let sender = self.connect(target).await?;
        self.exchange(target, sender, headers, body).await
    }

    /// Asks another server and reads its answer. Redirects are answers like all others.
    ///
    /// # Errors
    ///
    /// If there is no connection, no whole answer in time, or one that is too long.
    pub(crate) async fn ask(&self, question: &Question) -> Result<Answered, String> {
        let asking = tokio::time::timeout(question.timeout, self.ask_once_or_twice(question));
        let target = &question.target;
        let answered = asking.await.map_err(|_| format!("{target}: no answer in time"))?;
        answered.map_err(|error| format!("{target}: {error}"))
    }

    async fn ask_once_or_twice(&self, question: &Question) -> Result<Answered, String> {
        // What changes something is sent once: nobody knows how far a kept connection got.
        if question.method == Method::GET
            && let Some(sender) = self.kept(&question.target)
            && let Ok(answered) = self.ask_over(question, sender).await
        {
            return Ok(answered);
        }
        let connecting = tokio::time::timeout(question.connect_timeout, self.connect(&question.target));
        let sender = connecting.await.map_err(|_| "no connection in time".to_owned())??;
        self.ask_over(question, sender).await
    }

    async fn ask_over(&self, question: &Question, mut sender: Sender) -> Result<Answered, String> {
        let target = &question.target;
        let request = Request::builder().method(question.method.clone()).uri(target.path());
        let mut request =
            request.body(Full::new(question.body.clone())).map_err(|error| error.to_string())?;
        *request.headers_mut() = question.headers.clone();
        let host = HeaderValue::from_str(&target.host_header()).map_err(|error| error.to_string())?;
        request.headers_mut().insert(HOST, host);
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let (parts, mut body) = response.into_parts();
        let mut read = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| format!("the answer breaks off: {error}"))?;
            let data = frame.data_ref().map_or(&[][..], |data| data);
            if read.len() + data.len() > question.bytes_max {
                return Err(format!("the answer is longer than {} bytes", question.bytes_max));
            }
            read.extend_from_slice(data);
        }
        if sender.ready().await.is_ok() {
            self.keep(target, sender);
        }
        Ok(Answered { status: parts.status, headers: parts.headers, body: Bytes::from(read) })
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
    ) -> Result<Answer, String> {
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
        // An answer that is read to its end leaves the connection to the next request.
        let said = said(response).await;
        if said.is_some() && sender.ready().await.is_ok() {
            self.keep(target, sender);
        }
        Ok((status, said))
    }

    async fn connect(&self, target: &Target) -> Result<Sender, String> {
        self.policy.allow(target)?;
        let stream = self.reach(target).await?;
        // Requests are small, and each waits for its answer.
        let _ = stream.set_nodelay(true);
        if !target.is_secure() {
            return handshake(TokioIo::new(stream)).await;
        }
        let secured = match &self.identity {
            None => secured(stream, target.host()).await?,
            Some(identity) => {
                let host = target.host();
                identity.secured(stream, host).await.map_err(|error| error.to_string())?
            }
        };
        handshake(TokioIo::new(secured)).await
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
async fn said(response: Response<hyper::body::Incoming>) -> Option<Vec<u8>> {
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
