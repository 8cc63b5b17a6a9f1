//! The server over HTTP: a real listener on a free port, an in-memory store, one file per area.

mod accounts;
mod binary;
mod buckets;
mod bulk;
mod client;
mod conformance;
mod cursors;
mod errors;
mod info;
mod kill;
mod ledgers;
mod limits;
mod logs;
mod nonsense;
mod schemas;
mod script;
mod script_docs;
mod scripts;
mod shutdown;
mod transactions;
mod transfer;
mod v1_errors;
mod v1_lists;
mod v1_writes;
mod volumes;
