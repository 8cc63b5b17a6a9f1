//! The names of all tables of the index.
//!
//! Every table is created together with the file. A missing table is damage and never an empty table: otherwise a
//! single flipped bit in a stored name would make the whole table vanish.

use super::rows::TABLES;

/// The table of the lists of runs, which also holds the row counts of all other tables.
pub(super) const LISTS: &str = "runs.list";
/// The key of the row counts in the table of lists.
pub(super) const COUNTS_KEY: &[u8] = &[u8::MAX];
/// The table of filter pages.
pub(super) const FILTERS: &str = "runs.filters";

/// Maps account page numbers to pages of accounts.
pub const ACCOUNTS: &str = "accounts";
/// Maps page numbers to pages of first usages of accounts.
pub const USAGES: &str = "usages";
/// Maps page numbers to pages of holdings.
pub const HOLDINGS: &str = "holdings";
/// Maps a ledger (4 bytes) and an address to an account number.
pub const ADDRESSES: &str = "addresses";
/// Maps a ledger (4 bytes), a kind (1 byte) and a number (4 bytes) to a text.
pub const NAMES: &str = "names";
/// Maps a collection (4 bytes) and a key to a document of the store itself, or to nothing: an index entry of one. The
/// documents of callers are rows of runs.
pub const DOCUMENTS: &str = "documents";
/// Maps a ledger (4 bytes) to its counters.
pub const HEADS: &str = "heads";
/// Maps a ledger (4 bytes) that was removed for good to its tombstone.
pub const REMOVED: &str = "removed";
/// Maps a chain (4 bytes) and a log (8 bytes) to the wire hash after the log.
pub const HASHES: &str = "hashes";
/// Facts about the index as a whole.
pub const ABOUT: &str = "about";

/// The plain tables, whose values are read by key. A new table must be added here and to the comparison in `verify`.
pub const PLAIN: [&str; 10] =
    [ACCOUNTS, USAGES, HOLDINGS, ADDRESSES, NAMES, DOCUMENTS, HEADS, HASHES, REMOVED, ABOUT];

/// Returns the tables whose rows are counted: all except the one that holds the counts.
pub(super) fn counted() -> impl Iterator<Item = &'static str> {
    TABLES.iter().chain(&[FILTERS]).chain(&PLAIN).copied()
}

/// Returns the name of a table as it is listed here, or `None` for an unknown table.
pub(super) fn known(name: &str) -> Option<&'static str> {
    counted().chain([LISTS]).find(|known| *known == name)
}
