//! Recognizes repeated requests with the same idempotency key.

use ledger_core::{Command, Operation, SmolStr};

use super::record::{Event, LogRecord, TargetRecord};

/// The data of a request that its entry keeps, for comparing later requests with the same idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorRequest {
    /// Hash of the request; empty if there is none.
    pub hash: SmolStr,
    /// True if another server may have computed the hash. It may use another function, so a difference proves nothing.
    foreign: bool,
    operation: Operation,
}

impl PriorRequest {
    /// Returns the idempotency key of an entry and the data that recognizes its request.
    pub fn of<'a>(log: &LogRecord<'a>) -> Option<(&'a str, Self)> {
        let idempotency = log.idempotency?;
        let (hash, operation) = (idempotency.hash.into(), operation_of(&log.event));
        Some((idempotency.key, Self { hash, foreign: log.imported, operation }))
    }

    /// Returns whether a request may be a repetition of this one. If `several` commands share the key, only the hash
    /// can tell, because nothing else records how many logs they created.
    pub fn is_repeated_by(&self, hash: &str, command: &Command, several: bool) -> bool {
        let unknown = self.foreign || self.hash.is_empty() || hash.is_empty();
        let is_same =
            if several { self.hash == hash && !hash.is_empty() } else { self.hash == hash || unknown };
        self.operation == Operation::of(command) && is_same
    }
}

fn operation_of(event: &Event<'_>) -> Operation {
    let transaction = |target: &TargetRecord<'_>| match target {
        TargetRecord::Transaction(id) => Some(*id),
        TargetRecord::Account(_) | TargetRecord::Unknown(_) => None,
    };
    match event {
        Event::Transaction(transaction) => match transaction.reverts {
            None => Operation::Create,
            Some(id) => Operation::Revert(id),
        },
        Event::SetMetadata { target, .. } => Operation::SetMetadata(transaction(target)),
        Event::DeleteMetadata { target, .. } => Operation::DeleteMetadata(transaction(target)),
        Event::InsertedSchema { .. } => Operation::InsertSchema,
    }
}
