//! Tests of the server over HTTP, with a real listener on a free port and an in-memory store. There is one file per
//! area.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "numbers in tests are small"
)]

mod accounts;
mod auth;
mod auth_attacks;
mod auth_cli;
mod auth_clients;
mod auth_enforced;
mod auth_expiry;
mod auth_forged;
mod auth_kill;
mod auth_kill_logins;
mod auth_login;
mod auth_secrets;
mod auth_tokens;
mod auth_world;
mod bad_input;
mod binary;
mod browsers;
mod buckets;
mod bulk;
mod cleanup;
mod client;
mod conformance;
mod connectors;
mod copies;
mod cursors;
mod described;
mod described_story;
mod descriptors;
mod engines;
mod errors;
mod event_kill;
mod events;
mod exits;
mod explain;
mod fake_bank;
mod filter_docs;
mod generic_keys;
mod http_docs;
mod http_server;
mod info;
mod ingest_kill;
mod kill;
mod ledgers;
mod limits;
mod localstripe;
mod log;
mod logs;
mod memory;
mod nonsense;
mod parity;
mod payment_events;
mod payment_postings;
mod payment_refusals;
mod payment_rules;
mod payment_secrets;
mod payments;
mod pipeline_drivers;
mod pipelines;
mod provider;
mod provider_records;
mod publisher;
mod readme;
mod receiver;
mod schemas;
mod schemathesis;
mod script;
mod script_docs;
mod script_profiles;
mod scripts;
mod sdk;
mod settings;
mod shutdown;
mod skipping;
mod stream;
mod terminal;
mod tls;
mod transactions;
mod transfer;
mod v1_errors;
mod v1_lists;
mod v1_scripts;
mod v1_writes;
mod volumes;
mod walk;
mod wrong_types;
