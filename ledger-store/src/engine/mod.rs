//! The engine: queue, writer, flusher, merger and hasher around one journal and one index, and who mends the index.
//!
//! A write goes through two stages. Under the *decider* lock commands are taken from the queue and decided,
//! each on the state that the one before left. Under the *committer* lock their entries are made durable and
//! then published. Whoever decides takes the committer before it lets go of the decider, so batches reach
//! the journal in the order in which they were decided, and while one is flushed the next is decided. Where much
//! waits each stage has a thread of its own; where little does, who submits goes through both.
//!
//! - [`shared`]: everything that the threads share.
//! - First stage: [`queue`] holds [`work`], [`lead`] takes a part of it, [`decide`] decides each kind of it,
//!   [`atomic`] and [`ledger_work`] for it.
//! - Second stage: [`handover`], [`commit`], then [`answers`] for those who wait ([`pending`]).
//! - Behind the writer: [`flushes`] says when a flush begins, [`background`] flushes and merges, [`hashing`] hashes.
//! - Faults: [`panics`], [`retry`], [`mending`] and [`rebuild`] for the index, [`index_events`] for who watches it.

mod answers;
mod atomic;
mod background;
mod chains;
mod commit;
mod decide;
mod flush_requests;
mod flushes;
mod handover;
mod hashing;
mod index_events;
mod lead;
mod ledger_work;
mod memory;
mod mending;
mod pace;
mod panics;
mod pending;
mod queue;
mod rebuild;
mod retry;
mod shared;
#[cfg(test)]
mod tests;
mod work;
mod written;

pub use self::index_events::{IndexEvent, IndexStatus};
pub(crate) use self::shared::Engine;
pub(crate) use self::work::{BucketMark, Done, LedgerEdit, Mark, NextLogs, Work};
