//! The requests that builders make.

use ledger_core::{AccountAddress, Command, IdempotencyKey, Preconditions, SchemaVersion};

use super::error::LedgerError;
use crate::submission::Request;

/// The parts of a request that builders of all commands have besides the command: the idempotency key, the schema
/// version and the preconditions. Also holds the first error of a builder, which it reports instead of a request.
#[derive(Debug, Default)]
pub(super) struct RequestParts {
    key: Option<IdempotencyKey>,
    pub(super) schema_version: Option<Box<SchemaVersion>>,
    preconditions: Option<Box<Preconditions>>,
    fault: Option<LedgerError>,
}

impl RequestParts {
    pub(super) fn note(&mut self, error: impl Into<LedgerError>) {
        self.fault.get_or_insert_with(|| error.into());
    }

    pub(super) fn set_key(&mut self, key: &str) {
        match IdempotencyKey::parse(key) {
            Ok(key) => self.key = Some(key),
            Err(error) => self.note(error),
        }
    }

    /// Adds an account that must exist.
    pub(super) fn require_account(&mut self, address: &str) {
        match AccountAddress::parse(address) {
            Ok(account) => self.preconditions.get_or_insert_default().existing.push(account),
            Err(error) => self.note(error),
        }
    }

    /// Adds an account that must not exist.
    pub(super) fn require_new_account(&mut self, address: &str) {
        match AccountAddress::parse(address) {
            Ok(account) => self.preconditions.get_or_insert_default().new.push(account),
            Err(error) => self.note(error),
        }
    }

    pub(super) fn request(self, command: Command) -> Result<Request, LedgerError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let request = match self.key {
            Some(key) => Request::once(key, command),
            None => command.into(),
        };
        Ok(Request { schema_version: self.schema_version, preconditions: self.preconditions, ..request })
    }
}

/// A command that a [`Batch`](super::Batch) takes: a builder of a [`Ledger`](crate::Ledger), a [`Request`], or a [`Command`].
pub trait IntoRequest {
    /// Returns the command with its idempotency key.
    ///
    /// # Errors
    ///
    /// The first fault of its values.
    fn into_request(self) -> Result<Request, LedgerError>;
}

impl IntoRequest for Command {
    fn into_request(self) -> Result<Request, LedgerError> {
        Ok(self.into())
    }
}

impl IntoRequest for Request {
    fn into_request(self) -> Result<Request, LedgerError> {
        Ok(self)
    }
}
