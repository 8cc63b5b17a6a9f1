//! Entries of the journal: what they say ([`Record`]), and how they lie in a chunk.
//!
//! A record names accounts, assets and metadata keys by the numbers that their ledger gave them; the first
//! use carries the text. The writer builds a record, the section encoder writes it, the projector makes rows
//! of it; recovery reads the same record back and hands it to the same projector.

mod amounts;
mod builder;
mod places;
mod recognition;
mod record;
mod section;

pub(crate) use amounts::{put_amount, read_amount};
pub(crate) use builder::{ChunkBuilder, Mark};
pub(crate) use places::EntryPlaces;
pub(crate) use recognition::Recognition;
pub(crate) use record::{
    AddressRef, Body, DocumentRecord, Event, HoldingRecord, IdempotencyRecord, LogRecord, MetadataRecord,
    Move, NameRef, Record, SecondaryKey, TargetRecord, TransactionRecord, ValueRef,
};
pub(crate) use section::{LedgerBase, find_in_chunk, read_chunk};
