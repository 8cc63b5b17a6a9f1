//! How entries lie in a chunk.
//!
//! A chunk has a section for each bucket with ledgers in it, and section 0 for documents. Each can be read
//! without the others and without another chunk, so that the removal of a bucket takes nothing else along.
//!
//! ```text
//! section  := ledgers entries
//! ledgers  := count:varint { ledger:varint log:varint transaction:varint date:zigzag }
//!             the next log id, next transaction id and date that the ledger's first entry here counts from
//! entries  := { length:varint place [ledger index:varint] kind:u8 flags:varint content }
//! place    := (positions skipped since the section's previous entry)*2 + (1 if a ledger index follows)
//! content  := for entries of a log: [log gap:varint] date delta:zigzag [transaction gap:varint]
//!             [idempotency] [schema version:text], then by kind
//! ```
//!
//! Ids follow each other unless a gap is flagged; dates are deltas in microseconds. Names are
//! `0` + text (inline), `(id+1)*2` (known) or `(id+1)*2+1` + text (numbered here).

use ledger_core::Timestamp;
use smallvec::SmallVec;

use super::amounts::{put_amount, read_amount};
use super::record::{
    AddressRef, Body, DocumentRecord, Event, HoldingRecord, IdempotencyRecord, LogRecord, MetadataRecord,
    Move, NameRef, Record, SecondaryKey, TargetRecord, TransactionRecord, ValueRef,
};
use crate::codec::{Corrupt, Output, Reader, put_varint};
use crate::journal::{CHUNK_BYTES, Chunk, ChunkDraft, Position, Section, SectionId};

/// A chunk is closed when its entries take this many bytes: what fills pages, less the chunk's head, the
/// section table and the bases of some ledgers.
const CHUNK_BYTES_TARGET: usize = CHUNK_BYTES - 512;

/// The section of documents.
const DOCUMENTS: SectionId = SectionId(0);

mod kind {
    pub(super) const TRANSACTION: u8 = 1;
    pub(super) const SET_METADATA: u8 = 2;
    pub(super) const DELETE_METADATA: u8 = 3;
    pub(super) const INSERTED_SCHEMA: u8 = 4;
    /// From here on entries have no log.
    pub(super) const DOCUMENT: u8 = 16;
    // Reserved, so that no other meaning is given to them: 17 bucket removed, 18 bucket restored,
    // 19 stored answer (several logs, or none, under one idempotency key).
}

mod flag {
    pub(super) const LOG_GAP: u64 = 1;
    pub(super) const IDEMPOTENCY: u64 = 1 << 1;
    pub(super) const SCHEMA_VERSION: u64 = 1 << 2;
    pub(super) const TRANSACTION_GAP: u64 = 1 << 3;
    pub(super) const DISPLACED: u64 = 1 << 4;
    pub(super) const REFERENCE: u64 = 1 << 5;
    pub(super) const METADATA: u64 = 1 << 6;
    pub(super) const PLAIN_PAIR: u64 = 1 << 7;
    pub(super) const REVERTS: u64 = 1 << 8;
    pub(super) const ACCOUNT_METADATA: u64 = 1 << 9;
    pub(super) const EFFECTIVE: u64 = 1 << 10;
    pub(super) const TEMPLATE: u64 = 1 << 11;
    pub(super) const IMPORTED: u64 = 1 << 12;
    pub(super) const INSERTED_AT: u64 = 1 << 13;
    /// Some of the metadata is what the chart of a schema gives to new accounts.
    pub(super) const DEFAULTS: u64 = 1 << 14;
    pub(super) const ORIGINAL_UPDATED_AT: u64 = 1 << 15;
    pub(super) const VOLUMES_UNTOLD: u64 = 1 << 16;
    /// A document was removed.
    pub(super) const REMOVED: u64 = 1;
}

