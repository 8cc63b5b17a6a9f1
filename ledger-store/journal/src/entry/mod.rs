//! Entries of the journal: their content ([`Record`]) and their encoding in a chunk.
//!
//! A record names accounts, assets and metadata keys by the numbers that their ledger gave them; the first use contains
//! the text. The writer creates a record, the section encoder writes it, and the projection turns it into rows.
//! Recovery reads the same record back and passes it to the same projection.
//!
//! A section starts with a [`LedgerBase`]: ids and a date. The entries of the section contain only their differences
//! from these.

mod amounts;
mod builder;
mod content;
mod offsets;
mod prior_request;
mod record;
mod section;

pub use amounts::{put_amount, read_amount};
pub use builder::{BuilderMark, ChunkBuilder};
pub use offsets::EntryOffsets;
pub use prior_request::prior_request;
pub use record::{
    AddressRef, Body, DocumentRecord, Event, HoldingRecord, IdempotencyRecord, LogRecord, MetadataRecord,
    Move, NameRef, Record, SecondaryKey, TargetRecord, TransactionRecord, ValueRef,
};
pub use section::{LedgerBase, find_in_chunk, read_chunk};
