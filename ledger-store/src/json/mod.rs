//! JSON forms of logs, transactions and volumes, as in v2 of the ledger API.
//!
//! An export is a text with one log per line. [`Ledger::export`](crate::Ledger::export) and
//! [`Ledger::import`](crate::Ledger::import) do the whole work. The functions here are for programs that send or store
//! single logs.

mod buffer;
mod description;
mod log;
mod log_reader;
mod transaction;
mod volumes;

pub use self::buffer::{LOG_BYTES_MAX, LogBuffer};
pub use self::description::{read_description, write_description, write_features};
pub use self::log::{LogShape, write_data, write_log, write_log_of};
pub use self::log_reader::{LogFault, LogTextError, read_log};
pub use self::transaction::{keeps_effective_volumes, write_recorded, write_transaction};
pub use self::volumes::{volumes_before, write_holdings, write_posting, write_volumes};

/// Maximum nesting of a text that is read. Bounds the recursion of the readers. Every log fits: only its schema is deep,
/// and [`JSON_DEPTH_MAX`](ledger_core::limits::JSON_DEPTH_MAX) bounds the nesting of a schema.
const DEPTH_MAX: usize = 128;
