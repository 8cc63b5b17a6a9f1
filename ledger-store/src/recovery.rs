//! Recovery: replays the journal entries that an index lacks. [`crate::opening`] chooses the index.

use std::ops::Bound;
use std::sync::Arc;

use ledger_codec::Corrupt;
use ledger_core::Metadata;
use ledger_index::{IndexError, IndexFile, IndexSnapshot, Way, tables};
use ledger_journal::entry::{Body, Event, LogRecord, Record, TargetRecord, find_in_chunk, read_chunk};
use ledger_journal::{Chunk, Identity, JournalReader, Position, Section};

use crate::address_cache::AddressCache;
use crate::cause::Cause;
use crate::documents::indexed;
use crate::documents::keys::{self, Space};
use crate::documents::merged::Merged;
use crate::documents::{LEDGERS, MAPPINGS, decode_ledger, decode_value};
use crate::error::{OpenError, ReadError};
use crate::fingerprint::Fingerprints;
use crate::flush::{self, NameKind, Watermark, name_key};
use crate::options::Shares;
use crate::projection::{Memtable, MemtableBuilder};
use crate::query::LedgerInfo;
use crate::tombstones;
use crate::view::{Counters, Heads, View};
use crate::violation::{Violation, ViolationCode};
use crate::writer::{PriorTransaction, State, UsedNumbers, apply, replay, replay_load};

impl From<ReadError> for OpenError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(cause) => Self::Io(cause),
            ReadError::Damaged(cause) => Self::Damaged(cause),
            error => Self::Damaged(Cause::of(error)),
        }
    }
}

impl From<IndexError> for OpenError {
    fn from(error: IndexError) -> Self {
        ReadError::from(error).into()
    }
}

/// The results of recovery.
pub(crate) struct Recovered {
    /// The writer's state after the last entry of the journal.
    pub(crate) state: State,
    /// The view for readers.
    pub(crate) view: View,
    /// The checkpoints of wire hashes exist for all entries before this position.
    pub(crate) hashed: Position,
    /// Number of entries that the index lacked.
    pub(crate) replayed: u64,
}

/// Replays the entries that the index lacks. An entry that breaks a rule counts as damage.
pub(crate) fn recover(
    journal: &Arc<dyn JournalReader>,
    index: &IndexFile,
    identity: &Identity,
    shares: Shares,
    next: Position,
) -> Result<Recovered, OpenError> {
    replay(journal, index, identity, shares, next, &mut |violation| {
        Err(OpenError::Damaged(format!("journal: {violation}").into()))
    })
}

/// Replays the entries that the index lacks, and calls `found` with every violation. If `found` succeeds, the entry
/// still takes effect.
pub(crate) fn replay(
    journal: &Arc<dyn JournalReader>,
    index: &IndexFile,
    identity: &Identity,
    shares: Shares,
    next: Position,
    found: &mut dyn FnMut(Violation) -> Result<(), OpenError>,
) -> Result<Recovered, OpenError> {
    let snapshot = index.snapshot()?;
    let mut state = load_state(&snapshot, &**journal, identity, shares, next)?;
    let mut view = View {
        next,
        index: snapshot,
        generation: 0,
        flushed: 0,
        indexed: next,
        memtables: Vec::new(),
        heads: Heads::default(),
        addresses: Arc::new(AddressCache::new(shares.addresses)),
    };
    let hashed = Watermark::read(&view.index)?.map_or(Position::FIRST, |watermark| watermark.hashed);
    replay::begin(&mut state);
    let mut replayed = 0;
    loop {
        let chunks = journal.scan(view.next, REPLAY_BYTES).map_err(ReadError::from)?;
        if chunks.is_empty() {
            break;
        }
        let mut rows = MemtableBuilder::default();
        for chunk in &chunks {
            replayed += replay_chunk(chunk, &**journal, &mut state, &view, &mut rows, found)?;
        }
        view.next = state.next;
        set_heads(&mut state, &mut view);
        view.push(state.flush, rows.seal());
        if view.bytes_of(state.flush) + state.keys.bytes() >= shares.memtable {
            flush_now(&mut state, &mut view, index, identity, &**journal, hashed)?;
        }
    }
    set_heads(&mut state, &mut view);
    if let Some(section) = replay::unexplained_hole(&state) {
        return Err(OpenError::Damaged(
            format!("journal: entries of section {section} are gone, and its ledgers were not removed")
                .into(),
        ));
    }
    replay::end(&mut state);
    Ok(Recovered { state, view, hashed, replayed })
}

/// Loads the writer's state as of the last entry that an index holds.
fn load_state(
    snapshot: &IndexSnapshot,
    journal: &dyn JournalReader,
    identity: &Identity,
    shares: Shares,
    next: Position,
) -> Result<State, OpenError> {
    let fingerprints = Fingerprints::new(&identity.secret);
    let mut state = State::new(snapshot.clone(), 0, fingerprints, next, shares)?;
    load_ledgers(snapshot, &mut state)?;
    load_mappings(snapshot, &mut state)?;
    state.used_numbers = used_numbers(snapshot, journal, next)?;
    state
        .used_numbers
        .check(&state.ledgers)
        .map_err(|corrupt| OpenError::Damaged(Cause::within("index", corrupt)))?;
    Ok(state)
}

