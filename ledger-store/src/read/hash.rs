//! Reads the wire hashes of log entries.

use std::ops::Bound;

use ledger_codec::Corrupt;
use ledger_core::{LogEntry, WireHash};
use ledger_index::{Way, tables};
use ledger_journal::Position;

use super::reader::LedgerReader;
use super::session::Session;
use crate::error::ReadError;
use crate::hashes::{Chain, ChainId, Hashes, checkpoint_key};
use crate::lookup::missing_in;

/// Maximum number of entries without a stored hash that a read hashes itself. If more are missing, the read waits for
/// the hashing thread.
const UNHASHED_MAX: u64 = 4_096;

/// Returns the hash chain as it was right before a log id.
pub(crate) fn recent_chain_before(session: &Session, id: ChainId, log: u64) -> Result<Chain, ReadError> {
    let ledger = session.ledger();
    if let Some(last) = log.checked_sub(1)
        && let Some(row) = session.logs().last_in((ledger, 0), (ledger, last))?
        && let Some(needed) = Position::new(row.position.saturating_sub(UNHASHED_MAX))
    {
        // After a burst of writes, the checkpoints may lag behind.
        session.hashes.wait(needed, || session.meter.is_late());
        session.meter.in_time()?;
    }
    chain_before(&session.reader, &session.hashes, id, log, || session.meter.row())
}

/// Appends the entries with ids in `from..to` to a chain.
fn extend_chain(session: &Session, chain: &mut Chain, from: u64, to: u64) -> Result<(), ReadError> {
    let Some(last) = to.checked_sub(1).filter(|last| *last >= from) else { return Ok(()) };
    let ledger = session.ledger();
    for row in session.logs().cursor((ledger, from), (ledger, last), Way::Ascending) {
        session.meter.row()?;
        chain.append(&session.reader.entry_of_row(&row?)?);
    }
    Ok(())
}

/// Returns the wire hashes of entries that ascend by id. `id` selects one of the ledger's chains.
pub(crate) fn hashes_of(
    session: &Session,
    id: ChainId,
    entries: &[&LogEntry],
) -> Result<Vec<WireHash>, ReadError> {
    let Some(first) = entries.first() else { return Ok(Vec::new()) };
    let mut next = first.id.get();
    let mut chain = recent_chain_before(session, id, next)?;
    let mut hashes = Vec::with_capacity(entries.len());
    for entry in entries {
        extend_chain(session, &mut chain, next, entry.id.get())?;
        hashes.push(chain.append(entry));
        next = entry.id.get() + 1;
    }
    Ok(hashes)
}

/// Returns a chain of a reader's ledger as it is right before the log `before`. It starts at the last checkpoint and
/// calls `each` for every entry that it hashes. An error of `each` ends it.
pub(crate) fn chain_before(
    reader: &LedgerReader,
    hashes: &Hashes,
    id: ChainId,
    before: u64,
    each: impl Fn() -> Result<(), ReadError>,
) -> Result<Chain, ReadError> {
    let ledger = reader.ledger;
    let (mut chain, from) = match checkpoint(reader, hashes, id, before)? {
        Some((log, hash)) => {
            let entry = || {
                let row = reader.view.table(|memtable| &memtable.logs).get((ledger, log))?;
                let row = row.ok_or_else(|| missing_in(&reader.view.index, "a log"))?;
                reader.entry(Position::new(row.position).ok_or(Corrupt { what: "position" })?)
            };
            (id.after(entry, hash)?, log + 1)
        }
        None => (id.begin(), 0),
    };
    let Some(last) = before.checked_sub(1).filter(|last| *last >= from) else { return Ok(chain) };
    let logs = reader.view.table(|memtable| &memtable.logs);
    for row in logs.cursor((ledger, from), (ledger, last), Way::Ascending) {
        each()?;
        let position = Position::new(row?.position).ok_or(Corrupt { what: "position" })?;
        chain.append(&reader.entry(position)?);
    }
    Ok(chain)
}

/// Returns the last checkpoint at a log before `before`.
fn checkpoint(
    reader: &LedgerReader,
    hashes: &Hashes,
    id: ChainId,
    before: u64,
) -> Result<Option<(u64, WireHash)>, ReadError> {
    if let Some(recent) = hashes.last_checkpoint(id, before) {
        return Ok(Some(recent));
    }
    let (from, to) = (checkpoint_key(id.number(), 0), checkpoint_key(id.number(), before));
    let bounds = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
    let mut range = reader.view.index.range(tables::HASHES, bounds.0, bounds.1)?;
    let Some(found) = range.next_back() else { return Ok(None) };
    let (key, value) = found?;
    let corrupt = Corrupt { what: "checkpoint of a hash chain" };
    let (_, log) = key.split_first_chunk::<4>().ok_or(corrupt)?;
    let log = u64::from_be_bytes(log.try_into().map_err(|_| corrupt)?);
    let hash: [u8; 32] = value.as_slice().try_into().map_err(|_| corrupt)?;
    Ok(Some((log, WireHash::from_bytes(hash))))
}