/// What a ledger's entries in a section count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LedgerBase {
    /// The ledger.
    pub(crate) ledger: u32,
    /// The id of its next log entry.
    pub(crate) log: u64,
    /// The id of its next transaction.
    pub(crate) transaction: u64,
    /// Its date.
    pub(crate) date: i64,
}

#[derive(Clone, Debug)]
struct OpenSection {
    id: SectionId,
    /// As written at the head.
    bases: Vec<LedgerBase>,
    /// As they stand after the last entry.
    running: Vec<LedgerBase>,
    entries: Output,
    last_position: u64,
    last_ledger: usize,
}

#[derive(Clone, Debug)]
struct OpenChunk {
    first: Position,
    entries: u32,
    bytes: usize,
    sections: Vec<OpenSection>,
}

/// Packs records into chunks.
#[derive(Default, Debug)]
pub(crate) struct ChunkBuilder {
    closed: Vec<ChunkDraft>,
    open: Option<OpenChunk>,
    /// The two parts of an entry whose length comes before them.
    head: Output,
    content: Output,
    /// What the last section that was closed took, for the next.
    spare: Option<Output>,
}

/// A place to return to, see [`ChunkBuilder::mark`].
#[derive(Debug)]
pub(crate) struct Mark {
    closed: usize,
    open: Option<OpenChunk>,
}

impl ChunkBuilder {
    /// Whether nothing was pushed.
    pub(crate) fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.open.is_none()
    }

    /// Remembers this state, to return to with [`ChunkBuilder::reset`].
    pub(crate) fn mark(&self) -> Mark {
        Mark { closed: self.closed.len(), open: self.open.clone() }
    }

    /// Drops what was pushed since the mark.
    pub(crate) fn reset(&mut self, mark: Mark) {
        self.closed.truncate(mark.closed);
        self.open = mark.open;
    }

    /// Appends a record. Positions must ascend without a gap. `section` is the bucket of its ledger, and
    /// `base` what the ledger's ids and date count from: its next ids as they are before this record.
    pub(crate) fn push(&mut self, record: &Record<'_>, section: SectionId, base: LedgerBase) {
        self.content.truncate(0);
        let (kind, mut flags) = put_content(&mut self.content, &record.body);
        if self.open.as_ref().is_some_and(|open| open.bytes + self.content.len() > CHUNK_BYTES_TARGET) {
            self.close();
        }
        let open = self.open.get_or_insert_with(|| OpenChunk {
            first: record.position,
            entries: 0,
            bytes: 0,
            sections: Vec::with_capacity(1),
        });
        // The positions of a section are counted from the chunk's first.
        let first = open.first.get();
        let section = match &record.body {
            Body::Log(_) => section,
            Body::Document(_) => DOCUMENTS,
        };
        let at = match open.sections.binary_search_by_key(&section, |have| have.id) {
            Ok(at) => at,
            Err(at) => {
                open.sections.insert(
                    at,
                    OpenSection {
                        id: section,
                        bases: Vec::new(),
                        running: Vec::new(),
                        entries: self.spare.take().unwrap_or_default(),
                        last_position: first - 1,
                        last_ledger: 0,
                    },
                );
                at
            }
        };
        let section = &mut open.sections[at];
        // Of less than ten numbers.
        let head = &mut self.head;
        head.truncate(0);
        head.make_room();
        let skipped = record.position.get() - section.last_position - 1;
        section.last_position = record.position.get();
        match &record.body {
            Body::Log(log) => {
                let ledger = section.ledger(base);
                let switch = ledger != section.last_ledger;
                head.put_varint(skipped * 2 + u64::from(switch));
                if switch {
                    head.put_varint(ledger as u64);
                    section.last_ledger = ledger;
                }
                let running = &mut section.running[ledger];
                let log_gap = log.log - running.log;
                if log_gap > 0 {
                    flags |= flag::LOG_GAP;
                }
                let transaction_gap = match &log.event {
                    Event::Transaction(transaction) => {
                        let gap = zigzag(transaction.id.wrapping_sub(running.transaction) as i64);
                        running.transaction = transaction.id + 1;
                        gap
                    }
                    Event::SetMetadata { .. }
                    | Event::DeleteMetadata { .. }
                    | Event::InsertedSchema { .. } => 0,
                };
                if transaction_gap > 0 {
                    flags |= flag::TRANSACTION_GAP;
                }
                head.put_byte(kind);
                head.put_varint(flags);
                if log_gap > 0 {
                    head.put_varint(log_gap);
                }
                head.put_varint(zigzag(log.date.as_micros().wrapping_sub(running.date)));
                if transaction_gap > 0 {
                    head.put_varint(transaction_gap);
                }
                running.log = log.log + 1;
                running.date = log.date.as_micros();
            }
            Body::Document(_) => {
                head.put_varint(skipped * 2);
                head.put_byte(kind);
                head.put_varint(flags);
            }
        }
        let length = head.len() + self.content.len();
        let before = section.entries.len();
        section.entries.make_room();
        section.entries.put_varint(length as u64);
        section.entries.put_bytes(head.as_slice());
        section.entries.put_bytes(self.content.as_slice());
        open.bytes += section.entries.len() - before;
        open.entries += 1;
    }

    /// Reads a pushed record back. It ends the open chunk.
    pub(crate) fn read<T>(
        &mut self,
        position: Position,
        then: impl FnOnce(&Record<'_>) -> T,
    ) -> Result<Option<T>, Corrupt> {
        self.close();
        let at = self.closed.partition_point(|draft| draft.first <= position);
        let Some(draft) = at.checked_sub(1).map(|at| &self.closed[at]) else { return Ok(None) };
        for (_, bytes) in &draft.sections {
            if let Some(record) = find_in_section(draft.first, bytes, position)? {
                return Ok(Some(then(&record)));
            }
        }
        Ok(None)
    }

    /// All chunks, in order.
    pub(crate) fn finish(mut self) -> Vec<ChunkDraft> {
        self.close();
        self.closed
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let sections = open.sections.into_iter().map(|section| {
            let (id, (bytes, mut spare)) = (section.id, section.finish());
            spare.truncate(0);
            self.spare = Some(spare);
            (id, bytes)
        });
        let sections = sections.collect();
        self.closed.push(ChunkDraft { first: open.first, entries: open.entries, sections });
    }
}

