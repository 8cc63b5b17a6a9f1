//! The server over HTTP: a real listener on a free port, an in-memory store, one file per area.

mod accounts;
mod auth;
mod binary;
mod bulk;
mod client;
mod conformance;
mod cursors;
mod described;
mod errors;
mod info;
mod kill;
mod ledgers;
mod limits;
mod logs;
mod nonsense;
mod script;
mod script_docs;
mod scripts;
mod settings;
mod shutdown;
mod transactions;
mod transfer;
mod v1_errors;
mod v1_lists;
mod v1_writes;
mod volumes;
