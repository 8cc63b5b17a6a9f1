//! Errors of requests to other servers.

use std::io;
use std::net::IpAddr;

use hyper::StatusCode;
use hyper::header::InvalidHeaderValue;
use thiserror::Error;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::{InvalidDnsNameError, pem};

use super::target::Target;

/// A request failed. The other server may have acted on it nevertheless. The texts contain no secrets.
#[derive(Debug, Error)]
#[error("{target}: {reason}")]
pub(crate) struct OutboundError {
    pub(super) target: Target,
    #[source]
    pub(super) reason: RequestFailure,
}

/// The reason why a request failed.
#[derive(Debug, Error)]
pub(crate) enum RequestFailure {
    #[error(transparent)]
    Refused(#[from] AddressRefusal),
    #[error("it has no address")]
    NoAddress,
    /// The name could not be resolved, or no address accepted a connection.
    #[error(transparent)]
    Connect(#[from] io::Error),
    #[error("no connection in time")]
    ConnectTimeout,
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The parts do not form a valid request.
    #[error(transparent)]
    Request(#[from] hyper::http::Error),
    #[error(transparent)]
    Exchange(#[from] hyper::Error),
    #[error("no answer in time")]
    AnswerTimeout,
    #[error("the answer breaks off: {0}")]
    AnswerBreaksOff(#[source] hyper::Error),
    #[error("the answer is longer than {bytes_max} bytes")]
    AnswerTooLong { bytes_max: usize },
    #[error("answered {0}")]
    Status(StatusCode),
}

impl From<InvalidHeaderValue> for RequestFailure {
    fn from(error: InvalidHeaderValue) -> Self {
        Self::Request(error.into())
    }
}

/// The reason why the policy forbids an address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum AddressRefusal {
    #[error("only https is allowed")]
    NotHttps,
    #[error("port {0} is not allowed")]
    Port(u16),
    #[error("{0} is no public address")]
    NotPublic(IpAddr),
}

/// A TLS handshake failed.
#[derive(Debug, Error)]
pub(crate) enum TlsError {
    #[error("this machine trusts no certificate authority")]
    NoAuthorities,
    #[error(transparent)]
    ServerName(#[from] InvalidDnsNameError),
    #[error(transparent)]
    Settings(#[from] rustls::Error),
    /// One side does not trust the other, or the connection broke.
    #[error(transparent)]
    Handshake(#[from] io::Error),
}

/// A client certificate and a key cannot be used together.
#[derive(Debug, Error)]
pub(crate) enum IdentityError {
    /// The texts are not in PEM form.
    #[error(transparent)]
    Pem(#[from] pem::Error),
    /// There is no certificate, or the key does not belong to it.
    #[error(transparent)]
    Pair(#[from] rustls::Error),
}
