//! JSON forms of ledger values that several parts of the server use: responses, events and exports. The library writes
//! them (`ledger_store::json`).

pub(crate) mod log;
pub(crate) mod transaction;
pub(crate) mod volumes;
