//! The embedded interface: handles to ledgers, builders for writes, lists and snapshots.

mod answer;
mod async_reads;
mod async_store;
mod batch;
mod error;
mod future;
mod handle;
mod kinds;
mod list;
mod metadata;
mod more_kinds;
mod reads;
mod registry;
mod request;
mod revert;
mod snapshot;
mod stored_list;
mod stream;
mod write;

pub use self::answer::{Committed, DryRun};
pub use self::batch::{AtomicBatch, Batch};
pub use self::error::LedgerError;
pub use self::future::CommitFuture;
pub use self::handle::Ledger;
pub use self::kinds::{AccountKind, AccountList, LogKind, LogList, TransactionKind, TransactionList};
pub use self::list::{List, ListIter, ListKind, ListPage};
pub use self::metadata::MetadataBuilder;
pub use self::more_kinds::{SchemaKind, SchemaList, VolumeKind, VolumeList};
pub use self::request::IntoRequest;
pub use self::revert::RevertBuilder;
pub use self::snapshot::{BalanceSums, LedgerSnapshot};
pub use self::stored_list::{StoredList, check_queries};
pub use self::stream::ListStream;
pub use self::write::{ByPostings, ByScript, TransactionBuilder};
