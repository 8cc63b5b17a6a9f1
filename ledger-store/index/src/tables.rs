//! Names of the tables of the index, all of them.
//!
//! Every table is created with the file. One that is missing is damage and never an empty table: a single flipped bit
//! in a stored name would otherwise make all that is in the table vanish.

use super::rows::TABLES;

/// The table of the lists of runs, and of the row counts of all other tables.
pub(super) const LISTS: &str = "runs.list";
/// The key of the row counts, among the lists of runs.
pub(super) const COUNTS_KEY: &[u8] = &[u8::MAX];
/// The table of filter pages.
pub(super) const FILTERS: &str = "runs.filters";

/// Pages of accounts by number.
pub const ACCOUNTS: &str = "accounts";
/// Pages of the first usages of accounts by number.
pub const USAGES: &str = "usages";
/// Pages of holdings by number.
pub const HOLDINGS: &str = "holdings";
/// Ledger (4 bytes) and address to account number.
pub const ADDRESSES: &str = "addresses";
/// Ledger (4 bytes), kind (1 byte), number (4 bytes) to text.
pub const NAMES: &str = "names";
/// Collection (4 bytes) and key to document.
pub const DOCUMENTS: &str = "documents";
/// Ledger (4 bytes) to its counters.
pub const HEADS: &str = "heads";
/// Ledger (4 bytes) that was removed for good, to what is remembered of it.
pub const REMOVED: &str = "removed";
/// Ledger (4 bytes) and log (8 bytes) to the wire hash after it.
pub const HASHES: &str = "hashes";
/// Facts about the index as a whole.
pub const ABOUT: &str = "about";

/// The plain tables: those whose values are read by key. A new table needs a place here and its comparison in `verify`.
pub const PLAIN: [&str; 10] =
    [ACCOUNTS, USAGES, HOLDINGS, ADDRESSES, NAMES, DOCUMENTS, HEADS, HASHES, REMOVED, ABOUT];

/// The tables whose rows are counted: all but the one that holds the counts.
pub(super) fn counted() -> impl Iterator<Item = &'static str> {
    TABLES.iter().chain(&[FILTERS]).chain(&PLAIN).copied()
}

/// The name of a table as it is listed here; none if nobody knows it.
pub(super) fn known(name: &str) -> Option<&'static str> {
    counted().chain([LISTS]).find(|known| *known == name)
}
