//! Describes the request of an entry, for recognizing repeated requests with the same idempotency key.

use ledger_core::{Operation, PriorRequest};

use super::record::{Event, LogRecord, TargetRecord};

/// Returns the idempotency key of an entry and its request.
pub fn prior_request<'a>(log: &LogRecord<'a>) -> Option<(&'a str, PriorRequest)> {
    let idempotency = log.idempotency?;
    let (hash, operation) = (idempotency.hash.into(), operation_of(&log.event));
    Some((idempotency.key, PriorRequest { hash, foreign: log.imported, operation }))
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
