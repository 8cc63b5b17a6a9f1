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
mod hashes;
mod index;
mod journal;
mod lookup;
mod manifest;
mod names;
mod options;
mod projection;
mod query;
mod read;
mod recovery;
mod store;
mod submission;
#[cfg(feature = "testing")]
pub mod testing;
mod verify;
mod view;
mod writer;

pub use error::{OpenError, ReadError, WriteError};
pub use options::{Options, SystemClock, TimeSource};
pub use query::*;
pub use store::{Opening, Status, Store};
pub use submission::{Atomicity, Detail, Mode, Outcome, Receipt, Request, Submission};
pub use verify::{VerifyError, VerifyReport, Violation, ViolationCode};
