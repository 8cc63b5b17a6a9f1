//! The reasons why events are not delivered.

use std::io;
use std::path::PathBuf;

use async_nats::ConnectError;
use async_nats::jetstream::context::{CreateStreamError, GetStreamByNameError, PublishError};
use ledger_store::{ReadError, WriteError};
use thiserror::Error;
use tokio::task::JoinError;

use crate::outbound::{AddressError, OutboundError};

/// A delivery that the broker did not acknowledge. The broker may have received the event all the same.
#[derive(Debug, Error)]
pub(super) enum DeliveryError {
    #[error("the topic is no address")]
    NoAddress,
    /// The message id is no value of a header.
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

/// Events or a position that the store could not read or write.
#[derive(Debug, Error)]
pub(super) enum StorageError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The thread that asked the store panicked.
    #[error(transparent)]
    Thread(#[from] JoinError),
}

/// Settings that describe no broker.
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

/// Publishers that cannot start.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct PublishersError(#[from] StartFailure);

/// The step at which the start of the publishers failed.
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
    /// The operating system gives no thread or no timer.
    #[error(transparent)]
    System(#[from] io::Error),
}