impl OpenSection {
    fn ledger(&mut self, base: LedgerBase) -> usize {
        if let Some(have) = self.bases.get(self.last_ledger)
            && have.ledger == base.ledger
        {
            return self.last_ledger;
        }
        self.bases.iter().position(|have| have.ledger == base.ledger).unwrap_or_else(|| {
            self.bases.push(base);
            self.running.push(base);
            self.bases.len() - 1
        })
    }

    /// The section, and the buffer that its entries were in.
    fn finish(self) -> (Vec<u8>, Output) {
        let mut bytes = Vec::with_capacity(self.entries.len() + 8 + self.bases.len() * 24);
        put_varint(&mut bytes, self.bases.len() as u64);
        for base in &self.bases {
            put_varint(&mut bytes, u64::from(base.ledger));
            put_varint(&mut bytes, base.log);
            put_varint(&mut bytes, base.transaction);
            put_varint(&mut bytes, zigzag(base.date));
        }
        bytes.extend_from_slice(self.entries.as_slice());
        (bytes, self.entries)
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

// Content of an entry. Whatever is put one after the other makes room first: each of its numbers takes ten bytes at
// most, and texts leave room behind them.

fn put_content(out: &mut Output, body: &Body<'_>) -> (u8, u64) {
    out.make_room();
    match body {
        Body::Log(log) => {
            let mut flags = 0;
            if let Some(idempotency) = &log.idempotency {
                flags |= flag::IDEMPOTENCY;
                out.put_prefixed(idempotency.key.as_bytes());
                out.put_prefixed(idempotency.hash.as_bytes());
            }
            if let Some(version) = log.schema_version {
                flags |= flag::SCHEMA_VERSION;
                out.put_prefixed(version.as_bytes());
            }
            if log.imported {
                flags |= flag::IMPORTED;
            }
            match &log.event {
                Event::Transaction(transaction) => {
                    (kind::TRANSACTION, flags | put_transaction(out, transaction, log.date))
                }
                Event::SetMetadata { target, defaults, metadata } => {
                    put_target(out, target);
                    if !defaults.is_empty() {
                        flags |= flag::DEFAULTS;
                        put_metadata(out, defaults);
                    }
                    put_metadata(out, metadata);
                    (kind::SET_METADATA, flags)
                }
                Event::DeleteMetadata { target, key } => {
                    put_target(out, target);
                    put_name(out, key);
                    (kind::DELETE_METADATA, flags)
                }
                Event::InsertedSchema { schema } => {
                    out.put_prefixed(schema.as_bytes());
                    (kind::INSERTED_SCHEMA, flags)
                }
            }
        }
        Body::Document(document) => {
            out.put_varint(u64::from(document.collection));
            out.put_prefixed(document.key);
            out.put_varint(document.secondary.len() as u64);
            for key in &document.secondary {
                out.put_varint(u64::from(key.index) * 2 + u64::from(key.unique));
                out.put_prefixed(key.key);
            }
            match document.value {
                Some(value) => {
                    out.put_prefixed(value);
                    (kind::DOCUMENT, 0)
                }
                None => (kind::DOCUMENT, flag::REMOVED),
            }
        }
    }
}

fn put_transaction(out: &mut Output, transaction: &TransactionRecord<'_>, date: Timestamp) -> u64 {
    let mut flags = 0;
    if transaction.timestamp != date {
        flags |= flag::DISPLACED;
        out.put_varint(zigzag(transaction.timestamp.as_micros().wrapping_sub(date.as_micros())));
    }
    if let Some(inserted_at) = transaction.inserted_at {
        flags |= flag::INSERTED_AT;
        out.put_varint(zigzag(inserted_at.as_micros().wrapping_sub(date.as_micros())));
    }
    if transaction.volumes_untold {
        flags |= flag::VOLUMES_UNTOLD;
    }
    if let Some(updated_at) = transaction.original_updated_at {
        flags |= flag::ORIGINAL_UPDATED_AT;
        out.put_varint(zigzag(updated_at.as_micros().wrapping_sub(date.as_micros())));
    }
    if let Some(reference) = transaction.reference {
        flags |= flag::REFERENCE;
        out.put_prefixed(reference.as_bytes());
    }
    if let Some(reverts) = transaction.reverts {
        flags |= flag::REVERTS;
        out.put_varint(reverts);
    }
    if let Some(template) = transaction.template {
        flags |= flag::TEMPLATE;
        out.put_prefixed(template.as_bytes());
    }
    // Most transactions have one posting between two holdings.
    let plain = transaction.holdings.len() == 2
        && matches!(transaction.moves.as_slice(), [only] if only.source == 0 && only.destination == 1);
    if plain {
        flags |= flag::PLAIN_PAIR;
        put_amount(out, &transaction.moves[0].amount);
    } else {
        out.put_varint(transaction.holdings.len() as u64);
        out.put_varint(transaction.moves.len() as u64);
        for posting in &transaction.moves {
            out.make_room();
            out.put_varint(u64::from(posting.source));
            out.put_varint(u64::from(posting.destination));
            put_amount(out, &posting.amount);
        }
    }
    for holding in &transaction.holdings {
        out.make_room();
        out.put_varint(u64::from(holding.holding) * 2 + u64::from(holding.is_new));
        put_address(out, &holding.account);
        put_name(out, &holding.asset);
        put_amount(out, &holding.after.input);
        put_amount(out, &holding.after.output);
    }
    if !transaction.metadata.is_empty() {
        flags |= flag::METADATA;
        put_metadata(out, &transaction.metadata);
    }
    if !transaction.account_metadata.is_empty() {
        flags |= flag::ACCOUNT_METADATA;
        out.put_varint(transaction.account_metadata.len() as u64);
        if transaction.defaults > 0 {
            flags |= flag::DEFAULTS;
            out.put_varint(transaction.defaults as u64);
        }
        for (account, metadata) in &transaction.account_metadata {
            out.make_room();
            put_address(out, account);
            put_metadata(out, metadata);
        }
    }
    if let Some(effective) = &transaction.effective {
        flags |= flag::EFFECTIVE;
        for volumes in effective {
            out.make_room();
            put_amount(out, &volumes.input);
            put_amount(out, &volumes.output);
        }
    }
    flags
}

fn put_name(out: &mut Output, name: &NameRef<'_>) {
    match name {
        NameRef::Inline(text) => {
            out.put_byte(0);
            out.put_prefixed(text.as_bytes());
        }
        NameRef::Known(id) => out.put_varint((u64::from(*id) + 1) * 2),
        NameRef::New(id, text) => {
            out.put_varint((u64::from(*id) + 1) * 2 + 1);
            out.put_prefixed(text.as_bytes());
        }
    }
}

fn put_address(out: &mut Output, address: &AddressRef<'_>) {
    out.put_varint(u64::from(address.account) * 2 + u64::from(address.new.is_some()));
    if let Some(text) = address.new {
        out.put_prefixed(text.as_bytes());
    }
}

fn put_target(out: &mut Output, target: &TargetRecord<'_>) {
    match target {
        TargetRecord::Account(address) => {
            out.put_byte(0);
            put_address(out, address);
        }
        TargetRecord::Transaction(id) => {
            out.put_byte(1);
            out.put_varint(*id);
        }
        TargetRecord::Unknown(address) => {
            out.put_byte(2);
            out.put_prefixed(address.as_bytes());
        }
    }
}

fn put_metadata(out: &mut Output, metadata: &MetadataRecord<'_>) {
    out.put_varint(metadata.len() as u64);
    for (key, value) in metadata {
        put_name(out, key);
        let (text, json) = match value {
            ValueRef::Text(text) => (text, 0),
            ValueRef::Json(text) => (text, 1),
        };
        out.put_varint(text.len() as u64 * 2 + json);
        out.put_bytes(text.as_bytes());
    }
}

// Reading.

/// Hands every record of a chunk to `each`, in order of position. Removed sections are passed over.
pub(crate) fn read_chunk<'a>(
    chunk: &'a Chunk,
    mut each: impl FnMut(Record<'a>) -> Result<(), Corrupt>,
) -> Result<(), Corrupt> {
    let mut sections = Vec::with_capacity(1);
    for (_, section) in chunk.sections() {
        if let Section::Present(bytes) = section {
            let mut reader = SectionReader::new(chunk.first(), bytes)?;
            if let Some(entry) = reader.advance()? {
                sections.push((reader, entry));
            }
        }
    }
    // Nearly always there is one.
    if let [(reader, entry)] = sections.as_mut_slice() {
        loop {
            each(SectionReader::decode(entry)?)?;
            match reader.advance()? {
                Some(next) => *entry = next,
                None => return Ok(()),
            }
        }
    }
    while let Some(least) = (0..sections.len()).min_by_key(|at| sections[*at].1.position) {
        let (reader, entry) = &mut sections[least];
        each(SectionReader::decode(entry)?)?;
        match reader.advance()? {
            Some(next) => *entry = next,
            None => {
                sections.swap_remove(least);
            }
        }
    }
    Ok(())
}

/// The record at a position of a chunk; `None` where its section was removed.
pub(crate) fn find_in_chunk(chunk: &Chunk, position: Position) -> Result<Option<Record<'_>>, Corrupt> {
    for (_, section) in chunk.sections() {
        if let Section::Present(bytes) = section
            && let Some(record) = find_in_section(chunk.first(), bytes, position)?
        {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

fn find_in_section(first: Position, bytes: &[u8], position: Position) -> Result<Option<Record<'_>>, Corrupt> {
    let mut reader = SectionReader::new(first, bytes)?;
    while let Some(entry) = reader.advance()? {
        if entry.position == position.get() {
            return SectionReader::decode(&entry).map(Some);
        }
        if entry.position > position.get() {
            break;
        }
    }
    Ok(None)
}

/// Reads a section from entry to entry.
pub(super) struct SectionReader<'a> {
    ledgers: SmallVec<[LedgerBase; 2]>,
    pub(super) rest: Reader<'a>,
    next_position: u64,
    ledger: usize,
}

/// An entry of which the head is read.
pub(super) struct Entry<'a> {
    pub(super) position: u64,
    pub(super) kind: u8,
    pub(super) flags: u64,
    pub(super) ledger: u32,
    pub(super) log: u64,
    pub(super) transaction: u64,
    pub(super) date: i64,
    pub(super) content: Reader<'a>,
}

impl<'a> SectionReader<'a> {
    pub(super) fn new(first: Position, bytes: &'a [u8]) -> Result<Self, Corrupt> {
        let mut rest = Reader::new(bytes);
        let count = rest.varint()?;
        let mut ledgers = SmallVec::new();
        for _ in 0..count {
            ledgers.push(LedgerBase {
                ledger: rest.varint_u32()?,
                log: rest.varint()?,
                transaction: rest.varint()?,
                date: unzigzag(rest.varint()?),
            });
        }
        Ok(Self { ledgers, rest, next_position: first.get(), ledger: 0 })
    }

