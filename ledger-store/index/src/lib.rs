//! The index: all projections of the journal, in one redb file that can be rebuilt.
//!
//! Rows never enter a B-tree one by one on a hot path. They accumulate in memory as sorted *memtables* (in the code:
//! memtables). A flush writes them as immutable sorted *runs* of blocks, and a separate thread merges runs. Data that is
//! looked up by a dense number, such as volumes and addresses, is in plain tables of pages.
//!
//! - `file`: the redb file; `open_file`: its state while it is open; `snapshot`: its content at one commit; `write`:
//!   changes to it.
//! - `stored`: checksums of values and proofs of absence; `range`: values between two keys; `error`: the errors;
//!   `tables`: the names of all tables.
//! - `health`: defects that were noticed in the file; `gate`: cuts the file off from the disk.
//! - `row` and `rows`: the kinds of rows, and the list of their tables; `sort`: sorts them.
//! - `block`: encodes and decodes blocks of rows.
//! - `filter`: proves that a run lacks a key; `filter_cache`: a bounded cache of filter pages; `resident`: filters
//!   that are in memory completely.
//! - `run_list`: the list of runs of a table; `runs`: writes a run.
//! - `merge`: merges adjacent runs in the background; `stream`: reads a run for a merge.
//! - `purge`: deletes the rows of dropped ledgers, which were removed for good; `dropped`: finds the runs with rows of
//!   them.
//! - `cursor` and `table`: read memtables and runs as one table; `run_cursor`: reads one run; `order`: chooses the
//!   next source; `merged`: reads memtables only; `loser_tree`: chooses the next of many memtables;
//!   `merged_sources`: merges sequences of any items that may fail.
//!
//! This crate is internal to `ledger-store`: its API is not stable.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "numbers in tests are small"
    )
)]

mod block;
mod block_cursor;
mod cursor;
mod dropped;
mod error;
mod file;
mod filter;
mod filter_cache;
mod gate;
mod health;
mod loser_tree;
mod merge;
mod merged;
mod merged_runs;
mod merged_sources;
mod open_file;
mod order;
mod purge;
mod range;
mod resident;
mod row;
mod rows;
mod run_cursor;
mod run_list;
mod runs;
mod snapshot;
mod sort;
mod stored;
mod stream;
mod table;
pub mod tables;
#[cfg(test)]
mod tests;
mod write;

pub use dropped::DroppedLedgers;
pub use error::IndexError;
pub use file::{ABOUT_KEY, Commit, FORMAT, IndexFile, IndexOptions};
#[cfg(feature = "testing")]
pub use filter::alter as alter_filter;
pub use health::Fault;
pub use merge::maintain;
pub use merged::{Merged, merge_memtables, merged};
pub use merged_sources::MergedSources;
pub use order::Direction as Way;
pub use purge::{KeyRange, purge_plain, purge_runs};
pub use range::PlainRange;
pub use resident::UniquenessFilter;
pub use row::{MemtableRows, Row, freeze_memtable, linked, memtable_bytes};
pub use rows::{
    BackdatedRow, BackdatedSums, DocumentRow, EffectiveRow, HistoryRow, KeyRow, LogRow, Quantity,
    SharedBytes, TermRow, TransactionRow, VersionRow,
};
pub use runs::write_run;
pub use snapshot::IndexSnapshot;
pub use sort::sort_rows;
pub use table::TableView;
pub use write::{IndexWrite, PlainTable};
