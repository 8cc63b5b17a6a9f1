//! Reads: queries that are answered from one snapshot of the store.
//!
//! - [`snapshot`]: the public interface. Each query gets its own [`session`].
//! - [`reader`]: converts numbers back to names, and entries to log entries and transactions.
//! - [`timeline`]: converts dates to ids. [`flows`]: volumes of a holding at any date.
//! - [`account`], [`accounts`], [`addresses`]: single accounts, and lists of them.
//! - [`transaction`], [`transactions`]: single transactions, and lists of them. [`plan`] chooses the index for a
//!   filter, [`candidates`] follows it, [`streams`] merges several sources.
//! - [`logs`], [`hash`], [`volumes`]: logs, wire hashes, and sums. [`feed`]: logs for consumers that forward them.
//! - [`documents`], [`schemas`]: documents and schemas; [`document_reader`] reads both.
//! - [`explain`]: explains how a list is found.
//! - [`page`], [`weight`], [`top_k`], [`limits`]: shared parts of lists.

mod account;
mod accounts;
mod addresses;
mod candidates;
mod document_reader;
mod documents;
pub(crate) mod effective;
mod explain;
mod feed;
mod flows;
mod hash;
mod limits;
pub(crate) mod logs;
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
mod top_k;
mod transaction;
mod transactions;
mod volumes;
mod weight;

pub(crate) use effective::{DryRunMoves, LaterTransactions};
pub use feed::{FedLog, FedLogs, FeedPart, FeedPosition, FeedSize};
pub(crate) use hash::chain_before;
pub(crate) use reader::{LedgerReader, RecordedTransaction, idempotency_of, reference_of, sort_volumes};
pub(crate) use session::Session;
pub use snapshot::{LedgerView, Snapshot};
