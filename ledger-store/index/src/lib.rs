//! The index: every projection of the journal, in one redb file that can be rebuilt from it.
//!
//! Rows that arrive on a hot path never enter a B-tree one by one. They are
//! gathered in memory as small sorted *pieces*, and written as immutable
//! sorted *runs* of blocks, which a thread of its own merges. What is looked
//! up by a dense id (volumes, addresses) lies in plain tables of pages.
//!
//! - `file`: the redb file; `open_file`: its state while it is open; `snapshot`: what it holds at one commit; `write`: how it is changed.
//! - `stored`: checksums of values and proofs that there is none; `range`: values between two keys; `error`: why
//!   there is no answer; `tables`: the names of all tables.
//! - `health`: what was noticed to be wrong with the file; `gate`: how it is shut off from the disk.
//! - `row` and `rows`: what a row is, and the eight kinds of rows; `sort`: putting them in order.
//! - `block`: rows to bytes and back.
//! - `filter`: proof that a run lacks a key; `filter_cache`: its pages within a memory budget; `resident`: the same, held whole.
//! - `run_list`: the list of runs of a table; `runs`: how a run is written.
//! - `merge`: how adjacent runs become one, beside the readers and writers; `stream`: how it reads a run.
//! - `purge`: deletes the rows of ledgers that were removed for good; `dropped`: which ledgers those are, and the runs with
//!   rows of them.
//! - `cursor` and `table`: how pieces and runs are read as one table; `run_cursor`: how one run is; `order`: which
//!   source is next; `merged`: pieces alone; `tournament`: which of many pieces is next.
//!
//! Internal to `ledger-store`: the API is not stable.

#![forbid(unsafe_code)]

mod block;
mod cursor;
mod dropped;
mod error;
mod file;
mod filter;
mod filter_cache;
mod gate;
mod health;
mod merge;
mod merged;
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
mod tournament;
mod write;

pub use dropped::Gone;
pub use error::IndexError;
pub use file::{ABOUT_KEY, Commit, FORMAT, IndexFile, IndexOptions};
#[cfg(feature = "testing")]
pub use filter::alter as alter_filter;
pub use health::Fault;
pub use merge::maintain;
pub use merged::{merge_pieces, merged};
pub use order::Direction as Way;
pub use purge::{Stretch, purge_plain, purge_runs};
pub use range::PlainRange;
pub use resident::KnownKeys;
pub use row::{PieceRows, Row, linked, piece_bytes, seal_piece};
pub use rows::{
    DisplacedRow, DisplacedSums, EffectiveRow, HistoryRow, KeyRow, LogRow, Quantity, TABLES, TermRow,
    TransactionRow, VersionRow,
};
pub use runs::write_run;
pub use snapshot::IndexSnapshot;
pub use sort::sort_rows;
pub use table::TableView;
pub use write::{IndexWrite, PlainTable};