    pub(super) fn advance(&mut self) -> Result<Option<Entry<'a>>, Corrupt> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let mut entry = Reader::new(self.rest.prefixed()?);
        let place = entry.varint()?;
        let position = self.next_position.checked_add(place / 2).ok_or(Corrupt { what: "position" })?;
        self.next_position = position.checked_add(1).ok_or(Corrupt { what: "position" })?;
        if place % 2 == 1 {
            self.ledger = entry.varint_u32()? as usize;
        }
        let kind = entry.u8()?;
        let flags = entry.varint()?;
        if kind >= kind::DOCUMENT {
            let none =
                Entry { position, kind, flags, ledger: 0, log: 0, transaction: 0, date: 0, content: entry };
            return Ok(Some(none));
        }
        let running = self.ledgers.get_mut(self.ledger).ok_or(Corrupt { what: "ledger index" })?;
        let log_gap = if flags & flag::LOG_GAP != 0 { entry.varint()? } else { 0 };
        let log = running.log.checked_add(log_gap).ok_or(Corrupt { what: "log id" })?;
        let date = running.date.wrapping_add(unzigzag(entry.varint()?));
        let gap = if flags & flag::TRANSACTION_GAP != 0 { unzigzag(entry.varint()?) } else { 0 };
        let transaction = running.transaction.wrapping_add(gap as u64);
        running.log = log.checked_add(1).ok_or(Corrupt { what: "log id" })?;
        running.date = date;
        if kind == kind::TRANSACTION {
            running.transaction = transaction.checked_add(1).ok_or(Corrupt { what: "transaction id" })?;
        }
        let ledger = running.ledger;
        Ok(Some(Entry { position, kind, flags, ledger, log, transaction, date, content: entry }))
    }