/// Applies the entries of a chunk that the view lacks. Returns their number.
fn replay_chunk(
    chunk: &Chunk,
    journal: &dyn JournalReader,
    state: &mut State,
    view: &View,
    rows: &mut MemtableBuilder,
    found: &mut dyn FnMut(Violation) -> Result<(), OpenError>,
) -> Result<u64, OpenError> {
    let mut replayed = 0;
    let mut failed = None;
    let mut has_holes = false;
    for (section, _) in chunk.sections().iter().filter(|(_, bytes)| matches!(bytes, Section::Removed)) {
        has_holes = true;
        replay::note_hole(state, section.0);
    }
    read_chunk(chunk, |record| {
        if record.position < view.next || failed.is_some() {
            return Ok(());
        }
        replayed += 1;
        if has_holes {
            state.next = record.position;
        }
        failed = replay_record(&record, chunk, journal, state, view, rows).err();
        Ok(())
    })
    .map_err(ReadError::from)?;
    for violation in replay::take_violations(state) {
        found(violation)?;
    }
    if let Some(error) = failed {
        return Err(error.into());
    }
    if has_holes {
        state.next = chunk.next();
    }
    Ok(replayed)
}

/// Applies an entry, or skips it if its ledger is removed later in the journal.
fn replay_record(
    record: &Record<'_>,
    chunk: &Chunk,
    journal: &dyn JournalReader,
    state: &mut State,
    view: &View,
    rows: &mut MemtableBuilder,
) -> Result<(), ReadError> {
    if let Body::Log(log) = &record.body
        && replay::is_skipped(state, log.ledger)
    {
        state.next = record.position.next();
        return Ok(());
    }
    check_is_new(record, state, view, rows)?;
    let mut hints = replay_load::hints(state, record)?;
    if hints.transaction.is_none() {
        let original = original_of(record, state, view, rows, journal, chunk)?;
        hints.transaction = original.map(PriorTransaction::AsRecorded);
    }
    Ok(apply::entry(state, record, &hints, rows)?)
}

/// Returns the numbers that new entries must not use, from the counters in the index and the last chunk that it holds.
fn used_numbers(
    index: &IndexSnapshot,
    journal: &dyn JournalReader,
    next: Position,
) -> Result<UsedNumbers, OpenError> {
    let mut used = UsedNumbers::new(flush::ledger_count(index)?);
    if let Some(last) = Position::new(next.get() - 1)
        && let Some(chunk) = journal.read(last).map_err(ReadError::from)?
    {
        read_chunk(&chunk, |record| {
            used.note(&record);
            Ok(())
        })
        .map_err(ReadError::from)?;
    }
    Ok(used)
}

/// Number of journal bytes that are read at a time.
const REPLAY_BYTES: usize = 4 << 20;

fn set_heads(state: &mut State, view: &mut View) {
    for ledger in state.ledgers.iter() {
        view.heads.set(ledger.head.info.id, ledger.head.clone());
    }
}

pub(crate) fn flush_now(
    state: &mut State,
    view: &mut View,
    index: &IndexFile,
    identity: &Identity,
    journal: &dyn JournalReader,
    hashed: Position,
) -> Result<(), OpenError> {
    let memtables: Vec<Arc<Memtable>> =
        view.memtables.iter().map(|memtable| memtable.memtable.clone()).collect();
    let last = Position::new(view.next.get() - 1).expect("at least one entry was replayed");
    let chain = journal.read(last).map_err(ReadError::from)?.map(|chunk| chunk.chain());
    let chain = chain.ok_or_else(|| OpenError::Damaged("journal: an entry is missing".into()))?;
    let heads = state.ledgers.take_changed_heads();
    let watermark = Watermark { store: identity.store, next: view.next, chain, hashed };
    flush::write(index, &memtables, &heads, &[], watermark)?;
    while ledger_index::maintain(index, &|| false)? {}
    let flushed = state.begin_flush();
    view.index = index.snapshot()?;
    view.flushed = flushed;
    view.indexed = view.next;
    view.memtables.clear();
    state.adopt(&view.index, flushed)?;
    replay::evict(state);
    Ok(())
}

/// Refuses a transaction whose id is taken. Only ids below the next one need a lookup.
fn check_is_new(
    record: &Record<'_>,
    state: &State,
    view: &View,
    rows: &MemtableBuilder,
) -> Result<(), ReadError> {
    let Body::Log(LogRecord { ledger, event: Event::Transaction(transaction), .. }) = &record.body else {
        return Ok(());
    };
    let Some(head) = state.ledgers.get(*ledger) else { return Ok(()) };
    if transaction.id >= head.head.counters.next_transaction {
        return Ok(());
    }
    let place = (*ledger, transaction.id);
    let here = rows.transactions.iter().any(|row| (row.ledger, row.transaction) == place);
    if here || view.table(|memtable| &memtable.transactions).get(place)?.is_some() {
        return Err(Corrupt { what: "transaction id that another has" }.into());
    }
    Ok(())
}

