//! The index: every projection of the journal, in one redb file that can be rebuilt from it.
//!
//! Rows that arrive on a hot path never enter a B-tree one by one. They are
//! gathered in memory as small sorted *pieces*, and written as immutable
//! sorted *runs* of blocks, which a thread of its own merges. What is looked
//! up by a dense id (volumes, addresses) lies in plain tables of pages.
//!
//! - [`file`]: the redb file; [`snapshot`]: what it holds at one commit; [`write`]: how it is changed.
//! - [`stored`]: checksums of values and proofs that there is none; [`range`]: values between two keys; [`error`]: why
//!   there is no answer; [`tables`]: the names of all tables.
//! - [`health`]: what was noticed to be wrong with the file; [`gate`]: how it is shut off from the disk.
//! - [`row`] and [`rows`]: what a row is, and the eight kinds of rows; [`sort`]: putting them in order.
//! - [`block`]: rows to bytes and back.
//! - [`filter`]: proof that a run lacks a key, within a memory budget; [`resident`]: the same, held whole.
//! - [`runs`]: the list of runs of a table, and how a run is written.
//! - [`merge`]: how adjacent runs become one, beside the readers and writers; [`stream`]: how it reads a run.
//! - [`purge`]: dropping what is of ledgers that were removed for good.
//! - [`cursor`] and [`table`]: how pieces and runs are read as one table; [`tournament`]: which of them is next.

pub(crate) mod block;
pub(crate) mod cursor;
pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod filter;
mod gate;
mod health;
pub(crate) mod merge;
pub(crate) mod purge;
mod range;
pub(crate) mod resident;
pub(crate) mod row;
pub(crate) mod rows;
pub(crate) mod runs;
pub(crate) mod snapshot;
pub(crate) mod sort;
pub(crate) mod stored;
pub(crate) mod stream;
pub(crate) mod table;
pub(crate) mod tables;
#[cfg(test)]
mod tests;
pub(crate) mod tournament;
pub(crate) mod write;

pub(crate) use cursor::{Direction as Way, merge_pieces, merged};
pub(crate) use error::IndexError;
pub(crate) use file::{ABOUT_KEY, Commit, FORMAT, IndexFile, IndexOptions};
pub(crate) use health::Fault;
pub(crate) use merge::maintain;
pub(crate) use purge::{Gone, Stretch, purge_plain, purge_runs};
pub(crate) use range::PlainRange;
pub(crate) use resident::KnownKeys;
pub(crate) use row::{PieceRows, Row, linked, piece_bytes, seal_piece};
pub(crate) use rows::{
    DisplacedRow, DisplacedSums, EffectiveRow, HistoryRow, KeyRow, LogRow, Quantity, TermRow, TransactionRow,
    VersionRow,
};
pub(crate) use runs::write_run;
pub(crate) use snapshot::IndexSnapshot;
pub(crate) use sort::sort_rows;
pub(crate) use table::TableView;
pub(crate) use write::{IndexWrite, PlainTable};
