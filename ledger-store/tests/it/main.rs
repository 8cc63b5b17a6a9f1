//! The store through its public face.

mod atomic;
mod basics;
mod commit_future;
mod concurrency;
mod crash;
mod documents;
mod embedded;
mod faults;
mod feed;
mod import;
mod index_crashes;
mod index_damage;
mod index_mending;
mod legacy;
mod model;
mod old_formats;
mod read_future;
mod reads;
mod recovery;
mod refusals;
mod rejection_order;
mod removal;
mod running_store;
mod schemas;
mod transfer;
mod uniqueness;
