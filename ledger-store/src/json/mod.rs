//! JSON forms of logs, transactions and volumes, as in v2 of the ledger API.
//!
//! An export is a text with one log per line. [`Ledger::export`](crate::Ledger::export) and
//! [`Ledger::import`](crate::Ledger::import) do the whole work. The functions here are for programs that send or store
//! single logs.

mod buffer;
mod description;
mod log;
mod log_reader;
mod reader;
mod transaction;
mod volumes;

pub use self::buffer::{LOG_BYTES_MAX, LogBuffer};
pub use self::description::{read_description, write_description};
pub use self::log::{LogShape, write_data, write_log, write_log_of};
pub use self::log_reader::{LogFault, LogTextError, read_log};
pub use self::reader::JsonFault;
pub use self::transaction::{keeps_effective_volumes, write_recorded, write_transaction};
pub use self::volumes::{volumes_before, write_holdings, write_posting, write_volumes};
