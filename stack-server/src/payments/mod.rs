//! The records of the payments API: what connectors bring in from providers, what is made by hand, and the transfers
//! that are asked for.
//!
//! Each kind of record is a document of its own collection (`record.rs`), with an ordered key for every field that its
//! list sorts by (`page.rs`). Keys begin with the installation of the connector, so that removing one removes what it
//! brought in. Several records change in one commit or not at all.
//!
//! This module knows neither the wire nor any provider: `api/payments/` writes the JSON, `connectors/` fetches.

pub(crate) mod account;
pub(crate) mod balance;
pub(crate) mod bank_account;
pub(crate) mod codec;
pub(crate) mod event;
pub(crate) mod filter;
pub(crate) mod ids;
pub(crate) mod ingest;
pub(crate) mod initiation;
pub(crate) mod installation;
pub(crate) mod page;
pub(crate) mod payment;
pub(crate) mod pool;
pub(crate) mod postings;
pub(crate) mod record;
pub(crate) mod service;
pub(crate) mod task;
pub(crate) mod transfer;
pub(crate) mod words;
