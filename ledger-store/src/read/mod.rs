//! Reads: questions answered from one moment of the store.

mod reader;

pub(crate) use reader::{LedgerReader, idempotency_of, reference_of};
