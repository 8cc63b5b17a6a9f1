//! Embedded, durable double-entry ledger: one journal on disk, rebuildable projections.

mod codec;
mod documents;
mod entry;
mod error;
mod fingerprint;
mod index;
mod journal;
mod lookup;
mod names;
mod projection;
mod query;
mod submission;
mod view;
mod writer;

pub use error::{OpenError, ReadError, WriteError};
pub use query::*;
pub use submission::{Atomicity, Detail, Mode, Outcome, Receipt, Request, Submission};
