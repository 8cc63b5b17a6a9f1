//! By what a repetition of a request is recognized.

use ledger_core::{Command, CompactString, Operation};

use super::record::{Event, LogRecord, TargetRecord};

/// What an entry keeps of the request that made it, to compare a later one under the same idempotency key with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recognition {
    /// The hash of the request. Empty where there is none to compare: other servers hash otherwise, so that of an
    /// imported log says nothing about a request here.
    pub(crate) hash: CompactString,
    operation: Operation,
}

impl Recognition {
    /// The idempotency key of an entry, and by what its request is recognized.
    pub(crate) fn of<'a>(log: &LogRecord<'a>) -> Option<(&'a str, Self)> {
        let idempotency = log.idempotency?;
        let hash = if log.imported { "" } else { idempotency.hash };
        Some((idempotency.key, Self { hash: hash.into(), operation: operation_of(&log.event) }))
    }

    /// Whether this may be the same request again.
    pub(crate) fn admits(&self, hash: &str, command: &Command) -> bool {
        self.operation == Operation::of(command)
            && (self.hash.is_empty() || hash.is_empty() || self.hash == hash)
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
