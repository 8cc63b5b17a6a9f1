//! By what a repetition of a request is recognized.

use ledger_core::{Command, CompactString, Operation};

use super::record::{Event, LogRecord, TargetRecord};

/// What an entry keeps of the request that made it, to compare a later one under the same idempotency key with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recognition {
    /// The hash of the request; empty where there is none.
    pub(crate) hash: CompactString,
    /// Whether the hash may be another server's, who hash otherwise: that two differ says nothing then.
    foreign: bool,
    operation: Operation,
}

impl Recognition {
    /// The idempotency key of an entry, and by what its request is recognized.
    pub(crate) fn of<'a>(log: &LogRecord<'a>) -> Option<(&'a str, Self)> {
        let idempotency = log.idempotency?;
        let (hash, operation) = (idempotency.hash.into(), operation_of(&log.event));
        Some((idempotency.key, Self { hash, foreign: log.imported, operation }))
    }

    /// Whether this may be the same request again. One of `several` commands under one key is known by its hash alone:
    /// nothing else tells how many logs it made.
    pub(crate) fn admits(&self, hash: &str, command: &Command, several: bool) -> bool {
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
