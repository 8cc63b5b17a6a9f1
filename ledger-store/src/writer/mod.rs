//! The writer: decides commands in order, and creates their entries and rows.
//!
//! - [`command`]: a command with its outcome; [`context`]: the ledger that it is for. [`execute`] runs the steps:
//!   [`load`] finds the facts, the core decides, [`numbers`] creates the entry, and [`apply`] changes the state.
//! - [`state`]: everything that decisions need. [`ledgers`] holds the ledgers, [`locate`] finds accounts, [`schema`] and
//!   [`document_changes`] handle schemas and documents, [`undo`] takes changes back.
//! - [`apply`]: the effect of any entry; [`transaction`], [`touched`], [`documents`] and [`key_rows`] are parts of it.
//! - [`batch`]: the entries and rows that one append makes durable.
//! - [`accounts`], [`recent_keys`], [`hash_prefix`]: tables in memory, and their [prefetching](prefetch).
//! - [`import`]: logs of other stores.
//! - [`replay`]: entries that recovery reads from the journal. [`replay_load`] finds what they change.

#[allow(clippy::cast_possible_truncation, reason = "slots have 32-bit numbers")]
mod accounts;
pub(crate) mod apply;
mod batch;
mod command;
mod context;
pub(crate) mod document_changes;
mod documents;
pub(crate) mod execute;
mod hash_prefix;
mod hints;
mod holding;
pub(crate) mod import;
mod key_rows;
mod ledger_state;
mod ledgers;
pub(crate) mod load;
pub(crate) mod locate;
#[cfg(any(test, debug_assertions, feature = "testing"))]
mod miscount;
mod numbers;
mod payload;
pub(crate) mod prefetch;
mod recent;
mod recent_keys;
pub(crate) mod replay;
pub(crate) mod replay_load;
mod replay_state;
mod schema;
mod schema_cache;
mod script_reads;
mod settled;
mod size;
mod state;
mod touched;
mod transaction;
pub(crate) mod undo;
mod used_numbers;
mod written_entries;

pub(crate) use batch::Batch;
pub(crate) use command::{Decided, Prepared, SubmissionParams};
pub(crate) use context::LedgerContext;
pub(crate) use hints::PriorTransaction;
#[cfg(any(test, feature = "testing"))]
pub(crate) use miscount::Miscount;
pub(crate) use prefetch::{COMMANDS_PREFETCHED, KeyFingerprints, Prefetched};
pub(crate) use state::State;
pub(crate) use used_numbers::UsedNumbers;
pub(crate) use written_entries::WrittenEntries;