    pub(super) fn decode(entry: &Entry<'a>) -> Result<Record<'a>, Corrupt> {
        let mut content = entry.content.clone();
        let body = if entry.kind == kind::DOCUMENT {
            Body::Document(read_document(&mut content, entry.flags)?)
        } else {
            Body::Log(read_log(&mut content, entry)?)
        };
        if !content.is_empty() {
            return Err(Corrupt { what: "entry longer than its content" });
        }
        let position = Position::new(entry.position).ok_or(Corrupt { what: "position" })?;
        Ok(Record { position, body })
    }
}

fn read_log<'a>(content: &mut Reader<'a>, entry: &Entry<'a>) -> Result<LogRecord<'a>, Corrupt> {
    let flags = entry.flags;
    let idempotency = if flags & flag::IDEMPOTENCY != 0 {
        Some(IdempotencyRecord { key: read_text(content)?, hash: read_text(content)? })
    } else {
        None
    };
    let schema_version = if flags & flag::SCHEMA_VERSION != 0 { Some(read_text(content)?) } else { None };
    let event = match entry.kind {
        kind::TRANSACTION => Event::Transaction(read_transaction(content, entry)?),
        kind::SET_METADATA => Event::SetMetadata {
            target: read_target(content)?,
            defaults: if flags & flag::DEFAULTS != 0 {
                read_metadata(content)?
            } else {
                MetadataRecord::default()
            },
            metadata: read_metadata(content)?,
        },
        kind::DELETE_METADATA => {
            Event::DeleteMetadata { target: read_target(content)?, key: read_name(content)? }
        }
        kind::INSERTED_SCHEMA => Event::InsertedSchema { schema: read_text(content)? },
        _ => return Err(Corrupt { what: "unknown kind of entry" }),
    };
    Ok(LogRecord {
        ledger: entry.ledger,
        log: entry.log,
        date: Timestamp::from_micros(entry.date),
        idempotency,
        schema_version,
        imported: entry.flags & flag::IMPORTED != 0,
        event,
    })
}

fn read_transaction<'a>(
    content: &mut Reader<'a>,
    entry: &Entry<'a>,
) -> Result<TransactionRecord<'a>, Corrupt> {
    let flags = entry.flags;
    let timestamp = if flags & flag::DISPLACED != 0 {
        entry.date.wrapping_add(unzigzag(content.varint()?))
    } else {
        entry.date
    };
    let inserted_at = if flags & flag::INSERTED_AT != 0 {
        Some(Timestamp::from_micros(entry.date.wrapping_add(unzigzag(content.varint()?))))
    } else {
        None
    };
    let original_updated_at = if flags & flag::ORIGINAL_UPDATED_AT != 0 {
        Some(Timestamp::from_micros(entry.date.wrapping_add(unzigzag(content.varint()?))))
    } else {
        None
    };
    let reference = if flags & flag::REFERENCE != 0 { Some(read_text(content)?) } else { None };
    let reverts = if flags & flag::REVERTS != 0 { Some(content.varint()?) } else { None };
    let template = if flags & flag::TEMPLATE != 0 { Some(read_text(content)?) } else { None };
    let mut moves = SmallVec::new();
    let holding_count = if flags & flag::PLAIN_PAIR != 0 {
        moves.push(Move { source: 0, destination: 1, amount: read_amount(content)? });
        2
    } else {
        let holdings = content.varint_u32()?;
        let count = content.varint()?;
        for _ in 0..count {
            let (source, destination) = (content.varint_u32()?, content.varint_u32()?);
            if source >= holdings || destination >= holdings {
                return Err(Corrupt { what: "posting without its holding" });
            }
            moves.push(Move { source, destination, amount: read_amount(content)? });
        }
        holdings
    };
    let mut holdings = SmallVec::new();
    for _ in 0..holding_count {
        let code = content.varint()?;
        holdings.push(HoldingRecord {
            holding: u32::try_from(code / 2).map_err(|_| Corrupt { what: "holding number" })?,
            is_new: code % 2 == 1,
            account: read_address(content)?,
            asset: read_name(content)?,
            after: read_volumes(content)?,
        });
    }
    let metadata =
        if flags & flag::METADATA != 0 { read_metadata(content)? } else { MetadataRecord::default() };
    let mut account_metadata = Vec::new();
    let mut defaults = 0;
    if flags & flag::ACCOUNT_METADATA != 0 {
        let count = content.varint()?;
        if flags & flag::DEFAULTS != 0 {
            defaults = content.varint()? as usize;
        }
        for _ in 0..count {
            account_metadata.push((read_address(content)?, read_metadata(content)?));
        }
    }
    if defaults > account_metadata.len() {
        return Err(Corrupt { what: "metadata by default" });
    }
    let effective = if flags & flag::EFFECTIVE != 0 {
        Some((0..holding_count).map(|_| read_volumes(content)).collect::<Result<_, _>>()?)
    } else {
        None
    };
    Ok(TransactionRecord {
        id: entry.transaction,
        timestamp: Timestamp::from_micros(timestamp),
        inserted_at,
        original_updated_at,
        volumes_untold: flags & flag::VOLUMES_UNTOLD != 0,
        reference,
        template,
        reverts,
        holdings,
        moves,
        metadata,
        account_metadata,
        defaults,
        effective,
    })
}

