//! The journal: the authoritative record of a store, from which its index can be rebuilt.
//!
//! A journal is an ordered sequence of *entries*. Each has a [`Position`]; positions start at 1 and have no gaps. For
//! the journal an entry is opaque bytes; [`entry`] defines their layout. Files are on a [`disk`] that tests can
//! replace. The writer packs consecutive entries into [chunks](ChunkDraft). A chunk has one *section* for each bucket
//! (a group of ledgers) with entries in it, and one for documents, so that a bucket can be removed without affecting
//! other data.
//!
//! Every chunk contains the chain hash of the previous one, which covers the digests of its sections ([`ChainHash`]).
//! So the hash at the head verifies the whole history.
//!
//! Invariants:
//!
//! - Entries are durable once [`Journal::append`] has returned `Ok`, and never change afterwards. A removed section
//!   leaves its digest behind.
//! - An append takes effect completely or not at all, even across a power cut.
//! - Damaged bytes cause an error that names the file and the position. They are never served, and never dropped to
//!   make a file readable again.
//!
//! Code above this crate must not assume files: [`MemoryJournal`] keeps its chunks in memory, [`SegmentedJournal`]
//! keeps them in files, and a replicated log could replace both.
//!
//! This crate is internal to `ledger-store`: its API is not stable.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "numbers in tests are small"
    )
)]

mod chunk;
pub mod disk;
pub mod entry;
mod error;
mod frame;
mod frame_reader;
mod hashed;
mod head_file;
mod identity;
mod journal;
mod memory;
mod offsets;
mod opening;
mod options;
mod position;
mod prepared;
mod recent;
mod record;
mod recover;
mod removal;
mod segment;
mod segments;
mod tail;
#[cfg(test)]
mod tests;

#[cfg(feature = "testing")]
pub use chunk::decode_untrusted;
pub use chunk::{CHUNK_BYTES, Chunk, ChunkDraft, MAX_CHUNK_PAYLOAD_BYTES, Section};
pub use error::JournalError;
pub use identity::{Identity, Secret, StoreId};
pub use journal::{Freed, Journal, JournalReader};
pub use memory::MemoryJournal;
pub use options::SegmentOptions;
pub use position::{ChainHash, Head, Position, SectionId};
pub use recover::DroppedTail;
pub use segments::SegmentedJournal;
