//! Packs records into chunks.

use ledger_codec::{Corrupt, Output, put_varint};

use super::content::put_content;
use super::record::{Body, Event, Record};
use super::section::{LedgerBase, find_in_section, flag, zigzag};
use crate::{CHUNK_BYTES, ChunkDraft, Position, SectionId};

/// Target size of the entries in a chunk, in bytes. It leaves space for the chunk's head, the section table and the
/// bases of some ledgers.
const CHUNK_BYTES_TARGET: usize = CHUNK_BYTES - 512;

/// The number of the section for documents.
const DOCUMENTS: SectionId = SectionId(0);

#[derive(Clone, Debug)]
struct OpenSection {
    id: SectionId,
    /// The bases as written in the head of the section.
    bases: Vec<LedgerBase>,
    /// The bases after the last entry.
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
    /// Buffers for the two parts of an entry that follow its length.
    head: Output,
    content: Output,
    /// The buffer of the last closed section, for reuse.
    spare: Option<Output>,
}

/// A state of the builder to which [`ChunkBuilder::reset`] returns.
#[derive(Debug)]
pub struct BuilderMark {
    closed: usize,
    open: Option<OpenChunk>,
}

impl ChunkBuilder {
    /// Returns whether the builder is empty.
    pub fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.open.is_none()
    }

    /// Returns the number of records.
    #[cfg(debug_assertions)]
    pub fn entries(&self) -> u64 {
        let closed = self.closed.iter().map(|chunk| chunk.entries);
        closed.chain(self.open.iter().map(|open| open.entries)).map(u64::from).sum()
    }

    /// Returns the current state, for [`ChunkBuilder::reset`].
    pub fn mark(&self) -> BuilderMark {
        BuilderMark { closed: self.closed.len(), open: self.open.clone() }
    }

    /// Drops the records that were pushed since the mark.
    pub fn reset(&mut self, mark: BuilderMark) {
        self.closed.truncate(mark.closed);
        self.open = mark.open;
    }

    /// Appends a record. Positions must ascend without gaps. `section` is the section of its ledger. `base` holds the
    /// values to which the ledger's ids and date are relative: its next ids before this record.
    pub fn push(&mut self, record: &Record<'_>, section: SectionId, base: LedgerBase) {
        self.content.truncate(0);
        let (kind, flags) = put_content(&mut self.content, &record.body);
        if self.open.as_ref().is_some_and(|open| open.bytes + self.content.len() > CHUNK_BYTES_TARGET) {
            self.close();
        }
        let open = self.open.get_or_insert_with(|| OpenChunk {
            first: record.position,
            entries: 0,
            bytes: 0,
            sections: Vec::with_capacity(1),
        });
        let section = match &record.body {
            Body::Log(_) => section,
            Body::Document(_) => DOCUMENTS,
        };
        let at = open.place_of(section, &mut self.spare);
        let section = &mut open.sections[at];
        // The head has fewer than ten numbers.
        let head = &mut self.head;
        head.truncate(0);
        head.make_room();
        section.put_head(head, record, kind, flags, base);
        let length = head.len() + self.content.len();
        let before = section.entries.len();
        section.entries.make_room();
        section.entries.put_varint(length as u64);
        section.entries.put_bytes(head.as_slice());
        section.entries.put_bytes(self.content.as_slice());
        open.bytes += section.entries.len() - before;
        open.entries += 1;
    }

    /// Reads a pushed record back. This closes the open chunk.
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

    /// Returns all chunks, in order.
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

impl OpenChunk {
    /// Returns the index of a section, which is added if it is missing. `spare` is a buffer for it.
    #[inline]
    fn place_of(&mut self, section: SectionId, spare: &mut Option<Output>) -> usize {
        match self.sections.binary_search_by_key(&section, |have| have.id) {
            Ok(at) => at,
            Err(at) => {
                let begun = OpenSection {
                    id: section,
                    bases: Vec::new(),
                    running: Vec::new(),
                    entries: spare.take().unwrap_or_default(),
                    // Positions in a section are relative to the chunk's first position.
                    last_position: self.first.get() - 1,
                    last_ledger: 0,
                };
                self.sections.insert(at, begun);
                at
            }
        }
    }
}

impl OpenSection {
    /// Writes the head of an entry, and updates the base of its ledger.
    #[inline]
    fn put_head(
        &mut self,
        head: &mut Output,
        record: &Record<'_>,
        kind: u8,
        mut flags: u64,
        base: LedgerBase,
    ) {
        let skipped = record.position.get() - self.last_position - 1;
        self.last_position = record.position.get();
        let Body::Log(log) = &record.body else {
            head.put_varint(skipped * 2);
            head.put_byte(kind);
            head.put_varint(flags);
            return;
        };
        let ledger = self.ledger(base);
        let switch = ledger != self.last_ledger;
        head.put_varint(skipped * 2 + u64::from(switch));
        if switch {
            head.put_varint(ledger as u64);
            self.last_ledger = ledger;
        }
        let running = &mut self.running[ledger];
        let log_gap = log.log - running.log;
        if log_gap > 0 {
            flags |= flag::LOG_GAP;
        }
        let transaction_gap = match &log.event {
            Event::Transaction(transaction) => {
                let gap = zigzag(transaction.id.wrapping_sub(running.transaction).cast_signed());
                running.transaction = transaction.id + 1;
                gap
            }
            Event::SetMetadata { .. } | Event::DeleteMetadata { .. } | Event::InsertedSchema { .. } => 0,
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

    /// Returns the bytes of the section, and the buffer of its entries.
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

#[cfg(test)]
mod tests {
    use ledger_core::{Amount, Timestamp, Volumes};

    use super::super::record::{
        AddressRef, DocumentRecord, HoldingRecord, IdempotencyRecord, LogRecord, Move, NameRef, SecondaryKey,
        TargetRecord, TransactionRecord, ValueRef,
    };
    use super::*;

    /// The longest possible numbers and lists of empty texts, to test that no write exceeds the reserved space.
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
            volumes_omitted: true,
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
