//! Embedded, durable double-entry ledger: one journal on disk, rebuildable projections.

mod codec;
mod directory;
#[cfg_attr(not(feature = "testing"), allow(unreachable_pub, reason = "public for tests alone"))]
mod disk;
mod documents;
mod engine;
mod entry;
mod error;
mod fingerprint;
mod flush;
mod index;
mod journal;
mod lookup;
mod names;
mod options;
mod projection;
mod query;
mod read;
mod recovery;
mod store;
mod submission;
mod view;
mod writer;

pub use error::{OpenError, ReadError, WriteError};
pub use options::{Clock as TimeSource, Options, SystemClock};
pub use query::*;
pub use store::Store;
pub use submission::{Atomicity, Detail, Mode, Outcome, Receipt, Request, Submission};
