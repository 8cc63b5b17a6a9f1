//! JSON forms of logs, transactions and volumes, as in v2 of the ledger API.
//!
//! An export is a text with one log per line. [`Ledger::export`](crate::Ledger::export) and
//! [`Ledger::import`](crate::Ledger::import) do the whole work. The functions here are for programs that send or store
//! single logs.
//!
//! ```
//! use ledger_store::{Store, json};
//! use ledger_store::ledger_core::{Features, JsonWriter};
//! let ledger = Store::in_memory().ledger("main")?;
//! ledger.transaction().posting("world", "users:1", 5, "USD").commit()?;
//! let log = ledger.logs().page(1)?.items.remove(0);
//! let info = ledger.info()?;
//!
//! let mut line = JsonWriter::with_capacity(1_000);
//! json::write_log(&mut line, &log, json::LogShape::of_export(info.features));
//! let read = json::read_log(std::str::from_utf8(line.as_bytes())?)?;
//! assert_eq!(read.entry.id, log.entry.id);
//!
//! line.clear();
//! json::write_description(&mut line, &info);
//! let options = json::read_description(std::str::from_utf8(line.as_bytes())?)?.expect("a description");
//! assert_eq!(options.features, Features::default());
//!
//! line.clear();
//! let view = ledger.get_transaction(1)?;
//! json::write_transaction(&mut line, &view.transaction, Some(&view.transaction.post_commit_volumes), None);
//! assert!(line.as_bytes().starts_with(br#"{"postings":[{"source":"world","destination":"users:1""#));
//!
//! line.clear();
//! json::write_posting(&mut line, &view.postings[0]);
//! line.raw(",");
//! json::write_volumes(&mut line, &view.transaction.post_commit_volumes[0].volumes);
//! assert!(!line.is_empty() && json::keeps_effective_volumes(info.features));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
