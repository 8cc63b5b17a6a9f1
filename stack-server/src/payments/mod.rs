//! The records of the payments API: data that connectors fetch from providers, records that clients create, and
//! requested transfers.
//!
//! Each kind of record is a collection of documents (`record.rs`), with an ordered key for each field by which its list
//! can be sorted (`page.rs`). The keys of fetched records begin with the installation of the connector, so that the
//! removal of an installation can find them. Changes of several records are one commit.
//!
//! This module depends neither on the wire format nor on a provider: `api/payments/` writes the JSON, and `connectors/`
//! fetches the data.

pub(crate) mod account;
pub(crate) mod balance;
pub(crate) mod bank_account;
pub(crate) mod codec;
pub(crate) mod enumerations;
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