fn read_volumes(content: &mut Reader<'_>) -> Result<ledger_core::Volumes, Corrupt> {
    Ok(ledger_core::Volumes { input: read_amount(content)?, output: read_amount(content)? })
}

fn read_document<'a>(content: &mut Reader<'a>, flags: u64) -> Result<DocumentRecord<'a>, Corrupt> {
    let collection = content.varint_u32()?;
    let key = content.prefixed()?;
    let mut secondary = Vec::new();
    for _ in 0..content.varint()? {
        let code = content.varint()?;
        let index = u32::try_from(code / 2).map_err(|_| Corrupt { what: "secondary index" })?;
        secondary.push(SecondaryKey { index, unique: code % 2 == 1, key: content.prefixed()? });
    }
    let value = if flags & flag::REMOVED != 0 { None } else { Some(content.prefixed()?) };
    Ok(DocumentRecord { collection, key, value, secondary })
}

fn read_text<'a>(content: &mut Reader<'a>) -> Result<&'a str, Corrupt> {
    std::str::from_utf8(content.prefixed()?).map_err(|_| Corrupt { what: "text is not UTF-8" })
}

fn read_name<'a>(content: &mut Reader<'a>) -> Result<NameRef<'a>, Corrupt> {
    let code = content.varint()?;
    if code == 0 {
        return read_text(content).map(NameRef::Inline);
    }
    let id = (code / 2)
        .checked_sub(1)
        .and_then(|id| u32::try_from(id).ok())
        .ok_or(Corrupt { what: "number of a name" })?;
    if code % 2 == 1 { Ok(NameRef::New(id, read_text(content)?)) } else { Ok(NameRef::Known(id)) }
}

