//! Reads: questions answered from one moment of the store.
//!
//! - [`snapshot`]: the public face. Each question gets a [`session`] of its own.
//! - [`reader`]: numbers back to names, entries back to what they record.
//! - [`timeline`]: dates to ids. [`flows`]: volumes of a holding at any date.
//! - [`account`], [`accounts`], [`addresses`]: accounts, one and many.
//! - [`transaction`], [`transactions`]: transactions, one and many; [`plan`] finds the index that leads to
//!   those of a filter, [`candidates`] follows it, [`streams`] merges what several lead to.
//! - [`logs`], [`hash`], [`volumes`]: logs and sums. [`feed`]: logs for whoever passes them on.
//! - [`documents`], [`schemas`]: small documents, and those that are schemas; [`document_reader`] finds both.
//! - [`explain`]: how a list is found.
//! - [`page`], [`weight`], [`foremost`], [`limits`]: what lists share.

mod account;
mod accounts;
mod addresses;
mod candidates;
mod document_reader;
mod documents;
mod effective;
mod explain;
mod feed;
mod flows;
mod foremost;
mod hash;
mod limits;
mod logs;
mod open_pages;
mod page;
mod plan;
mod reader;
mod schemas;
mod session;
mod snapshot;
mod streams;
#[cfg(test)]
mod tests;
mod timeline;
mod transaction;
mod transactions;
mod volumes;
mod weight;

pub(crate) use effective::{Later, TriedMoves};
pub use feed::{FedLog, FedLogs, FeedPart, FeedPosition, FeedSize};
pub(crate) use hash::chain_before;
pub(crate) use reader::{LedgerReader, RecordedTransaction, idempotency_of, reference_of};
pub(crate) use session::Session;
pub use snapshot::{LedgerView, Snapshot};
