//! Encoding of entries in a chunk.
//!
//! A chunk has a section for each bucket with entries in it, and section 0 for documents. Each section is readable
//! without the others and without other chunks, so the removal of a bucket destroys nothing else.
//!
//! ```text
//! section  := ledgers entries
//! ledgers  := count:varint { ledger:varint log:varint transaction:varint date:zigzag }
//!             the next log id, the next transaction id, and the date to which the ledger's first entry here adds
//! entries  := { length:varint place [ledger index:varint] kind:u8 flags:varint content }
//! place    := (positions skipped since the section's previous entry)*2 + (1 if a ledger index follows)
//! content  := for entries of a log: [log gap:varint] date delta:zigzag [transaction gap:varint]
//!             [idempotency] [schema version:text], then by kind
//! ```
//!
//! Ids follow each other unless a gap is flagged; dates are deltas in microseconds. Names are
//! `0` + text (inline), `(id+1)*2` (known) or `(id+1)*2+1` + text (numbered here).

use ledger_codec::{Corrupt, Reader};
use ledger_core::Timestamp;
use smallvec::SmallVec;

use super::amounts::read_amount;
use super::record::{
    AddressRef, Body, DocumentRecord, Event, HoldingRecord, IdempotencyRecord, LogRecord, MetadataRecord,
    Move, NameRef, Record, SecondaryKey, TargetRecord, TransactionRecord, ValueRef,
};
use crate::{Chunk, Position, Section};

pub(super) mod kind {
    pub(crate) const TRANSACTION: u8 = 1;
    pub(crate) const SET_METADATA: u8 = 2;
    pub(crate) const DELETE_METADATA: u8 = 3;
    pub(crate) const INSERTED_SCHEMA: u8 = 4;
    /// Entries of this kind and above do not belong to a log.
    pub(crate) const DOCUMENT: u8 = 16;
    // Reserved; never give these numbers another meaning: 17 bucket removed, 18 bucket restored, 19 stored answer
    // (several logs, or none, under one idempotency key).
}

pub(super) mod flag {
    pub(crate) const LOG_GAP: u64 = 1;
    pub(crate) const IDEMPOTENCY: u64 = 1 << 1;
    pub(crate) const SCHEMA_VERSION: u64 = 1 << 2;
    pub(crate) const TRANSACTION_GAP: u64 = 1 << 3;
    pub(crate) const BACKDATED: u64 = 1 << 4;
    pub(crate) const REFERENCE: u64 = 1 << 5;
    pub(crate) const METADATA: u64 = 1 << 6;
    pub(crate) const PLAIN_PAIR: u64 = 1 << 7;
    pub(crate) const REVERTS: u64 = 1 << 8;
    pub(crate) const ACCOUNT_METADATA: u64 = 1 << 9;
    pub(crate) const EFFECTIVE: u64 = 1 << 10;
    pub(crate) const TEMPLATE: u64 = 1 << 11;
    pub(crate) const IMPORTED: u64 = 1 << 12;
    pub(crate) const INSERTED_AT: u64 = 1 << 13;
    /// Some of the metadata are defaults of new accounts from the chart of a schema.
    pub(crate) const DEFAULTS: u64 = 1 << 14;
    pub(crate) const ORIGINAL_UPDATED_AT: u64 = 1 << 15;
    pub(crate) const VOLUMES_OMITTED: u64 = 1 << 16;
    /// The document was removed.
    pub(crate) const REMOVED: u64 = 1;
}

/// The ids and the date at the head of a section. The entries of a ledger store their differences from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerBase {
    /// Number of the ledger.
    pub ledger: u32,
    /// Id of the ledger's next log entry.
    pub log: u64,
    /// Id of the ledger's next transaction.
    pub transaction: u64,
    /// Date to which the ledger's next entry adds its difference, in microseconds since 1970.
    pub date: i64,
}

pub(super) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Calls `each` for every record of a chunk, in order of position. Skips removed sections.
///
/// # Errors
///
/// [`Corrupt`] if a section does not follow its layout, and what `each` returns.
pub fn read_chunk<'a>(
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
    // Nearly every chunk has one section.
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

