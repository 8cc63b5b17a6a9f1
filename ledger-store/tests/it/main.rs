//! Tests of the store through its public interface.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "numbers in tests are small"
)]

mod async_forms;
mod atomic;
mod basics;
mod commit_future;
mod concurrency;
mod crash;
mod documents;
mod embedded;
mod error_chains;
mod error_classes;
mod faults;
mod feed;
mod first_lines;
mod import;
mod import_gaps;
mod index_crashes;
mod index_damage;
mod index_mending;
mod legacy;
mod metadata;
mod misspelt;
mod model;
mod more_lists;
mod old_formats;
mod overdraft;
mod preconditions;
mod progress;
mod read_future;
mod reads;
mod recovery;
mod refusals;
mod rejection_order;
mod removal;
mod running_store;
mod schemas;
mod serde_forms;
mod stored_queries;
mod transfer;
mod uniqueness;
