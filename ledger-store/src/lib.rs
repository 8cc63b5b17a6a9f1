//! Embedded, durable double-entry ledger: one journal on disk, rebuildable projections.

mod codec;
mod entry;
mod error;
mod journal;
mod query;
mod submission;

pub use error::{OpenError, ReadError, WriteError};
pub use query::*;
pub use submission::{Atomicity, Detail, Mode, Outcome, Receipt, Request, Submission};
