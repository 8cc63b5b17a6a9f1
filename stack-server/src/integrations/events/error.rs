//! Errors of the delivery of events.

use std::io;
use std::path::PathBuf;

use async_nats::ConnectError;
use async_nats::jetstream::context::{CreateStreamError, GetStreamByNameError, PublishError};
use ledger_store::{ReadError, WriteError};
use thiserror::Error;
use tokio::task::JoinError;

use crate::outbound::{AddressError, OutboundError};

/// The broker did not acknowledge a delivery. It may have received the event nevertheless.
#[derive(Debug, Error)]
pub(super) enum DeliveryError {
    #[error("the topic is no address")]
    NoAddress,
    /// The message id is not a valid header value.
    #[error(transparent)]
    Header(#[from] hyper::http::Error),
    #[error(transparent)]
    Http(#[from] OutboundError),
    #[error("the NATS server is away")]
    NatsAway,
    #[error(transparent)]
    NatsConnect(#[from] ConnectError),
    #[error(transparent)]
    NatsPublish(#[from] PublishError),
    #[error(transparent)]
    NatsLookup(#[from] GetStreamByNameError),
    #[error(transparent)]
    NatsProvision(#[from] CreateStreamError),
}

/// The store could not read or write events or a position.
#[derive(Debug, Error)]
pub(super) enum StorageError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The thread that accessed the store panicked.
    #[error(transparent)]
    Thread(#[from] JoinError),
}

/// The settings of a broker are not valid.
#[derive(Debug, Error)]
pub(super) enum BrokerSettingsError {
    #[error("the topic of {event} must be an address: {reason}")]
    TopicAddress { event: &'static str, reason: AddressError },
    #[error("the NATS server's address does not parse")]
    NatsAddress,
    #[error("there is no address of a NATS server")]
    NoNatsAddress,
    #[error("the topic {topic:?} of {event} is no subject")]
    Subject { topic: String, event: &'static str },
}

/// The publishers cannot start.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct PublishersError(#[from] StartFailure);

/// The reason why the publishers cannot start.
#[derive(Debug, Error)]
pub(super) enum StartFailure {
    #[error(transparent)]
    Settings(#[from] BrokerSettingsError),
    #[error("{}: {error}", .path.display())]
    ReadSecrets { path: PathBuf, error: io::Error },
    #[error("{}: there is no secret in it", .0.display())]
    NoSecrets(PathBuf),
    #[error("the position of the publisher {0} is damaged")]
    Position(&'static str),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The operating system cannot start a thread or a timer.
    #[error(transparent)]
    System(#[from] io::Error),
}
