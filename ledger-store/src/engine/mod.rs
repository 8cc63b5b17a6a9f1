//! The engine of a store: a queue of work, the threads that write, and the background threads that flush, merge, hash
//! and repair the index.
//!
//! A write has two stages. Under the *decider* lock a thread takes commands from the queue and decides each on the
//! state that the previous one left. Under the *committer* lock a thread makes their entries durable and publishes
//! them. The deciding thread acquires the committer lock before it releases the decider lock, so batches reach the
//! journal in the order in which they were decided. While one batch is made durable, the next is decided. When the
//! queue is long, each stage has its own thread. When it is short, the calling thread runs both.
//!
//! - [`shared`]: the state that all threads share.
//! - First stage: [`queue`] holds [`work`], [`lead`] takes some of it, and [`decide`] decides each kind, with
//!   [`atomic`] and [`ledger_work`].
//! - Second stage: [`handover`] and [`commit`], then [`answers`] completes the answers that wait ([`pending`]).
//! - In the background: [`flushes`] decides when a flush begins, [`background`] flushes and merges, [`hashing`]
//!   hashes.
//! - Faults: [`panics`], [`retry`], [`index_repair`] and [`rebuild`] for the index, [`index_events`] for its status.

mod answers;
mod atomic;
pub(crate) mod background;
mod chains;
pub(crate) mod commit;
mod decide;
mod engine_entries;
mod flush_requests;
pub(crate) mod flushes;
mod handover;
pub(crate) mod hashing;
mod index_events;
pub(crate) mod index_repair;
pub(crate) mod lead;
mod ledger_work;
mod memory;
mod pace;
pub(crate) mod panics;
mod pending;
mod queue;
mod rebuild;
mod retry;
mod shared;
#[cfg(test)]
mod tests;
mod work;

pub use self::index_events::{IndexEvent, IndexStatus};
pub(crate) use self::shared::Engine;
pub(crate) use self::work::{BucketChange, BucketState, Callback, LedgerEdit, NextLogs, WorkItem};
