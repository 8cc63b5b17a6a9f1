//! The journal: the truth of a store.
//!
//! A journal is an ordered sequence of *entries*, each with a [`Position`]
//! that is gapless and starts at 1. To the journal an entry is opaque bytes; [`entry`]
//! knows their layout. Files lie on a [`disk`] that tests can replace.
//! The writer packs entries into [chunks](ChunkDraft), which hold consecutive
//! positions; inside a chunk there is one *section* per bucket or domain, so
//! that a bucket can be removed without breaking what the others rely on.
//!
//! Every chunk names the hash of the one before it, over the digests of its
//! sections ([`ChainHash`]): whoever knows the head can check all of history.
//!
//! Invariants:
//!
//! - What [`Journal::append`] has returned `Ok` for is durable, and is never
//!   changed afterwards; a removed section leaves its digest behind.
//! - An append is all or nothing, also across a power cut.
//! - Bytes that were damaged give an error that names file and position. They
//!   are never served, and never dropped to make a file readable again.
//!
//! Nothing above this crate may assume a file: [`MemoryJournal`] keeps its
//! chunks in memory, [`SegmentedJournal`] in files on a disk, and a replicated
//! log can stand in their place.
//!
//! Internal to `ledger-store`: the API is not stable.

#![forbid(unsafe_code)]

mod chunk;
pub mod disk;
pub mod entry;
mod error;
mod frame;
mod hashed;
mod identity;
mod journal;
mod mark;
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
mod walk;

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