/// Returns the record at a position of a chunk. Returns `None` if the section of the entry was removed.
///
/// # Errors
///
/// [`Corrupt`] if a section does not follow its layout.
pub fn find_in_chunk(chunk: &Chunk, position: Position) -> Result<Option<Record<'_>>, Corrupt> {
    for (_, section) in chunk.sections() {
        if let Section::Present(bytes) = section
            && let Some(record) = find_in_section(chunk.first(), bytes, position)?
        {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// Returns the record at a position, if the section has it. `first` is the first position of the chunk.
pub(super) fn find_in_section(
    first: Position,
    bytes: &[u8],
    position: Position,
) -> Result<Option<Record<'_>>, Corrupt> {
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

/// Reads the entries of a section, one after the other.
pub(super) struct SectionReader<'a> {
    /// For each ledger of the section, the ids and the date to which its next entry adds.
    ledgers: SmallVec<[LedgerBase; 2]>,
    /// Bytes of the entries that are not read yet.
    pub(super) rest: Reader<'a>,
    next_position: u64,
    /// Index of the previous entry's ledger in `ledgers`.
    ledger: usize,
}

/// An entry with its header decoded, and its content not yet.
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
    /// Decodes the head of a section. `first` is the first position of its chunk.
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

    /// Decodes the header of the next entry.
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
        let base = self.ledgers.get_mut(self.ledger).ok_or(Corrupt { what: "ledger index" })?;
        let log_gap = if flags & flag::LOG_GAP != 0 { entry.varint()? } else { 0 };
        let log = base.log.checked_add(log_gap).ok_or(Corrupt { what: "log id" })?;
        let date = base.date.wrapping_add(unzigzag(entry.varint()?));
        let gap = if flags & flag::TRANSACTION_GAP != 0 { unzigzag(entry.varint()?) } else { 0 };
        let transaction = base.transaction.wrapping_add(gap.cast_unsigned());
        base.log = log.checked_add(1).ok_or(Corrupt { what: "log id" })?;
        base.date = date;
        if kind == kind::TRANSACTION {
            base.transaction = transaction.checked_add(1).ok_or(Corrupt { what: "transaction id" })?;
        }
        let ledger = base.ledger;
        Ok(Some(Entry { position, kind, flags, ledger, log, transaction, date, content: entry }))
    }

    /// Decodes the content of an entry.
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
    let mut date = |is_there: u64| -> Result<Option<Timestamp>, Corrupt> {
        if flags & is_there == 0 {
            return Ok(None);
        }
        Ok(Some(Timestamp::from_micros(entry.date.wrapping_add(unzigzag(content.varint()?)))))
    };
    let timestamp = date(flag::BACKDATED)?.unwrap_or(Timestamp::from_micros(entry.date));
    let inserted_at = date(flag::INSERTED_AT)?;
    let original_updated_at = date(flag::ORIGINAL_UPDATED_AT)?;
    let reference = if flags & flag::REFERENCE != 0 { Some(read_text(content)?) } else { None };
    let reverts = if flags & flag::REVERTS != 0 { Some(content.varint()?) } else { None };
    let template = if flags & flag::TEMPLATE != 0 { Some(read_text(content)?) } else { None };
    let (holding_count, moves) = read_moves(content, flags)?;
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
    let (account_metadata, defaults) = read_account_metadata(content, flags)?;
    let effective = if flags & flag::EFFECTIVE != 0 {
        Some((0..holding_count).map(|_| read_volumes(content)).collect::<Result<_, _>>()?)
    } else {
        None
    };
    Ok(TransactionRecord {
        id: entry.transaction,
        timestamp,
        inserted_at,
        original_updated_at,
        volumes_omitted: flags & flag::VOLUMES_OMITTED != 0,
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

/// Reads the number of holdings of a transaction, and the moves between them.
#[inline]
fn read_moves(content: &mut Reader<'_>, flags: u64) -> Result<(u32, SmallVec<[Move; 1]>), Corrupt> {
    let mut moves = SmallVec::new();
    if flags & flag::PLAIN_PAIR != 0 {
        moves.push(Move { source: 0, destination: 1, amount: read_amount(content)? });
        return Ok((2, moves));
    }
    let holdings = content.varint_u32()?;
    let count = content.varint()?;
    for _ in 0..count {
        let (source, destination) = (content.varint_u32()?, content.varint_u32()?);
        if source >= holdings || destination >= holdings {
            return Err(Corrupt { what: "posting without its holding" });
        }
        moves.push(Move { source, destination, amount: read_amount(content)? });
    }
    Ok((holdings, moves))
}

/// Metadata that a transaction sets on accounts, and the number of leading defaults.
type AccountMetadata<'a> = (Vec<(AddressRef<'a>, MetadataRecord<'a>)>, usize);

#[inline]
fn read_account_metadata<'a>(content: &mut Reader<'a>, flags: u64) -> Result<AccountMetadata<'a>, Corrupt> {
    let mut account_metadata = Vec::new();
    let mut defaults = 0;
    if flags & flag::ACCOUNT_METADATA != 0 {
        let count = content.varint()?;
        if flags & flag::DEFAULTS != 0 {
            defaults =
                usize::try_from(content.varint()?).map_err(|_| Corrupt { what: "metadata by default" })?;
        }
        for _ in 0..count {
            account_metadata.push((read_address(content)?, read_metadata(content)?));
        }
    }
    if defaults > account_metadata.len() {
        return Err(Corrupt { what: "metadata by default" });
    }
    Ok((account_metadata, defaults))
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