fn read_address<'a>(content: &mut Reader<'a>) -> Result<AddressRef<'a>, Corrupt> {
    let code = content.varint()?;
    let account = u32::try_from(code / 2).map_err(|_| Corrupt { what: "account number" })?;
    let new = if code % 2 == 1 { Some(read_text(content)?) } else { None };
    Ok(AddressRef { account, new })
}

fn read_target<'a>(content: &mut Reader<'a>) -> Result<TargetRecord<'a>, Corrupt> {
    match content.u8()? {
        0 => read_address(content).map(TargetRecord::Account),
        1 => content.varint().map(TargetRecord::Transaction),
        2 => read_text(content).map(TargetRecord::Unknown),
        _ => Err(Corrupt { what: "kind of metadata target" }),
    }
}

fn read_metadata<'a>(content: &mut Reader<'a>) -> Result<MetadataRecord<'a>, Corrupt> {
    let mut metadata = MetadataRecord::new();
    for _ in 0..content.varint()? {
        let key = read_name(content)?;
        let code = content.varint()?;
        let length = usize::try_from(code / 2).map_err(|_| Corrupt { what: "length above memory" })?;
        let text =
            std::str::from_utf8(content.bytes(length)?).map_err(|_| Corrupt { what: "text is not UTF-8" })?;
        metadata.push((key, if code % 2 == 1 { ValueRef::Json(text) } else { ValueRef::Text(text) }));
    }
    Ok(metadata)
}
