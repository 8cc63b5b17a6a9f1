//! Packing records into chunks.

use ledger_codec::{Corrupt, Output, put_varint};
use ledger_core::Timestamp;

use super::amounts::put_amount;
use super::record::{
    AddressRef, Body, Event, MetadataRecord, NameRef, Record, TargetRecord, TransactionRecord, ValueRef,
};
use super::section::{LedgerBase, find_in_section, flag, kind, zigzag};
use crate::{CHUNK_BYTES, ChunkDraft, Position, SectionId};

/// A chunk is closed when its entries take this many bytes: what fills pages, less the chunk's head, the
/// section table and the bases of some ledgers.
const CHUNK_BYTES_TARGET: usize = CHUNK_BYTES - 512;

/// The section of documents.
const DOCUMENTS: SectionId = SectionId(0);

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
pub struct ChunkBuilder {
    closed: Vec<ChunkDraft>,
    open: Option<OpenChunk>,
    /// The two parts of an entry whose length comes before them.
    head: Output,
    content: Output,
    /// The buffer of the last closed section, for the next.
    spare: Option<Output>,
}

/// A place to return to, see [`ChunkBuilder::mark`].
#[derive(Debug)]
pub struct Mark {
    closed: usize,
    open: Option<OpenChunk>,
}

impl ChunkBuilder {
    /// Whether nothing was pushed.
    pub fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.open.is_none()
    }

    /// How many records were pushed.
    #[cfg(debug_assertions)]
    pub fn entries(&self) -> u64 {
        let closed = self.closed.iter().map(|chunk| chunk.entries);
        closed.chain(self.open.iter().map(|open| open.entries)).map(u64::from).sum()
    }

    /// Remembers this state, to return to with [`ChunkBuilder::reset`].
    pub fn mark(&self) -> Mark {
        Mark { closed: self.closed.len(), open: self.open.clone() }
    }

    /// Drops what was pushed since the mark.
    pub fn reset(&mut self, mark: Mark) {
        self.closed.truncate(mark.closed);
        self.open = mark.open;
    }

    /// Appends a record. Positions must ascend without a gap. `section` is the bucket of its ledger, and
    /// `base` what the ledger's ids and date count from: its next ids as they are before this record.
    pub fn push(&mut self, record: &Record<'_>, section: SectionId, base: LedgerBase) {
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
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if the packed bytes do not follow their layout.
    pub fn read<T>(
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
    pub fn finish(mut self) -> Vec<ChunkDraft> {
        self.close();
        self.closed
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let sections = open.sections.into_iter().map(|section| {
            let (id, (bytes, mut spare)) = (section.id, section.finish());
            spare.truncate(0);
            self.spare = Some(spare);
            (id, bytes.into())
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

#[cfg(test)]
mod tests {
    use ledger_core::{Amount, Volumes};

    use super::super::record::{DocumentRecord, IdempotencyRecord};
    use super::super::record::{HoldingRecord, LogRecord, Move, SecondaryKey};
    use super::*;

    /// Numbers as long as they get, and lists of texts that are empty: nothing may be put where there is no room.
    #[test]
    fn entries_of_the_longest_numbers_read_back() {
        let amounts: [Amount; 3] = [u64::MAX.to_string(), "9".repeat(1_000), "1".repeat(20)]
            .map(|digits| digits.parse().expect("digits"));
        let [name, address] = [NameRef::Known(u32::MAX), NameRef::New(u32::MAX, "")];
        let account = |new| AddressRef { account: u32::MAX, new };
        let volumes =
            || amounts.iter().map(|of| Volumes { input: of.clone(), output: Amount::from(u64::MAX) });
        let metadata = |count| vec![(name, ValueRef::Json("")); count].into();
        let transaction = |count: usize| TransactionRecord {
            id: u64::MAX - 1,
            timestamp: Timestamp::MAX,
            inserted_at: Some(Timestamp::MAX),
            original_updated_at: Some(Timestamp::MAX),
            volumes_untold: true,
            reference: Some(""),
            template: (count > 0).then_some(""),
            reverts: Some(u64::MAX),
            holdings: volumes()
                .map(|after| HoldingRecord {
                    holding: u32::MAX,
                    is_new: true,
                    account: account((count > 0).then_some("")),
                    asset: address,
                    after,
                })
                .collect(),
            moves: amounts
                .iter()
                .map(|amount| Move { source: 1, destination: 2, amount: amount.clone() })
                .collect(),
            metadata: metadata(count),
            account_metadata: vec![(account(None), metadata(0)); 40],
            defaults: 3,
            effective: Some(volumes().collect()),
        };
        let secondary = SecondaryKey { index: u32::MAX, unique: true, key: b"" };
        let document =
            DocumentRecord { collection: u32::MAX, key: b"", value: None, secondary: vec![secondary; 40] };
        let log = |event| LogRecord {
            ledger: 1,
            log: u64::MAX - 1,
            date: Timestamp::MIN,
            idempotency: Some(IdempotencyRecord { key: "", hash: "" }),
            schema_version: Some(""),
            imported: true,
            event,
        };
        let target = || TargetRecord::Transaction(u64::MAX);
        for body in [
            Body::Log(log(Event::Transaction(transaction(0)))),
            Body::Log(log(Event::Transaction(transaction(40)))),
            Body::Log(log(Event::SetMetadata {
                target: target(),
                defaults: metadata(40),
                metadata: metadata(40),
            })),
            Body::Log(log(Event::DeleteMetadata { target: target(), key: address })),
            Body::Document(document),
        ] {
            let position = Position::new(1 << 60).expect("a position");
            let record = Record { position, body };
            let mut builder = ChunkBuilder::default();
            let base = LedgerBase { ledger: 1, log: 0, transaction: 0, date: i64::MAX };
            builder.push(&record, SectionId(1), base);
            let read = builder.read(position, |read| format!("{read:?}")).expect("what was put is read");
            assert_eq!(read, Some(format!("{record:?}")));
        }
    }
}