/// Returns the original metadata of the transaction that an entry changes or reverts.
///
/// If there is no such transaction, reports that and returns empty metadata.
fn original_of(
    record: &Record<'_>,
    state: &mut State,
    view: &View,
    rows: &MemtableBuilder,
    journal: &dyn JournalReader,
    chunk: &Chunk,
) -> Result<Option<Metadata>, ReadError> {
    let Body::Log(log) = &record.body else { return Ok(None) };
    let id = match &log.event {
        Event::Transaction(transaction) => transaction.reverts,
        Event::SetMetadata { target: TargetRecord::Transaction(id), .. }
        | Event::DeleteMetadata { target: TargetRecord::Transaction(id), .. } => Some(*id),
        Event::SetMetadata { .. } | Event::DeleteMetadata { .. } | Event::InsertedSchema { .. } => None,
    };
    let Some(id) = id else { return Ok(None) };
    let here = rows.transactions.iter().rev().find(|row| (row.ledger, row.transaction) == (log.ledger, id));
    let position = match here {
        Some(row) => row.position,
        None => {
            if let Some(row) = view.table(|memtable| &memtable.transactions).get((log.ledger, id))? {
                row.position
            } else {
                let code = match &log.event {
                    Event::Transaction(_) => ViolationCode::RevertRule,
                    Event::SetMetadata { .. }
                    | Event::DeleteMetadata { .. }
                    | Event::InsertedSchema { .. } => ViolationCode::MetadataMismatch,
                };
                let detail = format!("transaction {id}, which it is about, is not before it");
                replay::report(state, code, log.ledger, record.position.get(), detail);
                return Ok(Some(Metadata::EMPTY));
            }
        }
    };
    let position = Position::new(position).ok_or(Corrupt { what: "position" })?;
    let within = chunk.first() <= position && position < chunk.next();
    let chunk = if within { Some(chunk.clone()) } else { journal.read(position)? };
    let found = match &chunk {
        Some(chunk) => find_in_chunk(chunk, position)?,
        None => None,
    };
    let Some(Record { body: Body::Log(LogRecord { event: Event::Transaction(transaction), .. }), .. }) =
        found
    else {
        return Err(Corrupt { what: "transaction that is not where it should be" }.into());
    };
    state.ledgers[log.ledger].metadata_of(&transaction.metadata).map(Some)
}

/// Calls `each` with the documents of a collection, in key order.
fn each_document(
    index: &IndexSnapshot,
    collection: u32,
    mut each: impl FnMut(&[u8], &[u8]) -> Result<(), Corrupt>,
) -> Result<(), ReadError> {
    let (from, to) = keys::range(collection, Space::Documents, &Bound::Unbounded, &Bound::Unbounded);
    let mut stored = Merged::new(vec![indexed::between(index, &from, &to, Way::Ascending)?], Way::Ascending);
    while let Some((key, value)) = stored.next()? {
        each(&key[from.len()..], decode_value(&value)?.bytes)?;
    }
    Ok(())
}

fn load_mappings(index: &IndexSnapshot, state: &mut State) -> Result<(), OpenError> {
    Ok(each_document(index, MAPPINGS, |name, text| state.ledgers.put_mapping(name, text))?)
}

fn load_ledgers(index: &IndexSnapshot, state: &mut State) -> Result<(), OpenError> {
    let mut ledgers: Vec<(LedgerInfo, u32)> = Vec::new();
    each_document(index, LEDGERS, |name, bytes| {
        ledgers.push(decode_ledger(name, bytes)?);
        Ok(())
    })?;
    ledgers.sort_unstable_by_key(|(info, _)| info.id);
    let mut removed = tombstones::read(index)?.into_iter().peekable();
    let gap = || OpenError::Damaged("index: a ledger is missing".into());
    for (info, section) in ledgers {
        let id = info.id;
        while let Some(tombstone) = removed.next_if(|tombstone| tombstone.info.id < id) {
            if tombstone.info.id != state.ledgers.len() + 1 {
                return Err(gap());
            }
            state.ledgers.put_tombstone(tombstone);
        }
        if id != state.ledgers.len() + 1 {
            return Err(gap());
        }
        let counters = index.get(tables::HEADS, &id.to_be_bytes())?;
        let counters = counters.ok_or_else(|| OpenError::Damaged("index: a ledger's head".into()))?;
        let counters = Counters::decode(&counters).map_err(ReadError::from)?;
        state.ledgers.put(info, section, || counters);
        let head = &state.ledgers[id].head;
        for (kind, names, count) in
            [(NameKind::Asset, &head.assets, counters.assets), (NameKind::Key, &head.keys, counters.keys)]
        {
            for number in 0..count {
                let text = index.get(tables::NAMES, &name_key(id, kind, number))?;
                let text = text.and_then(|text| String::from_utf8(text).ok());
                let text = text.ok_or_else(|| OpenError::Damaged("index: a name".into()))?;
                names.add(&text);
            }
        }
    }
    for tombstone in removed {
        if tombstone.info.id != state.ledgers.len() + 1 {
            return Err(gap());
        }
        state.ledgers.put_tombstone(tombstone);
    }
    Ok(())
}
